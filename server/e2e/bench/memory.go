//go:build linux

package main

import (
	"context"
	"errors"
	"slices"
	"time"
)

// memoryRow is the memory of all servers with one data set.
type memoryRow struct {
	name  string
	cells []memoryCell
}

// memoryCell is the memory of one server, in bytes.
type memoryCell struct {
	live    int64   // with the data, after a pause
	churned int64   // after the replacement of the data and another pause
	peak    int64   // maximum
	times   float64 // number of replacements of all data
}

// idleRow is the behaviour of idle servers.
type idleRow struct {
	answer []time.Duration // time from the start to the first reply
	rss    []int64
	cpu    []float64 // fraction of a core
}

// A churn bounds the replacement of a server's data: rounds, and time. Further
// rounds would give similar results.
type churn struct {
	rounds int64
	limit  time.Duration
}

// measureMemory fills a fresh server of each kind, measures its memory after a
// pause, replaces the data, and measures again.
func measureMemory(ctx context.Context, targets []target, s shape, pause time.Duration, ch churn) (memoryRow, error) {
	row := memoryRow{name: s.name}
	for _, t := range targets {
		cell, err := t.measureMemory(ctx, s, pause, ch)
		if err != nil {
			return row, err
		}
		row.cells = append(row.cells, cell)
	}
	return row, nil
}

func (t target) measureMemory(ctx context.Context, s shape, pause time.Duration, ch churn) (cell memoryCell, err error) {
	srv, err := t.start(ctx)
	if err != nil {
		return cell, err
	}
	defer srv.stop()
	c, err := srv.dial()
	if err != nil {
		return cell, err
	}
	defer c.close()
	if err := c.fill(0, s.steps, s.fill); err != nil {
		return cell, err
	}
	time.Sleep(pause)
	if cell.live, _, err = srv.rss(); err != nil {
		return cell, err
	}
	all, done := ch.rounds*s.churnSteps, int64(0)
	for begin := time.Now(); done < all && time.Since(begin) < ch.limit && ctx.Err() == nil; {
		end := min(done+20000, all)
		if err := c.fill(done, end, func(b *batch, i int64) { s.churn(b, i/s.churnSteps, i%s.churnSteps) }); err != nil {
			return cell, err
		}
		done = end
	}
	cell.times = float64(done) / float64(s.churnSteps)
	time.Sleep(pause)
	cell.churned, cell.peak, err = srv.rss()
	return cell, errors.Join(err, ctx.Err())
}

// starts is the number of starts of a server for the start time.
const starts = 5

// measureIdle starts fresh servers of each kind, and measures the last of each
// while it is idle.
func measureIdle(ctx context.Context, targets []target, pause time.Duration) (idleRow, error) {
	var row idleRow
	for _, t := range targets {
		var answers []time.Duration
		for i := range starts {
			srv, err := t.start(ctx)
			if err != nil {
				return row, err
			}
			answers = append(answers, srv.answer)
			if i == starts-1 {
				err = row.measure(srv, pause)
			}
			srv.stop()
			if err != nil {
				return row, err
			}
		}
		slices.Sort(answers)
		row.answer = append(row.answer, answers[starts/2])
	}
	return row, nil
}

// measure measures an idle server, excluding its work directly after the start.
func (row *idleRow) measure(srv *server, pause time.Duration) error {
	time.Sleep(pause / 5)
	before, err := srv.cpuOfThreads()
	if err != nil {
		return err
	}
	time.Sleep(pause)
	after, err := srv.cpuOfThreads()
	if err != nil {
		return err
	}
	rss, _, err := srv.rss()
	row.cpu = append(row.cpu, (after-before).Seconds()/pause.Seconds())
	row.rss = append(row.rss, rss)
	return err
}
