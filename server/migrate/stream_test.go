package migrate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/internal/peers/psync"
	"github.com/zsetd/zsetd/server/servertest"
)

// applierTo returns an applier of a stream that begins at offset 100, for a target that is taken
// for a product, and for a cluster if it has tags.
func applierTo(t *testing.T, rdb *redis.Client, p product, tags []string) (*move, *applier) {
	t.Helper()
	m := newMove(&Options{From: endpoint(t, "redis://a"), To: endpoint(t, "redis://b")})
	m.t = &target{rdb: rdb, product: p, tags: tags, script: scriptFor(p), note: func(string) {}}
	m.t.byDB.of(3, func() redis.UniversalClient {
		return redis.NewClient(&redis.Options{Addr: rdb.Options().Addr, DB: 3, MaxRetries: -1})
	})
	t.Cleanup(func() { m.t.byDB.close() })
	if err := m.t.loadScript(t.Context()); err != nil {
		t.Fatal(err)
	}
	a := &applier{
		t: m.t, alone: true, fromZsetd: true, dbs: m.dbs, facts: server.Commands(), rows: streamRows(), journey: m.journey,
		changes: &m.changes, doubts: &m.doubts, repaired: &m.repaired, units: map[int]*unit{},
	}
	a.begin(position{"s", 100, 0})
	return m, a
}

// batchOf returns commands of a stream, each of 10 bytes.
func batchOf(lines ...string) *psync.Batch {
	b := &psync.Batch{}
	for _, line := range lines {
		var args [][]byte
		for _, w := range strings.Fields(line) {
			args = append(args, []byte(w))
		}
		b.Commands, b.Sizes = append(b.Commands, args), append(b.Sizes, 10)
	}
	return b
}

// zsetd86 is the product of this server.
func zsetd86() product { return product{"zsetd", 8, 6} }

// TestStreamErrors checks that the stream ends with the error of each call that a target refuses, of
// those that commands with keys of several slots make.
func TestStreamErrors(t *testing.T) {
	srv := servertest.Run(t)
	there := clientOf(t, srv.Addr())
	g := gateTo(t, srv.Addr())
	many := " {x}k" + strings.Repeat(" {x}k", maxScriptArgs)
	for _, test := range []struct {
		lines, call string
		n           int
	}{
		{"INCR n; RENAME a b", "EVALSHA", 1},
		{"RENAME a b", "DUMP", 1},
		{"RENAME a b", "PEXPIRETIME", 1},
		{"RENAME a b", "EVALSHA", 1},
		{"RENAME a b", "EVALSHA", 2},
		{"INCR n; LMOVE a b LEFT RIGHT", "EVALSHA", 1},
		{"LMOVE a b LEFT RIGHT", "LINDEX", 1},
		{"LMOVE a b LEFT RIGHT", "EVALSHA", 1},
		{"LMOVE a b LEFT RIGHT", "EVALSHA", 2},
		{"SINTERSTORE d s1 s2", "DUMP", 1},
		{"SINTERSTORE d s1 s2", "EVALSHA", 1},
		{"SUNIONSTORE {x}d s1" + many, "EVALSHA", 1},
		{"SUNIONSTORE {x}d s1" + many, "GET", 1},
		{"INCR n; FUNCTION DELETE none", "EVALSHA", 1},
		{"FUNCTION DELETE none", "FUNCTION DELETE NONE", 1},
		{"INCR n; RPUSH l" + strings.Repeat(" e", maxScriptArgs), "EVALSHA", 1},
		{"RPUSH l" + strings.Repeat(" e", maxScriptArgs), "WATCH", 1},
		{"RPUSH l" + strings.Repeat(" e", maxScriptArgs), "SET", 1},
	} {
		must(t, there, "FLUSHALL")
		must(t, there, "RPUSH", "a", "x", "y")
		must(t, there, "SADD", "s1", "x", "y")
		must(t, there, "SADD", "s2", "x")
		_, a := applierTo(t, clientOf(t, g.addr), zsetd86(), slotTags())
		count := 0
		g.set(func(args []string) []string {
			if callOf(args) == test.call {
				if count++; count == test.n {
					return failing(refusal)
				}
			}
			return args
		})
		if err := a.apply(t.Context(), batchOf(strings.Split(test.lines, ";")...), 100); err == nil || !strings.Contains(err.Error(), "refused") && !strings.Contains(err.Error(), "EXECABORT") {
			t.Errorf("%.60s: after %s number %d is refused: %v", test.lines, test.call, test.n, err)
		}
		g.set(nil)
	}
}

