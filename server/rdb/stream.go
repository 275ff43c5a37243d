package rdb

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/zsetd/zsetd/server/internal/values/sequence"
)

// A stream is its blocks, each the ID of its first entry and a listpack:
//
//	count deleted fields { field } 0 { entry }
//	entry = flags ms seq { value } elements                  if flags has alike
//	entry = flags ms seq fields { field value } elements     if not
//
// ms and seq are relative to that ID, and elements is the number of elements before
// it. Deleted entries stay in Redis's listpacks; they are read, counted as deleted,
// and not written.
const (
	entryDeleted = 1
	entryAlike   = 2
)

// appendStream appends a stream of a type: that of Redis 5.0, 7.0, 7.2 or 8.6.
func (c *Codec) appendStream(dst []byte, s *sequence.Stream, kind byte) []byte {
	portable := kind == typeStream
	blocks := 0
	for range s.EachBlock {
		blocks++
	}
	dst = appendLength(dst, uint64(blocks))
	for b := range s.EachBlock {
		dst = c.appendText(dst, appendRawID(nil, b.First()))
		more := false
		if dst, more = c.spilled(c.appendText(dst, c.block(b))); !more {
			return dst
		}
	}
	dst = appendLength(dst, uint64(s.Len()))
	dst = appendID(dst, s.LastID())
	if !portable {
		dst = appendID(dst, s.FirstID())
		dst = appendID(dst, s.MaxDeletedID())
		dst = appendLength(dst, uint64(s.Added()))
	}
	dst = appendLength(dst, uint64(len(s.Groups())))
	for _, g := range s.Groups() {
		dst = c.appendText(dst, []byte(g.Name()))
		dst = appendID(dst, g.LastID())
		if !portable {
			dst = appendLength(dst, uint64(g.Read()))
		}
		dst = appendLength(dst, uint64(g.Len()))
		for p := range g.Ascend(sequence.StreamID{}) {
			dst = appendRawID(dst, p.ID)
			dst = binary.LittleEndian.AppendUint64(dst, uint64(p.Time))
			more := false
			if dst, more = c.spilled(appendLength(dst, uint64(p.Count))); !more {
				return dst
			}
		}
		dst = appendLength(dst, uint64(len(g.Consumers())))
		for _, consumer := range g.Consumers() {
			dst = c.appendText(dst, []byte(consumer.Name()))
			dst = binary.LittleEndian.AppendUint64(dst, uint64(consumer.Seen()))
			if kind == typeStream3 || kind == typeStream4 {
				dst = binary.LittleEndian.AppendUint64(dst, uint64(consumer.Active()))
			}
			dst = appendLength(dst, uint64(consumer.Len()))
			for p := range g.AscendOf(consumer, sequence.StreamID{}) {
				more := false
				if dst, more = c.spilled(appendRawID(dst, p.ID)); !more {
					return dst
				}
			}
		}
	}
	if kind == typeStream4 {
		dst = c.appendProducers(dst, s)
	}
	return dst
}

// appendProducers appends the state of the producers of a stream: how long and how many
// identifiers are kept, then for each producer the identifiers that it has used, the oldest
// first, and their entries; and the total numbers of identifiers and of duplicates.
//
//	seconds most producers { name n { identifier ID } } added twice
func (c *Codec) appendProducers(dst []byte, s *sequence.Stream) []byte {
	limits := s.IdempotenceLimits()
	dst = appendLength(appendLength(dst, uint64(limits.Seconds)), uint64(limits.Most))
	counts := map[string]int{}
	for producer, n := range s.Producers {
		counts[producer] = n
	}
	dst = appendLength(dst, uint64(len(counts)))
	before := ""
	for x := range s.Identifiers {
		if x.Producer != before { // the first is not empty
			before = x.Producer
			dst = appendLength(c.appendText(dst, []byte(before)), uint64(counts[before]))
		}
		dst = appendID(c.appendText(dst, []byte(x.Name)), x.ID)
		more := false
		if dst, more = c.spilled(dst); !more {
			return dst
		}
	}
	added, twice := s.Identified()
	return appendLength(appendLength(dst, added), twice)
}

