package archive

// Tests of the tools on files that are made of values, without a server.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/internal/values/sequence"
	"github.com/zsetd/zsetd/server/rdb"
	"github.com/zsetd/zsetd/zset"
)

// testNow is the time of the tests, in milliseconds since 1970.
const testNow = 1_700_000_000_000

// later is a deadline that the clock of the machine does not reach.
const later = testNow + 1_000_000_000_000

func stringOf(s string) *keyspace.String { return keyspace.NewString([]byte(s)) }

func listOf(elements ...string) *sequence.List {
	l := new(sequence.List)
	for _, e := range elements {
		l.PushBack([]byte(e))
	}
	return l
}

func setOf(members ...string) *keyspace.Set {
	limits, s := keyspace.DefaultLimits(), new(keyspace.Set)
	for _, m := range members {
		s.Add(&limits, keyspace.MemberOf([]byte(m)))
	}
	return s
}

// hashOf returns a hash of fields, values and deadlines, 0 for none.
func hashOf(parts ...any) *keyspace.Hash {
	limits, h := keyspace.DefaultLimits(), new(keyspace.Hash)
	for i := 0; i < len(parts); i += 3 {
		h.Set([]byte(parts[i].(string)), []byte(parts[i+1].(string)), &limits)
	}
	for i := 0; i < len(parts); i += 3 {
		if at := parts[i+2].(int); at != 0 {
			h.SetDeadlineBytes([]byte(parts[i].(string)), int64(at))
		}
	}
	return h
}

// zsetOf returns a sorted set of members, scores and deadlines, 0 for none.
func zsetOf(parts ...any) *zset.Set {
	s := new(zset.Set)
	for i := 0; i < len(parts); i += 3 {
		s.Add(parts[i].(string), parts[i+1].(float64))
		if at := parts[i+2].(int); at != 0 {
			s.SetDeadline(parts[i].(string), int64(at))
		}
	}
	return s
}

func idOf(ms, seq uint64) sequence.StreamID { return sequence.StreamID{Ms: ms, Seq: seq} }

// sampleStream returns a stream with a group of two consumers, one of which has an entry pending.
func sampleStream() *sequence.Stream {
	limits, s := keyspace.DefaultLimits(), new(sequence.Stream)
	s.Add(idOf(1, 1), [][]byte{[]byte("f"), []byte("v")}, limits.Stream)
	s.Add(idOf(2, 0), [][]byte{[]byte("g"), []byte("\xff"), []byte("h"), nil}, limits.Stream)
	s.SetID(idOf(5, 0), 7, idOf(4, 0))
	g := s.AddGroup([]byte("g"), idOf(2, 0), 3)
	c := g.AddConsumer([]byte("c"), 11)
	g.SetTimes(c, 11, 12)
	g.SetTimes(g.AddConsumer([]byte("idle"), 13), 13, -1)
	g.Deliver(c, idOf(2, 0), 1000, 3)
	s.AddGroup([]byte("new"), idOf(0, 0), sequence.UnknownRead)
	return s
}

// sampleValues are values of all kinds in three databases, and a library.
func sampleValues() []Value {
	return []Value{
		{DB: keyspace.InternalDB, Key: "lib", Value: stringOf("#!lua name=lib\n")},
		{DB: 0, Key: "h", Value: hashOf("f", "\xff", testNow+9)},
		{DB: 0, Key: "l", Value: listOf("a", "", "\r\n")},
		{DB: 0, Key: "s", Value: setOf("m", "\x80")},
		{DB: 0, Key: "t", Value: stringOf("text \"\\\t"), Deadline: testNow + 5},
		{DB: 2, Key: "x", Value: sampleStream()},
		{DB: 3, Key: "z", Value: zsetOf("a", math.Inf(-1), 0, "b", 1.5, testNow+7, "c", 1e-7, testNow+7)},
	}
}

// fileOf makes a file of values.
func fileOf(t *testing.T, values ...Value) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "f.db")
	if err := save(path, values, time.UnixMilli(testNow), nil); err != nil {
		t.Fatal(err)
	}
	return path
}

