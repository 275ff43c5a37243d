//go:build unix && !linux

package transport

import "golang.org/x/sys/unix"

// peerEnded reports whether the peer of a socket has closed it, or its half of it.
// It does not detect that behind unread input.
func peerEnded(fd uintptr) bool {
	var b [1]byte
	for {
		n, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		switch err {
		case nil:
			return n == 0
		case unix.EINTR:
		case unix.EAGAIN:
			return false
		default:
			return true
		}
	}
}
