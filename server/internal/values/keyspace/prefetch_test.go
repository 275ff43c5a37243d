package keyspace

import (
	"fmt"
	"testing"
)

// TestPrefetch checks that Prefetch accepts all keys and changes nothing.
func TestPrefetch(t *testing.T) {
	ks := New(1, Hooks{})
	db := ks.DB(0)
	some := func(from int) (keys [][]byte) {
		for i := range PrefetchKeys + 3 {
			keys = append(keys, fmt.Append(nil, "key:", from+i))
		}
		return append(keys[:3], append([][]byte{{}}, keys[3:]...)...)
	}
	const n = 2 * prefetchMin
	db.Prefetch(some(0))
	for i := range n {
		db.Add(fmt.Append(nil, "key:", i), NewString([]byte("value")))
		if i%1000 == 0 {
			db.Prefetch(some(i - 10))
		}
	}
	for i := 0; i < n; i += 500 {
		db.Prefetch(some(i))
	}
	db.Prefetch(nil)
	if err := ks.Check(); err != nil || db.Len() != n {
		t.Fatal(db.Len(), err)
	}
	for i := range n {
		db.Delete(fmt.Append(nil, "key:", i))
		if i%1000 == 0 {
			db.Prefetch(some(i - 10))
		}
	}
}

// BenchmarkPrefetch measures sixteen lookups with and without Prefetch.
func BenchmarkPrefetch(b *testing.B) {
	const n = 1 << 20
	ks := New(1, Hooks{})
	db := ks.DB(0)
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "key:%012d", i*387421%n)
		db.Add(keys[i], NewString([]byte("0123456789abcdef")))
	}
	for _, prefetch := range []bool{false, true} {
		b.Run(fmt.Sprint(prefetch), func(b *testing.B) {
			batch := make([][]byte, PrefetchKeys)
			for i := 0; b.Loop(); i += PrefetchKeys {
				for j := range batch {
					batch[j] = keys[(i+j)*7919&(n-1)]
				}
				if prefetch {
					db.Prefetch(batch)
				}
				for _, key := range batch {
					db.Get(key)
				}
			}
		})
	}
}
