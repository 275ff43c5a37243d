package main

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// Tests of the files that users copy, Dockerfile and zsetd.conf, and of what must agree with
// them in a release. server/e2e/packages tests the packages.

// dockerfile returns the options, the entry point and the health check in the
// Dockerfile.
func dockerfile(t *testing.T) (options string, entrypoint, health []string) {
	t.Helper()
	b, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	list := func(text string) (words []string) {
		if err := json.Unmarshal([]byte(text), &words); err != nil {
			t.Fatalf("%s: %v", text, err) // there is no shell in the image
		}
		return words
	}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		switch word, rest, _ := strings.Cut(line, " "); word {
		case "ENV":
			name, value, _ := strings.Cut(rest, "=")
			if words, ok := protocol.SplitArgs(nil, []byte(value)); name == optionsVariable && ok && len(words) == 1 {
				options = string(words[0])
			}
		case "ENTRYPOINT":
			entrypoint = list(rest)
		case "HEALTHCHECK":
			_, command, _ := strings.Cut(rest, "CMD ")
			health = list(command)
		}
	}
	return options, entrypoint, health
}

// The arguments of "docker run" are those of zsetd: parameters, a configuration file, a
// tool, or ping.
func TestDockerfile(t *testing.T) {
	options, entrypoint, health := dockerfile(t)
	if len(entrypoint) != 1 || len(health) < 2 || health[0] != entrypoint[0] || options == "" {
		t.Fatalf("ENTRYPOINT %q, HEALTHCHECK %q, %s=%q", entrypoint, health, optionsVariable, options)
	}
	t.Setenv(optionsVariable, options)
	dir := shortDir(t)
	t.Chdir(dir) // WORKDIR
	call := func(args ...string) (int, string) {
		var out bytes.Buffer
		return run(append(entrypoint[1:], args...), &out, &out), out.String()
	}
	for name, text := range map[string]string{
		"my.conf":  "maxclients 7\n",
		"own.conf": "bind 127.0.0.1\n",
		"bad.conf": "bind 127.0.0.1\nport x\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for args, want := range map[string]string{
		"":                  "* -::*",
		"my.conf":           "* -::*",
		"own.conf":          "127.0.0.1",
		"--bind 127.0.0.1":  "127.0.0.1",
		"my.conf --port 70": "* -::*",
	} {
		if values, err := readArgs(strings.Fields(args)); err != nil || values["bind"] != want {
			t.Errorf("%q: bind %q, %v; want %q", args, values["bind"], err, want)
		}
	}
	if status, says := call("bad.conf"); status != 2 || !strings.Contains(says, "bad.conf:2") {
		t.Errorf("bad.conf: %d, %s", status, says)
	}
	if runtime.GOOS == "windows" {
		return
	}
	t.Setenv(optionsVariable, options+" --port 0 --unixsocket "+filepath.Join(dir, "s"))
	if status, says := call(health[1:]...); status != 1 {
		t.Errorf("without a server the health check says %d, %s", status, says)
	}
	done := make(chan string)
	go func() {
		_, says := call("my.conf")
		done <- says
	}()
	status, says := 1, ""
	if !wait.Holds(func() bool { status, says = call(health[1:]...); return status == 0 }) {
		t.Fatalf("the health check says %d, %s", status, says)
	}
	nc, err := net.Dial("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.Write([]byte("SET k v\r\nCONFIG GET maxclients\r\nSHUTDOWN\r\n"))
	if log := <-done; !strings.Contains(log, "starting zsetd") {
		t.Errorf("the log: %s", log)
	}
	if status, says := call("check", "zsetd.db"); status != 0 || !strings.Contains(says, "zsetd.db is sound") {
		t.Errorf("check: %d, %s", status, says)
	}
}

// The image of a release differs from that of a clone in the origin of the program only.
func TestReleaseImage(t *testing.T) {
	settings := func(name string) string {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		_, image, ok := strings.Cut(string(b), "\nFROM scratch\n")
		_, text, ok2 := strings.Cut(image, "\nUSER ")
		if !ok || !ok2 || !strings.Contains(image, "--chown=65532:65532 ") {
			t.Errorf("%s has no FROM scratch with a directory of the user, and USER after it", name)
		}
		return text
	}
	if clone, release := settings("Dockerfile"), settings("package/Dockerfile"); clone != release {
		t.Errorf("the image of a clone has\n%s\nand that of a release\n%s", clone, release)
	}
}

// The workflows use the version of Go in go.mod. They do not read it there: that would be
// its first release, without the corrections.
func TestWorkflowGo(t *testing.T) {
	b, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(b)
	for _, name := range []string{"ci.yml", "release.yml"} {
		b, err := os.ReadFile("../../.github/workflows/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if want := `go-version: "` + string(version[1]) + `" `; !strings.Contains(string(b), want) {
			t.Errorf("%s does not have %s", name, want)
		}
	}
}

// Errors in the variable are reported with its name.
func TestOptionsVariable(t *testing.T) {
	for options, want := range map[string]string{
		"--port 'x":   "ZSETD_OPTIONS: unbalanced quotes",
		"--port x":    "ZSETD_OPTIONS: command line: >>> 'port \"x\"'",
		"my.conf":     "ZSETD_OPTIONS: my.conf is not a parameter",
		"--nosuch=1 ": "ZSETD_OPTIONS: ",
	} {
		t.Setenv(optionsVariable, options)
		var out bytes.Buffer
		if status := run([]string{"--port", "0"}, &out, &out); status != 2 || !strings.Contains(out.String(), want) {
			t.Errorf("%s: status %d, %s", options, status, &out)
		}
	}
}

// The example of a configuration file is valid, and so is each line that is
// commented out. Where the table has a default, the line shows it.
func TestExampleConfig(t *testing.T) {
	var out bytes.Buffer
	if status := run([]string{"--check-config", "zsetd.conf"}, &out, &out); status != 0 {
		t.Errorf("status %d, %s", status, &out)
	}
	b, err := os.ReadFile("zsetd.conf")
	if err != nil {
		t.Fatal(err)
	}
	examples := map[string]bool{"maxmemory": true, "unixsocketperm": true, "dbfilename": true, "tls-port": true, "http-port": true, "http-hosts": true, "save": true, "backup-every": true}
	parameter := regexp.MustCompile(`^(?:# )?([a-z][a-z-]+) (\S.*)$`)
	n := 0
	for line := range strings.Lines(string(b)) {
		m := parameter.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil || strings.HasSuffix(m[2], ".") && m[1] != "dir" { // empty, or a sentence
			continue
		}
		name, value := m[1], m[2]
		if strings.HasPrefix(line, "# ") && strings.Contains(value, " ") && name != "save" && name != "user" {
			continue // continuation of a sentence
		}
		n++
		if _, err := server.ReadArgs(append([]string{"--" + name}, strings.Fields(value)...)); err != nil {
			t.Errorf("%s %s: %v", name, value, err)
		}
		if p, _ := findParameter(name); p.Default != value && p.Default != "" && !examples[name] {
			t.Errorf("the default of %s is %s, not %s", name, p.Default, value)
		}
	}
	if n < 25 {
		t.Errorf("only %d parameters are seen", n)
	}
}