// sumOf returns the sum of the values in a file.
func sumOf(t *testing.T, s sum, path string) sum {
	t.Helper()
	s.keys, s.digest = 0, 0
	if _, err := Each(path, nil, func(v Value) error { s.add(v); return nil }); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestExportText checks every byte of exports.
func TestExportText(t *testing.T) {
	path := fileOf(t, sampleValues()...)
	command := func(args ...string) string {
		s := fmt.Sprintf("*%d\r\n", len(args))
		for _, a := range args {
			s += fmt.Sprintf("$%d\r\n%s\r\n", len(a), a)
		}
		return s
	}
	at := func(n int) string { return fmt.Sprint(testNow + n) }
	library := command("FUNCTION", "LOAD", "REPLACE", "#!lua name=lib\n")
	begin := command("SELECT", "0") + command("HSET", "h", "f", "\xff")
	fields := command("HPEXPIREAT", "h", at(9), "FIELDS", "1", "f")
	middle := command("RPUSH", "l", "a", "", "\r\n") + command("SADD", "s", "m", "\x80") + command("SET", "t", "text \"\\\t") + command("PEXPIREAT", "t", at(5)) +
		command("SELECT", "2") + command("XADD", "x", "1-1", "f", "v") + command("XADD", "x", "2-0", "g", "\xff", "h", "")
	stream := command("XSETID", "x", "5-0", "ENTRIESADDED", "7", "MAXDELETEDID", "4-0") +
		command("XGROUP", "CREATE", "x", "g", "2-0", "ENTRIESREAD", "3") + command("XGROUP", "CREATECONSUMER", "x", "g", "c") +
		command("XGROUP", "CREATECONSUMER", "x", "g", "idle")
	claim := command("XCLAIM", "x", "g", "c", "0", "2-0", "TIME", "1000", "RETRYCOUNT", "3", "FORCE", "JUSTID")
	second := command("XGROUP", "CREATE", "x", "new", "0-0", "ENTRIESREAD", "-1")
	oldStream := command("XSETID", "x", "5-0") + command("XGROUP", "CREATE", "x", "g", "2-0") + claim + command("XGROUP", "CREATE", "x", "new", "0-0")
	zset := command("SELECT", "3") + command("ZADD", "z", "-inf", "a", "1e-7", "c", "1.5", "b")
	members := command("ZPEXPIREAT", "z", at(7), "MEMBERS", "2", "b", "c")
	companion := command("ZADD", "zsetd:deadlines:{z}", at(7), "b", at(7), "c")
	for _, test := range []struct {
		name string
		to   rdb.Target
		want string
		done Exported
	}{
		{"any", rdb.Any, library + begin + fields + middle + stream + claim + second + zset + members, Exported{Keys: 6, MemberDeadlines: 2, FieldDeadlines: 1}},
		{"redis5", rdb.Redis5, begin + middle + oldStream + zset + companion, Exported{Keys: 6, MemberDeadlines: 2, LostDeadlines: 1, LostOf: `key "h" of database 0`, LostStreams: 1, LostLibraries: 1}},
		{"redis7", rdb.Redis7, library + begin + middle + stream + claim + second + zset + companion, Exported{Keys: 6, MemberDeadlines: 2, LostDeadlines: 1, LostOf: `key "h" of database 0`}},
		{"redis8", rdb.Redis8, library + begin + fields + middle + stream + claim + second + zset + companion, Exported{Keys: 6, MemberDeadlines: 2, FieldDeadlines: 1}},
	} {
		var out bytes.Buffer
		done, err := ExportCommands(&out, path, test.to, time.UnixMilli(testNow), nil)
		test.done.Bytes = int64(len(test.want))
		if err != nil || out.String() != test.want || done != test.done {
			t.Errorf("%s: %v, %+v\n%q\nnot\n%q", test.name, err, done, out.String(), test.want)
		}
	}
	var out bytes.Buffer
	done, err := ExportJSON(&out, path, time.UnixMilli(testNow), nil)
	want := `{"library":"lib","code":"#!lua name=lib\n"}` + "\n" +
		`{"db":0,"key":"h","type":"hash","value":[["f",{"base64":"/w=="}]],"deadlines":[["f",` + at(9) + `]]}` + "\n" +
		`{"db":0,"key":"l","type":"list","value":["a","","\r\n"]}` + "\n" +
		`{"db":0,"key":"s","type":"set","value":["m",{"base64":"gA=="}]}` + "\n" +
		`{"db":0,"key":"t","type":"string","expireat":` + at(5) + `,"value":"text \"\\\t"}` + "\n" +
		`{"db":2,"key":"x","type":"stream","value":{"entries":[["1-1",["f","v"]],["2-0",["g",{"base64":"/w=="},"h",""]]],"last":"5-0","added":7,"deleted":"4-0","groups":[` +
		`{"name":"g","last":"2-0","read":3,"consumers":[["c",11,12],["idle",13,-1]],"pending":[["2-0","c",1000,3]]},{"name":"new","last":"0-0","read":-1,"consumers":[],"pending":[]}]}}` + "\n" +
		`{"db":3,"key":"z","type":"zset","value":[["a","-inf"],["c",1e-07],["b",1.5]],"deadlines":[["b",` + at(7) + `],["c",` + at(7) + `]]}` + "\n"
	if err != nil || out.String() != want || done != (Exported{Keys: 6, MemberDeadlines: 2, FieldDeadlines: 1, Bytes: int64(len(want))}) {
		t.Errorf("json: %v, %+v\n%s\nnot\n%s", err, done, out.String(), want)
	}
	for line := range strings.Lines(out.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("no JSON: %s", line)
		}
	}
}

