package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"time"
)

func main() {
	dir := flag.String("dir", ".", "directory in which go test runs")
	every := flag.Duration("every", 10*time.Second, "time between two reports of progress")
	slow := flag.Int("slow", 5, "how many of the slowest tests to name at the end")
	flag.Parse()
	status, err := run(os.Stdout, *dir, *every, *slow, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "progress:", err)
		os.Exit(2)
	}
	os.Exit(status)
}

// run runs go test with the arguments and returns its exit status.
func run(w io.Writer, dir string, every time.Duration, slow int, args []string) (int, error) {
	line := strings.Fields(os.Getenv("GO")) // as make sets it
	if len(line) == 0 {
		line = []string{"go"}
	}
	line = append(append(line, "test", "-json"), args...)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt) // the terminal also sends it to go test, which ends
	defer signal.Stop(interrupted)
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	lines := make(chan []byte)
	read := make(chan error, 1)
	go func() {
		defer close(lines)
		r := bufio.NewReader(out)
		for {
			line, err := r.ReadBytes('\n') // of any length
			if len(line) > 0 {
				lines <- line
			}
			if err != nil {
				if errors.Is(err, io.EOF) {
					err = nil
				}
				read <- err
				return
			}
		}
	}()
	p := newProgress(w, time.Now())
	tick := time.NewTicker(every)
	defer tick.Stop()
	for open := true; open; {
		select {
		case line, ok := <-lines:
			if open = ok; ok {
				p.line(line)
			}
		case now := <-tick.C:
			p.report(now)
		}
	}
	err = cmd.Wait()
	p.end(time.Now(), slow)
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		return max(failed.ExitCode(), 1), nil // a signal has the code -1
	}
	return 0, errors.Join(err, <-read)
}

// An event is a line of go test -json: go doc test2json.
type event struct {
	Time       time.Time
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
	Elapsed    float64 // seconds
}

// A progress is the state of a run of go test.
type progress struct {
	w        io.Writer
	begin    time.Time
	packages map[string]*pkg
	done     int // packages
	passed   int // tests, without subtests, as in all counts
	skipped  int
	failed   []string
	times    []testTime
}

// A pkg is a package that has not ended.
type pkg struct {
	begin  time.Time
	output []string // of the package itself
	tests  map[string]*test
	failed bool // one of its tests
}

// A test is a test or subtest that has not ended.
type test struct {
	begin  time.Time
	paused bool
	output []string
}

type testTime struct {
	name    string
	seconds float64
}

func newProgress(w io.Writer, begin time.Time) *progress {
	return &progress{w: w, begin: begin, packages: map[string]*pkg{}}
}

// line processes a line of go test -json. It prints a line that is not an event.
func (p *progress) line(line []byte) {
	var e event
	if line[0] != '{' || json.Unmarshal(line, &e) != nil {
		p.w.Write(line)
		return
	}
	switch e.Action {
	case "build-output":
		io.WriteString(p.w, e.Output)
		return
	case "build-fail":
		return
	}
	if e.Package == "" {
		return
	}
	k := p.packages[e.Package]
	if k == nil {
		k = &pkg{begin: e.Time, tests: map[string]*test{}}
		p.packages[e.Package] = k
	}
	if e.Test == "" {
		p.packageEvent(k, e)
	} else {
		p.testEvent(k, e)
	}
}

func (p *progress) packageEvent(k *pkg, e event) {
	switch e.Action {
	case "output":
		if closing(e.Output) {
			io.WriteString(p.w, e.Output)
		} else if e.Output != "PASS\n" && e.Output != "FAIL\n" {
			k.output = append(k.output, e.Output)
		}
	case "fail":
		// A test without an end was running when the process died: its output has the cause.
		for _, name := range sortedKeys(k.tests) {
			p.print(k.tests[name].output)
			p.fail(e.Package, name)
			k.failed = true
		}
		p.print(k.output)
		if !k.failed {
			p.fail(e.Package, "")
		}
		fallthrough
	case "pass", "skip":
		p.done++
		delete(p.packages, e.Package)
	}
}

