//go:build !linux

package transport

import "net"

// Stubs of the epoll transport, which exists only on Linux.
type (
	loops  struct{ unsettled bool }
	polled struct{}
)

// pollSet is empty: connections are checked one by one.
type pollSet struct{}

func (pollSet) add(connection) bool { return false }

func (pollSet) anyEnded() bool { return false }

func (*loops) stop() {}

func (*loops) close() {}

func (*Transport) serveSocket(net.Conn) bool { return false }

// unreadBytes returns a bound for input that arrives soon: this system does not
// report how much can be read without waiting.
func unreadBytes(uintptr) int { return lastUnread }

// unfinished returns true: this system does not report whether closing a socket now
// discards written output.
func unfinished(uintptr) bool { return true }
