//go:build !linux

package server

// notTaken would return how many bytes that were written to a socket its peer has not
// acknowledged.
func notTaken(int) int64 { return 0 }
