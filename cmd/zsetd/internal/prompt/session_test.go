package prompt

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/zsetd/zsetd/cmd/zsetd/internal/client"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/servertest"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// text is an output that a test reads while it is written.
type text struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *text) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(b)
}

func (w *text) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// options returns options for a server.
func options(srv *servertest.Server) Options {
	host, port, _ := strings.Cut(srv.Addr(), ":")
	return Options{Options: client.Options{Host: host, Port: port}, Delimiter: "\n", End: "\n", Repeat: 1, Table: server.Commands()}
}

// typist is an editor whose lines a test types.
type typist struct {
	lines   []func() (string, error)
	prompts []string
	history []string
	hints   []bool
	cleared int
}

func (e *typist) read(prompt string) (string, error) {
	e.prompts = append(e.prompts, prompt)
	if len(e.lines) == 0 {
		return "", io.EOF
	}
	line := e.lines[0]
	e.lines = e.lines[1:]
	return line()
}

func (e *typist) types(lines ...string) *typist {
	for _, line := range lines {
		e.lines = append(e.lines, func() (string, error) { return line, nil })
	}
	return e
}

func (e *typist) remember(line string) { e.history = append(e.history, line) }
func (e *typist) clear()               { e.cleared++ }
func (e *typist) setHints(on bool)     { e.hints = append(e.hints, on) }

func TestPrompts(t *testing.T) {
	srv := servertest.Run(t)
	o := options(srv)
	var out, errs text
	e := (&typist{}).types("select 3", "multi", "set a 1", "exec", "multi", "select 4", "discard", "reset", "select 99",
		"2 ping", "0 ping", "bad \"quote", "", "clear", ":set nohints", "connect "+o.Host+" 1", "ping", "connect "+o.Host+" "+o.Port)
	e.lines = append(e.lines, func() (string, error) { return "", errInterrupted })
	e.types("get a", " auth secret", "quit", "not reached")
	if err := New(o, &out, &errs).runPrompt(e); err != nil {
		t.Fatal(err)
	}
	at := srv.Addr()
	want := []string{at + "> ", at + "[3]> ", at + "[3](TX)> ", at + "[3](TX)> ", at + "[3]> ", at + "[3](TX)> ", at + "[4](TX)> ", at + "[3]> ", at + "> ", at + "> ",
		at + "> ", at + "> ", at + "> ", at + "> ", at + "> ", at + "> ", "not connected> ", "not connected> ", at + "> ", at + "> ", at + "> ", at + "> "}
	if strings.Join(e.prompts, "|") != strings.Join(want, "|") {
		t.Errorf("the prompts are\n%q, want\n%q", e.prompts, want)
	}
	wantOut := "OK\nOK\nQUEUED\n1) OK\nOK\nQUEUED\nOK\nRESET\n(error) ERR DB index is out of range\nPONG\nPONG\n" +
		"Invalid number of repetitions: want 1 or more.\nInvalid argument(s)\n(nil)\n"
	if got, _, _ := strings.Cut(out.String(), "(error) ERR AUTH"); got != wantOut {
		t.Errorf("the output is\n%s, want\n%s", got, wantOut)
	}
	if got, want := errs.String(), "Could not connect to "+o.Host+":1: connection refused\n"; got != want+want {
		t.Errorf("the errors are %q", got)
	}
	if e.cleared != 1 || len(e.hints) != 1 || e.hints[0] || strings.Contains(strings.Join(e.history, "\n"), "secret") || len(e.history) != 19 {
		t.Errorf("cleared %d, hints %v, history of %d: %q", e.cleared, e.hints, len(e.history), e.history)
	}
}

// An interrupt ends a stream and a command that waits; the prompt goes on with a new
// connection.
func TestInterrupts(t *testing.T) {
	srv := servertest.Run(t)
	o := options(srv)
	interrupts := make(chan os.Signal)
	o.Interrupts = interrupts
	var out, errs text
	e := (&typist{}).types("SUBSCRIBE news", "MONITOR", "BLPOP q 0", "PING")
	ended := make(chan error)
	go func() { ended <- New(o, &out, &errs).runPrompt(e) }()
	shows := func(what string) {
		t.Helper()
		wait.Until(t, "the prompt shows "+what, func() bool { return strings.Contains(out.String(), what) })
	}
	shows("Reading messages... (press Ctrl-C to quit)\n1) \"subscribe\"\n2) \"news\"\n3) (integer) 1\n")
	srv.Must("PUBLISH", "news", "hello")
	shows("1) \"message\"\n2) \"news\"\n3) \"hello\"\n")
	interrupts <- os.Interrupt
	shows("OK\n")
	srv.Must("SET", "a", 1)
	shows(`"SET" "a" "1"` + "\n")
	interrupts <- os.Interrupt
	wait.Until(t, "BLPOP waits", func() bool { return strings.Contains(srv.Must("CLIENT", "LIST").(string), "cmd=blpop") })
	interrupts <- os.Interrupt
	shows("PONG\n")
	if err := <-ended; err != nil || errs.String() != "" {
		t.Error(err, errs.String())
	}
}

