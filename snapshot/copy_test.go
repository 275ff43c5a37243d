package snapshot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A file that gets a checkpoint every few milliseconds is copied as it was at one
// instant.
func TestCopyOfFileInUse(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	f, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	cut := func() error {
		n++
		c := &Checkpoint{Spaces: []uint64{1}, LastSpace: 1, Time: time.Now(), Journal: chunksOf(fmt.Sprint(n))}
		for i := range 50 {
			c.Bases = append(c.Bases, Base{Space: 1, Key: fmt.Sprint(i), Chunks: chunksOf(fmt.Sprint(n))})
		}
		_, err := f.Write(c)
		return err
	}
	if err := cut(); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
			if err := cut(); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for i := range 20 {
		to := filepath.Join(dir, fmt.Sprint("copy", i))
		if err := Copy(path, to, CopyOptions{}); err != nil {
			t.Fatal(err)
		}
		values := map[string]bool{}
		_, err := Read(to, Visitor{Base: func(_ uint64, _ []byte, _ uint64, _, _ int, ops []byte) error {
			values[string(ops)] = true
			return nil
		}})
		if err != nil || len(values) != 1 {
			t.Fatalf("copy %d: %v, values of %d cuts", i, err, len(values))
		}
	}
	close(stop)
	writer.Wait()
	if err := Copy(path, filepath.Join(dir, "copy1"), CopyOptions{}); !errors.Is(err, os.ErrExist) {
		t.Errorf("over another file: %v", err)
	}
	if err := Copy(filepath.Join(dir, "none"), filepath.Join(dir, "x"), CopyOptions{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("of no file: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "x")); err == nil {
		t.Error("a copy of no file is there")
	}
}

// interrupted is a file that changes after it has been read n times.
type interrupted struct {
	*os.File
	n      int
	change func()
}

func (f *interrupted) ReadAt(p []byte, off int64) (int, error) {
	if f.n--; f.n == -1 {
		f.change()
	}
	return f.File.ReadAt(p, off)
}

// A commit that makes the file grow comes before each of the reads that a copy
// consists of: the copy either reports that it is not whole, or can be read.
func TestCopyInterrupted(t *testing.T) {
	dir := t.TempDir()
	noticed, whole := 0, 0
	for n := range 8 {
		path, to := filepath.Join(dir, fmt.Sprint("file", n)), filepath.Join(dir, fmt.Sprint("copy", n))
		f, err := Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		write := func(size int) {
			c := &Checkpoint{Spaces: []uint64{1}, LastSpace: 1, Time: time.Now()}
			c.Bases = append(c.Bases, Base{Space: 1, Key: "key", Chunks: chunksOf(strings.Repeat("x", size))})
			if _, err := f.Write(c); err != nil {
				t.Fatal(err)
			}
		}
		write(1)
		src, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		dst, err := os.Create(to)
		if err != nil {
			t.Fatal(err)
		}
		defer dst.Close()
		from := &interrupted{src, n, func() { write(100_000) }}
		ok, err := new(CopyOptions).copyOnce(from, dst)
		if err != nil && !errors.Is(err, ErrDamaged) {
			t.Fatal(n, err)
		}
		if !ok {
			noticed++
			continue
		}
		whole++
		if _, err := Read(to, Visitor{}); err != nil {
			t.Errorf("before read %d: %v", n, err)
		}
	}
	if noticed == 0 || whole == 0 {
		t.Errorf("%d copies were noticed not to be whole, %d were taken for whole", noticed, whole)
	}
}

// TestCopyGivesUp copies a file that gets a commit during each attempt, and one that is
// damaged. Both attempts end after copyTime, with different errors.
func TestCopyGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "file")
		f, err := Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for _, test := range []struct {
			took  time.Duration // of an attempt
			tries int
		}{{copyTime / 4, 5}, {copyTime, copyTries}} {
			tries, held, released := 0, 0, 0
			o := CopyOptions{
				Progress: func(_, _ int64) error {
					tries++
					time.Sleep(test.took)
					_, err := f.Write(&Checkpoint{Spaces: []uint64{1}, LastSpace: 1, Journal: chunksOf("x")})
					return err
				},
				Hold: func() func() { held++; return func() { released++ } },
			}
			to := filepath.Join(dir, "copy")
			err := Copy(path, to, o)
			if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), "written more often than it can be copied") {
				t.Errorf("attempts of %v: %v", test.took, err)
			}
			if want := max(copyTries, test.tries-1); tries != want && tries != want+1 || held != 1 || released != 1 {
				t.Errorf("attempts of %v: %d attempts, want %d; held %d times, released %d times", test.took, tries, want, held, released)
			}
			if _, err := os.Lstat(to); err == nil {
				t.Error("the copy is left")
			}
		}

		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file[pageHeader+20] ^= 1
		damaged := filepath.Join(dir, "damaged")
		if err := os.WriteFile(damaged, file, 0o600); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := Copy(damaged, filepath.Join(dir, "copy"), CopyOptions{}); !errors.Is(err, ErrDamaged) || errors.Is(err, ErrInUse) {
			t.Errorf("a damaged file: %v", err)
		}
		if took := time.Since(began); took <= copyTime || took > copyTime+time.Second {
			t.Errorf("a damaged file is refused after %v", took)
		}
	})
}
