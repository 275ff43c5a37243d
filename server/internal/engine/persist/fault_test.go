package persist_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/zsetd/zsetd/server/internal/engine/config"
	"github.com/zsetd/zsetd/server/internal/engine/persist"
	"github.com/zsetd/zsetd/server/servertest/iofault"
	"github.com/zsetd/zsetd/snapshot"
)

// TestFaults has each system call fail with which a keeper makes a data file, or checks whether
// it could. An error says so, and is one of the file. Then there is no file, or one without
// keys, which the next keeper opens.
func TestFaults(t *testing.T) {
	settings := map[string]string{"appendfsync": "always"}
	for name, do := range map[string]func(path string) func() error{
		"create": func(path string) func() error {
			h := hostOf(path, settings, nil)
			return func() error {
				if err := h.k.Open(); err != nil {
					return err
				}
				return h.k.Abandon()
			}
		},
		"check": func(path string) func() error {
			c := config.Defaults()
			c.Dir, c.Dbfilename, c.Appendonly = filepath.Dir(path), filepath.Base(path), true
			return func() error { return persist.Check(&c) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			iofault.Each(t, syscall.EIO, func() (func(), func(string)) {
				path := filepath.Join(t.TempDir(), "k.db")
				var err error
				do := do(path)
				return func() { err = do() }, func(failed string) {
					var file *persist.FileError
					if err != nil && (failed == "" || !errors.As(err, &file) && !strings.Contains(strings.ToLower(err.Error()), "close") || !strings.Contains(err.Error(), syscall.EIO.Error())) {
						t.Errorf("%s fails: %v", failed, err)
					}
					if err == nil && iofault.Changes(failed) {
						t.Errorf("%s fails: no error", failed)
					}
					if _, err := snapshot.Read(path, snapshot.Visitor{}); err != nil && !errors.Is(err, os.ErrNotExist) {
						t.Errorf("%s fails: the file: %v", failed, err)
					}
					if h, err := open(path, settings); err != nil {
						t.Errorf("%s fails once: %v", failed, err)
					} else if err := h.k.Abandon(); err != nil {
						t.Errorf("%s fails once: %v", failed, err)
					}
				}
			})
		})
	}
}

// TestCheckOfFile has each system call fail with which a data file is checked.
func TestCheckOfFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k.db")
	h, err := open(path, map[string]string{"appendfsync": "always"})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.k.Abandon(); err != nil {
		t.Fatal(err)
	}
	c := config.Defaults()
	c.Dir, c.Dbfilename = filepath.Dir(path), filepath.Base(path)
	var spared []string
	iofault.Each(t, syscall.EIO, func() (func(), func(string)) {
		var err error
		return func() { err = persist.Check(&c) }, func(failed string) {
			var file *persist.FileError
			if err != nil && (!errors.As(err, &file) || !errors.Is(err, syscall.EIO)) {
				t.Errorf("%s fails: %v", failed, err)
			}
			if err == nil && failed != "" && !strings.HasPrefix(failed, "close ") {
				spared = append(spared, failed)
			}
		}
	})
	if len(spared) != 1 || spared[0] != "newfstatat k.db" { // before the file is opened, which has the error, too
		t.Errorf("without an error fail %q", spared)
	}
}
