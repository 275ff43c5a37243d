//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"
)

// TestMain lets this program be the floor.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == floorCommand {
		fmt.Fprintln(os.Stderr, serveFloor(os.Args[2]))
		os.Exit(1)
	}
	os.Exit(m.Run())
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
	if len(r.floor) != 2 {
		t.Errorf("%d rows", len(r.floor))
	}
}
