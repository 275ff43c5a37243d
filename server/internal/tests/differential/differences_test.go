package differential

import (
	"net"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/internal/tests/transcript"

	"github.com/zsetd/zsetd/server/servertest/judge"
)

// parted reports whether two servers differ on purpose after a command has blocked,
// and so in the following commands. Since Redis 7.2, as in zsetd, a blocked command runs
// again when it may continue; Redis 7.0 looks only at the key that has an element. So
// another key, which has become one of another type meanwhile, is an error now, and
// of several that have something, the first that the command names is taken.
func parted(redis, ours string) bool {
	r, o := parts(redis), parts(ours)
	return strings.Contains(ours, "WRONGTYPE") || len(r) > 1 && len(o) > 1 && (r[0] != o[0] || len(r) != len(o))
}

// meant reports whether two replies differ for a known reason.
func meant(argv []string, redis, ours string) bool {
	for _, d := range judge.Differences() {
		if !d.Applies(opponent()) {
			continue
		}
		if d.Covers != nil && d.Covers(argv, redis, ours) {
			return true
		}
	}
	return false
}

// sameEncoding reports whether an encoding of ours is one that Redis would
// have chosen, differences aside.
func sameEncoding(ours, redis any) bool {
	switch {
	case ours == redis:
		return true
	case ours == "embstr" && redis == "raw" && opponent() != judge.Version: // see differences
		return true
	case (ours == "raw" || ours == "int") && redis == "embstr" && opponent() == "valkey": // likewise
		return true
	case ours == "listpack":
		return redis == "quicklist" || redis == "hashtable" || redis == "skiplist" || redis == "listpackex"
	}
	return false
}

func TestDifferences(t *testing.T) {
	dial := startCompared(t)
	for _, d := range judge.Differences() {
		if !d.Applies(opponent()) {
			continue
		}
		t.Run(d.Name, func(t *testing.T) {
			srv, err := server.New(server.Options{Config: map[string]string{"dialect": dialect()}})
			if err != nil {
				t.Fatal(err)
			}
			defer srv.Close()
			ours, err := srv.Dialer()(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			theirs := dial()
			for _, side := range []struct {
				who  string
				nc   net.Conn
				want string
			}{{"Redis", theirs, d.Redis}, {"zsetd", ours, d.Ours}} {
				c := judge.NewConn(side.nc)
				var got string
				for range 5 { // some replies count milliseconds
					if c.RoundTrip(t, "FLUSHALL"); got == side.want {
						break
					}
					for _, line := range append(d.After[:len(d.After):len(d.After)], d.Try) {
						words, err := transcript.SplitWords(line)
						if err != nil {
							t.Fatal(err)
						}
						got = c.RoundTrip(t, words...)
					}
				}
				if got != side.want {
					t.Errorf("%s: %s replies %q, not %q; the reason was: %s", d.Try, side.who, got, side.want, d.Reason)
				}
			}
		})
	}
}
