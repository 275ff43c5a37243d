package keyspace

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/zsetd/zsetd/zset"
)

// liveHeap returns the bytes of what is in use, after the garbage is gone.
func liveHeap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A key takes no more memory than this, its name, its value and its part of all
// tables included. Redis 7 takes 112 for a string of 16 bytes with a key of 16,
// 40 more with a deadline, 185 for the hash, 140 for the set.
func TestMemoryOfKeys(t *testing.T) {
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
