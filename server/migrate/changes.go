package migrate

import "sync"

// keyAt is a key in a database of the target.
type keyAt struct {
	db  int
	key string
}

// changes are the keys that the streams have changed at the target since they were taken
// last. Before watch none are kept. It is safe for concurrent use.
type changes struct {
	mu      sync.Mutex
	watched bool
	keys    map[keyAt]struct{}
	whole   bool // whole databases have changed
}

// watch begins with no changes.
func (c *changes) watch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watched, c.whole, c.keys = true, false, map[keyAt]struct{}{}
}

// add adds changes that are applied: of keys, or of whole databases.
func (c *changes) add(keys []keyAt, whole bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.watched {
		return
	}
	c.whole = c.whole || whole
	for _, k := range keys {
		c.keys[k] = struct{}{}
	}
}

// addNames adds keys of a database.
func (c *changes) addNames(db int, names []string) {
	keys := make([]keyAt, len(names))
	for i, k := range names {
		keys[i] = keyAt{db, k}
	}
	c.add(keys, false)
}

// take returns the changes, and begins with none. whole reports that whole databases have
// changed.
func (c *changes) take() (keys map[keyAt]struct{}, whole bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	keys, whole = c.keys, c.whole
	c.keys, c.whole = map[keyAt]struct{}{}, false
	return keys, whole
}

// has reports whether a key has changed.
func (c *changes) has(k keyAt) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, changed := c.keys[k]
	return changed
}

// len returns the number of keys that have changed.
func (c *changes) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.keys)
}
