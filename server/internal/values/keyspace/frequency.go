package keyspace

import "math/rand/v2"

// The counter of accesses to a key, for the policies of eviction that remove the keys used
// least: 16 bits for the minute of the last access, and 8 bits for a logarithmic counter that
// decays with time.

// frequencies configures the counting. On says whether keys have counters; the functions of this
// package do not read it.
type frequencies struct {
	On        bool
	LogFactor int64 // larger values make the counter grow more slowly
	DecayTime int64 // minutes after which a counter decreases by one; 0: never
	Rand      *rand.Rand
}

const (
	firstCount = 5 // counter of a new key
	mostCount  = 255
)

// frequencyOf returns the field of a key whose counter is n at a time in milliseconds since 1970.
func frequencyOf(ms int64, n uint8) uint32 { return uint32(minutes(ms))<<8 | uint32(n) }

// newFrequency returns the field of a key that is created at a time in milliseconds since 1970.
func newFrequency(ms int64) uint32 { return frequencyOf(ms, firstCount) }

// Used returns the field of a key that is accessed at a time in milliseconds since 1970.
func (c *frequencies) Used(field uint32, ms int64) uint32 {
	return frequencyOf(ms, c.more(c.Count(field, ms)))
}

// Count returns the counter of a field after its decay until a time in milliseconds since
// 1970.
func (c *frequencies) Count(field uint32, ms int64) uint8 {
	counter := uint8(field)
	if c.DecayTime == 0 {
		return counter
	}
	passed := minutes(ms) - uint16(field>>8)
	if periods := int64(passed) / c.DecayTime; periods < int64(counter) {
		return counter - uint8(periods)
	}
	return 0
}

// more returns the counter after one more access, a probabilistic increment.
func (c *frequencies) more(counter uint8) uint8 {
	if counter == mostCount {
		return counter
	}
	base := max(0, int64(counter)-firstCount)
	if c.Rand.Float64() < 1/(float64(base)*float64(c.LogFactor)+1) {
		counter++
	}
	return counter
}

// minutes returns the minute of a time, which overflows.
func minutes(ms int64) uint16 { return uint16(ms / 60000) }
