//go:build !unix

package transport

// withPrivateUmask runs f; the system has no umask.
func withPrivateUmask(f func()) { f() }
