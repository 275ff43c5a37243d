package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/zsetd/zsetd/server/archive"
	"github.com/zsetd/zsetd/snapshot"
)

// CheckConfig returns the error with which a start with these options would fail.
func CheckConfig(o Options, p Parts) error {
	srv, err := configured(o, p)
	if err != nil {
		return err
	}
	for _, p := range []struct{ name, path string }{
		{"logfile", srv.Config.Logfile}, {"pidfile", srv.Config.Pidfile},
	} {
		if p.path == "" {
			continue
		}
		if err := mayWrite(p.path); err != nil {
			return fmt.Errorf("zsetd: %s: %w", p.name, err)
		}
	}
	if path := srv.Config.Unixsocket; path != "" {
		if err := mayCreate(path); err != nil {
			return fmt.Errorf("zsetd: unixsocket: %w", err)
		}
	}
	return srv.checkFile()
}

// checkFile returns the error with which keep would refuse the file of the data at
// once.
func (srv *Engine) checkFile() error {
	if srv.Config.Dbfilename == "" {
		return nil
	}
	path, err := filepath.Abs(filepath.Join(srv.Config.Dir, srv.Config.Dbfilename))
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && info.Mode().IsRegular() && info.Size() == 0:
		if err := mayCreate(path); err != nil {
			return &FileError{fmt.Errorf("cannot create the data file: %w", err)}
		}
		return nil
	case err != nil:
		return &FileError{err}
	}
	if err := snapshot.Probe(path); err != nil {
		return refused(archive.Recognize(path, err))
	}
	if err := mayWrite(path); err != nil {
		return &FileError{err}
	}
	return nil
}

// mayWrite returns an error if the file at path cannot be written to, or made.
func mayWrite(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil // to open a pipe would wait for its reader
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return mayCreate(path)
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// mayCreate returns an error if no file can be made at path, for its directory is
// missing or cannot be written to.
func mayCreate(path string) error {
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
