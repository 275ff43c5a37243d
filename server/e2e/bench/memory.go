//go:build linux

package main

import (
	"context"
	"errors"
	"slices"
	"time"
)

// memoryRow is the resident set of each server with one data set.
type memoryRow struct {
	name  string
	cells []memoryCell
}

// memoryCell is that of one server, in bytes.
type memoryCell struct {
	live    int64   // with the data, after a pause
	churned int64   // when they were replaced, after another pause
	peak    int64   // at any time
	times   float64 // how often everything was replaced
}

// idleRow is what a server does when there is nothing to do.
type idleRow struct {
	answer []time.Duration // from the start to the first reply
	rss    []int64
	cpu    []float64 // part of a core
}

// A churn is how long a server's data are replaced: so often, but no longer than
// a time. In what remains of it, much the same would happen.
type churn struct {
	rounds int64
	limit  time.Duration
}

// measureMemory fills a fresh server of each kind, looks after a pause, replaces
// the data, and looks again.
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

// starts is how often a server is started, to tell how long that takes.
const starts = 5

// measureIdle starts fresh servers of each kind, and leaves the last one alone.
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
				err = row.leaveAlone(srv, pause)
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

// leaveAlone looks what a server takes that is left alone. What it has to do just
// after its start does not count.
func (row *idleRow) leaveAlone(srv *server, pause time.Duration) error {
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
