package keyspace

// Tests that measure memory. Other work of the process and the machine can break
// them, so make faults runs them and go test ./... does not.

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"

	"github.com/zsetd/zsetd/server/internal/values/sequence"
	"github.com/zsetd/zsetd/zset"
)

// measured skips a test unless make faults runs it.
func measured(t *testing.T) {
	t.Helper()
	if os.Getenv("ZSETD_MEASURE") == "" {
		t.Skip("it measures memory: make faults")
	}
}

// liveHeap returns the bytes in use after a collection. The second collection frees
// what finalizers release.
func liveHeap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestMeasureKeys bounds the memory of a key, including its name, its value and its
// share of all tables. Redis 7 takes 112 for a string of 16 bytes with a key of 16,
// 40 more with a deadline, 185 for the hash, 140 for the set.
func TestMeasureKeys(t *testing.T) {
	measured(t)
	for _, test := range []struct {
		name string
		keys int
		most int64
		make func(db *DB, l *Limits, key []byte)
	}{
		{"string", 200_000, 64, func(db *DB, _ *Limits, key []byte) { db.AddString(key, key, false) }},
		{"number", 200_000, 48, func(db *DB, _ *Limits, key []byte) { db.AddString(key, key[:3], false) }},
		{"string of 100", 50_000, 160, func(db *DB, _ *Limits, key []byte) { db.AddString(key, make([]byte, 100), false) }},
		{"string with a deadline", 100_000, 190, func(db *DB, _ *Limits, key []byte) {
			db.SetDeadline(db.AddString(key, key, true), int64(len(key))<<40+int64(key[15])*1000)
		}},
		{"hash of 5", 30_000, 132, func(db *DB, l *Limits, key []byte) {
			h := new(Hash)
			for i := range 5 {
				h.Set(fmt.Append(nil, "field:", i), fmt.Append(nil, "value:", i), l)
			}
			db.Add(key, h)
		}},
		{"set of 5", 30_000, 100, func(db *DB, l *Limits, key []byte) {
			s := new(Set)
			for i := range 5 {
				s.Add(l, MemberOf(fmt.Append(nil, "member:", i)))
			}
			db.Add(key, s)
		}},
		{"set of 5 numbers", 30_000, 68, func(db *DB, l *Limits, key []byte) {
			s := new(Set)
			for i := range 5 {
				s.Add(l, MemberOf(fmt.Append(nil, 1000+i)))
			}
			db.Add(key, s)
		}},
		{"sorted set of 5", 30_000, 210, func(db *DB, _ *Limits, key []byte) {
			s := new(zset.Set)
			for i := range 5 {
				s.Add(fmt.Sprint("member:", i), float64(i))
			}
			db.Add(key, s)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := liveHeap()
			ks := New(1, Hooks{})
			db := ks.DB(0)
			for i := range test.keys {
				test.make(db, &ks.Limits, fmt.Appendf(nil, "key:%012d", i))
				ks.Seal()
			}
			each := (liveHeap() - before) / int64(test.keys)
			estimated := 0
			for e := range db.All() {
				estimated += e.Bytes() + e.Value().(interface{ Bytes() int }).Bytes()
			}
			t.Logf("%d bytes each, %d estimated without the deadline", each, estimated/test.keys)
			if each > test.most {
				t.Errorf("%d bytes each, want at most %d", each, test.most)
			}
			runtime.KeepAlive(ks)
		})
	}
}

