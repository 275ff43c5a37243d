package snapshot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// logFile makes a published file whose log is empty.
func logFile(t testing.TB) (f *File, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "l.db")
	f, err := Beside(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Publish(path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	logWrite(t, f, "")
	return f, path
}

// logWrite writes records that may go to the log.
func logWrite(t testing.TB, f *File, records string) {
	t.Helper()
	if _, err := f.Write(logged(records)); err != nil {
		t.Fatal(err)
	}
}

// logged is a checkpoint that may be appended to the log.
func logged(records string) *Checkpoint {
	c := &Checkpoint{Log: true, Time: time.Unix(1700000000, 1)}
	if records != "" {
		c.Journal = slices.Values([][]byte{[]byte(records)})
	}
	return c
}

// TestLog appends checkpoints, opens the file, appends more, and removes the log: the records
// are there each time, in order.
func TestLog(t *testing.T) {
	f, path := logFile(t)
	want := ""
	write := func(n int, letter string) {
		t.Helper()
		records := strings.Repeat(letter, n)
		logWrite(t, f, records)
		if want += records; journals(t, path) != want {
			t.Fatalf("after %d bytes more the file has other records", n)
		}
	}
	verify := func(groups, format int) {
		t.Helper()
		m, err := Read(path, Visitor{})
		if err != nil || m.Format != format || f.log.groups != uint32(groups) {
			t.Fatalf("%v; format %d, want %d; %d groups, want %d", err, m.Format, format, f.log.groups, groups)
		}
		if !m.Time.Equal(f.Manifest().Time) || fmt.Sprint(m.Stream) != fmt.Sprint(f.Manifest().Stream) {
			t.Fatalf("the manifest read is of %v, %v, not %v, %v", m.Time, m.Stream, f.Manifest().Time, f.Manifest().Stream)
		}
	}
	verify(0, logFormat)
	for i, n := range []int{1, 400, blockRoom, blockRoom + 1, 3 * blockRoom, 20_000} {
		write(n, string(rune('a'+i)))
	}
	verify(6, logFormat)
	generation := f.Manifest().Generation

	// The position in the stream and the time are those of the last group.
	c := logged("s")
	c.Time, c.Stream = time.Unix(1800000000, 7), &Stream{"abc", 1 << 40, 3}
	if _, err := f.Write(c); err != nil {
		t.Fatal(err)
	}
	want += "s"
	if m := f.Manifest(); !m.Time.Equal(c.Time) || *m.Stream != *c.Stream || m.Generation != generation {
		t.Errorf("after a group with a position: %+v", m)
	}
	verify(7, logFormat)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}

	// Opening a file does not change it. The next write moves the groups.
	before, _ := os.ReadFile(path)
	f, err := Open(path, Visitor{})
	if err != nil {
		t.Fatal(err)
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Error("to open the file has changed it")
	}
	if m := f.Manifest(); !m.Time.Equal(c.Time) || *m.Stream != *c.Stream {
		t.Errorf("after opening: %+v", m)
	}
	verify(7, logFormat)
	write(10, "x")
	verify(0, logFormat)
	write(10, "y")
	verify(1, logFormat)

	// Other databases, a base, or no room in the log demand a transaction.
	c = logged("z")
	c.Spaces, c.LastSpace = []uint64{1}, 1
	if _, err := f.Write(c); err != nil {
		t.Fatal(err)
	}
	want += "z"
	verify(0, logFormat)
	c.Spaces, c.LastSpace, c.Journal = []uint64{1, 2}, 2, nil
	for range 2 {
		if _, err := f.Write(c); err != nil {
			t.Fatal(err)
		}
		verify(0, logFormat)
		c.Spaces = []uint64{2, 1} // as SWAPDB does
	}
	for range 2 {
		c.Journal = slices.Values([][]byte{bytes.Repeat([]byte("v"), 600_000)})
		if _, err := f.Write(c); err != nil {
			t.Fatal(err)
		}
		want += strings.Repeat("v", 600_000)
	}
	verify(0, logFormat) // the second had no room beside the first
	c.Journal = slices.Values([][]byte{bytes.Repeat([]byte("w"), 2_000_000)})
	if _, err := f.Write(c); err != nil {
		t.Fatal(err)
	}
	want += strings.Repeat("w", 2_000_000)
	verify(0, logFormat)

	// Without Log the log disappears.
	c.Log, c.Journal = false, nil
	if _, err := f.Write(c); err != nil {
		t.Fatal(err)
	}
	verify(0, plainFormat)
	if got := journals(t, path); got != want {
		t.Errorf("%d bytes of records, want %d", len(got), len(want))
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// smallLog returns the value of a log of some blocks behind the checkpoint of generation 7,
// with its groups, and blocks behind them: one of an earlier generation, and unused ones.
func smallLog(t testing.TB) (value []byte, want []group, ends []int) {
	t.Helper()
	value = newLog()[:logHead]
	rng := rand.New(rand.NewPCG(8, 8))
	b := block{generation: 7}
	for i, n := range []int{10, 2000, 100, 700, 1} {
		g := group{time: time.Unix(int64(i), 0).UTC(), records: make([]byte, n)}
		for i := range g.records {
			g.records[i] = byte(rng.Uint32())
		}
		if i%2 == 1 {
			g.stream = &Stream{"id", int64(i), i}
		}
		payload, err := g.appendHead(nil)
		if err != nil {
			t.Fatal(err)
		}
		b.group++
		value = appendBlocks(value, b, append(payload, g.records...))
		want = append(want, g)
		b.index = uint32((len(value) - logHead) / blockSize)
		ends = append(ends, int(b.index))
	}
	b.generation, b.group = 6, 1
	value = appendBlocks(value, b, []byte("old"))
	return append(value, make([]byte, 2*blockSize)...), want, ends
}

func sameGroups(a, b []group) bool {
	return slices.EqualFunc(a, b, func(a, b group) bool {
		return a.time.Equal(b.time) && fmt.Sprint(a.stream) == fmt.Sprint(b.stream) && bytes.Equal(a.records, b.records)
	})
}

// TestFlippedBitsOfLog flips each bit of a log. Each is detected, also where the log is not in
// use.
func TestFlippedBitsOfLog(t *testing.T) {
	value, want, _ := smallLog(t)
	if c, err := parseLog(value, 7); err != nil || c.remains || !sameGroups(c.groups, want) {
		t.Fatal(err, c)
	}
	for bit := range len(value) * 8 {
		value[bit/8] ^= 1 << (bit % 8)
		if _, err := parseLog(value, 7); !errors.Is(err, ErrDamaged) {
			t.Fatalf("bit %d of byte %d: %v", bit%8, bit/8, err)
		}
		value[bit/8] ^= 1 << (bit % 8)
	}
	for size := range len(value) {
		if (size-logHead)%blockSize != 0 || size == logHead {
			if _, err := parseLog(value[:size], 7); !errors.Is(err, ErrDamaged) {
				t.Errorf("cut to %d bytes: %v", size, err)
			}
		}
	}
	if c, err := parseLog(value, 8); err != nil || len(c.groups) > 0 || c.remains { // the checkpoint was written, and the log is empty
		t.Errorf("behind a later checkpoint: %v, %d groups", err, len(c.groups))
	}
	if _, err := parseLog(value, 5); !errors.Is(err, ErrDamaged) { // the checkpoint is lost
		t.Errorf("behind an earlier checkpoint: %v", err)
	}
}

// TestLostSectorsOfLog has sectors of a log as they were before they were written. In all groups
// but the last that is damage, for a later group was written only when they were on the disk.
// In the last group it is a power failure.
func TestLostSectorsOfLog(t *testing.T) {
	value, want, ends := smallLog(t)
	old := appendBlock(nil, block{generation: 6, index: 3, group: 9, first: true, payload: []byte("old")})
	for i := range ends[len(ends)-1] {
		for _, before := range [][]byte{make([]byte, blockSize), old} {
			file := bytes.Clone(value)
			copy(file[logHead+i*blockSize:], before)
			c, err := parseLog(file, 7)
			switch {
			case i < ends[len(ends)-2]:
				if !errors.Is(err, ErrDamaged) {
					t.Errorf("block %d: %v", i, err)
				}
			case err != nil || !sameGroups(c.groups, want[:len(want)-1]):
				t.Errorf("block %d, of the last group: %v", i, err)
			}
		}
	}
	// Any combination of the sectors of the last group is the log before it or with it.
	g := group{time: time.Unix(9, 0), records: bytes.Repeat([]byte("last"), 600)}
	payload, err := g.appendHead(nil)
	if err != nil {
		t.Fatal(err)
	}
	at := ends[len(ends)-1]
	blocks := appendBlocks(nil, block{generation: 7, index: uint32(at), group: uint32(len(want) + 1)}, append(payload, g.records...))
	n := len(blocks) / blockSize
	for written := range 1 << n {
		file := append(bytes.Clone(value), make([]byte, n*blockSize)...)
		for i := range n {
			if written>>i&1 != 0 {
				copy(file[logHead+(at+i)*blockSize:], blocks[i*blockSize:][:blockSize])
			}
		}
		c, err := parseLog(file, 7)
		whole := written == 1<<n-1
		if err != nil || len(c.groups) != len(want)+map[bool]int{true: 1}[whole] || c.remains != (written > 0 && !whole) {
			t.Fatalf("sectors %b of %d: %v, %d groups, remains %v", written, n, err, len(c.groups), c.remains)
		}
	}
}

// TestCopyWhileAppending copies a file while groups are appended. Each copy has all that was
// written before the copy began, and is a prefix of what was written.
func TestCopyWhileAppending(t *testing.T) {
	f, path := logFile(t)
	var lock sync.Mutex
	var all []byte
	done := make(chan error)
	stop := make(chan struct{})
	go func() {
		defer close(done)
		rng := rand.New(rand.NewPCG(3, 1))
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			record := fmt.Append(nil, i, strings.Repeat("x", rng.IntN(3000)), "\n")
			c := logged(string(record))
			if _, err := f.Write(c); err != nil {
				done <- err
				return
			}
			lock.Lock()
			all = append(all, record...)
			lock.Unlock()
		}
	}()
	for i := range 30 {
		lock.Lock()
		before := len(all)
		lock.Unlock()
		to := filepath.Join(t.TempDir(), "copy.db")
		if _, err := Backup(path, to, CopyOptions{}); err != nil {
			t.Fatal(err)
		}
		got := journals(t, to)
		if err := os.Remove(to); err != nil {
			t.Fatal(err)
		}
		lock.Lock()
		common := min(len(got), len(all)) // the last write may not be in all yet
		if len(got) < before || got[:common] != string(all[:common]) {
			t.Errorf("copy %d has %d bytes, of at least %d", i, len(got), before)
		}
		lock.Unlock()
	}
	close(stop)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// appendedTo is a file to which groups are appended while it is read: once when the part of a
// long read that is before the offset at is done, and once after a read of a block at block.
type appendedTo struct {
	*os.File
	at, block int64
	append    func()
	times     int
}

// ReadAt reads in two parts, or one.
func (f *appendedTo) ReadAt(p []byte, off int64) (int, error) {
	switch {
	case f.times == 0 && off < f.at && off+int64(len(p)) > f.at && len(p) > pageSize:
		n, err := f.File.ReadAt(p[:f.at-off], off)
		if err != nil {
			return n, err
		}
		f.times++
		f.append()
		m, err := f.File.ReadAt(p[n:], off+int64(n))
		return n + m, err
	case f.times == 1 && off == f.block && len(p) == blockSize:
		defer f.append()
		f.times++
	}
	return f.File.ReadAt(p, off)
}

// TestCopyDuringAppend has groups appended while the copy has passed the beginning of the first
// of them: the copy has all of them or none, and no later one without an earlier one.
func TestCopyDuringAppend(t *testing.T) {
	f, path := logFile(t)
	logWrite(t, f, "first")
	from, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	long := strings.Repeat("x", 2*blockRoom)
	blocks := f.log.at + logHead
	src := &appendedTo{from, blocks + 2*blockSize, blocks + 5*blockSize, func() {
		logWrite(t, f, long)
		logWrite(t, f, "last")
	}, 0}
	copied := filepath.Join(t.TempDir(), "copy.db")
	to, err := os.Create(copied)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	if whole, err := new(CopyOptions).copyOnce(src, to); err != nil || !whole || src.times != 2 {
		t.Fatal(err, whole, src.times)
	}
	if got := journals(t, copied); got != "first"+long+"last" {
		t.Errorf("the copy has %d bytes of records", len(got))
	}
}

// TestSalvageLog damages files with groups in their logs.
func TestSalvageLog(t *testing.T) {
	f, path := logFile(t)
	var want []string
	for i := range 20 {
		want = append(want, fmt.Sprint("<", i, strings.Repeat("r", i*200), ">"))
		logWrite(t, f, want[i])
	}
	at := int(f.log.at)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	salvaged := func(what string, damage func(file []byte)) (got []string, s Salvaged) {
		t.Helper()
		file := bytes.Clone(whole)
		damage(file)
		if err := readBytes(file); (err == nil) != (what == "nothing") {
			t.Errorf("%s: reading returns %v", what, err)
		}
		s, err := salvage(bytes.NewReader(file), int64(len(file)), Visitor{Journal: func(_ uint64, records []byte) error {
			if len(records) > 0 {
				got = append(got, string(records))
			}
			return nil
		}})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		return got, s
	}
	if got, s := salvaged("nothing", func([]byte) {}); !slices.Equal(got, want) || !s.Whole {
		t.Errorf("a sound file: %d groups, whole %v", len(got), s.Whole)
	}
	got, s := salvaged("a bit", func(file []byte) { file[at+logHead+5*blockSize+100] ^= 1 })
	if len(got) != len(want)-1 || s.Whole || len(s.Pages) != 1 || !strings.Contains(s.Pages[0].Error(), "block 5 of the log; found 19 of at least 20 groups") {
		t.Errorf("a damaged block: %d groups, whole %v, %v", len(got), s.Whole, s.Pages)
	}
	for what, damage := range map[string]func(file []byte){
		"the page of the log": func(file []byte) { clear(file[at-pageHeader-pageElement-len(logName):][:40]) },
		"the metas":           func(file []byte) { clear(file[:2*pageSize]) },
		"a meta":              func(file []byte) { file[pageHeader+20] ^= 1 },
		"the other meta":      func(file []byte) { file[pageSize+pageHeader+20] ^= 1 },
		"all but the log":     func(file []byte) { clear(file[:at/pageSize*pageSize]); clear(file[at+logSize:]) },
		"the manifests": func(file []byte) {
			for rest := file; ; {
				i := bytes.Index(rest, []byte(manifestName))
				if i < 0 {
					break
				}
				rest = rest[i+len(manifestName):]
				rest[0] ^= 1
			}
		},
	} {
		if got, s := salvaged(what, damage); !slices.Equal(got, want) || len(s.Pages) == 0 {
			t.Errorf("%s: %d of %d groups, %v", what, len(got), len(want), s.Pages)
		}
	}
}

// readBytes reads a file in memory.
func readBytes(file []byte) error {
	tree, err := openPages(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return err
	}
	r := &reading{}
	return tree.walk(r.record)
}

// TestFailuresOfLog has an append fail. For lack of space it can be repeated, and other errors
// make the file suspect; the groups that were confirmed before are there.
func TestFailuresOfLog(t *testing.T) {
	full := &os.PathError{Op: "write", Path: "p", Err: syscall.ENOSPC}
	for _, test := range []struct {
		op      string
		err     error
		suspect bool
	}{
		{"append", full, false},
		{"append", &os.PathError{Op: "write", Path: "p", Err: syscall.EIO}, true},
		{"sync log", syscall.EIO, true},
		{"sync log", syscall.ENOSPC, true},
		{"sync log", &os.PathError{Op: "sync", Path: "p", Err: syscall.ENOSPC}, true},
	} {
		f, path := logFile(t)
		logWrite(t, f, "first")
		f.fault = func(op string) error {
			if op == test.op {
				return test.err
			}
			return nil
		}
		if _, err := f.Write(logged("second")); !errors.Is(err, trimPath(test.err)) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v: %v", test.op, test.err, err)
		}
		if suspect := f.Suspect() != nil; suspect != test.suspect {
			t.Errorf("%s: %v: suspect: %v", test.op, test.err, suspect)
		}
		f.fault = nil
		_, err := f.Write(logged("third"))
		if (err != nil) != test.suspect {
			t.Errorf("%s: %v, and then: %v", test.op, test.err, err)
		}
		if got := journals(t, path); !test.suspect && got != "firstthird" || !strings.HasPrefix(got, "first") {
			t.Errorf("%s: %v: the file has %q", test.op, test.err, got)
		}
	}

	// A part of a group whose write has failed is not taken for one.
	f, path := logFile(t)
	logWrite(t, f, "first")
	f.fault = func(op string) error {
		if op != "append" {
			return nil
		}
		g := group{}
		payload, _ := g.appendHead(nil)
		b := block{generation: f.manifest.Generation, index: uint32(f.log.next), group: f.log.groups + 1}
		f.file.WriteAt(appendBlocks(nil, b, append(payload, "whole"...)), f.log.at+int64(logHead+f.log.next*blockSize))
		return full
	}
	if _, err := f.Write(logged("second")); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	f.fault = nil
	logWrite(t, f, "third")
	if got := journals(t, path); got != "firstthird" {
		t.Errorf("after a failed write that was whole: %q", got)
	}
	logWrite(t, f, "fourth")
	if got := journals(t, path); got != "firstthirdfourth" {
		t.Errorf("and later: %q", got)
	}
}

// TestLogChangedByOthers has another program write to a file between two appends, and during
// one.
func TestLogChangedByOthers(t *testing.T) {
	skipRace(t)
	for what, change := range map[string]func(path string, at int64) error{
		"a byte of the log": func(path string, at int64) error { return overwrite(path, at+logHead+30) },
		"a byte of a page":  func(path string, _ int64) error { return overwrite(path, 2*pageSize) },
		"truncated":         func(path string, at int64) error { return os.Truncate(path, at) },
		"removed":           func(path string, _ int64) error { return os.Remove(path) },
		"an earlier time": func(path string, at int64) error {
			return errors.Join(overwrite(path, 2*pageSize), os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)))
		},
	} {
		f, path := logFile(t)
		logWrite(t, f, "first")
		logWrite(t, f, "second")
		if err := change(path, f.log.at); err != nil {
			t.Fatal(err)
		}
		if err := writeLater(f, logged("third")); !errors.Is(err, ErrChanged) && !errors.Is(err, os.ErrNotExist) || f.Suspect() == nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	f, path := logFile(t)
	f.fault = func(op string) error {
		if op == "append" {
			return os.Truncate(path, f.log.at)
		}
		return nil
	}
	if _, err := f.Write(logged("first")); !errors.Is(err, ErrChanged) || f.Suspect() == nil {
		t.Errorf("truncated during an append: %v", err)
	}
	f, path = logFile(t)
	logWrite(t, f, "first")
	if err := os.Rename(path, path+".other"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeLater(f, logged("second")); !errors.Is(err, ErrReplaced) || f.Suspect() != nil {
		t.Errorf("replaced: %v", err)
	}
}

// writeLater writes a checkpoint when the latest check for changes no longer counts.
func writeLater(f *File, c *Checkpoint) error {
	f.checked = time.Time{}
	_, err := f.Write(c)
	return err
}

// TestAppendsUnchecked appends several times within the time for which a check counts: the file's
// own appends are no changes by others, for a later append and for a transaction.
func TestAppendsUnchecked(t *testing.T) {
	f, path := logFile(t)
	f.fault = func(op string) error {
		if op == "verify" {
			t.Error("the file is verified")
		}
		return nil
	}
	logWrite(t, f, "first")
	for range 5 {
		f.checked = time.Now().Add(time.Hour)
		logWrite(t, f, "unchecked")
		if f.mark.appendEnded.IsZero() {
			t.Error("the append is checked")
		}
		if err := f.Intact(); err != nil || f.timeChanges != 0 {
			t.Errorf("%v, %d changes of the time", err, f.timeChanges)
		}
		if err := writeLater(f, logged("checked")); err != nil || !f.mark.appendEnded.IsZero() || f.timeChanges != 0 {
			t.Errorf("%v, or unchecked", err)
		}
	}
	if want := "first" + strings.Repeat("uncheckedchecked", 5); journals(t, path) != want {
		t.Errorf("the file has %q", journals(t, path))
	}
}

// overwrite changes a byte of a file, later than the tick of the clock in which it was
// written.
func overwrite(path string, at int64) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	b := make([]byte, 1)
	if _, err := file.ReadAt(b, at); err != nil && err != io.EOF {
		return err
	}
	b[0] ^= 1
	if _, err := file.WriteAt(b, at); err != nil {
		return err
	}
	later := time.Now().Add(time.Second)
	return os.Chtimes(path, later, later)
}