// TestRoundTrips exports and imports values, which are the same then.
func TestRoundTrips(t *testing.T) {
	values := sampleValues()
	for i := range values { // imports leave out what is past its deadline by the clock of the machine
		if values[i].Deadline != 0 {
			values[i].Deadline = later
		}
	}
	values[1].Value = hashOf("f", "\xff", later)
	values[6].Value = zsetOf("a", math.Inf(-1), 0, "b", 1.5, later, "c", 1e-7, later+1)
	path := fileOf(t, values...)
	all := sumOf(t, newSum(), path)
	if all.keys != int64(len(values)) {
		t.Fatal(all.keys)
	}
	now := time.UnixMilli(testNow)
	for name, trip := range map[string]func(out *bytes.Buffer, to string) (Exported, Imported, error){
		"json": func(out *bytes.Buffer, to string) (Exported, Imported, error) {
			done, err := ExportJSON(out, path, now, nil)
			in, err2 := new(Import).JSON(out, to)
			return done, in, errors.Join(err, err2)
		},
		"rdb": func(out *bytes.Buffer, to string) (Exported, Imported, error) {
			done, err := ExportRDB(out, path, rdb.Redis8, now, nil)
			if done.Bytes != int64(out.Len()) {
				t.Errorf("rdb: %+v of %d bytes", done, out.Len())
			}
			in, err2 := new(Import).RDB(out, to)
			in.Functions--
			in.Done-- // the companion
			return done, in, errors.Join(err, err2)
		},
	} {
		var out bytes.Buffer
		to := filepath.Join(t.TempDir(), "to.db")
		done, in, err := trip(&out, to)
		if err != nil || in != (Imported{Done: 7, Keys: 6}) || done.Keys != 6 || done.FieldDeadlines != 1 || done.MemberDeadlines != 2 {
			t.Errorf("%s: %+v, %+v, %v", name, done, in, err)
			continue
		}
		if got := sumOf(t, all, to); got != all {
			t.Errorf("%s: %+v, not %+v", name, got, all)
		}
	}
	// Compact leaves the values as they are, too.
	if before, after, err := Compact(path, nil); err != nil || before <= 0 || after <= 0 || sumOf(t, all, path) != all {
		t.Errorf("compact: %d, %d, %v", before, after, err)
	}
	s, err := Salvage(path, path+".salvaged", nil)
	if err != nil || !s.Intact() || s.Keys != all.keys || sumOf(t, all, path+".salvaged") != all {
		t.Errorf("salvage: %+v, %v", s, err)
	}
	if n, err := Backup(path, path+".copy", false, nil); err != nil || n <= 0 || sumOf(t, all, path+".copy") != all {
		t.Errorf("backup: %d, %v", n, err)
	}
}

