package keyspace

import (
	"unsafe"

	"github.com/zsetd/zsetd/server/internal/packed"
	"github.com/zsetd/zsetd/server/internal/sequence"
	"github.com/zsetd/zsetd/zset"
)

// The keyspace tracks the memory of its keys and values. The Go runtime knows the
// live heap only after a collection, and includes garbage before.
//
// A packed entry, the most frequent kind, is counted when it is added and removed;
// its header has its allocation size. Other values are measured before a command
// opens them for writing. They are measured again when the sum is asked for, or when
// maxWeighed values are open, in O(1) for any size: so commands in a row on one value
// measure it once. Tables and indexes of a database are measured likewise. The figures are sizes of
// allocations, rounded up to size classes. They exclude garbage and unused memory
// between allocations.
//
// Measurements use existing counters. Lists and streams estimate their inner chunks
// from their number or from a sample, and clones each count what they share. For
// values of a single type after many additions and removals the sum is 0.1 to 4 %
// below the heap (TestMeasureUsedBytes); the server can calibrate the
// difference.

// weighed is an entry that is open for writing.
type weighed struct {
	db     *DB
	entry  *Entry // nil if it was removed
	weight int    // bytes of it that are in the sum
}

// maxWeighed is how many values stay open beyond Seal.
const maxWeighed = 16

// UsedBytes returns the number of bytes of the keys and values of all databases,
// including their tables. O(1).
func (ks *Keyspace) UsedBytes() int64 {
	ks.weigh()
	return ks.usedBytes
}

// UsedBytes returns the part of this database in Keyspace.UsedBytes. O(1).
func (db *DB) UsedBytes() int64 {
	db.ks.weigh()
	return db.usedBytes
}

func (db *DB) addUsedBytes(n int64) {
	db.usedBytes += n
	db.ks.usedBytes += n
}

// trackWeight makes weigh measure e, whose contribution to the sum is weight. It measures
// a packed entry immediately.
func (db *DB) trackWeight(e *Entry, weight int) {
	if e.packed() {
		db.addUsedBytes(int64(e.weight() - weight))
		return
	}
	e.state |= weighedBit
	db.ks.growing = append(db.ks.growing, weighed{db, e, weight})
}

// replaced notes that n replaced e and has its state.
func (db *DB) replaced(e, n *Entry) {
	if n.state&weighedBit == 0 {
		db.trackWeight(n, e.weight())
		return
	}
	if x := db.findWeighed(e); x != nil {
		x.entry = n
	}
}

// unweigh subtracts a removed entry from the sum.
func (db *DB) unweigh(e *Entry) {
	if e.state&weighedBit == 0 {
		db.addUsedBytes(-int64(e.weight()))
		return
	}
	e.state &^= weighedBit
	if x := db.findWeighed(e); x != nil {
		db.addUsedBytes(-int64(x.weight))
		x.entry = nil
	}
}

// findWeighed returns the registration of an entry, usually the last one.
func (db *DB) findWeighed(e *Entry) *weighed {
	for i := len(db.ks.growing) - 1; i >= 0; i-- {
		if x := &db.ks.growing[i]; x.entry == e {
			return x
		}
	}
	return nil
}

// weigh measures the registered entries and updates the sum.
func (ks *Keyspace) weigh() {
	for i := range ks.growing {
		if x := &ks.growing[i]; x.entry != nil {
			now := x.entry.weight()
			x.db.addUsedBytes(int64(now - x.weight))
			x.weight = now
		}
	}
}

// weighLast is weigh for the last time: no entry is registered any more.
func (ks *Keyspace) weighLast() {
	ks.weigh()
	for i := range ks.growing {
		if e := ks.growing[i].entry; e != nil {
			e.state &^= weighedBit
		}
	}
	clear(ks.growing)
	if ks.growing = ks.growing[:0]; cap(ks.growing) > 1024 {
		ks.growing = nil
	}
}

// clearWeights subtracts all keys from the sum.
func (db *DB) clearWeights() {
	for i, x := range db.ks.growing {
		if x.db == db {
			db.ks.growing[i].entry = nil
		}
	}
	db.addUsedBytes(-db.usedBytes)
}

// weight estimates the bytes of a key and its value. O(1).
func (e *Entry) weight() int {
	if e.packed() {
		return int(e.words) * 8
	}
	n := 0
	switch b := e.box(); e.kind() {
	case isString:
		return int(unsafe.Sizeof(boxedString{})) + packed.Allocated(len(e.Key())) + e.asString().box().capacity
	case isZset:
		n = (*zset.Set)(b.value).Weight()
	case isList:
		n = (*sequence.List)(b.value).Weight()
	case isStream:
		n = (*sequence.Stream)(b.value).Weight()
	case isSet:
		n = (*Set)(b.value).Bytes()
	case isHash:
		n = (*Hash)(b.value).Bytes()
	}
	if e.flags&layoutBits == longKeyLayout {
		return n + int(unsafe.Sizeof(longKeyEntry{})) + packed.Allocated(len(e.Key()))
	}
	return n + packed.Allocated(int(unsafe.Sizeof(boxed{}))+int(e.keyLen))
}
