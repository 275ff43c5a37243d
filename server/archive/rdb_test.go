package archive_test

// Tests of imports of files of Redis.

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/archive"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/rdb"
	"github.com/zsetd/zsetd/zset"
)

// noChecksum ends a file whose checksum is turned off.
const noChecksum = "\xff\x00\x00\x00\x00\x00\x00\x00\x00"

// A damaged value is named. With Failed it is left out, and so is only a wrong checksum reported:
// everything else was read.
func TestImportDamagedRDB(t *testing.T) {
	const damaged = "\x10\x01h\x07garbage"
	for _, test := range []struct {
		name, file string
		says       string // of the error; "" for none
		failed     int64
		keys       int64
	}{
		{"sound", "REDIS0011\xfe\x00\x00\x01a\x01x" + noChecksum, "", 0, 1},
		{"a damaged value", "REDIS0011\xfe\x02\x00\x01a\x01x" + damaged + "\x00\x01b\x01y" + noChecksum, `key "h" of database 2: bad data format`, 1, 2},
		{"two damaged values", "REDIS0011\xfe\x00" + damaged + "\x02\x01s\x02\x01a\x01a\x00\x01b\x01y" + noChecksum, `key "h" of database 0: bad data format`, 2, 1},
		{"a wrong checksum", "REDIS0011\xfe\x00\x00\x01a\x01x\xff\x01\x02\x03\x04\x05\x06\x07\x08", "wrong version or checksum of the file", 1, 1},
		{"a damaged value and the checksum", "REDIS0011\xfe\x00" + damaged + "\x00\x01b\x01y\xff\x01\x02\x03\x04\x05\x06\x07\x08", `key "h" of database 0`, 2, 1},
		{"a value without an end", "REDIS0011\xfe\x00\x00\x01a\x01x\x02\x01s\x05\x01a" + noChecksum, `key "s" of database 0, type 2: bad data format`, -1, 0},
		{"an unknown type", "REDIS0011\xfe\x00\x00\x01a\x01x\x50\x01k\x01x" + noChecksum, `key "k" of database 0, type 80: unknown value type`, -1, 0},
		{"a value of a module", "REDIS0011\xfe\x00\x07\x01m\x81\xbd\xe7\x2d\xa2\xbb\x1e\xb4\x00\x02\x07\x00\x00\x01b\x01y" + noChecksum, `key "m" of database 0: value of module vectorset`, 1, 1},
		{"data of a module", "REDIS0011\xf7\x81\xbd\xe7\x2d\xa2\xbb\x1e\xb4\x00\x02\x01\x05\x01x\x00\xfe\x00\x00\x01b\x01y" + noChecksum, "auxiliary data of module vectorset cannot be imported", 1, 1},
		{"a database that cannot be", "REDIS0011\xfe\x80\x00\x01\x00\x00\x00\x01a\x01x\xfe\x80\x00\x00\xff\xff\x00\x01a\x01x" + noChecksum, `key "a" of database 65536: the database does not exist`, 1, 1},
		{"a library without a name", "REDIS0011\xf5\x06#!lua\n\xfe\x00\x00\x01a\x01x" + noChecksum, "function library without a name", 1, 1},
		{"a stream of another length", "REDIS0011\xfe\x00\x0f\x01s\x01\x10" + strings.Repeat("\x00", 15) + "\x01\x1d\x1d\x00\x00\x00\x0a\x00\x01\x01\x00\x01\x01\x01\x81f\x02\x00\x01\x02\x01\x00\x01\x00\x01\x81v\x02\x04\x01\xff" +
			"\x05\x00\x01\x00" + noChecksum, "", 0, 1},
		{"empty", "", "unexpected end of the file", -1, 0},
	} {
		dir := t.TempDir()
		to := filepath.Join(dir, "to.db")
		out, err := new(archive.Import).RDB(strings.NewReader(test.file), to)
		if test.says == "" {
			if err != nil || out.Keys != test.keys || out.Done != test.keys {
				t.Errorf("%s: %+v, %v", test.name, out, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, not %q", test.name, err, test.says)
		}
		if left, _ := filepath.Glob(to + "*"); len(left) > 0 {
			t.Errorf("%s: files are left: %q", test.name, left)
		}
		var failures []string
		o := archive.Import{Failed: func(err error) { failures = append(failures, err.Error()) }}
		out, err = o.RDB(strings.NewReader(test.file), to)
		if test.failed < 0 {
			if err == nil {
				t.Errorf("%s, going on: %+v", test.name, out)
			}
			continue
		}
		if err != nil || out.Failed != test.failed || int64(len(failures)) != test.failed || out.Keys != test.keys || !strings.Contains(failures[0], test.says) {
			t.Errorf("%s, going on: %+v, %v, %q", test.name, out, err, failures)
		}
		if r, err := archive.Check(to, time.Now(), nil); err != nil || len(r.Databases) != 1 || r.Databases[0].Keys != test.keys {
			t.Errorf("%s, going on: %+v, %v", test.name, r, err)
		}
	}
}

// Bytes behind the end of a file are ignored, as Redis does, and counted.
func TestImportTrailing(t *testing.T) {
	file := "REDIS0011\xfe\x00\x00\x01a\x01x" + noChecksum
	for _, n := range []int{0, 1, 5, rdb.ReadSize, 1 << 20} {
		out, err := new(archive.Import).RDB(strings.NewReader(file+strings.Repeat("?", n)), filepath.Join(t.TempDir(), "to.db"))
		if err != nil || out.Keys != 1 || out.Trailing != int64(n) {
			t.Errorf("%d bytes: %+v, %v", n, out, err)
		}
	}
}

// A source without a byte is an error, not an import of nothing.
func TestImportNothing(t *testing.T) {
	to := filepath.Join(t.TempDir(), "to.db")
	manifest := filepath.Join(t.TempDir(), "m.manifest")
	if err := os.WriteFile(manifest, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, o := range []*archive.Import{new(archive.Import), {Failed: func(error) {}}} {
		if _, err := o.JSON(strings.NewReader(""), to); !errors.Is(err, archive.ErrNothing) {
			t.Error(err)
		}
		if _, err := server.ImportCommands(strings.NewReader(""), to, 0, o); !errors.Is(err, archive.ErrNothing) {
			t.Error(err)
		}
		if _, err := server.ImportManifest(manifest, to, 0, o); err == nil || !strings.Contains(err.Error(), "m.manifest: the manifest lists no files to read") {
			t.Error(err)
		}
		if _, err := os.Stat(to); err == nil {
			t.Error("there is a file")
		}
	}
}

// Keys with deadlines, and libraries, are in the new file; keys past their deadlines are not.
func TestImportRDBFacts(t *testing.T) {
	later := time.Now().Add(aYear).UnixMilli()
	at := func(n int64, size int) string { return string(binary.LittleEndian.AppendUint64(nil, uint64(n))[:size]) }
	const library = "#!lua name=b\nredis.register_function('new', function() return 2 end)"
	const code = "redis.register_function('old', function() return 1 end)"
	source := "REDIS0010\xf6\x03lib\x03lua\x00" + string([]byte{byte(len(code))}) + code +
		"\xf5\x40" + string([]byte{byte(len(library))}) + library +
		"\xfe\x00\xfc" + at(later, 8) + "\x00\x01a\x01x" + "\xfd" + at(later/1000, 4) + "\x00\x01b\x01y" +
		"\xfc" + at(time.Now().UnixMilli()-1000, 8) + "\x00\x01c\x01z" + "\x01\x01e\x00" + "\xfe\x11\x00\x01d\x01x" + noChecksum
	dir := t.TempDir()
	path := filepath.Join(dir, "to.db")
	out, err := new(archive.Import).RDB(strings.NewReader(source), path)
	if err != nil || out.Keys != 3 || out.Done != 6 || out.Functions != 2 || out.Failed != 0 {
		t.Fatalf("%+v, %v", out, err)
	}
	values := map[string]archive.Value{}
	if _, err := archive.Each(path, nil, func(v archive.Value) error {
		values[fmt.Sprint(v.DB, v.Key)] = v
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(values) != 5 || values["0a"].Deadline != later || values["0b"].Deadline != later/1000*1000 || values["17d"].Deadline != 0 {
		t.Errorf("%v", values)
	}
	if s, ok := values[fmt.Sprint(keyspace.InternalDB, "lib")].Value.(*keyspace.String); !ok || string(s.Content()) != "#!lua name=lib\n"+code {
		t.Errorf("%v", values)
	}
	srv := open(t, path, "databases", "20")
	if got := fmt.Sprint(do(t, srv, "FCALL", "old", 0), do(t, srv, "FCALL", "new", 0)); got != "1 2" {
		t.Error(got)
	}
}

// Values of a file are compared with those that were written, whatever their order.
func TestImportOrder(t *testing.T) {
	limits := keyspace.DefaultLimits()
	w := rdb.NewWriter(rdb.NewCodec(&limits), rdb.Redis7)
	file := w.AppendHead(nil)
	for i := range 300 {
		k := i * 7 % 300
		file = w.AppendKey(file, k%5, fmt.Sprint("key:", k), zset.Load([]zset.Element{{Member: "m", Score: float64(k)}}), 0)
	}
	file = w.AppendEnd(file)
	path := filepath.Join(t.TempDir(), "to.db")
	if out, err := new(archive.Import).RDB(strings.NewReader(string(file)), path); err != nil || out.Keys != 300 {
		t.Fatalf("%+v, %v", out, err)
	}
	srv := open(t, path)
	for i := range 60 {
		if got := do(t, srv, "ZSCORE", fmt.Sprint("key:", 5*i), "m"); fmt.Sprint(got) != fmt.Sprint(5*i) {
			t.Errorf("key:%d: %v", 5*i, got)
		}
	}
}

// An import ends where its Progress returns an error, and leaves nothing.
func TestImportStopped(t *testing.T) {
	stopped := errors.New("stopped by the test")
	dir := t.TempDir()
	file := "REDIS0011\xfe\x00\x00\x01a\x01x" + noChecksum
	for name, load := range map[string]func(o *archive.Import, to string) error{
		"rdb": func(o *archive.Import, to string) error { _, err := o.RDB(strings.NewReader(file), to); return err },
		"json": func(o *archive.Import, to string) error {
			_, err := o.JSON(strings.NewReader(`{"db":0,"key":"k","type":"string","value":"v"}`), to)
			return err
		},
		"commands": func(o *archive.Import, to string) error {
			_, err := server.ImportCommands(strings.NewReader("SET a 1\r\n"), to, 0, o)
			return err
		},
	} {
		steps := map[string]bool{}
		all := func(step string, done, total int64) error { steps[step] = true; return nil }
		if err := load(&archive.Import{Progress: all, Size: 100}, filepath.Join(dir, name)); err != nil || !steps["import"] || !steps["verify"] {
			t.Errorf("%s: %v, steps %v", name, err, steps)
		}
		for step := range steps {
			to := filepath.Join(dir, name+step)
			o := archive.Import{Progress: func(now string, done, total int64) error {
				if now == step {
					return stopped
				}
				return nil
			}}
			if err := load(&o, to); !errors.Is(err, stopped) {
				t.Errorf("%s, step %s: %v", name, step, err)
			}
			if left, _ := filepath.Glob(to + "*"); len(left) > 0 {
				t.Errorf("%s, step %s: files are left: %q", name, step, left)
			}
		}
	}
}