// TestStreamRefuses checks commands of a stream that end a move, and what the error says.
func TestStreamRefuses(t *testing.T) {
	there := clientOf(t, servertest.Run(t).Addr())
	for _, test := range []struct {
		tags []string
		dbs  databases
		line string
		want string
	}{
		{slotTags(), databases{anyDatabase, anyDatabase}, "LMPOP 2 a b LEFT", `the command LMPOP writes keys of several slots, which a cluster cannot do: "b"`},
		{nil, databases{anyDatabase, anyDatabase}, "NOSUCH a b", `the stream has the command "NOSUCH", which is unknown or has no key`},
		{nil, databases{anyDatabase, anyDatabase}, "SET", `the stream has the command "SET", which is unknown or has no key`},
		{slotTags(), databases{anyDatabase, anyDatabase}, "SELECT 3; SET k v", "the source has keys in database 3: a cluster has only database 0; move one database with redis://host/3"},
		{slotTags(), databases{anyDatabase, anyDatabase}, "SELECT x", "invalid syntax"},
		{nil, databases{0, 0}, "SWAPDB 0 1", "the source has swapped databases (SWAPDB), which cannot be moved if a database is chosen"},
		{slotTags(), databases{0, 0}, "MOVE k 1", "the source has moved a key to another database (MOVE), which this target does not have"},
		{slotTags(), databases{0, 0}, "FLUSHDB", errRestart.Error() + ": FLUSHDB at the source"},
	} {
		_, a := applierTo(t, there, zsetd86(), test.tags)
		a.dbs = test.dbs
		if err := a.apply(t.Context(), batchOf(strings.Split(test.line, ";")...), 100); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", test.line, err, test.want)
		}
	}
	_, a := applierTo(t, there, zsetd86(), nil)
	a.alone = false
	for _, line := range []string{"SWAPDB 0 1", "FLUSHALL"} {
		if err := a.apply(t.Context(), batchOf(line), 100); err == nil {
			t.Errorf("%s at one source of several is applied", line)
		}
	}
	if n := must(t, there, "DBSIZE"); n != int64(0) {
		t.Errorf("the target has %v keys", n)
	}
}

// TestStreamDoubts checks what commands with keys of several slots do if the target lacks what they
// move: the second key becomes as it would be, and both are doubtful.
func TestStreamDoubts(t *testing.T) {
	there := clientOf(t, servertest.Run(t).Addr())
	for _, test := range []struct{ line, want string }{
		{"RENAME none b", "none"}, {"COPY none b", "none"}, {"LMOVE none b LEFT RIGHT", "[x]"}, {"RPOPLPUSH none b", "[x]"},
	} {
		must(t, there, "FLUSHALL")
		must(t, there, "RPUSH", "b", "x")
		m, a := applierTo(t, there, zsetd86(), slotTags())
		if err := a.apply(t.Context(), batchOf(test.line), 100); err != nil {
			t.Errorf("%s: %v", test.line, err)
		}
		if got := text(t, there, "b"); got != test.want {
			t.Errorf("after %s the second key is %s, want %s", test.line, got, test.want)
		}
		for _, k := range []string{"none", "b"} {
			if !m.doubts.has(keyAt{0, k}) && !(test.want == "none" && k == "none") {
				t.Errorf("after %s %s is not doubtful", test.line, k)
			}
		}
	}
	for _, line := range []string{"SINTER a b", "SET " + StatePrefix + "x 1", "PING", "PING hello", "PUBLISH c m", "SELECT 0", "SELECT"} {
		must(t, there, "FLUSHALL")
		_, a := applierTo(t, there, zsetd86(), slotTags())
		if err := a.apply(t.Context(), batchOf(line), 100); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		if n := must(t, there, "DBSIZE"); n != int64(0) {
			t.Errorf("after %s the target has %v keys", line, n)
		}
	}
}

