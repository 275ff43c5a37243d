package snapshot

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// probeTries is the number of times that Probe reads a file that seems to be
// damaged: another process may be writing to it.
const probeTries = 5

// Probe returns the error with which [Open] would immediately refuse a file: one
// that cannot be read, is empty, is damaged at its beginning, or was not written by
// this package. It reads some pages, locks and changes nothing, and may be called
// while another process has the file open. Damage in the rest of the file is for
// [Read] to find.
func Probe(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, trimPath(err))
	}
	defer file.Close()
	for try := 1; ; try++ {
		err := probe(file)
		if err == nil {
			return nil
		}
		if !errors.Is(err, ErrDamaged) || try == probeTries {
			return fmt.Errorf("%s: %w", path, trimPath(err))
		}
		time.Sleep(time.Millisecond)
	}
}

// probe reads the metas and the manifest, which is the first record.
func probe(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	tree, err := openPages(file, info.Size())
	if err != nil {
		return err
	}
	found := errors.New("found")
	r := reading{v: Visitor{Begin: func(Manifest) error { return found }}}
	switch err := tree.walk(r.record); {
	case errors.Is(err, found):
		return nil
	case err != nil:
		return err
	}
	return r.noManifest()
}

// noManifest returns the error that a file has no manifest.
func (r *reading) noManifest() error {
	return fmt.Errorf("%w: a bbolt file without a manifest", ErrForeign)
}
