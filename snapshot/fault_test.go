package snapshot

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/servertest/iofault"
)

// faulty is an operation whose system calls fail, one in each run.
type faulty struct {
	file *File                  // that it is about; may be nil
	path string                 // where the content is that must be that before or after the operation
	do   func() (string, error) // it returns what it has read
}

// faultFile returns the bytes of a file with journals, bases, tombstones, and groups in its
// log if it has one.
func faultFile(t *testing.T, log bool, groups int) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "f.db")
	f, err := Beside(path)
	if err == nil {
		_, err = f.Write(faultCheckpoint(0))
	}
	if err == nil {
		err = f.Publish(path)
	}
	if err == nil {
		c := faultCheckpoint(1, Base{Space: 1, Key: "a", Chunks: chunksOf("one", "two", "three")}, Base{Space: 1, Key: "b", Chunks: chunksOf(strings.Repeat("x", 50_000))},
			Base{Space: 2, Key: "gone"}, Base{Space: 2, Key: strings.Repeat("long", longKey), Chunks: chunksOf("value")})
		c.Log = log
		_, err = f.Write(c)
	}
	for i := range groups {
		if err == nil {
			_, err = f.Write(faultCheckpoint(10 + i))
		}
	}
	if err != nil || f.log.groups != uint32(groups) {
		t.Fatalf("%v; %d groups in the log, not %d", err, f.log.groups, groups)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func faultCheckpoint(n int, bases ...Base) *Checkpoint {
	return &Checkpoint{Spaces: []uint64{1, 2}, LastSpace: 2, Time: time.Unix(1700000000+int64(n), 0), Log: true, Bases: bases,
		Journal: chunksOf(fmt.Sprintf("journal %d", n), strings.Repeat("j", 3000))}
}

// TestFaults has each system call of each operation fail, with the error of a broken disk and
// with that of a full one. The operation returns that error, or it has succeeded, for it did
// not depend on that call. The content of the file is that before the operation or that
// after it. The latter after an error is only possible if the file is suspect; a file that is
// not suspect can be written to.
func TestFaults(t *testing.T) {
	skipRace(t)
	plain, logged, grouped := faultFile(t, false, 0), faultFile(t, true, 0), faultFile(t, true, 3)
	put := func(t *testing.T, file []byte) (path string) {
		t.Helper()
		path = filepath.Join(t.TempDir(), "f.db")
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	closed := func(file []byte, do func(path string) (string, error)) func(t *testing.T) faulty {
		return func(t *testing.T) faulty {
			path := put(t, file)
			return faulty{nil, path, func() (string, error) { return do(path) }}
		}
	}
	open := func(file []byte, do func(f *File) (string, error)) func(t *testing.T) faulty {
		return func(t *testing.T) faulty {
			f, err := Open(put(t, file), Visitor{})
			if err != nil {
				t.Fatal(err)
			}
			return faulty{f, f.path, func() (string, error) { return do(f) }}
		}
	}
	write := func(file []byte, c func(f *File) *Checkpoint) func(t *testing.T) faulty {
		return open(file, func(f *File) (string, error) {
			_, err := f.Write(c(f))
			return "", err
		})
	}
	// The calls that may fail without an error of the operation: those of checks that are left
	// out if they cannot be made, those that are made in another way then, and some of bbolt and
	// of package os. A transaction writes any number of pages, and is not listed.
	const check = "newfstatat f.db, openat f.db, fstat f.db, pread64 f.db, pread64 f.db"
	spares := map[string]string{
		"append":     "newfstatat f.db, eventfd2, io_setup, io_submit, fstat f.db",
		"open":       "pread64 f.db, fstat f.db, pread64 f.db, fstat f.db, fstat f.db, pread64 f.db, pread64 f.db",
		"lock":       "pread64 f.db",
		"intact":     check,
		"publish":    strings.ReplaceAll(check, "f.db", "f.db.new") + ", newfstatat f.db",
		"backup":     "unlinkat f.db.copy.new, newfstatat f.db.copy",
		"copy":       "",
		"copy again": "",
		"inspect":    "",
		"journals":   "",
		"probe":      "",
	}
	for name, prepare := range map[string]func(t *testing.T) faulty{
		"append": write(logged, func(*File) *Checkpoint { return faultCheckpoint(20) }),
		"append to groups": func(t *testing.T) faulty {
			x := write(logged, func(*File) *Checkpoint { return faultCheckpoint(20) })(t)
			logWrite(t, x.file, "a group")
			return x
		},
		"transaction": write(logged, func(*File) *Checkpoint {
			return faultCheckpoint(20, Base{Space: 1, Key: "a", Chunks: chunksOf("new")}, Base{Space: 1, Key: "b"}, Base{Space: 2, Key: "gone", Chunks: chunksOf("again")})
		}),
		"transaction after groups": write(grouped, func(*File) *Checkpoint { return faultCheckpoint(20, Base{Space: 1, Key: "c", Chunks: chunksOf("new")}) }),
		"growing transaction": write(plain, func(*File) *Checkpoint {
			return faultCheckpoint(20, Base{Space: 1, Key: "large", Chunks: chunksOf(strings.Repeat("y", 300_000))})
		}),
		"forget": write(grouped, func(f *File) *Checkpoint {
			c := faultCheckpoint(20, Base{Space: 1, Key: "a", Chunks: chunksOf("new")})
			c.Forget = f.Manifest().Generation
			return c
		}),
		"remove the log": write(grouped, func(*File) *Checkpoint {
			c := faultCheckpoint(20)
			c.Log = false
			return c
		}),
		"make a log": write(plain, func(*File) *Checkpoint { return faultCheckpoint(20) }),
		"publish": func(t *testing.T) faulty {
			path := put(t, grouped)
			f, err := Beside(path)
			if err == nil {
				_, err = f.Write(faultCheckpoint(20))
			}
			if err != nil {
				t.Fatal(err)
			}
			return faulty{f, path, func() (string, error) { return "", f.Publish(path) }}
		},
		"beside": closed(logged, func(path string) (string, error) {
			if err := os.WriteFile(path+".new", []byte("incomplete"), 0o600); err != nil {
				return "", err
			}
			f, err := Beside(path)
			if err != nil {
				return "", err
			}
			return "", f.Discard()
		}),
		"journals": open(grouped, func(f *File) (all string, err error) {
			err = f.Journals(func(generation uint64, records []byte) error {
				all += fmt.Sprintf("%d %s\n", generation, records)
				return nil
			})
			return all, err
		}),
		"intact": func(t *testing.T) faulty {
			x := open(grouped, func(f *File) (string, error) { return "", f.Intact() })(t)
			later := time.Now().Add(time.Hour)
			if err := os.Chtimes(x.path, later, later); err != nil {
				t.Fatal(err)
			}
			return x
		},
		"open": closed(grouped, func(path string) (string, error) {
			var all visited
			f, err := Open(path, all.visitor())
			if err != nil {
				return "", err
			}
			return fmt.Sprint(all.bases, all.journals), f.Close()
		}),
		"inspect": closed(grouped, func(path string) (string, error) {
			var all visited
			info, err := Inspect(path, all.visitor())
			return fmt.Sprint(info.Size, info.Free, all.bases, all.journals), err
		}),
		"probe": closed(grouped, func(path string) (string, error) { return "", Probe(path) }),
		"lock": closed(grouped, func(path string) (string, error) {
			lock, err := Lock(path)
			if err != nil {
				return "", err
			}
			return "", lock.Close()
		}),
		"salvage": closed(grouped, func(path string) (string, error) {
			var all visited
			s, err := Salvage(path, all.visitor())
			if err == nil && !s.Whole && len(s.Pages) == 0 {
				return "", fmt.Errorf("%+v", s)
			}
			return "", err
		}),
		"copy": closed(plain, func(path string) (string, error) {
			to := path + ".copy"
			if err := Copy(path, to, CopyOptions{}); err != nil {
				if _, there := os.Lstat(to); there == nil && !strings.Contains(err.Error(), "unlinkat") {
					return "", fmt.Errorf("a copy is left after %v", err)
				}
				return "", err
			}
			return content(to)
		}),
		"copy again": closed(plain, func(path string) (string, error) {
			from, err := os.Open(path)
			if err != nil {
				return "", err
			}
			defer from.Close()
			to, err := os.Create(path + ".copy")
			if err != nil {
				return "", err
			}
			defer to.Close()
			for range 2 {
				if whole, err := new(CopyOptions).copyOnce(from, to); err != nil || !whole {
					return "", err
				}
			}
			return content(to.Name())
		}),
		"backup": closed(plain, func(path string) (string, error) {
			to := path + ".copy"
			size, err := Backup(path, to, CopyOptions{})
			if err != nil {
				_, absent := os.Lstat(to)
				if left, _ := filepath.Glob(to + ".new"); size != 0 && absent != nil || len(left) > 0 && !strings.Contains(err.Error(), "unlinkat") {
					return "", fmt.Errorf("%d bytes and the files %q after %v", size, left, err)
				}
				return "", err
			}
			is, err := content(to)
			return fmt.Sprint(size, is), err
		}),
	} {
		t.Run(name, func(t *testing.T) {
			var spared []string
			writes := false
			for _, errno := range []syscall.Errno{syscall.EIO, syscall.ENOSPC} {
				var want, was, is, all string
				if errno == syscall.ENOSPC && !writes {
					continue
				}
				iofault.Each(t, errno, func() (do func(), check func(string)) {
					x := prepare(t)
					writes = x.file != nil
					var read string
					var err error
					if was == "" {
						was, _ = content(x.path)
					}
					return func() { read, err = x.do() }, func(failed string) {
						if failed == "" {
							is, _ = content(x.path)
							want, all = read, journals(t, x.path)
						}
						if err == nil && failed != "" && !strings.HasPrefix(failed, "close ") {
							spared = append(spared, failed)
						}
						x.check(t, failed, err, errno, was, is, all)
						if err == nil && read != want {
							t.Errorf("%s fails: it has read %q in place of %q", failed, read, want)
						}
					}
				})
				if want, known := spares[name]; known && strings.Join(spared, ", ") != want {
					t.Errorf("without an error fail %q, want %q", strings.Join(spared, ", "), want)
				}
				spared = nil
			}
		})
	}
}

// check verifies what is left of a file after an operation in which a call has failed.
func (x *faulty) check(t *testing.T, failed string, err error, errno syscall.Errno, was, is, all string) {
	t.Helper()
	got, err2 := content(x.path)
	switch {
	case err2 != nil:
		t.Errorf("%s fails: %v, and then reading: %v", failed, err, err2)
	case err == nil && iofault.Changes(failed):
		t.Errorf("%s fails: no error", failed)
	case err == nil && got != is:
		t.Errorf("%s fails: no error, and the file has %s, want %s", failed, got, is)
	case err != nil && (failed == "" || !strings.Contains(err.Error(), errno.Error())): // bbolt does not wrap all errors
		t.Errorf("%s fails: %v", failed, err)
	case err != nil && got != was && (got != is || x.file != nil && x.file.Suspect() == nil):
		t.Errorf("%s fails: %v, and the file has %s, want %s", failed, err, got, was)
	}
	if err != nil && x.file != nil && x.file.Suspect() == nil {
		if _, err := x.do(); err != nil {
			t.Errorf("%s fails once: %v", failed, err)
		} else if got := journals(t, x.path); got != all {
			t.Errorf("%s fails once, and the file has the journals %.100q, want %.100q", failed, got, all)
		}
	}
	if x.file == nil {
		return
	}
	if err := x.file.Close(); err != nil {
		t.Errorf("%s fails: close: %v", failed, err)
	}
	if err == nil {
		return
	}
	f, err := Open(x.path, Visitor{})
	if err != nil {
		t.Errorf("%s fails: the file cannot be opened: %v", failed, err)
		return
	}
	f.db.NoSync = true
	if _, err := f.Write(&Checkpoint{Spaces: f.Manifest().Spaces, LastSpace: f.Manifest().LastSpace, Journal: chunksOf("more")}); err != nil {
		t.Errorf("%s fails: the file cannot be written to: %v", failed, err)
	}
	if err := f.Close(); err != nil || !strings.HasSuffix(journals(t, x.path), "more") {
		t.Errorf("%s fails: %v, and the file has not the last journal", failed, err)
	}
}
