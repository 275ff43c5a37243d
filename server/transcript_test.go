package server_test

// Transcripts: testdata/*.resp hold commands and the exact replies to them, in the notation of
// package transcript. Every section runs in several modes, see transcriptModes. The tests write
// the replies into the files with
//
//	go test ./server -run 'TestTranscripts/^sortedset$' -rewrite
//
// where a subtest has the name of a file, and judge a real redis-server, which they empty, by the same files with
//
//	redis-server --port 7777 --save "" --enable-debug-command yes
//	go test ./server -run TestTranscripts -against 127.0.0.1:7777
//
// Both flags together record the replies of a real redis-server; items marked @zsetd are kept.

import (
	"context"
	"flag"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/internal/tests/transcript"
	"github.com/zsetd/zsetd/server/servertest/rerun"
	"github.com/zsetd/zsetd/server/servertest/wait"

	"github.com/zsetd/zsetd/server/servertest/judge"
)

var (
	rewrite = flag.Bool("rewrite", false, "write the replies into the transcripts")
	against = flag.String("against", "", "`address` of a redis-server to judge by the transcripts; it is emptied")
)

// transcriptModes are the ways in which every section is run.
var transcriptModes = []string{
	"plain",     // one command at a time
	"pipelined", // consecutive commands of a client are sent in one write
	"multi",     // each command inside MULTI and EXEC
	"resp3",     // all clients speak RESP3; the replies mean the same
	"reload",    // after each command the data are saved to a file and loaded again
	"script",    // each command that may be is run by a script; replies as Lua can tell them
	"redcon",    // as pipelined, through a redcon server
}

// silence is the time after which a recording goes on without a reply.
const silence = 100 * time.Millisecond

func TestTranscripts(t *testing.T) {
	rerun.Skip(t)
	files, err := filepath.Glob("testdata/*.resp")
	if err != nil {
		t.Fatal(err)
	}
	ran := 0 // sections
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(name), ".resp"), func(t *testing.T) {
			f, err := transcript.Parse(filepath.Base(name), string(text))
			if err != nil {
				t.Fatal(err)
			}
			if *rewrite {
				for _, s := range f.Sections {
					ran++
					runSection(t, f, s, "plain", true)
				}
				if t.Failed() {
					return
				}
				if err := os.WriteFile(name, []byte(f.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			for _, mode := range transcriptModes {
				t.Run(mode, func(t *testing.T) {
					for _, s := range f.Sections {
						if s.Marks["no"+mode] || mode == "redcon" && s.Marks["nopipelined"] || *against != "" && (s.Marks["zsetd"] || mode == "reload" || mode == "redcon") {
							continue
						}
						if s.Title == "" {
							ran++
							runSection(t, f, s, mode, false)
							continue
						}
						t.Run(s.Title, func(t *testing.T) {
							ran++
							runSection(t, f, s, mode, false)
						})
					}
				})
			}
		})
	}
	if ran == 0 && !t.Failed() { // a pattern that names nothing would pass otherwise, and write nothing
		t.Error("-run chooses no section of a file in testdata")
	}
}

// TestChosenSubtests checks that a pattern for -run that chooses no subtest fails the test
// that can write files.
func TestChosenSubtests(t *testing.T) {
	rerun.Skip(t)
	out, err := exec.Command(os.Args[0], "-test.run", "TestTranscripts/^nosuch$").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "-run chooses no ") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestTranscriptsOfNewer judges Redis 8 by the transcripts of what Redis 7.0 lacks: by the
// sections that are not marked as zsetd's own.
func TestTranscriptsOfNewer(t *testing.T) {
	judgeTranscripts(t, judge.NewerServers()[0], "hash-expire", "hash-getex", "hash-expire-time", "hash-lazy", "stream-claim",
		"stream-idempotence", "stream-references", "stream-groups", "stream-blocking", "stream", "keysizes", "keys-overwritten", "takenback")
}

// TestTranscriptsOfValkey judges Valkey by the transcript of what Redis lacks and Valkey has.
func TestTranscriptsOfValkey(t *testing.T) { judgeTranscripts(t, judge.NewerServers()[1], "valkey") }

