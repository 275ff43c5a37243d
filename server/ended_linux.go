package server

import "golang.org/x/sys/unix"

// peerEnded reports whether the peer of a socket has closed it, or its half of it.
// It detects that behind unread input.
func peerEnded(fd uintptr) bool {
	for {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(p, 0)
		if err == unix.EINTR {
			continue
		}
		return err == nil && n > 0
	}
}
