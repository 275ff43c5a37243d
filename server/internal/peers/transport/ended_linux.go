package transport

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

// pollSet is sockets of the loops, which one system call checks together: with
// thousands of clients a call for each takes milliseconds.
type pollSet []unix.PollFd

// add adds the socket of a connection. It returns false if the connection has to be
// checked by itself.
func (s *pollSet) add(c connection) bool {
	p, ok := c.(*polled)
	if !ok || p.state.load() == dead {
		return false
	}
	*s = append(*s, unix.PollFd{Fd: int32(p.fd), Events: unix.POLLRDHUP})
	return true
}

// anyEnded reports whether the peer of any socket has closed it, or its half of it.
func (s pollSet) anyEnded() bool {
	for {
		n, err := unix.Poll(s, 0)
		if err != unix.EINTR {
			return err == nil && n > 0
		}
	}
}
