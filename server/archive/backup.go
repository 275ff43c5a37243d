package archive

import "github.com/zsetd/zsetd/snapshot"

// Backup copies the file at path, which a server may have open, to another at path
// to, and returns its size. The copy is the state of the file at one instant; it is
// verified and synced to the disk before it gets its name. If replace is false
// there must be no file at to. After an error no copy is left.
func Backup(path, to string, replace bool, progress Progress) (size int64, err error) {
	size, err = snapshot.Backup(path, to, snapshot.CopyOptions{
		Progress: progress.of("copy"), Verify: progress.of("verify"), Replace: replace,
	})
	return size, Recognize(path, err)
}
