package transport

import "sync/atomic"

// state is the state of a connection as all goroutines see it.
type state int32

const (
	serving state = iota
	leaving       // runs the input that has arrived, and is closed: see leave.go
	dead          // is closed at once, or has been closed
)

// connState is the state of a connection. It only advances: serving, leaving, dead. All
// methods are safe for concurrent use.
type connState struct{ v atomic.Int32 }

func (s *connState) load() state { return state(s.v.Load()) }

// leave makes a connection leave, unless it is dead.
func (s *connState) leave() { s.v.CompareAndSwap(int32(serving), int32(leaving)) }

// die makes a connection dead.
func (s *connState) die() { s.v.Store(int32(dead)) }
