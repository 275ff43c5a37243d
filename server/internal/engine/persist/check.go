package persist

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/zsetd/zsetd/server/archive"
	"github.com/zsetd/zsetd/server/internal/engine/config"
	"github.com/zsetd/zsetd/snapshot"
)

// Check returns the error with which Open would refuse the data file at once. It changes
// nothing.
func Check(c *config.Settings) error {
	if c.Dbfilename == "" {
		return nil
	}
	path, err := filepath.Abs(filepath.Join(c.Dir, c.Dbfilename))
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && info.Mode().IsRegular() && info.Size() == 0:
		if !c.Appendonly && len(c.Save) == 0 {
			return nil // the file is made by the first save
		}
		if err := Creatable(path); err != nil {
			return &FileError{fmt.Errorf("cannot create the data file: %w", err)}
		}
		return nil
	case err != nil:
		return &FileError{err}
	}
	if err := snapshot.Probe(path); err != nil {
		return refused(archive.Recognize(path, err))
	}
	if err := Writable(path); err != nil {
		return &FileError{err}
	}
	return nil
}

// Writable returns an error if the file at path cannot be written to, or made.
func Writable(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil // to open a pipe would wait for its reader
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return Creatable(path)
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// Creatable returns an error if no file can be made at path, for its directory is
// missing or cannot be written to.
func Creatable(path string) error {
	dir := filepath.Dir(path)
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s: not a directory", dir)
	}
	if err := accessible(dir); err != nil {
		return &fs.PathError{Op: "create", Path: path, Err: err}
	}
	return nil
}
