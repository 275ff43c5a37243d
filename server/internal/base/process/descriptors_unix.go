//go:build unix

package process

import (
	"math"
	"syscall"
)

// MaxDescriptors returns the limit of open files of the process. The Go runtime has
// raised it to the maximum allowed.
func MaxDescriptors() int64 {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return math.MaxInt64
	}
	return int64(min(uint64(l.Cur), math.MaxInt64))
}
