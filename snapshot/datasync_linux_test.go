package snapshot

import (
	"os"
	"path/filepath"
	"testing"
)

// TestDataSync checks that the kernel executes the operation on a file, and that one without
// it is left to the caller.
func TestDataSync(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var s dataSync
	defer s.close()
	for range 3 {
		file.WriteString("data")
		if done, err := s.sync(file); err != nil || !done && !s.refused {
			t.Fatal(done, err)
		}
	}
	if s.refused {
		t.Log("this system does not permit io_submit")
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if done, err := s.sync(w); done || err != nil || !s.refused {
		t.Errorf("of a pipe: done is %v, %v", done, err)
	}
	s.close()
	if done, err := s.sync(file); err != nil || s.done == nil != !done {
		t.Errorf("after close: %v, %v", done, err)
	}
}
