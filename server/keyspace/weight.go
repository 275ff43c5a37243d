package keyspace

import (
	"unsafe"

	"github.com/zsetd/zsetd/zset"
)

// The keyspace knows at any time how much memory its keys and values take, because
// Go can only say so after a collection, which is late, and says garbage with it
// before. A packed entry, which is nearly always what there is most of, is weighed
// when it comes and goes: its size stands in it, and is that of its allocation. Any
// other value is weighed before a command that opens it for changing and after it
// (Seal), which takes the same short time however large it is. So are the tables and
// indexes of a database. What is weighed is what the allocator gives, sizes rounded
// up as it does; garbage, and the room between allocations, are not in it.
//
// Values are weighed by what they count anyway. Lists and streams judge the chunks
// between the first and the last by their number, or by some of them; what clones
// share is in the weight of each. For values of one type each, after many came and
// went, the sum was 0.1 to 4 % less than what the collector found
// (TestHeldIsWhatTheHeapHas); what is missing whoever reads it can learn from that.

// growing is an entry that is being changed.
type growing struct {
	db     *DB
	entry  *Entry // nil if it is gone
	weight int    // of which is in the sum
}

// Held returns how many bytes the keys and values of all databases take, with the
// tables that they stand in. It is exact when everything is sealed. O(1).
func (ks *Keyspace) Held() int64 { return ks.held }

// Held is what this database has of Keyspace.Held.
func (db *DB) Held() int64 { return db.held }

func (db *DB) hold(n int64) {
	db.held += n
	db.ks.held += n
}

// grows has Seal weigh e, of which so much is in the sum. A packed entry is weighed
// at once.
func (db *DB) grows(e *Entry, weight int) {
	if e.packed() {
		db.hold(int64(e.weight() - weight))
		return
	}
	e.state |= growingBit
	db.ks.growing = append(db.ks.growing, growing{db, e, weight})
}

// replaced notes that n is in the place of e, and has its state.
func (db *DB) replaced(e, n *Entry) {
	if n.state&growingBit == 0 {
		db.grows(n, e.weight())
		return
	}
	if x := db.growing(e); x != nil {
		x.entry = n
	}
}

// unweigh takes an entry that is removed out of the sum.
func (db *DB) unweigh(e *Entry) {
	if e.state&growingBit == 0 {
		db.hold(-int64(e.weight()))
		return
	}
	e.state &^= growingBit
	if x := db.growing(e); x != nil {
		db.hold(-int64(x.weight))
		x.entry = nil
	}
}

// growing returns what is noted of an entry: nearly always it is the last.
func (db *DB) growing(e *Entry) *growing {
	for i := len(db.ks.growing) - 1; i >= 0; i-- {
		if x := &db.ks.growing[i]; x.entry == e {
			return x
		}
	}
	return nil
}

// weigh puts what has grown or shrunk into the sum.
func (ks *Keyspace) weigh() {
	for i, x := range ks.growing {
		ks.growing[i] = growing{}
		if x.entry != nil {
			x.entry.state &^= growingBit
			x.db.hold(int64(x.entry.weight() - x.weight))
		}
	}
	if ks.growing = ks.growing[:0]; cap(ks.growing) > 1024 {
		ks.growing = nil
	}
}

// forgetWeights takes all keys out of the sum.
func (db *DB) forgetWeights() {
	for i, x := range db.ks.growing {
		if x.db == db {
			db.ks.growing[i].entry = nil
		}
	}
	db.hold(-db.held)
}

// weight estimates the bytes that a key and its value take. O(1).
func (e *Entry) weight() int {
	if e.packed() {
		return int(e.units) * 8
	}
	n := 0
	switch b := e.box(); e.kind() {
	case isString:
		return int(unsafe.Sizeof(boxedString{})) + allocated(len(e.Key())) + (*boxedString)(unsafe.Pointer(e)).room
	case isZset:
		n = (*zset.Set)(b.value).Weight()
	case isList:
		n = (*List)(b.value).weight()
	case isStream:
		n = (*Stream)(b.value).weight()
	case isSet:
		n = (*Set)(b.value).Bytes()
	case isHash:
		n = (*Hash)(b.value).Bytes()
	}
	if e.flags&layoutBits == apartLayout {
		return n + int(unsafe.Sizeof(apart{})) + allocated(len(e.Key()))
	}
	return n + allocated(int(unsafe.Sizeof(boxed{}))+int(e.klen))
}

// weight is Bytes that looks at the ends of a long list only: the chunks between are
// full, or have one large element.
func (l *List) weight() int {
	n := int(unsafe.Sizeof(*l)) + len(l.nodes.room)*int(unsafe.Sizeof(node{}))
	all := l.nodes.all()
	if len(all) <= 2 {
		for _, nd := range all {
			n += int(unsafe.Sizeof(chunk{})) + len(nd.room)
		}
		return n
	}
	first, last := all[0], all[len(all)-1]
	between := len(all) - 2
	return n + len(all)*int(unsafe.Sizeof(chunk{})) + len(first.room) + len(last.room) +
		max(between*chunkBytes, l.size-first.size-last.size)
}

// weight is Bytes that looks at some blocks of a long stream only.
func (s *Stream) weight() int {
	const samples = 4
	all := s.nodes.all()
	n := int(unsafe.Sizeof(*s)) + len(s.nodes.room)*int(unsafe.Sizeof(streamNode{})) + len(all)*int(unsafe.Sizeof(streamBlock{}))
	if len(all) > 0 {
		n += cap(all[len(all)-1].data) + allocated(cap(all[0].names))
	}
	if full := len(all) - 1; full > 0 {
		size, looked := 0, min(samples, full)
		for i := range looked {
			size += cap(all[i*full/looked].data)
		}
		n += size * full / looked
	}
	for _, g := range s.groups {
		n += int(unsafe.Sizeof(*g)) + g.Len()*pendingBytes + len(g.consumers)*consumerBytes
	}
	return n
}

// What an entry that a group has delivered takes, and a consumer, about.
const (
	pendingBytes  = 96
	consumerBytes = 256
)

// allocated is the memory that n bytes take: allocations are of certain sizes. Of
// those of a few bytes several share one.
func allocated(n int) int {
	switch {
	case n == 0:
		return 0
	case n <= 8:
		return n + 2
	case n <= 256:
		return (n + 15) &^ 15
	case n <= 512:
		return (n + 31) &^ 31
	case n <= 1024:
		return (n + 63) &^ 63
	case n <= 32<<10:
		return n + n/16
	}
	return (n + 8<<10 - 1) &^ (8<<10 - 1)
}
