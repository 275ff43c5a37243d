package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/servertest"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

func TestCLI(t *testing.T) {
	srv := servertest.Run(t)
	host, port, err := net.SplitHostPort(srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args, stdin  string
		status       int
		stdout, errs string
	}{
		{args: "SET a 1", stdout: "OK\n"},
		{args: "--no-raw GET a", stdout: "\"1\"\n"},
		{args: "-n 3 GET a", stdout: "\n"},
		{args: "-r 2 -i 0.001 GET a", stdout: "1\n1\n"},
		{args: "GET -1", stdout: "\n"}, // the flags end at the command
		{args: "-x SET b", stdin: "text\n", stdout: "OK\n"},
		{args: "-X V SETRANGE b 0 V", stdin: "T", stdout: "5\n"},
		{args: "-X V SET b", stdin: "T", status: 2, errs: "zsetd cli: -X V: the command has no argument V: SET b\n"},
		{args: "--json MGET a b none", stdout: "[\"1\",\"Text\\n\",null]\n"},
		{args: "--json -2 CONFIG GET save", stdout: "[\"save\",\"\"]\n"},
		{args: "--csv MGET a b", stdout: "\"1\",\"Text\\n\"\n"},
		{args: "-d , -D ! MGET a a", stdout: "1,1!"},
		{args: "-3 CONFIG GET save", stdout: "save \n"},
		{args: "NOSUCH", stdout: "ERR unknown command 'NOSUCH'\n\n"},
		{args: "-e NOSUCH", status: 1, errs: "ERR unknown command 'NOSUCH'\n"},
		{stdin: "GET a\nGET none\nPING", stdout: "1\n\nPONG\n"},
		{args: "--json", stdin: "GET a\nquit\nGET a\n", stdout: "\"1\"\n"},
		{args: "-a x PING", stdout: "PONG\n", errs: "AUTH failed: ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?\n"},
		{args: "--show-pushes maybe PING", status: 2, errs: "zsetd cli: --show-pushes must be yes or no, not \"maybe\"\n"},
		{args: "-p 1 PING", status: 1, errs: "Could not connect to 127.0.0.1:1: connection refused\n"},
		{args: "-p 1", status: 1, errs: "Could not connect to 127.0.0.1:1: connection refused\n"},
	} {
		status, stdout, errs := call(test.stdin, append([]string{"cli", "-h", host, "-p", port}, strings.Fields(test.args)...)...)
		if status != test.status || stdout != test.stdout || errs != test.errs {
			t.Errorf("zsetd cli %s: %d, %q, %q, want %d, %q, %q", test.args, status, stdout, errs, test.status, test.stdout, test.errs)
		}
	}
	if status, _, errs := call("", "cli", "--nosuch"); status != 2 || !strings.HasPrefix(errs, "zsetd cli: there is no option --nosuch\n") {
		t.Errorf("%d, %q", status, errs)
	}
}

// The prompt on a terminal: hints, completion, history and interrupts. The terminal is
// that of tmux.
func TestCLITerminal(t *testing.T) {
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed")
	}
	srv := servertest.Run(t, server.Options{})
	_, port, _ := net.SplitHostPort(srv.Addr())
	dir := shortDir(t)
	history := filepath.Join(dir, "history")
	if err := os.WriteFile(history, []byte("ECHO remembered\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tmux := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("tmux", append([]string{"-f", os.DevNull, "-S", filepath.Join(dir, "tmux")}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("tmux %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	tmux("new-session", "-d", "-x", "100", "-y", "40",
		"-e", stopEnv+"=cli -p "+port, "-e", "REDISCLI_HISTFILE="+history, "-e", "HOME="+dir, os.Args[0]+" -test.run=^TestStopChild$; echo the end; cat")
	t.Cleanup(func() { tmux("kill-server") })
	at := srv.Addr()
	shows := func(what string) {
		t.Helper()
		screen := ""
		if !wait.Holds(func() bool {
			screen = tmux("capture-pane", "-p")
			return strings.Contains(screen, what)
		}) {
			t.Fatalf("the screen lacks %q:\n%s", what, screen)
		}
	}
	types := func(keys ...string) { t.Helper(); tmux(append([]string{"send-keys"}, keys...)...) }
	shows(at + ">")
	types("hset k f ")
	shows(at + "> hset k f value [field value ...]")
	types("v", "Enter")
	shows(at + "> hset k f v\n(integer) 1\n" + at + ">")
	types("hgetal", "Tab", "k", "Enter")
	shows(at + "> hgetall k\n1) \"f\"\n2) \"v\"\n" + at + ">")
	types("Up", "Up", "Up", "Enter")
	shows(at + "> ECHO remembered\n\"remembered\"\n")
	types("AUTH user secret", "Enter")
	shows("(error) WRONGPASS")
	types("SUBSCRIBE news", "Enter")
	shows("3) (integer) 1\n")
	srv.Must("PUBLISH", "news", "hello")
	shows("3) \"hello\"\n")
	types("C-c")
	shows("^C\n" + at + ">")
	types("C-r", "ECH", "C-a")
	shows(at + "> ECHO remembered\n\n")
	types("C-c")
	shows("ECHO remembered^C\n" + at + ">")
	types("C-c")
	shows("the end")
	b, err := os.ReadFile(history)
	if want := "ECHO remembered\nhset k f v\nhgetall k\nECHO remembered\nSUBSCRIBE news\n"; err != nil || string(b) != want {
		t.Errorf("the history is %q, %v, want %q", b, err, want)
	}
}
