package transport

import "golang.org/x/sys/unix"

// notTaken returns how many bytes written to a socket its peer has not
// acknowledged, or not read in the case of a unix socket; 0 if unknown.
func notTaken(fd int) int64 {
	n, err := unix.IoctlGetInt(fd, unix.SIOCOUTQ)
	if err != nil {
		return 0
	}
	return int64(n)
}
