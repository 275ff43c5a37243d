package keyspace

import (
	"unsafe"

	"github.com/zsetd/zsetd/server/internal/values/packed"
	"github.com/zsetd/zsetd/server/internal/values/sequence"
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

// The keyspace also counts the keys by the powers of two of their lengths, along with the
// memory. A packed value that changes in its entry is counted at once, if the power does.

// figures are what is counted of an entry.
type figures struct {
	weight int       // bytes
	class  sizeClass // of its length
}

// weighed is an entry that is open for writing.
type weighed struct {
	db      *DB
	entry   *Entry  // nil if it was removed
	counted figures // of it
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

// Sizes returns the histograms of the keys by the length of a string, or the number of
// elements; and by memory in bytes, nil if that is not counted. They are valid until the
// database changes. O(1).
func (db *DB) Sizes() (lengths, memory *SizeHistogram) {
	db.ks.weigh()
	return &db.sizes, db.memory
}

// CountMemory begins the histograms by memory, of databases that must be empty, or ends them.
func (ks *Keyspace) CountMemory(on bool) {
	for _, db := range append(ks.dbs[:len(ks.dbs):len(ks.dbs)], ks.internal) {
		if db.memory = nil; on {
			db.memory = new(SizeHistogram)
		}
	}
}

// count replaces the figures of an entry.
func (db *DB) count(was, now figures) {
	db.addUsedBytes(int64(now.weight - was.weight))
	db.sizes.Move(was.class, now.class)
	if db.memory != nil {
		db.memory.Move(was.class.With(was.weight), now.class.With(now.weight))
	}
}

// resize sets the length of a packed entry, in the same memory.
func (db *DB) resize(e *Entry, n int) {
	if old := int(e.valueLen); !alike(old, n) && e.state&weighedBit == 0 {
		db.sizes.Move(classOf(e.kind(), old), classOf(e.kind(), n))
	}
	e.valueLen = uint8(n)
}

// trackWeight makes weigh measure e, of which was is counted. It measures a packed entry
// immediately.
func (db *DB) trackWeight(e *Entry, was figures) {
	if e.packed() {
		db.count(was, e.figures())
		return
	}
	e.state |= weighedBit
	db.ks.growing = append(db.ks.growing, weighed{db, e, was})
}

// replaced notes that n replaced e and has its state.
func (db *DB) replaced(e, n *Entry) {
	if n.state&weighedBit == 0 {
		db.trackWeight(n, e.figures())
		return
	}
	if x := db.findWeighed(e); x != nil {
		x.entry = n
	}
}

// unweigh subtracts a removed entry from the sum.
func (db *DB) unweigh(e *Entry) {
	if e.state&weighedBit == 0 {
		db.count(e.figures(), figures{class: noClass})
		return
	}
	e.state &^= weighedBit
	if x := db.findWeighed(e); x != nil {
		db.count(x.counted, figures{class: noClass})
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
			now := x.entry.figures()
			x.db.count(x.counted, now)
			x.counted = now
		}
	}
}

// weighLast weighs the entries that are registered, and removes all of them from the register.
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
	db.sizes = SizeHistogram{}
	if db.memory != nil {
		*db.memory = SizeHistogram{}
	}
}

// figures estimates the bytes of a key and its value, and returns the class of its length.
// O(1).
func (e *Entry) figures() figures {
	if e.packed() {
		return figures{int(e.words) * 8, classOf(e.kind(), int(e.valueLen))}
	}
	weight, length := 0, 0
	switch b := e.box(); e.kind() {
	case isString:
		s := e.asString().box()
		weight = int(unsafe.Sizeof(boxedString{})) + packed.Allocated(len(e.Key())) + s.capacity
		return figures{weight, classOf(isString, s.size)}
	case isZset:
		v := b.sorted()
		weight, length = v.Internal().Weight()-int(unsafe.Sizeof(*v)), v.Len()
	case isList:
		v := (*sequence.List)(b.value)
		weight, length = v.Weight(), v.Len()
	case isStream:
		v := (*sequence.Stream)(b.value)
		weight, length = v.Weight(), v.Len()
	case isSet:
		v := (*Set)(b.value)
		weight, length = v.Bytes(), v.Len()
	case isHash:
		v := (*Hash)(b.value)
		weight, length = v.Bytes(), v.Len()
	}
	if e.flags&layoutBits == longKeyLayout {
		weight += int(unsafe.Sizeof(longKeyEntry{})) + packed.Allocated(len(e.Key()))
	} else {
		weight += packed.Allocated(int(unsafe.Sizeof(boxed{})) + int(e.keyLen))
	}
	return figures{weight, classOf(e.kind(), length)}
}
