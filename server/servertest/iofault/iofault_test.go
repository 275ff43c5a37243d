package iofault_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/zsetd/zsetd/server/servertest/iofault"
)

// TestEach has each call of a function fail, and no other.
func TestEach(t *testing.T) {
	var calls []string
	iofault.Each(t, syscall.EIO, func() (func(), func(string)) {
		path := filepath.Join(t.TempDir(), "file")
		var err error
		do := func() { err = os.WriteFile(path, []byte("content"), 0o600) }
		return do, func(failed string) {
			if errors.Is(err, syscall.EIO) != (failed != "") {
				t.Errorf("%s fails: %v", failed, err)
			}
			if iofault.Changes(failed) != strings.HasPrefix(failed, "write ") {
				t.Errorf("%s changes something: %v", failed, iofault.Changes(failed))
			}
			calls = append(calls, failed)
		}
	})
	if got, want := strings.Join(calls, ", "), ", openat file, write file, close file"; got != want {
		t.Errorf("calls: %s; want %s", got, want)
	}
	if err := os.WriteFile(filepath.Join(t.TempDir(), "file"), nil, 0o600); err != nil {
		t.Errorf("in another thread: %v", err)
	}
}

// TestEachWithOtherCalls has each call of a function fail once that makes a call less from the second
// time on: the others are the same.
func TestEachWithOtherCalls(t *testing.T) {
	var calls []string
	first := true
	iofault.Each(t, syscall.EIO, func() (func(), func(string)) {
		path := filepath.Join(t.TempDir(), "file")
		do := func() {
			if first {
				os.Mkdir(path+"s", 0o700)
			}
			first = false
			os.WriteFile(path, []byte("content"), 0o600)
		}
		return do, func(failed string) { calls = append(calls, failed) }
	})
	if got, want := strings.Join(calls, ", "), ", , openat file, write file, close file"; got != want {
		t.Errorf("calls: %s; want %s", got, want)
	}
}
