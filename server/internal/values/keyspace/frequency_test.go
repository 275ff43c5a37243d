package keyspace

import (
	"math/rand/v2"
	"testing"
)

func TestCount(t *testing.T) {
	c := frequencies{On: true, LogFactor: 10, DecayTime: 2, Rand: rand.New(rand.NewPCG(1, 2))}
	const minute = 60_000
	const start = 65_530 * minute // the minute overflows below
	field := frequencyOf(start, 9)
	for passed, want := range map[int64]uint8{0: 9, 1: 9, 2: 8, 10: 4, 17: 1, 18: 0, 1000: 0} {
		if got := c.Count(field, start+passed*minute); got != want {
			t.Errorf("after %d minutes: %d, want %d", passed, got, want)
		}
	}
	c.DecayTime = 0
	if got := c.Count(field, start+1000*minute); got != 9 {
		t.Errorf("without decay: %d", got)
	}
	if got := c.Count(newFrequency(start), start); got != firstCount {
		t.Errorf("a new key: %d", got)
	}
	field = newFrequency(start)
	for range 1_000_000 {
		field = c.Used(field, start)
	}
	// As the manual of Redis has it: factor 10 and a million accesses give 255.
	if got := c.Count(field, start); got != mostCount {
		t.Errorf("after a million accesses: %d", got)
	}
	if c.Count(c.Used(frequencyOf(start, mostCount), start), start) != mostCount {
		t.Error("the highest counter changes")
	}
}
