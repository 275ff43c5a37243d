package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

const (
	// copyTime is how long Copy goes on trying, and copyTries how often it
	// tries at least.
	copyTime  = 5 * time.Second
	copyTries = 3
)

// Copy makes a copy of a file that another process may have open and be writing
// to. dst must not exist. The copy is what the file was at one instant: between
// two commits bbolt writes only to pages that the last commit has no use for, so
// a copy during which no commit came is whole, whatever was being written.
//
// If commits come faster than the file can be copied, Copy gives up after some
// seconds with ErrInUse.
func Copy(src, dst string) (err error) {
	from, err := os.Open(src)
	if err != nil {
		return fmt.Errorf("%s: %w", src, trimPath(err))
	}
	defer from.Close()
	to, err := os.OpenFile(dst, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("%s: %w", dst, trimPath(err))
	}
	defer func() {
		if err = errors.Join(err, to.Close()); err != nil {
			err = errors.Join(err, os.Remove(dst))
		}
	}()
	began := time.Now()
	for try := 1; ; try++ {
		whole, err := copyOnce(from, to)
		if err != nil && !errors.Is(err, ErrDamaged) {
			return fmt.Errorf("%s: %w", src, err)
		}
		if whole {
			return nil
		}
		if try >= copyTries && time.Since(began) > copyTime {
			if err != nil {
				return fmt.Errorf("%s: %w", src, err)
			}
			return fmt.Errorf("%s: %w, and it is written to more often than it can be copied: stop the server, or let it save less often for a while (CONFIG SET save \"\", CONFIG SET appendonly no)",
				src, ErrInUse)
		}
		// A damaged meta may be one that is being written.
		time.Sleep(time.Millisecond)
	}
}

// copyOnce copies a file and reports whether no commit came meanwhile.
func copyOnce(from source, to *os.File) (whole bool, err error) {
	info, err := from.Stat()
	if err != nil {
		return false, err
	}
	tree, err := openPages(from, info.Size())
	if err != nil {
		return false, err
	}
	if err := to.Truncate(0); err != nil {
		return false, err
	}
	if _, err := to.Seek(0, io.SeekStart); err != nil {
		return false, err
	}
	if _, err := io.Copy(to, io.NewSectionReader(from, 0, int64(tree.pages*pageSize))); err != nil {
		return false, err
	}
	// Every commit writes a meta with a higher number, so none came in between if the
	// metas are still those that told how much to copy. The copy's own were read
	// meanwhile: they have to be the same.
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

// source is what is copied: a file.
type source interface {
	io.ReaderAt
	Stat() (os.FileInfo, error)
}
