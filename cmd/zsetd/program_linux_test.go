package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// Only mappings of a file that is not writable, and without pages of the process's own, are
// released.
func TestFileMappings(t *testing.T) {
	entry := func(header, anonymous string) string {
		return header + "\nSize:               8872 kB\nRss:                6056 kB\nAnonymous:      " + anonymous + " kB\nVmFlags: rd ex mr mw me\n"
	}
	const text, data = "00400000-00caa000 r-xp 00000000 fe:00 9994275                            /usr/bin/zsetd", "00caa000-01697000 r--p 008aa000 fe:00 9994275   /usr/bin/zsetd"
	for _, test := range []struct {
		name, smaps string
		want        []mapping
	}{
		{"program", entry(text, "       0") + entry(data, "0"), []mapping{{0x400000, 0xcaa000}, {0xcaa000, 0x1697000}}},
		{"breakpoint", entry(text, "4") + entry(data, "0"), []mapping{{0xcaa000, 0x1697000}}},
		{"relocations", entry(text, "0") + entry(data, "80"), []mapping{{0x400000, 0xcaa000}}},
		{"written", entry("01697000-01718000 rw-p 01297000 fe:00 9994275 /usr/bin/zsetd", "0"), nil},
		{"no file", entry("22ed44400000-22ed44c00000 r--p 00000000 00:00 0", "0"), nil},
		{"cut off", entry(text, "0") + data + "\nSize: 10164 kB\nAnonym", []mapping{{0x400000, 0xcaa000}}},
		{"cut off before the number", entry(text, "0") + data + "\nAnonymous:   ", []mapping{{0x400000, 0xcaa000}}},
		{"cut off behind the number", data + "\nAnonymous:   0", nil},
		{"empty", "", nil},
	} {
		if got := fileMappings([]byte(test.smaps)); !slices.Equal(got, test.want) {
			t.Errorf("%s: %x, not %x", test.name, got, test.want)
		}
	}
}

// Released pages no longer count for the process, which continues.
func TestReleaseProgram(t *testing.T) {
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skip(err)
	}
	if len(fileMappings(smaps[:min(len(smaps), 4096)])) == 0 {
		t.Skip("the program is relocated")
	}
	before := residentFile(t)
	releaseProgram()
	if after := residentFile(t); after >= before {
		t.Errorf("%d kB of files are resident, %d before", after, before)
	}
}

// residentFile returns the kilobytes of files that are mapped and resident.
func residentFile(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`RssFile:\s+(\d+) kB`).FindSubmatch(status)
	if m == nil {
		t.Skip("the kernel does not tell them")
	}
	n, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
