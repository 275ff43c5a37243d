package archive

import (
	"fmt"
	"hash/maphash"
	"math"
	"slices"

	"github.com/zsetd/zsetd/server/internal/values/journal"
	"github.com/zsetd/zsetd/server/internal/values/packed"
	"github.com/zsetd/zsetd/snapshot"
)

// journals are the journals of a file, and the records about each key in them. There may be
// many millions of records, so beside the bytes of the file one takes 12 bytes, and a key some
// 12 in a hash table, without pointers.
type journals struct {
	parts  []part
	blocks [][]delta // deltasAtOnce in each
	count  uint32    // of deltas
	table  []slot    // by keys: open addressing with linear probing; its length is a power of two
	keys   int       // in the table
	seed   maphash.Seed

	droppedParts, droppedBlocks uint32
}

// part is a part of a journal.
type part struct {
	generation uint64
	records    []byte
}

// delta is one record about a key in a journal, by its number.
type delta struct {
	part uint32
	at   uint32 // where the record begins, and leads
	next uint32 // the next one about the same key; of the last one the first
}

// leads marks the first delta of a key that is not taken yet.
const leads = 1 << 31

// slot is an element of the table. last is the last delta of a key, plus 1; 0: the slot is
// empty.
type slot struct{ hash, last uint32 }

// none is the number of no delta.
const none = math.MaxUint32

const (
	deltasAtOnce = 1 << 12
	leastTable   = 1 << 10
)

// id names a key of a space.
type id struct {
	space uint64
	key   string
}

func (a id) compare(b id) int { return snapshot.Compare(a.space, a.key, b.space, b.key) }

func (js *journals) delta(i uint32) *delta { return &js.blocks[i/deltasAtOnce][i%deltasAtOnce] }

// record returns the record of a delta.
func (js *journals) record(d *delta) journal.Record {
	r, _, _ := journal.NextRecord(js.parts[d.part].records[d.at&^leads:]) // it was read before
	return r
}

// checkpoint returns the generation of the checkpoint that a delta is of.
func (js *journals) checkpoint(d *delta) uint64 { return js.parts[d.part].generation }

// begin adds a part of a journal, which is copied.
func (js *journals) begin(generation uint64, records []byte) error {
	if len(records) >= leads {
		return fmt.Errorf("%w: journal of checkpoint %d: a chunk of %d bytes", snapshot.ErrDamaged, generation, len(records))
	}
	if js.table == nil {
		js.seed, js.table = maphash.MakeSeed(), make([]slot, leastTable)
	}
	js.parts = append(js.parts, part{generation, slices.Clone(records)})
	return nil
}

// add adds a record of the last part, which begins at a position of it.
func (js *journals) add(r journal.Record, at int) error {
	if js.count == none-1 {
		return fmt.Errorf("more than %d records in journals", js.count)
	}
	if js.count%deltasAtOnce == 0 {
		js.blocks = append(js.blocks, make([]delta, deltasAtOnce))
	}
	i := js.count
	js.count++
	d := js.delta(i)
	d.part, d.at = uint32(len(js.parts)-1), uint32(at)
	s := js.find(r.Space, r.Key)
	if s.last != 0 {
		last := js.delta(s.last - 1)
		d.next, last.next, s.last = last.next, i, i+1
		return nil
	}
	d.at |= leads
	d.next, s.last = i, i+1
	if js.keys++; js.keys > len(js.table)/4*3 {
		js.grow()
	}
	return nil
}

// find returns the slot of a key, or an empty one that has its hash.
func (js *journals) find(space uint64, key []byte) *slot {
	hash := uint32(maphash.Bytes(js.seed, key)) ^ uint32(space)
	for i := hash; ; i++ {
		s := &js.table[i&uint32(len(js.table)-1)]
		if s.last == 0 {
			s.hash = hash
			return s
		}
		if s.hash != hash {
			continue
		}
		if r := js.record(js.delta(s.last - 1)); r.Space == space && packed.View(r.Key) == packed.View(key) {
			return s
		}
	}
}

func (js *journals) grow() {
	old := js.table
	js.table = make([]slot, 2*len(old))
	for _, s := range old {
		if s.last == 0 {
			continue
		}
		i := s.hash
		for js.table[i&uint32(len(js.table)-1)].last != 0 {
			i++
		}
		js.table[i&uint32(len(js.table)-1)] = s
	}
}

// take returns the first delta of a key, none if it has none, and marks the key as taken.
func (js *journals) take(space uint64, key []byte) uint32 {
	if js.keys == 0 {
		return none
	}
	s := js.find(space, key)
	if s.last == 0 {
		return none
	}
	first := js.delta(s.last - 1).next
	js.delta(first).at &^= leads
	return first
}

// after returns the number of the delta after delta i of a key whose first one is first, or
// none.
func (js *journals) after(i, first uint32) uint32 {
	if next := js.delta(i).next; next != first {
		return next
	}
	return none
}

// drop releases the memory of the deltas before delta i, and of parts that only they need.
func (js *journals) drop(i uint32) {
	if i == 0 {
		return
	}
	for ; js.droppedParts < js.delta(i).part; js.droppedParts++ {
		js.parts[js.droppedParts].records = nil
	}
	for ; js.droppedBlocks < i/deltasAtOnce; js.droppedBlocks++ {
		js.blocks[js.droppedBlocks] = nil
	}
}

// leaders returns the first deltas of the keys that are not taken.
func (js *journals) leaders(yield func(i uint32, d *delta) bool) {
	for i := range js.count {
		if d := js.delta(i); d.at&leads != 0 && !yield(i, d) {
			return
		}
	}
}
