package snapshot

import (
	"os"
	"path/filepath"
	"strings"
)

// lockedHere reports whether this process has the lock on the file at path.
func lockedHere(path string) bool {
	file, err := os.Stat(path)
	if err != nil {
		return false
	}
	descriptors, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		return false
	}
	for _, fd := range descriptors {
		if open, err := os.Stat(fd); err != nil || !os.SameFile(open, file) {
			continue
		}
		about, err := os.ReadFile("/proc/self/fdinfo/" + filepath.Base(fd))
		if err == nil && strings.Contains(string(about), "FLOCK") {
			return true
		}
	}
	return false
}
