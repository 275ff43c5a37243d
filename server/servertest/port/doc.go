// Package port is for tests that start a server which cannot choose its port itself: another
// program, or one whose configuration needs a number. Where a test can, it listens on port 0
// and asks the listener.
package port