// closing reports whether a line is the result of a package.
func closing(line string) bool {
	word, _, tab := strings.Cut(line, "\t")
	return tab && (strings.TrimSpace(word) == "ok" || word == "FAIL" || word == "?   ")
}

func (p *progress) testEvent(k *pkg, e event) {
	t := k.tests[e.Test]
	if t == nil {
		t = &test{begin: e.Time}
		k.tests[e.Test] = t
	}
	switch e.Action {
	case "output":
		for _, word := range []string{"=== RUN", "=== PAUSE", "=== CONT", "=== NAME"} {
			if strings.HasPrefix(e.Output, word) {
				return
			}
		}
		t.output = append(t.output, e.Output)
	case "pause":
		t.paused = true
	case "cont":
		t.paused, t.begin = false, e.Time
	case "pass", "skip", "fail":
		delete(k.tests, e.Test)
		if e.Action == "fail" {
			p.print(t.output)
			p.fail(e.Package, e.Test)
			k.failed = true
		}
		if strings.Contains(e.Test, "/") {
			return
		}
		switch e.Action {
		case "pass":
			p.passed++
		case "skip":
			p.skipped++
		}
		p.times = append(p.times, testTime{short(e.Package) + " " + e.Test, e.Elapsed})
	}
}

func (p *progress) fail(pkg, test string) {
	p.failed = append(p.failed, strings.TrimSuffix(pkg+" "+test, " "))
}

func (p *progress) print(output []string) {
	for _, s := range output {
		io.WriteString(p.w, s)
	}
}

// short returns the end of a package's path.
func short(pkg string) string { return pkg[strings.LastIndexByte(pkg, '/')+1:] }

// report prints how many packages and tests are done, and the tests that have been
// running for longest.
func (p *progress) report(now time.Time) {
	fmt.Fprintf(p.w, "%4.0f s: %d packages and %d tests done", now.Sub(p.begin).Seconds(), p.done, len(p.times))
	if len(p.failed) > 0 {
		fmt.Fprintf(p.w, ", %d failures", len(p.failed))
	}
	if len(p.packages) == 0 {
		fmt.Fprintln(p.w, "; compiling")
		return
	}
	for i, path := range sortedKeys(p.packages) {
		k := p.packages[path]
		sep := ", "
		if i == 0 {
			sep = "; in "
		}
		fmt.Fprint(p.w, sep, short(path))
		var name string
		var oldest *test
		for n, t := range k.tests {
			if !strings.Contains(n, "/") && !t.paused && (oldest == nil || t.begin.Before(oldest.begin)) {
				name, oldest = n, t
			}
		}
		if oldest != nil {
			fmt.Fprintf(p.w, " %s (%.0f s)", name, max(0, now.Sub(oldest.begin).Seconds()))
		}
	}
	fmt.Fprintln(p.w)
}

// end prints the summary.
func (p *progress) end(now time.Time, slow int) {
	fmt.Fprintf(p.w, "%d packages, %d tests passed, %d skipped, in %.0f s\n", p.done, p.passed, p.skipped, now.Sub(p.begin).Seconds())
	slices.SortStableFunc(p.times, func(a, b testTime) int {
		switch {
		case a.seconds > b.seconds:
			return -1
		case a.seconds < b.seconds:
			return 1
		}
		return 0
	})
	var names []string
	for _, t := range p.times[:min(slow, len(p.times))] {
		if t.seconds >= 1 {
			names = append(names, fmt.Sprintf("%s (%.0f s)", t.name, t.seconds))
		}
	}
	if len(names) > 0 {
		fmt.Fprintln(p.w, "slowest:", strings.Join(names, ", "))
	}
	if len(p.failed) > 0 {
		fmt.Fprintf(p.w, "failed:\n\t%s\n", strings.Join(p.failed, "\n\t"))
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
