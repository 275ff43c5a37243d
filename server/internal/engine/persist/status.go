package persist

import (
	"time"

	"github.com/zsetd/zsetd/server/internal/engine/config"
	"github.com/zsetd/zsetd/snapshot"
)

// Figures are the sizes of a data file, in bytes, and its number of commits.
type Figures struct {
	Size, Used     int64 // the file; its pages in use
	Bases, Journal int64 // the records of keys; the journals after them
	Generation     uint64
}

// measure returns the figures of a file; f may be nil.
func measure(f *snapshot.File) (s Figures) {
	if f == nil {
		return s
	}
	m := f.Manifest()
	s.Size, s.Used = f.Usage()
	s.Bases, s.Journal, s.Generation = m.Bases.Bytes, m.Journal.Bytes+f.Logged(), m.Generation
	return s
}

// LoadState is the progress of loading the file.
type LoadState struct {
	Start       time.Time
	Done, Total int64 // bytes
}

// delay waits as key-load-delay wants it after a number of keys.
func (k *Keeper) delay(keys int) error {
	if !config.KeyDelay(keys, func() (each int64, wanted bool) {
		k.host.OutOfTurn(func() { each = k.o.Settings.LoadKeyDelay })
		select {
		case <-k.quit:
			return each, false
		default:
			return each, true
		}
	}) {
		return ErrServerClosed
	}
	return nil
}

// delayed reports whether rdb-key-save-delay holds back the save that is requested, and sets
// the timer for the next look.
func (k *Keeper) delayed(now time.Time) bool {
	if k.requested.IsZero() {
		k.requested = now
	}
	keys := 0
	for _, n := range k.counts() {
		keys += int(n)
	}
	left := config.KeyPause(keys, k.o.Settings.SaveKeyDelay) - now.Sub(k.requested)
	if left <= 0 {
		return false
	}
	k.setTimer(now.Add(min(left, config.KeyDelaySlice)))
	return true
}

// Status is the state of a keeper at one instant, for INFO.
type Status struct {
	InProgress      bool      // a save was requested or is running
	Started         time.Time // of the running or last save
	SavedAt         time.Time // the last successful save, by the host's clock
	Duration        time.Duration
	Unsaved         int64 // changes since the last save that INFO counts
	Saves           int64
	Failures        int // failed saves since the last success
	Rewrites        int64
	Rewritten, Keys int // of the keys of the rewrite in progress
	Loaded, Expired int64
	RewriteFailed   bool // the last rewrite was abandoned
	Times           Times
}

// Times counts how long checkpoints took, from the instant that they hold to the disk.
type Times struct {
	Count  int64
	Sum    time.Duration
	counts [16]int64 // by the doublings of firstTime
}

// firstTime is the first bound of Times; the last one, 33 s, is above what a disk that works
// takes.
const firstTime = time.Millisecond

func (t *Times) add(d time.Duration) {
	t.Count++
	t.Sum += d
	i := 0
	for bound := firstTime; bound < d; bound *= 2 {
		i++
	}
	if i < len(t.counts) {
		t.counts[i]++
	}
}

// Up calls yield with the bounds 1 ms, 2 ms, 4 ms … 33 s, and with how many checkpoints took at
// most so long.
func (t *Times) Up(yield func(bound time.Duration, n int64) bool) {
	n := int64(0)
	for i, more := range t.counts {
		if n += more; !yield(firstTime<<i, n) {
			return
		}
	}
}

// Status returns the state of the keeper.
func (k *Keeper) Status() Status {
	s := Status{
		InProgress: k.InProgress(), Started: k.saveStarted, SavedAt: k.savedAt, Duration: k.saveDuration,
		Unsaved: k.host.Counted() - k.savedCounted, Saves: k.saves, Failures: k.Failures.n, Rewrites: k.rewrites,
		Loaded: k.loadedKeys, Expired: k.expiredKeys, RewriteFailed: !k.RewriteFailedAt.IsZero(),
		Times: k.times,
	}
	if k.Rewrite != nil {
		s.Rewritten, s.Keys = k.Rewrite.at, len(k.Rewrite.Keys)
	}
	return s
}

// Ready returns a channel that is closed when the data are loaded, or loading has
// failed: then LoadError returns why. It may be called without the lock.
func (k *Keeper) Ready() <-chan struct{} { return k.loaded }

// LoadError returns the error of loading the file, once Ready is closed. It may be
// called without the lock.
func (k *Keeper) LoadError() error { return k.loadErr }

// HoldFiles keeps the keeper from reading and writing files until release is called. It
// may be called with or without the lock.
func (k *Keeper) HoldFiles() (release func()) {
	k.io.Lock()
	return k.io.Unlock
}