// TestDividedTimes checks that MSETEX, whose keys are in several slots, sets each of them with its
// deadline, whatever conditions it has: it is in the stream only where they were true.
func TestDividedTimes(t *testing.T) {
	there := clientOf(t, servertest.Run(t).Addr())
	for line, want := range map[string]string{
		"MSETEX 2 a 1 b 2 PXAT 17592186044416":    "[1 2 old] 17592186044416 17592186044416",
		"MSETEX 2 a 1 b 2":                        "[1 2 old] -1 -1",
		"MSETEX 2 a 1 b 2 XX KEEPTTL":             "[1 2 old] 17592186044417 -1",
		"msetex 2 a 1 b 2 nx pxat 17592186044416": "[1 2 old] 17592186044416 17592186044416",
	} {
		must(t, there, "FLUSHALL")
		must(t, there, "SET", "a", "old", "PXAT", 1<<44+1)
		must(t, there, "SET", "c", "old")
		_, a := applierTo(t, there, zsetd86(), slotTags())
		if err := a.apply(t.Context(), batchOf(line), 100); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		if got := fmt.Sprint(must(t, there, "MGET", "a", "b", "c"), must(t, there, "PEXPIRETIME", "a"), must(t, there, "PEXPIRETIME", "b")); got != want {
			t.Errorf("after %s: %s, want %s", line, got, want)
		}
	}
}

