package archive_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/archive"
)

// differences returns a line for each difference of two files.
func differences(t *testing.T, a, b string) (lines []string, out archive.Compared) {
	t.Helper()
	out, err := archive.Diff(a, b, nil, func(d archive.Difference) error {
		v, sign := d.A, "~"
		switch {
		case d.B == nil:
			sign = "-"
		case d.A == nil:
			v, sign = d.B, "+"
		}
		line := fmt.Sprintf("%s%d %.10s %s", sign, v.DB, v.Key, v.Type())
		if d.Value {
			line += " value"
		}
		if d.Deadline {
			line += " deadline"
		}
		lines = append(lines, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines, out
}

func TestDiff(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	long := strings.Repeat("long", 300)
	make := func(path string, commands ...string) {
		srv := open(t, path)
		if err := srv.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		send := client(t, srv)
		for _, command := range commands {
			send(strings.Fields(strings.ReplaceAll(command, "LONG", long))...)
		}
		if err := srv.Close(); err != nil {
			t.Fatal(err)
		}
	}
	common := []string{"SET same 1", "ZADD z 1 a 2 b", "HSET h f v", "RPUSH l a b", "SADD s a b", "XADD x 1-1 f v", "SET LONG1 1", "SET LONG2 1", "SET dead 1 PXAT 33000000000000", "SELECT 3", "SET same 1"}
	make(a, slices.Concat(common, []string{"SET d3 1", "SELECT 0", "SET onlya 1", "SET LONGa 1", "SET t 1", "ZADD zd 1 m", "ZPEXPIREAT zd 33000000000000 MEMBERS 1 m", "SET dl 1"})...)
	make(b, slices.Concat(common, []string{"SET d3 2", "SELECT 0", "SET onlyb 1", "SET LONG2 2", "RPUSH t 1", "ZADD zd 1 m", "SET dl 1 PXAT 33000000000000", "XADD x 1-2 f v", "SELECT 15", "SET last 1"})...)
	lines, out := differences(t, a, b)
	want := []string{"~0 t string value", "~0 x stream value", "~0 dl string deadline", "~0 zd zset value", "-0 onlya string", "+0 onlyb string",
		"-0 longlonglo string", "~0 longlonglo string value", "~3 d3 string value", "+15 last string"}
	slices.Sort(lines)
	slices.Sort(want)
	if !slices.Equal(lines, want) || out != (archive.Compared{Same: 8, OnlyA: 2, OnlyB: 2, Different: 6}) || out.Equal() {
		t.Errorf("%q, %+v, want\n%q", lines, out, want)
	}
	// The order of databases precedes that of keys.
	d, e := filepath.Join(dir, "d"), filepath.Join(dir, "e")
	make(d, "SET zzz 1", "SELECT 3", "SET a 1")
	make(e, "SELECT 3", "SET a 1")
	if lines, out := differences(t, d, e); !slices.Equal(lines, []string{"-0 zzz string"}) || out.Same != 1 {
		t.Errorf("%q, %+v", lines, out)
	}
	if lines, out := differences(t, a, a); len(lines) > 0 || out != (archive.Compared{Same: 16}) || !out.Equal() {
		t.Errorf("%q, %+v", lines, out)
	}
	// Databases that were cleared and exchanged have other places in the file.
	c := filepath.Join(dir, "c")
	make(c, "SELECT 5", "SET x 1", "FLUSHDB", "SELECT 2", "SET x 1", "SELECT 0", "SWAPDB 2 3", "SET x 2", "FLUSHDB", "SELECT 3", "DEL x")
	make(c, slices.Concat(common, []string{"SET d3 1", "SELECT 0", "SET onlya 1", "SET LONGa 1", "SET t 1", "ZADD zd 1 m", "ZPEXPIREAT zd 33000000000000 MEMBERS 1 m", "SET dl 1"})...)
	if lines, out := differences(t, a, c); len(lines) > 0 || out.Same != 16 {
		t.Errorf("%q, %+v", lines, out)
	}
	// Libraries are compared, too.
	srv := open(t, c)
	if err := srv.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	do(t, srv, "FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('f', function() end)")
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	if lines, out := differences(t, a, c); !slices.Equal(lines, []string{"+-1 lib string"}) || out.Same != 16 {
		t.Errorf("%q, %+v", lines, out)
	}
}

// An error of the visit ends the comparison, and one of a file is no difference.
func TestDiffErrors(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	for path, n := range map[string]int{a: 1000, b: 2000} {
		srv := open(t, path)
		for i := range n {
			do(t, srv, "SET", fmt.Sprintf("%s%d", filepath.Base(path), i), i)
		}
		if err := srv.Close(); err != nil {
			t.Fatal(err)
		}
	}
	stop := errors.New("enough")
	seen := 0
	_, err := archive.Diff(a, b, nil, func(archive.Difference) error {
		if seen++; seen == 3 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) || seen != 3 {
		t.Errorf("%v after %d", err, seen)
	}
	steps := 0
	if _, err = archive.Diff(a, b, func(step string, done, total int64) error {
		if steps++; step != "compare" || done > total {
			t.Error(step, done, total)
		}
		return stop
	}, func(archive.Difference) error { return nil }); !errors.Is(err, stop) || steps == 0 {
		t.Errorf("%v after %d steps", err, steps)
	}
	if _, err := archive.Diff(a, filepath.Join(dir, "none"), nil, nil); err == nil {
		t.Error("no error of a file that does not exist")
	}
}
