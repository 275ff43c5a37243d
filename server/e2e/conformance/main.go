//go:build unix

package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func run() error {
	suite := flag.String("suite", "", "the source of the server that the suite is of")
	binary := flag.String("zsetd", "", "the server that is judged")
	tags := flag.String("tags", "-slow", "the tags of tests to run, or with - to leave out")
	cache := flag.String("cache", "", "a folder for the real server's score: read if it is there, else written")
	exceptionsPath := flag.String("exceptions", "conformance/exceptions.txt", "the tests that zsetd need not pass")
	jobs := flag.Int("jobs", 4*runtime.NumCPU(), "how many files run at the same time")
	readme := flag.String("readme", "", "a file whose table is replaced, between <!-- conformance EDITION --> and its end")
	once := flag.Bool("once", false, "do not run a file again that has failures")
	verbose := flag.Bool("v", false, "tell why each test fails, those that need not pass, too")
	flag.Parse()
	if *suite == "" || *binary == "" {
		flag.Usage()
		return errors.New("-suite and -zsetd must be given")
	}
	ed, err := open(*suite)
	if err != nil {
		return err
	}
	zsetd := target{name: "zsetd"}
	if zsetd.binary, err = filepath.Abs(*binary); err != nil {
		return err
	}
	real := target{name: ed.programs + "-server"}
	if real.binary, err = ed.program("server"); err != nil {
		return err
	}
	text, err := os.ReadFile(*exceptionsPath)
	if err != nil {
		return err
	}
	exceptions, leftOut, err := parseExceptions(string(text), ed.name)
	if err != nil {
		return err
	}
	selected := slices.DeleteFunc(slices.Clone(ed.files), func(f file) bool { return flag.NArg() == 0 && f.long() })
	if flag.NArg() > 0 {
		selected = slices.DeleteFunc(selected, func(f file) bool {
			return !slices.ContainsFunc(flag.Args(), func(name string) bool {
				return f.name == name || f.name == "unit/"+name || f.String() == name
			})
		})
	}
	scores := map[string]result{} // results of the real server, by file
	scoreFile := ""
	if *cache != "" {
		sum, err := ed.sum(*tags)
		if err != nil {
			return err
		}
		scoreFile = filepath.Join(*cache, ed.name+"-"+sum+".json")
		if err := readJSON(scoreFile, &scores); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	r := &runner{ed: ed, tags: *tags, once: *once, exceptions: exceptions, leftOut: leftOut, real: real, zsetd: zsetd, known: scores}
	start := time.Now()
	rows, err := r.runAll(selected, *jobs)
	if err != nil {
		return err
	}
	if scoreFile != "" {
		for _, row := range rows {
			scores[row.file.String()] = row.real
		}
		if err := writeJSON(scoreFile, scores); err != nil {
			return err
		}
	}
	whole := flag.NArg() == 0
	if *readme != "" && whole {
		if err := writeTable(*readme, ed, rows); err != nil {
			return err
		}
	}
	return report(ed, rows, exceptions, whole, *verbose, time.Since(start))
}

// runner runs the files against both servers.
type runner struct {
	ed          *edition
	tags        string
	once        bool
	exceptions  map[string]string
	leftOut     map[string]bool
	real, zsetd target
	known       map[string]result
}

// row is a line of the table.
type row struct {
	file     file
	real     result
	ours     result
	counted  int       // tests that the real server passes
	passed   int       // of these, tests that zsetd passes
	excepted []failure // excepted tests that fail
	failed   []failure // other tests that fail
	unneeded []string  // excepted tests that pass
}

// runAll runs files against both servers: first jobs of them in parallel, because
// files mostly wait; then, one by one, those with unexpected failures of zsetd, and
// those with failures of the real server.
func (r *runner) runAll(list []file, jobs int) ([]row, error) {
	rows := make([]row, len(list))
	type job struct {
		f     file
		of    target
		skips []string
		into  *result
	}
	var queue []job
	for i, f := range list {
		rows[i].file = f
		if known, ok := r.known[f.String()]; ok {
			rows[i].real = known
		} else {
			queue = append(queue, job{f, r.real, nil, &rows[i].real})
		}
		queue = append(queue, job{f, r.zsetd, r.skips(f), &rows[i].ours})
	}
	slices.SortStableFunc(queue, func(a, b job) int {
		switch {
		case a.f.startsEarly() == b.f.startsEarly():
			return 0
		case a.f.startsEarly():
			return -1
		}
		return 1
	})
	errs := make([]error, len(queue))
	next := make(chan int)
	var wg sync.WaitGroup
	for range max(1, jobs) {
		wg.Go(func() {
			for i := range next {
				j := queue[i]
				*j.into, errs[i] = r.run(j.of, j.f, j.skips)
			}
		})
	}
	for i := range queue {
		next <- i
	}
	close(next)
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for i := range rows {
		w := &rows[i]
		if w.compare(r.exceptions); r.once {
			continue
		}
		if _, known := r.known[w.file.String()]; !known && len(w.real.Failed) > 0 {
			again, err := r.run(r.real, w.file, nil)
			if err != nil {
				return nil, err
			}
			again.Seconds += w.real.Seconds
			w.real.merge(again)
		}
		if w.compare(r.exceptions); len(w.failed) > 0 {
			again, err := r.run(r.zsetd, w.file, r.skips(w.file))
			if err != nil {
				return nil, err
			}
			again.Seconds += w.ours.Seconds
			w.ours.merge(again)
			w.compare(r.exceptions)
		}
	}
	return rows, nil
}

// run runs one file against one server, in a copy of the suite.
func (r *runner) run(t target, f file, skips []string) (result, error) {
	b, err := newBench(r.ed, r.tags, f)
	if err != nil {
		return result{}, err
	}
	defer b.close()
	out, err := b.run(t, f, skips)
	fmt.Fprintf(os.Stderr, "%s: %s passes %d tests, fails %d, in %.1f s\n", f, t.name, len(out.Passed), len(out.Failed), out.Seconds)
	return out, err
}

// skips returns the tests of a file that are skipped.
func (r *runner) skips(f file) []string {
	var list []string
	for test, out := range r.leftOut {
		if name, here := strings.CutPrefix(test, f.String()+": "); here && out {
			list = append(list, name)
		}
	}
	return list
}

// merge adds the tests that pass in another run. A test name may occur several
// times; then the run with more passes counts.
func (r *result) merge(o result) {
	r.Seconds = o.Seconds
	have := map[string]int{}
	for _, name := range r.Passed {
		have[name]++
	}
	for _, name := range o.Passed {
		if have[name]--; have[name] >= 0 {
			continue
		}
		r.Passed = append(r.Passed, name)
		if i := slices.IndexFunc(r.Failed, func(f failure) bool { return f.Name == name }); i >= 0 {
			r.Failed = slices.Delete(r.Failed, i, i+1)
		}
	}
}

// compare counts the tests that the real server passes.
func (w *row) compare(exceptions map[string]string) {
	w.counted, w.passed, w.excepted, w.failed, w.unneeded = len(w.real.Passed), 0, nil, nil, nil
	left := map[string]int{}
	for _, name := range w.ours.Passed {
		left[name]++
	}
	for _, name := range w.real.Passed {
		_, excepted := exceptions[w.file.String()+": "+name]
		_, all := exceptions[w.file.String()+": *"]
		switch {
		case left[name] > 0:
			left[name]--
			w.passed++
			if excepted {
				w.unneeded = append(w.unneeded, name)
			}
			continue
		}
		f := failure{name, "is not reached"}
		if i := slices.IndexFunc(w.ours.Failed, func(f failure) bool { return f.Name == name }); i >= 0 {
			f = w.ours.Failed[i]
		}
		if excepted || all {
			w.excepted = append(w.excepted, f)
		} else {
			w.failed = append(w.failed, f)
		}
	}
}

// parseExceptions parses the exceptions of an edition. A line "[redis-8.6 valkey-9.1]"
// begins the entries of these editions. An entry is a line "file: test", followed by
// an indented reason; several tests may share a reason. A line that begins with "! " names
// a test that is not run, because it would make later tests fail.
func parseExceptions(text, edition string) (reasons map[string]string, leftOut map[string]bool, err error) {
	m := map[string]string{}
	left := map[string]bool{}
	var open []string
	n := 0
	s := bufio.NewScanner(strings.NewReader(text))
	here := false
	for reasoned := true; s.Scan(); {
		n++
		line := s.Text()
		reason, indented := strings.CutPrefix(line, "\t")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			continue
		case strings.HasPrefix(line, "[") && reasoned:
			here, open = slices.Contains(strings.Fields(strings.Trim(line, "[]")), edition), nil
			continue
		case indented:
			if len(open) == 0 {
				return nil, nil, fmt.Errorf("exceptions.txt:%d: a reason without a test", n)
			}
			for _, test := range open {
				if here {
					m[test] = strings.TrimSpace(m[test] + " " + reason)
				}
			}
			reasoned = true
			continue
		}
		if reasoned {
			open, reasoned = nil, false
		}
		line, out := strings.CutPrefix(line, "! ")
		if !strings.Contains(line, ": ") {
			return nil, nil, fmt.Errorf("exceptions.txt:%d: want \"file: test\"", n)
		}
		open = append(open, line)
		if here {
			left[line] = out
			m[line] = ""
		}
	}
	for test, reason := range m {
		if reason == "" {
			return nil, nil, fmt.Errorf("exceptions.txt: no reason for %q", test)
		}
	}
	return m, left, nil
}

