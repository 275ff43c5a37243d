package persist_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/servertest/rerun"
	"github.com/zsetd/zsetd/snapshot"

	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

// backedUp returns configurations that differ in how a server keeps its data.
func backedUp() map[string]map[string]string {
	return map[string]map[string]string{
		"every second": {"save": "1 1"},
		"always":       {"appendonly": "yes", "appendfsync": "always"},
		"by hand":      {"save": ""},
		"in memory":    nil,
	}
}

// keysToCopy returns the number of keys of a server whose data are written again and again:
// fewer under the race detector, which makes that ten times as slow.
func keysToCopy() int {
	if rerun.Race {
		return 7000
	}
	return 20_000
}

// TestBackup checks that a backup has the data of one instant during the call, while
// clients change the data all the time.
func TestBackup(t *testing.T) {
	for name, config := range backedUp() {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			o := engine.Options{Config: config}
			if config != nil {
				o.File = filepath.Join(dir, "k.db")
			}
			srv, err := enginetest.New(o)
			if err != nil {
				t.Fatal(err)
			}
			defer srv.Close()
			enginetest.Fill(srv, keysToCopy(), 100)
			enginetest.Must(t, srv, "SADD set a b c", "HSET h f v", "ZADD z 1 a 2 b", "RPUSH l 1 2 3", "SET later 1 PXAT 99999999999999", "SET one 0", "SET two 0")
			stop := make(chan struct{})
			var load sync.WaitGroup
			for w := range 2 {
				load.Go(func() {
					for n := 0; ; n++ {
						select {
						case <-stop:
							return
						default:
						}
						enginetest.SayArgs(srv, "MSET", "one", fmt.Sprint(w, n), "two", fmt.Sprint(w, n))
						enginetest.Say(srv, fmt.Sprintf("DEL fill:%d", n%5000))
						enginetest.Say(srv, fmt.Sprintf("SET fill:%d %d", n%5000, n))
						enginetest.Say(srv, fmt.Sprintf("RENAME fill:%d moved:%d", 5000+n%1000, n%10))
					}
				})
			}
			for i := range 3 {
				enginetest.Must(t, srv, fmt.Sprint("SET before ", i))
				path := filepath.Join(dir, fmt.Sprint("copy", i))
				if err := srv.BackupFile(t.Context(), path); err != nil {
					t.Fatal(err)
				}
				copied := enginetest.Keep(t, path, nil)
				if one, two := enginetest.Say(copied, "GET one"), enginetest.Say(copied, "GET two"); one != two || one == "0" && i > 0 {
					t.Errorf("one is %s and two is %s, want equal values", one, two)
				}
				enginetest.Must(t, copied, fmt.Sprint("GET before -> ", i), "SCARD set -> 3", "HGET h f -> v", "LLEN l -> 3", "PEXPIRETIME later -> 99999999999999")
				if err := copied.Check(); err != nil {
					t.Error(err)
				}
				copied.Close()
			}
			close(stop)
			load.Wait()
			path := filepath.Join(dir, "last")
			var streamed bytes.Buffer
			n, err := srv.Backup(t.Context(), &streamed)
			if err != nil || n != int64(streamed.Len()) {
				t.Fatal(n, streamed.Len(), err)
			}
			if err := os.WriteFile(path, streamed.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			copied := enginetest.Keep(t, path, nil)
			if enginetest.DebugDigest(copied) != enginetest.DebugDigest(enginetest.Keep(t, backup(t, srv, dir), nil)) || enginetest.DebugDigest(copied) == enginetest.DebugDigest(enginetest.Keep(t, filepath.Join(dir, "empty"), nil)) {
				t.Error("two backups without a change between them differ")
			}
			if config == nil && srv.Keys.Recording() {
				t.Error("the server still records changes for the backup")
			}
			enginetest.Must(t, srv, "SET a 1 -> OK")
		})
	}
}