// TestSum checks that the sum of values depends on all that a value consists of.
func TestSum(t *testing.T) {
	base := sampleValues()
	s := newSum()
	of := func(v Value) sum { x := s; x.add(v); return x }
	changed := []Value{
		{DB: 1, Key: "h", Value: base[1].Value},
		{DB: 0, Key: "H", Value: base[1].Value},
		{DB: 0, Key: "h", Value: base[1].Value, Deadline: 1},
		{DB: 0, Key: "h", Value: hashOf("f", "\xff", testNow+8)},
		{DB: 0, Key: "h", Value: hashOf("f", "\xff", 0)},
		{DB: 0, Key: "h", Value: hashOf("f", "w", testNow+9)},
		{DB: 0, Key: "h", Value: hashOf("\xff", "f", testNow+9)},
		{DB: 0, Key: "l", Value: listOf("", "a", "\r\n")},
		{DB: 0, Key: "l", Value: listOf("a", "\r\n")},
		{DB: 0, Key: "l", Value: setOf("a", "", "\r\n")},
		{DB: 0, Key: "s", Value: setOf("m", "\x81")},
		{DB: 0, Key: "t", Value: stringOf("text \"\\"), Deadline: testNow + 5},
		{DB: 3, Key: "z", Value: zsetOf("a", math.Inf(-1), 0, "b", 1.5, testNow+7, "c", 1e-8, testNow+7)},
		{DB: 3, Key: "z", Value: zsetOf("a", math.Inf(-1), 0, "b", 1.5, testNow+7, "d", 1e-7, testNow+7)},
		{DB: 3, Key: "z", Value: zsetOf("a", math.Inf(-1), 0, "b", 1.5, testNow+7, "c", 1e-7, 0)},
		{DB: 2, Key: "x", Value: new(sequence.Stream)},
		{DB: 0, Key: "hf", Value: stringOf("v")}, {DB: 0, Key: "h", Value: stringOf("fv")},
	}
	seen := map[sum]int{}
	for i, v := range append(base, changed...) {
		x := of(v)
		if x.keys != 1 || x.digest == 0 {
			t.Errorf("%d: %+v", i, x)
		}
		if other, twice := seen[x]; twice {
			t.Errorf("values %d and %d have the same sum", other, i)
		}
		seen[x] = i
	}
	again := s
	for _, v := range sampleValues() {
		again.add(v)
	}
	backwards := s
	for _, v := range slices.Backward(base) {
		backwards.add(v)
	}
	if again != backwards || again.keys != 7 {
		t.Errorf("%+v, backwards %+v", again, backwards)
	}
	again.replace(base[1], changed[0])
	want := s
	for i, v := range base {
		if i == 1 {
			v = changed[0]
		}
		want.add(v)
	}
	if again != want {
		t.Errorf("replaced: %+v, not %+v", again, want)
	}
	ab := s.text("a", "b")
	if ab == s.text("ab") || ab == s.text("a", "c") || ab != s.text("a", "b") {
		t.Error("texts")
	}
}

// TestSame compares values as a move does: streams without the times of consumers.
func TestSame(t *testing.T) {
	other := sampleStream()
	g := other.Group([]byte("g"))
	g.SetTimes(g.Consumer([]byte("c")), 99, 98)
	fewer := sampleStream()
	fewer.Group([]byte("g")).RemoveConsumer(fewer.Group([]byte("g")).Consumer([]byte("idle")))
	values := sampleValues()
	for _, test := range []struct {
		a, b any
		want bool
	}{
		{sampleStream(), other, true}, {sampleStream(), fewer, false}, {sampleStream(), stringOf("x"), false}, {stringOf("x"), sampleStream(), false},
		{values[1].Value, sampleValues()[1].Value, true}, {values[1].Value, hashOf("f", "\xff", 0), false},
		{values[6].Value, sampleValues()[6].Value, true}, {values[6].Value, zsetOf("a", math.Inf(-1), 0, "b", 1.5, 0, "c", 1e-7, 0), false},
		{stringOf("x"), stringOf("x"), true}, {stringOf("x"), stringOf("y"), false}, {listOf("a", "b"), listOf("b", "a"), false}, {setOf("a", "b"), setOf("b", "a"), true},
	} {
		if got := Same(Value{DB: 1, Key: "a", Value: test.a, Deadline: 5}, Value{DB: 2, Key: "b", Value: test.b}); got != test.want {
			t.Errorf("%T and %T: %v", test.a, test.b, got)
		}
	}
	if v := (Value{Value: sampleStream()}).Portable().Value.(*sequence.Stream); v.Added() != 2 || !v.MaxDeletedID().IsZero() || len(v.Group([]byte("g")).Consumers()) != 1 || v.LastID() != idOf(5, 0) {
		t.Errorf("portable: %d added, deleted %v", v.Added(), v.MaxDeletedID())
	}
	if v := (Value{Value: values[1].Value}).Portable(); v.Value != values[1].Value {
		t.Error("a hash has changed")
	}
	for _, v := range []Value{values[1], values[6]} {
		n := v.Deadlines().Len()
		w := v.WithoutDeadlines()
		if w.Deadlines() != nil || v.Deadlines().Len() != n || n == 0 || w.Value == v.Value {
			t.Errorf("%s: %v", v.Key, w.Deadlines())
		}
	}
	if v := values[2].WithoutDeadlines(); v.Value != values[2].Value || v.Deadlines() != nil {
		t.Error("a list has changed")
	}
}

