package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server"
)

// Sockets that systemd has opened are served.
func TestSocketActivation(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no systemd")
	}
	dir := shortDir(t)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	unix, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close()
	var files []*os.File
	for _, l := range []interface{ File() (*os.File, error) }{tcp.(*net.TCPListener), unix.(*net.UnixListener)} {
		f, err := l.File()
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files = append(files, f)
	}
	var log bytes.Buffer
	child := exec.Command(os.Args[0], "-test.run=^TestStopChild$")
	child.Env = append(os.Environ(), "LISTEN_PID=self", "LISTEN_FDS="+strconv.Itoa(len(files)), "LISTEN_FDNAMES=redis:unix",
		stopEnv+"=--port 1 --unixsocket /nowhere/s --dir "+dir)
	child.ExtraFiles = files
	child.Stdout, child.Stderr = &log, &log
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Process.Kill()
	for _, l := range []net.Listener{unix, tcp} {
		nc, err := net.Dial(l.Addr().Network(), l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		nc.SetDeadline(time.Now().Add(time.Minute))
		fmt.Fprint(nc, "PING\r\n")
		if line, err := bufio.NewReader(nc).ReadString('\n'); line != "+PONG\r\n" {
			t.Fatalf("%s: %q, %v", l.Addr().Network(), line, err)
		}
	}
	if err := child.Process.Signal(syscall.SIGHUP); err != nil { // which has no effect
		t.Fatal(err)
	}
	nc, err := net.Dial("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(nc, "SHUTDOWN\r\n")
	io.Copy(io.Discard, nc)
	if err := child.Wait(); err != nil {
		t.Errorf("%v: %s", err, &log)
	}
	if _, err := os.Stat(filepath.Join(dir, "s")); err != nil {
		t.Errorf("the socket that belongs to systemd is gone: %v", err)
	}
}

// --check-config prints the errors of a start, and changes nothing.
func TestCheckConfig(t *testing.T) {
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good.conf"), filepath.Join(dir, "bad.conf")
	for path, text := range map[string]string{
		good: "port 7000\nuser alice on >x ~* +@all\nrename-command KEYS \"\"\ndir " + dir + "\nlogfile " + filepath.Join(dir, "log") + "\n",
		bad:  "port 7000\nmaxclients many\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	file := func(name, content string) string {
		t.Helper()
		dir := filepath.Join(t.TempDir(), name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "zsetd.db"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	used := filepath.Join(t.TempDir(), "used.db")
	srv, err := server.New(server.Options{File: used})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	sound, err := os.ReadFile(used)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(filepath.Dir(used), "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"--check-config --dir " + filepath.Dir(used) + " --dbfilename used.db":                                    "", // a server has it open
		"--check-config --dir " + filepath.Dir(used) + " --dbfilename folder":                                     "is a directory",
		"--check-config --dir " + file("empty", ""):                                                               "",
		"--check-config --dir " + file("text", strings.Repeat("something ", 99)):                                  "not a zsetd snapshot",
		"--check-config --dir " + file("rdb", "REDIS0011 and so on"):                                              "zsetd import",
		"--check-config --dir " + file("short", string(sound[:5000])):                                             "damaged: truncated",
		"--check-config --dir " + file("head", "x"+strings.Repeat("\x00", 99)+string(sound[100:])):                "damaged: page 0",
		"--check-config --dir " + file("manifest", strings.ReplaceAll(string(sound), "last_space", "last_spade")): "damaged: invalid manifest",
		"--check-config --pidfile /nowhere/pid":                                                                   "pidfile: stat /nowhere",
		"--check-config --pidfile " + dir:                                                                         "is a directory",
		"--check-config --unixsocket /nowhere/s":                                                                  "unixsocket: ",
		"--check-config --logfile /dev/null --pidfile /dev/null":                                                  "",
		"--check-config " + good:                                                                                  "",
		good + " --check-config --port " + port:                                                                   "", // a server is running
		"--check-config":                                                                                          "",
		"--check-config " + bad:                                                                                   bad + ":2: >>> 'maxclients many': argument couldn't be parsed into an integer",
		"--check-config /nowhere/x.conf":                                                                          "no such file",
		"--check-config --nosuch 1":                                                                               "Bad directive",
		"--check-config --port 0":                                                                                 "nothing to listen on",
		"--check-config --dir /nowhere":                                                                           "no such file",
		"--check-config --logfile /nowhere/log":                                                                   "logfile: ",
		"--check-config --aclfile /nowhere/acl":                                                                   "/nowhere/acl",
		"--check-config --user alice on nosuchrule":                                                               "nosuchrule",
		"--check-config --rename-command NOSUCH X":                                                                "rename-command",
		"--check-config --tls-port 7001":                                                                          "No tls-cert-file configured!",
		"--check-config --tls-port 7001 --tls-auth-clients no --tls-cert-file /nowhere --tls-key-file /nowhere":   "Failed to load certificate: open /nowhere",
	} {
		var out, errs bytes.Buffer
		status := run(strings.Fields(args), &out, &errs)
		if want == "" && (status != 0 || errs.Len() > 0) || want != "" && (status != 1 || !strings.Contains(errs.String(), want)) {
			t.Errorf("zsetd %s: status %d, %q%q, want %q", args, status, &out, &errs, want)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("there are files that were not there: %v, %v", entries, err)
	}
}
