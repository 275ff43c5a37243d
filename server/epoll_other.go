//go:build !linux

package server

import "net"

// These stand for the epoll transport, which only Linux has.
type (
	loop   struct{}
	loops  struct{}
	polled struct{}
)

func (*loop) replace() {}

func (*loops) stop() {}

func (*loops) close() {}

func (*Server) serveSocket(net.Conn) bool { return false }

// unreadBytes would return how much can be read from a socket without waiting. As
// it is not known, that is what arrives soon.
func unreadBytes(uintptr) int { return lastUnread }

// unfinished would tell whether closing a socket now keeps its client from what was
// written.
func unfinished(uintptr) bool { return true }
