//go:build unix && !aix && !solaris

package snapshot

import (
	"errors"
	"os"
	"syscall"
)

// unlock releases the lock that bbolt has on a file.
func unlock(file *os.File) error { return syscall.Flock(int(file.Fd()), syscall.LOCK_UN) }

// isLocked reports whether a file is open for writing, here or in another process.
func isLocked(path string) bool {
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return false
	}
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	return errors.Is(syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}
