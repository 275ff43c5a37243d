package keyspace

import (
	"fmt"
)

// checker is the common interface of all values.
type checker interface {
	Len() int
	Check() error
}

func (db *DB) check() error {
	if err := db.entries.check(); err != nil {
		return fmt.Errorf("db %d: %w", db.id, err)
	}
	if err := db.deadlines.Check(); err != nil {
		return fmt.Errorf("db %d: deadlines: %w", db.id, err)
	}
	volatile, held := 0, db.entries.bytes()+db.deadlines.Internal().Weight()+db.members.Internal().Weight()
	if db.own != nil {
		held += db.own.Internal().Weight()
		for key, own := range db.own.All() {
			if at, ok := db.deadlines.Score(key); !ok || at != own {
				return fmt.Errorf("db %d: key %q of the standby's own expires at %v, by the index at %v (%v)", db.id, key, own, at, ok)
			}
		}
	}
	var sizes, memory SizeHistogram
	for e := range db.entries.all() {
		key := e.Key()
		if e.state == stale {
			return fmt.Errorf("db %d: the entry of %q is stale", db.id, key)
		}
		if e.volatile() {
			volatile++
			if at, ok := db.deadlines.Score(key); !ok || at != float64(e.Deadline()) {
				return fmt.Errorf("db %d: key %q expires at %d, its index says %v (%v)", db.id, key, e.Deadline(), at, ok)
			}
		}
		f := e.figures()
		held += f.weight
		sizes.Move(noClass, f.class)
		memory.Move(noClass, f.class.With(f.weight))
		if c, ok := e.Value().(checker); ok {
			if c.Len() == 0 && !MayBeEmpty(c) {
				return fmt.Errorf("db %d: key %q holds an empty %T", db.id, key, c)
			}
			if err := c.Check(); err != nil {
				return fmt.Errorf("db %d: key %q: %w", db.id, key, err)
			}
		}
	}
	if t := db.snapshot; t != nil {
		for key := range t.skip {
			if t.passed(key) || db.entries.get(key) == nil {
				return fmt.Errorf("db %d: the snapshot skips %q, which is passed or does not exist", db.id, key)
			}
		}
	}
	if volatile != db.deadlines.Len() {
		return fmt.Errorf("db %d: %d keys with a deadline, %d in the index", db.id, volatile, db.deadlines.Len())
	}
	if lengths, weights := db.Sizes(); *lengths != sizes {
		return fmt.Errorf("db %d: counted lengths are %v, not %v", db.id, *lengths, sizes)
	} else if weights != nil && *weights != memory {
		return fmt.Errorf("db %d: counted memory is %v, not %v", db.id, *weights, memory)
	}
	empty := newDB(nil, 0, 0)
	if held -= empty.entries.bytes() + empty.deadlines.Internal().Weight() + empty.members.Internal().Weight(); int64(held) != db.UsedBytes() {
		return fmt.Errorf("db %d: keys and values take %d bytes, counted %d", db.id, held, db.usedBytes)
	}
	if db.slots != nil {
		return db.slots.Check(db.entries.n, db.keys)
	}
	return nil
}
