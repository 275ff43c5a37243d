package snapshot

import (
	"io/fs"
	"syscall"
)

// blocksOf returns how much of a file has room on the disk.
func blocksOf(info fs.FileInfo) int64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Blocks
	}
	return 0
}
