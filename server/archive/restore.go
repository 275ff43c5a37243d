package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/zsetd/zsetd/snapshot"
)

// Restored describes what Restore has done.
type Restored struct {
	Size int64  // of the new file
	Keys int64  // in it, those past their deadlines included
	Kept string // the name that the old file has now; "" if there was none
}

// Restore puts a copy of the file at backup in place of the one at path, which no other
// process may have open, and keeps the old one beside it, under a name with the time
// now. Every value of the backup is built first, as [Check] does; the old file may be
// damaged. After an error the file at path is as it was, unless only its owner or mode could
// not be set.
func Restore(backup, path string, now time.Time, progress Progress) (out Restored, err error) {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}
	if out.Keys, err = sound(backup, now, progress); err != nil {
		return out, err
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		out.Size, err = Backup(backup, path, false, progress)
		return out, err
	case err != nil:
		return out, err
	case !info.Mode().IsRegular():
		return out, fmt.Errorf("%s is not a regular file", path)
	}
	if own, err := os.Stat(backup); err == nil && os.SameFile(own, info) {
		return out, fmt.Errorf("%s is the backup itself", path)
	}
	unlock := func() error { return nil }
	switch lock, err := snapshot.Lock(path); {
	case err == nil:
		unlock = lock.Close
	case errors.Is(err, snapshot.ErrDamaged), errors.Is(err, snapshot.ErrEmpty): // no server can have it open
	default:
		return out, Recognize(path, err)
	}
	if runtime.GOOS == "windows" { // it replaces no file that is open
		if err := unlock(); err != nil {
			return out, err
		}
		unlock = func() error { return nil }
	}
	defer func() { err = errors.Join(err, unlock()) }()
	back, err := keep(path, now, &out)
	if err != nil {
		return out, err
	}
	if out.Size, err = Backup(backup, path, true, progress); err != nil {
		out.Kept = ""
		return out, errors.Join(err, back())
	}
	return out, keepOwner(path, info)
}

// sound checks a file, and returns how many keys it has.
func sound(path string, now time.Time, progress Progress) (keys int64, err error) {
	s, err := OpenSource(path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	report, err := Check(s.Path, now, progress)
	if err != nil {
		return 0, err
	}
	for _, db := range report.Databases {
		keys += int64(db.Keys)
	}
	return keys, nil
}

// keep gives the file at path a second name, which no other file has, or, where a file can
// have only one, renames it. back undoes that.
func keep(path string, now time.Time, out *Restored) (back func() error, err error) {
	base := path + ".before-restore-" + now.UTC().Format("20060102T150405Z")
	for i := 1; ; i++ {
		name := base
		if i > 1 {
			name = fmt.Sprintf("%s-%d", base, i)
		}
		if _, err := os.Lstat(name); err == nil {
			continue
		}
		out.Kept = name
		if err = os.Link(path, name); err == nil {
			return func() error { return os.Remove(name) }, nil
		}
		if err = os.Rename(path, name); err == nil {
			return func() error { return os.Rename(name, path) }, nil
		}
		out.Kept = ""
		return nil, err
	}
}
