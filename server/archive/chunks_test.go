package archive_test

import (
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/archive"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/snapshot"
	"github.com/zsetd/zsetd/zset"
)

// writeChunks makes a file of keys of database 0, whose values have the given chunks.
func writeChunks(t *testing.T, values map[string]iter.Seq[[]byte]) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "f.db")
	f, err := snapshot.Beside(path)
	if err != nil {
		t.Fatal(err)
	}
	c := snapshot.Checkpoint{Spaces: []uint64{1}, LastSpace: 1, Time: time.Unix(1, 0), Keys: []int64{int64(len(values))}}
	for key, chunks := range values {
		c.Bases = append(c.Bases, snapshot.Base{Space: 1, Key: key, Chunks: chunks})
	}
	if _, err := f.Write(&c); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Publish(path), f.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// valueOf returns a sorted set of n members, and a string for each seventh.
func valueOf(i, n int) any {
	if i%7 == 0 {
		return keyspace.NewString([]byte(strings.Repeat("x", n)))
	}
	s := new(zset.Set)
	for m := range n {
		s.Add(fmt.Sprintf("member:%d of %d", m*387421%n, i), float64(m))
	}
	return s
}

// TestLoadChunks loads values of no, one and many chunks beside each other.
func TestLoadChunks(t *testing.T) {
	values, want := map[string]iter.Seq[[]byte]{}, map[string]any{}
	for i, n := range []int{1, 3, 700, 40_000, 2, 5000, 1, 300_000, 90_000, 128, 129, 10_000, 1, 600_000} {
		for k := range 50 {
			key := fmt.Sprintf("key:%d:%d", k%3*1000, 100*i+k)
			if k > 0 {
				n = min(n, 300)
			}
			want[key] = valueOf(i, n)
			values[key] = keyspace.Chunks(want[key], 0)
		}
	}
	keys := keyspace.New(1, keyspace.Hooks{})
	l := archive.Loader{Keys: keys}
	if err := l.Read(writeChunks(t, values)); err != nil {
		t.Fatal(err)
	}
	if l.Loaded != int64(len(want)) || keys.DB(0).Len() != len(want) {
		t.Fatalf("%d keys, %d in the database, want %d", l.Loaded, keys.DB(0).Len(), len(want))
	}
	for key, value := range want {
		e := keys.DB(0).Stored([]byte(key))
		if e == nil {
			t.Fatalf("%q is missing", key)
		}
		got, all := slices.Collect(keyspace.Chunks(e.Value(), e.Deadline())), slices.Collect(keyspace.Chunks(value, 0))
		if fmt.Sprintf("%x", slices.Concat(got...)) != fmt.Sprintf("%x", slices.Concat(all...)) {
			t.Fatalf("%q differs", key)
		}
	}
	if err := keys.Check(); err != nil {
		t.Fatal(err)
	}
}

// An invalid chunk among many others ends the loading, and leaves the key out of a salvage.
func TestInvalidChunk(t *testing.T) {
	bad := func(yield func([]byte) bool) {
		i := 0
		for ops := range keyspace.Chunks(valueOf(1, 20_000), 0) {
			if i++; i == 3 {
				ops = []byte("?")
			}
			if !yield(ops) {
				return
			}
		}
	}
	path := writeChunks(t, map[string]iter.Seq[[]byte]{"a": keyspace.Chunks(valueOf(1, 10), 0), "bad": bad, "z": keyspace.Chunks(valueOf(1, 20_000), 0)})
	l := archive.Loader{Keys: keyspace.New(1, keyspace.Hooks{})}
	if err := l.Read(path); !errors.Is(err, snapshot.ErrDamaged) || !strings.Contains(err.Error(), `"bad"`) {
		t.Fatal(err)
	}
	s, err := archive.Salvage(path, filepath.Join(t.TempDir(), "salvaged.db"), nil)
	if err != nil || s.Keys != 2 || len(s.Lost) != 1 || s.Lost[0].Key != "bad" {
		t.Fatalf("%+v, %v", s, err)
	}
}

// A loading ends where its Progress returns an error, even between the chunks of a value.
func TestLoadStopped(t *testing.T) {
	path := writeChunks(t, map[string]iter.Seq[[]byte]{"large": keyspace.Chunks(valueOf(1, 200_000), 0)})
	stopped := errors.New("stopped by the test")
	calls := 0
	l := archive.Loader{Keys: keyspace.New(1, keyspace.Hooks{}), Progress: func(done, total int64) error {
		if calls++; calls == 5 {
			return stopped
		}
		return nil
	}}
	if err := l.Read(path); !errors.Is(err, stopped) || calls != 5 {
		t.Errorf("%v after %d calls", err, calls)
	}
}
