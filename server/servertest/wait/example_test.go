package wait_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/zsetd/zsetd/server/servertest/wait"
)

func ExampleHolds() {
	var served atomic.Bool
	go served.Store(true)
	fmt.Println(wait.Holds(served.Load))
	// Output: true
}

// TestUntil checks that a condition is evaluated until it holds.
func TestUntil(t *testing.T) {
	n := 0
	wait.Until(t, "the third evaluation", func() bool { n++; return n == 3 })
	if n != 3 {
		t.Errorf("evaluated %d times", n)
	}
}