// An interrupt ends a login that the server does not answer.
func TestInterruptedLogin(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var o Options
	o.Host, o.Port, _ = net.SplitHostPort(l.Addr().String())
	o.Password, o.Repeat = "secret", 1
	interrupts := make(chan os.Signal)
	o.Interrupts = interrupts
	var out, errs text
	ended := make(chan error)
	go func() { ended <- New(o, &out, &errs).runPrompt((&typist{}).types("PING", "quit")) }()
	for range 2 { // at the start, and by PING
		nc, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		if _, err := nc.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		interrupts <- os.Interrupt
	}
	if err := <-ended; err != nil || strings.Count(errs.String(), "Could not connect to "+l.Addr().String()+": interrupted\n") != 2 {
		t.Errorf("%v, %q", err, errs.String())
	}
}

// The server is asked for its commands once for each user, also if it refuses, and a
// database that it refuses is not shown.
func TestLearn(t *testing.T) {
	srv := servertest.Run(t, server.Options{Config: map[string]string{"requirepass": "secret"}})
	srv.Must("ACL", "SETUSER", "poor", "on", ">p", "+ping")
	o := options(srv)
	o.DB = 99
	o.User, o.Password = "poor", "p"
	var out, errs text
	s := New(o, &out, &errs)
	e := (&typist{}).types("PING", "PING", "PING", "AUTH secret", "PING", "PING")
	if err := s.runPrompt(e); err != nil {
		t.Fatal(err)
	}
	if !s.docs || out.String() != "PONG\nPONG\nPONG\nOK\nPONG\nPONG\n" || e.prompts[0] != srv.Addr()+"> " {
		t.Errorf("%v, %q, %q", s.docs, out.String(), e.prompts)
	}
	stats := srv.Must("INFO", "commandstats").(string)
	_, docs, _ := strings.Cut(stats, "cmdstat_command|docs:")
	if docs, _, _ = strings.Cut(docs, "\r"); !strings.HasPrefix(docs, "calls=1,") || !strings.Contains(docs, "rejected_calls=1,") {
		t.Errorf("COMMAND DOCS: %s", docs)
	}
}

// A session connects again if the server has closed the connection.
func TestReconnection(t *testing.T) {
	srv := servertest.Run(t)
	var out, errs text
	e := (&typist{}).types("SELECT 2", "SET a 1")
	e.lines = append(e.lines, func() (string, error) {
		srv.Must("CLIENT", "KILL", "TYPE", "normal")
		return "GET a", nil
	})
	e.types("CLIENT KILL TYPE normal SKIPME no", "GET a")
	if err := New(options(srv), &out, &errs).runPrompt(e); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != "OK\nOK\n\"1\"\n(integer) 1\n\"1\"\n" || errs.String() != "" {
		t.Errorf("%q, %q", got, errs.String())
	}
}

// The end of the connection is the reply to SHUTDOWN.
func TestShutdown(t *testing.T) {
	var out, errs text
	e := (&typist{}).types("SHUTDOWN NOSAVE")
	if err := New(options(servertest.Run(t)), &out, &errs).runPrompt(e); err != nil || errs.String() != "" || e.prompts[1] != "not connected> " {
		t.Errorf("%v, %q, %q", err, errs.String(), e.prompts)
	}
	if err := New(options(servertest.Run(t)), &out, &errs).RunCommand([]string{"SHUTDOWN"}); err != nil || errs.String() != "" {
		t.Errorf("%v, %q", err, errs.String())
	}
}