// idempotent reports whether the producers of a stream have left anything.
func idempotent(s *sequence.Stream) bool {
	for range s.Producers {
		return true
	}
	added, twice := s.Identified()
	return added > 0 || twice > 0 || s.IdempotenceLimits() != sequence.DefaultIdempotenceLimits()
}

func appendRawID(dst []byte, id sequence.StreamID) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, id.Ms), id.Seq)
}

func appendID(dst []byte, id sequence.StreamID) []byte {
	return appendLength(appendLength(dst, id.Ms), id.Seq)
}

// block returns the listpack of a block. It is valid until the next begins.
func (c *Codec) block(b sequence.StreamBlock) []byte {
	elements := 0
	number := func(n int64) {
		c.pack = appendPackedInt(c.pack, n)
		elements++
	}
	text := func(t []byte) {
		c.pack = appendPacked(c.pack, t)
		elements++
	}
	c.begin()
	number(int64(b.Len()))
	number(0)
	fields := b.Fields()
	number(int64(len(fields)))
	for _, field := range fields {
		text(field)
	}
	number(0)
	for e := range b.All {
		begin := elements
		flags := int64(0)
		if e.SharesFields() {
			flags = entryAlike
		}
		number(flags)
		number(int64(e.ID.Ms - b.First().Ms))
		number(int64(e.ID.Seq - b.First().Seq))
		if flags == 0 {
			number(int64(e.Len()))
		}
		for field, value := range e.Pairs {
			if flags == 0 {
				text(field)
			}
			text(value)
		}
		number(int64(elements - begin))
	}
	return c.end(elements)
}

func (in *input) id() sequence.StreamID {
	ms := in.length()
	return sequence.StreamID{Ms: ms, Seq: in.length()}
}

func (in *input) rawID() (id sequence.StreamID) {
	if b := in.next(16); b != nil {
		id.Ms, id.Seq = binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])
	}
	return id
}

// elements are the unread elements of a listpack. A missing one makes the input
// spoiled.
type elements struct {
	in   *input
	list [][]byte
}

func (e *elements) texts(n int) [][]byte {
	if n < 0 || n > len(e.list) {
		e.in.check(false)
		return nil
	}
	t := e.list[:n]
	e.list = e.list[n:]
	return t
}

func (e *elements) number() int64 {
	t := e.texts(1)
	if t == nil {
		return 0
	}
	n, err := strconv.ParseInt(string(t[0]), 10, 64)
	e.in.check(err == nil)
	return n
}

// stream reads a stream.
func (c *Codec) stream(in *input, kind byte) (any, error) {
	s := new(sequence.Stream)
	blocks := in.length()
	for n := blocks; n > 0 && !in.bad; n-- {
		in.block(s)
	}
	// The entries count: some versions of Redis wrote other numbers of them, and lesser last IDs.
	in.check(in.length() == 0 || blocks > 0)
	last, deleted, added := in.id(), sequence.StreamID{}, int64(s.Len())
	if kind != typeStream {
		in.id() // of the first entry
		deleted, added = in.id(), max(int64(in.length()), added)
	}
	if last.Less(s.LastID()) {
		last = s.LastID()
	}
	s.SetID(last, added, deleted)
	for n := in.length(); n > 0 && !in.bad; n-- {
		in.group(s, kind)
	}
	if kind == typeStream4 {
		in.producers(s)
	} else {
		s.SetIdempotenceLimits(c.Limits.Stream.Idempotence)
	}
	if !in.sound() {
		return nil, ErrFormat
	}
	return s, nil
}

