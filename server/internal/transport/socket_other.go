//go:build !unix

package transport

// WithPrivateUmask runs f; the system has no umask.
func WithPrivateUmask(f func()) { f() }
