package server

import "golang.org/x/sys/unix"

// notTaken returns how many bytes that were written to a socket its peer has not
// acknowledged, or not read if it is a unix socket; 0 if that is not known.
func notTaken(fd int) int64 {
	n, err := unix.IoctlGetInt(fd, unix.SIOCOUTQ)
	if err != nil {
		return 0
	}
	return int64(n)
}
