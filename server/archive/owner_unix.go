//go:build unix

package archive

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives a file the owner and the mode of another. Without it, root would
// take the file of a server from the server by rewriting it.
func keepOwner(path string, other fs.FileInfo) error {
	was, ok := other.Sys().(*syscall.Stat_t)
	own, err := os.Stat(path)
	if err != nil {
		return err
	}
	is, same := own.Sys().(*syscall.Stat_t)
	if ok && same && (was.Uid != is.Uid || was.Gid != is.Gid) {
		if err := os.Chown(path, int(was.Uid), int(was.Gid)); err != nil {
			return err
		}
	}
	return os.Chmod(path, other.Mode().Perm())
}