// judgeTranscripts judges a server by transcripts, except the sections that are marked as
// zsetd's own.
func judgeTranscripts(t *testing.T, n judge.Newer, names ...string) {
	rerun.Skip(t)
	path := n.Path(t)
	if path == "" {
		t.Skipf("%s is not installed: set %s to the program", n.Name, n.Variable)
	}
	tests := map[string]func(*testing.T){}
	for _, name := range names {
		text, err := os.ReadFile("testdata/" + name + ".resp")
		if err != nil {
			t.Fatal(err)
		}
		f, err := transcript.Parse(name+".resp", string(text))
		if err != nil {
			t.Fatal(err)
		}
		judged := 0
		for _, s := range f.Sections {
			if s.Title == "" || strings.HasSuffix(s.Items[0].Text[0], " @zsetd") {
				continue
			}
			judged++
			tests[name+"/"+s.Title] = func(t *testing.T) { // most of its time is spent waiting
				dial := judge.StartProgram(t, path, "--enable-debug-command", "yes", "--hz", "100") // fields expire in the background, 100 times a second
				p := &player{t: t, file: f, mode: "plain", clients: map[int]*client{}, connect: dial}
				p.play(s)
				for n, c := range p.clients {
					if n != 0 && !t.Failed() {
						p.silent(n, c)
					}
					c.NC.Close()
				}
			}
		}
		if judged == 0 {
			t.Errorf("%s: no sections", name)
		}
	}
	allAtOnce(t, tests)
}

// player runs a section.
type player struct {
	t       *testing.T
	file    *transcript.File
	mode    string
	srv     *server.Server  // nil: a real redis-server
	connect func() net.Conn // nil: through srv's Dialer, or at the address that the flag says
	clients map[int]*client
	seen    func(command []string, reply string)
}

type client struct {
	*judge.Conn
	open      bool // a transaction
	watching  bool
	listening bool // has subscribed, monitors or the like: no MULTI around commands
	owes      int  // commands sent whose reply is still to come
}

func runSection(t *testing.T, f *transcript.File, s *transcript.Section, mode string, record bool) {
	runSectionSeen(t, f, s, mode, record, func([]string, string) {})
}

// runSectionSeen is runSection; it calls seen with each command and its reply.
func runSectionSeen(t *testing.T, f *transcript.File, s *transcript.Section, mode string, record bool, seen func(command []string, reply string)) {
	p := &player{t: t, file: f, mode: mode, clients: map[int]*client{}, seen: seen}
	if *against == "" {
		o := server.Options{Config: map[string]string{"enable-debug-command": "yes"}}
		if mode == "reload" {
			o.File = filepath.Join(memoryDir(t), "reload.db")
			o.Config["save"] = "1000000 1" // the journal is what is to be tested
		}
		srv, err := server.New(o)
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		p.srv = srv
		if mode == "redcon" {
			addr := serveRedcon(t, srv)
			p.connect = func() net.Conn { return dialTCP(t, addr) }
		}
	} else {
		p.client(0).RoundTrip(t, "FLUSHALL")
		defer func() {
			p.client(0).RoundTrip(t, "FLUSHALL")
			p.client(0).NC.Close()
		}()
	}
	if mode == "resp3" || mode == "script" {
		for _, it := range s.Items {
			if it.Command != nil && strings.EqualFold(it.Command[0], "HELLO") {
				return // it chooses for itself
			}
		}
	}
	if mode == "resp3" {
		p.client(1).RoundTrip(t, "HELLO", "3")
	}
	if record {
		p.record(s)
	} else {
		p.play(s)
	}
	if !t.Failed() {
		p.unblock()
	}
	for n, c := range p.clients {
		if n != 0 && !t.Failed() {
			p.silent(n, c)
		}
		if n != 0 {
			c.NC.Close()
		}
	}
	if p.srv != nil {
		if err := p.srv.Check(); err != nil {
			t.Errorf("%s: after section %q: %v", f.Name, s.Title, err)
		}
	}
}

// memoryDir returns a directory that is in memory, if the system has such a
// place: waiting for the disk is not what the tests are about.
func memoryDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "zsetd")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// reload has the server save its data and load them again.
func (p *player) reload(it *transcript.Item) {
	if got, err := p.srv.Do(p.t.Context(), "DEBUG", "RELOAD"); err != nil || fmt.Sprint(got) != "OK" {
		p.t.Errorf("%s:%d: after %s: DEBUG RELOAD: %v %v", p.file.Name, it.Line, it.Words(), got, err)
	}
}

