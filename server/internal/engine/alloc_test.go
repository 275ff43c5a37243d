package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/internal/engine"

	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

// TestAllocations checks that the commands on the hot path allocate only what they store.
func TestAllocations(t *testing.T) {
	srv, err := enginetest.New(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	s := srv.NewSession(engine.Peer{FD: -1, Wake: func() {}})
	defer s.Close()
	for i := range 10000 {
		s.Turn([][][]byte{{[]byte("ZADD"), []byte("big"), fmt.Append(nil, i), fmt.Appendf(nil, "m%d", i)}}, nil)
		s.Written()
		s.Turn([][][]byte{{[]byte("HSET"), []byte("bighash"), fmt.Appendf(nil, "f%d", i), []byte("value")}}, nil)
		s.Written()
	}
	for _, test := range []struct {
		name string
		next func(i int) string
		max  float64
	}{
		{"PING", func(int) string { return "PING" }, 0},
		{"SET of the same key", func(int) string { return "SET k value" }, 1},
		{"GET", func(int) string { return "GET k" }, 0},
		{"INCR", func(int) string { return "INCR n" }, 0},
		{"APPEND", func(int) string { return "APPEND a xyz" }, 1},
		{"MGET", func(int) string { return "MGET k n nokey" }, 0},
		{"GETRANGE", func(int) string { return "GETRANGE k 1 -2" }, 0},
		{"HSET of an old field", func(i int) string { return fmt.Sprintf("HSET h f%d value%d", i%10, i) }, 1},
		{"HSET of an old field of many", func(i int) string { return fmt.Sprintf("HSET bighash f%d value%d", i, i) }, 1},
		{"HINCRBY", func(i int) string { return fmt.Sprintf("HINCRBY h n%d 1000", i%10) }, 1},
		{"HGET", func(i int) string { return fmt.Sprintf("HGET bighash f%d", i) }, 0},
		{"HMGET", func(i int) string { return fmt.Sprintf("HMGET h f%d nofield", i%10) }, 0},
		{"HGETALL", func(int) string { return "HGETALL h" }, 0},
		{"HGETALL of many", func(int) string { return "HGETALL bighash" }, 0},
		{"HVALS", func(int) string { return "HVALS h" }, 0},
		{"ZADD of a new member", func(i int) string { return fmt.Sprintf("ZADD big %d new%d", i, i) }, 1},
		{"ZADD of an old member", func(i int) string { return fmt.Sprintf("ZADD big %d.5 m%d", i, i) }, 0},
		{"ZSCORE", func(i int) string { return fmt.Sprintf("ZSCORE big m%d", i) }, 0},
		{"ZRANK", func(i int) string { return fmt.Sprintf("ZRANK big m%d", i) }, 0},
		{"ZRANGEBYSCORE", func(i int) string { return fmt.Sprintf("ZRANGEBYSCORE big %d +inf WITHSCORES LIMIT 0 10", i) }, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := enginetest.Allocations(t, s, test.next); got > test.max {
				t.Errorf("%v allocations, want at most %v", got, test.max)
			}
		})
		t.Run(test.name+", events on", func(t *testing.T) {
			// Without subscribers, events cost at most a copy of the members.
			s.Turn([][][]byte{{[]byte("CONFIG"), []byte("SET"), []byte("notify-keyspace-events"), []byte("KESTIVA")}}, nil)
			s.Written()
			defer func() {
				s.Turn([][][]byte{{[]byte("CONFIG"), []byte("SET"), []byte("notify-keyspace-events"), nil}}, nil)
				s.Written()
			}()
			changes := strings.NewReplacer(" new", " newer", ".5 ", ".25 ")
			if got := enginetest.Allocations(t, s, func(i int) string { return changes.Replace(test.next(i)) }); got > test.max {
				t.Errorf("%v allocations, want at most %v", got, test.max)
			}
		})
	}
}
