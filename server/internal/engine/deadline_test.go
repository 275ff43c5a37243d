package engine_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

// TestNeverEarly checks that waits never end early, at any offset within a millisecond,
// and at most two milliseconds late.
func TestNeverEarly(t *testing.T) {
	const wait = 5 * time.Millisecond
	lines := []string{
		"BLPOP k 0.005", "BRPOP k 0.005", "BLMOVE k l LEFT LEFT 0.005", "BRPOPLPUSH k l 0.005", "BLMPOP 0.005 1 k LEFT",
		"BZPOPMIN k 0.005", "BZPOPMAX k 0.005", "BZMPOP 0.005 1 k MIN", "BZPOPBYSCORE 0.005 1 k 0 1", "BZCLAIM 0.005 1 k 0 1 2",
		"XREAD BLOCK 5 STREAMS k $", "XREADGROUP GROUP g c BLOCK 5 STREAMS stream >", "WAIT 1 5",
		"CLIENT PAUSE 5 -> SET other v",
	}
	bubble(t, func(t *testing.T, srv *enginetest.Server, _ chan string) {
		do := func(line string) any {
			var args []any
			for word := range strings.FieldsSeq(line) {
				args = append(args, word)
			}
			reply, err := srv.Do(context.Background(), args...)
			if err != nil {
				t.Errorf("%s: %v", line, err)
			}
			return reply
		}
		do("XGROUP CREATE stream g $ MKSTREAM")
		for _, line := range lines {
			for begin := 0; begin < 1000; begin += 37 {
				time.Sleep(time.Duration(begin) * time.Microsecond)
				start := time.Now()
				for line := range strings.SplitSeq(line, " -> ") {
					do(line)
				}
				if late := (time.Since(start) - wait).Microseconds(); late < 0 || late > 2000 { // of the bubble's clock
					t.Errorf("%s ends %d µs late", line, late)
				}
			}
		}
	})
}

// TestThereUntilDue checks that a key, a field or a member exists until its deadline, at
// any offset within a millisecond.
func TestThereUntilDue(t *testing.T) {
	for _, c := range []struct{ set, there string }{
		{"SET k v PX 5", "EXISTS k"},
		{"SADD k m -> PEXPIRE k 5", "EXISTS k"},
		{"HSET k f v -> HPEXPIRE k 5 FIELDS 1 f", "HEXISTS k f"},
		{"ZADD k 1 m -> ZPEXPIRE k 5 MEMBERS 1 m", "ZCARD k"},
		{"ZADDEX k PX 5 MEMBERS 1 1 m", "ZCARD k"},
	} {
		bubble(t, func(t *testing.T, srv *enginetest.Server, _ chan string) {
			for begin := 0; begin < 1000; begin += 91 {
				time.Sleep(time.Duration(begin) * time.Microsecond)
				for line := range strings.SplitSeq(c.set, " -> ") {
					enginetest.Must(t, srv, line)
				}
				time.Sleep(5*time.Millisecond - time.Microsecond)
				synctest.Wait()
				enginetest.Must(t, srv, c.there+" -> 1")
				time.Sleep(2 * time.Millisecond)
				enginetest.Must(t, srv, c.there+" -> 0")
				enginetest.Must(t, srv, "DEL k")
			}
		})
	}
}
