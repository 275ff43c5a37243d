package simulation

import (
	"fmt"
	"hash/fnv"
	"io/fs"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"github.com/zsetd/zsetd/server/internal/base/clock"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// machine is the clock and the disk of a node. Each life of the node has one.
type machine struct {
	booted time.Time
	step   func() time.Duration // how far the system clock is ahead

	mu     sync.Mutex
	random *rand.Rand // of the disk
	busy   bool       // the disk takes seconds
	broken error      // of all operations; nil if the disk is whole
	off    bool       // operations take no time, and all succeed
}

// newMachine returns a machine whose disk has a random source of its own.
func newMachine(seed uint64, name string, life int, step func() time.Duration) *machine {
	h := fnv.New64a()
	fmt.Fprint(h, "disk ", name, life)
	return &machine{booted: time.Now(), step: step, random: rand.New(rand.NewPCG(seed, h.Sum64()))}
}

// parts returns the machine in the form of an option.
func (m *machine) parts() engine.Machine {
	return engine.Machine{Disk: m.disk, Clock: &clock.System{
		Wall:      func(t time.Time) int64 { return t.UnixNano() + int64(m.step()) },
		Suspended: func() (time.Duration, bool) { return 0, true },
		Up:        func() time.Duration { return time.Since(m.booted) },
	}}
}

// Errors of a disk. After the first a write may be repeated, after the second the file
// cannot be trusted.
var (
	errFull   = &fs.PathError{Op: "write", Path: "file", Err: syscall.ENOSPC}
	errBroken = &fs.PathError{Op: "sync", Path: "file", Err: syscall.EIO}
)

// disk is an operation of the disk, which takes time. The state of the disk at its
// end decides.
func (m *machine) disk(operation string) error {
	if operation == "committed" || operation == "verify" { // reads
		return nil
	}
	m.mu.Lock()
	d := time.Duration(m.random.Int64N(int64(4 * time.Millisecond)))
	if m.busy {
		d = time.Duration(m.random.Int64N(int64(5 * time.Second)))
	}
	off := m.off
	m.mu.Unlock()
	if !off {
		wait.Pace(d)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.off {
		return nil
	}
	return m.broken
}

// set sets the state of the disk.
func (m *machine) set(busy bool, broken error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy, m.broken = busy, broken
}

// end makes operations take no time: a server that closes holds locks meanwhile, with
// which the time of the bubble does not go on.
func (m *machine) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.off = true
}
