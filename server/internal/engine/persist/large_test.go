package persist_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

// TestLargeThenSmall overwrites values of all sizes by values of all sizes, with each command
// that hands its argument over or keeps a buffer, and compares the data before and after a
// restart. Each write but the first is in the journal alone.
func TestLargeThenSmall(t *testing.T) {
	sizes := []int{0, 1, 100, 40_000, 65_535, 65_536, 65_537, 70_000, 200_000}
	quote := func(words ...string) (b []byte) {
		b = fmt.Appendf(b, "*%d\r\n", len(words))
		for _, word := range words {
			b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(word), word)
		}
		return b
	}
	ways := map[string]func(key, value string) [][]string{
		"SET":      func(k, v string) [][]string { return [][]string{{"SET", k, v}} },
		"SET GET":  func(k, v string) [][]string { return [][]string{{"SET", k, v, "GET"}} },
		"KEEPTTL":  func(k, v string) [][]string { return [][]string{{"SET", k, v, "KEEPTTL"}} },
		"SETEX":    func(k, v string) [][]string { return [][]string{{"SETEX", k, "1000000", v}} },
		"GETSET":   func(k, v string) [][]string { return [][]string{{"GETSET", k, v}} },
		"MSET":     func(k, v string) [][]string { return [][]string{{"MSET", k, v, k + "'", v}} },
		"SETRANGE": func(k, v string) [][]string { return [][]string{{"SETRANGE", k, "3", v}} },
		"APPEND":   func(k, v string) [][]string { return [][]string{{"APPEND", k, v}} },
		"EXEC":     func(k, v string) [][]string { return [][]string{{"MULTI"}, {"SET", k, "x"}, {"SET", k, v}, {"EXEC"}} },
		"EVAL": func(k, v string) [][]string {
			return [][]string{{"EVAL", "return redis.call('set', KEYS[1], ARGV[1])", "1", k, v}}
		},
		"SETBIT": func(k, v string) [][]string { return [][]string{{"SETBIT", k, fmt.Sprint(8 * len(v)), "1"}} },
		"BITOP":  func(k, v string) [][]string { return [][]string{{"SET", k + "'", v}, {"BITOP", "NOT", k, k + "'"}} },
		"COPY": func(k, v string) [][]string {
			return [][]string{{"SET", k + "'", v}, {"COPY", k + "'", k, "REPLACE"}, {"APPEND", k + "'", "x"}}
		},
		"RENAME": func(k, v string) [][]string { return [][]string{{"SET", k + "'", v}, {"RENAME", k + "'", k}} },
		"HSET": func(k, v string) [][]string {
			return [][]string{{"DEL", k + "h"}, {"HSET", k + "h", "f", v, v, "g"}, {"HSET", k + "h", "f", "x", "h", v}}
		},
		"LSET": func(k, v string) [][]string {
			return [][]string{{"RPUSH", k + "l", v, "y"}, {"LSET", k + "l", "-1", v}, {"LINSERT", k + "l", "AFTER", v, "z" + v}, {"LREM", k + "l", "1", v}}
		},
		"ZADD": func(k, v string) [][]string {
			return [][]string{{"ZADD", k + "z", "1", v}, {"ZADD", k + "z", "2", v, "3", "x" + v}, {"ZREM", k + "z", "x" + v}}
		},
		"SADD": func(k, v string) [][]string {
			return [][]string{{"SADD", k + "s", v, "x" + v}, {"SMOVE", k + "s", k + "t", v}}
		},
		"XADD":  func(k, v string) [][]string { return [][]string{{"XADD", k + "x", "*", "f", v, v, "g"}} },
		"PFADD": func(k, v string) [][]string { return [][]string{{"PFADD", k + "p", v}} },
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := enginetest.Keep(t, filepath.Join(t.TempDir(), "k.db"), nil)
			c := enginetest.Pipe(t, srv)
			send := func(words ...string) {
				t.Helper()
				go c.Write(quote(words...))
				if got := fmt.Sprint(c.Reply()); strings.HasPrefix(got, "ERR") || strings.HasPrefix(got, "WRONG") {
					t.Fatalf("%.100q: %s", words, got)
				}
			}
			pairs := func(do func(key string, i, old, now int)) {
				for i, old := range sizes {
					for j, now := range sizes {
						do(fmt.Sprint("k", i, "-", j), i*len(sizes)+j, old, now)
					}
				}
			}
			value := func(letter string, n int) string { return strings.Repeat(letter, n) }
			pairs(func(key string, i, old, _ int) { send("SET", key, value("o", old)) })
			enginetest.Must(t, srv, "SAVE")
			pairs(func(key string, i, _, now int) {
				for _, words := range way(key, value("n", now)) {
					send(words...)
				}
			})
			want := enginetest.DebugDigest(srv)
			enginetest.Must(t, srv, "SAVE")
			srv = enginetest.Again(t, srv, nil)
			if got := enginetest.DebugDigest(srv); got != want {
				t.Errorf("after a restart the data are others: %s, %s", got, want)
			}
		})
	}
}