// TestOneSyncPerGroup checks what the log is for: a write of it is one sync, and no commit.
func TestOneSyncPerGroup(t *testing.T) {
	f, _ := logFile(t)
	var ops []string
	f.fault = func(op string) error {
		ops = append(ops, op)
		return nil
	}
	logWrite(t, f, "first")
	if want := []string{"append", "sync log"}; !slices.Equal(ops, want) {
		t.Errorf("a write is %q, want %q", ops, want)
	}
}

// TestSalvageLogGenerations checks which blocks make a log if a file has those of several
// generations: without a manifest those of the highest.
func TestSalvageLogGenerations(t *testing.T) {
	var file []byte
	page := func(generations ...uint64) {
		at := len(file)
		for i, generation := range generations {
			g := group{time: time.Unix(1e9, 0)}
			payload, err := g.appendHead(nil)
			if err != nil {
				t.Fatal(err)
			}
			payload = fmt.Appendf(payload, "%d of %d", i, generation)
			file = appendBlocks(file, block{generation: generation, index: uint32(i), group: uint32(i + 1)}, payload)
		}
		file = append(file, make([]byte, at+pageSize-len(file))...)
	}
	page()
	page()
	page(3, 5, 4)
	page(5, 3, 5, 4)
	for generation, want := range map[uint64]string{
		0: "5: [0 of 5 1 of 5 2 of 5] 3",
		3: "3: [0 of 3 1 of 3] 2",
		4: "4: [2 of 4 3 of 4] 4",
		6: "0: [] 0",
	} {
		from, groups, last := salvageLog(bytes.NewReader(file), int64(len(file)), generation)
		var records []string
		for _, g := range groups {
			records = append(records, string(g.records))
		}
		if got := fmt.Sprint(from, ": ", records, " ", last); got != want {
			t.Errorf("generation %d: %s, want %s", generation, got, want)
		}
	}
}

