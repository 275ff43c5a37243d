package sequence

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unsafe"

	"github.com/tidwall/btree"
	"github.com/zsetd/zsetd/server/internal/values/journal"
	"github.com/zsetd/zsetd/server/internal/values/packed"
)

// A producer gives each entry that it adds an identifier, so that adding the entry again,
// because no reply has come, is noticed. The stream keeps the identifiers of a producer
// with the IDs of their entries: the last Most of them, each until Seconds have passed
// since the time in the ID.
//
// Three B-trees have the same identifiers: by producer and identifier, to find one; by
// producer and number, because a producer that has too many loses its oldest; and by
// time, because those whose time is over are removed, a few at each addition. Until then
// they are invisible. B-trees are copied on write, so a clone costs nothing.
//
// Invariants (check): the B-trees have the same identifiers; counts has their number for
// each producer that has any.

// IdempotenceLimits is how many identifiers of entries a stream keeps, and for how long,
// as the parameters stream-idmp-duration and stream-idmp-maxsize set them.
type IdempotenceLimits struct {
	Seconds int64 // for which an identifier is kept
	Most    int64 // identifiers of one producer
}

// The bounds of IdempotenceLimits; the lower ones are 1.
const (
	MaxIdempotenceSeconds = 24 * 60 * 60
	MaxIdempotenceMost    = 10_000
)

// DefaultIdempotenceLimits are those of a stream for which no others were set.
func DefaultIdempotenceLimits() IdempotenceLimits { return IdempotenceLimits{100, 100} }

// Valid reports whether the limits are within their bounds.
func (l IdempotenceLimits) Valid() bool {
	return 1 <= l.Seconds && l.Seconds <= MaxIdempotenceSeconds && 1 <= l.Most && l.Most <= MaxIdempotenceMost
}

// Identifier is what a producer has called an entry. It is immutable.
type Identifier struct {
	Producer, Name string
	ID             StreamID // of the entry
	number         uint64   // in the order of additions
}

// producers is the state of a stream's producers.
type producers struct {
	owner  *token
	limits IdempotenceLimits
	added  uint64 // number of identifiers so far
	twice  uint64 // number of entries that were not added because their identifiers were there
	next   uint64 // number of the next identifier
	names  *btree.BTreeG[*Identifier]
	ages   *btree.BTreeG[*Identifier]
	times  *btree.BTreeG[*Identifier]
	counts *btree.Map[string, int]
}

func newProducers(owner *token) *producers {
	p := &producers{owner: owner, limits: DefaultIdempotenceLimits()}
	p.clear()
	return p
}

// clear forgets all identifiers.
func (p *producers) clear() {
	tree := func(less func(a, b *Identifier) bool) *btree.BTreeG[*Identifier] {
		return btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})
	}
	p.names = tree(func(a, b *Identifier) bool {
		return a.Producer < b.Producer || a.Producer == b.Producer && a.Name < b.Name
	})
	p.ages = tree(func(a, b *Identifier) bool {
		return a.Producer < b.Producer || a.Producer == b.Producer && a.number < b.number
	})
	p.times = tree(func(a, b *Identifier) bool {
		return a.ID.Less(b.ID) || a.ID == b.ID && a.number < b.number
	})
	p.counts = new(btree.Map[string, int])
}

// writableProducers returns the state of the producers for writing.
func (s *Stream) writableProducers() *producers {
	switch p := s.producers; {
	case p == nil:
		s.producers = newProducers(s.owner)
	case p.owner != s.owner:
		c := *p
		c.owner = s.owner
		c.names, c.ages, c.times, c.counts = p.names.Copy(), p.ages.Copy(), p.times.Copy(), p.counts.Copy()
		s.producers = &c
	}
	return s.producers
}

// expired reports whether the time of an identifier is over. now is in milliseconds since
// 1970.
func (p *producers) expired(x *Identifier, now int64) bool {
	return now >= 0 && x.ID.Ms < uint64(now) && uint64(now)-x.ID.Ms >= uint64(p.limits.Seconds)*1000
}

