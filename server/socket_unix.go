//go:build unix

package server

import "syscall"

// withoutOthers makes files that f makes accessible to their owner alone. While it
// runs that is so in the whole process: files can only become stricter by it.
func withoutOthers(f func()) {
	before := syscall.Umask(0o177)
	defer syscall.Umask(before)
	f()
}