// client returns client n, which is connected when it is first needed.
func (p *player) client(n int) *client {
	c := p.clients[n]
	if c == nil {
		c = p.dial()
		p.clients[n] = c
		if p.mode == "resp3" && n > 1 {
			c.RoundTrip(p.t, "HELLO", "3")
		}
	}
	return c
}

// dial returns a new client.
func (p *player) dial() *client {
	p.t.Helper()
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) { return net.Dial(network, addr) }
	switch {
	case p.connect != nil:
		dial = func(context.Context, string, string) (net.Conn, error) { return p.connect(), nil }
	case p.srv != nil:
		dial = p.srv.Dialer()
	}
	nc, err := dial(p.t.Context(), "tcp", *against)
	if err != nil {
		p.t.Fatal(err)
	}
	return &client{Conn: judge.NewConn(nc)}
}

// play runs the items of a section and compares.
func (p *player) play(s *transcript.Section) {
	for i := 0; i < len(s.Items); {
		it := s.Items[i]
		if it.Advance != 0 {
			p.advance(it)
		}
		if it.Command == nil {
			if it.Client != 0 && !p.expect(it) {
				return
			}
			i++
			continue
		}
		batch := []*transcript.Item{it}
		i++
		if p.mode == "pipelined" || p.mode == "redcon" {
			for i < len(s.Items) && s.Items[i].Advance == 0 {
				if s.Items[i].Command == nil && s.Items[i].Client == 0 {
					i++
					continue
				}
				if s.Items[i].Command == nil || s.Items[i].Client != it.Client {
					break
				}
				batch = append(batch, s.Items[i])
				i++
			}
		}
		if !p.exchange(batch) {
			return
		}
	}
}

// exchange sends commands of one client and compares their replies. It
// reports whether the section can go on.
func (p *player) exchange(batch []*transcript.Item) bool {
	c := p.client(batch[0].Client)
	if c.Closed {
		p.t.Errorf("%s:%d: the connection is closed", p.file.Name, batch[0].Line)
		return false
	}
	if p.mode == "multi" && batch[0].Raw == "" && p.wrappable(c, batch[0]) {
		return p.wrapped(c, batch[0])
	}
	if p.mode == "script" && batch[0].Raw == "" && p.scriptable(c, batch[0]) {
		if done := p.scripted(c, batch[0]); done {
			return true
		}
	}
	var b []byte
	for _, it := range batch {
		b = it.AppendRequest(b)
	}
	before, owing := p.progress(), c.owes > 0
	sent := make(chan error, 1)
	go func() { sent <- c.Send(b) }()
	for _, it := range batch {
		c.follow(it)
		if !p.expect(it) {
			return false
		}
	}
	if err := <-sent; err != nil && !c.Closed {
		p.t.Errorf("%s:%d: %v", p.file.Name, batch[0].Line, err)
		return false
	}
	if len(batch[len(batch)-1].Replies) == 0 {
		p.settle(batch, before, owing)
	}
	if p.mode == "reload" {
		p.reload(batch[0])
	}
	return true
}

// scriptable reports whether a command may mean the same when a script runs it.
func (p *player) scriptable(c *client, it *transcript.Item) bool {
	if c.open || c.watching || c.listening || c.owes > 0 || len(it.Replies) != 1 || it.Replies[0] == transcript.Closed || len(it.Command) > 7000 {
		return false
	}
	switch strings.ToLower(it.Command[0]) {
	case "select", // is undone when the script has ended
		"info", "slowlog", "latency", "config", "command": // which tell of what was run
		return false
	}
	return true
}

