package transport

import "golang.org/x/sys/unix"

// edges is the interest in the input of a TCP client, edge-triggered. epoll reports what
// arrives after the last report. A connection is pending if more may have arrived before: an
// event came before its input could be read, a read filled its buffer, or the end of the
// input is behind it. Then setInterest makes epoll look at the socket again. The
// sockets of other clients do not qualify, because a read of a Unix socket may end early.
const edges = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET

// setInterest sets the events that epoll reports; 0: none, not even a hang-up. An event that
// has occurred is reported, even if it was before.
func (c *polled) setInterest(events uint32) {
	l := c.loop.Load()
	op := unix.EPOLL_CTL_MOD
	switch {
	case events == 0:
		op = unix.EPOLL_CTL_DEL
	case c.interest == 0:
		op = unix.EPOLL_CTL_ADD
		for len(l.conns) <= c.fd {
			l.conns = append(l.conns, nil)
		}
		if l.conns[c.fd] == nil {
			l.meter.clients.Add(1)
		}
		l.conns[c.fd] = c
	}
	c.interest, c.pending = events, false
	if err := unix.EpollCtl(l.epoll, op, c.fd, &unix.EpollEvent{Events: events, Fd: int32(c.fd)}); err != nil && events != 0 {
		c.sess.Engine.Log.Warn("closing client: epoll_ctl failed", "client", c.sess.Peer.Addr, "error", err)
		c.abort()
	}
}
