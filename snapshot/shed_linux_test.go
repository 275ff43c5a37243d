package snapshot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
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
