package differential

// The differential test draws command lines from the command table, sends them
// to zsetd and to a real redis-server, and compares: every reply byte for byte
// (in RESP2 and RESP3), every keyspace event in order, and after each batch
// the whole state. Results that depend on the order of hash tables, chance or time are
// compared in part; see comparison. Intended differences are listed in
// package judge (differences.go).
//
// A mismatch is reported with the shortest history that still shows it.
//
//	go test ./server/internal/tests/differential -run TestDifferential -differential.n 200000 -differential.seed 0
//
// A seed other than 0 repeats a run.

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/internal/tests/transcript"

	"github.com/zsetd/zsetd/server/servertest/judge"
)

var (
	differentialN     = flag.Int("differential.n", 10_000, "`number` of random commands that are sent to zsetd and to a real redis-server")
	differentialSeed  = flag.Uint64("differential.seed", 1, "`seed` of the random commands; 0: another each time")
	differentialOnly  = flag.String("differential.only", "", "draw only commands whose `names`, separated by commas, begin so")
	differentialJudge = flag.String("differential.judge", "", "`server` to compare with: 8.6, which ZSETD_JUDGE_REDIS8 names, or valkey, which ZSETD_JUDGE_VALKEY9 names; without it, 8.6")
	differentialLog   = flag.String("differential.log", "", "`file` for the commands of the last episode, to find one that ends the process")
)

const (
	episode    = 600 // commands from an empty server on
	batchSize  = 60  // commands between two looks at the state
	maxReports = 40
)

