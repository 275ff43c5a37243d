package snapshot

import (
	"io/fs"
	"syscall"
)

// blocksOf returns the number of 512-byte blocks that are allocated to a file.
func blocksOf(info fs.FileInfo) int64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Blocks
	}
	return 0
}
