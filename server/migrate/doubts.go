package migrate

import (
	"sync"

	"github.com/zsetd/zsetd/server/archive"
)

// doubts are the keys whose values at the target may be wrong: a command of the stream has not
// found there what it has found at the source, because a deadline that the source has renewed had
// passed before. Their values are compared, whatever Options.Verify is. It is safe for concurrent
// use.
type doubts struct {
	mu   sync.Mutex
	keys map[keyAt]struct{}

	// every reports that each key may be doubtful, except those of repaired: what the stream
	// has found before is not known, or there were too many.
	every    bool
	repaired map[keyAt]struct{}
}

const (
	// manyDoubts is the number of doubtful keys from which some are repaired while the
	// sources are followed, without a comparison.
	manyDoubts = 10_000
	// maxDoubts bounds the keys of doubts.
	maxDoubts = 200_000
)

// add adds keys, and the owners of companions.
func (d *doubts) add(keys []keyAt) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.addLocked(keys)
}

func (d *doubts) addLocked(keys []keyAt) {
	if d.keys == nil || len(d.keys) > maxDoubts {
		d.every = d.every || d.keys != nil
		d.keys, d.repaired = map[keyAt]struct{}{}, map[keyAt]struct{}{}
	}
	for _, k := range keys {
		if isState(k.key) {
			continue
		}
		d.keys[k] = struct{}{}
		if owner, ok := archive.OwnerOf(k.key); ok {
			d.keys[keyAt{k.db, owner}] = struct{}{}
		}
	}
}

// learn takes what the commands of a unit have not found. Keys that are deleted are not doubtful
// any more.
func (d *doubts) learn(u *unit, touched []keyAt) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(u.lacking) == 0 && len(d.keys) == 0 {
		return
	}
	lacking := u.lacking
	for i, s := range u.touched {
		keys := touched[s.first:s.end]
		switch {
		case s.removes:
			for _, k := range keys {
				delete(d.keys, k)
			}
		case len(lacking) > 0 && lacking[0] == i:
			d.addLocked(keys)
		}
		if len(lacking) > 0 && lacking[0] == i {
			lacking = lacking[1:]
		}
	}
}

// some returns doubtful keys by databases if there are many.
func (d *doubts) some() map[int][]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.keys) <= manyDoubts {
		return nil
	}
	list, n := map[int][]string{}, 0
	for k := range d.keys {
		if n++; n > scanCount {
			break
		}
		list[k.db] = append(list[k.db], k.key)
	}
	return list
}

// all makes every key doubtful.
func (d *doubts) all() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.every, d.repaired = true, map[keyAt]struct{}{}
}

// reset begins with no doubts: the target is empty.
func (d *doubts) reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.every, d.keys, d.repaired = false, nil, nil
}

// compares reports whether the value of a key is to be compared.
func (d *doubts) compares(k keyAt) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, doubtful := d.keys[k]
	return doubtful || d.every
}

// has reports whether a key is doubtful.
func (d *doubts) has(k keyAt) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, doubtful := d.keys[k]; doubtful || !d.every {
		return doubtful
	}
	_, repaired := d.repaired[k]
	return !repaired
}

// settle ends the doubt about a key, which has the value of the source.
func (d *doubts) settle(k keyAt) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if delete(d.keys, k); d.every {
		d.repaired[k] = struct{}{}
	}
}