func TestRunCommand(t *testing.T) {
	srv := servertest.Run(t)
	for _, test := range []struct {
		line, out, errs string
		change          func(*Options)
		failed          bool
	}{
		{line: "PING", out: "PONG\n"},
		{line: "PING", out: "PONG\nPONG\nPONG\n", change: func(o *Options) { o.Repeat = 3; o.Interval = 1 }},
		{line: "PING", change: func(o *Options) { o.Repeat = 0 }},
		{line: "NOSUCH", out: "(error) ERR unknown command 'NOSUCH'\n"},
		{line: "NOSUCH", errs: "ERR unknown command 'NOSUCH'\n", change: func(o *Options) { o.ExitErrors = true }, failed: true},
		{line: "PING", errs: "Could not connect to 127.0.0.1:1: connection refused\n", change: func(o *Options) { o.Port = "1" }, failed: true},
		{line: "PING", out: "PONG\n", errs: "SELECT 99 failed: ERR DB index is out of range\n", change: func(o *Options) { o.DB = 99 }},
		{line: "HELP get", out: "\n  GET key\n  summary: Read a string\n  since: 1.0.0\n  group: string\n\n"},
		{line: "help get", out: "\n  GET key\n  summary: Read a string\n  since: 1.0.0\n  group: string\n\n", change: func(o *Options) { o.Port = "1" }},
		{line: "CLIENT KILL TYPE normal SKIPME no", out: "(integer) 1\n"},
	} {
		o := options(srv)
		if test.change != nil {
			test.change(&o)
		}
		var out, errs text
		err := New(o, &out, &errs).RunCommand(strings.Fields(test.line))
		if out.String() != test.out || errs.String() != test.errs || errors.Is(err, ErrFailed) != test.failed {
			t.Errorf("%s: %q, %q, %v, want %q, %q", test.line, out.String(), errs.String(), err, test.out, test.errs)
		}
	}
}

// redisCLIs returns the programs of Redis to compare with: that of the PATH, and that
// beside the server in ZSETD_JUDGE_REDIS8.
func redisCLIs(t *testing.T) (paths []string) {
	if path, err := exec.LookPath("redis-cli"); err == nil {
		paths = append(paths, path)
	}
	if newer := os.Getenv("ZSETD_JUDGE_REDIS8"); newer != "" {
		if path := filepath.Join(filepath.Dir(newer), "redis-cli"); exec.Command(path, "--version").Run() == nil {
			paths = append(paths, path)
		}
	}
	if len(paths) == 0 {
		t.Skip("redis-cli is not installed")
	}
	return paths
}

// comparedCommands have replies of all kinds, which do not depend on the time.
const comparedCommands = `
SET j "a\"\\\n\r\t\b\f\x01\x1f\x7f/\xc3\xa9\xff"
GET j
GET none
PING "two words"
NOSUCH a b
INCR j
INCR n
RPUSH l a "b\"\xff\n" c d e f g h i j k
LRANGE l 0 -1
LRANGE none 0 -1
HSET h a 1 b 2
HGETALL h
HGETALL none
SADD s 1
SMEMBERS s
SMEMBERS none
ZADD z 1 a 2.5 b inf c
ZRANGE z 0 -1 WITHSCORES
ZSCORE z b
XADD x 1-1 f v
XADD x 1-2 f v g w
XRANGE x - +
XREAD STREAMS x 0
CONFIG GET save
COMMAND INFO get none
COMMAND DOCS none
EVAL "return {1,{2,{3,'x',{'y'}}},'z',{},false}" 0
EVAL "redis.setresp(3) return {map={a=1}}" 0
EVAL "redis.setresp(3) return {map={b={map={c={1,2}}}}}" 0
EVAL "redis.setresp(3) return {double=3.5}" 0
EVAL "redis.setresp(3) return true" 0
DEBUG PROTOCOL double
DEBUG PROTOCOL null
DEBUG PROTOCOL set
DEBUG PROTOCOL map
DEBUG PROTOCOL verbatim
DEBUG PROTOCOL true
DEBUG PROTOCOL push
CLIENT LIST ID 99999999
CLUSTER INFO
MEMORY DOCTOR
INFO nosuch
INFO keyspace
LATENCY DOCTOR
MULTI
GET a
SELECT 3
NOSUCH
EXEC
EXEC
SELECT 3
CLIENT GETNAME
bad "quote
3 PING
0 PING

  PING  
CLIENT TRACKING ON
GET j
SET j 2
PING
RESET
PING
QUIT
PING
`

