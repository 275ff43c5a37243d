package replication

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/internal/values/sequence"
	"github.com/zsetd/zsetd/zset"
)

// source is a keyspace that is followed.
type source struct {
	*keyspace.Keyspace
	t Translator
}

func newSource() *source {
	s := &source{Keyspace: keyspace.New(4, keyspace.Hooks{})}
	s.Follow(true)
	return s
}

// take returns the commands for what has changed, one in a line.
func (s *source) take(t *testing.T) string {
	t.Helper()
	var all []byte
	if e := s.TakeEffects(); e != nil {
		s.t.Commands(e, func(chunk []byte) bool {
			all = append(all, chunk...)
			return true
		})
	}
	return inLines(t, all)
}

// inLines returns commands as text. Arguments with spaces, or without characters, are
// quoted; those that contain commands are in brackets.
func inLines(t *testing.T, b []byte) string {
	t.Helper()
	var lines []string
	for len(b) > 0 {
		var n int
		b = header(t, b, '*', &n)
		words := make([]string, n)
		for i := range words {
			var size int
			b = header(t, b, '$', &size)
			if size+2 > len(b) || string(b[size:size+2]) != "\r\n" {
				t.Fatalf("a bulk string of %d bytes: %.100q", size, b)
			}
			words[i] = string(b[:size])
			if inner, ok := embedded(b[:size]); ok {
				words[i] = "[" + strings.ReplaceAll(inLines(t, inner), "\n", "; ") + "]"
			} else if words[i] == "" || strings.ContainsAny(words[i], " \r\n") {
				words[i] = fmt.Sprintf("%q", words[i])
			}
			b = b[size+2:]
		}
		lines = append(lines, strings.Join(words, " "))
	}
	return strings.Join(lines, "\n")
}

func header(t *testing.T, b []byte, kind byte, n *int) (rest []byte) {
	t.Helper()
	line, rest, ok := bytes.Cut(b, []byte("\r\n"))
	if !ok || len(line) < 2 || line[0] != kind {
		t.Fatalf("no %c in %.100q", kind, b)
	}
	if _, err := fmt.Sscan(string(line[1:]), n); err != nil {
		t.Fatal(err)
	}
	return rest
}

func (s *source) want(t *testing.T, lines ...string) {
	t.Helper()
	if got, want := s.take(t), strings.Join(lines, "\n"); got != want {
		t.Errorf("commands:\n%s\nwant:\n%s", got, want)
	}
}

func TestStrings(t *testing.T) {
	s := newSource()
	db, k := s.DB(0), []byte("k")
	db.AddString(k, []byte("v w"), false)
	s.want(t, "SELECT 0", `SET k "v w"`)
	db.SetString(db.Edit(k), []byte(""))
	s.want(t, `SET k ""`)
	db.SetDeadline(db.Edit(k), 5000)
	s.want(t, "PEXPIREAT k 5000")
	db.SetString(db.Edit(k), []byte("x"))
	s.want(t, "SET k x KEEPTTL")
	e := db.SetString(db.Edit(k), []byte("y"))
	db.SetDeadline(e, 0)
	s.want(t, "SET k y")
	e, _ = db.SetDeadline(db.Edit(k), 6000)
	db.AppendString(e, []byte("z"))
	s.want(t, "MULTI", "PEXPIREAT k 6000", "SETRANGE k 1 z", "EXEC")
	e = db.SetString(db.Edit(k), []byte("a"))
	e, _ = db.SetDeadline(e, 0)
	db.SetDeadline(e, 7000)
	s.want(t, "MULTI", "SET k a", "PEXPIREAT k 7000", "EXEC")
	db.SetDeadline(db.Edit(k), 0)
	s.want(t, "PERSIST k")
	db.Delete(k)
	s.want(t, "DEL k")
	if s.TakeEffects() != nil {
		t.Error("effects of nothing")
	}
	long := strings.Repeat("x", 300<<10)
	db.AddString(k, []byte(long), false)
	s.want(t, "MULTI", "SET k "+long[:256<<10], "SETRANGE k 262144 "+long[:44<<10], "EXEC")
	s.t.Reset()
	db.Delete(k)
	s.want(t, "SELECT 0", "DEL k")
}

