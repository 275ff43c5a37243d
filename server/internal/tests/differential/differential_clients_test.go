package differential

// The part of the differential test with several clients: a new client that sends a few
// lines about the server or itself and is reset; and a few clients that interact: they
// watch keys, and block until another client adds elements.

import (
	"bufio"
	"fmt"
	"math"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/internal/tests/transcript"

	"github.com/zsetd/zsetd/server/servertest/judge"
)

// company is the number of clients beside the main one.
const company = 2

// lastWord is the last reply to a new client.
const lastWord = "that was all"

// pristine returns lines that undo the effects of an episode other than on keys.
func pristine() [][]string {
	lines := [][]string{{"FUNCTION", "FLUSH"}, {"SCRIPT", "FLUSH"}, {"CLIENT", "UNPAUSE"}, {"ACL", "LOG", "RESET"}, {"SLOWLOG", "RESET"},
		append([]string{"ACL", "DELUSER", ""}, users[:len(users)-1]...)}
	set := []string{"CONFIG", "SET"}
	for _, p := range harmless {
		if !lacksInValkey(p.name) {
			set = append(set, p.name, p.values[0])
		}
	}
	return append(lines, set)
}

// meet connects the clients beside the main one.
func (p *rival) meet(version int) error {
	p.leave()
	for range company {
		nc, err := p.dial()
		if err != nil {
			return err
		}
		c := &client{Conn: judge.NewConn(nc)}
		p.others = append(p.others, c)
		if _, err := c.Pipeline([][]string{{"HELLO", strconv.Itoa(version)}}); err != nil {
			return err
		}
	}
	return nil
}

func (p *rival) leave() {
	for _, c := range p.others {
		c.NC.Close()
	}
	p.others = nil
}

// both plays a scenario on both servers at once.
func (d *differ) both(ours *rival, u *scenario, play func(p *rival) ([]string, error)) (got, want []string, m *mismatch) {
	type played struct {
		replies []string
		err     error
	}
	theirs := make(chan played, 1)
	go func() {
		r, err := play(d.real)
		theirs <- played{r, err}
	}()
	got, err := play(ours)
	w := <-theirs
	if w.err != nil {
		d.t.Fatalf("redis-server: %v\n%s", w.err, history([]scenario{*u}))
	}
	if err != nil {
		return nil, nil, &mismatch{name: u.name, text: "\t" + err.Error()}
	}
	return got, w.replies, nil
}

// newcomer plays a scenario with a client of its own.
func (d *differ) newcomer(ours *rival, u *scenario, version int) *mismatch {
	named := func(name string) func(step) bool {
		return func(s step) bool { return strings.EqualFold(s.argv[0], name) }
	}
	if slices.ContainsFunc(u.steps, func(s step) bool { return logsIn(s.argv) }) && (!u.repliesOnce() || slices.ContainsFunc(u.steps, named("multi"))) {
		return nil // see peer.newcomer
	}
	got, want, m := d.both(ours, u, func(p *rival) ([]string, error) { return p.newcomer(u, version) })
	if m != nil {
		return m
	}
	got, want = inOrder(got), inOrder(want)
	// With one reply for each line, up to the end, each reply is compared by its command.
	known := u.repliesOnce()
	line := 0
	differs := func(at int) *mismatch {
		show := func(replies []string) string {
			if at >= len(replies) {
				return "\t(nothing)"
			}
			return clipped(replies[at])
		}
		name := u.name
		if known && line > 0 {
			name = judge.FullName(u.steps[line-1].argv)
		}
		return &mismatch{name: name, text: fmt.Sprintf("reply %d\nredis:\n%s\nzsetd:\n%s", at+1, show(want), show(got))}
	}
	var queued []step
	for i := 0; i < max(len(got), len(want)); i++ {
		if i >= len(got) || i >= len(want) || isPush(got[i]) != isPush(want[i]) {
			return differs(i)
		}
		if !known || isPush(got[i]) || line == len(u.steps) {
			if got[i] != want[i] {
				return differs(i)
			}
			continue
		}
		s := u.steps[line]
		line++
		name := strings.ToLower(s.argv[0])
		if strings.EqualFold(name, "multi") {
			queued = nil
		}
		if want[i] == "+QUEUED\r\n" {
			queued = append(queued, s)
		}
		var g, w []string
		if name == "exec" {
			g, w = parts(got[i]), parts(want[i])
		}
		if name != "exec" || len(w) != len(queued) || len(g) != len(w) {
			if !same(s.how, got[i], want[i]) && !meant(s.argv, want[i], got[i]) {
				return differs(i)
			}
			continue
		}
		for j := range w {
			if !same(queued[j].how, g[j], w[j]) && !meant(queued[j].argv, w[j], g[j]) {
				return differs(i)
			}
		}
	}
	return nil
}

