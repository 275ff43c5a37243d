package data

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/zset"
)

// Random elements. A server with a seed draws from the elements in the order of their names, in
// O(n log n) for each command, so that the same commands have the same replies in each process.
// Otherwise the hash tables choose.

// randomMember returns a member of a set, which is not empty.
func randomMember(c *engine.Call, s *keyspace.Set) keyspace.Member {
	if !c.Seeded() {
		return s.Random(c.Rand())
	}
	return randomMembers(c, s)()
}

// randomMembers returns a function that draws a member of a set, which is not empty.
func randomMembers(c *engine.Call, s *keyspace.Set) func() keyspace.Member {
	if !c.Seeded() {
		return func() keyspace.Member { return s.Random(c.Rand()) }
	}
	return drawing(c, orderedMembers(s))
}

// sampleMembers yields n distinct members of a set, at most all.
func sampleMembers(c *engine.Call, s *keyspace.Set, n int) iter.Seq[keyspace.Member] {
	if !c.Seeded() {
		return s.Sample(c.Rand(), n)
	}
	return slices.Values(shuffled(c, orderedMembers(s))[:n])
}

// popMembers removes n random members of a set, fewer than all, and passes each to yield before.
func popMembers(c *engine.Call, d setRef, n int, yield func(keyspace.Member)) {
	if !c.Seeded() {
		d.unpack().Pop(c.Rand(), n, yield)
		return
	}
	// A member of a small set is a part of it, until that changes.
	var chosen []string
	for m := range sampleMembers(c, d.Value(), n) {
		chosen = append(chosen, strings.Clone(m.String()))
	}
	for _, name := range chosen {
		m := keyspace.MemberOf([]byte(name))
		yield(m)
		d.remove(m)
	}
}

func orderedMembers(s *keyspace.Set) []keyspace.Member {
	return slices.SortedFunc(s.Members, func(a, b keyspace.Member) int { return cmp.Compare(a.String(), b.String()) })
}

// field is a field of a hash and its value.
type field struct{ name, value string }

// randomField returns the name of a field of a hash, which is not empty.
func randomField(c *engine.Call, h *keyspace.Hash) (name string) {
	if !c.Seeded() {
		name, _ = h.Random(c.Rand())
	} else {
		name, _ = randomFields(c, h)()
	}
	return name
}

// randomFields returns a function that draws a field of a hash, which is not empty.
func randomFields(c *engine.Call, h *keyspace.Hash) func() (name, value string) {
	if !c.Seeded() {
		return func() (name, value string) { return h.Random(c.Rand()) }
	}
	draw := drawing(c, orderedFields(h))
	return func() (name, value string) { f := draw(); return f.name, f.value }
}

// sampleFields yields n distinct fields of a hash, at most all.
func sampleFields(c *engine.Call, h *keyspace.Hash, n int, yield func(name, value string)) {
	if !c.Seeded() {
		h.RandomDistinct(c.Rand(), n, yield)
		return
	}
	for _, f := range shuffled(c, orderedFields(h))[:n] {
		yield(f.name, f.value)
	}
}

func orderedFields(h *keyspace.Hash) (list []field) {
	for name, value := range h.All() {
		list = append(list, field{name, value})
	}
	slices.SortFunc(list, func(a, b field) int { return cmp.Compare(a.name, b.name) })
	return list
}

// randomElement returns an element of a sorted set, which is not empty.
func randomElement(c *engine.Call, s *zset.Set) zset.Element {
	if !c.Seeded() {
		e, _ := s.Random(c.Rand())
		return e
	}
	return s.RandomDistinct(c.Rand(), 1)[0] // by its rank
}

// randomElements yields n elements of a sorted set, each drawn from all.
func randomElements(c *engine.Call, s *zset.Set, n int) iter.Seq2[string, float64] {
	if !c.Seeded() {
		return s.RandomRepeat(c.Rand(), n)
	}
	return func(yield func(string, float64) bool) {
		for range n {
			e := randomElement(c, s)
			if !yield(e.Member, e.Score) {
				return
			}
		}
	}
}

// randomKey returns a key that is not expired, or nil if there is none.
func randomKey(c *engine.Call) *keyspace.Entry {
	if !c.Seeded() {
		return c.DB.Random(c.Rand())
	}
	var alive []*keyspace.Entry
	for e := range c.DB.All() {
		if !c.DB.Due(e) {
			alive = append(alive, e)
		}
	}
	if len(alive) == 0 {
		return nil
	}
	slices.SortFunc(alive, func(a, b *keyspace.Entry) int { return cmp.Compare(a.Key(), b.Key()) })
	return drawing(c, alive)()
}

// drawing returns a function that draws one of the elements.
func drawing[E any](c *engine.Call, list []E) func() E {
	return func() E { return list[c.Rand().IntN(len(list))] }
}

// shuffled returns the elements in a random order, and changes list.
func shuffled[E any](c *engine.Call, list []E) []E {
	c.Rand().Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}