func TestDatabases(t *testing.T) {
	s := newSource()
	k := []byte("k")
	s.DB(0).AddString(k, []byte("0"), false)
	s.DB(1).AddString(k, []byte("1"), false)
	s.want(t, "MULTI", "SELECT 0", "SET k 0", "SELECT 1", "SET k 1", "EXEC")
	s.DB(1).Delete(k)
	s.Swap(0, 1)
	s.DB(1).Delete(k)
	s.want(t, "MULTI", "DEL k", "SWAPDB 0 1", "DEL k", "EXEC")
	// A value that is open when its database is swapped belongs to the other one.
	s.DB(2).Add(k, new(keyspace.Hash))
	e, _ := s.DB(2).SetField(s.DB(2).Edit(k), []byte("f"), []byte("v"))
	s.Swap(2, 3)
	s.DB(3).SetField(e, []byte("g"), []byte("w"))
	s.want(t, "MULTI", "SWAPDB 2 3", "SELECT 3", "HSET k f v g w", "EXEC")
	s.DB(3).Clear()
	s.want(t, "FLUSHDB")
	s.DB(0).AddString(k, []byte("0"), false)
	s.Seal()
	for _, db := range s.DBs() {
		db.Clear()
	}
	s.DB(3).AddString(k, []byte("3"), false)
	s.want(t, "MULTI", "SELECT 0", "SET k 0", "FLUSHALL", "SELECT 3", "SET k 3", "EXEC")
	for _, db := range s.DBs()[:3] {
		db.Clear()
	}
	s.want(t, "MULTI", "SELECT 0", "FLUSHDB", "SELECT 1", "FLUSHDB", "SELECT 2", "FLUSHDB", "EXEC")
}

func TestLibraries(t *testing.T) {
	s := newSource()
	db := s.DB(keyspace.InternalDB)
	db.Put([]byte("lib"), keyspace.NewString([]byte("code")), false)
	s.want(t, "SELECT 0", "FUNCTION LOAD REPLACE code")
	long := strings.Repeat("code", 100<<10)
	db.Put([]byte("lib"), keyspace.NewString([]byte(long)), false)
	s.want(t, "FUNCTION LOAD REPLACE "+long)
	db.Delete([]byte("lib"))
	s.want(t, "FUNCTION DELETE lib")
}

// TestMessages checks the commands for messages to channels, and to those of a slot.
func TestMessages(t *testing.T) {
	s := newSource()
	for how, command := range []string{"PUBLISH", "SPUBLISH"} {
		s.Note(keyspace.ChangeMessage, 0, []byte("channel"), []byte("a message"), byte(how))
		if got := s.take(t); !strings.HasSuffix(got, command+` channel "a message"`) || strings.Contains(got, " "+command) {
			t.Errorf("%s: %q", command, got)
		}
	}
}

func TestHashesAndSets(t *testing.T) {
	s := newSource()
	db, k := s.DB(0), []byte("k")
	e := db.AddHash(k, 0)
	for _, f := range []string{"a", "b", "c"} {
		e, _ = db.SetField(e, []byte(f), []byte("1"))
	}
	db.SetDeadline(e, 9000)
	s.want(t, "MULTI", "SELECT 0", "HSET k a 1 b 1 c 1", "PEXPIREAT k 9000", "EXEC")
	e = db.Edit(k)
	e, _ = db.DeleteField(e, []byte("a"))
	e, _ = db.DeleteField(e, []byte("b"))
	db.SetField(e, []byte("d"), []byte(""))
	s.want(t, "MULTI", "HDEL k a b", `HSET k d ""`, "EXEC")
	db.Put(k, setOf(s, "x", "y"), false)
	s.want(t, "MULTI", "DEL k", "SADD k x y", "EXEC")
	e = db.Unpacked(db.Edit(k))
	e.Value().(*keyspace.Set).Add(&s.Limits, keyspace.MemberOf([]byte("z")))
	e.Value().(*keyspace.Set).Remove(keyspace.MemberOf([]byte("x")))
	s.want(t, "MULTI", "SADD k z", "SREM k x", "EXEC")
	db.Put(k, setOf(s, many(150)...), false)
	s.want(t, "MULTI", "DEL k", "SADD k "+strings.Join(many(150)[:64], " "), "SADD k "+strings.Join(many(150)[64:128], " "),
		"SADD k "+strings.Join(many(150)[128:], " "), "EXEC")
	e = db.Edit(k)
	db.Move(e, s.DB(1), []byte("l"))
	if got := s.take(t); !strings.HasPrefix(got, "MULTI\nDEL k\nSELECT 1\nSADD l m0 ") {
		t.Errorf("a move: %s", got)
	}
}

// many returns n members.
func many(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("m%d", i))
	}
	return list
}

func setOf(s *source, members ...string) *keyspace.Set {
	set := new(keyspace.Set)
	set.KeepOrder()
	limits := s.Limits
	limits.SetMaxListpackEntries = 1000
	for _, m := range members {
		set.Add(&limits, keyspace.MemberOf([]byte(m)))
	}
	return set
}

