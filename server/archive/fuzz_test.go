package archive_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/archive"
	"github.com/zsetd/zsetd/server/internal/values/journal"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/servertest/rerun"
	"github.com/zsetd/zsetd/snapshot"
)

// fuzzFile returns the path for files that are loaded once.
func fuzzFile(f *testing.F) string {
	dir := f.TempDir()
	if d, err := os.MkdirTemp("/dev/shm", "fuzz"); err == nil {
		dir = d
		f.Cleanup(func() { os.RemoveAll(d) })
	}
	return filepath.Join(dir, "data.db")
}

// loadFuzzed loads a file, which ends with sound data or an error.
func loadFuzzed(t *testing.T, path string) (*keyspace.Keyspace, error) {
	t.Helper()
	ks := keyspace.New(16, keyspace.Hooks{})
	l := archive.Loader{Keys: ks}
	hung := time.AfterFunc(time.Minute, func() { panic("hangs") })
	defer hung.Stop()
	file, err := l.Open(path)
	if err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
	if err := ks.Check(); err != nil {
		t.Error(err)
	}
	return ks, nil
}

// FuzzRecords loads files with valid checksums and arbitrary records: each is
// refused, or the data loaded are sound. The input is a journal, after two bytes
// with its length, and the operations of a base.
func FuzzRecords(f *testing.F) {
	rerun.Skip(f)
	path := filepath.Join(f.TempDir(), "sample.db")
	sample(f, path)
	seed := func(journal, ops []byte) {
		f.Add(slices.Concat(binary.LittleEndian.AppendUint16(nil, uint16(len(journal))), journal, ops))
	}
	n := 0
	if _, err := snapshot.Read(path, snapshot.Visitor{
		Journal: func(_ uint64, records []byte) error {
			for len(records) > 0 {
				_, rest, err := journal.NextRecord(records)
				if err != nil {
					return err
				}
				if one := records[:len(records)-len(rest)]; len(one) < 500 {
					if n++; n < 100 {
						seed(one, nil)
					}
				}
				records = rest
			}
			return nil
		},
		Base: func(_ uint64, _ []byte, _ uint64, _, _ int, ops []byte) error {
			seed(nil, ops[:min(len(ops), 1000)])
			return nil
		},
	}); err != nil {
		f.Fatal(err)
	}
	at := fuzzFile(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 2 {
			return
		}
		journal := int(binary.LittleEndian.Uint16(data))
		data = data[2:]
		journal = min(journal, len(data))
		os.Remove(at)
		file, err := snapshot.Create(at)
		if err != nil {
			t.Fatal(err)
		}
		chunks := func(b []byte) func(func([]byte) bool) { return func(yield func([]byte) bool) { yield(b) } }
		c := &snapshot.Checkpoint{Spaces: []uint64{1, 2, 3}, LastSpace: 3, Time: time.Unix(1e9, 0)}
		c.Bases = []snapshot.Base{
			{Space: 1, Key: "base", Chunks: chunks(data[journal:])},
			{Space: 2, Key: "halves", Chunks: slices.Values([][]byte{data[journal : (journal+len(data))/2], data[(journal+len(data))/2:]})},
		}
		if _, err := file.Write(c); err != nil {
			t.Fatal(err)
		}
		c.Bases, c.Journal = nil, chunks(data[:journal])
		if _, err := file.Write(c); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(file.Publish(at), file.Close()); err != nil {
			t.Fatal(err)
		}
		loadFuzzed(t, at)
	})
}

// FuzzDamagedFile loads files with arbitrary changes: each is refused, or all its
// data are loaded; and the salvaged data are sound. The input is changes, of seven
// bytes each: offset, length, kind of change, and argument.
func FuzzDamagedFile(f *testing.F) {
	rerun.Skip(f)
	path := filepath.Join(f.TempDir(), "sample.db")
	srv := open(f, path)
	for i := range 40 {
		do(f, srv, "ZADD", "z", i, i*i)
		do(f, srv, "HSET", "h", i, i*i)
		do(f, srv, "RPUSH", "l", i)
		do(f, srv, "SET", i, "text")
		if i%10 == 0 {
			do(f, srv, "SAVE")
		}
	}
	do(f, srv, "SADD", "s", "a", "b", 3)
	do(f, srv, "XADD", "x", "1-1", "a", "b")
	do(f, srv, "SAVE")
	srv.Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	at := fuzzFile(f)
	saved := at + ".saved"
	keys := func(t *testing.T, ks *keyspace.Keyspace) (n int) {
		for _, db := range ks.DBs() {
			n += db.Len()
		}
		return n
	}
	f.Add([]byte{})
	f.Add([]byte{0, 0, 16, 4, 0, 0xff, 0})
	f.Add([]byte{0, 0x20, 0x18, 1, 1, 0x10, 0, 0, 0x30, 0x18, 1, 1, 0x10, 0})
	f.Add([]byte{0, 0x50, 0, 1, 3, 0, 0})
	f.Fuzz(func(t *testing.T, changes []byte) {
		b := bytes.Clone(whole)
		for ; len(changes) >= 7; changes = changes[7:] {
			off := (int(changes[0])<<16 | int(changes[1])<<8 | int(changes[2])) % len(b)
			n := min(int(changes[3])+1, len(b)-off)
			x := changes[5]
			switch part := b[off : off+n]; changes[4] % 5 {
			case 0:
				for i := range part {
					part[i] ^= x
				}
			case 1:
				for i := range part {
					part[i] = x
				}
			case 2: // copied from elsewhere
				copy(part, b[int(x)*4096%len(b):])
			case 3: // truncated
				b = b[:max(off, 1)]
			case 4: // a page copied from elsewhere
				copy(b[off&^4095:min(len(b), off&^4095+4096)], b[int(x)*4096%len(b):])
			}
		}
		if err := os.WriteFile(at, b, 0o600); err != nil {
			t.Fatal(err)
		}
		ks, err := loadFuzzed(t, at)
		if err == nil {
			if n := keys(t, ks); n != 45 {
				t.Fatalf("%d keys are left, and no word of it", n)
			}
			return
		}
		os.Remove(saved)
		if _, err := archive.Salvage(at, saved, nil); err == nil {
			if _, err := loadFuzzed(t, saved); err != nil {
				t.Fatalf("what was saved: %v", err)
			}
		}
	})
}
