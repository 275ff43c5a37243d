package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"

	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

// BenchmarkWaiters measures a change of a sorted set with blocked clients: one that serves
// none, and one that serves the first, which then blocks again. All wait for due
// members, or each for a score of its own.
func BenchmarkWaiters(b *testing.B) {
	for _, what := range []struct{ name, wait, add string }{
		{"due", "BZPOPBYSCORE 0 1 due -inf @now", "ZADD due @now x"},
		{"own_score", "BZPOPBYSCORE 0 1 due %[1]d %[1]d", "ZADD due 0 x"},
	} {
		for _, n := range []int{0, 1, 100, 10_000} {
			b.Run(fmt.Sprintf("%s/waiters=%d", what.name, n), func(b *testing.B) { benchmarkWaiters(b, n, what.wait, what.add) })
		}
	}
}

func benchmarkWaiters(b *testing.B, n int, wait, add string) {
	srv, err := enginetest.New(engine.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer srv.Close()
	turn := func(s *engine.Session, line string) {
		args, _ := protocol.SplitArgs(nil, []byte(line))
		_, out, _ := s.Turn([][][]byte{args}, nil)
		if len(out) > 0 {
			s.Written()
		}
	}
	line := func(i int) string {
		if strings.Contains(wait, "%") {
			return fmt.Sprintf(wait, i)
		}
		return wait
	}
	woken := make(chan *engine.Session, n+1)
	for i := range n {
		var s *engine.Session
		s = srv.NewSession(engine.Peer{FD: -1, Wake: func() { woken <- s }})
		turn(s, line(i))
	}
	s := srv.NewSession(engine.Peer{FD: -1, Wake: func() {}})
	for i := range 1000 {
		turn(s, fmt.Sprintf("ZADD due @now+%dh m:%d", 1+i, i))
	}
	b.Run("none_served", func(b *testing.B) {
		for b.Loop() {
			turn(s, "ZADD due @now+2h x")
		}
	})
	if n > 0 {
		b.Run("one_served", func(b *testing.B) {
			for b.Loop() {
				turn(s, add)
				w := <-woken
				w.Take()
				w.Written()
				turn(w, line(0))
			}
		})
	}
	if err := srv.Check(); err != nil {
		b.Error(err)
	}
}
