package migrate

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/servertest"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// TestFullTarget checks that a move ends with words when the target has no memory left, leaves
// the source as it is, and goes on later without applying anything twice.
func TestFullTarget(t *testing.T) {
	for _, to := range []string{"zsetd", "redis"} {
		t.Run(to, func(t *testing.T) {
			source := primary(t)
			target := servertest.Run(t).Addr()
			if to == "redis" {
				target = startRedis(t)
			}
			here, there := clientOf(t, source.Addr()), clientOf(t, target)
			must(t, here, "SET", "large", strings.Repeat("x", 1000))
			o := moveOf(t, source.Addr(), target)
			f := follow(t, o)
			must(t, there, "CONFIG", "SET", "maxmemory", 1)
			p := here.TxPipeline()
			for i := range 10 {
				p.LPop(t.Context(), "nothing")
				p.Append(t.Context(), "text", fmt.Sprint(i))
				p.RPush(t.Context(), "list", i)
				p.Incr(t.Context(), "n")
			}
			_, _ = p.Exec(t.Context()) // LPOP finds nothing
			if err := <-f.ended; err == nil || !strings.Contains(err.Error(), "OOM") {
				t.Fatalf("the move ends with %v", err)
			}
			must(t, here, "INCR", "n")
			must(t, there, "CONFIG", "SET", "maxmemory", 0)
			if err := run(t, o); err != nil {
				t.Fatal(err)
			}
			for _, key := range []string{"large", "text", "list", "n"} {
				if got, want := text(t, there, key), text(t, here, key); got != want {
					t.Errorf("%s is %s, want %s", key, got, want)
				}
			}
		})
	}
}

// TestFailedCommand checks that a script which fails has stored the offset of the commands
// before the one that has failed, in each database.
func TestFailedCommand(t *testing.T) {
	for _, db := range []int{0, 3} {
		srv := servertest.Run(t)
		rdb := clientOf(t, srv.Addr())
		tgt := &target{rdb: rdb, script: scriptFor(product{"zsetd", 8, 6}), note: func(string) {}}
		if err := tgt.loadScript(t.Context()); err != nil {
			t.Fatal(err)
		}
		u := newUnit("offset")
		u.add(10, db, nil, "INCR", "n")
		u.add(20, db, nil, "INCR", "n")
		u.add(30, db, nil, "SADD", "n", "x")
		for range 2 {
			if err := tgt.apply(t.Context(), []*unit{u}); err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
				t.Errorf("the call ends with %v", err)
			}
		}
		if got := must(t, rdb, "GET", "offset"); got != "20" {
			t.Errorf("the offset is %v", got)
		}
		own := redis.NewClient(&redis.Options{Addr: srv.Addr(), DB: db})
		if got := must(t, own, "GET", "n"); got != "2" {
			t.Errorf("n is %v", got)
		}
		own.Close()
	}
}

// TestContinues checks that a move which is stopped, in which the source restarts its
// connections, goes on where it was, and that a target with keys is refused or emptied.
func TestContinues(t *testing.T) {
	source, target := primary(t), servertest.Run(t)
	here, there := clientOf(t, source.Addr()), clientOf(t, target.Addr())
	must(t, here, "RPUSH", "list", "a")
	var lines []string
	o := moveOf(t, source.Addr(), target.Addr())
	log := o.Log
	o.Log = func(line string) {
		log(line)
		lines = append(lines, line)
	}
	f := follow(t, o)
	must(t, here, "RPUSH", "list", "b")
	must(t, here, "CLIENT", "KILL", "TYPE", "replica")
	must(t, here, "RPUSH", "list", "c")
	wait.Until(t, "the target follows", func() bool { return must(t, there, "LLEN", "list") == int64(3) })
	f.stop()
	if err := <-f.ended; !errors.Is(err, ErrStopped) {
		t.Fatalf("the move ends with %v", err)
	}
	must(t, here, "RPUSH", "list", "d")
	lines = nil
	if err := run(t, o); err != nil {
		t.Fatal(err)
	}
	if got := text(t, there, "list"); got != "[a b c d]" || lines[0] != "continuing the move where it was" {
		t.Errorf("the list is %s after %q", got, lines[0])
	}
	if got := must(t, there, "DBSIZE"); got != int64(1) {
		t.Errorf("the target has %v keys", got)
	}
	if err := run(t, o); err == nil || !strings.Contains(err.Error(), "has 1 keys: a move needs an empty target") {
		t.Errorf("a move to a target with keys ends with %v", err)
	}
	o.Replace = true
	must(t, there, "SET", "old", 1)
	if err := run(t, o); err != nil {
		t.Fatal(err)
	}
	if got := must(t, there, "EXISTS", "old"); got != int64(0) {
		t.Error("an old key is left")
	}
}

