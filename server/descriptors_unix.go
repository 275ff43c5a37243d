//go:build unix

package server

import (
	"math"
	"syscall"
)

// maxDescriptors returns how many files the process may have open. The runtime has
// raised that as far as it may be.
func maxDescriptors() int64 {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return math.MaxInt64
	}
	return int64(min(uint64(l.Cur), math.MaxInt64))
}
