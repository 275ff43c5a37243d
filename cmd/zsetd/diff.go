package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/zsetd/zsetd/server/archive"
)

// The tool diff. Package archive does the work.

func diffTool() tool {
	return tool{
		name: "diff", args: "A B [--json]", files: 2, run: runDiff,
		summary: "list the keys that differ between two files",
		details: "Lists keys only in A (-), only in B (+), and those whose type, elements or deadline differ\n" +
			"(~). Keys past their deadlines are compared as the others; of streams not when consumers\n" +
			"were seen. Neither file is in memory as a whole. If a server has a file open, it reads a\n" +
			"copy. --json prints a line for each difference, and a last one with the numbers. Status: 0\n" +
			"no differences, 1 there are some, 2 a file is damaged or cannot be read.",
		flags: func(f *flag.FlagSet, t *toolFlags) { f.BoolVar(&t.json, "json", false, "print lines of JSON") },
	}
}

func runDiff(r *toolRun) int {
	out, err := r.diff(r.files[0], r.files[1])
	if err != nil {
		r.fail(err)
		return statusUsage
	}
	r.meter.end()
	if r.json {
		b, err := json.Marshal(out)
		if err != nil {
			r.fail(err)
			return statusUsage
		}
		fmt.Fprintf(r.stdout, "%s\n", b)
	} else {
		fmt.Fprintf(r.stderr, "%d keys only in A, %d only in B, %d differ, %d are the same\n", out.OnlyA, out.OnlyB, out.Different, out.Same)
	}
	if !out.Equal() {
		return statusBad
	}
	return statusOK
}

func (r *toolRun) diff(a, b string) (out archive.Compared, err error) {
	var paths [2]string
	for i, path := range []string{a, b} {
		s, err := r.source(path)
		if err != nil {
			return out, err
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		paths[i] = s.Path
	}
	return archive.Diff(paths[0], paths[1], r.progress, func(d archive.Difference) error {
		if !r.json {
			_, err := fmt.Fprintln(r.stdout, differenceLine(d.Report()))
			return err
		}
		b, err := json.Marshal(d.Report())
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(r.stdout, "%s\n", b)
		return err
	})
}

// differenceLine describes a difference for people.
func differenceLine(d archive.DifferenceReport) string {
	where := fmt.Sprintf("db %d", d.DB)
	if d.DB < 0 {
		where = "library"
	}
	key := fmt.Sprintf("%.200q", string(d.Key))
	value := func(s *archive.SideReport) string {
		plural := "s"
		if s.Elements == 1 {
			plural = ""
		}
		return fmt.Sprintf("%s of %d element%s, %s", s.Type, s.Elements, plural, size(s.Bytes))
	}
	deadline := func(s *archive.SideReport) string {
		if s.Deadline == 0 {
			return "none"
		}
		return time.UnixMilli(s.Deadline).UTC().Format("2006-01-02T15:04:05.000Z")
	}
	switch {
	case d.B == nil:
		return fmt.Sprintf("- %s %s  %s", where, key, value(d.A))
	case d.A == nil:
		return fmt.Sprintf("+ %s %s  %s", where, key, value(d.B))
	}
	line := fmt.Sprintf("~ %s %s", where, key)
	if d.Difference != "deadline" {
		line += fmt.Sprintf("  value: %s | %s", value(d.A), value(d.B))
	}
	if d.Difference != "value" {
		line += fmt.Sprintf("  deadline: %s | %s", deadline(d.A), deadline(d.B))
	}
	return line
}
