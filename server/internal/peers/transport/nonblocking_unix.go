//go:build unix

package transport

import "syscall"

// writeNow writes as much as a non-blocking descriptor accepts without waiting.
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

// canReadNow reports that readNow exists.
const canReadNow = true

// readNow reads the available input of a non-blocking descriptor. wait reports that
// there is none yet.
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
