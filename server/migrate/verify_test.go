package migrate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/servertest"
)

// TestVerifyFinds checks that a verification finds a difference in each kind of value, small
// or large, and that the source accepts writes afterwards.
func TestVerifyFinds(t *testing.T) {
	type values struct{ fill, spoil []any }
	kinds := map[string]func(n int) values{
		"string": func(n int) values {
			return values{[]any{"SET", "k", strings.Repeat("x", 60*n)}, []any{"SETRANGE", "k", 60*n - 1, "y"}}
		},
		"list":          func(n int) values { return values{some(n, "RPUSH", "k"), []any{"LSET", "k", n - 1, "other"}} },
		"set":           func(n int) values { return values{some(n, "SADD", "k"), []any{"SREM", "k", "1"}} },
		"set, replaced": func(n int) values { return values{some(n, "SADD", "k"), []any{"SMOVE", "k", "k2", "1"}} },
		"zset":          func(n int) values { return values{some(2*n, "ZADD", "k"), []any{"ZINCRBY", "k", 1, "2"}} },
		"zset deadline": func(n int) values {
			return values{some(2*n, "ZADD", "k"), []any{"ZPEXPIREAT", "k", 1 << 44, "MEMBERS", 1, "2"}}
		},
		"hash": func(n int) values { return values{some(2*n, "HSET", "k"), []any{"HSET", "k", "1", "other"}} },
		"hash deadline": func(n int) values {
			return values{some(2*n, "HSET", "k"), []any{"HPEXPIREAT", "k", 1 << 44, "FIELDS", 1, "1"}}
		},
		"more":     func(n int) values { return values{some(2*n, "ZADD", "k"), []any{"ZADD", "k", 1, "more"}} },
		"deadline": func(n int) values { return values{some(n, "RPUSH", "k"), []any{"EXPIRE", "k", 1000}} },
		"kind":     func(n int) values { return values{some(n, "RPUSH", "k"), []any{"SET", "k", 1}} },
		"absent":   func(n int) values { return values{some(n, "RPUSH", "k"), []any{"DEL", "k"}} },
		"surplus":  func(n int) values { return values{some(n, "RPUSH", "k"), []any{"SET", "other", 1}} },
	}
	for name, make := range kinds {
		for _, n := range []int{10, 5000} {
			t.Run(fmt.Sprint(name, n), func(t *testing.T) {
				source, target := primary(t), servertest.Run(t)
				here, there := clientOf(t, source.Addr()), clientOf(t, target.Addr())
				v := make(n)
				must(t, here, v.fill...)
				must(t, here, "XADD", "stream", "1-1", "f", "v")
				f := follow(t, moveOf(t, source.Addr(), target.Addr()))
				must(t, there, v.spoil...)
				f.order <- struct{}{}
				if err := <-f.ended; err == nil || !strings.Contains(err.Error(), "verification failed: key ") {
					t.Errorf("the move ends with %v", err)
				}
				must(t, here, "SET", "after", 1)
			})
		}
	}
}

// some returns a command with the numbers from 1 to n as its last words.
func some(n int, words ...any) []any {
	for i := range n {
		words = append(words, i+1)
	}
	return words
}

// TestVerifyStreams checks that a verification finds a different entry.
func TestVerifyStreams(t *testing.T) {
	for _, n := range []int{10, 5000} {
		source, target := primary(t), servertest.Run(t)
		here, there := clientOf(t, source.Addr()), clientOf(t, target.Addr())
		p := here.Pipeline()
		for i := range n {
			p.Do(t.Context(), "XADD", "s", fmt.Sprintf("5-%d", i+1), "f", "v")
		}
		if _, err := p.Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		f := follow(t, moveOf(t, source.Addr(), target.Addr()))
		must(t, there, "XDEL", "s", fmt.Sprintf("5-%d", n))
		must(t, there, "XADD", "s", "6-1", "f", "v")
		f.order <- struct{}{}
		if err := <-f.ended; err == nil || !strings.Contains(err.Error(), "verification failed: key ") {
			t.Errorf("the move of %d entries ends with %v", n, err)
		}
	}
}
