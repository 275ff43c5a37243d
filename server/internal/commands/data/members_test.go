package data_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/internal/engine"

	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

// TestSeries checks that commands of the batch fast path are counted as single commands,
// and that the batch stops at a command that needs further checks.
func TestSeries(t *testing.T) {
	pipeline := []string{
		"PING", "SET k v", "SET k", "INCR k", "LPUSH k 1", "NOSUCH", "GET k", "set k 7", "Incr K", "PING x y", "CONFIG GET port",
		"GET k", "MULTI", "INCR k", "GET k", "EXEC", "CLIENT REPLY SKIP", "GET k", "GET k", "SUBSCRIBE c", "PUBLISH c m",
		"PING", "UNSUBSCRIBE", "PUBLISH c m", "APPEND k " + strings.Repeat("x", 3000), "GET k", "BLPOP none 0.001", "GET k",
		"EXPIRE k 100", "PERSIST k", "SADD s a b c", "SPOP s 3", "EXISTS s", "TTL k", "RESET", "GET k",
	}
	run := func(plain bool) (replies, stats string) {
		srv, err := enginetest.New(engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		if !plain {
			srv.Config.SlowlogSlowerThan = 999 // every command is timed
		}
		s := srv.NewSession(engine.Peer{FD: -1, Wake: func() {}})
		defer s.Close()
		do := func(lines []string) string {
			var batch [][][]byte
			for _, line := range lines {
				var argv [][]byte
				for _, word := range strings.Fields(line) {
					argv = append(argv, []byte(word))
				}
				batch = append(batch, argv)
			}
			var got strings.Builder
			for len(batch) > 0 {
				if s.Stall.Stalled.Load() {
					srv.Advance(1e9)
				}
				done, out, _ := s.Turn(batch, nil)
				got.Write(out)
				s.Written()
				batch = batch[done:]
			}
			return got.String()
		}
		replies = do(pipeline)
		for _, c := range srv.Table.Rows {
			if st := c.Stats; st.Calls+st.Failed+st.Rejected > 0 {
				entered := uint64(0)
				if st.Histogram != nil {
					entered = st.Histogram.Total
				}
				stats += fmt.Sprintln(c.Name, st.Calls, st.Failed, st.Rejected, entered)
			}
		}
		stats += fmt.Sprint(srv.Stats.Errors, srv.Stats.ErrorReplies, srv.Stats.Commands)
		return replies, stats
	}
	replies, stats := run(true)
	replies2, stats2 := run(false)
	if replies != replies2 {
		t.Errorf("replies differ:\n%s\n%s", replies, replies2)
	}
	if stats != stats2 {
		t.Errorf("statistics differ:\n%s\n%s", stats, stats2)
	}
}
