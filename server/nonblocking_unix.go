//go:build unix

package server

import "syscall"

// writeNow writes to a non-blocking descriptor what it takes at once.
func writeNow(fd uintptr, b []byte) (int, error) {
	for {
		n, err := syscall.Write(int(fd), b)
		switch err {
		case nil:
			return n, nil
		case syscall.EINTR:
		case syscall.EAGAIN:
			return 0, nil
		default:
			return 0, err
		}
	}
}

// canReadNow says that there is readNow.
const canReadNow = true

// readNow reads from a non-blocking descriptor what is there. wait says that there
// is nothing yet.
func readNow(fd uintptr, b []byte) (n int, wait bool, err error) {
	for {
		n, err := syscall.Read(int(fd), b)
		switch err {
		case nil:
			return n, false, nil
		case syscall.EINTR:
		case syscall.EAGAIN:
			return 0, true, nil
		default:
			return 0, false, err
		}
	}
}