// producers reads what appendProducers appends.
func (in *input) producers(s *sequence.Stream) {
	const always = -1 // their time is not over
	limits := sequence.IdempotenceLimits{Seconds: int64(in.length()), Most: int64(in.length())}
	if in.check(limits.Valid()); in.sound() {
		s.SetIdempotenceLimits(limits)
	}
	for n := in.length(); n > 0 && !in.bad; n-- {
		producer := in.text()
		for k := in.length(); k > 0 && !in.bad; k-- {
			name, id := in.text(), in.id()
			if in.check(len(producer) > 0 && len(name) > 0); in.sound() {
				s.Identify(producer, name, id, always)
			}
		}
	}
	if added, twice := in.length(), in.length(); in.sound() {
		s.SetIdentified(added, twice)
	}
}

// block reads a block.
func (in *input) block(s *sequence.Stream) {
	key := in.text()
	in.check(len(key) == 16)
	e := elements{in: in}
	in.check(eachListpack(in.text(), func(b []byte) { e.list = append(e.list, b) }))
	if !in.sound() {
		return
	}
	first := sequence.StreamID{Ms: binary.BigEndian.Uint64(key), Seq: binary.BigEndian.Uint64(key[8:])}
	live, dead := e.number(), e.number()
	fields := e.texts(int(min(e.number(), math.MaxInt32)))
	in.check(e.number() == 0 && live >= 0 && dead >= 0)
	if len(e.list) == 0 && live+dead == 0 && in.sound() {
		return // without entries it is no block here
	}
	if in.check(in.sound() && s.LoadBlock(first, fields)); !in.sound() {
		return
	}
	for len(e.list) > 0 {
		before := len(e.list)
		flags := e.number()
		ms, seq := e.number(), e.number()
		id := sequence.StreamID{Ms: first.Ms + uint64(ms), Seq: first.Seq + uint64(seq)}
		var pairs [][]byte
		if flags&entryAlike != 0 {
			values := e.texts(len(fields))
			for i := range values {
				pairs = append(pairs, fields[i], values[i])
			}
		} else {
			pairs = e.texts(2 * int(min(e.number(), math.MaxInt32)))
		}
		size := int64(before - len(e.list))
		in.check(e.number() == size)
		if !in.sound() {
			return
		}
		in.check(s.LoadEntry(id, pairs, flags&entryDeleted != 0))
		if flags&entryDeleted != 0 {
			dead--
		} else {
			live--
		}
	}
	in.check(live == 0 && dead == 0)
}

// group reads a group.
func (in *input) group(s *sequence.Stream, kind byte) {
	name, last := in.text(), in.id()
	read := s.Position(last)
	if kind != typeStream {
		read = max(int64(in.length()), sequence.UnknownRead)
	}
	in.check(s.Group(name) == nil)
	var g *sequence.Group
	if in.sound() {
		g = s.AddGroup(name, last, read)
	}
	pending := map[sequence.StreamID]sequence.Pending{}
	n := in.length()
	for ; n > 0 && !in.bad; n-- {
		p := sequence.Pending{ID: in.rawID(), Time: int64(in.uint64()), Count: int64(in.length())}
		if _, twice := pending[p.ID]; twice || !in.sound() {
			in.check(false)
			continue
		}
		pending[p.ID] = p
	}
	owned := 0
	for n = in.length(); n > 0 && !in.bad; n-- {
		name, seen := in.text(), int64(in.uint64())
		active := seen
		if kind == typeStream3 || kind == typeStream4 {
			active = int64(in.uint64())
		}
		in.check(in.sound() && g.Consumer(name) == nil)
		var consumer *sequence.Consumer
		if in.sound() {
			consumer = g.AddConsumer(name, seen)
			g.SetTimes(consumer, seen, active)
		}
		for k := in.length(); k > 0 && !in.bad; k-- {
			id := in.rawID()
			p, ok := pending[id]
			if in.check(ok); !in.sound() {
				continue
			}
			before, twice := g.Pending(id)
			if in.check(!twice || g.Owner(before) != consumer); !twice {
				owned++
			}
			g.Deliver(consumer, id, p.Time, p.Count) // the last of several owners has it, as in Redis
		}
	}
	in.check(owned == len(pending))
}
