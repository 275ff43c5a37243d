package snapshot

import (
	"errors"
	"path/filepath"
	"runtime"
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
