package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

func TestWords(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "redis.conf")
	if err := os.WriteFile(bad, []byte("# a comment\nmaxclients many\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args   string
		status int
		says   string
	}{
		{"--help", 0, "--version"},
		{"--port 7000 --help", 0, "Usage: zsetd [redis.conf]"},
		{"ping --help", 0, "Usage: zsetd ping "},
		{"ping --port 7000 -h", 0, "Usage: zsetd ping "},
		{"help ping", 0, "Usage: zsetd ping "},
		{"--check-config --help", 0, "Usage: zsetd --check-config "},
		{"help nosuch", 2, "unknown command or parameter nosuch\nTry 'zsetd --help'.\n"},
		{"bogus", 2, "unknown command bogus, and no configuration file of that name\nTry 'zsetd --help'.\n"},
		{"bogus.conf", 2, "cannot open the configuration file bogus.conf: "},
		{"-p 7000", 2, "unknown option -p: parameters begin with two dashes, as in --port 7000\nTry 'zsetd --help'.\n"},
		{"--port x", 2, "Try 'zsetd --help'."},
		{"--port=x", 2, "'port \"x\"': argument couldn't be parsed into an integer"},
		{"--requirepass --help --port x", 2, "argument couldn't be parsed into an integer"},
		{"ping --port=x", 2, "Try 'zsetd ping --help'."},
		{"--check-config --port=x", 1, "Try 'zsetd --check-config --help'."},
		{"--check-config --port=7000 --dbfilename=", 0, "the configuration is valid"},
		{"--nosuch 1", 2, "'nosuch \"1\"': Bad directive"},
		{"--maxclients 0", 2, "argument must be between 1 and"},
		{"/nowhere/redis.conf", 2, "no such file"},
		{bad, 2, bad + ":2: >>> 'maxclients many': argument couldn't be parsed into an integer"},
		{"--port 0 --dbfilename x.db --dir " + t.TempDir(), 1, "nothing to listen on"},
		{"--dir /nowhere", 2, "no such file"},
		{"--dbfilename a/b", 2, "dbfilename can't be a path"},
	} {
		var out bytes.Buffer
		if status := run(strings.Fields(test.args), &out, &out); status != test.status || !strings.Contains(out.String(), test.says) {
			t.Errorf("zsetd %s: status %d, want %d; it says %q, not %q", test.args, status, test.status, out.String(), test.says)
		}
	}
}

// The first line of --version is the version of zsetd. From the second tools read a
// version, as from Redis's.
func TestVersion(t *testing.T) {
	fields := regexp.MustCompile(`^zsetd (\S+)\nzsetd server v=(\d+)\.(\d+)\.(\d+) sha=[0-9a-f]{8}:[01] malloc=go bits=(32|64) build=[0-9a-f]{16} zsetd=(\S+) go=\S+\n$`)
	for _, arg := range []string{"--version", "-v", "version"} {
		var out, errs bytes.Buffer
		status := run([]string{arg}, &out, &errs)
		m := fields.FindStringSubmatch(out.String())
		if status != 0 || errs.Len() > 0 || m == nil || m[1] != m[6] {
			t.Errorf("zsetd %s: status %d, %q, %q", arg, status, &out, &errs)
		}
	}
	srv, err := server.New(server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	info, err := srv.Do(t.Context(), "INFO", "server")
	if err != nil {
		t.Fatal(err)
	}
	_, version, _ := strings.Cut(fmt.Sprint(info), "redis_version:")
	version, _, _ = strings.Cut(version, "\r\n")
	if !strings.Contains(server.Version(), " v="+version+" ") {
		t.Errorf("%s, while INFO says %s", server.Version(), version)
	}
}

// SIGINT and SIGTERM end the server with status 0; connected clients receive the
// replies to their commands.
func TestSignals(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no signals to send")
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		socket := filepath.Join(t.TempDir(), "s")
		var out bytes.Buffer
		status := make(chan int)
		go func() {
			status <- run([]string{"--port", "0", "--unixsocket", socket, "--dir", filepath.Dir(socket)}, &out, &out)
		}()
		var nc net.Conn
		if !wait.Holds(func() bool { nc, err = net.Dial("unix", socket); return err == nil }) {
			t.Fatal(err)
		}
		r := bufio.NewReader(nc)
		if _, err := nc.Write([]byte("SET k v\r\nGET k\r\n")); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"+OK\r\n", "$1\r\n", "v\r\n"} {
			if got, err := r.ReadString('\n'); got != want || err != nil {
				t.Fatalf("got %q, %v", got, err)
			}
		}
		if err := self.Signal(sig); err != nil {
			t.Fatal(err)
		}
		select {
		case got := <-status:
			if got != 0 {
				t.Errorf("%v: status %d; %s", sig, got, out.String())
			}
		case <-time.After(time.Minute):
			t.Fatalf("%v does not end the server", sig)
		}
		if _, err := r.ReadByte(); err == nil {
			t.Errorf("%v: the connection is still open", sig)
		}
		nc.Close()
	}
}
