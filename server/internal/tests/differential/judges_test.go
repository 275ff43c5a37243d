package differential

// Values that newer servers than the judge of the other tests have written: Redis
// 8 and Valkey 9. Small ones are recorded in testdata/judges, and are always read;
// more are made by the servers themselves, where these are installed.
//
// To record them again, name the servers and pass -judges.record:
//
//	ZSETD_JUDGE_REDIS8=/usr/bin/redis-server ZSETD_JUDGE_VALKEY9=/usr/bin/valkey-server \
//	    go test ./server/internal/tests/differential -run TestJudgesRecorded -judges.record

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/archive"
	"github.com/zsetd/zsetd/server/rdb"

	"github.com/zsetd/zsetd/server/servertest/judge"
	"github.com/zsetd/zsetd/server/servertest/rerun"
)

var recordJudges = flag.Bool("judges.record", false, "write testdata/judges again, with the servers that are installed")

// farDeadline is a time in the year 3015, in milliseconds.
const farDeadline = "33000000000000"

// judged is a value, and questions whose answers say what it is.
type judged struct {
	key  string
	make []string // lines
	ask  []string // lines
	only string   // the server that has what it takes; "" for all
}

// judgedValues are values of all types and encodings, some made small by limits.
func judgedValues() []judged {
	lines := func(s ...string) []string { return s }
	many := func(verb, format string, n int) string {
		for i := range n {
			verb += " " + strings.ReplaceAll(format, "#", strconv.Itoa(i))
		}
		return verb
	}
	text := strings.Repeat("compress", 20)
	return []judged{
		{"string", lines("SET string text"), lines("GET string"), ""},
		{"integer", lines("SET integer -70000"), lines("GET integer"), ""},
		{"long", lines("SET long " + strings.Repeat(text, 10)), lines("GET long"), ""},
		{"expires", lines("SET expires x PXAT " + farDeadline), lines("GET expires"), ""},
		{"hyperloglog", lines("PFADD hyperloglog a b c"), lines("PFCOUNT hyperloglog"), ""},
		{"list", lines("RPUSH list a 1 -200 70000 9999999999 " + text), lines("LRANGE list 0 -1"), ""},
		{"quicklist", lines("CONFIG SET list-max-listpack-size 2", "RPUSH quicklist a b c d e", "CONFIG SET list-max-listpack-size -2"),
			lines("LRANGE quicklist 0 -1"), ""},
		{"plain", lines("RPUSH plain a " + strings.Repeat("x", 20_000) + " b"), lines("LLEN plain", "LRANGE plain 0 0", "LRANGE plain -1 -1"), ""},
		{"intset", lines("SADD intset 1 -2 70000"), lines("SORT intset"), ""},
		{"smallset", lines("SADD smallset a 7 -200 text"), lines("SORT smallset ALPHA"), ""},
		{"set", lines(many("SADD set", "m#", 140)), lines("SORT set ALPHA"), ""},
		{"smallzset", lines("ZADD smallzset 1 a 2.5 b -inf c 1e20 d 9007199254740993 7"), lines("ZRANGE smallzset 0 -1 WITHSCORES"), ""},
		{"zset", lines(many("ZADD zset", "#.5 m#", 140), "ZADD zset inf last"), lines("ZRANGE zset 0 -1 WITHSCORES"), ""},
		{"smallhash", lines("HSET smallhash a b 7 -200 c " + strings.Repeat("x", 60)), lines("HGETALL smallhash"), ""},
		{"hash", lines("HSET hash a b c " + text), lines("HLEN hash", "HMGET hash a c"), ""},
		{"smalltimed", lines("HSET smalltimed a b c d e f", "HPEXPIREAT smalltimed "+farDeadline+" FIELDS 1 c", "HPEXPIREAT smalltimed 70368744177663 FIELDS 1 e"),
			lines("HLEN smalltimed", "HMGET smalltimed a c e", "HPEXPIRETIME smalltimed FIELDS 3 a c e"), ""},
		{"persisted", lines("HSET persisted a b c d", "HPEXPIREAT persisted "+farDeadline+" FIELDS 2 a c", "HPERSIST persisted FIELDS 2 a c"),
			lines("HLEN persisted", "HMGET persisted a c", "HPEXPIRETIME persisted FIELDS 2 a c"), ""},
		{"timed", lines("HSET timed a b c "+text+" e f", "HPEXPIREAT timed "+farDeadline+" FIELDS 1 c", "HPEXPIREAT timed 33000000000001 FIELDS 1 e"),
			lines("HLEN timed", "HMGET timed a c e", "HPEXPIRETIME timed FIELDS 3 a c e"), ""},
		{"stream", lines("XADD stream 1-1 f v", "XADD stream 1-2 f w", "XADD stream 5-0 g x f y", "XADD stream 6-0 f z", "XDEL stream 1-2"),
			lines("XRANGE stream - +", "XLEN stream"), ""},
		{"groups", lines("XADD groups 1-1 f v", "XADD groups 2-1 f v", "XADD groups 3-1 f v", "XGROUP CREATE groups g 0", "XGROUP CREATE groups h 2-1",
			"XREADGROUP GROUP g c COUNT 2 STREAMS groups >", "XCLAIM groups g d 0 1-1 TIME 1000000000000 RETRYCOUNT 9", "XGROUP CREATECONSUMER groups h idle"),
			lines("XRANGE groups - +", "XINFO GROUPS groups", "XPENDING groups g"), ""},
		{"empty", lines("XGROUP CREATE empty g $ MKSTREAM"), lines("XLEN empty", "XINFO GROUPS empty"), ""},
		{"producers", lines("XADD producers 1-1 f v", "XCFGSET producers IDMP-DURATION 80000 IDMP-MAXSIZE 50", "XADD producers IDMP one a * f v",
			"XADD producers IDMP one a * f v", "XADD producers IDMP two b * g w", "XADD producers IDMPAUTO two * g x", "XGROUP CREATE producers g 0"),
			lines("XRANGE producers - +", "XLEN producers", "XINFO GROUPS producers"), "redis8"},
	}
}

