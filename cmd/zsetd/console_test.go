package main

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/servertest/port"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// TestConsole starts the program with a console, asks it and stops the program through it.
func TestConsole(t *testing.T) {
	port, err := port.Free()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	done := make(chan int, 1)
	go func() {
		done <- run([]string{"--port", "0", "--unixsocket", filepath.Join(t.TempDir(), "s"), "--dbfilename", "", "--http-port", port, "--http-bind", "127.0.0.1"}, &out, &out)
	}()
	post := func(body string) string {
		res, err := http.Post("http://127.0.0.1:"+port+"/command", "application/json", strings.NewReader(body))
		if err != nil {
			return err.Error()
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		return string(b)
	}
	wait.Until(t, "the console serves", func() bool { return strings.Contains(post(`["PING"]`), "PONG") })
	if got := post(`["CONFIG","GET","http-port"]`); got != `{"result":[["http-port","`+port+`"]]}`+"\n" {
		t.Errorf("CONFIG GET: %s", got)
	}
	if got := post(`["CONFIG","SET","http-port","1"]`); !strings.Contains(got, "error") {
		t.Errorf("CONFIG SET: %s", got)
	}
	if res, err := http.Get("http://127.0.0.1:" + port + "/log"); err != nil {
		t.Error(err)
	} else {
		b, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if !strings.Contains(string(b), "starting zsetd") {
			t.Errorf("/log: %s", b)
		}
	}
	post(`["SHUTDOWN"]`)
	if status := <-done; status != 0 {
		t.Errorf("status %d: %s", status, &out)
	}
	if want := "url=http://127.0.0.1:" + port + "/"; !strings.Contains(out.String(), want) {
		t.Errorf("the log has no %s: %s", want, &out)
	}
}

// TestConsoleErrors checks that a console that cannot be served prevents the start.
func TestConsoleErrors(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, taken, _ := net.SplitHostPort(l.Addr().String())
	for name, one := range map[string]struct {
		args   []string
		status int
		want   string
	}{
		"a port in use":    {[]string{"--http-port", taken}, 1, "zsetd: http-port: listen tcp4 127.0.0.1:" + taken},
		"another machine":  {[]string{"--http-port", taken, "--http-bind", "192.0.2.77"}, 1, "zsetd: http-port: listen tcp4 192.0.2.77:" + taken},
		"no certificate":   {[]string{"--http-port", taken, "--http-tls", "yes"}, 2, "tls-cert-file"},
		"a URL as a host":  {[]string{"--http-hosts", "http://x"}, 2, "host"},
		"a path":           {[]string{"--http-origins", "http://x/y"}, 2, "origin"},
		"a port too large": {[]string{"--http-port", "70000"}, 2, "http-port"},
	} {
		var out bytes.Buffer
		args := append([]string{"--port", "0", "--unixsocket", filepath.Join(t.TempDir(), "s"), "--dbfilename", ""}, one.args...)
		if status := run(args, &out, &out); status != one.status || !strings.Contains(out.String(), one.want) {
			t.Errorf("%s: status %d, %s", name, status, &out)
		}
	}
}

func TestConsoleURL(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:80": "http://127.0.0.1:80/", "[::1]:80": "http://[::1]:80/", "0.0.0.0:80": "http://localhost:80/", "[::]:80": "http://localhost:80/",
	} {
		tcp, err := net.ResolveTCPAddr("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if got := consoleURL("http", tcp); got != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
}