// TestOtherSource checks that a move to a target with an unfinished move from another source is
// refused, whatever state that has, and that the target keeps what it has.
func TestOtherSource(t *testing.T) {
	for _, state := range []string{"begun", "copied", "done"} {
		a, b, target := primary(t), primary(t), servertest.Run(t)
		there := clientOf(t, target.Addr())
		must(t, clientOf(t, a.Addr()), "SET", "k", "of a")
		must(t, clientOf(t, b.Addr()), "SET", "k", "of b")
		o := moveOf(t, a.Addr(), target.Addr())
		f := follow(t, o)
		f.stop()
		if err := <-f.ended; !errors.Is(err, ErrStopped) {
			t.Fatal(err)
		}
		switch state {
		case "begun":
			must(t, there, "HDEL", progressKey, fieldSource+a.Addr())
		case "done":
			must(t, there, "HSET", progressKey, fieldDone, 1)
		}
		o.From = endpoint(t, "redis://"+b.Addr())
		want := fmt.Sprintf("redis://%s has the unfinished move from redis://%s: --replace deletes it", target.Addr(), a.Addr())
		if err := run(t, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the move ends with %v", state, err)
		}
		if got := must(t, there, "GET", "k"); got != "of a" {
			t.Errorf("%s: the target has %v", state, got)
		}
		o.Replace = true
		if err := run(t, o); err != nil {
			t.Errorf("%s: %v", state, err)
		}
		if got := must(t, there, "GET", "k"); got != "of b" {
			t.Errorf("%s: after a new move the target has %v", state, got)
		}
	}
}

// TestDoneMove checks that a move whose tool has died after the cut-over ends when it is run
// again, and copies nothing.
func TestDoneMove(t *testing.T) {
	source, target := primary(t), servertest.Run(t)
	must(t, clientOf(t, source.Addr()), "SET", "k", "at the source")
	there := clientOf(t, target.Addr())
	o := moveOf(t, source.Addr(), target.Addr())
	must(t, there, "HSET", progressKey, fieldFrom, o.From.String(), fieldDone, "1")
	must(t, there, "SET", StatePrefix+"0", "1")
	must(t, there, "SET", "k", "at the target")
	if err := run(t, o); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(must(t, there, "GET", "k"), must(t, there, "DBSIZE")); got != "at the target1" {
		t.Errorf("the target has %s", got)
	}
}

// TestDatabases checks which databases move, and where to.
func TestDatabases(t *testing.T) {
	ctx := context.Background()
	for _, test := range []struct{ from, to, want string }{
		{"", "", "0:a 3:b 5:c"},
		{"/3", "", "3:b"},
		{"/3", "/7", "7:b"},
	} {
		source, target := primary(t), servertest.Run(t)
		o := moveOf(t, source.Addr()+test.from, target.Addr()+test.to)
		in := func(addr string, db int) *redis.Client {
			c := redis.NewClient(&redis.Options{Addr: addr, DB: db})
			t.Cleanup(func() { c.Close() })
			return c
		}
		for db, key := range map[int]string{0: "a", 3: "b", 5: "c"} {
			must(t, in(source.Addr(), db), "ZADDEX", key, "EX", 1000, "MEMBERS", 1, 1, "m")
		}
		f := follow(t, o)
		must(t, in(source.Addr(), 8), "SET", "gone", 1)
		must(t, in(source.Addr(), 8), "FLUSHDB")
		for db, key := range map[int]string{0: "a", 3: "b", 5: "c"} {
			must(t, in(source.Addr(), db), "ZADDEX", key, "EX", 1000, "MEMBERS", 1, 2, "n")
		}
		f.cutOver()
		var got []string
		for db := range 10 {
			c := in(target.Addr(), db)
			for _, k := range c.Keys(ctx, "*").Val() {
				got = append(got, fmt.Sprintf("%d:%s", db, k))
				if ttl := fmt.Sprint(must(t, c, "ZTTL", k, "MEMBERS", 2, "m", "n")); strings.Contains(ttl, "-") {
					t.Errorf("%v: the members of %s have %s seconds", test, k, ttl)
				}
			}
		}
		if text := strings.Join(got, " "); text != test.want {
			t.Errorf("%s to %s: %s, want %s", test.from, test.to, text, test.want)
		}
	}
}

