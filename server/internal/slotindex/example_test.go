package slotindex_test

import (
	"fmt"
	"slices"

	"github.com/zsetd/zsetd/server/internal/slotindex"
)

// The keys of a slot come in the order in which they were added, the newest first.
func Example() {
	x := slotindex.New(10, func(key string) int { return len(key) })
	x.Reset(slices.Values([]string{"a", "bb", "c"}))
	x.Add("d")
	x.Remove("a")
	fmt.Println(x.Len(1), slices.Collect(x.Keys(1)), x.Len(2), x.Len(3))
	// Output: 2 [d c] 1 0
}