// TestCommandWriter checks the commands of single values: without a SELECT, and without what is past
// its deadline.
func TestCommandWriter(t *testing.T) {
	now := time.UnixMilli(testNow)
	for _, test := range []struct {
		v         Value
		want      string // of Write, the arguments of its commands
		deadlines string // of WriteDeadlines
	}{
		{Value{Key: "k", Value: zsetOf("a", 1.0, testNow-1, "b", 2.0, testNow, "c", 3.0, 0)}, "ZADD k 2 b 3 c ZPEXPIREAT k 1700000000000 MEMBERS 1 b", "ZPEXPIREAT k 1700000000000 MEMBERS 1 b"},
		{Value{Key: "k", Value: zsetOf("a", 1.0, testNow-1)}, "", ""},
		{Value{Key: "k", Value: zsetOf("a", 1.0, testNow-1), Deadline: testNow + 5}, "", ""},
		{Value{Key: "k", Value: hashOf("a", "x", testNow-1, "b", "y", testNow)}, "HSET k b y HPEXPIREAT k 1700000000000 FIELDS 1 b", "HPEXPIREAT k 1700000000000 FIELDS 1 b"},
		{Value{Key: "k", Value: hashOf("a", "x", testNow-1)}, "", ""},
		{Value{Key: "k", Value: zsetOf("a", 1.0, testNow+2, "b", 2.0, testNow+1)}, "ZADD k 1 a 2 b ZPEXPIREAT k 1700000000001 MEMBERS 1 b ZPEXPIREAT k 1700000000002 MEMBERS 1 a", "ZPEXPIREAT k 1700000000001 MEMBERS 1 b ZPEXPIREAT k 1700000000002 MEMBERS 1 a"},
		{Value{DB: 7, Key: "k", Value: stringOf(""), Deadline: 5}, "SET k  PEXPIREAT k 5", ""},
		{Value{Key: "k", Value: new(sequence.Stream)}, "XADD k MAXLEN 0 0-1 f v XSETID k 0-0 ENTRIESADDED 0", ""},
	} {
		var out bytes.Buffer
		w := NewCommandWriter(&out, rdb.Any)
		words := func() string {
			var all []string
			for i, line := range strings.Split(out.String(), "\r\n") {
				if strings.HasPrefix(line, "*") || strings.HasPrefix(line, "$") || i == strings.Count(out.String(), "\r\n") {
					continue
				}
				all = append(all, line)
			}
			out.Reset()
			return strings.Join(all, " ")
		}
		if err := w.Write(test.v, now); err != nil {
			t.Fatal(err)
		}
		if got := words(); got != test.want {
			t.Errorf("%q, not %q", got, test.want)
		}
		if err := w.WriteDeadlines(test.v, now); err != nil {
			t.Fatal(err)
		}
		if got := words(); got != test.deadlines {
			t.Errorf("deadlines %q, not %q", got, test.deadlines)
		}
	}
}

// limitedWriter fails after some bytes, and counts the writes.
type limitedWriter struct {
	left, writes, most int
}

var errNoSpace = errors.New("no space")

// Write implements io.Writer.
func (w *limitedWriter) Write(b []byte) (int, error) {
	w.writes++
	w.most = max(w.most, len(b))
	if w.left -= len(b); w.left < 0 {
		return 0, errNoSpace
	}
	return len(b), nil
}