// scripted has a script run a command. It returns false if the command is not
// one for scripts, and nothing has happened.
func (p *player) scripted(c *client, it *transcript.Item) (done bool) {
	got := c.RoundTrip(p.t, append([]string{"EVAL", "return redis.pcall(unpack(ARGV))", "0"}, it.Command...)...)
	want := it.Replies[0]
	if strings.HasSuffix(got, " command is not allowed with BLOCK option from scripts\r\n") {
		return false
	}
	switch got {
	case "-ERR This Redis command is not allowed from script\r\n":
		return false
	case "-ERR Unknown Redis command called from script\r\n":
		if !strings.HasPrefix(want, "-ERR unknown command ") && !strings.HasPrefix(want, "-ERR unknown subcommand ") {
			p.compare(it, got, want)
		}
		return true
	case "-ERR Wrong number of args calling Redis command from script\r\n":
		if !strings.Contains(want, "wrong number of arguments for ") {
			p.compare(it, got, want)
		}
		return true
	}
	b, _ := throughLua(nil, want)
	if !it.Matches(got, string(b), true) { // only the meaning: Lua has one null
		p.compare(it, got, want)
	}
	return true
}

// throughLua appends a reply as a script that passes it on makes it: integers are
// Lua's numbers, which are float64.
func throughLua(b []byte, reply string) (out []byte, rest string) {
	head, rest, _ := strings.Cut(reply, "\r\n")
	n, err := strconv.ParseInt(head[1:], 10, 64)
	if head[0] == ':' && err == nil {
		if f := float64(n); f < 1<<63 {
			n = int64(f)
		} else {
			n = math.MinInt64
		}
		head = ":" + strconv.FormatInt(n, 10)
	}
	b = append(append(b, head...), "\r\n"...)
	switch head[0] {
	case '$':
		if n >= 0 {
			b, rest = append(b, rest[:n+2]...), rest[n+2:]
		}
	case '*':
		for range n {
			b, rest = throughLua(b, rest)
		}
	}
	return b, rest
}

// wrapped runs a command between MULTI and EXEC.
func (p *player) wrapped(c *client, it *transcript.Item) bool {
	b := transcript.AppendCommand(nil, []string{"MULTI"})
	b = it.AppendRequest(b)
	b = transcript.AppendCommand(b, []string{"EXEC"})
	sent := make(chan error, 1)
	go func() { sent <- c.Send(b) }()
	defer func() { <-sent }()
	var got [3]string
	for i := range got {
		var err error
		if got[i], err = c.Receive(judge.Patience); err != nil {
			p.t.Errorf("%s:%d: %s: reply %d of MULTI, command, EXEC: %v", p.file.Name, it.Line, it.Words(), i, err)
			return false
		}
	}
	switch inner, ok := strings.CutPrefix(got[2], "*1\r\n"); {
	case got[0] != "+OK\r\n":
		p.t.Errorf("%s:%d: %s: MULTI replied %q", p.file.Name, it.Line, it.Words(), got[0])
	case got[1] != "+QUEUED\r\n":
		p.compare(it, got[1], it.Replies[0])
		if !strings.HasPrefix(got[2], "-EXECABORT ") {
			p.t.Errorf("%s:%d: %s: refused while queueing, but EXEC replied %q", p.file.Name, it.Line, it.Words(), got[2])
		}
	case !ok:
		p.t.Errorf("%s:%d: %s: EXEC replied %q", p.file.Name, it.Line, it.Words(), got[2])
	default:
		p.compare(it, inner, it.Replies[0])
	}
	return true
}

// wrappable reports whether a command means the same between MULTI and EXEC.
func (p *player) wrappable(c *client, it *transcript.Item) bool {
	if c.open || c.watching || c.listening || c.owes > 0 || len(it.Replies) != 1 || it.Replies[0] == transcript.Closed {
		return false
	}
	switch strings.ToLower(it.Command[0]) {
	case "multi", "exec", "discard", "watch", "unwatch", "quit", "reset", "hello", "auth", "monitor", "client",
		"shutdown", "sync", "psync", "subscribe", "psubscribe", "ssubscribe", "unsubscribe", "punsubscribe",
		"sunsubscribe", "info":
		return false
	}
	return true
}

// follow keeps track of the state that a command leaves its client in.
func (c *client) follow(it *transcript.Item) {
	if len(it.Replies) == 0 {
		c.owes++
	}
	switch strings.ToLower(it.Command[0]) {
	case "multi":
		c.open = true
	case "exec", "discard":
		c.open, c.watching = false, false
	case "reset":
		c.open, c.watching, c.listening = false, false, false
	case "watch":
		c.watching = true
	case "unwatch":
		c.watching = false
	case "subscribe", "psubscribe", "ssubscribe", "monitor":
		c.listening = true
	}
}

