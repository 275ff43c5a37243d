package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const (
	// copyTime is the least time for which Copy retries, and copyTries the least
	// number of its attempts.
	copyTime  = 5 * time.Second
	copyTries = 3

	// copyChunk is the number of bytes that are copied at once.
	copyChunk = 1 << 20
)

// CopyOptions are the options of [Copy] and [Backup].
type CopyOptions struct {
	// Progress, if it is not nil, is called with the number of bytes copied and the
	// total. An error ends the copying.
	Progress func(done, total int64) error

	// Verify is likewise called with the number of bytes of a backup that are
	// verified.
	Verify func(done, total int64) error

	// Hold, if it is not nil, keeps the file's writer from committing until release
	// is called. Without it Copy asks the process that has the file open (see
	// hold_linux.go).
	Hold func() (release func())

	// Replace lets a backup replace another file.
	Replace bool
}

// Copy makes a copy of a file that another process may have open and be writing to.
// dst must not exist. The copy is the state of the file at one instant: between two
// commits bbolt writes only to pages that the last commit does not use, so a copy
// without a commit during it is consistent, whatever was being written.
//
// The first attempt does not disturb the writer. If a commit intervenes, the next
// attempt makes the writer delay its commits; chunks that are already equal in the
// copy are not written again. If the writer cannot be asked, and commits come
// faster than the file can be copied, Copy gives up after some seconds with
// ErrInUse.
func Copy(src, dst string, o CopyOptions) (err error) {
	to, err := os.OpenFile(dst, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("%s: %w", dst, trimPath(err))
	}
	defer func() {
		if err = errors.Join(err, to.Close()); err != nil {
			err = errors.Join(err, os.Remove(dst))
		}
	}()
	return o.copy(src, to)
}

// copy is Copy to a file that is open.
func (o *CopyOptions) copy(src string, to *os.File) error {
	from, err := os.Open(src)
	if err != nil {
		return fmt.Errorf("%s: %w", src, trimPath(err))
	}
	defer from.Close()
	began := time.Now()
	var release func()
	defer func() {
		if release != nil {
			release()
		}
	}()
	for try := 1; ; try++ {
		whole, err := o.copyOnce(from, to)
		if err != nil && !errors.Is(err, ErrDamaged) {
			return fmt.Errorf("%s: %w", src, trimPath(err))
		}
		if whole {
			return nil
		}
		if try >= copyTries && time.Since(began) > copyTime {
			if err != nil {
				return fmt.Errorf("%s: %w", src, err)
			}
			return fmt.Errorf("%s: %w by another process, and is written more often than it can be copied: stop the server, or make it save less often",
				src, ErrInUse)
		}
		if release == nil {
			if o.Hold != nil {
				release = o.Hold()
			} else {
				release = hold(from)
			}
		}
		// A meta that looks damaged may be in the middle of a write.
		time.Sleep(time.Millisecond)
	}
}

// copyOnce copies a file, over the result of an earlier attempt if there is one,
// and reports whether no commit came meanwhile.
func (o *CopyOptions) copyOnce(from source, to *os.File) (whole bool, err error) {
	info, err := from.Stat()
	if err != nil {
		return false, err
	}
	tree, err := openPages(from, info.Size())
	if err != nil {
		return false, err
	}
	size := int64(tree.pages * pageSize)
	earlier, err := to.Stat()
	if err != nil {
		return false, err
	}
	if err := to.Truncate(size); err != nil {
		return false, err
	}
	chunk, existing := make([]byte, copyChunk), make([]byte, copyChunk)
	for at := int64(0); at < size; at += copyChunk {
		n := min(copyChunk, size-at)
		if err := readPages(from, chunk[:n], uint64(at/pageSize)); err != nil {
			return false, err
		}
		if earlier.Size() > 0 {
			if _, err := to.ReadAt(existing[:n], at); err != nil {
				return false, err
			}
		}
		if earlier.Size() == 0 || !bytes.Equal(chunk[:n], existing[:n]) {
			if _, err := to.WriteAt(chunk[:n], at); err != nil {
				return false, err
			}
		}
		if o.Progress != nil {
			if err := o.Progress(at+n, size); err != nil {
				return false, err
			}
		}
	}
	if err := tree.copyLog(to); err != nil {
		return false, err
	}
	// Every commit writes a meta with a higher transaction number, so no commit
	// came in between if the metas are still those from which the size was
	// computed. The metas in the copy were read meanwhile: they must be the same.
	var metas [2 * pageSize]byte
	for _, r := range []io.ReaderAt{from, to} {
		if err := readPages(r, metas[:], 0); err != nil {
			return false, err
		}
		if !bytes.Equal(metas[:], tree.metas) {
			return false, nil
		}
	}
	return true, nil
}

// Backup copies a file as [Copy] does, verifies the copy, syncs it to the disk and
// gives it its name: dst is a sound file of one instant, or does not exist. Unless
// o.Replace is true, dst must not exist.
func Backup(src, dst string, o CopyOptions) (size int64, err error) {
	if err := mayReplace(src, dst, o.Replace); err != nil {
		return 0, err
	}
	part := dst + ".new" // an incomplete file of an earlier process may be there
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	to, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", part, trimPath(err))
	}
	done := false
	defer func() {
		err = errors.Join(err, to.Close())
		if !done {
			err = errors.Join(err, os.Remove(part))
		}
	}()
	if err := o.copy(src, to); err != nil {
		return 0, err
	}
	verified := int64(0)
	info, err := to.Stat()
	if err != nil {
		return 0, err
	}
	count := func(n int) error {
		verified += int64(n)
		if o.Verify == nil {
			return nil
		}
		return o.Verify(verified, info.Size())
	}
	_, err = read(to, Visitor{
		Journal: func(_ uint64, records []byte) error { return count(len(records)) },
		Base:    func(_ uint64, _ []byte, _ uint64, _, _ int, ops []byte) error { return count(len(ops)) },
	})
	if err != nil {
		return 0, fmt.Errorf("%s: %w", src, err)
	}
	if err := to.Sync(); err != nil {
		return 0, fmt.Errorf("%s: %w", part, trimPath(err))
	}
	if err := mayReplace(src, dst, o.Replace); err != nil { // it may exist by now
		return 0, err
	}
	if err := os.Rename(part, dst); err != nil {
		return 0, err
	}
	done = true
	return info.Size(), syncDirectory(filepath.Dir(dst))
}

// mayReplace returns an error if a backup of src must not be put at dst.
func mayReplace(src, dst string, replace bool) error {
	found, err := os.Lstat(dst)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !replace:
		return fmt.Errorf("%s: %w", dst, fs.ErrExist)
	case !found.Mode().IsRegular():
		return fmt.Errorf("%s: %w and is not a regular file", dst, fs.ErrExist)
	}
	if own, err := os.Stat(src); err == nil && os.SameFile(own, found) {
		return fmt.Errorf("%s: the backup would overwrite the file itself", dst)
	}
	return nil
}

// source is the file to copy.
type source interface {
	io.ReaderAt
	Stat() (os.FileInfo, error)
}
