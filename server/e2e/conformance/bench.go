//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// target is a server under test.
type target struct {
	name   string
	binary string
}

// result has the results of the tests of a file. A name may occur several times.
type result struct {
	Passed  []string
	Failed  []failure
	Seconds float64
}

type failure struct{ Name, Why string }

const (
	fileLimit  = 600 * time.Second // for one run of a file
	longLimit  = 900 * time.Second // for one that runs only if it is named
	idleLimit  = 180               // seconds for one test; some take a minute on a slow machine
	maxSkipped = 4                 // maximum number of tests that hang or end the server before a file is abandoned
)

// bench is a copy of a suite for one run of a file.
type bench struct {
	dir  string
	tags string
	ed   *edition
}

func newBench(ed *edition, tags string, f file) (*bench, error) {
	dir, err := os.MkdirTemp("", "conformance-")
	if err != nil {
		return nil, err
	}
	b := &bench{dir, tags, ed}
	if err := os.CopyFS(filepath.Join(dir, "tests"), os.DirFS(filepath.Join(ed.source, "tests"))); err != nil {
		return nil, err
	}
	for _, name := range []string{"tests/tmp", "src"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"cli", "benchmark", "check-rdb", "check-aof"} {
		if path, err := ed.program(name); err == nil {
			if err := os.Symlink(path, filepath.Join(dir, "src", ed.programs+"-"+name)); err != nil {
				return nil, err
			}
		}
	}
	server, err := ed.program("server")
	if err != nil {
		return nil, err
	}
	// The suite assumes that commands on different connections execute in the order
	// of sending. A server with a thread for each connection does not guarantee
	// that, so the suite pauses after a command without a wait.
	ns := ed.programs // the namespace of the suite's client
	if err := b.edit("tests/support/"+ns+".tcl", "        ::"+ns+"::"+ns+"_write $fd $cmd\n        if {[catch {flush $fd}]} {\n",
		"        if {[info exists ::"+ns+"::ahead] && $::"+ns+"::ahead ne $fd} { after 5 }\n"+
			"        if {$deferred} { set ::"+ns+"::ahead $fd } else { unset -nocomplain ::"+ns+"::ahead }\n"+
			"        ::"+ns+"::"+ns+"_write $fd $cmd\n        if {[catch {flush $fd}]} {\n"); err != nil {
		return nil, err
	}
	// The framework with Sentinels has fixed ports, and no list of tests to skip. The
	// Sentinels are always those of the suite.
	const instances = "tests/instances.tcl"
	if err := errors.Join(
		os.MkdirAll(filepath.Join(dir, "tests", "sentinel", "tmp"), 0o755),
		b.script(ns+"-sentinel", "exec %q \"$@\" --sentinel\n", server),
		b.edit(instances, "set ::sentinel_base_port 20000\n", "set ::sentinel_base_port $::env(SENTINEL_PORT)\n"),
		b.edit(instances, "set ::"+ns+"_base_port 30000\n", "set ::"+ns+"_base_port $::env(REDIS_PORT)\n"),
		b.edit(instances, "set ::"+ns+"_port_count 1024\n", "set ::"+ns+"_port_count 90\n"),
		b.edit(instances, "proc test {descr code} {\n",
			"set ::skipped [split [read [open ../../../skip]] \"\\n\"]\n"+
				"proc test {descr code} {\n    if {[lsearch -exact $::skipped $descr] >= 0} return\n"),
	); err != nil {
		return nil, err
	}
	for _, e := range slices.Concat(ed.edits, f.edits) {
		if err := b.edit(e.file, e.old, e.with); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (b *bench) edit(name, old, with string) error {
	path := filepath.Join(b.dir, name)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !bytes.Contains(text, []byte(old)) {
		return fmt.Errorf("%s of %s: no %q", name, b.ed.title, old)
	}
	return os.WriteFile(path, bytes.Replace(text, []byte(old), []byte(with), 1), 0o644)
}

func (b *bench) close() { os.RemoveAll(b.dir) }

// run runs a file against a target without the skipped tests, and repeats it as
// necessary.
func (b *bench) run(t target, f file, leftOut []string) (result, error) {
	start := time.Now()
	var best result
	skips := slices.Concat(b.ed.broken, leftOut)
	var lost []failure
	for {
		r, stuck, err := b.runOnce(t, f, skips)
		if err != nil {
			return result{}, err
		}
		if len(r.Passed) > len(best.Passed) || best.Passed == nil {
			best = r
		}
		if stuck.Name == "" || len(lost) == maxSkipped || slices.Contains(skips, stuck.Name) {
			break
		}
		lost, skips = append(lost, stuck), append(skips, stuck.Name)
	}
	for _, l := range lost {
		if !slices.ContainsFunc(best.Failed, func(f failure) bool { return f.Name == l.Name }) {
			best.Failed = append(best.Failed, l)
		}
	}
	best.Seconds = time.Since(start).Seconds()
	return best, nil
}

// runOnce runs a file once. stuck is the test that hung or ended the server.
func (b *bench) runOnce(t target, f file, skips []string) (r result, stuck failure, err error) {
	if err := os.WriteFile(filepath.Join(b.dir, "skip"), []byte(strings.Join(skips, "\n")+"\n"), 0o644); err != nil {
		return r, stuck, err
	}
	base, release, err := freePorts()
	if err != nil {
		return r, stuck, err
	}
	defer release()
	args := []string{"tests/test_helper.tcl", "--single", f.name, "--durable", "--skipfile", "skip",
		"--timeout", fmt.Sprint(idleLimit), "--baseport", fmt.Sprint(base), "--portcount", "200", "--tags", b.tags}
	var srv *server
	switch f.mode {
	case spawn:
		// The suite parses the process number, which Redis prints when it has
		// opened its port, "Server initialized", and "Ready to accept".
		number, options := "", ""
		if t.name == "zsetd" {
			options = fmt.Sprintf("[ ! -f \"$1\" ] || set -- \"$@\" --dialect %s\n", b.ed.dialect)
			number = "(sleep 0.2; echo \" PID: $$ Server initialized\") &\n"
		}
		if err := b.script(b.ed.programs+"-server", "exec 2>&1\n%s%sexec %q \"$@\"\n", options, number, t.binary); err != nil {
			return r, stuck, err
		}
		args = append(args, "--clients", "1")
	case sentinel:
		if err := b.script(b.ed.programs+"-server", "exec %q \"$@\"\n", t.binary); err != nil {
			return r, stuck, err
		}
		args = []string{"tests/sentinel/run.tcl", "--single", "/" + filepath.Base(f.name) + ".tcl"}
	default:
		if srv, err = startServer(t, base+100, b.ed.conf+"dialect "+b.ed.dialect+"\n"); err != nil {
			return r, stuck, err
		}
		defer srv.stop()
		// Valkey's suite wants the program that it would start, even if it starts none.
		if err := b.script(b.ed.programs+"-server", "exec %q \"$@\"\n", t.binary); err != nil {
			return r, stuck, err
		}
		args = append(args, "--host", "127.0.0.1", "--port", fmt.Sprint(srv.port))
	}
	cmd := exec.Command("tclsh", args...)
	cmd.Dir = b.dir
	cmd.Env = append(os.Environ(), "TERM=dumb", "LC_ALL=C.UTF-8",
		fmt.Sprint("SENTINEL_PORT=", base), fmt.Sprint("REDIS_PORT=", base+100))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	limit := fileLimit
	if f.long() {
		limit = longLimit
	}
	timedOut := runGroup(cmd, limit)
	var hung string
	if f.mode == sentinel {
		r, hung = parseSentinel(out.String())
	} else {
		r, hung = parse(out.String(), f.name)
	}
	if strings.HasPrefix(f.name, "integration/psync2") {
		r.unrepeat()
	}
	switch {
	case hung != "":
		stuck = failure{hung, "hangs"}
	case timedOut:
		stuck = failure{"(the whole file)", fmt.Sprint("takes more than ", limit)}
	case srv != nil && !srv.alive():
		i := slices.IndexFunc(r.Failed, func(f failure) bool { return isDisconnection(f.Why) })
		if i >= 0 {
			stuck = failure{r.Failed[i].Name, "ends the server: " + srv.logTail()}
		}
	}
	return r, stuck, nil
}

// script writes an executable script to the folder of the suite's programs.
func (b *bench) script(name, format string, args ...any) error {
	return os.WriteFile(filepath.Join(b.dir, "src", name), fmt.Appendf(nil, "#!/bin/sh\n"+format, args...), 0o755)
}

// runGroup runs a command in a process group of its own, and kills the group at the
// end.
func runGroup(cmd *exec.Cmd, limit time.Duration) (timedOut bool) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(cmd.Stdout, "[exception]: ", err)
		return false
	}
	timer := time.AfterFunc(limit, func() {
		timedOut = true
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	})
	cmd.Wait() // the status has no information beyond the output
	timer.Stop()
	syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	return timedOut
}

