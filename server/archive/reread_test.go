package archive

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/snapshot"
	"github.com/zsetd/zsetd/zset"
)

// TestReread loads files whose journals have so long parts that they are read again, with random
// changes of keys, some of which have bases: what is loaded is what was saved.
func TestReread(t *testing.T) {
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 1))
		keys := keyspace.New(2, keyspace.Hooks{})
		keys.SetNow(testNow)
		keys.Record(true)
		path := filepath.Join(t.TempDir(), "f.db")
		file, err := snapshot.Beside(path)
		if err != nil {
			t.Fatal(err)
		}
		long := 0
		for range 4 {
			name := fmt.Appendf(nil, "key %d", r.IntN(3000))
			for range 8000 {
				if r.IntN(3) == 0 { // else the same key again
					name = fmt.Appendf(nil, "key %d", r.IntN(3000))
				}
				change(r, keys.DB(r.IntN(20)/19), name)
				keys.Seal()
			}
			if r.IntN(3) == 0 {
				keys.DB(1).Clear()
			}
			c := snapshot.Checkpoint{LastSpace: keys.LastSpace(), Time: time.UnixMilli(testNow), Keys: []int64{int64(keys.DB(0).Len()), int64(keys.DB(1).Len())}}
			if seed%2 == 1 {
				for e := range keys.DB(0).All() {
					if len(c.Bases) < 500 {
						c.Bases = append(c.Bases, snapshot.Base{Space: keys.DB(0).Space(), Key: e.Key(), Chunks: keys.DB(0).Pin(e).Chunks})
					}
				}
			}
			c.Journal, c.Spaces = keys.TakeJournal().Chunks, keys.Spaces()
			if _, err := file.Write(&c); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(file.Publish(path), file.Close()); err != nil {
			t.Fatal(err)
		}
		if _, err := snapshot.Read(path, snapshot.Visitor{Part: func(p snapshot.Part) error {
			if p.Rereadable() && len(p.Records) >= leastReread {
				long++
			}
			return nil
		}}); err != nil || long < 4 {
			t.Fatal(long, err)
		}
		l := Loader{Keys: keyspace.New(2, keyspace.Hooks{})}
		l.Keys.SetNow(testNow)
		if err := l.Read(path); err != nil {
			t.Fatal(err)
		}
		want := newSum()
		got := want
		for i := range 2 {
			for e := range keys.DB(i).All() {
				want.add(Value{i, e.Key(), e.Value(), e.Deadline()})
			}
			for e := range l.Keys.DB(i).All() {
				got.add(Value{i, e.Key(), e.Value(), e.Deadline()})
			}
		}
		if got != want || l.Loaded != want.keys || want.keys < 1000 {
			t.Errorf("seed %d: loaded %d keys, %+v, not %+v", seed, l.Loaded, got, want)
		}
		if err := l.Keys.Check(); err != nil {
			t.Error(err)
		}
	}
}

// change changes a key at random.
func change(r *rand.Rand, db *keyspace.DB, name []byte) {
	text := fmt.Appendf(nil, "text %d", r.IntN(1e9))
	e := db.Edit(name)
	switch n := r.IntN(10); {
	case e == nil && n < 4:
		db.AddString(name, text, false)
	case e == nil:
		db.Add(name, new(zset.Set)).Value().(*zset.Set).Add(string(text), r.Float64())
	case n == 0:
		db.Delete(name)
	case n == 1:
		db.SetDeadline(e, int64(later+r.IntN(1000)))
	case n == 2:
		db.SetDeadline(e, 0)
	case n == 3:
		db.Move(e, db, fmt.Appendf(nil, "key %d", r.IntN(3000)))
	default:
		if s, ok := e.Value().(*zset.Set); ok {
			s.Add(string(text), r.Float64())
		} else {
			db.AppendString(e, text)
		}
	}
}