// add adds an identifier, in place of one of the same name.
func (p *producers) add(producer, name string, id StreamID) {
	if old, ok := p.names.Get(&Identifier{Producer: producer, Name: name}); ok {
		p.remove(old)
	}
	x := &Identifier{Producer: producer, Name: strings.Clone(name), ID: id, number: p.next}
	if oldest := p.oldest(producer); oldest == nil {
		x.Producer = strings.Clone(producer)
	} else {
		x.Producer = oldest.Producer // all share the text
		if n, _ := p.counts.Get(producer); int64(n) >= p.limits.Most {
			p.remove(oldest)
		}
	}
	p.names.Set(x)
	p.ages.Set(x)
	p.times.Set(x)
	n, _ := p.counts.Get(producer)
	p.counts.Set(x.Producer, n+1)
	p.next++
	p.added++
}

// oldest returns the identifier of a producer that was added first, or nil.
func (p *producers) oldest(producer string) (oldest *Identifier) {
	p.ages.Ascend(&Identifier{Producer: producer}, func(x *Identifier) bool {
		if x.Producer == producer {
			oldest = x
		}
		return false
	})
	return oldest
}

func (p *producers) remove(x *Identifier) {
	p.names.Delete(x)
	p.ages.Delete(x)
	p.times.Delete(x)
	if n, _ := p.counts.Get(x.Producer); n > 1 {
		p.counts.Set(x.Producer, n-1)
	} else {
		p.counts.Delete(x.Producer)
	}
}

// outdate removes some of the identifiers whose time is over, and reports whether there were any.
func (p *producers) outdate(now int64) (some bool) {
	const removals = 10 // at once: an addition must not take long
	for range removals {
		x, ok := p.times.Min()
		if !ok || !p.expired(x, now) {
			break
		}
		p.remove(x)
		some = true
	}
	return some
}

// IdempotenceLimits returns the limits of the stream.
func (s *Stream) IdempotenceLimits() IdempotenceLimits {
	if s.producers == nil {
		return DefaultIdempotenceLimits()
	}
	return s.producers.limits
}

// SetIdempotenceLimits sets the limits, which must be valid. If they differ from those of the
// stream it forgets all identifiers, and returns true.
func (s *Stream) SetIdempotenceLimits(l IdempotenceLimits) bool {
	if l == s.IdempotenceLimits() {
		return false
	}
	p := s.writableProducers()
	p.limits = l
	p.clear()
	if s.log != nil {
		s.log.Op(journal.OpIdempotence)
		s.log.Number(uint64(l.Seconds))
		s.log.Number(uint64(l.Most))
	}
	return true
}

// AddedBy returns the entry for which a producer has used an identifier, if its time is not
// over. now is in milliseconds since 1970. O(log n).
func (s *Stream) AddedBy(producer, identifier []byte, now int64) (id StreamID, ok bool) {
	if s.producers == nil {
		return id, false
	}
	x, ok := s.producers.names.Get(&Identifier{Producer: packed.View(producer), Name: packed.View(identifier)})
	if !ok || s.producers.expired(x, now) {
		return id, false
	}
	return x.ID, true
}

// Identify records that a producer has used an identifier for an entry. It also removes some
// of the identifiers whose time is over. O(log n).
func (s *Stream) Identify(producer, identifier []byte, id StreamID, now int64) {
	p := s.writableProducers()
	if p.outdate(now) && s.log != nil {
		s.log.Op(journal.OpOutdate)
		s.log.Number(uint64(now))
	}
	p.add(packed.View(producer), packed.View(identifier), id)
	if s.log != nil {
		s.log.Op(journal.OpIdentify)
		s.log.Bytes(producer)
		s.log.Bytes(identifier)
		s.logEntryID(id)
	}
}

// CountDuplicate counts an entry that is not added because its identifier was used.
func (s *Stream) CountDuplicate() {
	p := s.writableProducers()
	s.SetIdentified(p.added, p.twice+1)
}

// SetIdentified sets the numbers of identifiers that were ever added, and of entries that were
// not added because their identifiers were there.
func (s *Stream) SetIdentified(added, twice uint64) {
	p := s.writableProducers()
	p.added, p.twice = added, twice
	if s.log != nil {
		s.log.Op(journal.OpIdentified)
		s.log.Number(added)
		s.log.Number(twice)
	}
}

