package archive

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/zsetd/zsetd/snapshot"
)

// Compact rewrites the file at path without waste: a base for each key, no
// journals, and no records of databases that were cleared. Keys past their
// deadlines stay; dropping them is a server's decision. The new file is written
// beside the old one, read back and compared, and then replaces it; until then the
// old one is unchanged. No other process may have the file open.
func Compact(path string, progress Progress) (before, after int64, err error) {
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return 0, 0, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0, 0, err
	}
	// The new file is made beside the old one, under the name that a server uses
	// for the same purpose. So the old one must be open for writing, which only one
	// process can do. Opening it reads and verifies all of it: a damaged file is
	// refused before anything is written, and a sound one is read twice.
	lock, err := snapshot.Open(path, snapshot.Visitor{})
	if err != nil {
		return 0, 0, Recognize(path, err)
	}
	w, err := newWriter(path, true)
	if err != nil {
		return 0, 0, errors.Join(err, lock.Close())
	}
	m := lock.Manifest()
	w.begin(m.Spaces, m.LastSpace, m.Time)
	if _, err = Each(path, progress.of("compact"), w.add); err == nil {
		err = keepOwner(w.file.Path(), info)
	}
	if err == nil {
		err = w.finish(progress)
	}
	if err != nil {
		return 0, 0, errors.Join(w.discard(err), lock.Close())
	}
	if err := lock.Close(); err != nil {
		return 0, 0, err
	}
	now, err := os.Stat(path)
	if err != nil {
		return 0, 0, err
	}
	return info.Size(), now.Size(), nil
}