// TestExportLarge checks that exports of large values are written in parts, with commands of a limited
// size, and end with the error of the writer wherever it occurs.
func TestExportLarge(t *testing.T) {
	list, set, hash, sorted, stream := new(sequence.List), new(keyspace.Set), new(keyspace.Hash), new(zset.Set), new(sequence.Stream)
	limits := keyspace.DefaultLimits()
	group := stream.AddGroup([]byte("g"), idOf(0, 0), 0)
	consumer := group.AddConsumer([]byte("c"), 1)
	for i := range 20_000 {
		b := fmt.Appendf(nil, "element:%d", i)
		list.PushBack(b)
		set.Add(&limits, keyspace.MemberOf(b))
		hash.Set(b, b, &limits)
		sorted.Add(string(b), float64(i))
		stream.Add(idOf(uint64(1+i), 0), [][]byte{b, b}, limits.Stream)
		group.Deliver(consumer, idOf(uint64(1+i), 0), 5, 1)
		if i%2 == 0 {
			hash.SetDeadlineBytes(b, testNow+1)
			sorted.SetDeadline(string(b), testNow+int64(i%3000))
		}
	}
	for name, v := range map[string]any{"list": list, "set": set, "hash": hash, "zset": sorted, "stream": stream} {
		path := fileOf(t, Value{Key: "k", Value: v})
		for kind, export := range map[string]func(w *limitedWriter) (Exported, error){
			"commands": func(w *limitedWriter) (Exported, error) {
				return ExportCommands(w, path, rdb.Any, time.UnixMilli(testNow), nil)
			},
			"redis7": func(w *limitedWriter) (Exported, error) {
				return ExportCommands(w, path, rdb.Redis7, time.UnixMilli(testNow), nil)
			},
			"json": func(w *limitedWriter) (Exported, error) { return ExportJSON(w, path, time.UnixMilli(testNow), nil) },
			"rdb": func(w *limitedWriter) (Exported, error) {
				return ExportRDB(w, path, rdb.Redis8, time.UnixMilli(testNow), nil)
			},
		} {
			whole := limitedWriter{left: math.MaxInt}
			done, err := export(&whole)
			if err != nil || done.Keys != 1 || done.Bytes < 90_000 {
				t.Errorf("%s, %s: %+v, %v", name, kind, done, err)
			}
			if kind != "rdb" && (whole.writes < 3 || whole.most > 3*writeAt) {
				t.Errorf("%s, %s: %d writes, of %d bytes at most", name, kind, whole.writes, whole.most)
			}
			for part := range 4 {
				left := int(done.Bytes) * part / 4
				w := limitedWriter{left: left}
				if _, err := export(&w); err != errNoSpace || left+w.left > left {
					t.Errorf("%s, %s, %d bytes: %v", name, kind, left, err)
				}
				if kind != "rdb" && w.writes > 1+whole.writes*(part+1)/4+1 {
					t.Errorf("%s, %s, %d bytes: %d of %d writes", name, kind, left, w.writes, whole.writes)
				}
			}
		}
	}
	var out bytes.Buffer
	if _, err := ExportCommands(&out, fileOf(t, Value{Key: "k", Value: list}), rdb.Any, time.UnixMilli(testNow), nil); err != nil || strings.Count(out.String(), "RPUSH") != 20 {
		t.Errorf("%d commands of %v elements, %v", strings.Count(out.String(), "RPUSH"), batchElements, err)
	}
	out.Reset()
	big := listOf(strings.Repeat("a", batchBytes), strings.Repeat("b", batchBytes-1), "c", "d")
	if _, err := ExportCommands(&out, fileOf(t, Value{Key: "k", Value: big}), rdb.Any, time.UnixMilli(testNow), nil); err != nil || strings.Count(out.String(), "RPUSH") != 3 {
		t.Errorf("%d commands of large elements, %v", strings.Count(out.String(), "RPUSH"), err)
	}
	out.Reset()
	if _, err := ExportCommands(&out, fileOf(t, Value{Key: "k", Value: hash}), rdb.Any, time.UnixMilli(testNow), nil); err != nil || strings.Count(out.String(), "HPEXPIREAT") != 10 {
		t.Errorf("%d commands of deadlines, %v", strings.Count(out.String(), "HPEXPIREAT"), err)
	}
}

