package keyspace

// WarmKeys is how many keys may be given to [DB.Warm] at once.
const WarmKeys = 16

// warmFrom is how many keys a database must have: fewer are in the cache anyway.
const warmFrom = 10_000

// Warm brings what is needed to find these keys, of those that are there, into the
// processor's cache. It changes nothing.
//
// A look-up goes through five places of which each tells the next: the directory,
// the page, its hashes, a slot, the entry. In a keyspace that is larger than the
// cache most of them take some 80 ns to come, and a pipeline's commands would wait
// for them one after the other. Here the steps of all keys are taken side by side,
// so that the processor waits for sixteen places at once.
func (db *DB) Warm(keys [][]byte) {
	t := &db.entries
	if t.n < warmFrom {
		return
	}
	var (
		hashes [WarmKeys]uint64
		pages  [WarmKeys]*keyPage
		slots  [WarmKeys]**Entry
		read   uint64 // what nobody asks for, the compiler would leave out
	)
	keys = keys[:min(len(keys), WarmKeys)]
	for i, key := range keys {
		hashes[i] = t.hash(viewOf(key))
		pages[i] = t.page(hashes[i])
	}
	for i := range keys {
		read += uint64(pages[i].depth)
	}
	for i := range keys {
		meta := pages[i].meta
		read += uint64(meta[home(uint16(hashes[i])|1, len(meta))])
	}
	for i := range keys {
		slots[i] = pages[i].candidate(hashes[i])
	}
	for i := range keys {
		if slots[i] != nil {
			read += uint64((*slots[i]).access)
		}
	}
	db.ks.warmed = read
}

// candidate returns the first slot whose entry has 16 bits of the hash, nil if there
// is none: but for one of thousands of keys, that is the one.
func (p *keyPage) candidate(h uint64) **Entry {
	want := uint16(h) | 1
	meta := p.meta
	for i := home(want, len(meta)); ; {
		switch meta[i] {
		case want:
			return &p.slots[i]
		case 0:
			return nil
		}
		if i++; i == len(meta) {
			i = 0
		}
	}
}