// makeOn makes the value on a server.
func (v judged) makeOn(t *testing.T, p *judge.Peer) {
	t.Helper()
	for _, line := range v.make {
		if got := p.Do(strings.Fields(line)...); strings.HasPrefix(got, "-") {
			t.Fatalf("%.100s: %s", line, got)
		}
	}
}

// recorded is a value that a server has written.
type recorded struct {
	payload string
	answers [][2]string // questions and replies
}

// readJudged reads a file of testdata/judges: the values of a server in lines,
//
//	value KEY "PAYLOAD"
//	ask "QUESTION" "REPLY"
func readJudged(t testing.TB, name string) (about string, values map[string]*recorded) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "judges", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	values = map[string]*recorded{}
	var last *recorded
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		kind, rest, _ := strings.Cut(in.Text(), " ")
		switch kind {
		case "#":
			about = rest
		case "value":
			var key, payload string
			if _, err := fmt.Sscanf(rest, "%s %q", &key, &payload); err != nil {
				t.Fatal(err)
			}
			last = &recorded{payload: payload}
			values[key] = last
		case "ask":
			var question, reply string
			if _, err := fmt.Sscanf(rest, "%q %q", &question, &reply); err != nil {
				t.Fatal(err)
			}
			last.answers = append(last.answers, [2]string{question, reply})
		}
	}
	if err := in.Err(); err != nil {
		t.Fatal(err)
	}
	return about, values
}