// TestBadGroups checks that neither blocks nor groups are taken for sound of which a part is
// missing or impossible, though the checksum of the block is right.
func TestBadGroups(t *testing.T) {
	g := group{time: time.Unix(1, 0).UTC(), stream: &Stream{"id", 300, 5}, records: []byte("records")}
	whole, err := g.appendHead(nil)
	if err != nil {
		t.Fatal(err)
	}
	at := 1 + int(whole[0]) // the byte that says whether there is a position
	position := len(whole)
	whole = append(whole, g.records...)
	if got, ok := parseGroup(whole); !ok || !sameGroups([]group{got}, []group{g}) {
		t.Fatalf("%+v, %v", got, ok)
	}
	for n := range position {
		if got, ok := parseGroup(whole[:n]); ok {
			t.Errorf("the first %d bytes are the group %+v", n, got)
		}
	}
	bad := func(at int, b byte) []byte {
		changed := bytes.Clone(whole)
		changed[at] = b
		return changed
	}
	for what, payload := range map[string][]byte{
		"no time":            bad(1, 0xff),
		"a long time":        bad(0, 200),
		"neither 0 nor 1":    bad(at, 2),
		"a long ID":          bad(at+1, 200),
		"an endless length":  append(whole[:at+1:at+1], bytes.Repeat([]byte{0xff}, 11)...),
		"an endless offset":  append(whole[:at+4:at+4], bytes.Repeat([]byte{0xff}, 11)...),
		"an endless integer": append(whole[:position-1:position-1], bytes.Repeat([]byte{0xff}, 11)...),
	} {
		if got, ok := parseGroup(payload); ok {
			t.Errorf("%s: %+v", what, got)
		}
		value := appendBlocks(newLog()[:logHead], block{generation: 7, group: 1}, payload)
		if _, err := parseLog(value, 7); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "group 1 of the log") {
			t.Errorf("%s: %v", what, err)
		}
	}
	for length, want := range map[int]bool{0: true, blockRoom: true, blockRoom + 1: false, firstBlock - 1: false} {
		p := appendBlock(nil, block{generation: 7, group: 1})
		binary.BigEndian.PutUint16(p[20:], uint16(length))
		seal(p)
		if b, ok := parseBlock(p); ok != want || ok && len(b.payload) != length {
			t.Errorf("a block with %d bytes: %v, %d bytes", length, ok, len(b.payload))
		}
	}
}

