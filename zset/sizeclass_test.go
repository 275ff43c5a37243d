package zset

import "testing"

// TestSizeClasses checks that pages and leaves fill the size classes of Go's
// allocator. If a new version of Go has other classes, groupsFor and capacityFor
// need other sizes.
func TestSizeClasses(t *testing.T) {
	class := func(n int) int { return cap(append([]byte(nil), make([]byte, n)...)) }
	for g := uint16(1); g <= maxGroups; g++ {
		if groupsFor(entriesIn(g)) != g {
			continue // no page has this size
		}
		if n := 64 * pageLines(g); class(n) > n+n/20 {
			t.Errorf("a page of %d groups has %d bytes and takes %d", g, n, class(n))
		}
	}
	for n := 16; n <= leafMax; n++ {
		c := capacityFor(n)
		if scores, refs := 8*c, 4*c; class(scores) != scores || class(refs) != refs {
			t.Errorf("a leaf of %d elements has %d and %d bytes, and takes %d and %d", n, scores, refs, class(scores), class(refs))
		}
	}
}