// TestMeasureUsedBytes compares UsedBytes with the live heap for all types and
// sizes, also after many additions and removals.
func TestMeasureUsedBytes(t *testing.T) {
	measured(t)
	text := func(n, i int) []byte { return []byte(fmt.Sprintf("%0*d", n, i)) }
	for _, kind := range []struct {
		name  string
		keys  int
		write func(db *DB, r *rand.Rand, key []byte)
	}{
		{"short strings", 100_000, func(db *DB, r *rand.Rand, key []byte) {
			if e := db.Edit(key); e != nil {
				db.SetString(e, text(1+r.IntN(40), r.IntN(1e6)))
			} else {
				db.AddString(key, text(1+r.IntN(40), r.IntN(1e6)), false)
			}
		}},
		{"with deadlines", 100_000, func(db *DB, r *rand.Rand, key []byte) {
			e := db.Edit(key)
			if e == nil {
				e = db.AddString(key, text(1+r.IntN(40), r.IntN(1e6)), true)
			}
			db.SetDeadline(e, 1+r.Int64N(1e6))
		}},
		{"strings", 5_000, func(db *DB, r *rand.Rand, key []byte) {
			if e := db.Edit(key); e != nil {
				db.AppendString(e, text(1+r.IntN(1000), r.IntN(1e6)))
			} else {
				db.AddString(key, text(1+r.IntN(4000), r.IntN(1e6)), false)
			}
		}},
		{"lists", 3_000, func(db *DB, r *rand.Rand, key []byte) {
			e := db.Edit(key)
			if e == nil {
				e = db.Add(key, new(sequence.List))
			}
			for range 1 + r.IntN(200) {
				e.Value().(*sequence.List).PushBack(text(1+r.IntN(40), r.IntN(1e6)))
			}
		}},
		{"small hashes", 30_000, func(db *DB, r *rand.Rand, key []byte) {
			e := db.Edit(key)
			if e == nil {
				e = db.Add(key, new(Hash))
			}
			for i := range 1 + r.IntN(5) {
				e, _ = db.SetField(e, text(10, i), text(1+r.IntN(20), r.IntN(1e6)))
			}
		}},
		{"hashes", 50, func(db *DB, r *rand.Rand, key []byte) {
			e := db.Edit(key)
			if e == nil {
				e = db.Add(key, new(Hash))
			}
			for range 1 + r.IntN(2000) {
				e, _ = db.SetField(e, text(10, r.IntN(1e6)), text(1+r.IntN(40), r.IntN(1e6)))
			}
		}},
		{"sets", 50, func(db *DB, r *rand.Rand, key []byte) {
			e := db.Edit(key)
			if e == nil {
				e = db.Add(key, new(Set))
			}
			for range 1 + r.IntN(2000) {
				e, _ = db.AddMember(e, MemberOf([]byte("m"+string(text(1+r.IntN(40), r.IntN(1e6))))))
			}
		}},
		{"small sorted sets", 20_000, func(db *DB, r *rand.Rand, key []byte) {
			e := db.Edit(key)
			if e == nil {
				e = db.Add(key, new(zset.Set))
			}
			for i := range 1 + r.IntN(10) {
				e.Value().(*zset.Set).Add(string(text(10, i)), r.Float64())
			}
		}},
		{"sorted sets", 50, func(db *DB, r *rand.Rand, key []byte) {
			e := db.Edit(key)
			if e == nil {
				e = db.Add(key, new(zset.Set))
			}
			for range 1 + r.IntN(3000) {
				e.Value().(*zset.Set).Add(string(text(1+r.IntN(40), r.IntN(1e6))), r.Float64())
			}
		}},
		{"streams", 2_000, func(db *DB, r *rand.Rand, key []byte) {
			e := db.Edit(key)
			if e == nil {
				e = db.Add(key, new(sequence.Stream))
			}
			s := e.Value().(*sequence.Stream)
			for range 1 + r.IntN(200) {
				id := s.LastID()
				id.Ms++
				s.Add(id, [][]byte{[]byte("field"), text(1+r.IntN(40), r.IntN(1e6))}, db.ks.Limits.Stream)
			}
		}},
	} {
		t.Run(kind.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			before := liveHeap()
			ks := New(1, Hooks{})
			db := ks.DB(0)
			judge := func(when string) {
				found, held := liveHeap()-before, ks.UsedBytes()
				t.Logf("%s: %d KB in the heap, %d KB held (%+.1f %%)", when, found>>10, held>>10, 100*float64(held-found)/float64(found))
				if off := float64(held-found) / float64(found); off < -0.08 || off > 0.08 {
					t.Errorf("%s: %d bytes held, of %d that are in the heap", when, held, found)
				}
			}
			for i := range kind.keys {
				kind.write(db, r, []byte(fmt.Sprint("key:", i)))
				ks.Seal()
			}
			judge("filled")
			for i := range 3 * kind.keys { // some grow, others go and come
				key := []byte(fmt.Sprint("key:", r.IntN(kind.keys*3/2)))
				if i%3 == 0 {
					db.Delete(key)
				} else {
					kind.write(db, r, key)
				}
				ks.Seal()
			}
			judge("after a while")
			if err := ks.Check(); err != nil {
				t.Error(err)
			}
			runtime.KeepAlive(ks)
		})
	}
}
