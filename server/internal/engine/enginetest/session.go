package enginetest

import (
	"math"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/servertest/rerun"
)

// Allocations returns the number of allocations of a command in a session's turn,
// including the reply, after some warm-up runs.
func Allocations(t *testing.T, s *engine.Session, next func(i int) string) float64 {
	t.Helper()
	if rerun.Race {
		t.Skip("the race detector adds allocations")
	}
	var (
		lines [][][][]byte
		spare []byte
	)
	const runs, tries = 200, 3
	for i := range runs + tries*(runs+1) {
		args, ok := protocol.SplitArgs(nil, []byte(next(i)))
		if !ok {
			t.Fatal(next(i))
		}
		lines = append(lines, [][][]byte{args})
	}
	i := 0
	turn := func() {
		_, out, _ := s.Turn(lines[i], spare)
		i++
		if len(out) == 0 || out[0] == '-' {
			t.Fatalf("%q", out)
		}
		s.Written()
		spare = out[:0]
	}
	for range runs {
		turn()
	}
	// Timers and the runtime also allocate now and then.
	least := math.Inf(1)
	for range tries {
		least = min(least, testing.AllocsPerRun(runs, turn))
	}
	return least
}

// Session is a session without a transport.
type Session struct {
	T          testing.TB
	S          *engine.Session
	out, spare []byte
}

// NewSession returns a session of a new server.
func NewSession(t testing.TB) *Session {
	srv, err := New(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Close() })
	return &Session{T: t, S: srv.NewSession(engine.Peer{FD: -1, Wake: func() {}})}
}

// Do runs commands, each a line split at spaces, and returns the replies.
func (c *Session) Do(lines ...string) string {
	var all []byte
	for _, line := range lines {
		all = append(all, c.Run(Words(line))...)
	}
	return string(all)
}

// Run runs commands and returns the replies.
func (c *Session) Run(batch [][][]byte) []byte {
	c.out = c.out[:0]
	for len(batch) > 0 { // a turn may be over before all are done
		done, out, ending := c.S.Turn(batch, c.spare)
		if ending {
			c.T.Fatal("the session has ended")
		}
		c.S.Written()
		c.out = append(c.out, out...)
		c.spare, batch = out[:0], batch[done:]
	}
	return c.out
}

// Turn runs a command line in a session, and returns its output and whether it ends. As with
// a transport, other bytes are in the memory of the arguments afterwards.
func Turn(s *engine.Session, argv [][]byte) (out []byte, ending bool) {
	argv = protocol.CopyArgs(argv)
	_, out, ending = s.Turn([][][]byte{argv}, nil)
	for _, arg := range argv {
		for i := range arg {
			arg[i] = '!'
		}
	}
	return out, ending
}

// Words returns the batch of one command, a line that is split at spaces.
func Words(line string) [][][]byte {
	var argv [][]byte
	for _, w := range strings.Fields(line) {
		argv = append(argv, []byte(w))
	}
	return [][][]byte{argv}
}
