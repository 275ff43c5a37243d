package main

import (
	"bytes"
	"io"
	"os"
	"testing"
)

// TestStartReport checks what the process that waits for a start in the background receives.
func TestStartReport(t *testing.T) {
	var none *startReport
	none.succeeded()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	report := &startReport{pipe: w}
	for range 2 {
		if n, err := report.Write([]byte("text")); n != 4 || err != nil {
			t.Errorf("Write: %d, %v", n, err)
		}
		report.succeeded()
	}
	got, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(got, []byte("text\x00")) {
		t.Errorf("%q, %v", got, err)
	}
}