// TestSwappedDatabases checks that SWAPDB swaps the data and not the progress, and makes each key
// doubtful.
func TestSwappedDatabases(t *testing.T) {
	addr := servertest.Run(t).Addr()
	there, three := clientOf(t, addr), redis.NewClient(&redis.Options{Addr: addr, DB: 3})
	defer three.Close()
	m, a := applierTo(t, there, zsetd86(), nil)
	if err := m.save(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.changes.watch()
	if err := a.apply(t.Context(), batchOf("SET k zero", "SELECT 3", "SET k three", "SWAPDB 0 3", "SET after v"), 100); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(must(t, there, "MGET", "k", "after"), must(t, three, "MGET", "k", "after"), must(t, there, "HGET", progressKey, fieldFrom), must(t, there, "GET", m.t.unitKey(0)))
	if got != "[three <nil>] [zero v]redis://a:6379141" {
		t.Errorf("the databases have %s", got)
	}
	if n := must(t, three, "DBSIZE"); n != int64(2) {
		t.Errorf("the other database has %v keys", must(t, three, "KEYS", "*"))
	}
	if _, whole := m.changes.take(); !whole || !m.doubts.has(keyAt{9, "any"}) {
		t.Error("whole databases have not changed, or their keys are not doubtful")
	}
}

// TestStreamFunctions checks the changes of libraries, of which the target may have some already.
func TestStreamFunctions(t *testing.T) {
	there := clientOf(t, servertest.Run(t).Addr())
	must(t, there, "FUNCTION", "LOAD", "#!lua name=one\nredis.register_function('one', function() return 1 end)")
	payload := must(t, there, "FUNCTION", "DUMP").(string)
	_, a := applierTo(t, there, zsetd86(), nil)
	for _, args := range [][]string{
		{"FUNCTION"}, {"FUNCTION", "RESTORE", payload}, {"FUNCTION", "RESTORE", payload, "FLUSH"}, {"FUNCTION", "DELETE", "two"}, {"FUNCTION", "DELETE", "one"}, {"function", "delete", "one"},
	} {
		words := make([][]byte, len(args))
		for i, w := range args {
			words[i] = []byte(w)
		}
		if err := a.command(t.Context(), 110, words); err != nil {
			t.Errorf("%.40q: %v", args, err)
		}
	}
	if got := fmt.Sprint(must(t, there, "FUNCTION", "LIST")); got != "[]" {
		t.Errorf("the libraries are %s", got)
	}
	if err := a.apply(t.Context(), batchOf("FUNCTION RESTORE x"), 100); err == nil {
		t.Error("a payload that is none is accepted")
	}
}

// TestRestoreAsking checks the command with which Redis receives a key of a slot that moves.
func TestRestoreAsking(t *testing.T) {
	there := clientOf(t, servertest.Run(t).Addr())
	must(t, there, "SET", "v", 1)
	_, a := applierTo(t, there, zsetd86(), nil)
	args := [][]byte{[]byte("RESTORE-ASKING"), []byte("k"), []byte("0"), []byte(must(t, there, "DUMP", "v").(string))}
	if err := a.command(t.Context(), 110, args); err != nil {
		t.Fatal(err)
	}
	if u := a.units[0]; u == nil || string(u.commands[3].([]byte)) != "RESTORE" {
		t.Errorf("the command is %v", u)
	}
	if err := a.flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := must(t, there, "GET", "k"); got != "1" {
		t.Errorf("the key is %v", got)
	}
}

// TestRenameKeepsDeadline checks that a key which RENAME moves to another slot keeps its deadline,
// also at a target without PEXPIRETIME.
func TestRenameKeepsDeadline(t *testing.T) {
	there := clientOf(t, servertest.Run(t).Addr())
	for _, p := range []product{{"redis", 6, 2}, {"redis", 7, 0}} {
		must(t, there, "FLUSHALL")
		must(t, there, "SET", "a", 1, "EX", 1000)
		must(t, there, "SET", "x", 1)
		_, a := applierTo(t, there, p, slotTags())
		if err := a.apply(t.Context(), batchOf("RENAME a b", "RENAME x y"), 100); err != nil {
			t.Fatal(err)
		}
		if ttl := must(t, there, "TTL", "b").(int64); ttl < 900 || ttl > 1000 {
			t.Errorf("%v: the key has %d seconds", p, ttl)
		}
		if got := fmt.Sprint(must(t, there, "TTL", "y"), must(t, there, "EXISTS", "a", "x")); got != "-1 0" {
			t.Errorf("%v: %s", p, got)
		}
	}
}

// TestLargeCommand checks that a command with more arguments than a script may have is applied once,
// in its database, also if the offset changes meanwhile.
func TestLargeCommand(t *testing.T) {
	srv := servertest.Run(t)
	there, three := clientOf(t, srv.Addr()), redis.NewClient(&redis.Options{Addr: srv.Addr(), DB: 3})
	defer three.Close()
	g := gateTo(t, srv.Addr())
	_, a := applierTo(t, clientOf(t, g.addr), zsetd86(), nil)
	changed := false
	g.set(func(args []string) []string {
		if args[0] == "multi" && !changed {
			changed = true
			must(t, there, "SET", "offset", 5)
		}
		return args
	})
	for _, offset := range []int64{10, 9, 10, 11} {
		if err := a.t.applyLarge(t.Context(), "offset", offset, 3, []any{"RPUSH", "l", offset}); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.t.applyLarge(t.Context(), "offset", 12, 0, []any{"RPUSH", "l", "zero"}); err != nil {
		t.Fatal(err)
	}
	if got := text(t, three, "l") + text(t, there, "l") + text(t, there, "offset") + text(t, three, "offset"); got != "[10 11][zero]12none" || !changed {
		t.Errorf("the lists and the offset are %s", got)
	}
}

// TestOnlyZsetd checks which of the commands that zsetd embeds in PING reach which target.
func TestOnlyZsetd(t *testing.T) {
	g := gateTo(t, servertest.Run(t).Addr())
	there := clientOf(t, g.addr)
	const xcfg, hash, member, persist = "XCFGSET s IDMP-DURATION 100 IDMP-MAXSIZE 100", "HPEXPIREAT h 17592186044416 FIELDS 1 f", "ZPEXPIREAT z 17592186044416 MEMBERS 1 a", "ZPERSIST z MEMBERS 1 a"
	for _, test := range []struct {
		p    product
		line string
		want string // the first word of what is applied
	}{
		{product{"redis", 8, 5}, xcfg, ""}, {product{"redis", 8, 6}, xcfg, "XCFGSET"}, {product{"redis", 8, 7}, xcfg, "XCFGSET"}, {product{"redis", 9, 0}, xcfg, "XCFGSET"},
		{product{"redis", 7, 9}, xcfg, ""}, {product{"valkey", 9, 0}, xcfg, ""}, {zsetd86(), xcfg, "XCFGSET"},
		{product{"redis", 7, 2}, hash, ""}, {product{"redis", 7, 4}, hash, "HPEXPIREAT"}, {product{"valkey", 9, 0}, hash, "HPEXPIREAT"}, {zsetd86(), hash, "HPEXPIREAT"},
		{product{"redis", 8, 6}, member, "ZADD"}, {zsetd86(), member, "ZPEXPIREAT"}, {product{"redis", 8, 6}, persist, ""}, {zsetd86(), persist, "ZPERSIST"},
	} {
		_, a := applierTo(t, there, test.p, nil)
		args := batchOf(test.line).Commands[0]
		a.dbs = databases{1, 0}
		if err := a.onlyZsetd(t.Context(), 110, args); err != nil || len(a.units) > 0 {
			t.Errorf("%s of a database that does not move: %v, %v", test.line, a.units, err)
		}
		a.dbs = databases{anyDatabase, anyDatabase}
		if err := a.onlyZsetd(t.Context(), 110, args); err != nil {
			t.Fatal(err)
		}
		got := ""
		if u := a.units[0]; u != nil {
			got = fmt.Sprintf("%s", u.commands[3])
		}
		if got != test.want {
			t.Errorf("%s to %v: %q, want %q", test.line, test.p, got, test.want)
		}
	}
	_, a := applierTo(t, there, product{"redis", 8, 6}, nil)
	_, b := applierTo(t, there, zsetd86(), nil)
	b.fromZsetd = false
	g.set(func(args []string) []string {
		if strings.EqualFold(args[0], "HSET") {
			return failing(refusal)
		}
		return args
	})
	if err := a.onlyZsetd(t.Context(), 110, batchOf(member).Commands[0]); err == nil || a.t.companions.Load() || len(a.units) > 0 {
		t.Errorf("the target has companions and does not know it: %v", err)
	}
	if err := b.command(t.Context(), 110, batchOf("ZADD zsetd:deadlines:{z} 5 a").Commands[0]); err == nil || b.t.companions.Load() {
		t.Errorf("the target has companions and does not know it: %v", err)
	}
}

// TestCompanionsInStream checks what commands on companions, which a source that is no zsetd sends,
// do to the deadlines of members at a zsetd, and that another target has the companions only.
func TestCompanionsInStream(t *testing.T) {
	there := clientOf(t, servertest.Run(t).Addr())
	for _, test := range []struct {
		p    product
		line string
		want string
	}{
		{zsetd86(), "ZADD zsetd:deadlines:{z} 17592186044416 a 17592186044417 b", "[17592186044416 17592186044417]"},
		{zsetd86(), "ZADD zsetd:deadlines:{z} 1.5 a 17592186044417 b", "[35184372088832 35184372088832]"},
		{zsetd86(), "ZADD zsetd:deadlines:{z} 0 a", "[35184372088832 35184372088832]"},
		{zsetd86(), "ZADD zsetd:deadlines:{z} 70368744177664 a", "[35184372088832 35184372088832]"},
		{zsetd86(), "ZADD zsetd:deadlines:{z} NX 5 a", "[35184372088832 35184372088832]"},
		{zsetd86(), "ZADD zsetd:deadlines:odd 17592186044416 a", "[35184372088832 35184372088832]"},
		{zsetd86(), "ZREM zsetd:deadlines:{z} a", "[-1 35184372088832]"},
		{zsetd86(), "ZREM zsetd:deadlines:{z} a b", "[-1 -1]"},
		{product{"redis", 8, 6}, "ZADD zsetd:deadlines:{z} 17592186044416 a", "[35184372088832 35184372088832]"},
	} {
		must(t, there, "FLUSHALL")
		must(t, there, "ZADDEX", "z", "PXAT", 1<<45, "MEMBERS", 2, 1, "a", 2, "b")
		must(t, there, "ZADD", "zsetd:deadlines:{z}", 1, "a", 1, "b")
		_, a := applierTo(t, there, test.p, nil)
		a.fromZsetd = false
		if err := a.apply(t.Context(), batchOf(test.line), 100); err != nil {
			t.Errorf("%s: %v", test.line, err)
		}
		if got := fmt.Sprint(must(t, there, "ZPEXPIRETIME", "z", "MEMBERS", 2, "a", "b")); got != test.want {
			t.Errorf("after %s at %v: %s, want %s", test.line, test.p, got, test.want)
		}
	}
}

// TestPartsOfLargeCommand checks that all parts of a command are applied, and once each, if one of
// them has more arguments than a script may have.
func TestPartsOfLargeCommand(t *testing.T) {
	there := clientOf(t, servertest.Run(t).Addr())
	n := maxScriptArgs/2 + 1
	pairs, names := "", ""
	for i := range n {
		pairs += fmt.Sprint(" ", i, " m", i)
		names += fmt.Sprint(" m", i)
	}
	var keys strings.Builder
	for i := range 2 * n {
		fmt.Fprint(&keys, " {x}k", i)
	}
	deadlines := fmt.Sprintf("ZPEXPIREAT z %d MEMBERS %d%s", 1<<44, n, names)
	embedded := func(lines ...string) []byte {
		var b strings.Builder
		b.WriteString(embeddedPrefix)
		for _, line := range lines {
			writeCommand(&b, strings.Fields(line)...)
		}
		return []byte(b.String())
	}
	repeated := func(a *applier, args [][]byte) {
		t.Helper()
		a.t.companions.Store(true)
		for range 2 {
			size := 0
			for _, w := range args {
				size += len(w) + 5
			}
			if err := a.apply(t.Context(), &psync.Batch{Commands: [][][]byte{args}, Sizes: []int{size}}, 100); err != nil {
				t.Fatalf("%.40q: %v", args, err)
			}
		}
	}
	redis86 := product{"redis", 8, 6}

	// A member that is added again has no deadline.
	must(t, there, "ZADD", "zsetd:deadlines:{z}", 1<<44, "m0", 1<<44, fmt.Sprint("m", n-1), 1<<44, "other")
	_, a := applierTo(t, there, redis86, nil)
	repeated(a, batchOf("ZADD z" + pairs).Commands[0])
	if got := text(t, there, "zsetd:deadlines:{z}") + fmt.Sprint(must(t, there, "ZCARD", "z")); got != fmt.Sprint("[[other 1.7592186044416e+13]]", n) {
		t.Errorf("after a large ZADD: %s", got)
	}

	// Copies of the keys of other slots are there before, and gone after.
	must(t, there, "FLUSHALL")
	must(t, there, "SADD", "s1", "a")
	must(t, there, "SADD", "{x}k1", "b")
	_, a = applierTo(t, there, zsetd86(), slotTags())
	repeated(a, batchOf("SUNIONSTORE {x}d s1" + keys.String()).Commands[0])
	if got := text(t, there, "{x}d") + fmt.Sprint(must(t, there, "EXISTS", StatePrefix+"0:{"+a.t.tags[a.t.unitOf(0, []byte("{x}"))]+"}")); got != "[a b]0" {
		t.Errorf("after a large SUNIONSTORE: %s", got)
	}

	// Several commands of a zsetd are one of the stream.
	must(t, there, "FLUSHALL")
	_, a = applierTo(t, there, redis86, nil)
	repeated(a, [][]byte{[]byte("PING"), embedded(deadlines, "ZPERSIST z MEMBERS 1 m0", "ZPEXPIREAT y 5 MEMBERS 1 a", strings.Replace(deadlines, "z", "x", 1))})
	if got := fmt.Sprint(must(t, there, "ZCARD", "zsetd:deadlines:{z}"), text(t, there, "zsetd:deadlines:{y}"), must(t, there, "ZCARD", "zsetd:deadlines:{x}")); got != fmt.Sprint(n-1, "[[a 5]]", n) {
		t.Errorf("after large commands in PING: %s", got)
	}
}
