//go:build !linux || !amd64 || race

package iofault

import (
	"syscall"
	"testing"
)

// Each skips the test.
func Each(t testing.TB, errno syscall.Errno, prepare func() (do func(), check func(failed string))) {
	t.Skip("no system call can be made to fail here")
}
