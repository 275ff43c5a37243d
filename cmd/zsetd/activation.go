package main

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// firstInherited is the descriptor of the first socket that is passed to this process.
const firstInherited = 3

// inheritedSockets returns the sockets that systemd, or another parent with the same
// protocol, has opened for this process: it listens on them instead of port and
// unixsocket and, where they are named "tls" (FileDescriptorName=), of tls-port.
func inheritedSockets() (plain, secure []net.Listener, err error) {
	pid, _ := strconv.Atoi(os.Getenv("LISTEN_PID"))
	n, _ := strconv.Atoi(os.Getenv("LISTEN_FDS"))
	names := strings.Split(os.Getenv("LISTEN_FDNAMES"), ":")
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		os.Unsetenv(name) // child processes must not use them
	}
	if pid != os.Getpid() {
		return nil, nil, nil
	}
	for i := range n {
		f := os.NewFile(uintptr(firstInherited+i), "socket")
		l, err := net.FileListener(f)
		f.Close() // l has a copy
		if err != nil {
			for _, l := range append(plain, secure...) {
				l.Close()
			}
			return nil, nil, fmt.Errorf("socket activation: descriptor %d is not a listening socket: %w", firstInherited+i, err)
		}
		if i < len(names) && names[i] == "tls" {
			secure = append(secure, l)
		} else {
			plain = append(plain, l)
		}
	}
	return plain, secure, nil
}
