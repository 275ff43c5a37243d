package archive

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/zsetd/zsetd/snapshot"
)

// Source is a file that does not change while it is read: the file itself, locked,
// or a copy if a server has it open.
type Source struct {
	Path   string // the file to read
	Copied bool

	lock *snapshot.Locked
	dir  string // directory of the copy
}

// OpenSource locks the file at path, or copies it if another process has it open;
// see [snapshot.Copy]. The copy lies beside the file, or if that fails, among the
// temporary files.
func OpenSource(path string) (*Source, error) {
	lock, err := snapshot.Lock(path)
	if err == nil {
		return &Source{Path: path, lock: lock}, nil
	}
	if !errors.Is(err, snapshot.ErrInUse) {
		return nil, Recognize(path, err)
	}
	s := &Source{Copied: true}
	base := filepath.Base(path)
	if s.dir, err = os.MkdirTemp(filepath.Dir(path), base+".copy-*"); err != nil {
		if s.dir, err = os.MkdirTemp("", base+".copy-*"); err != nil {
			return nil, err
		}
	}
	s.Path = filepath.Join(s.dir, base)
	if err := snapshot.Copy(path, s.Path, snapshot.CopyOptions{}); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close unlocks the file, or removes the copy.
func (s *Source) Close() error {
	if s.Copied {
		return os.RemoveAll(s.dir)
	}
	return s.lock.Close()
}
