package archive

import (
	"hash/maphash"
	"math"
	"strings"

	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/snapshot"
	"github.com/zsetd/zsetd/zset"
)

// Progress is called from time to time with the amount of a step that is done, and
// the total: keys in the step "write", bytes in others. total is 0 if unknown. An
// error ends the work.
type Progress func(step string, done, total int64) error

// of returns the progress function of a reading.
func (p Progress) of(step string) func(done, total int64) error {
	if p == nil {
		return nil
	}
	return func(done, total int64) error { return p(step, done, total) }
}

// Value is a key of a file and its value.
type Value struct {
	DB       int
	Key      string
	Value    any   // a *keyspace.String, *List, *Set, *Hash, *Stream or *zset.Set; read only
	Deadline int64 // milliseconds since 1970, 0 for none
}

// Each reads the file at path, as [Loader.Read] does, and visits every key, in the
// order of the file. Keys past their deadlines are among them. Only the journals
// are kept in memory as a whole.
func Each(path string, progress func(done, total int64) error, visit func(Value) error) (snapshot.Info, error) {
	info, _, err := each(path, progress, visit)
	return info, err
}

// each is Each that also returns the number of void bytes in the file.
func each(path string, progress func(done, total int64) error, visit func(Value) error) (info snapshot.Info, void int64, err error) {
	limits := keyspace.DefaultLimits()
	g := reading{limits: &limits, progress: progress, sink: sinkOf(visit)}
	err = g.run(path, func(v snapshot.Visitor) (err error) {
		info, err = snapshot.Inspect(path, v)
		return err
	})
	return info, g.void, err
}

// sinkOf makes a sink of a function.
func sinkOf(visit func(Value) error) func([]job) error {
	return func(batch []job) error {
		for i := range batch {
			j := &batch[i]
			if j.value == nil {
				continue
			}
			if err := visit(Value{j.db, strings.Clone(j.key), j.value, j.deadline}); err != nil {
				return err
			}
			*j = job{}
		}
		return nil
	}
}

// Type returns the name of the type, as the command TYPE does.
func (v Value) Type() string { return keyspace.KindOf(v.Value).String() }

// Size returns the number of elements of the value, where a string counts as one,
// and of their bytes, where a score counts as eight; the groups of a stream are
// left out.
func (v Value) Size() (elements int, bytes int64) { return v.row().size(v.Value) }

// memberDeadlines returns the members or fields that have deadlines, scored by
// them; nil if there are none.
func (v *Value) memberDeadlines() *zset.Set {
	switch x := v.Value.(type) {
	case *keyspace.Hash:
		return x.Deadlines()
	case *zset.Set:
		return x.Deadlines()
	}
	return nil
}

// sum adds up the hashes of values, in any order, so that two files can be
// compared.
type sum struct {
	seed   maphash.Seed
	keys   int64
	digest uint64
}

func newSum() sum { return sum{seed: maphash.MakeSeed()} }

func (s *sum) text(texts ...string) uint64 {
	var h maphash.Hash
	h.SetSeed(s.seed)
	for _, t := range texts {
		maphash.WriteComparable(&h, len(t))
		h.WriteString(t)
	}
	return h.Sum64()
}

func (s *sum) add(v Value) {
	s.digest += s.of(v)
	s.keys++
}

// replace counts a value that replaces another one of the same key.
func (s *sum) replace(old, v Value) { s.digest += s.of(v) - s.of(old) }

// mix adds the hash of an element to the hash of those before it. Without an order of elements
// their sum is the hash of all: hashes are uniform.
func mix(before, element uint64) uint64 { return before*0x9e3779b97f4a7c15 + element }

func (s *sum) of(v Value) uint64 {
	elements := v.row().digest(s, v.Value)
	if d := v.memberDeadlines(); d != nil {
		for m, at := range d.All() {
			elements += maphash.Comparable(s.seed, [3]uint64{'T', maphash.String(s.seed, m), math.Float64bits(at)})
		}
	}
	head := s.text(v.Type(), v.Key)
	return maphash.Comparable(s.seed, [4]uint64{head, elements, uint64(v.DB), uint64(v.Deadline)})
}