func TestSortedSets(t *testing.T) {
	s := newSource()
	db, k := s.DB(0), []byte("k")
	z := db.Add(k, new(zset.Set)).Value().(*zset.Set)
	z.Add("a", 0.1)
	z.Add("b", math.Inf(1))
	z.Add("c", math.Inf(-1))
	s.want(t, "SELECT 0", "ZADD k -inf c 0.10000000000000001 a inf b")
	z = db.Edit(k).Value().(*zset.Set)
	z.Add("a", 1e300)
	z.Remove("b")
	s.want(t, "MULTI", "ZADD k 1.0000000000000001e+300 a", "ZREM k b", "EXEC")
	db.SetDeadline(db.Edit(k), 8000)
	s.want(t, "PEXPIREAT k 8000")
	// A set that is cleared and filled again within a command keeps its deadline.
	z = db.Edit(k).Value().(*zset.Set)
	z.Clear()
	z.Add("d", 2)
	s.want(t, "MULTI", "DEL k", "ZADD k 2 d", "PEXPIREAT k 8000", "EXEC")
	s.SetNow(8001)
	s.Sweep(10)
	s.want(t, "DEL k")
}

func TestMemberDeadlines(t *testing.T) {
	s := newSource()
	db, k, h := s.DB(0), []byte("k"), []byte("h")
	edit := func() *zset.Set { return db.Edit(k).Value().(*zset.Set) }
	z := db.Add(k, new(zset.Set)).Value().(*zset.Set)
	z.Add("a", 1)
	z.SetDeadline("a", 1000)
	z.Add("b", 2)
	z.Add("c", 3)
	z.SetDeadline("b", 2000)
	z.SetDeadline("c", 2000)
	s.want(t, "MULTI", "SELECT 0", "ZADD k 1 a 2 b 3 c", "PING [ZPEXPIREAT k 1000 MEMBERS 1 a; ZPEXPIREAT k 2000 MEMBERS 2 b c]", "EXEC")
	edit().SetDeadline("a", 3000)
	s.want(t, "PING [ZPEXPIREAT k 3000 MEMBERS 1 a]")
	// In contrast to ZADD, Add keeps the deadline.
	edit().Add("a", 4)
	s.want(t, "MULTI", "ZADD k 4 a", "PING [ZPEXPIREAT k 3000 MEMBERS 1 a]", "EXEC")
	edit().SetDeadline("a", 0)
	s.want(t, "PING [ZPERSIST k MEMBERS 1 a]")
	// The deadline of a member that is removed and added again is gone.
	z = edit()
	z.SetDeadline("a", 4000)
	z.Remove("a")
	z.Add("a", 5)
	s.want(t, "MULTI", "ZREM k a", "ZADD k 5 a", "EXEC")
	s.SetNow(2001)
	s.Sweep(10)
	s.want(t, "ZREM k b c")
	// A key that is moved has all its deadlines.
	edit().SetDeadline("a", 5000)
	s.want(t, "PING [ZPEXPIREAT k 5000 MEMBERS 1 a]")
	db.Move(db.Edit(k), s.DB(1), []byte("l"))
	s.want(t, "MULTI", "DEL k", "SELECT 1", "ZADD l 5 a", "PING [ZPEXPIREAT l 5000 MEMBERS 1 a]", "EXEC")
	// In Redis, HSET removes the deadline of a field; Set does not.
	field := []byte("f")
	e := db.AddHash(h, 0)
	e, _ = db.SetField(e, field, []byte("1"))
	db.Unpacked(e).Value().(*keyspace.Hash).SetDeadlineBytes(field, 6000)
	s.want(t, "MULTI", "SELECT 0", "HSET h f 1", "PING [HPEXPIREAT h 6000 FIELDS 1 f]", "EXEC")
	db.SetField(db.Edit(h), field, []byte("2"))
	s.want(t, "MULTI", "HSET h f 2", "PING [HPEXPIREAT h 6000 FIELDS 1 f]", "EXEC")
	// So many deadlines that they are several commands.
	z = db.Add(k, new(zset.Set)).Value().(*zset.Set)
	for i, m := range many(100) {
		z.Add(m, float64(i))
		z.SetDeadline(m, 7000)
	}
	got := strings.Split(s.take(t), "\n")
	if len(got) != 6 || !strings.HasPrefix(got[1], "ZADD k 0 m0 ") || !strings.HasPrefix(got[2], "ZADD k 64 m64 ") ||
		!strings.HasPrefix(got[3], "PING [ZPEXPIREAT k 7000 MEMBERS 64 m0 ") || !strings.HasPrefix(got[4], "PING [ZPEXPIREAT k 7000 MEMBERS 36 ") {
		t.Errorf("%d commands: %.3000q", len(got), got)
	}
}

