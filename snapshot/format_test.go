package snapshot

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCompare checks that keys are in the order of the names of their records.
func TestCompare(t *testing.T) {
	long := func(n int, end string) string { return strings.Repeat("k", n-len(end)) + end }
	type key struct {
		space uint64
		name  string
	}
	keys := []key{{1, ""}, {1, "a"}, {1, "b"}, {1, "aa"}, {2, ""}, {2, "a"}, {1, long(longKey-1, "")}, {1, long(longKey-1, "x")},
		{1, long(longKey, "a")}, {1, long(longKey, "b")}, {2, long(longKey, "a")}, {1, long(longKey+1, "")}, {1, long(3*longKey, "")}}
	for _, a := range keys {
		for _, b := range keys {
			got := Compare(a.space, a.name, b.space, b.name)
			if len(a.name) >= longKey && len(b.name) >= longKey {
				if want := bytes.Compare(baseName(a.space, a.name, 0), baseName(b.space, b.name, 0)); got != want {
					t.Errorf("long keys of %d and %d bytes: %d, want %d as their names", len(a.name), len(b.name), got, want)
				}
				continue
			}
			want := 0
			switch {
			case a.space != b.space:
				want = map[bool]int{true: -1, false: 1}[a.space < b.space]
			case len(a.name) != len(b.name):
				want = map[bool]int{true: -1, false: 1}[len(a.name) < len(b.name)]
			default:
				want = strings.Compare(a.name, b.name)
			}
			if got != want {
				t.Errorf("%d %.10q (%d bytes), %d %.10q (%d bytes): %d, want %d", a.space, a.name, len(a.name), b.space, b.name, len(b.name), got, want)
			}
		}
	}
}

// TestUsage checks that pages that a checkpoint frees are no longer in use, and that the size is
// that of the file.
func TestUsage(t *testing.T) {
	f, path := logFile(t)
	size, used := f.Usage()
	if info, err := os.Stat(path); err != nil || info.Size() != size || used <= 0 || used > size || used%pageSize != 0 {
		t.Fatalf("size %d, %d in use; file %v, %v", size, used, info, err)
	}
	logWrite(t, f, strings.Repeat("0123456789abcdef", 1<<16))
	if _, more := f.Usage(); more < used {
		t.Errorf("%d bytes in use after a megabyte, %d before", more, used)
	}
}

// TestLogOfWrongSize checks the error of a log that is no head and whole blocks.
func TestLogOfWrongSize(t *testing.T) {
	head := newLog()
	for _, n := range []int{0, 1, logHead - 1, logHead, logHead + blockSize - 1, logHead + blockSize + 1, logHead + 2*blockSize - 1} {
		value := make([]byte, n)
		copy(value, head)
		if _, err := parseLog(value, 7); err == nil || !strings.Contains(err.Error(), "a log of ") {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	value := make([]byte, logHead+blockSize)
	if _, err := parseLog(value, 7); err == nil || !strings.Contains(err.Error(), "the head of the log") {
		t.Errorf("a head of zeros: %v", err)
	}
}

// TestLockAbsent checks the error of Lock for a file that is not there, which names it once.
func TestLockAbsent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.db")
	if _, err := Lock(path); !errors.Is(err, fs.ErrNotExist) || strings.Count(err.Error(), "none.db") != 1 {
		t.Errorf("%v", err)
	}
}
