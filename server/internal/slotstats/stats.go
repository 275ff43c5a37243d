package slotstats

import (
	"strings"
	"time"
)

// Count is the number of slots.
const Count = 16384

// Kinds are the kinds of work that are counted.
type Kinds struct{ CPU, Net, Memory bool }

// ParseKinds parses the parameter cluster-slot-stats-enabled: yes, no, or some of cpu, net
// and mem, separated by spaces. ok is false for another word.
func ParseKinds(s string) (k Kinds, ok bool) {
	for word := range strings.FieldsSeq(strings.ToLower(s)) {
		switch word {
		case "yes":
			k = Kinds{true, true, true}
		case "no":
		case "cpu":
			k.CPU = true
		case "net":
			k.Net = true
		case "mem":
			k.Memory = true
		default:
			return k, false
		}
	}
	return k, s != ""
}

// String returns the parameter in its shortest form.
func (k Kinds) String() string {
	var words []string
	switch {
	case k == Kinds{}:
		return "no"
	case k == Kinds{true, true, true}:
		return "yes"
	}
	for word, is := range k.each {
		if is {
			words = append(words, word)
		}
	}
	return strings.Join(words, " ")
}

func (k Kinds) each(yield func(string, bool) bool) {
	_ = yield("cpu", k.CPU) && yield("net", k.Net) && yield("mem", k.Memory)
}

// Work is the work of one slot, or of one command.
type Work struct {
	Time    time.Duration // of the processor
	In, Out int64         // bytes of commands, and of replies
}

// Stats counts work by slot. Its methods are not for concurrent use, and take constant time
// unless their comment says otherwise.
type Stats struct{ slots [Count]Work }

// Add adds work to a slot.
func (s *Stats) Add(slot int, w Work) {
	t := &s.slots[slot]
	t.Time += w.Time
	t.In += w.In
	t.Out += w.Out
}

// Of returns the work of a slot.
func (s *Stats) Of(slot int) Work { return s.slots[slot] }

// Forget sets the counters of a slot to zero.
func (s *Stats) Forget(slot int) { s.slots[slot] = Work{} }

// Reset sets all counters to zero. O(Count).
func (s *Stats) Reset() { s.slots = [Count]Work{} }
