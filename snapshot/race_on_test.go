//go:build race

package snapshot

import "testing"

func skipRace(t testing.TB) {
	t.Helper()
	t.Skip("make test runs it: the race detector makes no difference")
}
