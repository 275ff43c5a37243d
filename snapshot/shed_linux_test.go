package snapshot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/servertest/iofault"
)

// residentOf returns how many bytes of the mapping of a file are in the resident set.
func residentOf(t *testing.T, path string) (bytes int) {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skip(err)
	}
	ours, found := false, false
	for line := range strings.Lines(string(maps)) {
		words := strings.Fields(line)
		switch {
		case len(words) > 1 && strings.Contains(words[0], "-") && !strings.HasSuffix(words[0], ":"):
			ours = words[len(words)-1] == path
			found = found || ours
		case ours && words[0] == "Rss:":
			n, err := strconv.Atoi(words[1])
			if err != nil {
				t.Fatal(err)
			}
			bytes += n << 10
		}
	}
	if !found {
		t.Fatal("the file is not mapped")
	}
	return bytes
}

// The resident set does not grow with the file: the pages that bbolt has read
// through its mapping are released after each transaction.
func TestMappingIsShed(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "f.db")
	f, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Publish(path); err != nil {
		t.Fatal(err)
	}
	check := func(f *File, when string) {
		t.Helper()
		if n := residentOf(t, path); n > 0 {
			t.Errorf("%s: %d bytes of the mapping are resident", when, n)
		}
	}
	for i := range 20 {
		c := &Checkpoint{Spaces: []uint64{1}, LastSpace: 1, Time: time.Unix(int64(i), 0), Journal: slices.Values([][]byte{make([]byte, 300_000)})}
		for n := range 50 {
			c.Bases = append(c.Bases, Base{Space: 1, Key: fmt.Sprint(i, "/", n), Chunks: slices.Values([][]byte{make([]byte, 5000)})})
		}
		if _, err := f.Write(c); err != nil {
			t.Fatal(err)
		}
		check(f, "after a transaction")
	}
	if err := f.Journals(func(uint64, []byte) error { return nil }); err != nil {
		t.Fatal(err)
	}
	check(f, "after the journals were read")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if f, err = Open(path, Visitor{}); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	check(f, "after the file was opened")
}

