package engine_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// TestCompaction removes most keys, and expects that MEMORY PURGE, and activedefrag, move the rest
// together, that this changes no value, and that INFO and CONFIG RESETSTAT know of it.
func TestCompaction(t *testing.T) {
	for _, how := range []string{"MEMORY PURGE", "CONFIG SET activedefrag yes active-defrag-ignore-bytes 1 active-defrag-threshold-lower 1"} {
		t.Run(how, func(t *testing.T) {
			srv, addr := enginetest.Start(t, nil)
			c := enginetest.Dial(t, addr)
			field := func(name string) int64 { return infoNumber(t, srv, name) }
			const n = 60_000
			fill(c, n)
			digest := c.Call("DEBUG DIGEST")
			c.Call(how)
			wait.Until(t, "a compaction", func() bool {
				runtime.GC()
				return field("active_defrag_running") == 0 && field("active_defrag_key_hits") > 0 && field("total_active_defrag_time") > 0
			})
			if keys, objects := field("active_defrag_key_hits"), field("active_defrag_hits"); keys < n/100 || objects < keys {
				t.Errorf("%d keys were moved, %d objects", keys, objects)
			}
			if got := c.Call("DEBUG DIGEST"); got != digest {
				t.Errorf("the digest was %v, and is %v", digest, got)
			}
			c.Call("CONFIG SET activedefrag no")
			wait.Until(t, "CONFIG RESETSTAT", func() bool { // after the last compaction
				c.Call("CONFIG RESETSTAT")
				sum := int64(0)
				for _, name := range []string{"active_defrag_hits", "active_defrag_misses", "active_defrag_key_hits", "active_defrag_key_misses", "total_active_defrag_time"} {
					sum += field(name)
				}
				return sum == 0
			})
		})
	}
}

// TestCompactionAtStop expects that a server stops while a compaction runs.
func TestCompactionAtStop(t *testing.T) {
	srv, addr := enginetest.Start(t, nil)
	c := enginetest.Dial(t, addr)
	fill(c, 60_000)
	c.Call("MEMORY PURGE")
	wait.Until(t, "the compaction", func() bool {
		percent, _ := srv.Freeing.Compacting()
		return percent > 0 || infoNumber(t, srv, "active_defrag_key_hits") > 0
	})
}

// fill creates n sorted sets and n strings, and deletes nine in ten of them.
func fill(c *enginetest.Client, n int) {
	for _, body := range []string{
		"redis.call('ZADD', 'z' .. i, i, 'member:1', i + 1, 'member:2')",
		"redis.call('SET', 's' .. i, 'value of sixteen')",
		"if i % 10 > 0 then redis.call('DEL', 'z' .. i, 's' .. i) end",
	} {
		c.Call(fmt.Sprintf(`EVAL "for i = 1, %d do %s end" 0`, n, body))
	}
}
