//go:build unix

package persist

import "golang.org/x/sys/unix"

// accessible returns an error if the process may not make files in a directory.
func accessible(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }
