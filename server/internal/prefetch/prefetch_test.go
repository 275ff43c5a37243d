package prefetch_test

import (
	"fmt"
	"testing"

	"github.com/zsetd/zsetd/server/internal/prefetch"
)

type record struct {
	name  string
	count [100]int
}

func Example() {
	records := []*record{{name: "a"}, {name: "b"}}
	for _, r := range records {
		prefetch.Value(r)
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
	prefetch.Value[record](nil)
	prefetch.Value(new(struct{}))
}
