package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server"
)

// A start beside another server names the parameters that let both run.
func TestSecondServer(t *testing.T) {
	dir := t.TempDir()
	srv, err := server.New(server.Options{Config: map[string]string{"dir": dir, "dbfilename": defaultFile, "port": "0"}})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, taken, _ := net.SplitHostPort(l.Addr().String())
	by := ""
	if runtime.GOOS == "linux" { // the owner of the port is this program
		comm, err := os.ReadFile("/proc/self/comm")
		if err != nil {
			t.Fatal(err)
		}
		by = fmt.Sprintf(" by %s (process %d)", strings.TrimSpace(string(comm)), os.Getpid())
	}
	socket := []string{"--port", "0", "--unixsocket", filepath.Join(dir, "s")}
	memory := []string{"--dbfilename", "", "--bind", "127.0.0.1"}
	for name, one := range map[string]struct {
		args []string
		want []string
	}{
		"the file":             {append(socket, "--dir", dir), []string{": in use by this process; ", "--dbfilename other.db", "--port", "--http-port"}},
		"the port":             {append(memory, "--port", taken), []string{by + "; --port chooses another port"}},
		"the port for TLS":     {append(memory, "--port", "0", "--tls-port", taken), []string{by + "; --tls-port chooses another port"}},
		"the port for console": {append(append(memory, socket...), "--http-bind", "127.0.0.1", "--http-port", taken), []string{by + "; --http-port chooses another port", "--http-port 0", "HTTP=0"}},
	} {
		if name == "the port for TLS" {
			certificate := filepath.Join(dir, "tls")
			writeCertificate(t, certificate)
			one.args = append(one.args, "--tls-cert-file", certificate+".crt", "--tls-key-file", certificate+".key", "--tls-auth-clients", "no")
		}
		status, text := printed(one.args...)
		for _, want := range one.want {
			if status != 1 || !strings.Contains(text, want) {
				t.Errorf("%s: status %d, it says %q, not %q", name, status, text, want)
			}
		}
	}
}

// An error in the declaration of a user is followed by the form of one.
func TestUserAdvice(t *testing.T) {
	for _, args := range [][]string{{"--user", "page on >pw"}, {"--user", "page", "onn"}, {"--check-config", "--user", "page on >pw"}} {
		status, text := printed(append(args, "--port", "0", "--dbfilename", "")...)
		if status == 0 || !strings.Contains(text, "; the name and each rule are words of their own: --user page on '>password' '~key*'") {
			t.Errorf("zsetd %q: status %d, %s", args, status, text)
		}
	}
}