// freePorts finds a range of ports below the ephemeral ones, which other tests use
// heavily. The last port of the range stays open, so that no other run finds the
// same range, until release is called.
func freePorts() (base int, release func() error, err error) {
	for _, i := range rand.Perm(29) {
		base := 21000 + i*400
		kept, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", base+360))
		if err != nil {
			continue
		}
		ok := true
		for _, port := range []int{base - 32, base, base + 1, base + 100} {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
			if ok = ok && err == nil; err == nil {
				l.Close()
			}
		}
		if ok {
			return base, kept.Close, nil
		}
		kept.Close()
	}
	return 0, nil, errors.New("no free ports")
}

// server is a server in external mode.
type server struct {
	cmd  *exec.Cmd
	port int
	dir  string
	log  bytes.Buffer
	done chan struct{}
}

// startServer starts a server with a redis.conf as its only argument; zsetd has conf in
// it, too.
func startServer(t target, port int, conf string) (*server, error) {
	dir, err := os.MkdirTemp("", "conformance-server-")
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf("port %d\ndir %q\nsave \"\"\nenable-debug-command yes\nenable-protected-configs yes\n", port, dir)
	if t.name == "zsetd" {
		text += conf
	}
	path := filepath.Join(dir, "redis.conf")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return nil, err
	}
	s := &server{cmd: exec.Command(t.binary, path), port: port, dir: dir, done: make(chan struct{})}
	s.cmd.Dir = dir
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		s.cmd.Wait()
		close(s.done)
	}()
	for range 200 {
		if s.alive() {
			return s, nil
		}
		select {
		case <-s.done:
			return nil, fmt.Errorf("%s does not start: %s", t.name, s.logTail())
		case <-time.After(50 * time.Millisecond):
		}
	}
	s.stop()
	return nil, fmt.Errorf("%s does not answer: %s", t.name, s.logTail())
}

