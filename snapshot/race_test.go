//go:build !race

package snapshot

import "testing"

// skipRace skips a test or fuzz target under the race detector: it uses one goroutine and
// takes long.
func skipRace(testing.TB) {}
