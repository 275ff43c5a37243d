package main

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// shedText removes the code and the constants of the program from the resident set. The
// system maps them in pieces of 64 KB around each address that is used, so after a start, and
// after data were loaded, some 10 MB are resident, of which commands use a quarter. They are
// pages of the program's file: the first use of one maps its piece again, from the page cache,
// which takes about a microsecond.
//
// Only mappings whose pages are all those of the file are given up: a debugger puts others
// in their place, and so does the dynamic linker in programs that it moves.
func shedText() {
	path, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer f.Close()
	for _, m := range mappingsOf(path, f) {
		if !m.writable && !m.changed {
			syscall.Syscall(syscall.SYS_MADVISE, m.begin, m.end-m.begin, syscall.MADV_DONTNEED)
		}
	}
}

// mapping is a part of the address space that shows a part of a file.
type mapping struct {
	begin, end uintptr
	writable   bool
	changed    bool  // it has pages that are not those of the file, or it is not known whether
	resident   int64 // KB
}

// mappingsOf returns the mappings of the program's file from the text of smaps. They precede
// those of the heap, for which the system would count every page: so the rest is not read.
func mappingsOf(path string, smaps *os.File) (list []mapping) {
	inside := false
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if m, ok := parseMapping(fields); ok {
			if inside = strings.HasSuffix(lines.Text(), " "+path); !inside {
				if len(list) > 0 {
					break
				}
				continue
			}
			list = append(list, m)
		}
		if !inside || len(fields) < 2 {
			continue
		}
		m := &list[len(list)-1]
		switch fields[0] {
		case "Rss:":
			m.resident, _ = strconv.ParseInt(fields[1], 10, 64)
		case "Anonymous:":
			m.changed = fields[1] != "0"
		}
	}
	return list
}

// parseMapping parses the first line of a mapping in smaps; ok is false for another line.
func parseMapping(fields []string) (m mapping, ok bool) {
	if len(fields) < 5 {
		return m, false
	}
	from, to, ok := strings.Cut(fields[0], "-")
	begin, err1 := strconv.ParseUint(from, 16, 64)
	end, err2 := strconv.ParseUint(to, 16, 64)
	if !ok || err1 != nil || err2 != nil {
		return m, false
	}
	return mapping{begin: uintptr(begin), end: uintptr(end), writable: strings.Contains(fields[1], "w"), changed: true}, true
}
