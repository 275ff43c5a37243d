//go:build linux

package main

import (
	"context"
	"time"
)

// memoryRow is the resident set of each server with one data set.
type memoryRow struct {
	name string
	rss  []int64
}

// idleRow is what a server does when there is nothing to do.
type idleRow struct {
	answer []time.Duration // from the start to the first reply
	rss    []int64
	cpu    []float64 // part of a core
}

// measureMemory fills a fresh server of each kind, and looks after a pause.
func measureMemory(ctx context.Context, targets []target, s shape, pause time.Duration) (memoryRow, error) {
	row := memoryRow{name: s.name}
	for _, t := range targets {
		srv, err := t.start(ctx)
		if err != nil {
			return row, err
		}
		err = srv.fillWith(s)
		time.Sleep(pause)
		rss, err2 := srv.rss()
		srv.stop()
		if err != nil {
			return row, err
		}
		if err2 != nil {
			return row, err2
		}
		row.rss = append(row.rss, rss)
	}
	return row, nil
}

func (s *server) fillWith(data shape) error {
	c, err := s.dial()
	if err != nil {
		return err
	}
	defer c.close()
	return c.fill(data.n, data.fill)
}

// measureIdle leaves a fresh server of each kind alone.
func measureIdle(ctx context.Context, targets []target, pause time.Duration) (idleRow, error) {
	var row idleRow
	for _, t := range targets {
		srv, err := t.start(ctx)
		if err != nil {
			return row, err
		}
		before, err := srv.cpu()
		if err == nil {
			time.Sleep(pause)
			var after time.Duration
			if after, err = srv.cpu(); err == nil {
				row.cpu = append(row.cpu, (after-before).Seconds()/pause.Seconds())
				var rss int64
				rss, err = srv.rss()
				row.rss = append(row.rss, rss)
			}
		}
		row.answer = append(row.answer, srv.answer)
		srv.stop()
		if err != nil {
			return row, err
		}
	}
	return row, nil
}
