package persist

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/internal/engine/config"
	"github.com/zsetd/zsetd/snapshot"
)

// TestTimes checks the bounds up to which durations count, each twice the one before.
func TestTimes(t *testing.T) {
	var times Times
	all := []time.Duration{0, time.Millisecond, time.Millisecond + 1, 2 * time.Millisecond, 32768*time.Millisecond - 1, 32768 * time.Millisecond, 32768*time.Millisecond + 1, time.Hour}
	sum := time.Duration(0)
	for _, d := range all {
		times.add(d)
		sum += d
	}
	if times.Count != int64(len(all)) || times.Sum != sum {
		t.Errorf("%d of %v, not %d of %v", times.Count, times.Sum, len(all), sum)
	}
	bound, steps := time.Millisecond, 0
	for b, n := range times.Up {
		want := int64(0)
		for _, d := range all {
			if d <= bound {
				want++
			}
		}
		if b != bound || n != want {
			t.Errorf("up to %v: %d; want up to %v: %d", b, n, bound, want)
		}
		bound *= 2
		steps++
	}
	if steps != 16 {
		t.Errorf("%d bounds", steps)
	}
	for range times.Up {
		break // which ends the iteration
	}
}

// TestPause checks how long the keeper waits after a checkpoint.
func TestPause(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		k    *Keeper
		took time.Duration
		more bool
		want time.Duration
	}{
		{&Keeper{}, 7 * ms, true, 0},
		{&Keeper{rewriting: rewriting{Rewrite: new(Rewrite)}}, 7 * ms, true, 7 * ms},
		{&Keeper{rewriting: rewriting{Rewrite: new(Rewrite)}}, 7 * ms, false, 0},
		{&Keeper{rewriting: rewriting{Rewrite: new(Rewrite), NeedsFresh: true}}, 7 * ms, true, 0},
		{&Keeper{progress: progress{ObsoleteUpTo: 1}}, 7 * ms, true, 7 * ms},
		{&Keeper{progress: progress{released: 5}}, 7 * ms, true, 0},
		{&Keeper{progress: progress{released: 4}, schedule: schedule{always: true}}, 7 * ms, true, 0},
		{&Keeper{progress: progress{released: 5}, schedule: schedule{always: true}}, 7 * ms, true, ms},
		{&Keeper{progress: progress{released: 5}, schedule: schedule{always: true}}, ms, true, ms},
		{&Keeper{progress: progress{released: 5}, schedule: schedule{always: true}}, ms - 1, true, 0},
		{&Keeper{progress: progress{released: 100}, schedule: schedule{always: true}}, 2 * ms, false, 2 * ms},
		{&Keeper{progress: progress{released: 100}, schedule: schedule{always: true}}, 2*ms - 1, false, 0},
	} {
		if got := test.k.pause(test.took, test.more); got != test.want {
			t.Errorf("%d released, always %v, after %v, more %v: %v, not %v", test.k.released, test.k.always, test.took, test.more, got, test.want)
		}
	}
}

// TestNextSave checks when the rules request the next checkpoint.
func TestNextSave(t *testing.T) {
	start := time.Unix(1000, 0)
	rules := []config.SaveRule{{Seconds: 60, Changes: 10}, {Seconds: 5, Changes: 100}, {Seconds: 900, Changes: 0}}
	for changes, want := range map[int64]time.Duration{0: 0, 1: 900 * time.Second, 9: 900 * time.Second, 10: 60 * time.Second, 99: 60 * time.Second, 100: 5 * time.Second} {
		k := Keeper{schedule: schedule{rules: rules}, saving: saving{lastSave: start}}
		next := k.nextSave(changes)
		if next.IsZero() != (want == 0) || want != 0 && next.Sub(start) != want {
			t.Errorf("%d changes: %v, not after %v", changes, next, want)
		}
	}
}

// TestRefused checks what is said about a file that cannot be used, to the letter.
func TestRefused(t *testing.T) {
	for cause, want := range map[error]string{
		snapshot.ErrDamaged: "; the file is unchanged: `zsetd check` shows the damage, `zsetd salvage` recovers what is readable",
		snapshot.ErrNewer:   "; the file is unchanged: use the version of zsetd that has written it, or a later one",
		snapshot.ErrForeign: "; the file is unchanged: set dir and dbfilename to another file",
		snapshot.ErrInUse:   "",
		fs.ErrPermission:    "",
	} {
		err := refused(fmt.Errorf("k.db: %w", cause))
		if got := err.Error(); got != "zsetd: k.db: "+cause.Error()+want || !errors.Is(err, cause) {
			t.Errorf("%q", got)
		}
	}
}

// TestCheckPath checks what Check says before a server starts, and that it makes no file.
func TestCheckPath(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("text", "something else")
	write("empty", "")
	for _, test := range []struct {
		file string
		save bool
		want string // "" for no error; %s is the folder
	}{
		{"", true, ""},
		{"new.db", true, ""},
		{"empty", true, ""},
		{"empty", false, ""},
		{"none/new.db", false, ""}, // the first save makes it
		{"none/new.db", true, "zsetd: cannot create the data file: stat %s/none: no such file or directory"},
		{"text/new.db", true, "zsetd: stat %s/text/new.db: not a directory"},
		{"text", true, "zsetd: %s/text: not a zsetd snapshot; the file is unchanged: set dir and dbfilename to another file"},
		{".", true, "zsetd: %s: is a directory"},
	} {
		c := config.Defaults()
		c.Dir, c.Dbfilename, c.Save = dir, test.file, nil
		if test.save {
			c.Save = []config.SaveRule{{Seconds: 1, Changes: 1}}
		}
		want, got := strings.ReplaceAll(test.want, "%s", dir), ""
		if err := Check(&c); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q, rules %v: %q, not %q", test.file, test.save, got, want)
		}
	}
	if err := Creatable(filepath.Join(dir, "text", "x")); err == nil || err.Error() != filepath.Join(dir, "text")+": not a directory" {
		t.Error(err)
	}
	for name, valid := range map[string]bool{"text": true, "new": true, "none/new": false, ".": false} {
		if err := Writable(filepath.Join(dir, name)); (err == nil) != valid {
			t.Errorf("writable %s: %v", name, err)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 2 {
		t.Errorf("files: %v", left)
	}
}
