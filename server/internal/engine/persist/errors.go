package persist

import (
	"errors"
	"fmt"

	"github.com/zsetd/zsetd/snapshot"
)

// ErrServerClosed is the error of calls that need a keeper after it is closed.
var ErrServerClosed = errors.New("zsetd: server closed")

// errNoFile is the error of a save of data that are kept in no file.
var errNoFile = errors.New("zsetd: there is no data file to save to")

// FileError is the error for a data file that cannot be used. Its one line names the
// file, the reason and possible remedies.
type FileError struct{ err error }

// Error returns the message, in one line.
func (e *FileError) Error() string { return "zsetd: " + e.err.Error() }

// Unwrap returns the cause: snapshot.ErrDamaged, snapshot.ErrNewer,
// snapshot.ErrForeign, snapshot.ErrInUse or an error of the operating system.
func (e *FileError) Unwrap() error { return e.err }

// refused adds advice to an error of reading a file.
func refused(err error) error {
	switch {
	case errors.Is(err, snapshot.ErrDamaged):
		err = fmt.Errorf("%w; the file is unchanged: `zsetd check` shows the damage, `zsetd salvage` recovers what is readable", err)
	case errors.Is(err, snapshot.ErrNewer):
		err = fmt.Errorf("%w; the file is unchanged: use the version of zsetd that has written it, or a later one", err)
	case errors.Is(err, snapshot.ErrForeign):
		err = fmt.Errorf("%w; the file is unchanged: set dir and dbfilename to another file", err)
	}
	return &FileError{err}
}

// errSuspended is the error of a save while the data in memory are not to be kept.
var errSuspended = errors.New("zsetd: the data of the primary are not complete: the file keeps the last state")
