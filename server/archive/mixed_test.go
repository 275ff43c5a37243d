package archive

// Tests of files in mixed states, of numbers beside the values, and of what rejected input says.

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/rdb"
	"github.com/zsetd/zsetd/snapshot"
)

// TestMixedFile reads a file that has bases, and journals with other keys before, between and
// behind them, one of which was deleted before its turn in the file: all are visited in the
// order of the file, and each tool keeps them.
func TestMixedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.db")
	file, err := snapshot.Beside(path)
	if err != nil {
		t.Fatal(err)
	}
	keys := keyspace.New(2, keyspace.Hooks{})
	keys.SetNow(testNow)
	put := func(db int, names ...string) {
		for _, name := range names {
			keys.DB(db).Put([]byte(name), stringOf(name), false)
		}
	}
	write := func(bases ...string) {
		c := snapshot.Checkpoint{Spaces: keys.Spaces(), LastSpace: keys.LastSpace(), Time: time.UnixMilli(testNow), Keys: []int64{int64(keys.DB(0).Len()), int64(keys.DB(1).Len())}}
		for _, name := range bases {
			c.Bases = append(c.Bases, snapshot.Base{Space: keys.DB(0).Space(), Key: name, Chunks: keyspace.Chunks(stringOf(name), 0)})
		}
		if j := keys.TakeJournal(); j != nil {
			c.Journal = j.Chunks
		}
		if _, err := file.Write(&c); err != nil {
			t.Fatal(err)
		}
	}
	put(0, "b", "d", "deleted", "old")
	write("b", "d", "old")
	keys.Record(true)
	keys.DB(0).SetDeadline(keys.DB(0).Edit([]byte("deleted")), later) // its base would follow
	keys.DB(0).SetDeadline(keys.DB(0).Edit([]byte("d")), later)
	write()
	keys.DB(0).Delete([]byte("deleted"))
	keys.DB(0).Delete([]byte("old"))
	put(0, "a", "c", "e")
	put(1, "f")
	write()
	put(0, "c2")
	write()
	if err := errors.Join(file.Publish(path), file.Close()); err != nil {
		t.Fatal(err)
	}
	want := []string{"0 a", "0 b", "0 c", fmt.Sprint("0 d ", later), "0 e", "0 c2", "1 f"} // shorter keys come first
	order := func(path string) (got []string) {
		t.Helper()
		if _, err := Each(path, nil, func(v Value) error {
			text := fmt.Sprint(v.DB, " ", string(v.Value.(*keyspace.String).Content()))
			if v.Deadline != 0 {
				text += fmt.Sprint(" ", v.Deadline)
			}
			got = append(got, text)
			return nil
		}); err != nil {
			t.Error(err)
		}
		return got
	}
	if got := order(path); !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
	r, err := Check(path, time.UnixMilli(testNow), nil)
	if err != nil || r.Bases.Records != 3 || r.Journal.Records == 0 || len(r.Databases) != 2 || r.Databases[0].Keys != 6 || r.Databases[0].Volatile != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	other := filepath.Join(t.TempDir(), "other.db")
	if s, err := Salvage(path, other, nil); err != nil || !s.Intact() || s.Keys != 7 {
		t.Errorf("%+v, %v", s, err)
	}
	if got := order(other); !slices.Equal(got, want) {
		t.Errorf("salvaged: %q", got)
	}
	if _, _, err := Compact(path, nil); err != nil {
		t.Error(err)
	}
	if got := order(path); !slices.Equal(got, want) {
		t.Errorf("compacted: %q", got)
	}
}

