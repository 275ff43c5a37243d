package archive_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/archive"
	"github.com/zsetd/zsetd/server/rdb"
	"github.com/zsetd/zsetd/server/servertest/iofault"
)

// faultLines are lines of an export in JSON, one with deadlines of members.
const faultLines = `{"db":0,"key":"text","type":"string","value":"v"}
{"db":3,"key":"set","type":"zset","value":[["a",1],["b",2]],"deadlines":[["a",33000000000000]]}
{"db":0,"key":"list","type":"list","value":["x","y"]}
`

// TestFaults has each system call of each operation on files fail. The operation returns that
// error, or it has succeeded, for it did not depend on that call. Then the file that it was to
// make is not there or whole, and the one that it was to replace has all keys.
func TestFaults(t *testing.T) {
	dir := t.TempDir()
	whole := filepath.Join(dir, "whole.db")
	if _, err := new(archive.Import).JSON(strings.NewReader(faultLines), whole); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	lines := func(path string) (string, error) {
		var b bytes.Buffer
		_, err := archive.ExportJSON(&b, path, time.Unix(0, 0), nil)
		return b.String(), err
	}
	want, err := lines(whole)
	if err != nil || strings.Count(want, "\n") != 3 {
		t.Fatal(err, want)
	}
	var dump bytes.Buffer
	if _, err := archive.ExportRDB(&dump, whole, rdb.Redis8, time.Unix(0, 0), nil); err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func(path, to string) error{
		"compact": func(path, _ string) error {
			before, after, err := archive.Compact(path, nil)
			if err != nil && (before != 0 || after != 0) {
				return fmt.Errorf("%d bytes before, %d after, with %v", before, after, err)
			}
			return err
		},
		"import JSON": func(_, to string) error {
			_, err := new(archive.Import).JSON(strings.NewReader(faultLines), to)
			return err
		},
		"import RDB": func(_, to string) error {
			_, err := new(archive.Import).RDB(bytes.NewReader(dump.Bytes()), to)
			return err
		},
		"salvage": func(path, to string) error {
			_, err := archive.Salvage(path, to, nil)
			return err
		},
		"backup": func(path, to string) error {
			_, err := archive.Backup(path, to, false, nil)
			return err
		},
		"check": func(path, _ string) error {
			r, err := archive.Check(path, time.Now(), nil)
			if err == nil && r.Void != 0 {
				return fmt.Errorf("%+v", r)
			}
			return err
		},
		"source": func(path, _ string) error {
			s, err := archive.OpenSource(path)
			if err != nil {
				return err
			}
			return s.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			iofault.Each(t, syscall.EIO, func() (func(), func(string)) {
				dir := t.TempDir()
				path, to := filepath.Join(dir, "f.db"), filepath.Join(dir, "to.db")
				if err := os.WriteFile(path, file, 0o600); err != nil {
					t.Fatal(err)
				}
				var err error
				return func() { err = do(path, to) }, func(failed string) {
					if err != nil && (failed == "" || !strings.Contains(err.Error(), syscall.EIO.Error())) {
						t.Errorf("%s fails: %v", failed, err)
					}
					if err == nil && iofault.Changes(failed) {
						t.Errorf("%s fails: no error", failed)
					}
					if got, err2 := lines(path); err2 != nil || got != want {
						t.Errorf("%s fails: %v, and the file has %s, %v", failed, err, got, err2)
					}
					got, err2 := lines(to)
					if info, stat := os.Stat(to); stat == nil && info.Size() == 0 && strings.Contains(failed, "unlinkat") {
						return
					}
					if absent := errors.Is(err2, os.ErrNotExist); !absent && (err2 != nil || got != want && name != "salvage") {
						t.Errorf("%s fails: %v, and the new file has %s, %v", failed, err, got, err2)
					}
					// A file that could not be created may be left, without any data.
					for _, path := range []string{path + ".new", to + ".new"} {
						if info, absent := os.Stat(path); absent == nil && info.Size() > 16<<10 && !strings.Contains(failed, "unlinkat") {
							t.Errorf("%s fails: %v, and %s is left", failed, err, path)
						}
					}
				}
			})
		})
	}
}
