package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// portOwner returns " by NAME (process N)" for the program that listens on a TCP port of
// this machine; "" if /proc does not tell, as for a process of another user.
func portOwner(port int) string {
	sockets := listening(port)
	if len(sockets) == 0 {
		return ""
	}
	descriptors, _ := filepath.Glob("/proc/[0-9]*/fd/*") // the pattern is valid
	for _, path := range descriptors {
		target, err := os.Readlink(path)
		if err != nil || !sockets[target] {
			continue
		}
		process := filepath.Dir(filepath.Dir(path))
		name, err := os.ReadFile(filepath.Join(process, "comm"))
		if err != nil {
			continue
		}
		return fmt.Sprintf(" by %s (process %s)", bytes.TrimSpace(name), filepath.Base(process))
	}
	return ""
}

// listening returns the sockets that listen on a port, in the form of the links in
// /proc/PID/fd. proc_pid_net(5) describes the tables: the second column is the local
// address, the fourth the state (0A is LISTEN), the tenth the inode.
func listening(port int) map[string]bool {
	sockets := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		b, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			fields := strings.Fields(line)
			if len(fields) < 10 || fields[3] != "0A" {
				continue
			}
			_, digits, _ := strings.Cut(fields[1], ":")
			if n, err := strconv.ParseUint(digits, 16, 16); err == nil && int(n) == port {
				sockets["socket:["+fields[9]+"]"] = true
			}
		}
	}
	return sockets
}
