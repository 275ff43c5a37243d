//go:build linux

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestProfile checks that a run writes the profile of the server, whole: a compressed file.
func TestProfile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "default.pgo")
	r := &report{options: options{clients: 2, rounds: 1, length: 20 * time.Millisecond, profile: path}}
	if err := r.profile(t.Context(), []work{{name: "PING", pipeline: 1, command: "PING"}}, limits{}); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); err != nil || !bytes.HasPrefix(b, []byte{0x1f, 0x8b}) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	r.options.profile = filepath.Join(t.TempDir(), "no directory", "default.pgo")
	if err := r.profile(t.Context(), []work{{name: "PING", pipeline: 1, command: "PING"}}, limits{}); err == nil {
		t.Error("a profile that cannot be written is no error")
	}
}
