//go:build linux

package main

import (
	"context"
	"os"
	"testing"
	"time"
)

// TestMain lets this program be the servers that it contains.
func TestMain(m *testing.M) {
	if !isServer() {
		os.Exit(m.Run())
	}
}

// TestFloor measures the floor beside itself.
func TestFloor(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r := &report{options: options{clients: 2, rounds: 1, length: 20 * time.Millisecond}}
	if err := r.measureFloor(ctx, limits{}); err != nil {
		t.Fatal(err)
	}
	for _, row := range r.floor {
		if s := row.samples[0][0]; s.ops == 0 {
			t.Errorf("%d clients: no replies", row.clients)
		}
	}
	if len(r.floor) != 3 {
		t.Errorf("%d rows", len(r.floor))
	}
}
