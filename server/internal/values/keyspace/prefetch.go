package keyspace

import "github.com/zsetd/zsetd/server/internal/values/packed"

// PrefetchKeys is the maximum number of keys for a call of [DB.Prefetch].
const PrefetchKeys = 16

// prefetchMin is the number of keys from which Prefetch is worthwhile: smaller
// databases are in the cache anyway.
const prefetchMin = 10_000

// Prefetch prefetches what is needed to look up the given keys into the processor's
// cache. It changes nothing.
//
// A lookup is a chain of five dependent reads: directory, page, tags, slot, entry.
// In a keyspace larger than the cache most of them take some 80 ns, and the
// commands of a pipeline would wait for them one after the other. Prefetch overlaps the
// reads of sixteen keys.
func (db *DB) Prefetch(keys [][]byte) {
	t := &db.entries
	if t.n < prefetchMin {
		return
	}
	var (
		hashes [PrefetchKeys]uint64
		pages  [PrefetchKeys]*keyPage
		slots  [PrefetchKeys]**Entry
		read   uint64 // keeps the compiler from removing the reads
	)
	keys = keys[:min(len(keys), PrefetchKeys)]
	for i, key := range keys {
		hashes[i] = t.hash(packed.View(key))
		pages[i] = t.page(hashes[i])
	}
	for i := range keys {
		read += uint64(pages[i].depth)
	}
	for i := range keys {
		tags := pages[i].tags
		read += uint64(tags[home(uint16(hashes[i])|1, len(tags))])
	}
	for i := range keys {
		slots[i] = pages[i].candidate(hashes[i])
	}
	for i := range keys {
		if slots[i] != nil {
			read += uint64((*slots[i]).access)
		}
	}
	db.ks.prefetched = read
}

// candidate returns the first slot whose tag matches the hash, or nil. For all but
// one key in thousands this is the slot of the key.
func (p *keyPage) candidate(h uint64) **Entry {
	want := uint16(h) | 1
	tags := p.tags
	for i := home(want, len(tags)); ; {
		switch tags[i] {
		case want:
			return &p.slots[i]
		case 0:
			return nil
		}
		if i++; i == len(tags) {
			i = 0
		}
	}
}