func TestDifferential(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // otherwise half of the time goes to garbage collection
	d := newDiffer(t)
	seed := drawnSeed()
	srv, err := server.New(server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	var commands []*protocol.Command
	for _, c := range allCommands() {
		only := strings.Split(*differentialOnly, ",")
		if slices.ContainsFunc(only, func(name string) bool { return strings.HasPrefix(c.Name, name) }) && opponentKnows(c.Since) && d.knows(c.Name) && !differsInValkey(c.Name) {
			commands = append(commands, c)
		}
	}
	g := newGenerator(rand.New(rand.NewPCG(seed, 0)), commands)
	g.payloads, g.libraries = d.payloads()
	if len(g.commands) == 0 {
		t.Skip("there are no commands to compare")
	}
	t.Logf("%d commands, drawn from %d; repeat with -differential.seed %d", *differentialN, len(g.commands), seed)
	d.compare(*differentialN, g.scenario)
}

// TestDifferentialGroups compares what consumer groups have read, and their lag, in a random
// run of commands about few entries of two streams.
func TestDifferentialGroups(t *testing.T) {
	g := &generator{r: seeded(drawnSeed()), knows: opponentKnows}
	newDiffer(t).compare(*differentialN, g.ofGroups)
}

// knows reports whether the real redis-server knows a command.
func (d *differ) knows(name string) bool {
	r := d.real.Do("COMMAND", "INFO", name)
	return r != "*1\r\n*-1\r\n" && r != "*1\r\n$-1\r\n"
}

// scenario is a command with what is sent around it so that its replies can be
// compared.
type scenario struct {
	name  string
	argv  []string // the command itself
	steps []step
	alone bool // sent by a client of its own, which is closed at the end
}

type step struct {
	argv   []string
	how    comparison
	client int  // 0: the main client
	waits  bool // may block until another client acts
}

// plain reports whether the main client sends all of a scenario.
func (u *scenario) plain() bool {
	return !u.alone && !slices.ContainsFunc(u.steps, func(s step) bool { return s.client != 0 })
}

// comparison is how much of two replies must be the same.
type comparison uint8

const (
	exact       comparison = iota
	ordered                // RESP2 and RESP3 alike: byte for byte, or the elements if the order is a hash table's
	pairs                  // the same with pairs
	chance                 // random elements: the kind and the length
	seconds                // a time in seconds, give or take one and the time since the episode began
	millis                 // a time in milliseconds, give or take two seconds and that time
	scan                   // cursors differ; whole scans have the same elements
	scanPairs              // … pairs
	encoding               // see sameEncoding
	distances              // scores may differ in the last bit, which the sines of C leave to the machine
	leafy                  // lists whose parts may be in any order
	timeless               // all but times
	dump                   // a payload, which the end of an episode compares
	kind                   // an error or not, and the type
	clientLines            // CLIENT LIST, but for what differs from one client to the next
	greeting               // HELLO, but for the version and the ID of the client
	rules                  // ACL GETUSER and LIST, but for the rules about commands: see differences
	facts                  // COMMAND INFO, but for the notes about keys and for order
	ignored                // not at all
)

func comparisonOf(name string, argv []string) comparison {
	switch name {
	case "smembers", "sinter", "sunion", "sdiff", "keys", "hkeys", "hvals":
		return ordered
	case "hgetall":
		return pairs
	case "spop", "srandmember", "hrandfield", "zrandmember", "randomkey":
		return chance
	case "ttl", "expiretime", "httl", "hexpiretime":
		return seconds
	case "pttl", "pexpiretime", "hpttl", "hpexpiretime":
		return millis
	case "scan", "sscan", "hscan", "zscan":
		cursor := 2
		if name == "scan" {
			cursor = 1
		}
		switch {
		case cursor >= len(argv):
			return exact
		case argv[cursor] != "0":
			return chance // the first element is unspecified
		case slices.ContainsFunc(argv, func(a string) bool { return strings.EqualFold(a, "novalues") }):
		case name == "hscan", name == "zscan":
			return scanPairs
		}
		return scan
	case "object|encoding":
		return encoding
	case "sort", "sort_ro":
		// BY a pattern without a "*" does not sort, so sets come as they are;
		// and elements of equal weight come as an unstable sort leaves them.
		// The transcripts have what is exact.
		named := func(option string) bool {
			return slices.ContainsFunc(argv, func(a string) bool { return strings.EqualFold(a, option) })
		}
		switch {
		case named("by") && named("limit"):
			return chance
		case named("by"):
			return ordered
		}
	case "geosearch", "georadius", "georadius_ro", "georadiusbymember", "georadiusbymember_ro":
		// With COUNT, Redis sorts places at the same distance unstably. TestNearest has
		// what is exact.
		if slices.ContainsFunc(argv, func(a string) bool { return strings.EqualFold(a, "count") }) {
			return chance
		}
	case "xpending", "xinfo|stream", "xinfo|consumers":
		return timeless
	case "xreadgroup":
		if slices.ContainsFunc(argv, func(a string) bool { return strings.EqualFold(a, "claim") }) {
			return timeless
		}
	case "memory|usage":
		return chance
	case "dump":
		return dump
	case "info", "lolwut", "acl|cat", "role", "memory|doctor", "memory|stats", "client|id", "acl|genpass", "time", "lastsave",
		"latency|latest", "latency|histogram", "latency|history", "latency|doctor", "latency|reset", "command|count", "command|docs",
		"command|list", "slowlog|get", "slowlog|len", "function|dump", "object|idletime", "object|freq", "acl|log", "command|help":
		return kind
	case "memory|malloc-stats", "module", "module|list": // which depend on how a server is built
		return ignored
	case "client|list", "client|info":
		return clientLines
	case "hello":
		return greeting
	case "acl|getuser", "acl|list":
		return rules
	case "pubsub|channels", "pubsub|shardchannels", "acl|users":
		return ordered
	case "function|list":
		return leafy
	case "config|get":
		return pairs
	case "command|info":
		if opponent() == "8.6" {
			return facts
		}
		return kind
	}
	if strings.HasSuffix(name, "|help") {
		return kind
	}
	return exact
}

// scenario draws a command and adds what it needs.
func (g *generator) scenario() scenario {
	c, argv := g.next()
	u := g.scenarioOf(c, argv)
	for i, line := range consumersOf(c.Name, argv) {
		u.steps = slices.Insert(u.steps, i, step{argv: line})
	}
	return u
}

func (g *generator) scenarioOf(c *protocol.Command, argv []string) scenario {
	switch {
	case !aboutData(c):
		return g.session(c, argv)
	case c.Flags().Has(protocol.Blocking) && g.one(3):
		return g.awaited(c, argv)
	case g.one(60):
		return g.watched()
	}
	return g.alone(c, argv)
}

// alone adds to a command about data what it needs.
func (g *generator) alone(c *protocol.Command, argv []string) scenario {
	u := scenario{name: c.Name, argv: argv}
	how := comparisonOf(c.Name, argv)
	if names := len(strings.Split(c.Name, "|")); byMember(argv) && len(argv) > names {
		// Where scores differ, the range is not specified, and depends on
		// chance in Redis: a set whose scores are all 0 is used instead.
		key := names
		if c.Name == "zrangestore" {
			key++
		}
		add := []string{"ZADD", "y" + strconv.Itoa(g.r.IntN(4))}
		for range g.r.IntN(12) {
			add = append(add, "0", g.member())
		}
		if key < len(argv) {
			argv[key] = add[1]
		}
		u.steps = append(u.steps, step{argv: add})
	}
	if c.Name == "xadd" && len(argv) > 1 && namesProducer(argv) {
		argv[1] = "i" + argv[1][max(0, len(argv[1])-1):]
		u.steps = append(u.steps, step{argv: []string{"XADD", argv[1], farID, "f", "v"}})
	}
	if (c.Name == "sort" || c.Name == "sort_ro") && len(argv) > 1 {
		// Redis does not clear C's errno before it reads numbers here, and so
		// takes an overflow of an earlier command for one of its own, or one
		// met on the way from a listpack to a skiplist, which SORT makes of
		// every sorted set. SCAN clears it, and in Redis 8.6 the score of ZADD.
		u.steps = append(u.steps, step{argv: []string{"SORT_RO", argv[1], "BY", "nosort", "LIMIT", "0", "0"}, how: ignored},
			step{argv: []string{"SCAN", "0"}, how: ignored}, step{argv: []string{"ZADD", "nosuchkey", "XX", "1", "m"}, how: ignored})
	}
	if c.Flags().Has(protocol.Blocking) || g.one(30) {
		// In a transaction nothing blocks.
		u.steps = append(u.steps, step{argv: []string{"MULTI"}, how: exact}, step{argv: argv, how: how}, step{argv: []string{"EXEC"}, how: how})
	} else {
		if g.one(25) {
			argv = inScript(g, argv)
		}
		u.steps = append(u.steps, step{argv: argv, how: how})
	}
	argv = u.argv
	// Random results must not make the states differ.
	drop := func(i int) {
		if i < len(argv) {
			u.steps = append(u.steps, step{argv: []string{"SET", argv[i], ""}, how: ignored}, step{argv: []string{"GETDEL", argv[i]}, how: ignored})
		}
	}
	for i, a := range argv[1:] {
		if c.Group == "geo" && strings.EqualFold(a, "count") { // see comparisonOf
			for j, b := range argv[1:] {
				if strings.EqualFold(b, "store") {
					drop(j + 2)
				}
			}
			if c.Name == "geosearchstore" {
				drop(1)
			}
		}
		// It is looked at, and nothing else is made of it.
		if c.Group == "geo" && strings.EqualFold(a, "storedist") {
			at := i + 2
			if c.Name == "geosearchstore" {
				at = 1
			}
			if at < len(argv) {
				u.steps = append(u.steps, step{argv: []string{"ZRANGE", argv[at], "0", "-1", "WITHSCORES"}, how: distances})
			}
			drop(at)
		}
	}
	switch c.Name {
	case "spop":
		drop(1)
	case "sort":
		if how != exact {
			for i, a := range argv {
				if strings.EqualFold(a, "store") {
					drop(i + 1)
				}
			}
		}
	}
	return u
}

// byMember reports whether a command line is about a range of members.
func byMember(argv []string) bool {
	switch name := strings.ToLower(argv[0]); name {
	case "zrange", "zrangestore":
		return slices.ContainsFunc(argv[1:], func(a string) bool { return strings.EqualFold(a, "bylex") })
	default:
		return strings.HasPrefix(name, "z") && strings.Contains(name, "lex")
	}
}

// history is scenarios as lines of a transcript.
func history(scenarios []scenario) string {
	var b strings.Builder
	for _, u := range scenarios {
		if u.alone {
			b.WriteString("\t(a new client:)\n")
		}
		for _, s := range u.steps {
			b.WriteString("\t")
			if s.client > 0 {
				b.WriteString(strconv.Itoa(s.client + 1))
			}
			b.WriteString(">")
			for _, w := range s.argv {
				b.WriteString(" " + transcript.Quote(w))
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

// rival is a server that plays scenarios.
type rival struct {
	*judge.Peer
	others []*client
	dial   func() (net.Conn, error)
}

const (
	endOfBatch    = "end of batch"
	eventPatterns = "__key*"
)

// begin makes a peer empty and ready for an episode.
func (p *rival) begin(version int) error {
	lines := append([][]string{{"RESET"}, {"HELLO", strconv.Itoa(version)}, {"FLUSHALL"}}, pristine()...)
	if _, err := p.Pipeline(lines); err != nil {
		return err
	}
	if err := p.meet(version); err != nil {
		return err
	}
	b := transcript.AppendCommand(nil, []string{"RESET"})
	b = transcript.AppendCommand(b, []string{"PSUBSCRIBE", eventPatterns, endOfBatch})
	if err := p.Events.Send(b); err != nil {
		return err
	}
	for {
		r, err := p.Events.Receive(judge.Patience)
		if err != nil || r == transcript.Closed {
			return fmt.Errorf("PSUBSCRIBE: %q, %v", r, err)
		}
		if strings.HasPrefix(r, "*3\r\n$10\r\npsubscribe") && strings.HasSuffix(r, ":2\r\n") {
			return nil
		}
		if r[0] == '-' {
			return fmt.Errorf("PSUBSCRIBE: %s", r)
		}
	}
}

// heard returns the events since the last call: "key event".
func (p *rival) heard() ([]string, error) {
	p.Do("PUBLISH", endOfBatch, "")
	var events []string
	for {
		r, err := p.Events.Receive(judge.Patience)
		if err != nil || r == transcript.Closed {
			return nil, fmt.Errorf("events: %q, %v", r, err)
		}
		v, _, err := protocol.Decode([]byte(r))
		m, ok := v.([]any)
		if err != nil || !ok || len(m) != 4 {
			return nil, fmt.Errorf("events: %q, %v", r, err)
		}
		if m[2] == endOfBatch {
			return events, nil
		}
		// The events expired and hexpired are sent when a server detects the expiry, which depends on time.
		if channel, _ := m[2].(string); strings.HasPrefix(channel, "__keyspace") && m[3] != "expired" && m[3] != "hexpired" {
			events = append(events, fmt.Sprintf("%s %s", transcript.Quote(channel), m[3]))
		}
	}
}

// differ compares zsetd with a real redis-server.
type differ struct {
	t    *testing.T
	real *rival
}

// newDiffer starts the real redis-server.
func newDiffer(t *testing.T) *differ {
	if opponent() == judge.Version {
		t.Skipf("Redis %s differs in the digits of doubles, and so in payloads and events: .ci/judges builds a newer one", judge.Version)
	}
	real := startCompared(t)
	d := &differ{t: t, real: &rival{Peer: judge.NewPeer(real(), real())}}
	d.real.dial = func() (net.Conn, error) { return net.Dial("unix", d.real.Cmd.NC.RemoteAddr().String()) }
	if r := d.real.Do("CONFIG", "SET", "notify-keyspace-events", "KAnm"); r != "+OK\r\n" {
		t.Fatalf("redis-server: %q", r)
	}
	return d
}

// drawnSeed returns the seed that the flag names, or another each time.
func drawnSeed() uint64 {
	if *differentialSeed == 0 {
		return rand.Uint64()
	}
	return *differentialSeed
}

// compare plays n drawn scenarios, in RESP2 and RESP3 by turns, and reports the mismatches.
func (d *differ) compare(n int, draw func() scenario) {
	reported := map[string]int{}
	for sent, version := 0, 2; sent < n; version = 5 - version {
		var scenarios []scenario
		for len(scenarios) < min(episode, n-sent) {
			scenarios = append(scenarios, draw())
		}
		sent += len(scenarios)
		if *differentialLog != "" {
			if err := os.WriteFile(*differentialLog, []byte(history(scenarios)), 0o644); err != nil {
				d.t.Fatal(err)
			}
		}
		m := d.play(scenarios, version, batchSize)
		if m == nil {
			continue
		}
		if reported[m.name]++; reported[m.name] > 1 {
			continue
		}
		scenarios, m = d.shrink(scenarios, version, m)
		d.t.Errorf("RESP%d: %s\n%s\nafter FLUSHALL, the shortest way there:\n%s", version, m.name, m.text, history(scenarios))
		if len(reported) >= maxReports {
			d.t.Fatalf("too many mismatches; stopped after %d commands", sent)
		}
	}
	for name, n := range reported {
		if n > 1 {
			d.t.Logf("%s: %d episodes", name, n)
		}
	}
}

// mismatch is a difference that was not expected.
type mismatch struct {
	name     string // the command, or what else differs
	text     string
	scenario int      // index of the scenario after which it was seen
	keys     []string // keys concerned
}

// episodeBegan is when the current episode began, in milliseconds. On a busy machine one of the
// servers may run a command as much later than the other.
var episodeBegan atomic.Int64

// play runs scenarios on both servers, from empty on, until something differs.
func (d *differ) play(scenarios []scenario, version, batch int) *mismatch {
	episodeBegan.Store(time.Now().UnixMilli())
	srv, err := server.New(server.Options{Config: map[string]string{"notify-keyspace-events": "KAnm", "dialect": dialect()}})
	if err != nil {
		d.t.Fatal(err)
	}
	defer srv.Close()
	dial := func() net.Conn {
		nc, err := srv.Dialer()(d.t.Context(), "", "")
		if err != nil {
			d.t.Fatal(err)
		}
		return nc
	}
	ours := &rival{Peer: judge.NewPeer(dial(), dial())}
	ours.dial = func() (net.Conn, error) { return srv.Dialer()(d.t.Context(), "", "") }
	defer ours.leave()
	for _, p := range []*rival{ours, d.real} {
		if err := p.begin(version); err != nil {
			d.t.Fatal(err)
		}
	}
	for start := 0; start < len(scenarios); start += batch {
		end := min(start+batch, len(scenarios))
		if m := d.batch(ours, scenarios[start:end], version); m != nil {
			if m.name == "" { // the state after a known difference is not compared
				return nil
			}
			m.scenario += start
			return m
		}
		if m := d.crosswise(ours, end == len(scenarios)); m != nil {
			m.scenario = end - 1
			return m
		}
		if err := srv.Check(); err != nil {
			return &mismatch{name: "invariants", text: err.Error(), scenario: end - 1}
		}
	}
	return nil
}

func (d *differ) batch(ours *rival, scenarios []scenario, version int) *mismatch {
	for i := 0; i < len(scenarios); {
		var m *mismatch
		end := i
		for end < len(scenarios) && scenarios[end].plain() {
			end++
		}
		switch {
		case end > i:
			m = d.plain(ours, scenarios[i:end])
		case scenarios[i].alone:
			end++
			m = d.newcomer(ours, &scenarios[i], version)
		default:
			end++
			m = d.together(ours, &scenarios[i])
		}
		if m != nil {
			m.scenario += i
			return m
		}
		i = end
	}
	if m := d.events(ours, scenarios); m != nil {
		return m
	}
	return d.state(ours, len(scenarios)-1)
}

// plain plays scenarios in one go.
func (d *differ) plain(ours *rival, scenarios []scenario) *mismatch {
	var lines [][]string
	for _, u := range scenarios {
		for _, s := range u.steps {
			lines = append(lines, s.argv)
		}
	}
	theirs := make(chan []string, 1)
	go func() {
		r, err := d.real.Pipeline(lines)
		if err != nil {
			d.t.Errorf("redis-server: %v", err)
		}
		theirs <- r
	}()
	got, err := ours.Pipeline(lines)
	want := <-theirs
	if len(want) < len(lines) {
		d.t.FailNow()
	}
	at := 0
	for i, u := range scenarios {
		for _, s := range u.steps {
			if at == len(got) {
				return &mismatch{name: u.name, text: "\t" + err.Error(), scenario: i, keys: s.argv[1:]}
			}
			if m := compared(&u, s, got[at], want[at]); m != nil {
				m.scenario = i
				return m
			}
			at++
		}
	}
	return nil
}

// compared compares the replies to a step.
func compared(u *scenario, s step, got, want string) *mismatch {
	if same(s.how, got, want) || meant(u.argv, want, got) || tied(s.how, u.argv, want, got) {
		return nil
	}
	return &mismatch{name: u.name, keys: s.argv[1:], text: fmt.Sprintf("redis:\n%s\nzsetd:\n%s", clipped(want), clipped(got))}
}

// tied reports whether two replies to SORT differ in the order of elements that
// C cannot tell apart because they differ only behind a NUL. Redis leaves it
// to the order of a hash table.
func tied(how comparison, argv []string, redis, ours string) bool {
	return strings.HasPrefix(strings.ToLower(argv[0]), "sort") && strings.Contains(redis+ours, "\x00") &&
		same(max(how, chance), ours, redis)
}

// clipped is the text of a reply, shortened for a message.
func clipped(reply string) string {
	lines := transcript.Lines(reply)
	if len(lines) > 30 {
		lines = append(lines[:30:30], fmt.Sprintf("… and %d more lines", len(lines)-30))
	}
	for i, l := range lines {
		if len(l) > 300 {
			lines[i] = fmt.Sprintf("%s… (%d bytes)", l[:300], len(l))
		}
	}
	return "\t" + strings.Join(lines, "\n\t")
}

// same compares two replies.
func same(how comparison, got, want string) bool {
	got = judge.InWordsOf(opponent(), got)
	if got == want || how == ignored {
		return true
	}
	if how == exact || got[0] == '-' || want[0] == '-' {
		return false
	}
	if how == distances {
		return judge.SameNumbers(got, want, 1e-15)
	}
	g, _, err := protocol.Decode([]byte(got))
	if err != nil {
		return false
	}
	if how == kind {
		return got[0] == want[0]
	}
	w, _, err := protocol.Decode([]byte(want))
	if err != nil {
		return false
	}
	// The reply of EXEC contains the reply to the command.
	if gl, ok := g.([]any); ok && strings.HasPrefix(got, "*1\r\n") && strings.HasPrefix(want, "*1\r\n") {
		wl := w.([]any)
		_, list := gl[0].([]any)
		_, m := gl[0].(protocol.Map)
		_, set := gl[0].(protocol.Set)
		_, n := gl[0].(int64)
		if list || m || set || n || how == encoding || how == chance {
			return same(how, got[4:], want[4:])
		}
		_ = wl
	}
	if got[0] != want[0] {
		return false
	}
	switch how {
	case dump:
		return (g == nil) == (w == nil)
	case clientLines:
		return sameClients(fmt.Sprint(g), fmt.Sprint(w))
	case greeting, rules:
		return fmt.Sprint(withoutDetails(g)) == fmt.Sprint(withoutDetails(w))
	case ordered:
		return slices.Equal(transcript.Elements(g, 1), transcript.Elements(w, 1))
	case pairs:
		return slices.Equal(transcript.Elements(g, 2), transcript.Elements(w, 2))
	case chance:
		return len(transcript.Elements(g, 1)) == len(transcript.Elements(w, 1)) && (g == nil) == (w == nil)
	case seconds, millis:
		near := func(g, w any) bool {
			gn, _ := g.(int64)
			wn, ok := w.(int64)
			off, passed := max(gn-wn, wn-gn), time.Now().UnixMilli()-episodeBegan.Load()
			return ok && (gn == wn || gn >= 0 && wn >= 0 && (how == seconds && off <= 1+passed/1000 || how == millis && off <= 2000+passed))
		}
		gl, ok1 := g.([]any)
		wl, ok2 := w.([]any)
		return near(g, w) || ok1 && ok2 && slices.EqualFunc(gl, wl, near)
	case scan, scanPairs:
		gl, ok1 := g.([]any)
		wl, ok2 := w.([]any)
		if !ok1 || !ok2 || len(gl) != 2 || len(wl) != 2 {
			return false
		}
		if gl[0] != "0" || wl[0] != "0" {
			return true // one of many steps
		}
		group := 1
		if how == scanPairs {
			group = 2
		}
		return slices.Equal(transcript.Elements(gl[1], group), transcript.Elements(wl[1], group))
	case encoding:
		return sameEncoding(g, w)
	case facts:
		g, w = withoutNotes(g), withoutNotes(w)
		fallthrough
	case leafy:
		gl, wl := transcript.Leaves(nil, g), transcript.Leaves(nil, w)
		slices.Sort(gl)
		slices.Sort(wl)
		return slices.Equal(gl, wl)
	case timeless:
		return fmt.Sprint(withoutTimes(g)) == fmt.Sprint(withoutTimes(w))
	}
	return false
}

// withoutNotes returns a reply to COMMAND INFO without the notes about keys.
func withoutNotes(v any) any {
	var list []any
	switch v := v.(type) {
	case protocol.Map:
		for _, pair := range v {
			if pair.Key != "notes" {
				list = append(list, withoutNotes(pair.Key), withoutNotes(pair.Value))
			}
		}
	case protocol.Set:
		return withoutNotes([]any(v))
	case []any:
		for i := 0; i < len(v); i++ {
			if v[i] == "notes" {
				i++
				continue
			}
			list = append(list, withoutNotes(v[i]))
		}
	default:
		return v
	}
	return list
}

// withoutTimes returns a reply about a stream without times, and without those
// that Redis 7.0 does not report.
func withoutTimes(v any) any {
	switch v := v.(type) {
	case int64:
		if v > 1e11 {
			return "time"
		}
	case protocol.Map:
		var list []any
		for _, pair := range v {
			list = append(list, pair.Key, pair.Value)
		}
		return withoutTimes(list)
	case []any:
		var list []any
		for i := 0; i < len(v); i++ {
			s, _ := v[i].(string)
			if s == "active-time" || s == "inactive" || s == "idle" || ofProducers(s) && opponent() != "8.6" {
				i++
				continue
			}
			list = append(list, withoutTimes(v[i]))
		}
		if len(v) == 4 {
			if _, ok := v[3].(int64); ok {
				list[2] = "time" // of an entry that is pending
			}
		}
		return list
	}
	return v
}

// events compares the keyspace events of a batch.
func (d *differ) events(ours *rival, scenarios []scenario) *mismatch {
	got, err := ours.heard()
	if err != nil {
		return &mismatch{name: "events", text: "\t" + err.Error(), scenario: len(scenarios) - 1}
	}
	want, err := d.real.heard()
	if err != nil {
		d.t.Fatalf("redis-server: %v", err)
	}
	if slices.ContainsFunc(scenarios, func(u scenario) bool { return strings.HasPrefix(u.name, "sort") }) {
		// SORT misses keys in the order of the elements, which may be a hash table's.
		missed := func(e string) bool { return strings.HasSuffix(e, " keymiss") }
		got, want = slices.DeleteFunc(got, missed), slices.DeleteFunc(want, missed)
	}
	for i := range max(len(got), len(want)) {
		if i < len(got) && i < len(want) && got[i] == want[i] {
			continue
		}
		show := func(events []string) string {
			if i >= len(events) {
				return "(no more events)"
			}
			return strings.Join(events[i:min(i+4, len(events))], "\n\t")
		}
		what := "events"
		if i < len(want) {
			what += " of " + want[i][strings.LastIndexByte(want[i], ' ')+1:]
		}
		return &mismatch{
			name: what, scenario: len(scenarios) - 1,
			text: fmt.Sprintf("redis:\n\t%s\nzsetd:\n\t%s", show(want), show(got)),
		}
	}
	return nil
}

// state compares all keys.
func (d *differ) state(ours *rival, last int) *mismatch {
	differs := func(db int, key string, what string, got, want any) *mismatch {
		return &mismatch{
			name: "state: " + what, scenario: last, keys: []string{key},
			text: fmt.Sprintf("database %d, key %s: %s\nredis:\n%s\nzsetd:\n%s", db, transcript.Quote(key), what, clipped(fmt.Sprint(want)), clipped(fmt.Sprint(got))),
		}
	}
	both := func(lines [][]string) (got, want []string, err error) {
		if want, err = d.real.Pipeline(lines); err != nil {
			d.t.Fatalf("redis-server: %v", err)
		}
		got, err = ours.Pipeline(lines)
		return got, want, err
	}
	defer both([][]string{{"SELECT", "0"}})
	for db := range 3 {
		got, want, err := both([][]string{{"SELECT", strconv.Itoa(db)}, {"KEYS", "*"}})
		if err != nil {
			return &mismatch{name: "state", text: "\t" + err.Error(), scenario: last}
		}
		if !same(ordered, got[1], want[1]) {
			return differs(db, "", "KEYS *", got[1], want[1])
		}
		v, _, _ := protocol.Decode([]byte(want[1]))
		list, _ := v.([]any)
		var keys []string
		var lines [][]string
		var hows []comparison
		ask := func(name string, argv ...string) {
			lines = append(lines, argv)
			hows = append(hows, comparisonOf(name, argv))
			keys = append(keys, argv[len(argv)-1])
			if len(argv) > 2 && name != "object|encoding" {
				keys[len(keys)-1] = argv[1]
			}
		}
		compare := func() *mismatch {
			got, want, err := both(lines)
			if err != nil {
				return &mismatch{name: "state", text: "\t" + err.Error(), scenario: last}
			}
			for i := range lines {
				if !same(hows[i], got[i], want[i]) && !meant(lines[i], want[i], got[i]) {
					return differs(db, keys[i], lines[i][0], got[i], want[i])
				}
			}
			return nil
		}
		for _, k := range list {
			key := k.(string)
			ask("type", "TYPE", key)
			ask("object|encoding", "OBJECT", "ENCODING", key)
			ask("pttl", "PTTL", key)
		}
		if m := compare(); m != nil {
			return m
		}
		looks := make([][]string, 0, 2*len(list))
		for _, k := range list {
			looks = append(looks, []string{"TYPE", k.(string)}, []string{"OBJECT", "ENCODING", k.(string)})
		}
		kinds, err := d.real.Pipeline(looks)
		if err != nil {
			d.t.Fatalf("redis-server: %v", err)
		}
		lines, hows, keys = nil, nil, nil
		for i, k := range list {
			key := k.(string)
			switch kinds[2*i] {
			case "+string\r\n":
				ask("get", "GET", key)
			case "+list\r\n":
				ask("lrange", "LRANGE", key, "0", "-1")
			case "+set\r\n":
				ask("smembers", "SMEMBERS", key)
			case "+hash\r\n":
				name := "hgetall"
				if strings.Contains(kinds[2*i+1], "listpack") {
					name = "" // its order is specified
				}
				ask(name, "HGETALL", key)
			case "+zset\r\n":
				ask("zrange", "ZRANGE", key, "0", "-1", "WITHSCORES")
			case "+stream\r\n":
				ask("xinfo|stream", "XINFO", "STREAM", key, "FULL", "COUNT", "0")
			}
		}
		if m := compare(); m != nil {
			return m
		}
	}
	return nil
}
