package snapshot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/servertest/wait"
)

// A file that gets checkpoints without a pause, faster than it can be copied, is copied
// nevertheless: the writer waits.
func TestBackupUnderConstantCommits(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	f, err := Create(path) // commits are not synced, so there are thousands in a second
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var cuts atomic.Int64
	cut := func(keys, size int) {
		n := cuts.Load() + 1
		c := &Checkpoint{Spaces: []uint64{1}, LastSpace: 1, Time: time.Now(), Journal: chunksOf(fmt.Sprint(n))}
		for i := range keys {
			c.Bases = append(c.Bases, Base{Space: 1, Key: fmt.Sprint(i), Chunks: chunksOf(fmt.Sprintf("%*d", size, n))})
		}
		if _, err := f.Write(c); err != nil {
			t.Error(err)
		}
		cuts.Store(n)
	}
	cut(200, 20_000)
	done, failed := make(chan struct{}), error(nil)
	to := filepath.Join(dir, "copy")
	go func() {
		defer close(done)
		_, failed = Backup(path, to, CopyOptions{Progress: func(_, _ int64) error {
			// Each attempt sees a commit, unless the writer waits.
			for before, end := cuts.Load(), time.Now().Add(50*time.Millisecond); cuts.Load() < before+2 && time.Now().Before(end); {
				wait.Pace(time.Millisecond)
			}
			return nil
		}})
	}()
	for writing := true; writing; {
		select {
		case <-done:
			writing = false
		default:
			cut(10, 20_000)
		}
	}
	if failed != nil {
		t.Fatal(failed)
	}
	values := map[string]int{}
	_, err = Read(to, Visitor{Base: func(_ uint64, key []byte, _ uint64, _, _ int, ops []byte) error {
		if len(key) == 1 {
			values[string(ops)]++
		}
		return nil
	}})
	if err != nil || len(values) != 1 {
		t.Errorf("%v, values of %d cuts in keys that each cut has changed", err, len(values))
	}
	if left, _ := filepath.Glob(to + "*"); len(left) != 1 {
		t.Errorf("files are left: %q", left)
	}
}

// A process that holds the file for long does not stop the writer permanently.
func TestImpatience(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	f, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	other, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	release := hold(other)
	if release == nil {
		t.Skip("there are no such locks")
	}
	f.holdExpired = true // as after holdTime
	write := func() {
		if _, err := f.Write(&Checkpoint{Spaces: []uint64{1}, LastSpace: 1, Journal: chunksOf("x")}); err != nil {
			t.Fatal(err)
		}
	}
	write()
	release()
	write()
	if f.holdExpired {
		t.Error("it does not wait for the next copy")
	}
}

func TestBackupRefuses(t *testing.T) {
	dir := t.TempDir()
	path, to := filepath.Join(dir, "file"), filepath.Join(dir, "copy")
	f, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := Backup(path, to, CopyOptions{}); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(dir, "foreign")
	if err := os.WriteFile(foreign, make([]byte, 20_000), 0o600); err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(dir, "damaged")
	b, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	for i := 2 * pageSize; i < len(b); i += 7 {
		b[i] ^= 1
	}
	if err := os.WriteFile(damaged, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	stop := errors.New("stop")
	for name, test := range map[string]struct {
		src, dst string
		o        CopyOptions
		want     error
	}{
		"another file": {path, to, CopyOptions{}, os.ErrExist},
		"a folder":     {path, filepath.Join(dir, "folder"), CopyOptions{Replace: true}, os.ErrExist},
		"itself":       {path, path, CopyOptions{Replace: true}, nil},
		"no folder":    {path, filepath.Join(dir, "none", "x"), CopyOptions{}, os.ErrNotExist},
		"no file":      {filepath.Join(dir, "none"), filepath.Join(dir, "x"), CopyOptions{}, os.ErrNotExist},
		"foreign":      {foreign, filepath.Join(dir, "x"), CopyOptions{}, ErrForeign},
		"damaged":      {damaged, to, CopyOptions{Replace: true}, ErrDamaged},
		"stopped":      {path, filepath.Join(dir, "x"), CopyOptions{Progress: func(_, _ int64) error { return stop }}, stop},
	} {
		before, _ := os.ReadFile(to)
		_, err := Backup(test.src, test.dst, test.o)
		if test.want != nil && !errors.Is(err, test.want) || err == nil {
			t.Errorf("%s: %v", name, err)
		}
		if after, _ := os.ReadFile(to); string(after) != string(before) {
			t.Errorf("%s: the other backup has changed", name)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*.new")); len(left) > 0 {
			t.Errorf("%s: left: %q", name, left)
		}
	}
	if _, err := Backup(path, to, CopyOptions{Replace: true}); err != nil {
		t.Error(err)
	}
}
