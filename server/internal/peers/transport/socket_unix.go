//go:build unix

package transport

import "syscall"

// withPrivateUmask creates the files that f makes without access for other users.
// While f runs that applies to the whole process, whose new files can only get
// fewer permissions by it.
func withPrivateUmask(f func()) {
	before := syscall.Umask(0o177)
	defer syscall.Umask(before)
	f()
}
