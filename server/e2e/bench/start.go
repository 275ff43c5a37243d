//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// startRow is the start of all servers with one data set in their files.
type startRow struct {
	name    string
	samples [][]startSample // by target, in the order of the rounds
}

// startSample is one start.
type startSample struct {
	answer time.Duration // from the start of the process to the first reply that is no error, as -LOADING
	cpu    time.Duration // of the process by then
	peak   int64         // maximum RSS by then, in bytes
	after  int64         // RSS then
	rest   int64         // RSS after a pause
}

// startWork is the name by which -work chooses the starts.
const startWork = "start"

// startRounds is the number of starts of each server with a data set.
const startRounds = 5

// startShape is a data set, and how its file was written: by a server that saved its values, or by
// one that appended each change and was killed.
type startShape struct {
	shape
	killed bool
}

// startShapes returns the data sets, each with 1/part of its full size.
func startShapes(part int64) []startShape {
	list := []startShape{
		{stringsOf(1000000 / part), false},
		{setsOf(grouped(300000/part)+" sets of 5 members", 300000/part, 5, 5), false},
		{setsOf(grouped(1000000/part)+" members in one set", 1, 1000000/part, 1), false},
	}
	for _, s := range list[:2] {
		s.name, s.killed = s.name+", killed", true
		list = append(list, s)
	}
	return list
}

// started returns the targets whose starts are measured: a third would take minutes more.
func (r *report) started() []target { return r.targets[:own+1] }

// measureStarts writes the file of each server, and starts them alternately with it. Redis
// has an RDB file, or an append-only file if it was killed.
func (r *report) measureStarts(ctx context.Context, data []startShape, pause time.Duration) error {
	rounds := startRounds
	if r.options.short {
		rounds = 1
	}
	for _, s := range data {
		row, err := r.startsOf(ctx, s, rounds, pause)
		if err != nil {
			return err
		}
		if len(r.starts) == 0 {
			fmt.Println(aligned(r.startColumns()))
		}
		r.starts = append(r.starts, row)
		fmt.Println(aligned(r.startCells(row)))
	}
	return nil
}

// startsOf measures the starts of all servers with one data set.
func (r *report) startsOf(ctx context.Context, s startShape, rounds int, pause time.Duration) (startRow, error) {
	row := startRow{name: s.name, samples: make([][]startSample, own+1)}
	var dirs []string
	for _, t := range r.started() {
		dir, err := os.MkdirTemp("", "zsetd-bench-start-")
		if err != nil {
			return row, err
		}
		defer os.RemoveAll(dir)
		dirs = append(dirs, dir)
		if err := t.save(ctx, s, dir); err != nil {
			return row, fmt.Errorf("%s, %s: %w", s.name, t.name, err)
		}
	}
	for range rounds {
		for i, t := range r.started() {
			sample, err := t.measureStart(ctx, s, dirs[i], pause)
			if err != nil {
				return row, fmt.Errorf("start with %s, %s: %w", s.name, t.name, err)
			}
			row.samples[i] = append(row.samples[i], sample)
		}
	}
	return row, nil
}

// kept returns the target with the parameters of a data set's server. No changes are rewritten as values.
func (t target) kept(s startShape) target {
	t.flags = []string{"--save", ""}
	if s.killed {
		t.flags = append(t.flags, "--appendonly", "yes", "--auto-aof-rewrite-percentage", "0")
	}
	return t
}

// save fills a server with a data set, and leaves its file in a folder.
func (t target) save(ctx context.Context, s startShape, dir string) error {
	srv, err := t.kept(s).startIn(ctx, dir)
	if err != nil {
		return err
	}
	defer srv.kill()
	c, err := srv.dial()
	if err != nil {
		return err
	}
	defer c.close()
	if err := c.fill(0, s.steps, s.fill); err != nil {
		return err
	}
	if !s.killed {
		return c.do("SAVE")
	}
	// The reply to a write comes when all changes before are on the disk, too.
	return errors.Join(c.do("CONFIG", "SET", "appendfsync", "always"), c.do("SET", "last", "1"))
}

func (t target) measureStart(ctx context.Context, s startShape, dir string, pause time.Duration) (x startSample, err error) {
	srv, err := t.kept(s).startIn(ctx, dir)
	if err != nil {
		return x, err
	}
	defer srv.kill()
	x.answer = srv.answer
	var err1, err2 error
	x.after, x.peak, err1 = srv.rss()
	x.cpu, err2 = srv.cpu()
	time.Sleep(pause)
	x.rest, _, err = srv.rss()
	return x, errors.Join(err, err1, err2, ctx.Err())
}

func (w startRow) median(target int, of func(startSample) float64) float64 {
	var values []float64
	for _, s := range w.samples[target] {
		values = append(values, of(s))
	}
	return middle(values)
}

func (r *report) startColumns() []string {
	out := []string{"start with"}
	for _, t := range r.started() {
		out = append(out, t.name+" s")
	}
	return append(out, r.targets[own].name+" : "+r.targets[0].name, "CPU s", "peak RSS MB", "RSS at the first reply MB", "RSS at rest MB")
}

func (r *report) startCells(w startRow) []string {
	seconds := func(s startSample) float64 { return s.answer.Seconds() }
	out := []string{w.name}
	for i := range w.samples {
		out = append(out, fmt.Sprintf("%.2f", w.median(i, seconds)))
	}
	out = append(out, fmt.Sprintf("%.2f", w.median(own, seconds)/w.median(0, seconds)))
	for _, column := range []struct {
		format string
		of     func(startSample) float64
	}{
		{"%.2f", func(s startSample) float64 { return s.cpu.Seconds() }},
		{"%.0f", func(s startSample) float64 { return float64(s.peak) / 1e6 }},
		{"%.0f", func(s startSample) float64 { return float64(s.after) / 1e6 }},
		{"%.0f", func(s startSample) float64 { return float64(s.rest) / 1e6 }},
	} {
		var cells []string
		for i := range w.samples {
			cells = append(cells, fmt.Sprintf(column.format, w.median(i, column.of)))
		}
		out = append(out, strings.Join(cells, " · "))
	}
	return out
}

// startMarkdown returns the section of RESULTS.md about starts.
func (r *report) startMarkdown(string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s (%s), medians of %d starts; load average before %s, after %s.\nWhere a column has several numbers, they are those of %s.\n",
		r.begun.UTC().Format(time.DateOnly), r.machine, startRounds, r.loadBefore, r.loadAfter, strings.Join(r.names()[:own+1], " · "))
	markdownTable(&b, r.startColumns(), r.starts, r.startCells)
	return b.String()
}

// stringsOf returns strings of 16 bytes.
func stringsOf(n int64) shape {
	return keysOf(grouped(n)+" strings of 16 bytes", n, func(b *batch, i int64) {
		b.command("SET", padded("key:", i), "0123456789abcdef")
	}, "key:")
}
