package server

import (
	"fmt"
	"testing"

	"github.com/zsetd/zsetd/protocol"
)

// BenchmarkWaiters is what a change of a sorted set costs while others wait for
// what is due: one that serves nobody, and one that serves the first, who then
// waits again.
func BenchmarkWaiters(b *testing.B) {
	for _, n := range []int{0, 1, 100, 10_000} {
		srv, err := New(Options{})
		if err != nil {
			b.Fatal(err)
		}
		turn := func(s *Session, line string) {
			args, _ := protocol.SplitArgs(nil, []byte(line))
			_, out, _ := s.turn([][][]byte{args}, nil)
			if len(out) > 0 {
				s.written()
			}
		}
		woken := make(chan *Session, n+1)
		for range n {
			var s *Session
			s = srv.newSession(peer{fd: -1, wake: func() { woken <- s }})
			turn(s, "BZPOPBYSCORE 0 1 due -inf @now")
		}
		s := srv.newSession(peer{fd: -1, wake: func() {}})
		for i := range 1000 {
			turn(s, fmt.Sprintf("ZADD due @now+%dh m:%d", 1+i, i))
		}
		b.Run(fmt.Sprintf("waiters=%d/none_served", n), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				turn(s, "ZADD due @now+2h x")
			}
		})
		if n > 0 {
			b.Run(fmt.Sprintf("waiters=%d/one_served", n), func(b *testing.B) {
				for b.Loop() {
					turn(s, "ZADD due @now x")
					w := <-woken
					w.take()
					w.written()
					turn(w, "BZPOPBYSCORE 0 1 due -inf @now")
				}
			})
		}
		if err := srv.Check(); err != nil {
			b.Error(err)
		}
		srv.Close()
	}
}
