package servertest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/zsetd/zsetd/server"
)

// Fault is what becomes of commands that clients send: see [Server.Inject]. One of Error, Hang, Drop and
// Lose is set.
type Fault struct {
	// Commands are the names, such as "GET" or "CONFIG SET"; without any, the fault concerns
	// every command, and also those with which a client library begins a connection.
	Commands []string

	// Calls is how many calls the fault concerns, from its beginning on; 0: all.
	Calls int

	// Error is the reply, with its code: "LOADING Redis is loading the dataset in memory". The
	// command does not run.
	Error string

	// Hang lets the command wait, until the fault is healed or the client goes away.
	Hang bool

	// Drop closes the connection, and the command does not run.
	Drop bool

	// Lose closes the connection after the command has run, before the reply. The client does not
	// learn whether it has run. One that blocks, as BLPOP of an empty list, or that CLIENT PAUSE
	// delays, has not.
	Lose bool
}

// Inject makes commands of connections fail, from now on until heal is called, which returns how many
// the fault has concerned. Commands that hang run then. Of several faults that concern a
// command the first one counts. Do, Must and scripts have no faults. A command of MULTI fails when it is
// queued, so that EXEC fails.
func (s *Server) Inject(f Fault) (heal func() (calls int)) {
	s.t.Helper()
	verdict, kinds := error(nil), 0
	for _, k := range []struct {
		set     bool
		verdict error
	}{{f.Error != "", errors.New(f.Error)}, {f.Hang, fmt.Errorf("a fault: %w", server.ErrHang)}, {f.Drop, server.ErrDrop}, {f.Lose, server.ErrLose}} {
		if k.set {
			verdict = k.verdict
			kinds++
		}
	}
	if kinds != 1 || f.Calls < 0 {
		s.t.Fatalf("servertest: %+v: a fault has one of Error, Hang, Drop and Lose", f)
	}
	one := &fault{verdict: verdict, left: f.Calls, limited: f.Calls > 0}
	for _, name := range f.Commands {
		one.names = append(one.names, strings.Fields(strings.ToUpper(name)))
	}
	return s.begin(one, false)
}

// hang makes all commands of connections wait until release is called, before any other fault counts.
func (s *Server) hang() (release func() int) {
	return s.begin(&fault{verdict: fmt.Errorf("a move: %w", server.ErrHang)}, true)
}

// begin puts a fault into effect, behind the others or before them, until heal is called.
func (s *Server) begin(one *fault, first bool) (heal func() (calls int)) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.faults.add(one, first) {
		s.simulate(s.Simulation().Intercept(s.faults.decide))
	}
	return func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		n := s.faults.remove(one)
		s.simulate(s.Simulation().Release(one.verdict))
		return n
	}
}

// faults are the faults of a server, in the order of their beginning.
type faults struct {
	mu   sync.Mutex // held while the server decides, with its lock: no call of the server within
	list []*fault
	used bool // there has been a fault: the server asks
}

// fault is a Fault in effect.
type fault struct {
	names   [][]string // words of the commands, in upper case; none: all
	verdict error
	limited bool
	left    int // calls, if limited
	calls   int // that it has concerned
}

// add adds a fault, behind the others or before them, and reports whether it is the first that there has been.
func (f *faults) add(one *fault, before bool) (begins bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := len(f.list)
	if before {
		at = 0
	}
	f.list = slices.Insert(f.list, at, one)
	begins, f.used = !f.used, true
	return begins
}

func (f *faults) remove(one *fault) (calls int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = slices.DeleteFunc(f.list, func(x *fault) bool { return x == one })
	return one.calls
}

// decide returns what becomes of a command, for server.Simulation.
func (f *faults) decide(args [][]byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range f.list {
		if one.limited && one.left == 0 || !one.concerns(args) {
			continue
		}
		one.left--
		one.calls++
		return one.verdict
	}
	return nil
}

// concerns reports whether the command is one of the fault's.
func (f *fault) concerns(args [][]byte) bool {
	return len(f.names) == 0 || slices.ContainsFunc(f.names, func(words []string) bool {
		if len(words) > len(args) {
			return false
		}
		for i, w := range words {
			if !strings.EqualFold(w, string(args[i])) {
				return false
			}
		}
		return true
	})
}
