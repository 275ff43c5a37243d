package archive

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"iter"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/zsetd/zsetd/server/internal/values/journal"
	"github.com/zsetd/zsetd/snapshot"
)

// journals are the journals of a file, and the records about each key in them. There may be
// many millions of records, so one takes 12 bytes, as do records about the same key that follow
// one another, and a key some 18 in a hash table, without pointers. The text of the records is
// read again when it is needed.
type journals struct {
	parts  []*part
	blocks [][]delta // deltasAtOnce in each
	count  uint32    // of deltas
	table  []slot    // by keys: open addressing with linear probing; its length is a power of two
	keys   int       // in the table
	seed   maphash.Seed

	last   journal.Record // the one that was added last; without a key if there is none
	onFail func(error)    // is called if a part cannot be read again

	droppedParts, droppedBlocks uint32

	guard sync.Mutex // held while a part is read again
	spare [][]byte   // memory of parts that may be used again
}

// part is a part of a journal.
type part struct {
	generation uint64
	records    atomic.Pointer[[]byte] // nil: they are in the file only
	file       *snapshot.Part         // nil: they are not read again
}

// delta is a record about a key in a journal, or several that follow one another, by number.
type delta struct {
	part uint32 // and several
	at   uint32 // where the first record begins, and leads
	next uint32 // the next delta of the same key; of the last one the first
}

const (
	leads   = 1 << 31 // marks the first delta of a key that is not taken yet
	several = 1 << 31 // marks a delta of several records
)

// slot is an element of the table. high and low are the hash of a key: with 64 bits hardly any
// two keys have the same, so that find reads no part again in vain. last is the last delta of
// the key, plus 1; 0: the slot is empty.
type slot struct{ high, low, last uint32 }

// none is the number of no delta.
const none = math.MaxUint32

const (
	deltasAtOnce = 1 << 12
	leastTable   = 1 << 10
	leastRecord  = 8        // bytes about a key in a journal
	leastReread  = 64 << 10 // length of a part from which on it is read again, not copied
)

// id names a key of a space.
type id struct {
	space uint64
	key   string
}

func (a id) compare(b id) int { return snapshot.Compare(a.space, a.key, b.space, b.key) }

func (js *journals) delta(i uint32) *delta { return &js.blocks[i/deltasAtOnce][i%deltasAtOnce] }

// partOf returns the part of a delta.
func (js *journals) partOf(d *delta) *part { return js.parts[d.part&^several] }

// text returns the records of a part.
func (js *journals) text(p *part) []byte {
	if text := p.records.Load(); text != nil {
		return *text
	}
	js.guard.Lock()
	defer js.guard.Unlock()
	if text := p.records.Load(); text != nil {
		return *text
	}
	var buf []byte
	if n := len(js.spare); n > 0 {
		buf, js.spare = js.spare[n-1], js.spare[:n-1]
	}
	text, err := p.file.Again(buf)
	if err != nil {
		js.onFail(err)
		text = make([]byte, p.file.Size()) // zeros are records without operations
	}
	p.records.Store(&text)
	return text
}

// first returns the first record of a delta, and the rest of the part.
func (js *journals) first(d *delta) (journal.Record, []byte) {
	r, rest, _ := journal.NextRecord(js.text(js.partOf(d))[d.at&^leads:]) // it was read before
	return r, rest
}

// changes yields the operations of the records about a key whose first delta is first, or
// none, and the generations of their checkpoints.
func (js *journals) changes(first uint32) iter.Seq2[uint64, []byte] {
	return func(yield func(uint64, []byte) bool) {
		for i := first; i != none; i = js.after(i, first) {
			d := js.delta(i)
			r, rest := js.first(d)
			for more := true; more; {
				if !yield(js.partOf(d).generation, r.Operations) {
					return
				}
				if more = d.part&several != 0 && len(rest) > 0; more {
					var next journal.Record
					next, rest, _ = journal.NextRecord(rest)
					more = next.Key != nil && sameKey(next, r)
					r = next
				}
			}
		}
	}
}

// sameKey reports whether two records are about the same key.
func sameKey(a, b journal.Record) bool { return a.Space == b.Space && bytes.Equal(a.Key, b.Key) }

// begin adds a part of a journal, whose records are copied if reread is false. They are
// available until end.
func (js *journals) begin(p snapshot.Part, reread bool) error {
	if len(p.Records) >= leads {
		return fmt.Errorf("%w: journal of checkpoint %d: a chunk of %d bytes", snapshot.ErrDamaged, p.Generation, len(p.Records))
	}
	if js.table == nil {
		js.reserve(leastTable)
	}
	added, records := &part{generation: p.Generation}, p.Records
	if reread && p.Rereadable() && len(records) >= leastReread {
		added.file, p.Records = &p, nil
	} else {
		records = slices.Clone(records)
	}
	added.records.Store(&records)
	js.parts = append(js.parts, added)
	return nil
}

// reserve makes room for as many keys. It is called before begin.
func (js *journals) reserve(keys int) {
	n := leastTable
	for n/4*3 < keys {
		n *= 2
	}
	js.seed, js.table = maphash.MakeSeed(), make([]slot, n)
}

// end ends the last part.
func (js *journals) end() {
	if p := js.parts[len(js.parts)-1]; p.file != nil {
		p.records.Store(nil)
		js.last.Key = bytes.Clone(js.last.Key)
	}
}

// skip notes that the next record of the last part is not added.
func (js *journals) skip() { js.last = journal.Record{} }

// add adds a record of the last part, which begins at a position of it.
func (js *journals) add(r journal.Record, at int) error {
	if js.last.Key != nil && sameKey(r, js.last) {
		if d := js.delta(js.count - 1); d.part&^several == uint32(len(js.parts)-1) {
			d.part |= several
			return nil
		}
	}
	if js.count == none-1 {
		return fmt.Errorf("more than %d records in journals", js.count)
	}
	if js.count%deltasAtOnce == 0 {
		js.blocks = append(js.blocks, make([]delta, deltasAtOnce))
	}
	s := js.find(r.Space, r.Key)
	js.last = r
	i := js.count
	js.count++
	d := js.delta(i)
	d.part, d.at = uint32(len(js.parts)-1), uint32(at)
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
	hash := maphash.Bytes(js.seed, key) ^ space
	high, low := uint32(hash>>32), uint32(hash)
	for i := low; ; i++ {
		s := &js.table[i&uint32(len(js.table)-1)]
		if s.last == 0 {
			s.high, s.low = high, low
			return s
		}
		if s.high != high || s.low != low {
			continue
		}
		r := js.last
		if s.last != js.count || r.Key == nil {
			r, _ = js.first(js.delta(s.last - 1))
		}
		if sameKey(r, journal.Record{Space: space, Key: key}) {
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
		i := s.low
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
	for ; js.droppedParts < js.delta(i).part&^several; js.droppedParts++ {
		if p := js.parts[js.droppedParts]; p.file != nil {
			js.guard.Lock()
			if text := p.records.Load(); text != nil {
				js.spare = append(js.spare, *text)
			}
			js.guard.Unlock()
		}
		js.parts[js.droppedParts] = nil
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