// inOrder returns replies with pushes after all others, where those of Redis 7.2
// are after each reply, and with the channels that a client leaves at once in
// alphabetical order.
func inOrder(replies []string) []string {
	slices.SortStableFunc(replies, func(a, b string) int {
		switch p, q := isPush(a), isPush(b); {
		case p && !q:
			return 1
		case q && !p:
			return -1
		}
		return 0
	})
	// One message goes to patterns in the order of a hash table.
	message := func(i int) (tail string) {
		if i < len(replies) && strings.Contains(replies[i][:min(20, len(replies[i]))], "pmessage\r\n") {
			if p := parts("*" + replies[i][1:]); len(p) == 4 {
				return p[2] + p[3]
			}
		}
		return ""
	}
	for i := 0; i < len(replies); {
		end, tail := i+1, message(i)
		for tail != "" && message(end) == tail {
			end++
		}
		slices.Sort(replies[i:end])
		i = end
	}
	for i := 0; i < len(replies); {
		end := i
		for end < len(replies) && strings.Contains(replies[end], ":") && strings.Contains(replies[end][:min(24, len(replies[end]))], "unsubscribe\r\n") {
			end++
		}
		run := replies[i:end]
		var channels, counts []string
		for _, r := range run {
			at := strings.LastIndex(r, ":")
			channels, counts = append(channels, r[:at]), append(counts, r[at:])
		}
		slices.Sort(channels)
		for j := range run {
			run[j] = channels[j] + counts[j]
		}
		i = max(end, i+1)
	}
	return replies
}

func isPush(reply string) bool { return strings.HasPrefix(reply, ">") }

// parts returns the elements of an array, as they are encoded.
func parts(reply string) []string {
	r := bufio.NewReader(strings.NewReader(reply))
	head, err := r.ReadString('\n')
	if err != nil || head[0] != '*' && head[0] != '%' {
		return nil
	}
	var list []string
	for {
		b, err := transcript.ReadReply(r, nil)
		if err != nil {
			return list
		}
		list = append(list, string(b))
	}
}

// newcomer sends the lines of a scenario and returns all replies and pushes.
func (p *rival) newcomer(u *scenario, version int) ([]string, error) {
	nc, err := p.dial()
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	c := judge.NewConn(nc)
	nc.SetReadDeadline(time.Now().Add(time.Minute))
	b := transcript.AppendCommand(nil, []string{"HELLO", strconv.Itoa(version)})
	var replies []string
	owed, greeted := 1, false
	exchange := func() bool {
		if err := c.Send(b); err != nil {
			return false
		}
		for b = nil; owed > 0; {
			r, err := transcript.ReadReply(c.R, nil)
			if err != nil {
				return false
			}
			if !isPush(string(r)) {
				owed--
			}
			if greeted {
				replies = append(replies, string(r))
			}
			greeted = true
		}
		return true
	}
	for _, s := range u.steps {
		// Redis 8.6.3 loses the reply to AUTH in a pipeline.
		alone := logsIn(s.argv) && u.repliesOnce()
		if alone && !exchange() {
			return append(replies, "-closed\r\n"), nil
		}
		b = transcript.AppendCommand(b, s.argv)
		owed++
		if alone && !exchange() {
			return append(replies, "-closed\r\n"), nil
		}
	}
	b = transcript.AppendCommand(transcript.AppendCommand(b, []string{"RESET"}), []string{"PING", lastWord})
	go c.Send(b)
	if !greeted {
		if _, err := transcript.ReadReply(c.R, nil); err != nil {
			return nil, err
		}
	}
	for {
		b, err := transcript.ReadReply(c.R, nil)
		switch {
		case err != nil && strings.Contains(err.Error(), "timeout"):
			return nil, fmt.Errorf("no reply after %q", replies)
		case err != nil: // the server closed the connection
			return append(replies, "-closed\r\n"), nil
		case string(b) == bulk(lastWord):
			if n := len(replies) - 1; n >= 0 && replies[n] == "+RESET\r\n" { // or CLIENT REPLY suppresses it
				replies = replies[:n]
			}
			return replies, nil
		}
		replies = append(replies, string(b))
	}
}

