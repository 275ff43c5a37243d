//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// replicationWork is the argument of -work that selects this measurement alone.
const replicationWork = "replication"

// replicationRow is a quantity of a primary with one replica of the same kind, for each
// target.
type replicationRow struct {
	name   string // with its unit
	values []float64
}

// transferRounds is the number of full synchronizations of a data set for each target.
const transferRounds = 3

// measureReplication measures full synchronizations of data sets, and writes with one
// replica.
func (r *report) measureReplication(ctx context.Context, data []shape, w work, l limits) error {
	for _, s := range data {
		seconds := replicationRow{name: "transfer of " + s.name + ", s"}
		pause := replicationRow{name: "longest PING meanwhile, ms"}
		cpu := replicationRow{name: "CPU of the primary, s"}
		var all [][]transfer
		for range r.transferRounds() {
			var round []transfer
			for _, t := range r.targets {
				x, err := t.measureTransfer(ctx, s)
				if err != nil {
					return fmt.Errorf("transfer of %s, %s: %w", s.name, t.name, err)
				}
				round = append(round, x)
			}
			all = append(all, round)
		}
		for i := range r.targets {
			middle := func(of func(transfer) time.Duration) float64 {
				var d []time.Duration
				for _, round := range all {
					d = append(d, of(round[i]))
				}
				slices.Sort(d)
				return d[len(d)/2].Seconds()
			}
			seconds.values = append(seconds.values, middle(func(t transfer) time.Duration { return t.elapsed }))
			pause.values = append(pause.values, 1e3*middle(func(t transfer) time.Duration { return t.pause }))
			cpu.values = append(cpu.values, middle(func(t transfer) time.Duration { return t.cpu }))
		}
		r.addReplication(seconds, pause, cpu)
	}
	row, err := r.measureWithReplica(ctx, w, l)
	if err != nil {
		return err
	}
	written := replicationRow{name: w.title() + ", with a replica, µs"}
	for i := range r.targets {
		written.values = append(written.values, row.cpu(i))
	}
	r.addReplication(written)
	return nil
}

func (r *report) transferRounds() int {
	if r.options.short {
		return 1
	}
	return transferRounds
}

func (r *report) addReplication(rows ...replicationRow) {
	for _, row := range rows {
		if len(r.replication) == 0 {
			fmt.Println(aligned(r.replicationColumns()))
		}
		r.replication = append(r.replication, row)
		fmt.Println(aligned(r.replicationCells(row)))
	}
}

// measureWithReplica applies a workload to servers that have a replica each, alternately.
func (r *report) measureWithReplica(ctx context.Context, w work, l limits) (row, error) {
	var servers []*server
	for _, t := range r.targets {
		primary, err := t.start(ctx)
		if err != nil {
			return row{}, err
		}
		defer primary.stop()
		replica, err := t.start(ctx)
		if err != nil {
			return row{}, err
		}
		defer replica.stop()
		if err := replica.follow(ctx, primary); err != nil {
			return row{}, fmt.Errorf("%s: %w", t.name, err)
		}
		servers = append(servers, primary)
	}
	return r.alternate(ctx, servers, w, l, r.options.clients, 0)
}

// transfer is one full synchronization.
type transfer struct {
	elapsed time.Duration // from REPLICAOF until the replica has the data and follows
	pause   time.Duration // the longest time in which the primary answers a PING meanwhile
	cpu     time.Duration // CPU time of the primary, with its forked process
}

// measureTransfer fills a fresh primary, and measures the full synchronization of a fresh
// replica.
func (t target) measureTransfer(ctx context.Context, s shape) (x transfer, err error) {
	primary, err := t.start(ctx)
	if err != nil {
		return x, err
	}
	defer primary.stop()
	replica, err := t.start(ctx)
	if err != nil {
		return x, err
	}
	defer replica.stop()
	c, err := primary.dial()
	if err != nil {
		return x, err
	}
	defer c.close()
	if err := c.fill(0, s.steps, s.fill); err != nil {
		return x, err
	}
	before, err := primary.cpuWithChildren()
	if err != nil {
		return x, err
	}
	stop, pinged := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				pinged <- nil
				return
			default:
			}
			begin := time.Now()
			if err := c.do("PING"); err != nil {
				pinged <- err
				return
			}
			x.pause = max(x.pause, time.Since(begin))
			time.Sleep(100 * time.Microsecond)
		}
	}()
	begin := time.Now()
	err = replica.follow(ctx, primary)
	x.elapsed = time.Since(begin)
	close(stop)
	after, cpuErr := primary.cpuWithChildren()
	x.cpu = after - before
	return x, errors.Join(err, <-pinged, cpuErr)
}

// follow makes the server a replica of another one, and waits until it has the data.
func (s *server) follow(ctx context.Context, primary *server) error {
	p, err := primary.dial()
	if err != nil {
		return err
	}
	defer p.close()
	if err := p.do("CONFIG", "SET", "repl-diskless-sync-delay", "0"); err != nil {
		return err
	}
	c, err := s.dial()
	if err != nil {
		return err
	}
	defer c.close()
	if err := c.do("REPLICAOF", "127.0.0.1", primary.port); err != nil {
		return err
	}
	for begin := time.Now(); time.Since(begin) < 2*time.Minute && ctx.Err() == nil; time.Sleep(2 * time.Millisecond) {
		info, err := c.text("INFO", "replication")
		if err != nil {
			return err
		}
		if strings.Contains(info, "master_link_status:up") {
			return nil
		}
	}
	return errors.Join(errors.New("the replica does not get the data"), ctx.Err())
}

// replicationMarkdown returns the section of RESULTS.md about replication.
func (r *report) replicationMarkdown(string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s (%s), medians of %d synchronizations; load average before %s, after %s.\n",
		r.begun.UTC().Format(time.DateOnly), r.machine, r.transferRounds(), r.loadBefore, r.loadAfter)
	markdownTable(&b, r.replicationColumns(), r.replication, r.replicationCells)
	return b.String()
}

func (r *report) replicationColumns() []string {
	return append(append([]string{"replication"}, r.names()...), r.ratioColumns()...)
}

func (r *report) replicationCells(row replicationRow) []string {
	out := []string{row.name}
	for _, v := range row.values {
		out = append(out, micros(v))
	}
	return append(out, r.ratios(func(i int) float64 { return row.values[i] })...)
}
