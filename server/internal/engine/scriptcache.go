package engine

import "container/list"

// maxEvals is the maximum number of scripts that only EVAL has added.
const maxEvals = 500

// scriptCache is the cache of compiled scripts of type S, by their SHA-1. Scripts that SCRIPT
// LOAD has added stay until the cache is cleared. Of those that only EVAL has added, it keeps the
// maxEvals that were used last, as Redis does since 7.4: programs that put values into the text of
// scripts would fill the memory. The zero value is empty and ready to use.
type scriptCache[S any] struct {
	scripts map[string]*cached[S] // by name
	evals   list.List             // of *cached[S] that only EVAL has added, the one used last at the end
	bytes   int
	evicted int64
}

// cached is a script in the cache.
type cached[S any] struct {
	name   string
	script S
	size   int
	eval   *list.Element // in scriptCache.evals, or nil
}

// Get returns a script and whether it is in the cache, and counts as a use of it. O(1).
func (c *scriptCache[S]) Get(name string) (script S, ok bool) {
	x := c.scripts[name]
	if x == nil {
		return script, false
	}
	if x.eval != nil {
		c.evals.MoveToBack(x.eval)
	}
	return x.script, true
}

// Peek is Get that does not count as a use. O(1).
func (c *scriptCache[S]) Peek(name string) (script S, ok bool) {
	if x := c.scripts[name]; x != nil {
		return x.script, true
	}
	return script, false
}

// Add adds a script that is not in the cache, whose source takes size bytes. If eval is
// true, the script may be evicted, and the one that was used least recently is, if there
// are more than maxEvals of them. O(1).
func (c *scriptCache[S]) Add(name string, script S, size int, eval bool) {
	if c.scripts == nil {
		c.scripts = map[string]*cached[S]{}
	}
	x := &cached[S]{name: name, script: script, size: size}
	c.scripts[name] = x
	c.bytes += size
	if !eval {
		return
	}
	if x.eval = c.evals.PushBack(x); c.evals.Len() > maxEvals {
		oldest := c.evals.Remove(c.evals.Front()).(*cached[S])
		delete(c.scripts, oldest.name)
		c.bytes -= oldest.size
		c.evicted++
	}
}

// Keep makes a script in the cache stay until Clear. O(1).
func (c *scriptCache[S]) Keep(name string) {
	if x := c.scripts[name]; x != nil && x.eval != nil {
		c.evals.Remove(x.eval)
		x.eval = nil
	}
}

// Len returns the number of scripts. O(1).
func (c *scriptCache[S]) Len() int { return len(c.scripts) }

// Bytes returns the size of all sources in bytes. O(1).
func (c *scriptCache[S]) Bytes() int { return c.bytes }

// Evicted returns the number of scripts that were evicted since the last ResetEvicted.
func (c *scriptCache[S]) Evicted() int64 { return c.evicted }

// ResetEvicted sets the number of evicted scripts to 0.
func (c *scriptCache[S]) ResetEvicted() { c.evicted = 0 }

// Clear removes all scripts. It keeps the number of evicted ones. O(1), without the work of
// the garbage collector.
func (c *scriptCache[S]) Clear() { *c = scriptCache[S]{evicted: c.evicted} }