// alive reports whether the server answers.
func (s *server) alive() bool {
	conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", s.port), 2*time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(5 * time.Second))
	fmt.Fprint(conn, "PING\r\n")
	var b [1]byte
	_, err = io.ReadFull(conn, b[:])
	return err == nil
}

func (s *server) stop() {
	syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
	<-s.done
	os.RemoveAll(s.dir)
}

// logTail returns the last log lines of a server that has ended.
func (s *server) logTail() string {
	select {
	case <-s.done:
	case <-time.After(time.Second):
		return "it still runs"
	}
	lines := strings.Split(strings.TrimSpace(s.log.String()), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], " / ")
}

// parse parses the output of the suite.
func parse(out, name string) (r result, hung string) {
	statusLine := regexp.MustCompile(`^\[(ok|err|exception)\]: ?(.*)$`)
	milliseconds := regexp.MustCompile(` \(\d+ ms\)$`)
	var why *string // of a failure, possibly several lines
	unstarted := -1 // index of the failure for a server that did not start for the next test
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "*** [") {
			break // the failures again, as a summary
		}
		if _, test, ok := strings.Cut(line, "(IN PROGRESS) "); ok {
			hung, why = test, nil
			continue
		}
		m := statusLine.FindStringSubmatch(line)
		if m == nil {
			if why != nil && len(*why) < 1000 && !strings.HasPrefix(line, "[") {
				*why = strings.TrimSpace(*why + " " + line)
			} else if strings.HasPrefix(line, "[") {
				why = nil
			}
			continue
		}
		why = nil
		switch m[1] {
		case "ok":
			test := milliseconds.ReplaceAllString(m[2], "")
			if unstarted >= 0 { // the suite continues without it
				r.Failed[unstarted].Name, unstarted = test, -1
				continue
			}
			r.Passed = append(r.Passed, test)
		case "err", "exception":
			test, _, named := strings.Cut(m[2], " in tests/"+name+".tcl")
			f := failure{test, ""}
			if !named {
				f = failure{"(between the tests)", m[2]}
			}
			if r.Failed = append(r.Failed, f); !named && strings.HasPrefix(m[2], "Can't start") {
				unstarted = len(r.Failed) - 1
			} else if named {
				unstarted = -1
			}
			why = &r.Failed[len(r.Failed)-1].Why
		}
	}
	return r, hung
}

// parseSentinel parses the output of the framework with Sentinels: the time, the name
// of a test, what it prints, and OK or FAILED. A test that fails ends the file.
func parseSentinel(out string) (r result, hung string) {
	begin := regexp.MustCompile(`^\d\d:\d\d:\d\d> (.*?): (.*)$`)
	address := regexp.MustCompile(`127\.0\.0\.1:\d+`)
	var running string
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if m := begin.FindStringSubmatch(line + " "); m != nil {
			running, line = address.ReplaceAllString(m[1], "ADDRESS"), strings.TrimSpace(m[2])
		}
		if running == "" {
			continue
		}
		if _, why, failed := strings.Cut(line, "FAILED: "); failed {
			r.Failed = append(r.Failed, failure{running, why})
			running = ""
		} else if line == "OK" || strings.HasSuffix(line, " OK") {
			r.Passed = append(r.Passed, running)
			running = ""
		}
	}
	return r, running
}

// unrepeat removes the repetitions of tests that a file draws at random: it has the numbers
// of servers, cycles and writes in their names. A test that has failed once has failed.
func (r *result) unrepeat() {
	number := regexp.MustCompile(`(#|CYCLE |x = )\d+`)
	seen := map[string]bool{}
	first := func(name *string) bool {
		*name = number.ReplaceAllString(*name, "${1}n")
		again := seen[*name]
		seen[*name] = true
		return !again
	}
	failed := r.Failed[:0]
	for _, f := range r.Failed {
		if first(&f.Name) {
			failed = append(failed, f)
		}
	}
	passed := r.Passed[:0]
	for _, name := range r.Passed {
		if first(&name) {
			passed = append(passed, name)
		}
	}
	r.Failed, r.Passed = failed, passed
}

// isDisconnection reports whether a test failed because the server had ended.
func isDisconnection(why string) bool {
	for _, words := range []string{"I/O error", "connection refused", "couldn't open socket", "broken pipe", "connection reset"} {
		if strings.Contains(why, words) {
			return true
		}
	}
	return false
}
