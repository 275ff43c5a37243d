package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

// releaseProgram unmaps the pages of the program's file, as most of them have served the start or
// work that is over. The next access to a page maps it again, from the page cache, with those
// around it. A mapping of which the process has pages of its own is left alone: those would be
// lost, such as relocations, or a debugger's breakpoints.
func releaseProgram() {
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer f.Close()
	buf := make([]byte, 4096) // the program's mappings come first: reading no more spares the kernel the walk over those of the heap
	n, _ := f.Read(buf)
	for _, m := range fileMappings(buf[:n]) {
		syscall.Syscall(syscall.SYS_MADVISE, m.start, m.end-m.start, syscall.MADV_DONTNEED)
	}
}

// mapping is a range of addresses.
type mapping struct{ start, end uintptr }

// fileMappings returns the mappings of a file, read-only and without pages of the process's own,
// in the beginning of /proc/self/smaps; see proc_pid_smaps(5).
func fileMappings(smaps []byte) (found []mapping) {
	var m mapping
	candidate := false
	for line := range bytes.Lines(smaps) {
		var next mapping
		var perms, device string
		var offset, inode uint64
		if n, _ := fmt.Sscanf(string(line), "%x-%x %s %x %s %d", &next.start, &next.end, &perms, &offset, &device, &inode); n == 6 {
			m, candidate = next, inode != 0 && (perms == "r-xp" || perms == "r--p")
		} else if candidate && slices.Equal(strings.Fields(string(line)), []string{"Anonymous:", "0", "kB"}) { // not a line that is cut off
			found = append(found, m)
		}
	}
	return found
}

// processorTime returns the CPU time of the process, 0 if it is unknown.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
