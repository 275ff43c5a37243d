package archive_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/archive"
	"github.com/zsetd/zsetd/snapshot"
)

func TestRestore(t *testing.T) {
	dir := t.TempDir()
	data, backup := filepath.Join(dir, "data.db"), filepath.Join(dir, "backup.db")
	srv := open(t, data)
	do(t, srv, "SET", "old", "some text")
	do(t, srv, "SAVE")
	if _, err := archive.Backup(data, backup, false, nil); err != nil {
		t.Fatal(err)
	}
	do(t, srv, "SET", "new", "other text")
	do(t, srv, "SAVE")
	at := time.Date(2026, 11, 29, 18, 0, 0, 0, time.UTC)
	names := func() (names []string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	unchanged := func(what string, err, want error) {
		t.Helper()
		if want != nil && !errors.Is(err, want) || err == nil {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
		if n := names(); len(n) != 2 {
			t.Errorf("%s leaves %q", what, n)
		}
	}
	_, err := archive.Restore(backup, data, at, nil)
	unchanged("a file in use", err, snapshot.ErrInUse)
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(data)
	if err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(backup)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(backup, bytes.ReplaceAll(good, []byte("some text"), []byte("same text")), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = archive.Restore(backup, data, at, nil)
	unchanged("a damaged backup", err, snapshot.ErrDamaged)
	if err := os.WriteFile(backup, good, 0o600); err != nil {
		t.Fatal(err)
	}
	stop := errors.New("stop")
	_, err = archive.Restore(backup, data, at, func(step string, _, _ int64) error {
		if step == "verify" { // the last step, when the old file has its second name
			return stop
		}
		return nil
	})
	unchanged("an interrupt", err, stop)
	_, err = archive.Restore(backup, backup, at, nil)
	unchanged("the backup itself", err, nil)
	if now, err := os.ReadFile(data); err != nil || !bytes.Equal(now, before) {
		t.Errorf("the file has changed; %v", err)
	}
	// It works, also in place of a damaged file, and keeps each old one.
	if err := os.Chmod(data, 0o640); err != nil {
		t.Fatal(err)
	}
	kept := data + ".before-restore-20261129T180000Z"
	for i, want := range []string{kept, kept + "-2"} {
		out, err := archive.Restore(backup, data, at, nil)
		if err != nil || out.Kept != want || out.Keys != 1 || out.Size != int64(len(good)) {
			t.Fatalf("%+v, %v", out, err)
		}
		if _, same := differences(t, backup, data); !same.Equal() || same.Same != 1 {
			t.Errorf("%+v", same)
		}
		if info, err := os.Stat(data); err != nil || info.Mode().Perm() != 0o640 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
		if i == 0 {
			if old, err := os.ReadFile(kept); err != nil || !bytes.Equal(old, before) {
				t.Errorf("the old file is not kept; %v", err)
			}
			if err := os.WriteFile(data, append([]byte(nil), before[:len(before)/2]...), 0o640); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Where there is no file, none is kept.
	if out, err := archive.Restore(backup, filepath.Join(dir, "fresh.db"), at, nil); err != nil || out.Kept != "" || out.Keys != 1 {
		t.Errorf("%+v, %v", out, err)
	}
	// A file of something else is not replaced.
	other := filepath.Join(dir, "other")
	if err := os.WriteFile(other, []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Restore(backup, other, at, nil); !errors.Is(err, snapshot.ErrForeign) {
		t.Error(err)
	}
}
