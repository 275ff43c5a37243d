package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

func main() {
	reasons := map[string][]string{}
	for _, path := range os.Args[1:] {
		if err := readFile(reasons, path); err != nil {
			fmt.Fprintln(os.Stderr, "skips:", err)
			os.Exit(1)
		}
	}
	print(os.Stdout, reasons)
}

// event is a line of go test -json: see go doc test2json.
type event struct{ Action, Package, Test, Output string }

func readFile(reasons map[string][]string, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := read(reasons, f); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// read adds the skipped tests of one output to those of each reason.
func read(reasons map[string][]string, r io.Reader) error {
	said := map[[2]string]string{} // the output of the tests that run
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return err
		}
		test := [2]string{e.Package, e.Test}
		switch {
		case e.Test == "": // the package
		case e.Action == "output":
			said[test] += e.Output
		case e.Action == "skip":
			reason := reasonIn(said[test])
			reasons[reason] = append(reasons[reason], e.Test)
			delete(said, test)
		case e.Action == "pass", e.Action == "fail":
			delete(said, test)
		}
	}
	return lines.Err()
}

// reasonIn returns what a test has said last, without the place of the call.
func reasonIn(output string) string {
	place := regexp.MustCompile(`^\s*[\w.-]+\.go:\d+: `)
	var reason []string
	for line := range strings.Lines(output) {
		text := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(text, "=== "), strings.HasPrefix(text, "--- "):
		case place.MatchString(line):
			reason = []string{strings.TrimSpace(place.ReplaceAllString(line, ""))}
		case text != "":
			reason = append(reason, text)
		}
	}
	return cmp.Or(strings.Join(reason, " "), "no reason is given")
}

// manyNames limits the tests that a line names.
const manyNames = 3

func print(out io.Writer, reasons map[string][]string) {
	if len(reasons) == 0 {
		return
	}
	all := 0
	for _, tests := range reasons {
		all += len(tests)
	}
	order := slices.SortedFunc(maps.Keys(reasons), func(a, b string) int {
		return cmp.Or(len(reasons[b])-len(reasons[a]), cmp.Compare(a, b))
	})
	fmt.Fprintf(out, "\nskipped tests: %d\n", all)
	for _, reason := range order {
		tests := reasons[reason]
		names := strings.Join(tests[:min(manyNames, len(tests))], ", ")
		if len(tests) > manyNames {
			names += ", ..."
		}
		fmt.Fprintf(out, "%5d  %s (%s)\n", len(tests), reason, names)
	}
}