// expect receives the replies of an item and compares them.
func (p *player) expect(it *transcript.Item) bool {
	c := p.client(it.Client)
	for i, want := range it.Replies {
		got, err := c.Receive(judge.Patience)
		if err != nil {
			p.t.Errorf("%s:%d: %s: reply %d does not come: %v (received %q)\nwant:\n%s",
				p.file.Name, it.Line, it.Words(), i+1, err, got, transcript.Indented(want))
			return false
		}
		if it.Command == nil && c.owes > 0 {
			c.owes--
		}
		p.compare(it, got, want)
		if p.seen != nil && it.Command != nil && it.Raw == "" {
			p.seen(it.Command, got)
		}
		if (got == transcript.Closed) != (want == transcript.Closed) {
			return false
		}
	}
	return true
}

// compare reports a reply that is not as it should be.
func (p *player) compare(it *transcript.Item, got, want string) {
	p.t.Helper()
	if it.Zsetd && p.srv == nil || it.Matches(got, want, p.mode == "resp3") {
		return
	}
	p.t.Errorf("%s:%d: %s\nwant:\n%s\ngot:\n%s", p.file.Name, it.Line, it.Words(), transcript.Indented(want), transcript.Indented(got))
}

func (p *player) advance(it *transcript.Item) {
	if p.srv != nil {
		p.srv.Advance(it.Advance)
		return
	}
	wait.Elapse(it.Advance)
}

// progress returns how far our server is.
func (p *player) progress() server.Progress {
	if p.srv == nil {
		return server.Progress{}
	}
	return p.srv.Progress()
}

// settle waits until the server has processed commands of which the last has no reply: they have
// run, or their client is blocked. Owing says that it may have been blocked before they were sent:
// then the server has read them.
func (p *player) settle(batch []*transcript.Item, before server.Progress, owing bool) {
	p.t.Helper()
	if p.srv == nil {
		p.probe()
		return
	}
	var bytes []byte
	commands, errors := before.Commands+int64(before.Blocked), before.Errors
	for _, it := range batch {
		bytes = it.AppendRequest(bytes)
		switch {
		case len(it.Replies) > 0 && it.Replies[0][0] == '-':
			errors++
		case len(it.Replies) == 0 || it.Replies[0] != "+QUEUED\r\n":
			commands++
		}
	}
	var now server.Progress
	if !wait.Holds(func() bool {
		now = p.srv.Progress()
		processed := owing || now.Blocked > before.Blocked || now.Commands+int64(now.Blocked) >= commands || now.Errors > errors
		return processed && now.Input >= before.Input+int64(len(bytes))
	}) {
		p.t.Fatalf("%s:%d: %s: the server does not process it: %+v, then %+v", p.file.Name, batch[0].Line, batch[0].Words(), before, now)
	}
}

// probe waits until redis-server has processed what other clients have sent. Its event loop
// accepts a connection in one iteration and reads from it in a later one, and in each serves every
// client whose data have arrived. The probe is no command, so it is answered during CLIENT PAUSE,
// too, before the connection is closed.
func (p *player) probe() {
	p.t.Helper()
	c := p.dial()
	defer c.NC.Close()
	if err := c.Send([]byte("*x\r\n")); err != nil {
		p.t.Fatal(err)
	}
	for !c.Closed {
		if _, err := c.Receive(judge.Patience); err != nil {
			p.t.Fatal(err)
		}
	}
}

// unblock ends the commands of clients that are still blocked, with an error that silent looks for.
func (p *player) unblock() {
	owing := false
	for n, c := range p.clients {
		owing = owing || n != 0 && !c.Closed && c.owes > 0
	}
	for blocked := owing; blocked; {
		blocked = false
		for line := range strings.Lines(p.control("CLIENT", "LIST")) {
			_, id, _ := strings.Cut(line, "id=")
			id, _, _ = strings.Cut(id, " ")
			_, flags, _ := strings.Cut(line, " flags=")
			if flags, _, _ = strings.Cut(flags, " "); strings.Contains(flags, "b") {
				p.control("CLIENT", "UNBLOCK", id, "ERROR")
				blocked = true
			}
		}
	}
}

