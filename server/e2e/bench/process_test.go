//go:build linux

package main

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	const rest = " S 1 123 123 0 -1 4194560 2233 0 12 0 1234 56 7 8 20 0 5 0 1000 73400320 2500 18446744073709551615"
	for _, name := range []string{"redis-server", "a) S 1 (b", "(sd-pam)", ""} {
		got, err := parseStat("123 ("+name+")"+rest, 11)
		if want := 12900 * time.Millisecond; err != nil || got != want {
			t.Errorf("program name %q: got %v, want %v (%v)", name, got, want, err)
		}
	}
	if got, err := parseStat("123 (x)"+rest, 13); err != nil || got != 150*time.Millisecond {
		t.Errorf("children: %v, %v", got, err)
	}
	for _, bad := range []string{"", "123 (x) S 1 2", "123 (x)" + strings.ReplaceAll(rest, "1234", "abc")} {
		if got, err := parseStat(bad, 11); err == nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
}

func TestParseStatus(t *testing.T) {
	got, err := parseStatus("Name:\tx\nVmHWM:\t   9000 kB\nVmRSS:\t    4321 kB\nThreads:\t1\n", "VmRSS")
	if err != nil || got != 4321*1024 {
		t.Errorf("%d %v", got, err)
	}
	for _, bad := range []string{"", "Name:\tzombie\n", "VmRSS:\t12\n", "VmRSS:\t12 MB\n", "VmRSS:\tx kB\n"} {
		if got, err := parseStatus(bad, "VmRSS"); err == nil {
			t.Errorf("%q: %d", bad, got)
		}
	}
}

// TestOwnProcess measures the CPU time and the memory of the test's own process.
func TestOwnProcess(t *testing.T) {
	s := &server{cmd: exec.CommandContext(context.Background(), "true")}
	s.cmd.Process, _ = os.FindProcess(os.Getpid())
	before, err := s.cpu()
	if err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(time.Minute); ; {
		now, err := s.cpu()
		if err != nil {
			t.Fatal(err)
		}
		if now > before {
			break
		}
		if time.Now().After(until) {
			t.Fatal("timeout: busy for 20 s, and the CPU time is 0")
		}
	}
	if rss, _, err := s.rss(); err != nil || rss < 1<<20 {
		t.Errorf("the resident set has %d bytes (%v)", rss, err)
	}
}
