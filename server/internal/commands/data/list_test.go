package data_test

import (
	"fmt"
	"testing"

	"github.com/zsetd/zsetd/server/internal/engine"

	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

// TestAllocationsOfListsAndSets checks that reading lists and sets allocates nothing, and
// that adding allocates only the stored elements.
func TestAllocationsOfListsAndSets(t *testing.T) {
	srv, err := enginetest.New(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	s := srv.NewSession(engine.Peer{FD: -1, Wake: func() {}})
	defer s.Close()
	run := func(words ...string) {
		var argv [][]byte
		for _, w := range words {
			argv = append(argv, []byte(w))
		}
		s.Turn([][][]byte{argv}, nil)
		s.Written()
	}
	for i := range 10000 {
		n := fmt.Sprint(i)
		run("RPUSH", "list", "element"+n)
		run("SADD", "table", "member"+n)
		if i < 100 {
			run("SADD", "ints", n)
			run("SADD", "small", "member"+n)
		}
	}
	for _, test := range []struct {
		name string
		next func(i int) string
		max  float64
	}{
		{"RPUSH and growing", func(i int) string { return fmt.Sprintf("RPUSH list e%d", i) }, 0.1},
		{"LPOP", func(int) string { return "LPOP list" }, 0},
		{"LMOVE", func(int) string { return "LMOVE list list LEFT RIGHT" }, 1},
		{"LINDEX", func(i int) string { return fmt.Sprintf("LINDEX list %d", i*10) }, 0},
		{"LRANGE", func(i int) string { return fmt.Sprintf("LRANGE list %d %d", i, i+50) }, 0},
		{"LSET", func(i int) string { return fmt.Sprintf("LSET list %d x%d", i*10, i) }, 0},
		{"LPOS", func(i int) string { return fmt.Sprintf("LPOS list element%d", 500+i) }, 0},
		{"SADD of a new member", func(i int) string { return fmt.Sprintf("SADD table new%d", i) }, 1},
		{"SADD of an old member", func(i int) string { return fmt.Sprintf("SADD table member%d", i) }, 0},
		{"SISMEMBER in a hash table", func(i int) string { return fmt.Sprintf("SISMEMBER table member%d", i) }, 0},
		{"SISMEMBER in a listpack", func(i int) string { return fmt.Sprintf("SISMEMBER small member%d", i) }, 0},
		{"SISMEMBER of integers", func(i int) string { return fmt.Sprintf("SISMEMBER ints %d", i) }, 0},
		{"SMEMBERS", func(int) string { return "SMEMBERS small" }, 0},
		{"SRANDMEMBER", func(int) string { return "SRANDMEMBER table" }, 0},
		{"SREM", func(i int) string { return fmt.Sprintf("SREM table member%d", i) }, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := enginetest.Allocations(t, s, test.next); got > test.max {
				t.Errorf("%v allocations, want at most %v", got, test.max)
			}
		})
	}
}
