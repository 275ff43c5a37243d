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

// Move moves the held time to now. A time that is not held stays so.
func (h *Held) Move(now time.Time) {
	if !h.at.IsZero() {
		h.at = now
	}
}

// Time returns the time: now, unless it is held.
func (h *Held) Time(now time.Time) time.Time {
	if h.at.IsZero() {
		return now
	}
	return h.at
}
