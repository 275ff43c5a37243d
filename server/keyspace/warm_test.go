package keyspace

import (
	"fmt"
	"testing"
)

// TestWarm checks that Warm accepts all keys and changes nothing.
func TestWarm(t *testing.T) {
	ks := New(1, Hooks{})
	db := ks.DB(0)
	some := func(from int) (keys [][]byte) {
		for i := range WarmKeys + 3 {
			keys = append(keys, fmt.Append(nil, "key:", from+i))
		}
		return append(keys[:3], append([][]byte{{}}, keys[3:]...)...)
	}
	const n = 2 * minWarm
	db.Warm(some(0))
	for i := range n {
		db.Add(fmt.Append(nil, "key:", i), NewString([]byte("value")))
		if i%1000 == 0 {
			db.Warm(some(i - 10))
		}
	}
	for i := 0; i < n; i += 500 {
		db.Warm(some(i))
	}
	db.Warm(nil)
	if err := ks.Check(); err != nil || db.Len() != n {
		t.Fatal(db.Len(), err)
	}
	for i := range n {
		db.Delete(fmt.Append(nil, "key:", i))
		if i%1000 == 0 {
			db.Warm(some(i - 10))
		}
	}
}

// BenchmarkWarm measures sixteen lookups with and without Warm.
func BenchmarkWarm(b *testing.B) {
	const n = 1 << 20
	ks := New(1, Hooks{})
	db := ks.DB(0)
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "key:%012d", i*387421%n)
		db.Add(keys[i], NewString([]byte("0123456789abcdef")))
	}
	for _, warm := range []bool{false, true} {
		b.Run(fmt.Sprint(warm), func(b *testing.B) {
			batch := make([][]byte, WarmKeys)
			for i := 0; b.Loop(); i += WarmKeys {
				for j := range batch {
					batch[j] = keys[(i+j)*7919&(n-1)]
				}
				if warm {
					db.Warm(batch)
				}
				for _, key := range batch {
					db.Get(key)
				}
			}
		})
	}
}
