package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestBesideAnother checks that a file that is being written beside another is not removed by
// a second writer.
func TestBesideAnother(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("open files cannot be removed there")
	}
	path := filepath.Join(t.TempDir(), "x.db")
	f, err := Beside(path)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := Beside(path); !errors.Is(err, ErrInUse) {
		t.Fatalf("a second file: %v, %v", second, err)
	}
	if err := errors.Join(f.Publish(path), f.Close()); err != nil {
		t.Fatal(err)
	}
	left, err := Create(path + ".new")
	if err != nil {
		t.Fatal(err)
	}
	if err := closeBroken(left.file); err != nil { // as a process that is killed
		t.Fatal(err)
	}
	f, err = Beside(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Discard(); err != nil {
		t.Error(err)
	}
}

// TestListOfFreePages checks which transactions store the list of free pages, so that bbolt need not
// read all pages of the file when it opens it: those that begin with few free pages.
func TestListOfFreePages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	f, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	chunk := bytes.Repeat([]byte("x"), pageSize*mostListed/32)
	for i, step := range []struct {
		chunks int // of the value
		listed bool
	}{{33, true}, {0, true}, {1, false}, {33, false}, {1, true}} {
		base := Base{Key: "key"}
		if step.chunks > 0 {
			base.Chunks = slices.Values(slices.Repeat([][]byte{chunk}, step.chunks))
		}
		if _, err := f.Write(&Checkpoint{Bases: []Base{base}}); err != nil {
			t.Fatal(err)
		}
		tree, err := openPages(f.file, f.mark.size)
		if err != nil {
			t.Fatal(err)
		}
		if listed := tree.freelist != noFreelist; listed != step.listed {
			t.Errorf("step %d: the list is stored: %v", i, listed)
		}
	}
	if _, err := Read(path, Visitor{}); err != nil {
		t.Error(err)
	}
}

// TestNoPageIsLost checks that each page of a file is in use or in the list of free pages: opening a
// file with a list does not find pages that bbolt has forgotten. Some transactions fail.
func TestNoPageIsLost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	f, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { f.Close() }()
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 500 {
		c := &Checkpoint{Journal: chunksOf(strings.Repeat("j", r.IntN(60_000)))}
		if r.IntN(7) == 0 {
			for key := range 100 {
				b := Base{Key: fmt.Sprint("key", 10*key+r.IntN(10))}
				if r.IntN(4) > 0 {
					b.Chunks = chunksOf(strings.Repeat("x", r.IntN(9000)))
				}
				c.Bases = append(c.Bases, b)
			}
		}
		if r.IntN(50) == 0 {
			c.Forget = f.Manifest().Generation
		}
		full := &fs.PathError{Op: "write", Err: syscall.ENOSPC}
		if fails := r.IntN(20) == 0; fails {
			f.fault = func(string) error { return full }
		}
		_, err := f.Write(c)
		if f.fault == nil && err != nil || f.fault != nil && !errors.Is(err, full.Err) {
			t.Fatal(err)
		}
		f.fault = nil
		if r.IntN(100) == 0 {
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			if f, err = Open(path, Visitor{}); err != nil {
				t.Fatal(err)
			}
		}
		tree, err := openPages(f.file, f.mark.size)
		if err == nil {
			err = tree.walk(func([][]byte, []byte, []byte) error { return nil })
		}
		if err != nil {
			t.Fatal(err)
		}
		s := f.db.Stats()
		if free := uint64(s.FreePageN + s.PendingPageN); tree.freelist == noFreelist || tree.used+free != tree.pages {
			t.Fatalf("transaction %d: %d pages, %d in use, %d free", i, tree.pages, tree.used, free)
		}
	}
}