// TestSpaces checks the number of databases in a file that is made: at least the usual 16.
func TestSpaces(t *testing.T) {
	limits := keyspace.DefaultLimits()
	for db, want := range map[int]int{0: 16, 15: 16, 16: 17, 40: 41} {
		w := rdb.NewWriter(rdb.NewCodec(&limits), rdb.Redis7)
		source := w.AppendEnd(w.AppendKey(w.AppendHead(nil), db, "k", stringOf("v"), 0))
		imported := filepath.Join(t.TempDir(), "f.db")
		if _, err := new(Import).RDB(bytes.NewReader(source), imported); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{imported, fileOf(t, Value{DB: db, Key: "k", Value: stringOf("v")})} {
			if _, err := snapshot.Read(path, snapshot.Visitor{Begin: func(m snapshot.Manifest) error {
				if len(m.Spaces) != want || m.LastSpace != uint64(want) || m.Spaces[0] != 1 || m.Spaces[want-1] != uint64(want) || m.Keys[db] != 1 {
					t.Errorf("database %d: spaces %d, last %d, keys %d", db, m.Spaces, m.LastSpace, m.Keys)
				}
				return nil
			}}); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestJSONErrors checks what is said about lines that are refused, to the letter.
func TestJSONErrors(t *testing.T) {
	limits := keyspace.DefaultLimits()
	value := func(kind, text string) string { return `{"db":0,"key":"k","type":"` + kind + `","value":` + text + `}` }
	for line, want := range map[string]string{
		``:                                  `unexpected end of the line, want an object`,
		`x`:                                 `unexpected "x" at column 1, want an object`,
		`[]`:                                `unexpected "[]" at column 1, want an object`,
		`{"db":0`:                           `unexpected end of the line, want }`,
		`{"db" 0}`:                          `unexpected "0}" at column 7, want :`,
		`{"db":}`:                           `unexpected "}" at column 7, want a number`,
		`{"db":"0"}`:                        `unexpected "\"0\"}" at column 7, want a number`,
		`{"db":0.5}`:                        `unexpected 0.5, want an integer`,
		`{"db":1e3}`:                        `unexpected 1e3, want an integer`,
		`{"db":01}`:                         `unexpected "01}" at column 7, want a number`,
		`{"db":-1}`:                         `no such database: -1`,
		`{"db":65536}`:                      `no such database: 65536`,
		`{"db":9223372036854775808}`:        `unexpected 9223372036854775808, want an integer`,
		`{"db":0,"db":0}`:                   `duplicate field "db"`,
		`{"db":0,}`:                         `unexpected "}" at column 9, want a string`,
		`{"db":0;}`:                         `unexpected ";}" at column 8, want }`,
		`{"ttl":3}`:                         `unknown field "ttl"`,
		`{"key":5}`:                         `unexpected "5}" at column 8, want a string`,
		`{"key":"a`:                         `unexpected end of the line within a string`,
		`{"key":"a\`:                        `unexpected end of the line within a string`,
		"{\"key\":\"a\tb\"}":                `unexpected "\tb\"}" at column 10, want an escape`,
		`{"key":"\x"}`:                      `string "\x": invalid character 'x' in string escape code`,
		`{"key":"\ud800"}`:                  `string "\ud800" has an unpaired surrogate: write it as {"base64":"..."}`,
		`{"key":{"base64":"!"}}`:            `base64 "!": illegal base64 data at input byte 0`,
		`{"key":{"base65":""}}`:             `unexpected object, want {"base64":"..."}`,
		`{"key":{}}`:                        `unexpected object, want {"base64":"..."}`,
		`{"key":"k"}`:                       `missing field: db, key, type and value are required`,
		`{}`:                                `missing field: db, key, type and value are required`,
		`{} {}`:                             `more than one object`,
		`{"library":"l"}`:                   `a library must have no other field than its code`,
		`{"library":"l","code":"c","db":0}`: `a library must have no other field than its code`,
		`{"value":}`:                        `unexpected end of the line, want a value`,
		`{"value":]}`:                       `unexpected "}" at column 11, want a value`,
		`{"value":[`:                        `unexpected end of the line, want a value`,
		"{\"db\":0,\"key\":\"\xff\"}":       `invalid UTF-8`,
		value("heap", `"v"`):                `unknown type "heap"`,
		value("string", `3`):                `unexpected "3}" at column 43, want a string`,
		value("string", `null`):             `unexpected "null}" at column 43, want a string`,
		value("list", `"a"`):                `unexpected "\"a\"}" at column 41, want an array`,
		value("list", `[]`):                 `empty list`,
		value("list", `["a" "b"]`):          `unexpected "\"b\"]}" at column 46, want ]`,
		value("set", `["a","a","b"]`):       `duplicate elements: 2 of 3 are distinct`,
		value("hash", `[["f"]]`):            `unexpected "]]}" at column 46, want ,`,
		value("hash", `[["f","v","w"]]`):    `unexpected ",\"w\"]]}" at column 50, want ]`,
		value("zset", `[["m","nan"]]`):      `unexpected "nan", want a score`,
		value("zset", `[["m",null]]`):       `unexpected "null]]}" at column 47, want a score`,
		value("zset", `[["m",1e999]]`):      `score 1e999 is out of range`,
		value("zset", `[["m",1]],"deadlines":[["m",0]]`):         `invalid deadline 0`,
		value("zset", `[["m",1]],"deadlines":[["n",5]]`):         `deadline of unknown element "n"`,
		value("zset", `[["m",1]],"deadlines":[["m",5],["m",6]]`): `duplicate deadline of "m"`,
		value("list", `["m"],"deadlines":[["m",5]]`):             `deadlines require the type zset or hash`,
	} {
		_, err := parseJSON([]byte(line), &limits)
		if got := fmt.Sprint(err); got != want {
			t.Errorf("%s\n%s\nnot\n%s", line, got, want)
		}
	}
	at := int64(1)<<52 - 1
	for _, line := range []string{
		value("zset", fmt.Sprintf(`[["m",1]],"deadlines":[["m",%d]]`, at)), value("zset", ` [ [ "m" , 1 ] ] `), `{"db":65535,"key":"","type":"string","expireat":-5,"value":""}`,
	} {
		if v, err := parseJSON([]byte(line), &limits); err != nil || strings.Contains(line, "expireat") && v.Deadline != 1 {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// TestToolsRefuse checks that tools say which file they cannot use, return nothing else, and
// leave no file.
func TestToolsRefuse(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{"foreign": strings.Repeat("something else", 1000), "there": "x"} {
		if err := os.WriteFile(path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sound := fileOf(t, sampleValues()...)
	now := time.UnixMilli(testNow)
	for _, test := range []struct{ from, to, says string }{
		{path("missing"), path("new"), "missing: no such file or directory"},
		{path("foreign"), path("new"), "foreign: not a zsetd snapshot"},
		{dir, path("new"), dir},
		{sound, path("there"), "file exists"},
		{sound, path("none/new"), "no such file or directory"},
	} {
		var out bytes.Buffer
		tools := map[string]func() (any, any, error){
			"backup":  func() (any, any, error) { n, err := Backup(test.from, test.to, false, nil); return n, int64(0), err },
			"salvage": func() (any, any, error) { s, err := Salvage(test.from, test.to, nil); return s, (*Salvaged)(nil), err },
			"check":   func() (any, any, error) { r, err := Check(test.from, now, nil); return r, (*Report)(nil), err },
			"compact": func() (any, any, error) {
				before, after, err := Compact(test.from, nil)
				return [2]int64{before, after}, [2]int64{}, err
			},
			"commands": func() (any, any, error) {
				done, err := ExportCommands(&out, test.from, rdb.Any, now, nil)
				return done, Exported{}, err
			},
			"json": func() (any, any, error) {
				done, err := ExportJSON(&out, test.from, now, nil)
				return done, Exported{}, err
			},
			"source": func() (any, any, error) { s, err := OpenSource(test.from); return s, (*Source)(nil), err },
		}
		for name, tool := range tools {
			writes := name == "backup" || name == "salvage"
			if test.from == sound && !writes || name == "salvage" && strings.HasSuffix(test.from, "foreign") {
				continue
			}
			got, none, err := tool()
			if err == nil || !strings.Contains(err.Error(), test.says) && !strings.Contains(err.Error(), "file already exists") || got != none || out.Len() > 0 {
				t.Errorf("%s of %s to %s: %v, %v", name, test.from, test.to, got, err)
			}
		}
	}
	left, _ := filepath.Glob(path("*"))
	text, err := os.ReadFile(path("there"))
	if len(left) != 2 || err != nil || string(text) != "x" {
		t.Errorf("files: %q; %q, %v", left, text, err)
	}
}

// TestProgress checks how often the writing of a file is reported, and with which totals.
func TestProgress(t *testing.T) {
	values := make([]Value, 2049)
	for i := range values {
		values[i] = Value{Key: fmt.Sprint(i), Value: stringOf("v")}
	}
	var got []string
	if err := save(filepath.Join(t.TempDir(), "f.db"), values, time.UnixMilli(testNow), func(step string, done, total int64) error {
		if step == "write" {
			got = append(got, fmt.Sprint(done, "/", total))
		}
		return nil
	}); err != nil || !slices.Equal(got, []string{"0/2049", "1024/2049", "2048/2049"}) {
		t.Errorf("%q, %v", got, err)
	}
}
