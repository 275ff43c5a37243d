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

func (*Server) serveSocket(net.Conn) bool { return false }
