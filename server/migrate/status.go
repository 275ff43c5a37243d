package migrate

import (
	"fmt"
	"sync"
	"time"
)

// Status is how far a move is.
type Status struct {
	Phase string // copy, follow, cut-over or verify

	Keys, AllKeys int64 // of the copy, or of the verification; AllKeys is an estimate
	Bytes         int64 // read from the source: of the data, and then of the stream
	Lag           int64 // bytes of the stream that the source has and the target has not
	Left          time.Duration
	Note          string // why the move waits, or ""
}

// String returns the status as a line.
func (s Status) String() string {
	text := s.Phase
	switch s.Phase {
	case "follow", "cut-over":
		text += fmt.Sprintf(": %s of changes, lag %s", size(s.Bytes), size(s.Lag))
	default:
		text += fmt.Sprintf(": %d of %d keys", s.Keys, s.AllKeys)
		if s.Bytes > 0 {
			text += ", " + size(s.Bytes)
		}
		if s.Left > 0 {
			text += fmt.Sprintf(", %v left", s.Left.Round(time.Second))
		}
	}
	if s.Note != "" {
		text += "; " + s.Note
	}
	return text
}

// size formats a number of bytes for people.
func size(n int64) string {
	if n < 10<<10 {
		return fmt.Sprintf("%d B", n)
	}
	f, unit := float64(n)/1024, 0
	for f >= 1000 && unit < 3 {
		f, unit = f/1024, unit+1
	}
	return fmt.Sprintf("%.1f %cB", f, "KMGT"[unit])
}

// status is the current Status. It is safe for concurrent use.
type status struct {
	mu    sync.Mutex
	now   Status
	began time.Time // the phase
}

// begin begins a phase.
func (s *status) begin(phase string, keys int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = Status{Phase: phase, AllKeys: keys}
	s.began = time.Now()
}

func (s *status) set(f func(*Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.now)
}

// copied counts keys that are done.
func (s *status) copied(n int) { s.set(func(s *Status) { s.Keys += int64(n) }) }

func (s *status) read(n int) { s.set(func(s *Status) { s.Bytes += int64(n) }) }

func (s *status) note(text string) { s.set(func(s *Status) { s.Note = text }) }

// get returns the status, with an estimate of the time that is left.
func (s *status) get() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now
	if now.Keys > 0 && now.AllKeys > now.Keys {
		now.Left = time.Duration(float64(time.Since(s.began)) / float64(now.Keys) * float64(now.AllKeys-now.Keys))
	}
	return now
}