func backup(t *testing.T, srv *enginetest.Server, dir string) (path string) {
	t.Helper()
	path = filepath.Join(dir, "again")
	if err := srv.BackupFile(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestBackupFails(t *testing.T) {
	for name, config := range backedUp() {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			o := engine.Options{Config: config}
			if config != nil {
				o.File = filepath.Join(dir, "k.db")
			}
			srv, err := enginetest.New(o)
			if err != nil {
				t.Fatal(err)
			}
			defer srv.Close()
			enginetest.Must(t, srv, "SET a 1")
			there := filepath.Join(dir, "there")
			if err := os.WriteFile(there, []byte("mine"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := srv.BackupFile(t.Context(), there); !errors.Is(err, os.ErrExist) {
				t.Errorf("over another file: %v", err)
			}
			if err := srv.BackupFile(t.Context(), filepath.Join(dir, "nowhere", "x")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("where there is no folder: %v", err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := srv.BackupFile(ctx, filepath.Join(dir, "x")); !errors.Is(err, context.Canceled) {
				t.Errorf("canceled: %v", err)
			}
			if _, err := srv.Backup(ctx, new(bytes.Buffer)); !errors.Is(err, context.Canceled) {
				t.Errorf("canceled: %v", err)
			}
			if config != nil {
				if err := srv.Close(); err != nil {
					t.Fatal(err)
				}
				if err := srv.BackupFile(t.Context(), filepath.Join(dir, "x")); !errors.Is(err, engine.ErrServerClosed) {
					t.Errorf("closed: %v", err)
				}
			}
			left, _ := os.ReadDir(dir)
			for _, e := range left {
				if e.Name() != "k.db" && e.Name() != "there" {
					t.Errorf("%s is left", e.Name())
				}
			}
			if b, _ := os.ReadFile(there); string(b) != "mine" {
				t.Errorf("the other file is %q", b)
			}
		})
	}
}

// TestBackupAndReload checks that backups of data in memory and DEBUG RELOAD, which
// replaces the data, do not block each other.
func TestBackupAndReload(t *testing.T) {
	srv, err := enginetest.New(engine.Options{Config: map[string]string{"enable-debug-command": "yes"}})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	enginetest.Fill(srv, keysToCopy(), 100)
	var backups sync.WaitGroup
	done := make(chan struct{})
	for i := range 2 {
		path := filepath.Join(t.TempDir(), fmt.Sprint(i))
		backups.Go(func() {
			if err := srv.BackupFile(t.Context(), path); err != nil {
				t.Error(err)
			}
		})
	}
	go func() {
		backups.Wait()
		close(done)
	}()
	for reloads := 0; ; reloads++ {
		enginetest.Must(t, srv, "DEBUG RELOAD")
		select {
		case <-done:
			return
		default:
		}
	}
}

// A backup of a server that cannot save fails.
func TestBackupWithoutSave(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "k.db")
	srv := enginetest.Keep(t, path, nil)
	enginetest.Must(t, srv, "SET a 1", "SAVE")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	enginetest.Must(t, srv, "SET a 2")
	if err := srv.BackupFile(t.Context(), filepath.Join(dir, "x")); !errors.Is(err, snapshot.ErrReplaced) {
		t.Error(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// cancelingWriter cancels a context at the first write.
type cancelingWriter struct {
	cancel func()
	n      int
}

// Write implements io.Writer.
func (w *cancelingWriter) Write(p []byte) (int, error) {
	w.cancel()
	w.n += len(p)
	return len(p), nil
}

// TestBackupEnds checks backups without a place for the temporary file, and with a context that
// ends before, or meanwhile.
func TestBackupEnds(t *testing.T) {
	srv, err := enginetest.New(engine.Options{Config: map[string]string{"enable-debug-command": "yes"}})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	for i := range 100 {
		if _, err := srv.Do(t.Context(), "SETRANGE", fmt.Sprint("key", i), 4000, "x"); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	ctx, cancel := context.WithCancel(t.Context())
	w := &cancelingWriter{cancel: cancel}
	for range 2 {
		n := w.n
		if _, err := srv.Backup(ctx, w); !errors.Is(err, context.Canceled) || n > 0 && w.n > n {
			t.Errorf("canceled: %v, %d bytes", err, w.n)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
	t.Setenv("TMPDIR", filepath.Join(dir, "none"))
	if n, err := srv.Backup(t.Context(), io.Discard); n != 0 || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a folder: %d, %v", n, err)
	}
	for command, want := range map[string]string{
		"LOADAOF": "ERR Error trying to load the AOF files, check server logs.", "RELOAD": "ERR Error trying to load the RDB dump, check server logs.",
	} {
		if _, err := srv.Do(t.Context(), "DEBUG", command); err == nil || err.Error() != want {
			t.Errorf("DEBUG %s: %v", command, err)
		}
	}
	if n, err := srv.Do(t.Context(), "DBSIZE"); err != nil || n != int64(100) {
		t.Errorf("%v keys are left, %v", n, err)
	}
}
