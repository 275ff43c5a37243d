package rerun

import "testing"

// Skip skips a test or fuzz target under the race detector and with another transport than usual.
func Skip(t testing.TB) {
	t.Helper()
	if Race || otherTransport {
		t.Skip("make test runs it: the race detector and the other transport make no difference")
	}
}

// SkipRace skips a test under the race detector only: one goroutine uses the sockets in it.
func SkipRace(t testing.TB) {
	t.Helper()
	if Race {
		t.Skip("make test runs it: the race detector makes no difference")
	}
}
