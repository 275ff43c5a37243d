package persist

import (
	"sync/atomic"
	"time"
)

// A checkpoint that has released clients is followed by their next commands, which can share
// the next one. Without a wait two groups of clients take turns, one at the disk and one at
// the processor, and each checkpoint has the changes of half of them.
//
// On a slow disk the keeper waits for a time, which halves the number of checkpoints and pays
// if a checkpoint takes longer than the wait. On a fast one it waits for a loop of the transport
// to send the replies and to find no more input. The loop then writes the checkpoint itself, see
// TakeGathered: nearly all clients that write wait for it, and no thread has to wake another one.
const (
	gatherClients = 5                     // number of released clients from which on the next checkpoint waits
	gatherEach    = 20 * time.Microsecond // time until the next command, for each client
	gatherLeast   = time.Millisecond      // resolution of time.Sleep, and the longest wait for a loop
)

// gathered is the state of the wait for a loop.
type gathered struct {
	gathering atomic.Bool // cleared when a loop has no more input
	until     time.Time   // end of the wait
	looped    bool        // a loop has made changes since the last checkpoint
}

// Gathering reports whether the next checkpoint waits for more changes. Any goroutine may call
// it.
func (k *Keeper) Gathering() bool { return k.gathering.Load() }

// TakeGathered takes the changes as a checkpoint and returns true if they wait for more and the
// caller is to write them, with WriteDirect: it is a loop of the transport, and has no more
// input. Otherwise it leaves them to the keeper's goroutine.
func (k *Keeper) TakeGathered() (taken bool) {
	if !k.gathering.Swap(false) || k.o.Keys.Recorded() == 0 {
		return false
	}
	return k.takeDirect()
}

// accountAndGather is Account, and begins the wait for the clients that the checkpoint has
// released, if loops have made its changes. The loops may call TakeGathered as soon as they have
// the lock.
func (k *Keeper) accountAndGather() (ok bool) {
	k.gathering.Store(k.always && k.looped)
	k.looped = false
	ok = k.Account()
	now := time.Now()
	k.until = now.Add(gatherLeast)
	k.gathers(now)
	return ok
}

// gathers reports whether the next checkpoint waits for more changes, and if so, sets the timer.
func (k *Keeper) gathers(now time.Time) bool {
	if !k.Gathering() {
		return false
	}
	if k.released >= gatherClients && now.Before(k.until) {
		k.setTimer(k.until)
		return true
	}
	k.gathering.Store(false)
	return false
}

// pause returns the wait before the next checkpoint, after one that has taken d. more reports
// that it has succeeded.
func (k *Keeper) pause(d time.Duration, more bool) time.Duration {
	switch {
	case more && (k.Rewrite != nil || k.ObsoleteUpTo != 0) && !k.NeedsFresh:
		return d // a rewrite is not urgent: half of the time is left to the clients
	case k.always && k.released >= gatherClients:
		if wait := max(gatherLeast, time.Duration(k.released)*gatherEach); wait <= d {
			return wait
		}
	}
	return 0
}
