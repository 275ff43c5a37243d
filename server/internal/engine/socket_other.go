//go:build !unix

package engine

// WithPrivateUmask runs f; the system has no umask.
func WithPrivateUmask(f func()) { f() }
