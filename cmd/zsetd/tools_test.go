package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/archive"
	"github.com/zsetd/zsetd/server/servertest"
)

// call runs a command line.
func call(stdin string, args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	if status, ok := runTool(args, strings.NewReader(stdin), &out, &errs); ok {
		return status, out.String(), errs.String()
	}
	return run(args, &out, &errs), out.String(), errs.String()
}

func TestTools(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write := func(name string, b []byte) string {
		t.Helper()
		if err := os.WriteFile(at(name), b, 0o600); err != nil {
			t.Fatal(err)
		}
		return at(name)
	}
	source := "SELECT 3\r\nZADD scores 1 one 2 two\r\nSET text \"some text\" PX 100000000\r\nRPUSH list a b c\r\n"
	file, damagedFile := at("data.db"), at("damaged.db")
	if status, _, says := call(source, "import", "-", file); status != 0 || !strings.Contains(says, "3 keys imported; 4 commands or lines done, 0 failed") {
		t.Fatalf("import: %d, %s", status, says)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write("damaged.db", bytes.ReplaceAll(b, []byte("some text"), []byte("same text")))
	write("foreign", []byte("something else"))
	if err := os.Mkdir(at("aof"), 0o700); err != nil {
		t.Fatal(err)
	}
	write("aof/1.manifest", []byte("file 1.base.aof seq 1 type b\nfile 1.incr.aof seq 1 type i\n"))
	write("aof/temp-1.manifest", []byte("file 1.base.aof seq 1 type b\n"))
	if err := os.Mkdir(at("[aof]"), 0o700); err != nil {
		t.Fatal(err)
	}
	write("[aof]/?.manifest", []byte("# "+strings.Repeat("x", 600)+"\nseq 1 TYPE b FILE \"a b\"\ntype i seq 1 file 'c*'\n"))
	write("[aof]/a b", []byte("SET a 1\r\n"))
	write("[aof]/c*", []byte("SET b 1\r\n"))
	write("[aof]/none.manifest.rdb", nil)
	write("no.manifest", nil)
	write("trailing.rdb", []byte("REDIS0004\x00\x01a\x01x\xffmore"))
	write("spoiled.rdb", []byte("REDIS0004\x00\x01a\x01x\x10\x01h\x01?\x00\x01b\x01x\xff"))
	write("aof/1.base.aof", []byte("SET a 1\r\n"))
	write("aof/1.incr.aof", []byte("SET b 1\r\n"))
	if status, _, says := call("file 1.base.aof seq 1 type b\n", "import", "-", at("x.db")); status != 1 || !strings.Contains(says, "standard input is the manifest") {
		t.Errorf("a manifest: %d, %s", status, says)
	}
	timed := at("timed.db")
	if status, _, says := call("ZADD z 1 m 2 n\r\nZPEXPIREAT z 33000000000000 MEMBERS 1 m\r\nHSET h f v g w\r\n"+
		"HPEXPIREAT h 33000000000000 FIELDS 2 f g\r\nXGROUP CREATE x g 0 MKSTREAM\r\nFUNCTION LOAD \"#!lua name=lib\\nredis.register_function('f', function() return 1 end)\"\r\n",
		"import", "-", timed); status != 0 {
		t.Fatal(says)
	}
	write("dump", []byte("REDIS0011\xfa\x09redis-ver\x057.2.0\xff"))
	write("valkey", append([]byte("VALKEY080"), make([]byte, 20_000)...))
	write("lines", []byte(`{"db":0,"key":"k","type":"string","value":"v"}`))
	write("bad.resp", []byte("SET a 1\r\nLPUSH a 1\r\nSET b 2\r\n"))
	used := at("used.db")
	srv, err := server.New(server.Options{File: used})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()

	type output struct {
		args   string
		status int
		says   []string
	}
	for _, test := range []output{
		{"check " + file, 0, []string{file + " is sound.", "3    zset     1         2   28 B", "1 with a deadline, 0 of them expired", `"scores"`, "last checkpoint  1, "}},
		{"check " + damagedFile, 1, []string{"damaged: the value of key \"text\" in space 4, chunk 0", "zsetd salvage"}},
		{"check " + at("foreign"), 1, []string{"not a zsetd snapshot"}},
		{"check " + at("dump"), 1, []string{"not a zsetd snapshot, but an RDB file of Redis, version 11: `zsetd import " + at("dump") + " NEW` makes"}},
		{"compact " + at("dump"), 1, []string{"not a zsetd snapshot, but an RDB file of Redis, version 11"}},
		{"salvage " + at("dump") + " -o " + at("x"), 2, []string{"not a zsetd snapshot, but an RDB file of Redis, version 11"}},
		{"export " + at("dump"), 1, []string{"not a zsetd snapshot, but an RDB file of Redis, version 11"}},
		{"check " + at("aof/1.manifest"), 1, []string{"but the manifest of an append-only file"}},
		{"check " + at("lines"), 1, []string{"but lines of JSON, as zsetd export writes them: `zsetd import --json "}},
		{"check " + at("valkey"), 1, []string{"but an RDB file of Valkey, version 80"}},
		{"import " + file + " " + at("x.db"), 1, []string{file + ": already a zsetd snapshot"}},
		{"check " + at("none"), 2, []string{at("none") + ": no such file"}},
		{"check", 2, []string{"zsetd check: wrong number of files: 0 given, 1 expected\n", "Usage: zsetd check FILE"}},
		{"check --nosuch " + file, 2, []string{"zsetd check: there is no option --nosuch\n", "Usage"}},
		{"check " + file + " --nosuch", 2, []string{"zsetd check: there is no option --nosuch\n", "Usage"}},
		{"salvage " + file + " -o", 2, []string{"zsetd salvage: flag needs an argument: -o\n", "Usage"}},
		{"check -- --nosuch", 2, []string{"--nosuch: no such file"}},
		{"check --help", 0, []string{"Usage: zsetd check FILE [--json]", "-json"}},
		{"help salvage", 0, []string{"Usage: zsetd salvage FILE -o NEW"}},
		{"help nosuch", 2, []string{"unknown command or parameter nosuch"}},
		{"export --format=json " + file, 0, []string{`"key":"list"`}},
		{"check " + file + " --json=true", 0, []string{`"sound":true`}},
		{"help", 0, []string{"--maxmemory", "\n  compact ", "\n  import "}},
		{"help all", 0, []string{"--maxclients", "zsetd compact FILE", "zsetd import SOURCE FILE"}},
		{"check " + used, 0, []string{"is in use: reading a copy", "No keys."}},
		{"export " + used, 0, []string{"is in use", "0 keys exported"}},
		{"functions", 0, []string{"#!lua name=zsetd"}},
		{"functions x", 2, []string{"wrong number of files: 1 given, 0 expected", "Usage: zsetd functions\n"}},
		{"backup " + file, 2, []string{"-o COPY is missing"}},
		{"backup --help", 0, []string{"Usage: zsetd backup FILE -o COPY", "-replace"}},
		{"backup " + file + " -o " + at("backup.db"), 0, []string{"copied and verified"}},
		{"backup " + file + " -o " + at("backup.db"), 2, []string{"file already exists"}},
		{"backup " + used + " -o " + at("backup.db") + " --replace", 0, []string{"copied and verified"}},
		{"backup " + file + " -o " + file + " --replace", 1, []string{"would overwrite the file itself"}},
		{"backup " + damagedFile + " -o " + at("x.db"), 1, []string{"damaged: the value of key"}},
		{"backup " + at("foreign") + " -o " + at("x.db"), 1, []string{"not a zsetd snapshot"}},
		{"backup " + at("none") + " -o " + at("x.db"), 2, []string{"no such file"}},
		{"backup " + file + " -o " + at("nowhere/x.db"), 2, []string{"no such file"}},
		{"check " + at("backup.db"), 0, []string{"is sound.", "No keys."}},
		{"compact " + used, 1, []string{"in use by this process"}},
		{"check " + write("empty.db", nil), 1, []string{"the file is empty (0 bytes)"}},
		{"salvage " + at("empty.db") + " -o " + at("x.db"), 2, []string{"the file is empty (0 bytes): nothing to salvage"}},
		{"backup " + at("empty.db") + " -o " + at("x.db"), 1, []string{"the file is empty (0 bytes)"}},
		{"backup " + at("dump") + " -o " + at("x.db"), 1, []string{"not a zsetd snapshot, but an RDB file of Redis, version 11"}},
		{"compact " + damagedFile, 1, []string{"damaged", "zsetd salvage"}},
		{"compact " + file, 0, []string{" before, ", " now"}},
		{"compact " + file + " " + used, 2, []string{"wrong number of files: 2 given, 1 expected"}},
		{"salvage " + damagedFile, 2, []string{"-o NEW is missing"}},
		{"salvage " + damagedFile + " -o " + at("new.db"), 1, []string{"2 keys recovered from 2 of 3 bases", "damage:", "keys lost:", `database 3, key "text"`, "1 bases are missing"}},
		{"salvage -o " + at("new.db") + " " + damagedFile, 2, []string{"file exists"}},
		{"salvage " + file + " -o " + at("sound.db"), 0, []string{"3 keys recovered", "Nothing is missing."}},
		{"salvage " + at("foreign") + " -o " + at("x"), 2, []string{"not a zsetd snapshot"}},
		{"salvage " + at("none") + " -o " + at("x"), 2, []string{"no such file"}},
		{"export " + file, 0, []string{"3 keys exported", "SELECT", "ZADD", "PEXPIREAT"}},
		{"export " + file + " --json", 0, []string{`{"db":3,"key":"list","type":"list","value":["a","b","c"]}`}},
		{"export " + file + " -o " + at("out.resp"), 0, []string{"3 keys exported"}},
		{"export " + file + " -o " + at("out.resp"), 2, []string{"file exists"}},
		{"export " + file + " -o " + at("out.json") + " --json", 0, []string{"3 keys exported"}},
		{"export " + file + " --format rdb -o " + at("dump.rdb"), 0, []string{"3 keys exported"}},
		{"export " + file + " --format xml", 2, []string{"--format must be commands, json or rdb"}},
		{"export " + file + " --for redis6", 2, []string{`--for must be redis5, redis7, redis8 or valkey9, with the format commands or rdb; not "redis6" with commands`}},
		{"export " + file + " --json --for redis8", 2, []string{`not "redis8" with json`}},
		{"export " + file + " --format rdb --for valkey9", 0, []string{"VALKEY080", "3 keys exported"}},
		{"export " + timed + " --for redis7", 1, []string{"zsetd:deadlines:{z}", "1 members of sorted sets have deadlines: they are written to sorted sets",
			`2 fields of hashes were written without their deadlines, which redis7 does not support: the first ones are of key "h" of database 0`}},
		{"export " + timed + " --for redis5", 1, []string{"1 function libraries were omitted, which redis5 does not support", "1 streams were written without counters"}},
		{"export " + timed + " --for redis8", 0, []string{"HPEXPIREAT", "they are written to sorted sets"}},
		{"export " + timed, 0, []string{"ZPEXPIREAT, which only zsetd supports", "2 fields of hashes have deadlines: they are written as HPEXPIREAT"}},
		{"export " + timed + " --json", 0, []string{`"deadlines":[["m",33000000000000]]`, `"deadlines":[["f",33000000000000],["g",33000000000000]]`}},
		{"export " + timed + " --format rdb -o " + at("timed.rdb"), 0, []string{"the file needs Redis 7.4 or later; use --for valkey9"}},
		{"export " + timed + " --format rdb --for redis7 -o " + at("timed7.rdb"), 1, []string{"3 keys exported", "2 fields of hashes were written without"}},
		{"import " + at("timed.rdb") + " " + at("timed2.db"), 0, []string{"3 keys imported"}},
		{"export " + at("timed2.db") + " --json", 0, []string{`"deadlines":[["m",33000000000000]]`, `"deadlines":[["f",33000000000000],["g",33000000000000]]`}},
		{"import " + filepath.Join("..", "..", "server", "internal", "tests", "differential", "testdata", "judges", "redis8.rdb") + " " + at("judge.db"), 0,
			[]string{"22 keys imported"}},
		{"import " + at("dump.rdb") + " " + at("rdb.db"), 0, []string{"3 keys imported", "0 failed"}},
		{"export " + damagedFile, 1, []string{"damaged"}},
		{"import " + at("out.resp") + " " + at("again.db"), 0, []string{"3 keys imported"}},
		{"import " + at("aof") + " " + at("aof.db"), 0, []string{"2 keys imported"}},
		{"import " + at("aof/1.manifest") + " " + at("aof2.db"), 0, []string{"2 keys imported"}},
		{"import " + at("aof/1.incr.aof") + " " + at("aof3.db"), 0, []string{"is one part of an append-only file: zsetd import " + at("aof/1.manifest") + " reads all", "1 keys imported"}},
		{"import " + dir + " " + at("x.db"), 1, []string{"the manifest lists no files to read"}},
		{"import " + at("no.manifest") + " " + at("x.db"), 1, []string{at("no.manifest") + ": the manifest lists no files to read"}},
		{"import " + at("[aof]") + " " + at("aof4.db"), 0, []string{"2 keys imported"}},
		{"import " + at("[aof]/?.manifest") + " " + at("aof5.db"), 0, []string{"2 keys imported"}},
		{"import " + at("[aof]/c*") + " " + at("aof6.db"), 0, []string{"is one part of an append-only file: zsetd import " + at("[aof]/?.manifest") + " reads all"}},
		{"import " + at("empty.db") + " " + at("x.db"), 1, []string{"the source is empty"}},
		{"import - " + at("x.db"), 1, []string{"the source is empty"}},
		{"import --json --keep-going " + at("empty.db") + " " + at("x.db"), 1, []string{"the source is empty"}},
		{"import " + at("trailing.rdb") + " " + at("trailing.db"), 0, []string{"1 keys imported", "4 bytes behind the end of the RDB file are ignored"}},
		{"import " + at("spoiled.rdb") + " " + at("x.db"), 1, []string{`key "h" of database 0: bad data format`}},
		{"import --keep-going " + at("spoiled.rdb") + " " + at("spoiled.db"), 1, []string{`key "h" of database 0: bad data format`, "2 keys imported; 2 commands or lines done, 1 failed"}},
		{"import --json " + at("out.json") + " " + at("again2.db"), 0, []string{"3 keys imported"}},
		{"import " + at("out.resp") + " " + at("again.db"), 2, []string{"file exists"}},
		{"import " + at("none") + " " + at("x.db"), 2, []string{"no such file"}},
		{"import " + at("bad.resp") + " " + at("x.db"), 1, []string{"command 2, LPUSH at byte 9: WRONGTYPE"}},
		{"import --keep-going " + at("bad.resp") + " " + at("y.db"), 1, []string{"command 2, LPUSH", "2 keys imported; 2 commands or lines done, 1 failed"}},
		{"import --json --keep-going " + at("bad.resp") + " " + at("z.db"), 1, []string{"line 1: ", "line 3: ", "0 keys imported"}},
	} {
		status, out, errs := call("", strings.Fields(test.args)...)
		if status != test.status {
			t.Errorf("zsetd %s: status %d, not %d; it says %s%s", test.args, status, test.status, out, errs)
		}
		for _, want := range test.says {
			if !strings.Contains(out+errs, want) {
				t.Errorf("zsetd %s says %s%s, not %q", test.args, out, errs, want)
			}
		}
	}
	var left []string
	for _, pattern := range []string{"x*", "*.new", "*copy*"} {
		names, _ := filepath.Glob(at(pattern))
		left = append(left, names...)
	}
	if len(left) > 0 {
		t.Errorf("files are left: %q", slices.Sorted(slices.Values(left)))
	}
}

func TestCheckJSON(t *testing.T) {
	file := filepath.Join(t.TempDir(), "data.db")
	if status, _, says := call("SET \"\\xff\" 1\r\n", "import", "-", file); status != 0 {
		t.Fatal(says)
	}
	var sound struct {
		Sound     bool
		Error     string
		Size      int64
		Databases []struct{ Keys int }
		Most      []struct{ Key struct{ Base64 string } } `json:"most_bytes"`
	}
	status, out, errs := call("", "check", file, "--json")
	if err := json.Unmarshal([]byte(out), &sound); err != nil || status != 0 || errs != "" || strings.Count(out, "\n") != 1 {
		t.Fatalf("%d %s %s %v", status, out, errs, err)
	}
	if !sound.Sound || sound.Databases[0].Keys != 1 || sound.Most[0].Key.Base64 != "/w==" || sound.Size == 0 {
		t.Errorf("%+v of %s", sound, out)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	status, out, _ = call("", "check", file, "--json")
	if err := json.Unmarshal([]byte(out), &sound); err != nil || status != 1 || sound.Sound || !strings.Contains(sound.Error, "the file is empty") {
		t.Errorf("%d %s %v", status, out, err)
	}
}

// screen emulates the output lines of a terminal.
type screen struct {
	lines [][]byte
	at    int
}

func (s *screen) Write(b []byte) (int, error) {
	if len(s.lines) == 0 {
		s.lines = [][]byte{nil}
	}
	for text := string(b); text != ""; {
		last := len(s.lines) - 1
		switch {
		case text[0] == '\n':
			s.lines, s.at = append(s.lines, nil), 0
		case text[0] == '\r':
			s.at = 0
		case strings.HasPrefix(text, "\x1b[2K"):
			s.lines[last] = nil
			text = text[3:]
		default:
			for len(s.lines[last]) <= s.at {
				s.lines[last] = append(s.lines[last], ' ')
			}
			s.lines[last][s.at] = text[0]
			s.at++
		}
		text = text[1:]
	}
	return len(b), nil
}

func (s *screen) String() string {
	var b strings.Builder
	for _, line := range s.lines {
		b.WriteString(strings.TrimRight(string(line), " ") + "\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// On a terminal the bar and the output of a tool do not mix.
func TestMeterAndOutput(t *testing.T) {
	for _, isOutput := range []bool{false, true} {
		var s screen
		m := newMeter(&s)
		m.terminal = true
		w := m.before(&s, isOutput)
		if isOutput {
			w.(*output).quiet = true // as for a terminal
		}
		var want strings.Builder
		for i := range int64(200) {
			m.show("load", i, 200)
			if i == 20 && m.bar != nil && !strings.Contains(s.String(), "load") {
				t.Errorf("there is no bar: %q", s.String())
			}
			if i%50 != 20 {
				continue
			}
			text := "a line of output that is rather short\n"
			if isOutput {
				text = "output in parts, "
			}
			want.WriteString(text)
			io.WriteString(w, text)
		}
		m.show("write", 1, 2)
		m.end()
		if got := strings.TrimSpace(s.String()); got != strings.TrimSpace(want.String()) {
			t.Errorf("output %v: the screen has %q, not %q", isOutput, got, want.String())
		}
	}
}

func TestMeter(t *testing.T) {
	var out bytes.Buffer
	m := newMeter(&out)
	m.show("load", 1, 100)
	m.next = time.Now().Add(-time.Second)
	m.show("load", 50, 100)
	m.show("load", 70, 100)
	m.show("load", 100, 100)
	m.show("write", 5000, 0)
	m.next = time.Now().Add(-time.Second)
	m.show("write", 20000, 0)
	m.end()
	m.end()
	if want := "load: 50 %\nload: 100 %\nwrite: 19.5 KB\nwrite: 19.5 KB\n"; out.String() != want {
		t.Errorf("%q, not %q", out.String(), want)
	}
	out.Reset()
	m.terminal = true
	for i := range int64(101) {
		m.show("verify", i, 100)
	}
	m.end()
	if !strings.Contains(out.String(), "verify") {
		t.Errorf("%q", out.String())
	}
}

// TestMeterState checks the texts of steps that have their own, and a bar whose end moves.
func TestMeterState(t *testing.T) {
	var out bytes.Buffer
	m := newMeter(&out)
	m.state("copy", "copying, 1 key", 1, 10)
	m.next = time.Time{}
	m.state("copy", "copying, 2 keys", 2, 10)
	m.end()
	if got := out.String(); got != "copying, 2 keys\ncopying, 2 keys\n" {
		t.Errorf("%q", got)
	}
	out.Reset()
	m.terminal = true
	m.state("follow", "following, 1 key", 1, 10)
	for _, x := range [][2]int64{{15, 20}, {30, 25}} {
		m.state("follow", "following", x[0], x[1])
		if got, want := m.bar.GetMax64(), max(x[0], x[1]); got != want {
			t.Errorf("the bar ends at %d, want %d", got, want)
		}
	}
	if got := m.bar.State().Description; got != "following" {
		t.Errorf("the bar has the text %q", got)
	}
	m.end()
}

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 10<<10 - 1: "10239 B", 10 << 10: "10.0 KB", 1000<<10 - 1<<7: "999.9 KB", 1000 << 10: "1.0 MB", 1536 << 10: "1.5 MB",
		3 << 30: "3.0 GB", 5 << 40: "5.0 TB", 5000 << 40: "5000.0 TB",
	} {
		if got := size(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

// TestReportText checks the text of zsetd check for a file with everything that has a line.
func TestReportText(t *testing.T) {
	report := &archive.Report{
		Generation: 7, Time: time.Unix(1e9, 0), Size: 1 << 20, Free: 1 << 18,
		Bases: archive.Records{Records: 2, Bytes: 300}, Journal: archive.Records{Records: 3, Bytes: 400}, Log: archive.Records{Records: 4, Bytes: 500}, Void: 600,
	}
	want := `f is sound.

last checkpoint  7, ` + time.Unix(1e9, 0).Local().Format(time.RFC3339) + `
file             1.0 MB, 256.0 KB free (25 %)
bases            300 B in 2 records
journal          400 B in 3 records
log              500 B in 4 groups
cleared          600 B of flushed databases

No keys.
`
	var out bytes.Buffer
	if err := printReport(&out, "f", report); err != nil || out.String() != want {
		t.Errorf("%v: %s, want %s", err, out.String(), want)
	}
	report.Log, report.Void = archive.Records{}, 0
	out.Reset()
	if err := printReport(&out, "f", report); err != nil || strings.Contains(out.String(), "log ") || strings.Contains(out.String(), "cleared") {
		t.Errorf("%v: %s", err, out.String())
	}
}

// TestSalvageText checks the text of zsetd salvage for each kind of loss.
func TestSalvageText(t *testing.T) {
	lost := func(n int) (keys []archive.LostKey) {
		for range n {
			keys = append(keys, archive.LostKey{DB: 1, Key: "k", Why: "gone"})
		}
		return keys
	}
	found := func(change func(s *archive.Salvaged)) *archive.Salvaged {
		s := &archive.Salvaged{Keys: 5}
		s.Bases, s.Journal, s.Whole = 3, 2, true
		s.Manifest.Bases.Records, s.Manifest.Journal.Records = 3, 2
		s.Manifest.Generation, s.Manifest.Time = 7, time.Unix(1e9, 0)
		change(s)
		return s
	}
	const head = "new: 5 keys recovered from 3 of 3 bases and 2 of 2 journal parts\n"
	last := "The last checkpoint is 7, " + time.Unix(1e9, 0).Local().Format(time.RFC3339) + ".\n"
	for _, test := range []struct {
		s      *archive.Salvaged
		status int
		want   string
	}{
		{found(func(*archive.Salvaged) {}), statusOK, head + last + "Nothing is missing.\n"},
		{found(func(s *archive.Salvaged) { s.Whole, s.Guessed = false, true }), statusBad,
			head + "The manifest is lost: the databases of the keys are guessed, and their number is unknown.\n"},
		{found(func(s *archive.Salvaged) {
			s.Whole, s.Scavenged = false, true
			s.Manifest.Bases.Records, s.Manifest.Journal.Records = 4, 5
		}), statusBad, "new: 5 keys recovered from 3 of 4 bases and 2 of 5 journal parts\n" + last +
			"1 bases are missing, possibly of keys that no other record names.\n3 journal parts are missing: changes of any key may be lost.\n" +
			"Unused pages were searched: the output may have deleted keys and old values.\n"},
		{found(func(s *archive.Salvaged) {
			s.Pages = []error{errors.New("page 9")}
			s.Lost, s.Old = lost(manyLines), lost(manyLines+2)
			s.Lost[0].Hashed = true
		}), statusBad, head + last + "damage:\n  page 9\nkeys lost:\n" +
			"  database 1, a key of 1 KB or more whose SHA-256 is 6b: gone\n" + strings.Repeat("  database 1, key \"k\": gone\n", manyLines-1) +
			"keys with an older value:\n" + strings.Repeat("  database 1, key \"k\": gone\n", manyLines) + "  and 2 more\n"},
	} {
		var out bytes.Buffer
		if status := printSalvage(&out, "new", test.s); status != test.status || out.String() != test.want {
			t.Errorf("status %d, %s, want %d, %s", status, out.String(), test.status, test.want)
		}
	}
}

// TestMigrateRefuses checks the status and the text of moves that do not begin.
func TestMigrateRefuses(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	config := map[string]string{"repl-diskless-sync-delay": "0"}
	srv, full := servertest.Run(t, server.Options{Config: config}), servertest.Run(t, server.Options{Config: config})
	full.Must("SET", "has", "1")
	srv.Must("ZADD", "z", "1", "m")
	srv.Must("ZPEXPIREAT", "z", "33000000000000", "MEMBERS", "1", "m")
	srv.Must("SET", "s", "1")
	from := "redis://" + srv.Addr()
	for _, test := range []struct {
		args   string
		status int
		says   string
	}{
		{"migrate ftp://x " + at("data.db"), statusUsage, "zsetd migrate: FROM: "},
		{"migrate " + at("data.db") + " ftp://x", statusUsage, "zsetd migrate: TO: "},
		{"migrate " + at("data.db") + " " + at("new.rdb") + " --verify -1", statusUsage, `zsetd migrate: --verify must be all or a number of keys, not "-1"`},
		{"migrate " + at("data.db") + " " + at("new.rdb") + " --verify some", statusUsage, `not "some"`},
		{"migrate " + at("data.db") + " " + at("new.rdb"), statusBad, "both are files"},
		{"migrate redis://127.0.0.1:1 " + at("new.rdb"), statusUsage, "connection refused"},
		{"migrate " + from + " redis://" + full.Addr() + " --dry-run", statusBad, "does not fit: the target has 1 keys: --replace deletes them"},
		{"migrate " + from + " redis://" + full.Addr(), statusBad, "Nothing was moved. --force moves what fits."},
		{"migrate " + from + " " + at("new.db") + " --dry-run", statusOK, "2 keys"},
		{"migrate " + from + " " + at("new.db"), statusOK, "moved " + from + " to " + at("new.db")},
	} {
		status, out, errs := call("", strings.Fields(test.args)...)
		if status != test.status || !strings.Contains(out+errs, test.says) {
			t.Errorf("zsetd %s: status %d, %s%s, want %d, %s", test.args, status, out, errs, test.status, test.says)
		}
	}
}
