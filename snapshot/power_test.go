package snapshot

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The least number of power losses to try:
//
//	go test ./snapshot -run PowerLoss -v -faults.n 2000
var faults = flag.Int("faults.n", 200, "how many faults to try")

// cutter makes checkpoints of all kinds, in any order that is permitted.
type cutter struct {
	rng     *rand.Rand
	named   map[string]uint64 // by generation of the journals in the file: the last generation that names the key
	gen     uint64
	created time.Time
	file    *File // that the checkpoints are for; nil if each of them has a generation of its own
	logs    bool  // checkpoints may be appended to the log
}

func (m *cutter) key() string { return fmt.Sprint("key:", m.rng.IntN(60)) }

func (m *cutter) bytes(limit int) []byte {
	b := make([]byte, 1+m.rng.IntN(limit))
	for i := range b {
		b[i] = byte(m.rng.Uint32())
	}
	return b
}

func (m *cutter) base(key string) Base {
	b := Base{Space: 1, Key: key}
	if m.rng.IntN(5) > 0 {
		var chunks [][]byte
		for range 1 + m.rng.IntN(3) {
			chunks = append(chunks, m.bytes(6000))
		}
		b.Chunks = slices.Values(chunks)
	}
	return b
}

func (m *cutter) next() *Checkpoint {
	m.gen++
	c := &Checkpoint{Spaces: []uint64{1, 2}, LastSpace: 2, Time: m.created.Add(time.Duration(m.gen) * time.Second), Log: m.logs}
	if m.rng.IntN(8) == 0 && len(m.named) > 0 { // all journals are replaced by bases
		for _, key := range slices.Sorted(maps.Keys(m.named)) {
			c.Bases = append(c.Bases, m.base(key))
		}
		c.Forget = m.gen - 1
		if m.file != nil {
			c.Forget = m.file.Manifest().Generation
		}
		clear(m.named)
		return c
	}
	if m.rng.IntN(4) > 0 {
		var parts [][]byte
		for range m.rng.IntN(4) {
			m.named[m.key()] = m.gen
			parts = append(parts, m.bytes(20000))
		}
		c.Journal = slices.Values(parts)
	}
	for range m.rng.IntN(3) {
		key := m.key()
		if !slices.ContainsFunc(c.Bases, func(b Base) bool { return b.Key == key }) {
			c.Bases = append(c.Bases, m.base(key))
		}
	}
	return c
}

// content returns everything that a file holds, as text.
func content(path string) (string, error) {
	sum := fnv.New64a()
	m, err := Read(path, Visitor{
		Journal: func(generation uint64, records []byte) error {
			fmt.Fprintf(sum, "j %d %q\n", generation, records)
			return nil
		},
		Base: func(space uint64, key []byte, generation uint64, i, chunks int, ops []byte) error {
			fmt.Fprintf(sum, "b %d %q %d %d %d %q\n", space, key, generation, i, chunks, ops)
			return nil
		},
	})
	return fmt.Sprintf("generation %d at %v: %x", m.Generation, m.Time.UnixNano(), sum.Sum64()), err
}

// The power fails in the middle of a write. Sectors that were written and not
// synced are on the disk or not, in any combination; the file that is found
// afterwards is sound, in the state before the write or after it.
//
// The order of the writes of a transaction is bbolt's: a growing file is set to its new
// length and synced, the pages are written, fdatasync, one of the two metas is written,
// fdatasync. A group of the log is one write and one fdatasync. strace shows this order:
//
//	ftruncate(5, 262144)  fsync(5)
//	pwrite64(5, "\3…", 4096, 12288)  pwrite64(5, "\10…", 4096, 32768)  pwrite64(5, "\37…", 40960, 126976)
//	fdatasync(5)  pwrite64(5, "\0…", 4096, 0)  fdatasync(5)
//	pwrite64(5, "\264…", 1536, 172032)  fdatasync(5)
//
// and the sectors written are those that differ between the file before and after.
func TestPowerLoss(t *testing.T) {
	skipRace(t)
	for _, logs := range []bool{false, true} {
		t.Run(fmt.Sprintf("log=%v", logs), func(t *testing.T) { powerLoss(t, logs) })
	}
}