// logsIn reports whether a line is AUTH, or HELLO with it.
func logsIn(argv []string) bool {
	return strings.EqualFold(argv[0], "auth") || strings.EqualFold(argv[0], "hello") && len(argv) > 2
}

// repliesOnce reports whether each line of a scenario has exactly one reply.
func (u *scenario) repliesOnce() bool {
	return !slices.ContainsFunc(u.steps, func(s step) bool { return severalReplies(s.argv) })
}

func bulk(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

// together plays a scenario of several clients. Clients that are still blocked are unblocked
// at the end.
func (d *differ) together(ours *rival, u *scenario) *mismatch {
	got, want, m := d.both(ours, u, func(p *rival) ([]string, error) { return p.together(u) })
	if m != nil {
		return m
	}
	for i, s := range u.steps {
		how := s
		if s.how == ignored {
			continue
		}
		// EXEC is compared as a whole, so what is in it leaves nothing to chance.
		v := *u
		v.argv = s.argv
		if m := compared(&v, how, got[i], want[i]); m != nil {
			if s.waits && parted(want[i], got[i]) {
				return &mismatch{}
			}
			m.name = u.name
			m.text = fmt.Sprintf("reply to %s\n%s", transcript.Quote(strings.Join(s.argv, " ")), m.text)
			return m
		}
	}
	return nil
}

func (p *rival) together(u *scenario) ([]string, error) {
	replies := make([]string, len(u.steps))
	var waiting []int
	for i, s := range u.steps {
		c := &client{Conn: p.Cmd}
		if s.client > 0 {
			c = p.others[s.client-1]
		}
		if !s.waits {
			r, err := c.Pipeline([][]string{s.argv})
			if err != nil {
				return nil, err
			}
			replies[i] = r[0]
			continue
		}
		if err := p.settled(c, s.argv); err != nil {
			return nil, err
		}
		waiting = append(waiting, i)
	}
	for _, i := range waiting {
		c := p.others[u.steps[i].client-1]
		let := p.Do("CLIENT", "UNBLOCK", strconv.Itoa(c.id()))
		c.owes = 0
		r, err := c.Receive(judge.Patience)
		if err != nil || r == transcript.Closed {
			return nil, fmt.Errorf("no reply to %q: %s, %v", u.steps[i].argv, r, err)
		}
		replies[i] = r + let
	}
	return replies, nil
}

// settled sends a command that may block, and returns when it has a reply or is blocked.
func (p *rival) settled(c *client, argv []string) error {
	id, err := c.Pipeline([][]string{{"CLIENT", "ID"}})
	if err != nil {
		return err
	}
	c.owes, _ = strconv.Atoi(strings.Trim(id[0], ":\r\n"))
	if err := c.Send(transcript.AppendCommand(nil, argv)); err != nil {
		return err
	}
	for end := time.Now().Add(judge.Patience); time.Now().Before(end); {
		if r := p.Do("CLIENT", "LIST", "ID", strconv.Itoa(c.id())); !strings.Contains(r, " cmd=client|id ") {
			return nil
		}
	}
	return fmt.Errorf("%q has not run", argv)
}

// id is the ID of a client that waits.
func (c *client) id() int { return c.owes }

// sameClients compares lines of CLIENT LIST as far as they do not depend on
// addresses, times and memory.
func sameClients(ours, redis string) bool {
	o, r := strings.Split(strings.TrimSpace(ours), "\n"), strings.Split(strings.TrimSpace(redis), "\n")
	// The last is the newest, which sent the command; some of the others may be closing.
	if len(o) != len(r) {
		o, r = o[len(o)-1:], r[len(r)-1:]
	}
	for i := range r {
		have := strings.Fields(o[i])
		for _, field := range strings.Fields(r[i]) {
			name, _, _ := strings.Cut(field, "=")
			switch name {
			case "flags": // U is a socket of Unix, N nothing else; about e see differences
				plain := strings.NewReplacer("U", "", "N", "", "e", "").Replace
				if !slices.ContainsFunc(have, func(f string) bool { return plain(f) == plain(field) }) {
					return false
				}
			case "multi":
				if !slices.Contains(have, field) && !(field == "multi=0" && opponent() == "valkey") { // as after its first transaction there
					return false
				}
			case "name", "db", "sub", "psub", "ssub", "cmd", "user", "redir", "resp":
				if !slices.Contains(have, field) {
					return false
				}
			default:
				if !slices.ContainsFunc(have, func(f string) bool { return strings.HasPrefix(f, name+"=") }) {
					return false
				}
			}
		}
	}
	return true
}

// withoutDetails returns a reply without versions and IDs, and without the rules
// about commands.
func withoutDetails(v any) any {
	switch v := v.(type) {
	case protocol.Map:
		var list []any
		for _, pair := range v {
			list = append(list, pair.Key, pair.Value)
		}
		return withoutDetails(list)
	case []any:
		list := slices.Clone(v)
		for i := range list {
			if i > 0 && (v[i-1] == "version" || v[i-1] == "id" || v[i-1] == "commands" || v[i-1] == "modules" ||
				v[i-1] == "server" && opponent() == "valkey") { // it is that of Redis
				list[i] = "…"
				continue
			}
			list[i] = withoutDetails(list[i])
		}
		return list
	case string:
		if strings.HasPrefix(v, "user ") {
			return strings.Join(slices.DeleteFunc(strings.Fields(v), func(w string) bool {
				return strings.HasPrefix(w, "+") || strings.HasPrefix(w, "-")
			}), " ")
		}
	}
	return v
}

// payloads returns the replies of Redis to DUMP and FUNCTION DUMP for some values.
func (d *differ) payloads() (values, libraries []string) {
	dump := func(argv ...string) string {
		return dumped(d.t, d.real.Do(argv...))
	}
	libraries = []string{"", "x"}
	for i, l := range scripts.libraries {
		d.real.Do("FUNCTION", "FLUSH")
		d.real.Do("FUNCTION", "LOAD", l)
		libraries = append(libraries, dump("FUNCTION", "DUMP"))
		if i == 0 {
			libraries = append(libraries, libraries[2][:len(libraries[2])-1]+"?")
		}
	}
	d.real.Do("FUNCTION", "FLUSH")
	long := strings.Repeat("long", 20)
	for _, argv := range [][]string{
		{"SET", "k", "12"}, {"SET", "k", "text"}, {"SET", "k", strings.Repeat("a", 100)}, {"RPUSH", "k", "a", "b", "7"},
		{"SADD", "k", "1", "2", "3"}, {"SADD", "k", "a", "b", "c"}, {"HSET", "k", "f", "v", "g", "1"}, {"HSET", "k", "f", long},
		{"ZADD", "k", "1", "a", "2.5", "b", "inf", "c"}, {"ZADD", "k", "1", long}, {"XADD", "k", "5-1", "f", "v"},
		{"PFADD", "k", "a", "b"}, {"GEOADD", "k", "10", "11", "a"},
	} {
		d.real.Do("FLUSHALL")
		d.real.Do(argv...)
		values = append(values, dump("DUMP", "k"))
	}
	return append(values, "", "short", values[0][:len(values[0])-1]+"?", "x"+values[3]), libraries
}

// crosswise moves all values of the first databases to the other server, and
// looks at them there. It is done when an episode ends.
func (d *differ) crosswise(ours *rival, last bool) *mismatch {
	if !last {
		return nil
	}
	both := func(lines, theirs [][]string) (got, want []string) {
		want, err := d.real.Pipeline(theirs)
		if err != nil {
			d.t.Fatalf("redis-server: %v", err)
		}
		got, _ = ours.Pipeline(lines)
		return append(got, make([]string, len(want)-len(got))...), want
	}
	list, _, _ := protocol.Decode([]byte(d.real.Do("KEYS", "*")))
	all, _ := list.([]any)
	const moved = "moved"
	for _, k := range all {
		key := k.(string)
		ask := [][]string{{"DUMP", key}, {"TYPE", key}, {"OBJECT", "ENCODING", key}}
		got, want := both(ask, ask)
		a, _, _ := protocol.Decode([]byte(got[0]))
		b, _, _ := protocol.Decode([]byte(want[0]))
		ourDump, ok1 := a.(string)
		theirDump, ok2 := b.(string)
		differs := func(what, got, want string) *mismatch {
			return &mismatch{name: "crosswise: " + what, keys: []string{key}, text: fmt.Sprintf("%s of %s (%s)\nredis:\n%s\nzsetd:\n%s", what,
				transcript.Quote(key), strings.TrimSpace(want[1:]), clipped(want), clipped(got))}
		}
		if !ok1 || !ok2 {
			return differs("DUMP", got[0], want[0])
		}
		// Nodes of lists, and hash tables, depend on their history.
		stable := got[2] == want[2]
		for _, part := range []string{"list", "stream"} {
			stable = stable && !strings.Contains(want[1], part)
		}
		for _, encoding := range []string{"hashtable", "skiplist", "listpackex"} {
			stable = stable && !strings.Contains(want[2], encoding)
		}
		// A set as a list of members, for Redis 7.0, too, becomes an intset of its integers.
		asMembers := strings.Contains(want[1], "set") && !strings.Contains(want[1], "zset") && strings.Contains(want[2], "listpack")
		stable = stable && !asMembers
		restored, was := both([][]string{{"RESTORE", moved, "0", theirDump, "REPLACE"}}, [][]string{{"RESTORE", moved, "0", ourDump, "REPLACE"}})
		if restored[0] != was[0] || was[0] != "+OK\r\n" {
			return differs("RESTORE", restored[0], was[0])
		}
		// Compression may differ: in Redis again, the payloads are the same.
		if again := d.real.Do("DUMP", moved); stable && again != want[0] {
			return differs("DUMP", got[0], want[0])
		}
		look, name := []string{"GET", moved}, ""
		kind := strings.TrimSpace(d.real.Do("TYPE", moved)[1:])
		switch kind {
		case "list":
			look = []string{"LRANGE", moved, "0", "-1"}
		case "set":
			look, name = []string{"SMEMBERS", moved}, "smembers"
		case "hash":
			look, name = []string{"HGETALL", moved}, "hgetall"
		case "zset":
			look = []string{"ZRANGE", moved, "0", "-1", "WITHSCORES"}
		case "stream":
			look, name = []string{"XINFO", "STREAM", moved, "FULL", "COUNT", "0"}, "xinfo|stream"
		}
		encoding := []string{"OBJECT", "ENCODING", moved}
		got, want = both([][]string{look, encoding}, [][]string{look, encoding})
		if !same(comparisonOf(name, look), got[0], want[0]) && !meant(look, want[0], got[0]) {
			return differs("the value moved", got[0], want[0])
		}
		if !asMembers && !same(comparisonOf("object|encoding", encoding), got[1], want[1]) {
			return differs("the encoding moved", got[1], want[1])
		}
	}
	both([][]string{{"DEL", moved}}, [][]string{{"DEL", moved}})
	return nil
}

// TestDifferentialDrawsAll checks that every command of the judge is drawn, with every
// option, or is listed in notCompared.
func TestDifferentialDrawsAll(t *testing.T) {
	if opponent() == "valkey" {
		t.Skip("options that only Redis has are left out")
	}
	srv, err := server.New(server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	var commands []*protocol.Command
	wanted := map[string]int{}
	var options func(c *protocol.Command, args []protocol.Argument)
	options = func(c *protocol.Command, args []protocol.Argument) {
		for i := range args {
			if !opponentKnows(args[i].Since) || c.Name == "xadd" && args[i].Token == "*" || args[i].Token == "MAXAGE" { // they depend on time
				continue
			}
			if args[i].Token != "" {
				wanted[c.Name+" … "+strings.ToUpper(args[i].Token)] = 0
			}
			options(c, args[i].Arguments)
		}
	}
	for _, c := range allCommands() {
		if !opponentKnows(c.Since) || slices.ContainsFunc(allCommands(), func(s *protocol.Command) bool {
			return strings.HasPrefix(s.Name, c.Name+"|")
		}) {
			continue // a container without a subcommand is drawn where one is left out
		}
		if notCompared(c.Name) == "" {
			wanted[c.Name] = 0
			options(c, c.Arguments())
			commands = append(commands, c)
		}
	}
	g := newGenerator(seeded(1), commands)
	for range 600 * len(commands) {
		c, argv := g.next()
		if _, ok := wanted[c.Name]; ok {
			wanted[c.Name]++
		}
		for _, w := range argv {
			if n, ok := wanted[c.Name+" … "+strings.ToUpper(w)]; ok {
				wanted[c.Name+" … "+strings.ToUpper(w)] = n + 1
			}
		}
	}
	for what, n := range wanted {
		if n == 0 {
			t.Errorf("%s is never drawn", what)
		}
	}
	fewest := math.MaxInt
	for _, n := range wanted {
		fewest = min(fewest, n)
	}
	t.Logf("%d commands and options, each at least %d times", len(wanted), fewest)
}

// TestDifferentialTransactions compares what each of several clients receives while one of
// them runs transactions and scripts that change who listens.
func TestDifferentialTransactions(t *testing.T) {
	d := newDiffer(t)
	srv, err := server.New(server.Options{Config: map[string]string{"dialect": dialect()}})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	ours := &rival{dial: func() (net.Conn, error) { return srv.Dialer()(t.Context(), "", "") }}
	differs := func(blocks []block) (client int, got, want []string) {
		theirs := make(chan [][]string, 1)
		go func() { theirs <- d.real.perform(t, blocks) }()
		g := ours.perform(t, blocks)
		w := <-theirs
		for i := range g {
			if !slices.Equal(g[i], w[i]) {
				return i, g[i], w[i]
			}
		}
		return -1, nil, nil
	}
	g := &generator{r: seeded(drawnSeed()), knows: opponentKnows}
	for reports := 0; *differentialN/25 > g.id && reports < 5; g.id++ {
		blocks := g.transacted()
		if client, _, _ := differs(blocks); client < 0 {
			continue
		}
		for i := range blocks { // fewer lines
			for at := len(blocks[i].lines) - 1; at >= 0; at-- {
				fewer := slices.Clone(blocks)
				fewer[i].lines = slices.Delete(slices.Clone(blocks[i].lines), at, at+1)
				if name := blocks[i].lines[at][0]; name == "MULTI" || name == "EXEC" {
					continue
				}
				if client, _, _ := differs(fewer); client >= 0 {
					blocks = fewer
				}
			}
		}
		reports++
		client, got, want := differs(blocks)
		var lines strings.Builder
		for _, b := range blocks {
			for _, line := range b.lines {
				fmt.Fprintf(&lines, "\t%d> %s\n", b.client, strings.Join(line, " "))
			}
		}
		t.Errorf("client %d receives\n\t%q\nand from redis\n\t%q\nof\n%s", client, got, want, &lines)
	}
}

// helloReply is the reply to HELLO without its head.
var helloReply = regexp.MustCompile(`(?s)\$6\r\nserver\r\n.*?\$7\r\nmodules\r\n(\*0\r\n|\*1\r\n.*?\$4\r\nargs\r\n\*0\r\n)`)

// perform plays blocks with clients of their own, and returns what each of them receives. The
// next block begins when the replies to the one before are there.
func (p *rival) perform(t *testing.T, blocks []block) [][]string {
	var clients [audience]*judge.Conn
	var ids [audience]string
	var received [audience][]string
	// until sends lines and a last one, and reads up to its reply or the end of the connection.
	until := func(i int, lines [][]string) {
		c := clients[i]
		if c == nil {
			return
		}
		var b []byte
		for _, line := range append(slices.Clone(lines), []string{"PING", lastWord}) {
			line = slices.Clone(line)
			for j := range line {
				for k, id := range ids {
					line[j] = strings.ReplaceAll(line[j], "#"+strconv.Itoa(k), id)
				}
			}
			b = transcript.AppendCommand(b, line)
		}
		c.NC.SetDeadline(time.Now().Add(time.Minute))
		go c.Send(b)
		for {
			r, err := transcript.ReadReply(c.R, nil)
			switch {
			case err != nil && strings.Contains(err.Error(), "timeout"):
				t.Errorf("client %d: no reply after %q to %q", i, received[i], lines)
				fallthrough
			case err != nil:
				received[i] = append(received[i], transcript.Closed)
				c.NC.Close()
				clients[i] = nil
				return
			case strings.HasSuffix(string(r), bulk(lastWord)):
				return
			}
			text := helloReply.ReplaceAllString(string(r), "HELLO")
			if strings.Contains(text, "invalidate\r\n") { // the judges write a null as the client that redirects does
				text = strings.ReplaceAll(text, "_\r\n", "$-1\r\n")
			}
			if strings.Contains(text, "tracking-redir-broken") {
				text = text[:strings.LastIndex(text, ":")] // without the ID
			}
			received[i] = append(received[i], text)
		}
	}
	for i := range clients {
		nc, err := p.dial()
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		clients[i] = judge.NewConn(nc)
		if i == 0 {
			until(i, [][]string{{"FLUSHALL"}, {"CONFIG", "SET", "notify-keyspace-events", "KEA"}, {"CLIENT", "ID"}})
		} else {
			until(i, [][]string{{"CLIENT", "ID"}})
		}
		ids[i] = strings.Trim(received[i][len(received[i])-1], ":\r\n")
	}
	received = [audience][]string{}
	for _, b := range blocks {
		until(b.client, b.lines)
		for i := range clients { // what has been sent is not lost if the client is closed by the next block
			until(i, nil)
		}
	}
	done := received
	for i := range clients { // no subscription outlives the blocks
		until(i, [][]string{{"RESET"}})
	}
	return done[:]
}
