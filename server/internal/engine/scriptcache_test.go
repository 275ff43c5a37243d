package engine

import (
	"fmt"
	"testing"
)

// TestScriptEviction checks that only the scripts of EVAL leave the cache, the one used least
// recently first.
func TestScriptEviction(t *testing.T) {
	var c scriptCache[int]
	name := func(i int) string { return fmt.Sprint("script ", i) }
	c.Add("loaded", -1, 10, false)
	for i := range maxEvals {
		c.Add(name(i), i, 1, true)
	}
	c.Get(name(0))
	c.Peek(name(1))
	c.Keep(name(2))
	c.Add("one more", -2, 1, true) // there is room for it, because script 2 stays
	if c.Evicted() != 0 || c.Len() != maxEvals+2 {
		t.Fatalf("%d scripts evicted, %d in the cache", c.Evicted(), c.Len())
	}
	c.Add("another", -3, 1, true)
	for _, test := range []struct {
		name string
		want bool
	}{{"loaded", true}, {name(0), true}, {name(1), false}, {name(2), true}, {name(3), true}, {"one more", true}, {"another", true}} {
		if _, ok := c.Peek(test.name); ok != test.want {
			t.Errorf("%s is in the cache: %v", test.name, ok)
		}
	}
	if c.Evicted() != 1 || c.Bytes() != 10+maxEvals+1 {
		t.Errorf("%d scripts evicted, %d bytes", c.Evicted(), c.Bytes())
	}
	c.Clear()
	if _, ok := c.Get("loaded"); ok || c.Len() != 0 || c.Bytes() != 0 || c.Evicted() != 1 {
		t.Errorf("cleared: %d scripts, %d bytes, %d evicted", c.Len(), c.Bytes(), c.Evicted())
	}
	c.ResetEvicted()
	if c.Evicted() != 0 {
		t.Errorf("%d scripts evicted after the reset", c.Evicted())
	}
}
