// Package iofault is for tests. [Each] runs an operation in threads in which one system call about
// files fails, as it does when a disk is full or broken: each call of the operation, one after the
// other. The tested code needs no hook for it.
//
// The kernel asks the test about each call of the thread (seccomp_unotify(2)). That exists on
// Linux from version 5.19; elsewhere the tests are skipped, and under the race detector, which
// takes the answer to a call for a second access to its memory. Calls of other threads are not
// affected, so the operation must make its calls in its own goroutine.
package iofault

import "strings"

// Changes reports whether a call that Each has reported writes, makes durable or renames: an
// operation cannot succeed without it.
func Changes(call string) bool {
	name, _, _ := strings.Cut(call, " ")
	switch name {
	case "write", "pwrite64", "ftruncate", "fsync", "fdatasync", "renameat", "renameat2", "io_getevents":
		return true
	case "read":
		return strings.HasSuffix(call, "[eventfd]") // which tells that data is durable
	}
	return false
}
