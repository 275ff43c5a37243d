package transport

import "testing"

// TestConnState checks that the state of a connection only advances.
func TestConnState(t *testing.T) {
	var s connState
	for _, step := range []struct {
		do   func()
		want state
	}{{func() {}, serving}, {s.leave, leaving}, {s.leave, leaving}, {s.die, dead}, {s.leave, dead}, {s.die, dead}} {
		if step.do(); s.load() != step.want {
			t.Fatalf("state %d, want %d", s.load(), step.want)
		}
	}
}