// A file that is truncated during a transaction, which then extends it to its size
// again, is not taken for sound.
func TestCutShortDuringCommit(t *testing.T) {
	for _, percent := range []int64{5, 25, 50, 75, 90, 95, 99} {
		path := filepath.Join(t.TempDir(), "f.db")
		f, err := Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		write := func(bases int) error {
			c := &Checkpoint{Spaces: []uint64{1}, LastSpace: 1, Journal: chunksOf("journal")}
			for n := range bases {
				c.Bases = append(c.Bases, Base{Space: 1, Key: fmt.Sprint("key", n), Chunks: chunksOf(strings.Repeat("x", 3000))})
			}
			_, err := f.Write(c)
			return err
		}
		for _, bases := range []int{400, 0, 400, 0, 0, 0} { // so that there are free pages everywhere
			if err := write(bases); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Publish(path); err != nil {
			t.Fatal(err)
		}
		f.fault = func(op string) error {
			return os.Truncate(path, int64(f.mark.pages*pageSize)*percent/100)
		}
		err = write(0)
		f.fault = nil
		t.Logf("cut to %d %%: %v", percent, err)
		if err == nil {
			err = write(0)
		}
		if !errors.Is(err, ErrChanged) || f.Suspect() == nil {
			t.Errorf("cut to %d %%: %v", percent, err)
		}
	}
}

// A program that writes the whole file during a transaction, in place, is detected by
// that transaction, whether the commit comes after it or before it. The size in the
// file then does not decide which memory is released.
func TestWrittenDuringCommit(t *testing.T) {
	fill := func(f *File, cuts, bases int) error {
		for range cuts {
			c := &Checkpoint{Spaces: []uint64{1}, LastSpace: 1, Journal: chunksOf("journal")}
			for n := range bases {
				c.Bases = append(c.Bases, Base{Space: 1, Key: fmt.Sprint("key", n), Chunks: chunksOf(strings.Repeat("x", 3000))})
			}
			if _, err := f.Write(c); err != nil {
				return err
			}
		}
		return nil
	}
	create := func(cuts, bases int) *File {
		path := filepath.Join(t.TempDir(), "f.db")
		f, err := Create(path)
		if err == nil {
			err = errors.Join(fill(f, cuts, bases), f.Publish(path))
		}
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	for _, cuts := range []int{4, 5, 6, 7} {
		for _, bases := range []int{0, 90, 1000} {
			for _, op := range []string{"commit", "committed"} {
				other, f := create(cuts, bases), create(5, 100)
				if err := other.Close(); err != nil {
					t.Fatal(err)
				}
				content, err := os.ReadFile(other.path)
				if err != nil {
					t.Fatal(err)
				}
				pages := f.mark.pages
				f.fault = func(now string) error {
					if now != op {
						return nil
					}
					file, err := os.OpenFile(f.path, os.O_WRONLY, 0)
					if err != nil {
						return err
					}
					_, err = file.WriteAt(content, 0)
					return errors.Join(err, file.Close())
				}
				err = fill(f, 1, 0)
				f.fault = nil
				if !errors.Is(err, ErrChanged) || f.Suspect() == nil {
					t.Errorf("%s: a file of %d cuts of %d bases: %v", op, cuts, bases, err)
				}
				if f.mark.pages != pages {
					t.Errorf("%s: a file of %d cuts of %d bases: the mark has %d pages in place of %d", op, cuts, bases, f.mark.pages, pages)
				}
				f.Close()
			}
		}
	}
}

// Where the number of blocks falls with each commit, as it may in a file system that
// compresses, not each commit verifies the whole file.
func TestFallingBlocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.db")
	f, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	verified := 0
	f.fault = func(op string) error {
		if op == "verify" {
			verified++
		}
		return nil
	}
	for range 10 * maxTimeChanges {
		f.mark.blocks += 1 << 20
		if _, err := f.Write(&Checkpoint{Spaces: []uint64{1}, LastSpace: 1, Journal: chunksOf("journal")}); err != nil {
			t.Fatal(err)
		}
	}
	if verified != maxTimeChanges {
		t.Errorf("the file was verified %d times", verified)
	}
}

// The mapping that bbolt has made of a file is found before bbolt tells its address.
func TestMappingIsFound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.db")
	f, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for range 2 {
		c := &Checkpoint{Spaces: []uint64{1}, LastSpace: 1, Time: time.Unix(1, 0), Journal: slices.Values([][]byte{make([]byte, 6<<20)})}
		if _, err := f.Write(c); err != nil {
			t.Fatal(err)
		}
	}
	info, err := f.file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if address, size := mappingOf(f.file, info); address != f.db.Info().Data || size < 12<<20 {
		t.Errorf("%d bytes at %x, want 12 MB or more at %x", size, address, f.db.Info().Data)
	}
	if other, err := os.Open(os.Args[0]); err != nil {
		t.Error(err)
	} else if _, size := mappingOf(other, info); size != 0 { // not a snapshot
		t.Errorf("%d bytes of another file", size)
	}
}

// TestMappingFails has each system call fail with which the mapping of a file is looked for.
// Then there is none, and for a file that is not mapped.
func TestMappingFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.db")
	f, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := f.file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	iofault.Each(t, syscall.EIO, func() (do func(), check func(failed string)) {
		var address, size uintptr
		return func() { address, size = mappingOf(f.file, info) }, func(failed string) {
			if address|size != 0 && (address != f.db.Info().Data || size == 0) || failed == "" && size == 0 || address == 0 != (size == 0) {
				t.Errorf("%s fails: %d bytes at %x", failed, size, address)
			}
		}
	})
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if address, size := mappingOf(file, info); address != 0 || size != 0 {
		t.Errorf("%d bytes at %x of a file that is not mapped", size, address)
	}
}
