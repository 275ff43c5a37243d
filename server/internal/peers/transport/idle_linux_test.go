package transport

import "testing"

// TestProcessorsIdle checks that the idle time of processors does not decrease.
func TestProcessorsIdle(t *testing.T) {
	before, ok := idleTime()
	if !ok || before <= 0 {
		t.Fatal("not known")
	}
	if after, _ := idleTime(); after < before {
		t.Errorf("%v, then %v", before, after)
	}
}

func BenchmarkIdleTime(b *testing.B) {
	for b.Loop() {
		idleTime()
	}
}
