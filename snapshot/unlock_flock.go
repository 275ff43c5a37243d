//go:build unix && !aix && !solaris

package snapshot

import (
	"os"
	"syscall"
)

// unlock releases the lock that bbolt has on a file.
func unlock(file *os.File) error { return syscall.Flock(int(file.Fd()), syscall.LOCK_UN) }
