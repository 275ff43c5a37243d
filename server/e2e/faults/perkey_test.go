//go:build linux

package faults

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/zsetd/zsetd/server"
)

// TestMemoryPerKey measures the bytes of the heap for each key, or member of the one
// large set, of the data sets of make bench at a tenth of their size. The ceilings
// are some hundredths above what was measured when they were written. Beside them
// stands what a key adds to the resident set of redis-server 7.0, which is the
// limit that counts.
func TestMemoryPerKey(t *testing.T) {
	name := func(kind string, i int) string { return fmt.Sprintf("%s%012d", kind, i) }
	score := func(i int) string { return fmt.Sprint(i * 387421 % 1000000) }
	zadd := func(perSet int) func(i int) []any {
		return func(i int) []any {
			return []any{"ZADD", name("set:", i/perSet), score(i), name("member:", i)}
		}
	}
	for _, shape := range []struct {
		name           string
		commands, keys int
		command        func(i int) []any
		ceiling, redis float64
	}{
		{"members in one set", 100000, 100000, zadd(100000), 60, 136},
		{"sets of 5", 5 * 30000, 30000, zadd(5), 275, 277},
		{"sets of 100", 100 * 1000, 1000, zadd(100), 3450, 3540},
		{"strings of 16 bytes", 50000, 50000, func(i int) []any {
			return []any{"SET", name("key:", i), "0123456789abcdef"}
		}, 70, 136},
		{"hashes of 5 fields", 10000, 10000, func(i int) []any {
			return []any{"HSET", name("hash:", i), "field:1", "value:1", "field:2", "value:2", "field:3", "value:3",
				"field:4", "value:4", "field:5", "value:5"}
		}, 160, 240},
	} {
		t.Run(shape.name, func(t *testing.T) {
			srv, err := server.New(server.Options{Config: map[string]string{"port": "0"}})
			if err != nil {
				t.Fatal(err)
			}
			defer srv.Shutdown(t.Context())
			before := heapInUse()
			for i := range shape.commands {
				if _, err := srv.Do(t.Context(), shape.command(i)...); err != nil {
					t.Fatal(err)
				}
			}
			per := float64(heapInUse()-before) / float64(shape.keys)
			runtime.KeepAlive(srv)
			t.Logf("%.0f bytes; redis-server %.0f", per, shape.redis)
			if per > shape.ceiling {
				t.Errorf("%.0f bytes, not %.0f at most", per, shape.ceiling)
			}
		})
	}
}

// heapInUse returns the bytes in use after a collection. The second collection frees
// what finalizers release.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
