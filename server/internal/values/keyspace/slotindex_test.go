package keyspace

import (
	"fmt"
	"slices"
	"testing"
)

// TestSlotIndex checks that the keys of a slot come in the order in which they were added, the
// newest first.
func TestSlotIndex(t *testing.T) {
	x := newSlotIndex(10, func(key string) int { return len(key) })
	x.Reset(slices.Values([]string{"a", "bb", "c"}))
	x.Add("d")
	x.Remove("a")
	if got := fmt.Sprint(x.Len(1), slices.Collect(x.Keys(1)), x.Len(2), x.Len(3)); got != "2 [d c] 1 0" {
		t.Error(got)
	}
}