// TestTimeOfCheckpoint has a checkpoint with a time that has no form. Nothing is written.
func TestTimeOfCheckpoint(t *testing.T) {
	for _, log := range []bool{false, true} {
		f, path := logFile(t)
		logWrite(t, f, "first")
		c := logged("second")
		c.Log, c.Time = log, time.Unix(1, 0).In(time.FixedZone("far", 3_000_000))
		if _, err := f.Write(c); err == nil || (f.Suspect() != nil) == log {
			t.Errorf("log %v: %v, suspect: %v", log, err, f.Suspect())
		}
		if got := journals(t, path); got != "first" {
			t.Errorf("log %v: the file has %q", log, got)
		}
	}
}

// TestFullLog fills the log to its last byte, and then appends a checkpoint without records: it
// is a transaction.
func TestFullLog(t *testing.T) {
	f, path := logFile(t)
	head, err := (&group{time: logged("").Time}).appendHead(nil)
	if err != nil {
		t.Fatal(err)
	}
	records := strings.Repeat("r", f.log.blocks*blockRoom-len(head))
	logWrite(t, f, records)
	if f.log.next != f.log.blocks || f.log.groups != 1 || f.Logged() != int64(f.log.blocks)*blockSize {
		t.Fatalf("%d of %d blocks, %d groups", f.log.next, f.log.blocks, f.log.groups)
	}
	logWrite(t, f, "")
	if f.log.next != 0 || f.log.groups != 0 {
		t.Errorf("%d blocks and %d groups after a checkpoint that has no room", f.log.next, f.log.groups)
	}
	logWrite(t, f, records+"r") // a byte more than there is room
	if f.log.groups != 0 || journals(t, path) != records+records+"r" {
		t.Errorf("%d groups, %d bytes of journals", f.log.groups, len(journals(t, path)))
	}
}

