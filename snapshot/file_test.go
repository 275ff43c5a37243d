package snapshot

import (
	"bytes"
	"errors"
	"path/filepath"
	"runtime"
	"slices"
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
