package archive_test

// Tests of imports of append-only files.

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/archive"
	"github.com/zsetd/zsetd/server/rdb"
)

// preamble is an RDB file that begins an append-only file: a string a, a string in
// database 3, a string that has expired, and a library.
const preamble = "REDIS0011\xfa\x09redis-ver\x057.2.0\xfa\x08aof-base\xc0\x01" +
	"\xf5\x40\x4b#!lua name=lib\nredis.register_function('f', function() return 'called' end)" +
	"\xfe\x00\x00\x01a\xc0\x05\xfd\x01\x00\x00\x00\x00\x01o\x01x\xfe\x03\x00\x01b\x01y\xff\x00\x00\x00\x00\x00\x00\x00\x00"

// increments are commands that follow it, with the lines of aof-timestamp-enabled.
const increments = "#TS:1700000000\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*2\r\n$4\r\nINCR\r\n$1\r\na\r\n#TS:1700000001\r\n" +
	"*1\r\n$5\r\nMULTI\r\n*2\r\n$4\r\nINCR\r\n$1\r\na\r\n*3\r\n$5\r\nRPUSH\r\n$1\r\nl\r\n$1\r\nx\r\n*1\r\n$4\r\nEXEC\r\n"

func TestImportAppendOnly(t *testing.T) {
	if !rdb.IsBase([]byte(preamble)) {
		t.Error("the preamble is not recognized")
	}
	more := "*3\r\n$3\r\nSET\r\n$1\r\nc\r\n$1\r\nz\r\n"
	manifest := "file base.rdb seq 2 type b\nfile old.aof seq 1 type h\n\nfile two.aof seq 3 type i\nfile \"one file.aof\" seq 2 type i startoffset 2 endoffset 10\n"
	for _, test := range []struct {
		name  string
		files map[string]string
		says  string // of the error; "" for none
		keys  int64  // with --keep-going, after an error
	}{
		{"one file", map[string]string{"source": preamble + increments + more}, "", 4},
		{"commands only", map[string]string{"source": increments + more}, "", 3},
		{"preamble only", map[string]string{"source": preamble}, "", 2},
		{"cut short", map[string]string{"source": preamble + increments + more[:12]}, "unexpected end of the source within the command at byte", 3},
		{"cut in a transaction", map[string]string{"source": preamble + increments + "*1\r\n$5\r\nMULTI\r\n" + more}, "unexpected end of the source within a transaction", 3},
		{"another command", map[string]string{"source": preamble + "*1\r\n$4\r\nNONE\r\n"}, "NONE at byte 0: ERR unknown command", 2},
		{"parts", map[string]string{"manifest": manifest, "base.rdb": preamble, "one file.aof": increments, "two.aof": more, "old.aof": "nonsense"}, "", 4},
		{"parts, one missing", map[string]string{"manifest": manifest, "base.rdb": preamble, "one file.aof": increments}, "two.aof: ", -1},
		{"parts, one cut short", map[string]string{"manifest": manifest, "base.rdb": preamble, "one file.aof": increments, "two.aof": more[:9]}, "two.aof: unexpected end of the source within the command", 3},
		{"parts of commands", map[string]string{"manifest": "file 1.base.aof seq 1 type b\nfile 1.incr.aof seq 1 type i\n", "1.base.aof": increments, "1.incr.aof": more}, "", 3},
		{"two bases", map[string]string{"manifest": "file a seq 1 type b\nfile b seq 2 type b\n"}, "more than one base file", -1},
		{"a folder in place of a part", map[string]string{"manifest": "file . seq 1 type b\n"}, ".: not a regular file", -1},
		{"another folder", map[string]string{"manifest": "file ../a seq 1 type b\n"}, "line 1: invalid line of a manifest", -1},
		{"no sequence", map[string]string{"manifest": "file a type i\n"}, "line 1: invalid line of a manifest", -1},
		{"another type", map[string]string{"manifest": "file a seq 1 type i\nfile b seq 1 type x\n"}, `line 2: unknown file type 'x'`, -1},
		{"a damaged value", map[string]string{"source": strings.Replace(preamble, "\x00\x01a\xc0\x05", "\x10\x01a\x01x", 1) + more}, `key "a" of database 0: bad data format`, 2},
		{"a database too high", map[string]string{"source": strings.Replace(preamble, "\xfe\x03", "\xfe\x14", 1) + more}, "database 20 does not exist: there are 16", 2},
		{"a key twice", map[string]string{"source": strings.Replace(preamble, "\xfe\x03\x00\x01b", "\xfe\x00\x00\x01a", 1) + more}, `duplicate key "a" in database 0`, -1},
		{"a library that does not compile", map[string]string{"source": strings.Replace(preamble, "end)", "(((.", 1) + more}, `library "lib": ERR Error compiling`, 3},
		{"an empty increment", map[string]string{"manifest": "file base.rdb seq 1 type b\nfile a.aof seq 1 type i\n", "base.rdb": preamble, "a.aof": ""}, "", 2},
	} {
		dir := t.TempDir()
		for name, content := range test.files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		load := func(o *archive.Import, to string) (archive.Imported, error) {
			if test.files["manifest"] != "" {
				return server.ImportManifest(filepath.Join(dir, "manifest"), to, 0, o)
			}
			return server.ImportCommands(strings.NewReader(test.files["source"]), to, 0, o)
		}
		to := filepath.Join(dir, "to.db")
		out, err := load(new(archive.Import), to)
		if test.says == "" {
			if err != nil || out.Keys != test.keys {
				t.Errorf("%s: %+v, %v", test.name, out, err)
				continue
			}
			srv := open(t, to)
			if strings.Contains(test.name, "only") || test.name == "parts of commands" || test.name == "an empty increment" {
				continue
			}
			if got := fmt.Sprint(do(t, srv, "MGET", "a", "c", "o"), do(t, srv, "LRANGE", "l", 0, -1), do(t, srv, "FCALL", "f", 0)); got != "[7 z <nil>] [x]called" {
				t.Errorf("%s: %s", test.name, got)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, not %q", test.name, err, test.says)
		}
		if _, err := os.Stat(to); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: there is a file", test.name)
		}
		n := 0
		out, err = load(&archive.Import{Failed: func(error) { n++ }}, to)
		if test.keys < 0 {
			if err == nil {
				t.Errorf("%s, going on: imported", test.name)
			}
		} else if err != nil || n != 1 || out.Failed != 1 || out.Keys != test.keys {
			t.Errorf("%s, going on: %+v, %v", test.name, out, err)
		}
	}

	to := filepath.Join(t.TempDir(), "to.db")
	// The argument sets the number of databases; 0 is the default.
	high := strings.Replace(preamble, "\xfe\x03", "\xfe\x14", 1)
	if _, err := server.ImportCommands(strings.NewReader(high), to, 0, new(archive.Import)); err == nil || !strings.Contains(err.Error(), `key "b": database 20 does not exist: there are 16`) {
		t.Error(err)
	}
	if out, err := server.ImportCommands(strings.NewReader(high), to, 21, new(archive.Import)); err != nil || out.Keys != 2 {
		t.Errorf("%+v, %v", out, err)
	}
}
