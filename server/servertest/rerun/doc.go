// Package rerun is for tests. "make race" and "make test-net" run the tests of "make test" again:
// under the race detector, and with the other transport. Both run every test of a package, so a new
// test is never left out. A test that takes long and cannot have another result there, because it
// uses one goroutine and no socket or because it only measures, says so by calling [Skip] or [SkipRace].
package rerun