// TestAgainstRedisCLI compares what a session prints with what redis-cli prints for the
// same commands.
func TestAgainstRedisCLI(t *testing.T) {
	for _, path := range redisCLIs(t) {
		for _, args := range []string{"--no-raw", "--raw", "--csv", "--json", "--no-raw -3", "--raw -3", "--csv -3", "--json -2",
			"--no-raw -3 --show-pushes yes", "--raw -d , -D !"} {
			run := func(session func(Options) string) string {
				srv := servertest.Run(t, server.Options{Config: map[string]string{"enable-debug-command": "yes"}})
				return session(options(srv))
			}
			theirs := run(func(o Options) string {
				cmd := exec.Command(path, append([]string{"-h", o.Host, "-p", o.Port}, strings.Fields(args)...)...)
				cmd.Stdin = strings.NewReader(comparedCommands)
				out, err := cmd.Output()
				if err != nil {
					t.Fatal(err)
				}
				return string(out)
			})
			ours := run(func(o Options) string {
				words := " " + args + " "
				switch {
				case strings.Contains(words, " --raw "):
					o.Form = Raw
				case strings.Contains(words, " --csv "):
					o.Form = CSV
				case strings.Contains(words, " --json "):
					o.Form, o.RESP3 = JSON, true
				}
				if strings.Contains(words, " -2 ") {
					o.RESP2, o.RESP3 = true, false
				}
				o.RESP3 = o.RESP3 || strings.Contains(words, " -3 ")
				o.Pushes = strings.Contains(words, "--show-pushes yes")
				if strings.Contains(words, " -d ") {
					o.Delimiter, o.End = ",", "!"
				}
				var out, errs text
				if err := New(o, &out, &errs).RunLines(strings.NewReader(comparedCommands)); err != nil || errs.String() != "" {
					t.Fatal(err, errs.String())
				}
				return out.String()
			})
			// JSON has no infinities, which redis-cli prints as if it had.
			theirs = strings.ReplaceAll(theirs, `["c",inf]`, `["c","inf"]`)
			// A message in words of this program's own.
			theirs = strings.ReplaceAll(theirs, "Invalid redis-cli repeat command option value.", "Invalid number of repetitions: want 1 or more.")
			if ours != theirs {
				a, b := strings.SplitAfter(ours, "\n"), strings.SplitAfter(theirs, "\n")
				for i := range a {
					if i >= len(b) || a[i] != b[i] {
						t.Errorf("%s %s: line %d is %q, want %q", path, args, i+1, a[i], append(b, "")[min(i, len(b))])
						break
					}
				}
			}
			if strings.Count(ours, "\n") < 10 {
				t.Errorf("%s %s: the output has few lines: %q", path, args, ours)
			}
		}
	}
}

func TestSecrets(t *testing.T) {
	for line, want := range map[string]bool{
		"auth x": true, "AUTH u x": true, "2 auth x": true, "acl setuser u >p": true, "acl deluser u": true, "acl list": false,
		"config set maxmemory 1 requirepass x": true, "config set masterauth x": true, "config set maxmemory 1": false, "config get requirepass": false,
		"hello 3 auth u p": true, "hello 3": false, "migrate h 1 k 0 5 auth p": true, "migrate h 1 k 0 5 auth2 u p": true, "migrate h 1 k 0 5": false,
		"get auth": false, "": false, "2": false, "sentinel set m auth-pass p": true,
	} {
		words, _ := split(line)
		if got := isSecret(words); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
}

func TestHistory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "history")
	t.Setenv(historyVariable, file)
	if got := historyFile(); got != file || readHistory(got) != nil {
		t.Errorf("%s, %q", got, readHistory(got))
	}
	for range historyLimit + 5 {
		if err := appendHistory(file, "PING"); err != nil {
			t.Fatal(err)
		}
	}
	appendHistory(file, "GET a")
	lines := readHistory(file)
	if len(lines) != historyLimit || lines[historyLimit-1] != "GET a" {
		t.Errorf("%d lines", len(lines))
	}
	if b, err := os.ReadFile(file); err != nil || bytes.Count(b, []byte("\n")) != historyLimit {
		t.Errorf("%d lines in the file, %v", bytes.Count(b, []byte("\n")), err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	t.Setenv(historyVariable, os.DevNull)
	if got := historyFile(); got != "" || appendHistory(got, "x") != nil {
		t.Errorf("%q", got)
	}
}
