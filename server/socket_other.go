//go:build !unix

package server

// withPrivateUmask runs f; the system has no umask.
func withPrivateUmask(f func()) { f() }
