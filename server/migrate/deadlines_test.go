package migrate

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/servertest"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// following is a move that follows its source.
type following struct {
	t     *testing.T
	o     Options
	order chan struct{}
	ended chan error
	stop  context.CancelFunc
}

// follow starts a move, and waits until the copy is complete.
func follow(t *testing.T, o Options) *following {
	t.Helper()
	f := &following{t: t, order: make(chan struct{}, 1), ended: make(chan error, 1)}
	o.CutOver = f.order
	copied := make(chan struct{})
	once := sync.OnceFunc(func() { close(copied) }) // a copy may start again
	log := o.Log
	o.Log = func(line string) {
		log(line)
		if line == "the copy is complete; following the changes" {
			once()
		}
	}
	f.o = o
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	f.stop = cancel
	t.Cleanup(cancel)
	go func() { f.ended <- Run(ctx, o) }()
	select {
	case <-copied:
	case err := <-f.ended:
		t.Fatal(err)
	}
	return f
}

// cutOver ends the move.
func (f *following) cutOver() {
	f.t.Helper()
	f.order <- struct{}{}
	if err := <-f.ended; err != nil {
		f.t.Fatal(err)
	}
}

// TestDeadlinesInStream checks that deadlines of members and fields, which are in the copy and
// in the stream of a zsetd, reach each kind of target with all that changes or removes them.
func TestDeadlinesInStream(t *testing.T) {
	for _, to := range []string{"zsetd", "redis-server", "ZSETD_JUDGE_REDIS8", "ZSETD_JUDGE_VALKEY9"} {
		t.Run(to, func(t *testing.T) {
			source := primary(t)
			var target string
			switch to {
			case "zsetd":
				target = servertest.Run(t).Addr()
			case "redis-server":
				target = startRedis(t)
			default:
				target = startProgram(t, os.Getenv(to))
			}
			here, there := clientOf(t, source.Addr()), clientOf(t, target)
			do := func(args ...any) { must(t, here, args...) }
			for i := range 10 {
				key := fmt.Sprint("z", i)
				do("ZADDEX", key, "PXAT", 1<<45, "MEMBERS", 3, 1, "a", 2, "b", 3, "c")
				do("HSET", fmt.Sprint("h", i), "a", 1, "b", 2)
				do("HPEXPIREAT", fmt.Sprint("h", i), 1<<45, "FIELDS", 2, "a", "b")
			}
			f := follow(t, moveOf(t, source.Addr(), target))
			do("ZPERSIST", "z1", "MEMBERS", 2, "a", "b")
			do("ZADD", "z2", 5, "a")
			do("ZREM", "z3", "a")
			do("ZADD", "z3", 7, "a")
			do("DEL", "z4")
			do("ZADD", "z4", 1, "a")
			do("SET", "z5", "text")
			do("ZADDEX", "z6", "PXAT", 1<<44, "MEMBERS", 2, 1, "a", 9, "d")
			do("RENAME", "z7", "renamed")
			do("ZPEXPIREAT", "z8", 1<<43, "MEMBERS", 1, "a")
			do("ZINCRBY", "z9", 5, "a")
			do("ZADDEX", "new", "PXAT", 1<<44, "MEMBERS", 1, 1, "a")
			do("HPERSIST", "h1", "FIELDS", 1, "a")
			do("HSET", "h2", "a", 5)
			do("HDEL", "h3", "a")
			do("HPEXPIREAT", "h4", 1<<44, "FIELDS", 1, "a")
			f.cutOver()
			for _, key := range []string{"z0", "z1", "z2", "z3", "z4", "z6", "z7", "z8", "z9", "renamed", "new"} {
				times := []any{"MEMBERS", 4, "a", "b", "c", "d"}
				want := must(t, here, append([]any{"ZPEXPIRETIME", key}, times...)...)
				var got any
				if to == "zsetd" {
					got = must(t, there, append([]any{"ZPEXPIRETIME", key}, times...)...)
				} else {
					got = must(t, there, append([]any{"FCALL", "zpexpiretime", 1, key}, times...)...)
				}
				if fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("the deadlines of %s are %v, want %v", key, got, want)
				}
			}
			for i := range 10 {
				if to == "redis-server" {
					break // 7.0 has no deadlines of fields
				}
				words := []any{"HPEXPIRETIME", fmt.Sprint("h", i), "FIELDS", 2, "a", "b"}
				if got, want := must(t, there, words...), must(t, here, words...); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("the deadlines of h%d are %v, want %v", i, got, want)
				}
			}
			keys := must(t, there, "KEYS", "zsetd:deadlines:*").([]any)
			if to == "zsetd" && len(keys) != 0 || to != "zsetd" && len(keys) != 9 {
				t.Errorf("companions: %v", keys)
			}
		})
	}
}

// TestCompanionsBecomeDeadlines checks that a zsetd has the deadlines that the library keeps
// in companions at Redis: those of the copy, and those that change afterwards.
func TestCompanionsBecomeDeadlines(t *testing.T) {
	source := startRedis(t, "--repl-backlog-size", "64mb")
	target := servertest.Run(t)
	here, there := clientOf(t, source), clientOf(t, target.Addr())
	o := moveOf(t, source, target.Addr())
	must(t, here, "FUNCTION", "LOAD", o.Library)
	zaddex := func(key string, at int, members ...any) {
		must(t, here, append([]any{"FCALL", "zaddex", 1, key, "PXAT", at, "MEMBERS", len(members) / 2}, members...)...)
	}
	for i := range 6 {
		zaddex(fmt.Sprint("z", i), 1<<45, 1, "a", 2, "b")
	}
	o.LoadLibrary = false
	f := follow(t, o)
	zaddex("z1", 1<<44, 1, "a")
	zaddex("new", 1<<44, 1, "a")
	must(t, here, "FCALL", "zpersist", 1, "z2", "MEMBERS", 1, "a")
	must(t, here, "ZADD", "z3", 9, "a") // keeps the deadline, as the library says
	must(t, here, "ZREM", "z4", "a")
	must(t, here, "DEL", "z5", "zsetd:deadlines:{z5}")
	must(t, here, "ZADD", "z5", 9, "a")
	wait.Until(t, "a deadline of the stream is at the target", func() bool {
		return fmt.Sprint(must(t, there, "ZPEXPIRETIME", "z1", "MEMBERS", 1, "a")) == fmt.Sprint([]any{int64(1 << 44)})
	})
	f.cutOver()
	for _, key := range []string{"z0", "z1", "z2", "z3", "z4", "z5", "new"} {
		want := must(t, here, "FCALL", "zpexpiretime", 1, key, "MEMBERS", 2, "a", "b")
		if got := must(t, there, "ZPEXPIRETIME", key, "MEMBERS", 2, "a", "b"); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("the deadlines of %s are %v, want %v", key, got, want)
		}
	}
	if keys := must(t, there, "KEYS", "*").([]any); len(keys) != 7 {
		t.Errorf("the target has %v", keys)
	}
}
