package main

import (
	"os"
	"strings"
	"testing"
)

// The code and the constants of the program leave the resident set and are used again. The
// test is not parallel, so that hardly anything runs in between.
func TestShedText(t *testing.T) {
	path, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Skip(err)
	}
	resident := func() (kb, shed int64) {
		f, err := os.Open("/proc/self/smaps")
		if err != nil {
			t.Skip(err)
		}
		defer f.Close()
		list := mappingsOf(path, f)
		if len(list) < 2 {
			t.Fatalf("%d mappings of %s", len(list), path)
		}
		for _, m := range list {
			if !m.writable && !m.changed {
				kb += m.resident
				shed++
			}
		}
		return kb, shed
	}
	before, n := resident()
	if n == 0 {
		t.Skip("the program is not mapped as it is in its file")
	}
	shedText()
	if after, _ := resident(); after > before/2 {
		t.Errorf("%d KB of the program are resident, %d before", after, before)
	}
}

// Mappings are those of the program, and those with pages of others are recognized.
func TestMappingsOf(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.WriteString(strings.Join([]string{
		"00400000-00c41000 r-xp 00000000 fe:00 12748438                           /bin/zsetd",
		"Size:               8452 kB", "Rss:                4096 kB", "Anonymous:             0 kB",
		"00c41000-0155a000 r--p 00841000 fe:00 12748438                           /bin/zsetd",
		"Rss:                8192 kB", "Anonymous:             4 kB", "VmFlags: rd mr mw me sd",
		"0155a000-0155b000 rw-p 0115a000 fe:00 12748438                           /bin/zsetd",
		"Rss:                   4 kB", "Anonymous:             0 kB",
		"c000000000-c000400000 rw-p 00000000 00:00 0", "Rss:                 900 kB", "Anonymous:             0 kB",
		"d000000000-d000400000 r--p 00000000 00:00 0                              /bin/zsetd",
	}, "\n"))
	f.Seek(0, 0)
	list := mappingsOf("/bin/zsetd", f)
	want := []mapping{{0x400000, 0xc41000, false, false, 4096}, {0xc41000, 0x155a000, false, true, 8192}, {0x155a000, 0x155b000, true, false, 4}}
	if len(list) != len(want) {
		t.Fatalf("%+v", list)
	}
	for i := range want {
		if list[i] != want[i] {
			t.Errorf("%+v, not %+v", list[i], want[i])
		}
	}
}