// TestExpiredKeys checks the instants at which keys, members and fields are past their deadlines.
func TestExpiredKeys(t *testing.T) {
	path := fileOf(t, Value{Key: "at", Value: stringOf("x"), Deadline: testNow}, Value{Key: "before", Value: stringOf("x"), Deadline: testNow - 1},
		Value{Key: "fields", Value: hashOf("f", "v", testNow-1)}, Value{Key: "members", Value: zsetOf("m", 1.0, testNow-1)},
		Value{Key: "none", Value: new(sequence.Stream)}, Value{Key: "some", Value: zsetOf("m", 1.0, testNow-1, "n", 2.0, testNow)})
	var out bytes.Buffer
	done, err := ExportJSON(&out, path, time.UnixMilli(testNow), nil)
	if err != nil || done.Keys != 3 || done.Expired != 3 || done.MemberDeadlines != 1 {
		t.Errorf("%+v, %v", done, err)
	}
	for _, key := range []string{`"at"`, `"none"`, `"some","type":"zset","value":[["n",2]],"deadlines":[["n",1700000000000]]`} {
		if !strings.Contains(out.String(), key) {
			t.Errorf("%s is missing: %s", key, out.String())
		}
	}
	r, err := Check(path, time.UnixMilli(testNow), nil)
	if err != nil || len(r.Databases) != 1 || r.Databases[0].Keys != 6 || r.Databases[0].Volatile != 2 || r.Databases[0].Expired != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestReport checks the numbers of a report.
func TestReport(t *testing.T) {
	values := sampleValues()
	for i := range 15 {
		values = append(values, Value{DB: 4, Key: fmt.Sprintf("k%02d", i), Value: listOf(slices.Repeat([]string{"xx"}, 20+i%7)...)})
	}
	r, err := Check(fileOf(t, values...), time.UnixMilli(testNow), nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Libraries != 1 || r.Generation != 1 || !r.Time.Equal(time.UnixMilli(testNow)) || r.Bases.Records != 22 || r.Bases.Bytes == 0 || r.Journal != (Records{}) || r.Log != (Records{}) || r.Void != 0 || r.Size <= 0 {
		t.Errorf("%+v", r)
	}
	want := []DatabaseReport{
		{DB: 0, Keys: 4, Volatile: 1, Types: []TypeReport{{"hash", 1, 1, 3}, {"list", 1, 3, 4}, {"set", 1, 2, 3}, {"string", 1, 1, 9}}},
		{DB: 2, Keys: 1, Types: []TypeReport{{"stream", 1, 2, 38}}},
		{DB: 3, Keys: 1, Types: []TypeReport{{"zset", 1, 3, 28}}},
		{DB: 4, Keys: 15, Types: []TypeReport{{"list", 15, 342, 729}}},
	}
	if got := fmt.Sprintf("%+v", r.Databases); got != fmt.Sprintf("%+v", want) {
		t.Errorf("%s, not %+v", got, want)
	}
	elements := ""
	for _, k := range r.MostElements {
		elements += fmt.Sprintf("%s:%d:%d ", k.Key, k.Elements, k.Bytes)
	}
	if elements != "k06:26:52 k13:26:52 k05:25:50 k12:25:50 k04:24:48 k11:24:48 k03:23:46 k10:23:46 k02:22:44 k09:22:44 " {
		t.Error(elements)
	}
	if len(r.MostBytes) != biggest || r.MostBytes[0].Key != "k06" || r.MostBytes[1].Key != "k13" || r.MostBytes[0].DB != 4 || r.MostBytes[0].Type != "list" {
		t.Errorf("%+v", r.MostBytes)
	}
}

// TestFold makes companions in a file deadlines of members again, wherever they are in it.
func TestFold(t *testing.T) {
	at := later
	companions := []Value{
		{DB: 0, Key: "a", Value: zsetOf("m", 1.0, 0, "n", 2.0, 0)},
		{DB: 0, Key: "zsetd:deadlines:{a}", Value: zsetOf("m", float64(at), 0, "gone", float64(at), 0)},
		{DB: 0, Key: "zsetd:deadlines:{none}", Value: zsetOf("m", float64(at), 0)},
		{DB: 0, Key: "zsetd:deadlines:{text}", Value: zsetOf("m", float64(at), 0)},
		{DB: 0, Key: "text", Value: stringOf("x")},
		{DB: 1, Key: "zsetd:deadlines:{a}", Value: zsetOf("m", 0.5, 0)},
		{DB: 1, Key: "a", Value: zsetOf("m", 1.0, 0)},
		{DB: 2, Key: "zsetd:deadlines:{a}", Value: zsetOf("m", 0.0, 0)},
		{DB: 2, Key: "a", Value: zsetOf("m", 1.0, 0)},
		{DB: 3, Key: "zsetd:deadlines:{a}", Value: zsetOf("m", float64(lastDeadline)+1, 0)},
		{DB: 3, Key: "a", Value: zsetOf("m", 1.0, 0)},
		{DB: 4, Key: "zsetd:deadlines:{a}", Value: zsetOf("m", float64(lastDeadline), 0)},
		{DB: 4, Key: "a", Value: zsetOf("m", 1.0, 0)},
		{DB: 5, Key: "zsetd:deadlines:{a}", Value: zsetOf("m", float64(at), at)},
		{DB: 5, Key: "a", Value: zsetOf("m", 1.0, 0)},
		{DB: 6, Key: "zsetd:deadlines:{a}", Value: listOf("x")},
		{DB: 6, Key: "a", Value: zsetOf("m", 1.0, 0)},
	}
	want := map[string]string{
		"0a": "m@2700000000000", "0zsetd:deadlines:{none}": "", "0zsetd:deadlines:{text}": "", "0text": "", "1zsetd:deadlines:{a}": "", "1a": "", "2zsetd:deadlines:{a}": "", "2a": "",
		"3zsetd:deadlines:{a}": "", "3a": "", "4a": "m@70368744177663", "5zsetd:deadlines:{a}": "m@2700000000000", "5a": "", "6zsetd:deadlines:{a}": "", "6a": "",
	}
	describe := func(values []Value) map[string]string {
		got := map[string]string{}
		for _, v := range values {
			text := ""
			if d := v.Deadlines(); d != nil {
				for m, at := range d.All() {
					text += fmt.Sprintf("%s@%d", m, int64(at))
				}
			}
			got[fmt.Sprint(v.DB, v.Key)] = text
		}
		return got
	}
	compare := func(name string, got map[string]string) {
		t.Helper()
		for k := range want {
			if x, ok := got[k]; !ok || x != want[k] {
				t.Errorf("%s: %s has %q (%v), not %q", name, k, x, ok, want[k])
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: %d keys, not %d: %v", name, len(got), len(want), got)
		}
	}
	compare("folded", describe(foldCompanions(slices.Clone(companions))))
	if got := foldCompanions(companions[4:5]); len(got) != 1 {
		t.Error(got)
	}
	for name, order := range map[string][]Value{"as they are": companions, "backwards": slices.Collect(func(yield func(Value) bool) {
		for _, v := range slices.Backward(companions) {
			if !yield(v) {
				return
			}
		}
	})} {
		limits := keyspace.DefaultLimits()
		w := rdb.NewWriter(rdb.NewCodec(&limits), rdb.Redis7)
		file := w.AppendHead(nil)
		for _, v := range order {
			if d := v.Deadlines(); d != nil {
				file = w.AppendDeadlines(file, v.Value)
			}
			file = w.AppendKey(file, v.DB, v.Key, v.Value, v.Deadline)
		}
		path := filepath.Join(t.TempDir(), "f.db")
		out, err := new(Import).RDB(bytes.NewReader(w.AppendEnd(file)), path)
		if err != nil || out.Keys != int64(len(want)) {
			t.Errorf("%s: %+v, %v", name, out, err)
			continue
		}
		var values []Value
		if _, err := Each(path, nil, func(v Value) error { values = append(values, v); return nil }); err != nil {
			t.Fatal(err)
		}
		compare(name, describe(values))
	}
	for key, name := range map[string]string{
		"a": "{a}", "{a}": ":{a}", ":{a}": "::{a}", "{a}b": "{a}b", "x{a}b": "x{a}b", "{}": "{{}}", "{": "{{}", "": "{}", "a}": "{a}}", ":a": "{:a}", "{a": "{{a}",
	} {
		if got := CompanionOf(key); got != CompanionPrefix+name {
			t.Errorf("%q: %q", key, got)
		}
		if got, ok := OwnerOf(CompanionPrefix + name); !ok || got != key {
			t.Errorf("owner of %q: %q, %v", name, got, ok)
		}
	}
	for _, name := range []string{"a", "zsetd:deadlines", "zsetd:deadlines:", "zsetd:deadlines:a", "zsetd:deadlines:{a", ""} {
		if key, ok := OwnerOf(name); ok {
			t.Errorf("%q: %q", name, key)
		}
	}
}

// TestRecognize adds to an error what a file is.
func TestRecognize(t *testing.T) {
	dir := t.TempDir()
	for content, want := range map[string]string{
		"REDIS0011\xfa": "an RDB file of Redis, version 11: `zsetd import ", `{"db":0,"key"`: "lines of JSON, as zsetd export writes them: `zsetd import --json ",
		`{"library":"x"`: "lines of JSON", "*1\r\n$4\r\nPING\r\n": "a file of commands", "nonsense": "", `{"key":1}`: "",
	} {
		path := filepath.Join(dir, "file")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Each(path, nil, func(Value) error { return nil })
		if err = Recognize(path, err); err == nil || want != "" && !strings.Contains(err.Error(), want) || want == "" && strings.Contains(err.Error(), "zsetd import") {
			t.Errorf("%q: %v", content, err)
		}
	}
	other := errors.New("other")
	if err := Recognize(filepath.Join(dir, "file"), other); err != other {
		t.Error(err)
	}
	if err := Recognize("", nil); err != nil {
		t.Error(err)
	}
	path := fileOf(t, sampleValues()...)
	if err := save(path, nil, time.UnixMilli(testNow), nil); !errors.Is(err, os.ErrExist) {
		t.Error(err)
	}
	stop := errors.New("enough")
	n := 0
	if _, err := Each(path, nil, func(Value) error { n++; return stop }); err != stop || n != 1 {
		t.Errorf("%v after %d values", err, n)
	}
}