// TestAppendWithoutMark appends to a file whose state could not be read after the last
// transaction.
func TestAppendWithoutMark(t *testing.T) {
	f, path := logFile(t)
	f.mark = mark{}
	logWrite(t, f, "first")
	if f.log.groups != 1 || journals(t, path) != "first" {
		t.Errorf("%d groups, and the file has %q", f.log.groups, journals(t, path))
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := writeLater(f, logged("second")); !errors.Is(err, os.ErrNotExist) || f.Suspect() == nil {
		t.Errorf("without a file: %v", err)
	}
}

// TestFewerBlocks has a file with fewer blocks after a write than before. It is verified, some
// times in a row: if it is sound the write succeeds, and if it is not the file is suspect.
func TestFewerBlocks(t *testing.T) {
	for op, c := range map[string]func() *Checkpoint{
		"append": func() *Checkpoint { return logged("group") },
		"committed": func() *Checkpoint {
			c := logged("journal")
			c.Log = false
			return c
		},
	} {
		f, path := logFile(t)
		logWrite(t, f, "first")
		for n := range 2 * maxTimeChanges {
			f.mark.blocks += 1 << 20
			if err := writeLater(f, c()); err != nil || f.blockChanges != min(n+1, maxTimeChanges) {
				t.Errorf("%s: %v after %d verifications, in write %d", op, err, f.blockChanges, n)
			}
		}
		f.blockChanges = 0
		f.mark.blocks += 1 << 20
		f.fault = func(now string) error {
			if now != op {
				return nil
			}
			file, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			other, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			for at := range file { // one of them may be in a page that is free
				if bytes.HasPrefix(file[at:], []byte("first")) {
					_, err2 := other.WriteAt([]byte("F"), int64(at))
					err = errors.Join(err, err2)
				}
			}
			return errors.Join(err, other.Close())
		}
		if err := writeLater(f, c()); !errors.Is(err, ErrChanged) || f.Suspect() == nil {
			t.Errorf("%s: a record has changed meanwhile: %v", op, err)
		}
	}
}

// TestLogChangedUnnoticed has another program write to the log and set the time of the file
// back. The transaction that moves the groups into a journal detects it.
func TestLogChangedUnnoticed(t *testing.T) {
	for what, at := range map[string]int64{"the first group": logHead + 30, "the last group": logHead + blockSize + 30} {
		f, path := logFile(t)
		logWrite(t, f, "first")
		logWrite(t, f, "second")
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(overwrite(path, f.log.at+at), os.Chtimes(path, info.ModTime(), info.ModTime())); err != nil {
			t.Fatal(err)
		}
		c := logged("third")
		c.Log = false
		if _, err := f.Write(c); !errors.Is(err, ErrChanged) || f.Suspect() == nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	f, path := logFile(t)
	logWrite(t, f, "first")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := clearAt(path, f.log.at+logHead, info.ModTime()); err != nil {
		t.Fatal(err)
	}
	c := logged("second")
	c.Log = false
	if _, err := f.Write(c); !errors.Is(err, ErrChanged) || !strings.Contains(err.Error(), "the log has 0 groups, not 1") {
		t.Errorf("a group is gone: %v", err)
	}
}

// clearAt clears a block of a file, and sets its time.
func clearAt(path string, at int64, modified time.Time) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(make([]byte, blockSize), at)
	return errors.Join(err, file.Close(), os.Chtimes(path, modified, modified))
}

// TestAfterGroups checks that the records of groups come before those of the journal, and that
// none follows when the reader stops.
func TestAfterGroups(t *testing.T) {
	groups := []group{{records: []byte("a")}, {}, {records: []byte("b")}}
	for stop, want := range []string{"a", "ab", "abc", "abcd", "abcd"} {
		got := ""
		for records := range afterGroups(groups, chunksOf("c", "d")) {
			if got += string(records); len(got) > stop {
				break
			}
		}
		if got != want {
			t.Errorf("stopped after %d: %q, want %q", stop+1, got, want)
		}
	}
	if afterGroups(nil, nil) != nil {
		t.Error("no groups and no journal are not nil")
	}
}

// readerAt reads as a function does.
type readerAt func(p []byte, at int64) (int, error)

// ReadAt calls the function.
func (r readerAt) ReadAt(p []byte, at int64) (int, error) { return r(p, at) }

// TestLogOfDamagedTree looks for the log where the root names a page that is none.
func TestLogOfDamagedTree(t *testing.T) {
	file := faultFile(t, true, 1)
	tree, err := openPages(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	named := int(tree.root)*pageSize + bytes.Index(file[tree.root*pageSize:][:pageSize], []byte(groupsBucket)) + len(groupsBucket)
	right := binary.LittleEndian.Uint64(file[named:])
	for id, says := range map[uint64]string{
		right: "", 0: "", 1: "page 1: the page does not exist", tree.pages: "the page does not exist", tree.root: "not the page of a log",
	} {
		binary.LittleEndian.PutUint64(file[named:], id)
		at, size, err := tree.logAt()
		switch {
		case id == right:
			if err != nil || at%blockSize != logStart || size != logSize {
				t.Errorf("at %d, %d bytes, %v", at, size, err)
			}
		case !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), says) || at != 0 || size != 0:
			t.Errorf("page %d: at %d, %d bytes, %v", id, at, size, err)
		}
	}
	binary.LittleEndian.PutUint64(file[named:], right)
	file[int(right)*pageSize+8] = branchFlag
	if at, size, err := tree.logAt(); err == nil || !strings.Contains(err.Error(), "not the page of a log") || at != 0 || size != 0 {
		t.Errorf("a branch in place of the log: at %d, %d bytes, %v", at, size, err)
	}
}

