package clock

import "time"

// Held is a time that stands still while it is held, as in a transaction or a script. The
// zero value is not held.
type Held struct{ at time.Time }

// Hold makes the time stand still, at now unless it does so already, and returns what it was
// before: assign that to end it.
func (h *Held) Hold(now time.Time) (before Held) {
	before = *h
	h.at = h.Time(now)
	return before
}

// Time returns the time: now, unless it is held.
func (h *Held) Time(now time.Time) time.Time {
	if h.at.IsZero() {
		return now
	}
	return h.at
}
