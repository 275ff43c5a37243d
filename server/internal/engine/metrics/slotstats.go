package metrics

import (
	"strings"
	"time"
)

// Slots is the number of slots.
const Slots = 16384

// SlotKinds are the kinds of work that are counted.
type SlotKinds struct{ CPU, Net, Memory bool }

// ParseSlotKinds parses the parameter cluster-slot-stats-enabled: yes, no, or some of cpu, net
// and mem, separated by spaces. ok is false for another word.
func ParseSlotKinds(s string) (k SlotKinds, ok bool) {
	for word := range strings.FieldsSeq(strings.ToLower(s)) {
		switch word {
		case "yes":
			k = SlotKinds{true, true, true}
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
func (k SlotKinds) String() string {
	var words []string
	switch {
	case k == SlotKinds{}:
		return "no"
	case k == SlotKinds{true, true, true}:
		return "yes"
	}
	for word, is := range k.each {
		if is {
			words = append(words, word)
		}
	}
	return strings.Join(words, " ")
}

func (k SlotKinds) each(yield func(string, bool) bool) {
	_ = yield("cpu", k.CPU) && yield("net", k.Net) && yield("mem", k.Memory)
}

// Work is the work of one slot, or of one command.
type Work struct {
	Time    time.Duration // of the processor
	In, Out int64         // bytes of commands, and of replies
}

// SlotStats counts work by slot. Its methods are not for concurrent use, and take constant time
// unless their comment says otherwise.
type SlotStats struct{ slots [Slots]Work }

// Add adds work to a slot.
func (s *SlotStats) Add(slot int, w Work) {
	t := &s.slots[slot]
	t.Time += w.Time
	t.In += w.In
	t.Out += w.Out
}

// Of returns the work of a slot.
func (s *SlotStats) Of(slot int) Work { return s.slots[slot] }

// Forget sets the counters of a slot to zero.
func (s *SlotStats) Forget(slot int) { s.slots[slot] = Work{} }

// Reset sets all counters to zero. O(Slots).
func (s *SlotStats) Reset() { s.slots = [Slots]Work{} }