// TestFiles checks moves to files and from them.
func TestFiles(t *testing.T) {
	source := primary(t)
	here := clientOf(t, source.Addr())
	must(t, here, "ZADDEX", "z", "PXAT", 1<<44, "MEMBERS", 1, 1, "m")
	must(t, here, "SET", "volatile", "v", "PXAT", 1<<44)
	must(t, here, "FUNCTION", "LOAD", "#!lua name=two\nredis.register_function('two', function() return 2 end)")
	dir := t.TempDir()
	move := moveOf(t, source.Addr(), source.Addr())
	t.Chdir(dir)
	for _, name := range []string{"zsetd.db", "dump.rdb", "here.rdb"} {
		path := filepath.Join(dir, name)
		if name == "here.rdb" {
			path = name
		}
		o := move
		o.To = endpoint(t, path)
		if err := run(t, o); err != nil {
			t.Fatal(err)
		}
		if err := run(t, o); err == nil || !strings.Contains(err.Error(), "exists already") {
			t.Errorf("a move to a file that exists ends with %v", err)
		}
		target := servertest.Run(t, server.Options{})
		o.From, o.To = endpoint(t, path), endpoint(t, "redis://"+target.Addr())
		if err := run(t, o); err != nil {
			t.Fatal(err)
		}
		there := clientOf(t, target.Addr())
		got := fmt.Sprint(must(t, there, "ZPEXPIRETIME", "z", "MEMBERS", 1, "m"), must(t, there, "PEXPIRETIME", "volatile"),
			must(t, there, "FCALL", "two", 0), must(t, there, "DBSIZE"))
		if want := fmt.Sprint([]int64{1 << 44}, 1<<44, 2, 2); got != want {
			t.Errorf("%s: the target has %s, want %s", name, got, want)
		}
	}
}

// TestHook checks that the hook gets the endpoints, and that one which fails leaves the source
// as it was, and the move can go on.
func TestHook(t *testing.T) {
	source, target := primary(t), servertest.Run(t)
	here := clientOf(t, source.Addr())
	must(t, here, "SET", "k", "v")
	o := moveOf(t, source.Addr(), target.Addr())
	o.Unpause = false
	o.Hook = `test "$ZSETD_MIGRATE_FROM" = "` + o.From.String() + `" && test "$ZSETD_MIGRATE_TO" = "` + o.To.String() + `" && echo right; exit 1`
	var lines []string
	log := o.Log
	o.Log = func(line string) {
		log(line)
		lines = append(lines, line)
	}
	if err := run(t, o); err == nil || !strings.Contains(err.Error(), "the hook has failed") {
		t.Fatalf("the move ends with %v", err)
	}
	if !strings.Contains(strings.Join(lines, "\n"), "right") {
		t.Errorf("the hook says %q", lines)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := here.Set(ctx, "after", "v", 0).Err(); err != nil {
		t.Errorf("after the hook has failed: %v", err)
	}
	o.Hook = "true"
	if err := run(t, o); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(must(t, clientOf(t, target.Addr()), "MGET", "k", "after")); got != "[v v]" {
		t.Errorf("the target has %s", got)
	}
}