// report prints the table and the errors.
func report(ed *edition, rows []row, exceptions map[string]string, whole, verbose bool, took time.Duration) error {
	fmt.Printf("\n%-32s %6s %6s %9s %6s %14s\n", ed.title, "real", "zsetd", "excepted", "failed", "seconds")
	var counted, passed, excepted, failed int
	for _, w := range rows {
		fmt.Printf("%-32s %6d %6d %9d %6d %6.1f %7.1f\n", w.file, w.counted, w.passed, len(w.excepted), len(w.failed),
			w.real.Seconds, w.ours.Seconds)
		counted, passed = counted+w.counted, passed+w.passed
		excepted, failed = excepted+len(w.excepted), failed+len(w.failed)
	}
	fmt.Printf("%-32s %6d %6d %9d %6d %14.0f\n", "total", counted, passed, excepted, failed, took.Seconds())
	for _, w := range rows {
		for _, f := range w.failed {
			fmt.Printf("\n%s: %s\n\t%s\n", w.file, f.Name, clip(f.Why))
		}
		if verbose {
			for _, f := range w.excepted {
				fmt.Printf("\n(excepted) %s: %s\n\t%s\n", w.file, f.Name, f.Why)
			}
		}
		for _, name := range w.unneeded {
			fmt.Printf("\n%s: %s\n\tpasses, though exceptions.txt says that it need not: take it out\n", w.file, name)
		}
		for _, f := range w.ours.Failed {
			if f.Name == "(between the tests)" {
				fmt.Printf("\n%s: between the tests\n\t%s\n", w.file, clip(f.Why))
			}
		}
	}
	if whole {
		for _, name := range missing(ed, rows, exceptions) {
			fmt.Printf("\n%s\n\tis in exceptions.txt, but no such test is passed by the real server\n", name)
		}
	}
	switch {
	case failed > 0:
		return fmt.Errorf("%d tests fail that passed", failed)
	case whole && passed < ed.least:
		return fmt.Errorf("%d tests pass, of at least %d: the rest is not run by the real server, or excepted", passed, ed.least)
	}
	return nil
}