// TestCopyLogFails has the reads of a copy of the log fail, or return a block that is being
// written.
func TestCopyLogFails(t *testing.T) {
	file := faultFile(t, true, 2)
	tree, err := openPages(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	at, _, err := tree.logAt()
	if err != nil {
		t.Fatal(err)
	}
	first := at + logHead
	copied := func(read func(p []byte, off int64) error) ([]byte, error) {
		t.Helper()
		tree.r = readerAt(func(p []byte, off int64) (int, error) {
			n, err := bytes.NewReader(file).ReadAt(p, off)
			if err2 := read(p, off); err2 != nil {
				return 0, err2
			}
			return n, err
		})
		to, err := os.Create(filepath.Join(t.TempDir(), "copy"))
		if err != nil {
			t.Fatal(err)
		}
		defer to.Close()
		if err := tree.copyLog(to); err != nil {
			return nil, err
		}
		log, err := os.ReadFile(to.Name())
		if err != nil {
			t.Fatal(err)
		}
		return log[at:], nil
	}
	for what, bad := range map[string]int64{"the root": int64(tree.root) * pageSize, "the page of the log": at / pageSize * pageSize, "the head": at, "a block": first + blockSize} {
		if _, err := copied(func(_ []byte, off int64) error {
			if off == bad {
				return syscall.EIO
			}
			return nil
		}); !errors.Is(err, syscall.EIO) {
			t.Errorf("%s cannot be read: %v", what, err)
		}
	}
	for bad, want := range map[int]int{0: 1, 1: 2, blockTries - 1: blockTries, blockTries: blockTries, 2 * blockTries: blockTries} {
		reads := 0
		got, err := copied(func(p []byte, off int64) error {
			if off == first {
				if reads++; reads <= bad {
					p[blockHead] ^= 1
				}
			}
			return nil
		})
		if err != nil || reads != want || bytes.Equal(got, file[at:][:logSize]) != (bad < blockTries) {
			t.Errorf("a block that is damaged in %d reads: %v after %d reads, want %d", bad, err, reads, want)
		}
	}
}
