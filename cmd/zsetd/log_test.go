package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/slogtest"
	"time"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

const redisLogHead = `^\d+:M \d\d [A-Z][a-z][a-z] \d{4} \d\d:\d\d:\d\d\.\d{3} `

// The default format of the log is Redis's.
func TestRedisLog(t *testing.T) {
	var out bytes.Buffer
	level := new(slog.LevelVar)
	level.Set(slog.LevelDebug)
	log := slog.New(newLogHandler(&out, "", level, new(logRole)))
	for _, test := range []struct {
		write func()
		want  string
	}{
		{func() { log.Info("Ready to accept connections tcp", "addr", "127.0.0.1:6379") }, `* Ready to accept connections tcp addr=127.0.0.1:6379`},
		{func() { log.Debug("one") }, `. one`},
		{func() { log.Log(t.Context(), slog.LevelDebug+1, "two") }, `- two`},
		{func() { log.Warn("three") }, `# three`},
		{func() { log.Error("four", "error", errors.New("no space")) }, `# four error="no space"`},
		{func() { log.Info("x", "n", 7, "f", 0.25, "b", true, "d", 2*time.Second) }, `* x n=7 f=0.25 b=true d=2s`},
		{func() { log.Info("x", "name", "", "key", "a\nb", "q", `"`, "e", "a=b") }, `* x name="" key="a\nb" q="\"" e="a=b"`},
		{func() { log.Info("1:M 01 Jan 2026 * forged\n1:M\t\x1b[2J\xff €") }, `* 1:M 01 Jan 2026 * forged\n1:M\t\x1b[2J\xff €`},
		{func() { log.With("a", 1).WithGroup("g").Info("x", "b", 2, slog.Group("h", "c", 3)) }, `* x a=1 g.b=2 g.h.c=3`},
		{func() { log.Error("panicked", "stack", "goroutine 1\n\tfile.go:7", "client", "c") }, "# panicked client=c\ngoroutine 1\n\tfile.go:7"},
	} {
		out.Reset()
		test.write()
		head := regexp.MustCompile(redisLogHead).FindString(out.String())
		if pid, _, _ := strings.Cut(head, ":"); pid != strconv.Itoa(os.Getpid()) {
			t.Errorf("%q begins with no head", out.String())
		}
		if got := out.String()[len(head):]; got != test.want+"\n" {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
	out.Reset()
	level.Set(slog.LevelWarn)
	if log.Info("quiet"); out.Len() > 0 {
		t.Errorf("a level that is off writes %q", out.String())
	}
}

// The sign of the role follows the server: its parameter until it exists, then its
// commands.
func TestLogRole(t *testing.T) {
	var out bytes.Buffer
	role := &logRole{replicaOf: "127.0.0.1 1"}
	log := slog.New(newLogHandler(&out, "redis", slog.LevelInfo, role))
	srv, err := server.New(server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	for _, step := range []struct {
		change func()
		want   string
	}{
		{func() {}, ":S "},
		{func() { role.replicaOf = "no one" }, ":M "},
		{func() { role.server.Store(srv) }, ":M "},
		{func() { srv.Do(t.Context(), "REPLICAOF", "127.0.0.1", "1") }, ":S "},
		{func() { srv.Do(t.Context(), "REPLICAOF", "NO", "ONE") }, ":M "},
	} {
		out.Reset()
		step.change()
		if log.Info("x"); !strings.HasPrefix(out.String(), strconv.Itoa(os.Getpid())+step.want) {
			t.Errorf("%q, want %q", out.String(), step.want)
		}
	}
}

// In the other formats a record, a stack included, is one line.
func TestLogFormats(t *testing.T) {
	for _, form := range []string{"logfmt", "json"} {
		var out bytes.Buffer
		log := slog.New(newLogHandler(&out, form, slog.LevelInfo, new(logRole)))
		log.Error("panicked", "stack", "goroutine 1\n\tfile.go:7")
		if strings.Count(out.String(), "\n") != 1 || !strings.Contains(out.String(), `goroutine 1\n\tfile.go:7`) {
			t.Errorf("%s: %q", form, out.String())
		}
		if form == "json" && !json.Valid(out.Bytes()) {
			t.Errorf("%q is not JSON", out.String())
		}
	}
}

// The handler conforms to the rules of slog.
func TestRedisLogHandler(t *testing.T) {
	var out bytes.Buffer
	pair := regexp.MustCompile(`([\w.]+)=("(?:[^"\\]|\\.)*"|\S+)`)
	line := regexp.MustCompile(redisLogHead + `([.*#-]) (.*)`)
	slogtest.Run(t, func(t *testing.T) slog.Handler {
		out.Reset()
		if strings.Contains(t.Name(), "zero-time") {
			t.Skip("a line always has a time, as in Redis")
		}
		return newLogHandler(&out, "redis", slog.LevelInfo, new(logRole))
	}, func(t *testing.T) map[string]any {
		m := line.FindStringSubmatch(out.String())
		if m == nil {
			t.Fatalf("%q", out.String())
		}
		rest := m[2]
		record := map[string]any{slog.TimeKey: time.Now(), slog.LevelKey: m[1], slog.MessageKey: strings.Fields(pair.ReplaceAllString(rest, "") + " -")[0]}
		for _, p := range pair.FindAllStringSubmatch(rest, -1) {
			in := record
			path := strings.Split(p[1], ".")
			for _, group := range path[:len(path)-1] {
				if in[group] == nil {
					in[group] = map[string]any{}
				}
				in = in[group].(map[string]any)
			}
			in[path[len(path)-1]] = p[2]
		}
		return record
	})
}

func BenchmarkRedisLog(b *testing.B) {
	log := slog.New(newLogHandler(io.Discard, "redis", slog.LevelInfo, new(logRole)))
	b.ReportAllocs()
	for b.Loop() {
		log.Info("Ready to accept connections tcp", "addr", "127.0.0.1:6379", "n", 7)
	}
}

// logText is a log that can be read while a server writes it.
type logText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// The log goes to standard output. It reports the start, the files in use, and that
// the server is ready.
func TestStartLog(t *testing.T) {
	dir := shortDir(t)
	t.Chdir(dir)
	for i, form := range []string{"redis", "json"} {
		socket, conf := filepath.Join(dir, "s"), filepath.Join(dir, "my.conf")
		if err := os.WriteFile(conf, []byte("port 0\nlog-format "+form+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		var out, errs logText
		status := make(chan int, 1)
		go func() { status <- run([]string{conf, "--unixsocket", socket}, &out, &errs) }()
		// It is logged by a goroutine of its own: clients may be served before.
		if !wait.Holds(func() bool { return strings.Contains(out.String(), "Ready to accept connections") }) {
			t.Fatalf("it does not start: %s%s", &out, &errs)
		}
		nc, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		io.WriteString(nc, "SHUTDOWN\r\n")
		if got := <-status; got != 0 || errs.String() != "" {
			t.Errorf("status %d, on standard error %q", got, &errs)
		}
		line := 0
		lines := strings.Split(out.String(), "\n")
		for j, wanted := range [][]string{
			{"starting zsetd", "version", "8.6.3", strconv.Itoa(os.Getpid()), conf, filepath.Join(dir, "zsetd.db")},
			{"data loaded", filepath.Join(dir, "zsetd.db")},
			{"Ready to accept connections unix", socket},
			{"stopping", "SHUTDOWN"},
		} {
			if i == 0 && j == 1 {
				continue // the file is new
			}
			for line < len(lines) && !strings.Contains(lines[line], wanted[0]) {
				line++
			}
			for _, word := range wanted {
				if line == len(lines) || !strings.Contains(lines[line], word) {
					t.Fatalf("%s: there is no line with %q, in this order:\n%s", form, wanted, out.String())
				}
			}
		}
	}
}