// writeTable writes the table of server/e2e/README.md, without the values that vary between
// runs.
func writeTable(path string, ed *edition, rows []row) error {
	from, to := "<!-- conformance "+ed.name+" -->\n", "<!-- end of conformance -->\n"
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	head, rest, ok := strings.Cut(string(text), from)
	_, tail, closed := strings.Cut(rest, to)
	if !ok || !closed {
		return fmt.Errorf("%s has no place for the table", path)
	}
	var b strings.Builder
	b.WriteString(head + from + "| file | " + ed.title + " | zsetd | excepted |\n|---|--:|--:|--:|\n")
	counted, passed, excepted := 0, 0, 0
	for _, w := range rows {
		if w.counted > 0 {
			fmt.Fprintf(&b, "| %s | %d | %d | %s |\n", w.file, w.counted, w.passed, unlessZero(len(w.excepted)))
		}
		counted, passed, excepted = counted+w.counted, passed+w.passed, excepted+len(w.excepted)
	}
	fmt.Fprintf(&b, "| **all** | **%d** | **%d** | **%s** |\n", counted, passed, unlessZero(excepted))
	b.WriteString(to + tail)
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

func unlessZero(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// missing returns the exceptions that match no test of the files that run by default.
func missing(ed *edition, rows []row, exceptions map[string]string) []string {
	seen := map[string]bool{}
	for _, f := range ed.files {
		for name := range exceptions {
			if f.long() && strings.HasPrefix(name, f.String()+": ") {
				seen[name] = true
			}
		}
	}
	for _, w := range rows {
		seen[w.file.String()+": *"] = true
		for _, name := range w.real.Passed {
			seen[w.file.String()+": "+name] = true
		}
	}
	var list []string
	for name := range exceptions {
		if !seen[name] {
			list = append(list, name)
		}
	}
	slices.SortFunc(list, cmp.Compare)
	return list
}

func clip(s string) string {
	if len(s) > 600 {
		return s[:600] + "…"
	}
	return s
}

func readJSON(path string, v any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}

func writeJSON(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o644)
}
