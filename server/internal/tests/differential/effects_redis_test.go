package differential

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/peers/replication"
	"github.com/zsetd/zsetd/server/internal/tests/transcript"

	"github.com/zsetd/zsetd/server/servertest/judge"
)

var (
	effectsN    = flag.Int("effects.n", 5000, "`number` of random commands whose effects are sent to a real redis-server")
	effectsSeed = flag.Uint64("effects.seed", 1, "`seed` of the random commands; 0: another each time")
)

// TestEffects runs random commands, sends their effects to a real redis-server, and
// compares all keys of both at intervals.
//
//	go test ./server/internal/tests/differential -run TestEffects -effects.n 200000 -effects.seed 0
func TestEffects(t *testing.T) {
	real := judge.Start(t, "--databases", "4")
	srv, err := newSubject(map[string]string{"databases": "4", "busy-reply-threshold": "20", "proto-max-bulk-len": "1mb"})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	srv.LimitScripts(64 << 20)
	srv.Follow()
	seed := *effectsSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("repeat with -effects.seed %d", seed)
	nc := real()
	f := &followed{
		t: t, srv: srv, d: srv.Direct(), reader: srv.Direct(), r: rand.New(rand.NewPCG(seed, 1)),
		nc: nc, replies: bufio.NewReaderSize(nc, 64<<10),
	}
	d := &differ{t: t, real: &rival{Peer: judge.NewPeer(real(), real())}}
	f.g = newGenerator(rand.New(rand.NewPCG(seed, 0)), slices.DeleteFunc(allCommands(), func(c *protocol.Command) bool { return !hasEffects(c) }))
	f.g.payloads, f.g.libraries = d.payloads()
	d.real.Do("FLUSHALL")
	const interval = 200 // commands between two comparisons
	for n := 0; n < *effectsN; {
		for next := n + interval; n < next; {
			k := 1 + f.r.IntN(64)>>f.r.IntN(7)
			for range k {
				f.run()
			}
			n += k
			f.send(false)
		}
		f.compare()
		if err := srv.Check(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d keys compared, %d bytes of commands", f.compared, f.sent)
	if f.compared == 0 {
		t.Error("no key was compared")
	}
}

// hasEffects reports whether the test of effects draws a command.
func hasEffects(c *protocol.Command) bool {
	switch name, _, _ := strings.Cut(c.Name, "|"); name {
	case "eval", "fcall", "function":
		return c.Name != "function|kill"
	case "publish", "spublish", "ping", "echo", "wait", "waitaof":
		return false
	}
	return aboutData(c)
}

// followed is a server whose effects are sent to a redis-server.
type followed struct {
	t      *testing.T
	srv    *subject
	d      *Direct // runs the commands
	reader *Direct // reads all keys
	r      *rand.Rand
	g      *generator
	tr     replication.Translator

	nc      net.Conn
	replies *bufio.Reader

	history  []string // the last commands
	compared int
	sent     int
}

// run runs a random command, or several in a transaction or script.
func (f *followed) run() {
	switch n := f.r.IntN(300); {
	case n < 6:
		f.do("SELECT", strconv.Itoa(n%4))
	case n == 6:
		f.do("SWAPDB", strconv.Itoa(f.r.IntN(4)), strconv.Itoa(f.r.IntN(4)))
	case n == 7:
		hours := 1 + f.r.IntN(200)
		f.note("advance by " + strconv.Itoa(hours) + " hours")
		f.srv.Advance(time.Duration(hours) * time.Hour)
		f.g.now = f.srv.Clock()
	case n < 14:
		f.do("MULTI")
		for range f.r.IntN(8) {
			f.command()
		}
		f.do("EXEC")
	case n < 20:
		_, argv := f.g.next()
		f.do(inScript(f.g, argv)...)
	case n < 26: // lists of one element, which few random commands make
		key := "l" + strconv.Itoa(f.r.IntN(4))
		f.do("LTRIM", key, "0", "0")
		f.do("LMOVE", key, key, f.g.pick("LEFT", "RIGHT"), f.g.pick("LEFT", "RIGHT"))
	case n < 30:
		f.do("PEXPIRE", f.g.pick("z", "h", "l", "s", "v", "x")+strconv.Itoa(f.r.IntN(4)), strconv.Itoa(1e7+f.r.IntN(1e9)))
	case n < 32:
		f.do("SET", "v"+strconv.Itoa(f.r.IntN(4)), strings.Repeat("0123456789", f.r.IntN(50_000)))
	case n < 34: // a value that is pinned
		argv := []string{f.g.pick("RPUSH", "SADD"), f.g.pick("l", "s") + strconv.Itoa(f.r.IntN(4))}
		for i := range 300 + f.r.IntN(300) {
			argv = append(argv, strconv.Itoa(i*i))
		}
		f.do(argv...)
	case n < 37:
		f.pendingDeleted("x"+strconv.Itoa(f.r.IntN(4)), "x"+strconv.Itoa(f.r.IntN(4)))
	default:
		f.command()
	}
}

// pendingDeleted deletes entries of a stream that are pending, and copies the stream.
func (f *followed) pendingDeleted(key, copied string) {
	f.do("XGROUP", "CREATE", key, "g", "0", "MKSTREAM")
	var ids []string
	for range 1 + f.r.IntN(6) {
		f.g.id++
		ids = append(ids, strconv.Itoa(f.g.id)+"-1")
		f.do("XADD", key, ids[len(ids)-1], "f", "v")
	}
	f.do("XREADGROUP", "GROUP", "g", "c", "STREAMS", key, ">")
	for range f.r.IntN(4) {
		f.do("XDEL", key, ids[f.r.IntN(len(ids))])
	}
	if n := f.r.IntN(9); n < 3 { // with a highest deleted ID, which XSETID can restore
		f.do("XDEL", key, ids[0])
		f.do("XTRIM", key, "MAXLEN", strconv.Itoa(n), f.g.pick("DELREF", "ACKED"))
	}
	if f.r.IntN(2) == 0 {
		f.do("XTRIM", key, "MAXLEN", strconv.Itoa(f.r.IntN(4)))
	}
	f.do("COPY", key, copied, "REPLACE")
}

func (f *followed) command() {
	c, argv := f.g.next()
	for _, line := range consumersOf(c.Name, argv) {
		f.do(line...)
	}
	f.do(argv...)
}

func (f *followed) note(line string) {
	if len(f.history) >= 2000 {
		f.history = append(f.history[:0], f.history[1000:]...)
	}
	f.history = append(f.history, line)
}

func (f *followed) do(argv ...string) []byte {
	words := make([][]byte, len(argv))
	line := ">"
	for i, w := range argv {
		words[i] = []byte(w)
		if len(w) > 300 {
			w = w[:300] + "…"
		}
		line += " " + transcript.Quote(w)
	}
	f.note(line)
	return f.d.Do(words)
}

// send sends the effects so far.
func (f *followed) send(sweep bool) {
	effects := f.srv.TakeEffects(sweep)
	if effects == nil {
		return
	}
	const marker = "end of the effects"
	var all []byte
	for _, e := range effects {
		if e.Replaced() {
			f.t.Fatal("effects are lost")
		}
		f.tr.Commands(e, func(chunk []byte) bool {
			all = append(all, chunk...)
			return true
		})
	}
	f.sent += len(all)
	f.ask(transcript.AppendCommand(all, []string{"ECHO", marker}), func(v any) bool {
		if err := errorIn(v); err != "" {
			f.fail(fmt.Sprintf("redis-server replies %q to the commands\n%s", err, clipped(string(all))), "")
		}
		return v != marker
	})
}

// ask sends commands to the redis-server, and calls f with the replies until it
// returns false.
func (f *followed) ask(b []byte, each func(v any) bool) {
	sent := make(chan error, 1)
	go func() {
		_, err := f.nc.Write(b)
		sent <- err
	}()
	f.nc.SetReadDeadline(time.Now().Add(time.Minute))
	for {
		v, err := protocol.DecodeFrom(f.replies)
		if err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			f.t.Fatalf("redis-server: %v", err)
		}
		if !each(v) {
			break
		}
	}
	if err := <-sent; err != nil {
		f.t.Fatal(err)
	}
}

// errorIn returns the first error in a reply, "" if there is none.
func errorIn(v any) string {
	switch v := v.(type) {
	case protocol.ReplyError:
		return v.Error()
	case []any:
		for _, x := range v {
			if err := errorIn(x); err != "" {
				return err
			}
		}
	}
	return ""
}

// fail ends the test with the last commands, of those that name the key if it is
// not "".
func (f *followed) fail(text, key string) {
	lines := f.history
	if key != "" {
		lines = nil
		for _, l := range f.history {
			if strings.Contains(l, transcript.Quote(key)) || strings.Contains(l, "SWAPDB") || strings.Contains(strings.ToLower(l), "> select") {
				lines = append(lines, l)
			}
		}
	}
	f.t.Fatalf("%s\nafter\n\t%s", text, strings.Join(lines[max(0, len(lines)-100):], "\n\t"))
}

// both runs a command line on both servers and returns the decoded replies.
func (f *followed) both(argv ...string) (ours, theirs any) {
	words := make([][]byte, len(argv))
	for i, w := range argv {
		words[i] = []byte(w)
	}
	ours, _, err := protocol.Decode(f.reader.Do(words))
	if err != nil {
		f.t.Fatalf("%q: %v", argv, err)
	}
	f.ask(transcript.AppendCommand(nil, argv), func(v any) bool {
		theirs = v
		return false
	})
	return ours, theirs
}

// compare compares all keys and libraries.
func (f *followed) compare() {
	f.send(true)
	f.tr.Reset()
	read := map[string][]string{
		"string": {"GET"}, "list": {"LRANGE", "0", "-1"}, "set": {"SMEMBERS"}, "hash": {"HGETALL"}, "zset": {"ZRANGE", "0", "-1", "WITHSCORES"},
		"stream": {"XRANGE", "-", "+"},
	}
	for db := range 4 {
		f.both("SELECT", strconv.Itoa(db))
		f.same(db, "", 1, "DBSIZE")
		for _, key := range sorted(f.same(db, "", 1, "KEYS", "*"), 1) {
			kind := fmt.Sprint(f.same(db, key, 0, "TYPE", key))
			f.same(db, key, 0, "PEXPIRETIME", key)
			words := read[kind]
			group := map[string]int{"set": 1, "hash": 2, "zset": -1}[kind]
			f.same(db, key, group, slices.Concat(words[:1], []string{key}, words[1:])...)
			if kind == "stream" {
				f.same(db, key, 0, "XINFO", "STREAM", key, "FULL", "COUNT", "0")
			}
			f.compared++
		}
	}
	ours, theirs := f.both("FUNCTION", "LIST", "WITHCODE")
	if got, want := libraries(ours), libraries(theirs); got != want {
		f.fail(fmt.Sprintf("FUNCTION LIST:\nredis:\n%s\nzsetd:\n%s", clipped(want), clipped(got)), "")
	}
	if e := f.srv.TakeEffects(false); e != nil {
		f.t.Error("reading has effects")
	}
}

// same compares the replies to a command, and returns that of zsetd. They are groups
// of elements in any order if group is positive, and members with scores if it is
// negative.
func (f *followed) same(db int, key string, group int, argv ...string) any {
	ours, theirs := f.both(argv...)
	got, want := canonical(ours, group), canonical(theirs, group)
	if !sameTransferred(want, got) {
		f.fail(fmt.Sprintf("database %d, %q:\nredis:\n%s\nzsetd:\n%s", db, argv, clipped(want), clipped(got)), key)
	}
	return ours
}

// canonical returns a reply as text, without what effects do not transfer.
func canonical(v any, group int) string {
	list, ok := v.([]any)
	if ok && group > 0 {
		return strings.Join(sorted(v, group), "\n")
	}
	if ok && len(list) > 0 && list[0] == "length" { // of XINFO STREAM
		var kept []any
		for i := 0; i+1 < len(list); i += 2 {
			name, _ := list[i].(string)
			if ofProducers(name) { // Redis 7.0 does not know them
				continue
			}
			if strings.HasPrefix(name, "radix-tree") || name == "recorded-first-entry-id" && list[1] == int64(0) { // of an empty stream Redis has the highest ID after a load
				list[i+1] = nil
			}
			groups, _ := list[i+1].([]any)
			for _, g := range groups {
				dropLag(g)
			}
			kept = append(kept, list[i], list[i+1])
		}
		return fmt.Sprint(withoutTimes(kept))
	}
	if ok && group < 0 { // scores; the sign of zero depends on the encoding in Redis
		for i := 1; i < len(list); i += 2 {
			if list[i] == "-0" {
				list[i] = "0"
			}
		}
	}
	return fmt.Sprint(v)
}

// ofProducers reports whether a field of XINFO STREAM concerns the identifiers of producers.
func ofProducers(field string) bool {
	return strings.HasPrefix(field, "idmp-") || strings.HasPrefix(field, "iids-") || field == "pids-tracked"
}

// dropLag removes the lag of a group of XINFO STREAM. It follows from the rest; since Redis
// 8 that of a group whose position was trimmed away is another one.
func dropLag(group any) {
	list, _ := group.([]any)
	for i := 0; i+1 < len(list); i += 2 {
		if list[i] == "lag" {
			list[i+1] = nil
		}
	}
}

// libraries returns a reply to FUNCTION LIST as text. The libraries, and the functions of
// each, are in the order of a hash table.
func libraries(v any) string {
	list, _ := v.([]any)
	var all []string
	for _, library := range list {
		leaves := transcript.Leaves(nil, library)
		sort.Strings(leaves)
		all = append(all, strings.Join(leaves, " "))
	}
	sort.Strings(all)
	return strings.Join(all, "\n")
}

// sorted returns groups of elements as text, sorted.
func sorted(v any, group int) (list []string) {
	elements, _ := v.([]any)
	for at := 0; at < len(elements); at += group {
		text := make([]string, group)
		for i := range text {
			text[i] = fmt.Sprint(elements[at+i])
		}
		list = append(list, strings.Join(text, " → "))
	}
	sort.Strings(list)
	return list
}