// control runs a command as no client of the section, and returns its reply as text.
func (p *player) control(words ...string) string {
	p.t.Helper()
	if p.srv == nil {
		return p.client(0).RoundTrip(p.t, words...)
	}
	args := make([]any, len(words))
	for i, w := range words {
		args[i] = w
	}
	reply, err := p.srv.Do(p.t.Context(), args...)
	if err != nil {
		p.t.Fatalf("%s: %v", words, err)
	}
	return fmt.Sprint(reply)
}

// silent verifies that a client has received nothing that the section does not hold: the next
// reply is that of RESET, or the one by which unblock has ended a command. Other commands that were
// sent behind that command may follow.
func (p *player) silent(n int, c *client) {
	if c.Closed {
		return
	}
	r := c.RoundTrip(p.t, "RESET")
	if c.owes > 0 && strings.HasPrefix(r, "-UNBLOCKED ") {
		for ; c.owes > 0 && r != "+RESET\r\n"; c.owes-- {
			var err error
			if r, err = c.Receive(judge.Patience); err != nil {
				p.t.Fatal(err)
			}
		}
	}
	if r != "+RESET\r\n" && !strings.HasPrefix(r, "-NOAUTH") {
		p.t.Errorf("%s: at the end of the section client %d still receives\n%s", p.file.Name, n, transcript.Indented(r))
	}
}

// record runs the items of a section and keeps the replies.
func (p *player) record(s *transcript.Section) {
	var out []*transcript.Item
	early := map[int]int{} // by client: the replies that it received before its "<" line
	for _, it := range s.Items {
		if it.Advance != 0 {
			p.advance(it)
		}
		if it.Client == 0 {
			out = append(out, it)
			continue
		}
		keep := *against != "" && (it.Zsetd || s.Marks["zsetd"])
		c := p.client(it.Client)
		if it.Command == nil {
			if early[it.Client] > 0 {
				early[it.Client]--
				continue
			}
			if r, err := c.Receive(judge.Patience); err == nil {
				it.Replies = []string{r}
			}
			out = append(out, it)
			continue
		}
		clear(early)
		if c.Closed {
			p.t.Errorf("%s:%d: the connection is closed", p.file.Name, it.Line)
			return
		}
		before, owing := p.progress(), c.owes > 0
		if err := c.Send(it.AppendRequest(nil)); err != nil {
			p.t.Errorf("%s:%d: %v", p.file.Name, it.Line, err)
			return
		}
		out = append(out, it)
		old := it.Replies
		it.Replies = nil
		wait := judge.Patience
		if len(old) == 0 || keep {
			wait = silence
		}
		for {
			r, err := c.Receive(wait)
			if err != nil {
				if wait == judge.Patience {
					p.t.Errorf("%s:%d: %s: there was a reply, now none comes; delete it if that is right", p.file.Name, it.Line, it.Words())
				}
				break
			}
			it.Replies = append(it.Replies, r)
			if r == transcript.Closed {
				break
			}
			wait = time.Millisecond
			if p.srv == nil {
				wait = 5 * time.Millisecond
			}
		}
		if it.Any && len(old) > 0 || keep {
			it.Replies = old
		}
		if len(it.Replies) == 0 {
			c.owes++
			p.settle([]*transcript.Item{it}, before, owing)
		}
		for n := range 10 {
			other := p.clients[n]
			if n == 0 || other == nil || n == it.Client || other.Closed {
				continue
			}
			for {
				r, err := other.Receive(5 * time.Millisecond)
				if err != nil {
					break
				}
				early[n]++
				out = append(out, &transcript.Item{Client: n, Text: []string{strconv.Itoa(n) + "<"}, Replies: []string{r}})
				if r == transcript.Closed {
					break
				}
			}
		}
	}
	s.Items = out
	for n, c := range p.clients {
		if n != 0 {
			c.NC.Close()
			delete(p.clients, n)
		}
	}
}

// allAtOnce runs subtests, of which each spends most of its time waiting, all at once. With
// t.Parallel, as many would run as there are cores.
func allAtOnce(t *testing.T, tests map[string]func(*testing.T)) {
	var all sync.WaitGroup
	for name, test := range tests {
		all.Go(func() { t.Run(name, test) })
	}
	all.Wait()
}