func TestLists(t *testing.T) {
	s := newSource()
	db, k := s.DB(0), []byte("k")
	l := db.Add(k, new(sequence.List)).Value().(*sequence.List)
	for _, b := range []string{"a", "b", "a", "b", "c"} {
		l.PushBack([]byte(b))
	}
	s.want(t, "SELECT 0", "RPUSH k a b a b c")
	for _, c := range []struct {
		name   string
		change func(l *sequence.List)
		want   string
	}{
		{"push", func(l *sequence.List) {
			l.PushFront([]byte("1"))
			l.PushFront([]byte("2"))
			l.PushBack([]byte("3"))
			l.PushBack([]byte("4"))
		}, "MULTI\nLPUSH k 1 2\nRPUSH k 3 4\nEXEC"}, // 2 1 a b a b c 3 4
		{"pop", func(l *sequence.List) { l.PopFront(); l.PopBack(); l.PopBack() }, "MULTI\nLPOP k\nRPOP k\nRPOP k\nEXEC"},
		{"set", func(l *sequence.List) { l.Set(0, []byte("a")) }, "LSET k 0 a"}, // a a b a b c
		{"insert before", func(l *sequence.List) { l.Insert(2, []byte("x")) }, "LINSERT k BEFORE b x"},
		{"insert before another", func(l *sequence.List) { l.Insert(3, []byte("y")) }, "LINSERT k BEFORE b y"},
		{"insert at the front", func(l *sequence.List) { l.Insert(0, []byte("")) }, `LPUSH k ""`},
		{"insert after", func(l *sequence.List) { l.Insert(2, []byte("z")) }, `LINSERT k AFTER a z`}, // "" a z a x y b a b c
		{"insert at the end", func(l *sequence.List) { l.Insert(l.Len(), []byte("")) }, `RPUSH k ""`},
		{"remove", func(l *sequence.List) { l.Remove([]byte(""), -1) }, `LREM k -1 ""`},
		{"cut the front", func(l *sequence.List) { l.Delete(0, 2) }, "LTRIM k 2 -1"},
		{"cut the end", func(l *sequence.List) { l.Delete(5, l.Len()-5) }, "LTRIM k 0 4"}, // z a x y b
		{"cut the middle", func(l *sequence.List) { l.Delete(1, 3) }, "MULTI\nDEL k\nRPUSH k z b\nEXEC"},
		{"rotate", func(l *sequence.List) { l.PushFront(bytes.Clone(l.PopBack())) }, "MULTI\nRPOP k\nLPUSH k b\nEXEC"},
		{"pop one", func(l *sequence.List) { l.PopBack() }, "RPOP k"},
	} {
		c.change(db.Edit(k).Value().(*sequence.List))
		if got := s.take(t); got != c.want {
			t.Errorf("%s:\n%s\nwant:\n%s", c.name, got, c.want)
		}
	}
	// A list that a command empties and fills again keeps its deadline.
	db.SetDeadline(db.Edit(k), 4000)
	s.want(t, "PEXPIREAT k 4000")
	l = db.Edit(k).Value().(*sequence.List)
	l.PushFront(bytes.Clone(l.PopBack()))
	s.want(t, "MULTI", "DEL k", "RPUSH k b", "PEXPIREAT k 4000", "EXEC")
	// Elements that are equal to others on both sides are no pivots.
	for _, b := range []string{"b", "b", "b"} {
		l = db.Edit(k).Value().(*sequence.List)
		l.PushBack([]byte(b))
	}
	s.want(t, "RPUSH k b b b")
	db.Edit(k).Value().(*sequence.List).Insert(2, []byte("c"))
	s.want(t, "MULTI", "DEL k", "RPUSH k b b c b b", "PEXPIREAT k 4000", "EXEC")
}

func TestChunks(t *testing.T) {
	s := newSource()
	long := bytes.Repeat([]byte("x"), 100<<10)
	for i := range 5 {
		s.DB(0).AddString([]byte{byte('a' + i)}, long, false)
	}
	e := s.TakeEffects()
	var sizes []int
	var all []byte
	s.t.Commands(e, func(chunk []byte) bool {
		sizes = append(sizes, len(chunk))
		all = append(all, chunk...)
		return true
	})
	if n := strings.Count(inLines(t, all), "\n"); n != 7 || len(sizes) < 5 {
		t.Errorf("%d commands in chunks of %d bytes", n+1, sizes)
	}
	n := 0
	s.t.Commands(e, func([]byte) bool { n++; return n < 2 })
	if n != 2 {
		t.Errorf("%d chunks after the second was refused", n)
	}
	s.DB(0).Delete([]byte("a"))
	s.want(t, "SELECT 0", "DEL a")
}