// Identified returns the numbers that SetIdentified sets. O(1).
func (s *Stream) Identified() (added, twice uint64) {
	if s.producers == nil {
		return 0, 0
	}
	return s.producers.added, s.producers.twice
}

// Identifiers yields all identifiers, those of one producer in a row, in the order in which they
// were added; also those whose time is over. It is an iterator: range over s.Identifiers.
func (s *Stream) Identifiers(yield func(*Identifier) bool) {
	if s.producers != nil {
		s.producers.ages.Scan(yield)
	}
}

// Producers returns the number of identifiers of each producer that has any. It includes
// identifiers whose time is over.
func (s *Stream) Producers(yield func(producer string, n int) bool) {
	if s.producers != nil {
		s.producers.counts.Scan(yield)
	}
}

// Tracked returns the numbers of producers and of identifiers whose time is not over. now is in
// milliseconds since 1970. O(n log n), n identifiers whose time is over.
func (s *Stream) Tracked(now int64) (producers, identifiers int) {
	p := s.producers
	if p == nil {
		return 0, 0
	}
	producers, identifiers = p.counts.Len(), p.names.Len()
	over := map[string]int{}
	p.times.Scan(func(x *Identifier) bool {
		if !p.expired(x, now) {
			return false
		}
		identifiers--
		over[x.Producer]++
		if n, _ := p.counts.Get(x.Producer); n == over[x.Producer] {
			producers--
		}
		return true
	})
	return producers, identifiers
}

// bytes estimates the memory in bytes. O(1).
func (p *producers) bytes() int {
	const text = 32 // about the bytes of an identifier's texts
	if p == nil {
		return 0
	}
	return int(unsafe.Sizeof(*p)) + p.names.Len()*(int(unsafe.Sizeof(Identifier{}))+3*8+text) + p.counts.Len()*3*8
}

// check verifies the invariants.
func (p *producers) check() error {
	if p == nil {
		return nil
	}
	n := p.names.Len()
	if p.ages.Len() != n || p.times.Len() != n {
		return fmt.Errorf("%d identifiers by name, %d by age, %d by time", n, p.ages.Len(), p.times.Len())
	}
	sum := 0
	for producer, n := range p.counts.Scan {
		sum += n
		if n < 1 || int64(n) > p.limits.Most {
			return fmt.Errorf("producer %q has %d identifiers of at most %d", producer, n, p.limits.Most)
		}
	}
	if sum != n {
		return fmt.Errorf("%d identifiers, counted as %d", n, sum)
	}
	return nil
}

// writeProducers writes the operations that construct the state.
func (s *Stream) writeProducers(w *journal.Writer) bool {
	p := s.producers
	if p == nil {
		return true
	}
	w.Buf = append(w.Buf, journal.OpIdempotence)
	w.Buf = binary.AppendUvarint(binary.AppendUvarint(w.Buf, uint64(p.limits.Seconds)), uint64(p.limits.Most))
	for x := range s.Identifiers {
		w.Buf = journal.AppendText(append(w.Buf, journal.OpIdentify), x.Producer)
		w.Buf = appendID(journal.AppendText(w.Buf, x.Name), x.ID)
		if !w.Full(journal.ChunkSize) {
			return false
		}
	}
	w.Buf = append(w.Buf, journal.OpIdentified)
	w.Buf = binary.AppendUvarint(binary.AppendUvarint(w.Buf, p.added), p.twice)
	return true
}

// replayProducers executes an operation of a journal on the producers.
func (s *Stream) replayProducers(op byte, o *journal.Operands) bool {
	p := s.writableProducers()
	switch op {
	case journal.OpIdempotence:
		l := IdempotenceLimits{int64(o.Number()), int64(o.Number())}
		if o.Failed || !l.Valid() {
			return false
		}
		p.limits = l
		p.clear()
	case journal.OpIdentify:
		producer, name, id := o.Text(), o.Text(), ReadID(o)
		if o.Failed {
			return false
		}
		p.add(packed.View(producer), packed.View(name), id)
	case journal.OpOutdate:
		p.outdate(int64(o.Number()))
	case journal.OpIdentified:
		p.added, p.twice = o.Number(), o.Number()
	}
	return true
}
