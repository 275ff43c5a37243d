package engine

import (
	"errors"
	"math/rand/v2"
	"slices"

	"github.com/zsetd/zsetd/server/internal/base/keyslot"
)

// The controls of a server in a test: see server.Simulation. A server without them has one nil
// pointer of them.

// The errors by which a function of Intercept says what becomes of a command.
var (
	ErrHang = errors.New("the command waits")
	ErrDrop = errors.New("the connection is closed before the command runs")
	ErrLose = errors.New("the connection is closed after the command has run")
)

// interception is the function of Intercept, and the sessions whose commands it holds back, by its
// results.
type interception struct {
	decide func(argv [][]byte) error
	hung   map[error][]*Session
}

// Intercept makes decide choose what becomes of each command of a connection. decide is called with
// the lock held. A result that wraps ErrHang holds the command back until Release is called with it.
func (srv *Engine) Intercept(decide func(argv [][]byte) error) error {
	return srv.simulate(func() {
		in := srv.intercepted
		if in == nil {
			in = &interception{hung: map[error][]*Session{}}
			srv.intercepted = in
			srv.checks.all = slices.Insert(srv.checks.all, 0, check{name: "simulation", state: (*Session).isIntercepted, instead: (*Session).intercept})
			srv.checks.known = false
		}
		in.decide = decide
	})
}

// Release runs the commands that a result of the function of Intercept holds back.
func (srv *Engine) Release(result error) error {
	return srv.simulate(func() {
		if in := srv.intercepted; in != nil {
			srv.Pauses.release(in.hung[result])
			delete(in.hung, result)
		}
	})
}

// isIntercepted reports whether the commands of the session are those of a client.
func (s *Session) isIntercepted() bool {
	return s.Engine.intercepted.decide != nil && !s.Modes.direct && !s.Modes.Script && !s.Modes.Primary && !s.Modes.Replica && !s.Stall.runningPostponed
}

// intercept does with a command what the test has decided.
func (s *Session) intercept(cmd *Command, argv [][]byte, names int) bool {
	srv := s.Engine
	switch err := srv.intercepted.decide(argv); {
	case err == nil:
		return false
	case errors.Is(err, ErrHang):
		s.holdBack(argv)
		srv.intercepted.hung[err] = append(srv.intercepted.hung[err], s)
	case err == ErrDrop:
		s.Kill()
	case err == ErrLose:
		for _, k := range srv.checks.apply(srv)[1:] { // this check is the first one
			if k.concerns(cmd.Spec.Flags()) && k.applies(s) && k.stops(s, cmd, argv, names) {
				s.Kill()
				return true
			}
		}
		s.run(cmd, argv, names)
		s.Kill()
	default:
		s.refuse(cmd, err.Error())
	}
	return true
}

// StopClock makes the clock stand still, or run on from where it stands.
func (srv *Engine) StopClock(still bool) error {
	return srv.simulate(func() {
		srv.Time.Stand(still)
		srv.Timers.timerAt = -1 // so that setTimer sets the timer again
	})
}

// Seed makes the draws of random commands those of a seed, from the elements in the order of
// their names: hash tables have another order in each process.
func (srv *Engine) Seed(seed uint64) error {
	return srv.simulate(func() {
		*srv.Rand = *rand.New(rand.NewPCG(seed, 0))
		srv.Seeded = true
	})
}

// ClusterNode is another node of a simulated cluster.
type ClusterNode struct {
	ID, Host string
	Port     int64
	Slots    [][2]int // ranges, with their ends
}

// Has reports whether the node has a slot.
func (n *ClusterNode) Has(slot int) bool {
	return slices.ContainsFunc(n.Slots, func(r [2]int) bool { return r[0] <= slot && slot <= r[1] })
}

// Join makes the server the node self of a cluster that consists of nodes. It serves
// at the port that nodes say, even if its transport has not begun to.
func (srv *Engine) Join(self int, nodes []ClusterNode) error {
	var failed error
	err := srv.simulate(func() {
		cl := srv.Cluster
		if cl == nil {
			failed = errors.New("zsetd: the parameter cluster-enabled is no")
			return
		}
		cl.ID, cl.Epoch, cl.CurrentEpoch, cl.Slots = nodes[self].ID, int64(self)+1, int64(len(nodes)), 0
		srv.Transports.TCPPort.Store(nodes[self].Port)
		cl.Others = slices.Delete(slices.Clone(nodes), self, self+1)
		for slot := range keyslot.Count {
			cl.Served[slot] = nodes[self].Has(slot)
			if cl.Assigned[slot] = cl.Served[slot]; cl.Served[slot] {
				cl.Slots++
			}
		}
	})
	return errors.Join(err, failed)
}

// simulate runs f with the lock held.
func (srv *Engine) simulate(f func()) (err error) {
	if err := srv.Within(); err != nil {
		return err
	}
	defer srv.setClosedError(&err)
	srv.InTurn(f)
	return nil
}
