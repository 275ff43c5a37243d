package keyspace

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/zsetd/zsetd/zset"
)

// What the keyspace says that it holds is what the garbage collector finds, for all
// types and sizes; also when much has come and gone.
func TestHeldIsWhatTheHeapHas(t *testing.T) {
	if testing.Short() {
		t.Skip("fills some hundred megabytes")
	}
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
				e = db.Add(key, new(List))
			}
			for range 1 + r.IntN(200) {
				e.Value().(*List).PushBack(text(1+r.IntN(40), r.IntN(1e6)))
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
				e = db.Add(key, new(Stream))
			}
			s := e.Value().(*Stream)
			for range 1 + r.IntN(200) {
				id := s.LastID()
				id.Ms++
				s.Add(id, [][]byte{[]byte("field"), text(1+r.IntN(40), r.IntN(1e6))}, &db.ks.Limits)
			}
		}},
	} {
		t.Run(kind.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			before := heapInUse()
			ks := New(1, Hooks{})
			db := ks.DB(0)
			judge := func(when string) {
				found, held := heapInUse()-before, ks.Held()
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

func heapInUse() int64 {
	runtime.GC()
	runtime.GC() // what finalizers have let go
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