func powerLoss(t *testing.T, logs bool) {
	dir := t.TempDir()
	path, lost := filepath.Join(dir, "power.db"), filepath.Join(dir, "lost.db")
	rng := rand.New(rand.NewPCG(4, 2))
	const sector = 512
	tried, losses := map[string]int{}, 0
	for losses < *faults {
		os.Remove(path)
		f, err := Create(path + ".new")
		if err != nil {
			t.Fatal(err)
		}
		m := cutter{rng: rng, named: map[string]uint64{}, created: time.Unix(1700000000, 0), file: f, logs: logs}
		write := func() {
			t.Helper()
			if _, err := f.Write(m.next()); err != nil {
				t.Fatal(err)
			}
		}
		write()
		if err := f.Publish(path); err != nil {
			t.Fatal(err)
		}
		for range 40 {
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			was, err := content(path)
			if err != nil {
				t.Fatal(err)
			}
			groups := f.log.groups
			write()
			appended := f.log.groups > groups
			after, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			is, err := content(path)
			if err != nil {
				t.Fatal(err)
			}
			grown := append(slices.Clone(before), make([]byte, len(after)-len(before))...)
			var data, meta []int // the sectors that differ
			for at := 0; at < len(after); at += sector {
				if bytes.Equal(grown[at:at+sector], after[at:at+sector]) {
					continue
				}
				if at < 2*pageSize {
					meta = append(meta, at)
				} else {
					data = append(data, at)
				}
			}
			if len(meta) != 1 && !appended || len(data) == 0 || appended && (len(meta) > 0 || len(grown) > len(before)) {
				t.Fatalf("a write (appended: %v) has written %d sectors of metas and %d others, and the file has %d bytes after %d",
					appended, len(meta), len(data), len(after), len(before))
			}
			try := func(what string, file []byte, sectors []int) {
				t.Helper()
				if appended {
					what += ", of a group"
				}
				want := was
				if len(sectors) == len(data)+len(meta) {
					want = is
				}
				file = slices.Clone(file)
				for _, at := range sectors {
					copy(file[at:at+sector], after[at:at+sector])
				}
				if err := os.WriteFile(lost, file, 0o600); err != nil {
					t.Fatal(err)
				}
				got, err := content(lost)
				if err != nil || got != want {
					t.Fatalf("%s: %s, %v, want %s", what, got, err, want)
				}
				tried[what]++
				losses++
				// The file that is found can be written to.
				if rng.IntN(50) == 0 {
					continueAfterLoss(t, rng, lost)
				}
			}
			some := slices.DeleteFunc(slices.Clone(data), func(int) bool { return rng.IntN(2) == 0 })
			few := slices.DeleteFunc(slices.Clone(data), func(int) bool { return rng.IntN(50) != 0 })
			most := slices.DeleteFunc(slices.Clone(data), func(at int) bool { return slices.Contains(few, at) })
			if len(after) > len(before) {
				try("the file has not grown yet", before, nil)
				try("the file has grown", grown, nil)
			}
			try("some sectors are written", grown, some)
			try("few sectors are written", grown, few)
			try("most sectors are written", grown, most)
			if appended {
				try("all but the first is written", grown, data[1:])
				try("all but the last is written", grown, data[:len(data)-1])
			} else {
				try("all but the meta is written", grown, data)
			}
			try("all is written", grown, append(slices.Clone(data), meta...))
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, what := range slices.Sorted(maps.Keys(tried)) {
		t.Logf("%4d times %s: opened in a committed state", tried[what], what)
	}
	if n := tried["some sectors are written, of a group"]; logs != (n > 0) {
		t.Errorf("%d groups were lost", n)
	}
}

// continueAfterLoss opens a file, writes to it, and verifies that it holds its journals and
// those written.
func continueAfterLoss(t *testing.T, rng *rand.Rand, path string) {
	t.Helper()
	want := journals(t, path)
	f, err := Open(path, Visitor{})
	if err != nil {
		t.Fatal(err)
	}
	c := Checkpoint{Spaces: f.Manifest().Spaces, LastSpace: f.Manifest().LastSpace, Log: true}
	for i := range 1 + rng.IntN(4) {
		record := bytes.Repeat([]byte{byte('a' + i)}, 1+rng.IntN(2000))
		c.Journal = slices.Values([][]byte{record})
		if _, err := f.Write(&c); err != nil {
			t.Fatal(err)
		}
		want += string(record)
		if got := journals(t, path); got != want {
			t.Fatalf("after a loss and write %d there are %d bytes of journals, want %d", i, len(got), len(want))
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// journals returns the records of all journals of a file, those in the log among them.
func journals(t *testing.T, path string) string {
	t.Helper()
	var all []byte
	if _, err := Read(path, Visitor{Journal: func(_ uint64, records []byte) error {
		all = append(all, records...)
		return nil
	}}); err != nil {
		t.Fatal(err)
	}
	return string(all)
}

// The power fails before a file is published: it has any part of the bytes written
// to it, and the file that it was to replace is unchanged. After the rename the
// name is that of one file or the other, both synced.
func TestPowerLossBeforePublish(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "p.db")
	rng := rand.New(rand.NewPCG(4, 3))
	m := cutter{rng: rng, named: map[string]uint64{}, created: time.Unix(1700000000, 0)}
	make := func(cuts int) *File {
		t.Helper()
		f, err := Create(path + ".new")
		if err != nil {
			t.Fatal(err)
		}
		for range cuts {
			if _, err := f.Write(m.next()); err != nil {
				t.Fatal(err)
			}
		}
		return f
	}
	old := make(5)
	if err := old.Publish(path); err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	was, err := content(path)
	if err != nil {
		t.Fatal(err)
	}
	m = cutter{rng: rng, named: map[string]uint64{}, created: time.Unix(1800000000, 0)}
	fresh := make(5)
	whole, err := os.ReadFile(path + ".new")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := content(path); got != was || err != nil {
		t.Fatal(got, err)
	}
	// The remains of a file that was never synced are recognized as such.
	refused := 0
	lost := filepath.Join(dir, "lost.db")
	for range 40 {
		part := slices.Clone(whole[:rng.IntN(len(whole)+1)])
		for at := 0; at+512 <= len(part); at += 512 {
			if rng.IntN(3) == 0 {
				clear(part[at : at+512])
			}
		}
		if err := os.WriteFile(lost, part, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := content(lost); err != nil {
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrForeign) {
				t.Error(err)
			}
			refused++
		}
	}
	if refused != 40 {
		t.Errorf("%d of 40 remains of an unsynced file were refused", refused)
	}
	is, err := content(path + ".new")
	if err != nil {
		t.Fatal(err)
	}
	if err := fresh.Publish(path); err != nil {
		t.Fatal(err)
	}
	if got, err := content(path); got != is || err != nil {
		t.Fatal(got, err)
	}
	if err := fresh.Close(); err != nil {
		t.Fatal(err)
	}
}

// After a failed fsync the file is suspect and refuses writes; after a lack of
// space it is unchanged.
func TestFailures(t *testing.T) {
	eio := &os.PathError{Op: "write", Path: "p", Err: syscall.EIO}
	full := &os.PathError{Op: "write", Path: "p", Err: syscall.ENOSPC}
	synced := &os.PathError{Op: "sync", Path: "p", Err: syscall.ENOSPC}
	m := cutter{rng: rand.New(rand.NewPCG(4, 4)), named: map[string]uint64{}}
	for _, test := range []struct {
		err     error
		suspect bool
	}{{full, false}, {eio, true}, {synced, true}, {errors.New("any"), true}} {
		path := filepath.Join(t.TempDir(), "f.db")
		f, err := Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(m.next()); err != nil {
			t.Fatal(err)
		}
		if err := f.Publish(path); err != nil {
			t.Fatal(err)
		}
		was, _ := content(path)
		f.fault = func(string) error { return test.err }
		if _, err := f.Write(m.next()); !errors.Is(err, test.err) && !strings.Contains(err.Error(), path) {
			t.Errorf("%v: %v", test.err, err)
		}
		if got, err := content(path); got != was || err != nil {
			t.Errorf("%v: the file has changed: %v", test.err, err)
		}
		f.fault = nil
		if suspect := f.Suspect() != nil; suspect != test.suspect {
			t.Errorf("%v: suspect: %v", test.err, suspect)
		}
		if _, err := f.Write(m.next()); (err != nil) != test.suspect {
			t.Errorf("%v, and then: %v", test.err, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// If any step fails while a file replaces another, one of the two is there, whole,
// under the name.
func TestPublishFails(t *testing.T) {
	for _, op := range []string{"sync", "rename", "sync directory"} {
		dir := t.TempDir()
		path := filepath.Join(dir, "f.db")
		m := cutter{rng: rand.New(rand.NewPCG(4, 5)), named: map[string]uint64{}}
		var contents []string
		for i := range 2 {
			f, err := Create(path + ".new")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Write(m.next()); err != nil {
				t.Fatal(err)
			}
			is, err := content(path + ".new")
			if err != nil {
				t.Fatal(err)
			}
			contents = append(contents, is)
			if i == 1 {
				f.fault = func(o string) error {
					if o == op {
						return syscall.EIO
					}
					return nil
				}
			}
			if err := f.Publish(path); (err != nil) != (i == 1) || (f.Suspect() != nil) != (i == 1) {
				t.Fatal(op, err, f.Suspect())
			}
			if i == 0 {
				err = f.Close()
			} else {
				err = f.Discard()
			}
			if err != nil {
				t.Fatal(op, err)
			}
		}
		want := contents[0]
		if op == "sync directory" {
			want = contents[1]
		}
		if got, err := content(path); got != want || err != nil {
			t.Errorf("%s: %s, %v; want %s", op, got, err, want)
		}
		if _, err := os.Stat(path + ".new"); err == nil {
			t.Errorf("%s: the other file is still there", op)
		}
	}
}
