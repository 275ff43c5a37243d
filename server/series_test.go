package server

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestNameIndex compares the index with a map of the names in lower case.
func TestNameIndex(t *testing.T) {
	table := newTable(families())
	check := func(name []byte) {
		t.Helper()
		if got, want := table.index.find(name), lookup(table.byName, name); got != want {
			t.Fatalf("%q: found %v, want %v", name, got, want)
		}
	}
	check(nil)
	for name := range table.byName {
		check([]byte(name))
		check([]byte(strings.ToUpper(name)))
		for range 200 {
			b := []byte(name)
			for i := range b {
				if rand.IntN(2) == 0 && 'a' <= b[i] && b[i] <= 'z' {
					b[i] -= 'a' - 'A'
				}
			}
			check(b)
			i := rand.IntN(len(b))
			b[i] ^= 1 << rand.IntN(8)
			check(b)
			check(append(b, b[i]))
			check(b[:i])
		}
	}
	if err := table.rename("get fetch set '' zremrangebyscore a-name-of-more-than-16-bytes"); err != nil {
		t.Fatal(err)
	}
	for name, there := range map[string]bool{
		"get": false, "FETCH": true, "set": false, "A-name-of-more-than-16-bytes": true, "zremrangebyscore": false,
	} {
		if (table.index.find([]byte(name)) != nil) != there {
			t.Errorf("%s: there is one: %v", name, !there)
		}
	}
}

// TestSeries checks that commands of the batch fast path are counted as single commands,
// and that the batch stops at a command that needs further checks.
func TestSeries(t *testing.T) {
	pipeline := []string{
		"PING", "SET k v", "SET k", "INCR k", "LPUSH k 1", "NOSUCH", "GET k", "set k 7", "Incr K", "PING x y", "CONFIG GET port",
		"GET k", "MULTI", "INCR k", "GET k", "EXEC", "CLIENT REPLY SKIP", "GET k", "GET k", "SUBSCRIBE c", "PUBLISH c m",
		"PING", "UNSUBSCRIBE", "PUBLISH c m", "APPEND k " + strings.Repeat("x", 3000), "GET k", "BLPOP none 0.001", "GET k",
		"EXPIRE k 100", "PERSIST k", "SADD s a b c", "SPOP s 3", "EXISTS s", "TTL k", "RESET", "GET k",
	}
	run := func(plain bool) (replies, stats string) {
		srv, err := New(Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		if !plain {
			srv.config.slowlogSlowerThan = 999 // every command is timed
		}
		s := srv.newSession(peer{fd: -1, wake: func() {}})
		defer s.close()
		do := func(lines []string) string {
			var batch [][][]byte
			for _, line := range lines {
				var argv [][]byte
				for _, word := range strings.Fields(line) {
					argv = append(argv, []byte(word))
				}
				batch = append(batch, argv)
			}
			var got strings.Builder
			for len(batch) > 0 {
				if s.stalled.Load() {
					srv.Advance(1e9)
				}
				done, out, _ := s.turn(batch, nil)
				got.Write(out)
				s.written()
				batch = batch[done:]
			}
			return got.String()
		}
		replies = do(pipeline)
		for _, c := range srv.table.rows {
			if st := c.stats; st.calls+st.failed+st.rejected > 0 {
				entered := uint64(0)
				if st.histogram != nil {
					entered = st.histogram.total
				}
				stats += fmt.Sprintln(c.Name, st.calls, st.failed, st.rejected, entered)
			}
		}
		stats += fmt.Sprint(srv.errors, srv.errorReplies, srv.commands)
		return replies, stats
	}
	replies, stats := run(true)
	replies2, stats2 := run(false)
	if replies != replies2 {
		t.Errorf("replies differ:\n%s\n%s", replies, replies2)
	}
	if stats != stats2 {
		t.Errorf("statistics differ:\n%s\n%s", stats, stats2)
	}
}
