package archive_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/archive"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/snapshot"
	"github.com/zsetd/zsetd/zset"
)

// BenchmarkLoad is to be compared with redis-server loading an RDB file: see
// TestFiguresLoading in server/e2e.
func BenchmarkLoad(b *testing.B) {
	for _, shape := range []struct{ sets, members int }{{1, 1_000_000}, {300_000, 5}, {10_000, 100}} {
		for _, how := range []string{"bases", "journal"} {
			b.Run(fmt.Sprintf("sets=%d/members=%d/%s", shape.sets, shape.members, how), func(b *testing.B) {
				path := filepath.Join(b.TempDir(), "load.db")
				fill(b, path, shape.sets, shape.members, how == "bases")
				for b.Loop() {
					l := archive.Loader{Keys: keyspace.New(16, keyspace.Hooks{})}
					if err := l.Read(path); err != nil {
						b.Fatal(err)
					}
					if l.Loaded != int64(shape.sets) {
						b.Fatalf("%d keys", l.Loaded)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*shape.sets*shape.members), "ns/member")
			})
		}
	}
}

// fill makes a file of sorted sets that were filled in random order: as bases,
// or as a journal of many small changes.
func fill(tb testing.TB, path string, sets, members int, bases bool) {
	tb.Helper()
	keys := keyspace.New(16, keyspace.Hooks{})
	keys.Record(true)
	db := keys.DB(0)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range sets * members {
		key := fmt.Appendf(nil, "s:%06d", i/members)
		e := db.Edit(key)
		if e == nil {
			e = db.Add(key, new(zset.Set))
		}
		e.Value().(*zset.Set).Add(fmt.Sprintf("m:%010d", i), float64(r.IntN(1e9)))
		keys.Seal()
	}
	f, err := snapshot.Beside(path)
	if err != nil {
		tb.Fatal(err)
	}
	c := snapshot.Checkpoint{Spaces: keys.Spaces(), Time: time.Now()}
	if bases {
		for e := range db.All() {
			c.Bases = append(c.Bases, snapshot.Base{Space: db.Space(), Key: e.Key(), Chunks: db.Pin(e).Chunks})
		}
	} else {
		c.Journal = keys.TakeJournal().Chunks
	}
	if _, err := f.Write(&c); err != nil {
		tb.Fatal(err)
	}
	if err := f.Publish(path); err != nil {
		tb.Fatal(err)
	}
	if err := f.Close(); err != nil {
		tb.Fatal(err)
	}
}