// record writes the files of a server.
func record(t *testing.T, n judge.Newer) {
	dir, err := filepath.Abs(filepath.Join("testdata", "judges"))
	if err != nil {
		t.Fatal(err)
	}
	saved := t.TempDir()
	p := n.Start(t, "--dir", saved)
	version := regexp.MustCompile(n.Version + `\S*`).FindString(p.Do("INFO", "server"))
	var out bytes.Buffer
	fmt.Fprintf(&out, "# Recorded from %s; judges_test.go says how.\n", strings.TrimSpace(version))
	for _, v := range judgedValues() {
		if v.only != "" && v.only != n.Name {
			continue
		}
		v.makeOn(t, p)
		fmt.Fprintf(&out, "value %s %+q\n", v.key, dumped(t, p.Do("DUMP", v.key)))
		for _, line := range v.ask {
			fmt.Fprintf(&out, "ask %q %+q\n", line, p.Do(strings.Fields(line)...))
		}
	}
	save := func(name string) {
		if got := p.Do("SAVE"); got != "+OK\r\n" {
			t.Fatal(got)
		}
		b, err := os.ReadFile(filepath.Join(saved, "dump.rdb"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p.Do("FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('f', function() return 1 end)")
	p.Do("CONFIG", "SET", "maxmemory-policy", "allkeys-lfu")
	save(n.Name + ".rdb")
	if n.Name == "redis8" {
		p.Do("FLUSHALL")
		p.Do("SET", "a", "1")
		p.Do("VADD", "vectors", "VALUES", "2", "1", "2", "element")
		save("redis8-module.rdb")
	}
	if err := os.WriteFile(filepath.Join(dir, n.Name+".txt"), out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// needSome fails a test if -run chooses none of its subtests: a pattern that names nothing
// would pass otherwise, and write nothing.
func needSome(t *testing.T, ran int, what string) {
	t.Helper()
	if ran == 0 && !t.Failed() {
		t.Errorf("-run chooses no %s", what)
	}
}

// TestJudgesRecorded restores the payloads and imports the files that newer servers have
// written, and asks for contents and deadlines.
func TestJudgesRecorded(t *testing.T) {
	ran := 0
	defer func() { needSome(t, ran, "server") }()
	for _, n := range judge.NewerServers() {
		t.Run(n.Name, func(t *testing.T) {
			ran++
			if *recordJudges {
				record(t, n)
			}
			about, values := readJudged(t, n.Name)
			ours := judge.Own(t, server.Options{})
			ask := func(how string, p *judge.Peer, key string) {
				for _, a := range values[key].answers {
					if got := p.Do(strings.Fields(a[0])...); got != a[1] {
						t.Errorf("%s, %s: %s:\nwant %s\ngot %s", about, how, a[0], clipped(a[1]), clipped(got))
					}
				}
			}
			for key, v := range values {
				if got := ours.Do("RESTORE", key, "0", v.payload); got != "+OK\r\n" {
					t.Errorf("%s: RESTORE of %s: %s%.200q", about, key, got, v.payload)
					continue
				}
				ask("RESTORE", ours, key)
				again := dumped(t, ours.Do("DUMP", key))
				if got := ours.Do("RESTORE", key, "0", again, "REPLACE"); got != "+OK\r\n" {
					t.Errorf("what DUMP makes of %s is refused: %s", key, got)
				}
				ask("RESTORE of our DUMP", ours, key)
			}

			path := filepath.Join(t.TempDir(), "imported.db")
			out := importJudged(t, n.Name+".rdb", path)
			if out.Keys != int64(len(values)) || out.Failed != 0 || out.Functions != 1 {
				t.Errorf("%s: %+v of %d", about, out, len(values))
			}
			imported := judge.Own(t, server.Options{File: path})
			for key := range values {
				ask("import", imported, key)
			}
			if got := imported.Do("PEXPIRETIME", "expires"); got != ":"+farDeadline+"\r\n" {
				t.Errorf("%s: the deadline of a key: %s", about, got)
			}
			if got := imported.Do("FCALL", "f", "0"); got != ":1\r\n" {
				t.Errorf("%s: FCALL: %s", about, got)
			}
		})
	}
}

// importJudged imports a file of testdata/judges.
func importJudged(t *testing.T, name, path string) archive.Imported {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "judges", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out, err := new(archive.Import).RDB(f, path)
	if err != nil {
		t.Fatal(name, err)
	}
	return out
}

// TestJudgesModule imports a file with a value of a module: the error names it, and
// --keep-going leaves it out.
func TestJudgesModule(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "judges", "redis8-module.rdb"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "imported.db")
	_, err = new(archive.Import).RDB(bytes.NewReader(b), path)
	if want := `key "vectors" of database 0: value of module vectorset`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a file: %v", err)
	}
	out, err := (&archive.Import{Failed: func(error) {}}).RDB(bytes.NewReader(b), path)
	if err != nil || out.Keys != 1 || out.Failed != 1 {
		t.Errorf("%+v, %v", out, err)
	}
}

// sameScores compares members and scores: newer servers write these with as few
// digits as they need.
func sameScores(t *testing.T, a, b string) bool {
	decode := func(reply string) []any {
		v, _, err := protocol.Decode([]byte(reply))
		list, ok := v.([]any)
		if err != nil || !ok {
			t.Fatalf("%.100q, %v", reply, err)
		}
		return list
	}
	parse := func(v any) float64 {
		f, err := strconv.ParseFloat(v.(string), 64)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	x, y := decode(a), decode(b)
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		if x[i] != y[i] && (i%2 == 0 || parse(x[i]) != parse(y[i])) {
			return false
		}
	}
	return true
}

// TestJudgesDump moves random values and libraries by DUMP and RESTORE, from newer servers
// and back.
func TestJudgesDump(t *testing.T) {
	for _, n := range judge.NewerServers() {
		t.Run(n.Name, func(t *testing.T) {
			theirs, ours := n.Start(t), judge.Own(t, server.Options{})
			const library = "#!lua name=lib\nredis.register_function('f', function() return 1 end)"
			for _, way := range [][2]*judge.Peer{{theirs, ours}, {ours, theirs}} {
				way[0].Do("FUNCTION", "LOAD", "REPLACE", library)
				if got := way[1].Do("FUNCTION", "RESTORE", dumped(t, way[0].Do("FUNCTION", "DUMP")), "FLUSH"); got != "+OK\r\n" {
					t.Errorf("FUNCTION RESTORE: %s", got)
				}
				if got := way[1].Do("FCALL", "f", "0"); got != ":1\r\n" {
					t.Errorf("FCALL: %s", got)
				}
			}
			r := rand.New(rand.NewPCG(7, 8))
			for range 150 {
				argv, look, _ := randomValue(r)
				theirs.Do("FLUSHALL")
				ours.Do("FLUSHALL")
				if got := theirs.Do(argv...); strings.HasPrefix(got, "-") {
					t.Fatal(got)
				}
				var fields []string
				if argv[0] == "HSET" && r.IntN(3) > 0 {
					for i := 2; i < len(argv) && len(fields) < 20; i += 2 * (1 + r.IntN(3)) {
						fields = append(fields, argv[i])
						theirs.Do("HPEXPIREAT", "k", strconv.FormatInt(33e12+r.Int64N(1e6), 10), "FIELDS", "1", argv[i])
					}
				}
				times := append([]string{"HPEXPIRETIME", "k", "FIELDS", strconv.Itoa(len(fields))}, fields...)
				payload := dumped(t, theirs.Do("DUMP", "k"))
				if got := ours.Do("RESTORE", "k", "0", payload); got != "+OK\r\n" {
					t.Fatalf("%.200q: RESTORE here: %s%.300q", argv, got, payload)
				}
				compare := func(what string) {
					t.Helper()
					how := exact
					switch argv[0] {
					case "HSET":
						how = pairs
					case "SADD":
						how = ordered
					}
					got, want := ours.Do(look("k")...), theirs.Do(look("k")...)
					if argv[0] == "ZADD" && sameScores(t, got, want) {
						return
					}
					if !same(how, got, want) {
						t.Fatalf("%.200q: %s:\nwant %s\ngot %s", argv, what, clipped(want), clipped(got))
					}
					if len(fields) == 0 {
						return
					}
					if got, want := ours.Do(times...), theirs.Do(times...); got != want {
						t.Fatalf("%.200q: %s: %q:\nwant %s\ngot %s", argv, what, times, clipped(want), clipped(got))
					}
				}
				compare("from there")
				if len(fields) > 0 && n.Name == "valkey9" {
					continue // which does not read what Redis 7.4 and we write
				}
				if got := theirs.Do("RESTORE", "k", "0", dumped(t, ours.Do("DUMP", "k")), "REPLACE"); got != "+OK\r\n" {
					t.Fatalf("%.200q: RESTORE there: %s", argv, got)
				}
				compare("and back")
			}
		})
	}
}

// TestJudgesExport loads exports of what each server has written into that server, and asks
// the recorded questions; and those for older targets, too.
func TestJudgesExport(t *testing.T) {
	library, err := os.ReadFile("../../../../cmd/zsetd/zsetd.lua")
	if err != nil {
		t.Fatal(err)
	}
	timed := filepath.Join(t.TempDir(), "timed.db")
	deadlines := timedFile(t, timed)
	type exporter struct {
		fixture string
		targets map[string]rdb.Target
		start   func(t *testing.T, args ...string) *judge.Peer
	}
	old := map[string]rdb.Target{"redis5": rdb.Redis5, "redis7": rdb.Redis7}
	judges := map[string]exporter{
		"redis7": {"redis8", old, func(t *testing.T, args ...string) *judge.Peer {
			dial := judge.Start(t, args...)
			return judge.NewPeer(dial(), dial())
		}},
	}
	for _, n := range judge.NewerServers() {
		targets := maps.Clone(old)
		targets[n.Name] = map[string]rdb.Target{"redis8": rdb.Redis8, "valkey9": rdb.Valkey9}[n.Name]
		if n.Name == "redis8" {
			targets["any"] = rdb.Any
		}
		judges[n.Name] = exporter{n.Name, targets, n.Start}
	}
	for name, j := range judges {
		for target, to := range j.targets {
			for _, format := range []string{"rdb", "commands"} {
				if format == "commands" && to == rdb.Any {
					continue // for zsetd
				}
				t.Run(name+"/"+target+"/"+format, func(t *testing.T) {
					_, values := readJudged(t, j.fixture)
					path := filepath.Join(t.TempDir(), "f.db")
					importJudged(t, j.fixture+".rdb", path)
					export := func(path string) *judge.Peer {
						write := archive.ExportCommands
						if format == "rdb" {
							write = archive.ExportRDB
						}
						var out bytes.Buffer
						done, err := write(&out, path, to, time.Now(), nil)
						if err != nil || path != timed && (to.FieldDeadlines() != (done.FieldDeadlines == 4) || to.FieldDeadlines() != (done.LostDeadlines == 0) ||
							to.Functions() != (done.LostLibraries == 0)) {
							t.Fatalf("%+v, %v", done, err)
						}
						if format == "commands" {
							p := j.start(t)
							sendCommands(t, p, out.Bytes())
							return p
						}
						dir := t.TempDir()
						if err := os.WriteFile(filepath.Join(dir, "dump.rdb"), out.Bytes(), 0o600); err != nil {
							t.Fatal(err)
						}
						return j.start(t, "--dir", dir)
					}
					p := export(path)
					for key, v := range values {
						for _, a := range v.answers {
							if strings.HasPrefix(a[0], "HPEXPIRETIME") && !to.FieldDeadlines() || strings.HasPrefix(a[0], "XINFO") && to == rdb.Redis5 {
								continue
							}
							got := p.Do(strings.Fields(a[0])...)
							if got != a[1] && (a[0][0] != 'Z' || !sameScores(t, got, a[1])) {
								t.Errorf("key %s: %s:\nwant %s\ngot %s", key, a[0], clipped(a[1]), clipped(got))
							}
						}
					}
					if got := p.Do("PEXPIRETIME", "expires"); got != ":"+farDeadline+"\r\n" {
						t.Errorf("the deadline of a key: %s", got)
					}
					if got := p.Do("FCALL", "f", "0"); to.Functions() && got != ":1\r\n" {
						t.Errorf("FCALL: %s", got)
					}
					p = export(timed)
					if got := p.Do("FUNCTION", "LOAD", "REPLACE", string(library)); strings.HasPrefix(got, "-") {
						t.Fatal(got)
					}
					checkDeadlines(t, p, deadlines)
				})
			}
		}
	}
}

// TestChosenSubtests checks that a pattern for -run that chooses no subtest fails the test
// that can write files.
func TestChosenSubtests(t *testing.T) {
	rerun.Skip(t)
	out, err := exec.Command(os.Args[0], "-test.run", "TestJudgesRecorded/^nosuch$").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "-run chooses no ") {
		t.Errorf("%v\n%s", err, out)
	}
}
