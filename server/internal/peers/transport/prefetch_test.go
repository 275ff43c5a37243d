package transport

import (
	"fmt"
	"testing"
)

type record struct {
	name  string
	count [100]int
}

func Example() {
	records := []*record{{name: "a"}, {name: "b"}}
	for _, r := range records {
		prefetch(r)
	}
	for _, r := range records {
		fmt.Println(r.name, r.count[99])
	}
	// Output:
	// a 0
	// b 0
}

// TestNil prefetches where there is no memory, which the processor ignores.
func TestNil(t *testing.T) {
	prefetch[record](nil)
	prefetch(new(struct{}))
}
