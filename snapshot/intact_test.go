package snapshot

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// TestOutOfReach checks that checkpoints are written while the path of the file leads
// nowhere, as it does while permissions are missing, and that the file does not count as
// changed when the path leads to it again.
func TestOutOfReach(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("symbolic links need a privilege")
	}
	for _, log := range []bool{false, true} {
		real, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
		point := func(to string) {
			t.Helper()
			if err := errors.Join(os.RemoveAll(link), os.Symlink(to, link)); err != nil {
				t.Fatal(err)
			}
		}
		point(real)
		path := filepath.Join(link, "x.db")
		f, err := Beside(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := f.Publish(path); err != nil {
			t.Fatal(err)
		}
		write := func(records string) {
			t.Helper()
			c := logged(records)
			if c.Log = log; records == "transaction" {
				c.Log, c.Bases = false, []Base{{Space: 1, Key: "key", Chunks: one([]byte("value"))}}
			}
			if _, err := f.Write(c); err != nil {
				t.Fatal(err)
			}
		}
		write("first")
		point(link) // a loop: neither open nor stat succeeds
		if _, err := os.Stat(path); err == nil || errors.Is(err, os.ErrNotExist) {
			t.Fatalf("the path is in reach: %v", err)
		}
		for _, records := range []string{"second", "transaction", "third", "transaction", "fourth"} {
			write(records)
		}
		point(real)
		for _, records := range []string{"fifth", "transaction", "sixth"} {
			write(records)
		}
		if err := os.Chtimes(path, time.Time{}, time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		write("seventh")
		if want := "firstsecondtransactionthirdtransactionfourthfifthtransactionsixthseventh"; journals(t, path) != want {
			t.Errorf("the file has %q", journals(t, path))
		}
		if err := overwrite(path, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(logged("eighth")); !errors.Is(err, ErrChanged) {
			t.Errorf("after a page was overwritten: %v", err)
		}
	}
}
