//go:build linux

package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The program measures how cost grows in several scalings. In each, one quantity
// grows, and for each of its values fresh servers run the same workloads
// alternately.

// mostKeys is the most sets, and the most strings in a file.
const mostKeys = 10000000

// A scaling has the measurements for one growing quantity.
type scaling struct {
	what   string // name of the quantity
	at     []int64
	curves []*curve
}

// A curve is one measure of a scaling.
type curve struct {
	title  string
	unit   string
	values [][]float64 // by value of the quantity and by target; NaN is missing
}

// scale measures the scalings whose quantity matches chosen.
func (r *report) scale(ctx context.Context, chosen *regexp.Regexp) ([]scaling, error) {
	var list []scaling
	for _, one := range []struct {
		what    string
		measure func(context.Context, *scaling) error
	}{
		{"members in one set", r.scaleMembers},
		{"sets of 5 members", r.scaleSets},
		{"connections", r.scaleClients},
		{"commands in a request", r.scalePipeline},
		{"clients that wait for the disk", r.scaleDurable},
		{"strings in the file at a start", r.scaleStarts},
		{"cores (GOMAXPROCS)", r.scaleCores},
	} {
		if !chosen.MatchString(one.what) {
			continue
		}
		s := scaling{what: one.what}
		if err := one.measure(ctx, &s); err != nil {
			return nil, fmt.Errorf("%s: %w", s.what, err)
		}
		list = append(list, s)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no scaling matches %q", r.options.work)
	}
	return list, nil
}

// upTo returns the powers of ten below highest, and highest, or up to short in a short run.
func (r *report) upTo(from, highest, short int64) (list []int64) {
	if r.options.short {
		highest = short
	}
	if r.options.quick {
		highest = short / 100
	}
	for n := from; n <= highest; n *= 10 {
		list = append(list, n)
	}
	if len(list) > 0 && list[len(list)-1] < highest {
		list = append(list, highest)
	}
	return list
}

// add appends the measurements for one value of the quantity to a curve, and
// creates the curve at the first value.
func (s *scaling) add(title, unit string, values []float64) {
	i := slices.IndexFunc(s.curves, func(c *curve) bool { return c.title == title })
	if i < 0 {
		i = len(s.curves)
		s.curves = append(s.curves, &curve{title: title, unit: unit})
	}
	s.curves[i].values = append(s.curves[i].values, values)
}

func (s *scaling) addCPU(title string, w row) {
	var values []float64
	for i := range w.samples {
		values = append(values, w.cpu(i))
	}
	s.add(title, "µs", values)
}

func (s *scaling) addRates(title string, w row) {
	var values []float64
	for i := range w.samples {
		values = append(values, w.rate(i)/1000)
	}
	s.add(title, "1000/s", values)
}

// scaleMembers measures a growing sorted set.
func (r *report) scaleMembers(ctx context.Context, s *scaling) error {
	s.at = r.upTo(100, r.options.members, 100000)
	list := []work{
		{name: "ZADD", pipeline: 16, command: "ZADD big {r}.5 member:{r}"},
		{name: "ZSCORE", pipeline: 16, command: "ZSCORE big member:{r}"},
		{name: "ZRANK", pipeline: 16, command: "ZRANK big member:{r}"},
		{name: "ZRANGEBYSCORE LIMIT 0 10", pipeline: 16, command: "ZRANGEBYSCORE big {r} +inf LIMIT 0 10"},
	}
	for _, n := range s.at {
		l := limits{members: n, sets: 1, alive: 1}
		err := r.fresh(ctx, nil, func(servers []*server) error {
			bytes, err := r.grown(servers, n, 100000, func(_ int, c *conn) error { return large(c, l) })
			if err != nil {
				return err
			}
			for _, w := range list {
				row, err := r.alternate(ctx, servers, w, l, r.options.clients, 0)
				if err != nil {
					return err
				}
				s.addCPU(w.title(), row)
			}
			single := work{name: "ZADD", pipeline: 1, command: list[0].command}
			row, err := r.alternate(ctx, servers, single, l, r.options.clients, 0)
			if err == nil {
				row, err = r.alternate(ctx, servers, single, l, r.options.clients, row.rate(0)/2)
			}
			if err != nil {
				return err
			}
			var late []float64
			for i := range servers {
				late = append(late, row.quantiles(i)[2])
			}
			s.add("ZADD at half load, p99.9", "µs", late)
			s.add("RSS per member", "bytes", bytes)
			return nil
		})
		if err != nil {
			return err
		}
		r.progress(s)
	}
	return nil
}

// scaleSets measures a growing number of sets of five members.
func (r *report) scaleSets(ctx context.Context, s *scaling) error {
	s.at = r.upTo(1, min(r.options.members, mostKeys), 100000)
	w := work{name: "ZADD", pipeline: 16, command: "ZADD set:{key} {r} member:{r/5}"}
	for _, n := range s.at {
		l := limits{members: 1000000, sets: n, alive: 1}
		err := r.fresh(ctx, nil, func(servers []*server) error {
			bytes, err := r.grown(servers, n, 50000, func(_ int, c *conn) error {
				return c.fill(0, n, func(b *batch, i int64) {
					words := []string{"ZADD", padded("set:", i)}
					for m := range int64(5) {
						words = append(words, strconv.FormatInt((i*5+m)*387421%l.members, 10), padded("member:", m))
					}
					b.command(words...)
				})
			})
			if err != nil {
				return err
			}
			row, err := r.alternate(ctx, servers, w, l, r.options.clients, 0)
			if err != nil {
				return err
			}
			s.addCPU("ZADD over sets of 5, P16", row)
			s.add("RSS per set of 5", "bytes", bytes)
			return nil
		})
		if err != nil {
			return err
		}
		r.progress(s)
	}
	return nil
}

// scaleClients measures a growing number of connections, of which at most fifty are
// active, and then all.
func (r *report) scaleClients(ctx context.Context, s *scaling) error {
	s.at = r.upTo(1, 10000, 1000)
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return err
	}
	s.at = slices.DeleteFunc(s.at, func(n int64) bool { return uint64(len(r.targets))*uint64(n) > files.Max })
	w := work{name: "PING", pipeline: 1, command: "PING"}
	for _, n := range s.at {
		active := min(n, int64(r.options.clients))
		flags := []string{"--maxclients", strconv.FormatInt(n+max(n/2, 1000), 10)} // those that are closed may still count
		err := r.fresh(ctx, flags, func(servers []*server) error {
			resting := make([][]*conn, len(servers))
			defer func() {
				for _, c := range slices.Concat(resting...) {
					c.close()
				}
			}()
			bytes, err := r.grown(servers, n-active, 5000, func(i int, _ *conn) error {
				for range n - active {
					c, err := servers[i].dial()
					if err != nil {
						return err
					}
					resting[i] = append(resting[i], c)
					if err := c.do("PING"); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
			row, err := r.alternate(ctx, servers, w, limits{1, 1, 1}, int(active), 0)
			if err != nil {
				return err
			}
			s.addCPU("PING of 50 clients, P1", row)
			s.add("RSS per idle connection", "bytes", bytes)
			for _, c := range slices.Concat(resting...) {
				c.close()
			}
			clear(resting)
			if row, err = r.alternate(ctx, servers, w, limits{1, 1, 1}, int(n), 0); err != nil {
				return err
			}
			s.addCPU("PING of all clients, P1", row)
			return nil
		})
		if err != nil {
			return err
		}
		r.progress(s)
	}
	return nil
}

// scalePipeline measures growing requests.
func (r *report) scalePipeline(ctx context.Context, s *scaling) error {
	s.at = []int64{1, 2, 4, 8, 16, 32, 64, 128}
	if r.options.short {
		s.at = []int64{1, 16, 128}
	}
	l := limits{members: 100000, sets: 1, alive: 1}
	err := r.fresh(ctx, nil, func(servers []*server) error {
		for _, p := range s.at {
			for _, w := range []work{
				{name: "PING, pipelined", command: "PING"},
				{name: "ZADD to 100 000, pipelined", command: "ZADD big {r}.5 member:{r}", data: large},
			} {
				w.pipeline = int(p)
				row, err := r.alternate(ctx, servers, w, l, r.options.clients, 0)
				if err != nil {
					return err
				}
				s.addCPU(w.name, row)
			}
			r.progress(s)
		}
		return nil
	})
	return err
}

// scaleDurable measures a growing number of clients whose writes wait for the disk: servers
// flush several of them at once.
func (r *report) scaleDurable(ctx context.Context, s *scaling) error {
	s.at = r.upTo(1, 1000, 100)
	w := durableWorks()[0]
	targets := r.targets
	defer func() { r.targets = targets }()
	r.targets = nil
	for _, t := range targets {
		r.targets = append(r.targets, t.durable())
	}
	return r.fresh(ctx, nil, func(servers []*server) error {
		for _, n := range s.at {
			row, err := r.alternate(ctx, servers, w, limits{members: 1000000, sets: 2000, alive: 1}, int(n), 0)
			if err != nil {
				return err
			}
			s.addCPU(w.title(), row)
			s.addRates(w.name+", throughput", row)
			r.progress(s)
		}
		return nil
	})
}

// scaleStarts measures starts with a growing number of strings in the file.
func (r *report) scaleStarts(ctx context.Context, s *scaling) error {
	s.at = r.upTo(1000, min(r.options.members, mostKeys), 10000)
	for _, n := range s.at {
		row, err := r.startsOf(ctx, startShape{shape: stringsOf(n)}, r.options.rounds, 0)
		if err != nil {
			return err
		}
		var seconds, peak []float64
		for i := range r.targets {
			seconds = append(seconds, row.median(i, func(x startSample) float64 { return x.answer.Seconds() }))
			peak = append(peak, row.median(i, func(x startSample) float64 { return float64(x.peak) / 1e6 }))
		}
		s.add("start", "s", seconds)
		s.add("peak RSS of a start", "MB", peak)
		r.progress(s)
	}
	return nil
}

// scaleCores measures a growing number of cores for the Go runtime. Redis always
// executes commands in one thread.
func (r *report) scaleCores(ctx context.Context, s *scaling) error {
	l := limits{members: 100000, sets: 1, alive: 1}
	w := work{name: "ZADD", pipeline: 16, command: "ZADD big {r}.5 member:{r}", data: large}
	targets := r.targets
	defer func() { r.targets = targets }()
	for n := 1; n <= runtime.NumCPU(); n *= 2 {
		s.at = append(s.at, int64(n))
		r.targets = slices.Clone(targets)
		for i := range r.targets {
			r.targets[i].env = []string{"GOMAXPROCS=" + strconv.Itoa(n)}
		}
		err := r.fresh(ctx, nil, func(servers []*server) error {
			row, err := r.alternate(ctx, servers, w, l, r.options.clients, 0)
			if err != nil {
				return err
			}
			s.addCPU("ZADD on cores, P16", row)
			s.addRates("ZADD on cores, throughput", row)
			return nil
		})
		if err != nil {
			return err
		}
		r.progress(s)
	}
	return nil
}

// fresh starts a server of each kind, calls use, and stops them.
func (r *report) fresh(ctx context.Context, flags []string, use func(servers []*server) error) error {
	var servers []*server
	defer func() {
		for _, s := range servers {
			s.stop()
		}
	}()
	for _, t := range r.targets {
		t.flags = slices.Concat(t.flags, flags)
		s, err := t.start(ctx)
		if err != nil {
			return err
		}
		servers = append(servers, s)
	}
	return use(servers)
}

// grown returns the growth of each server's resident set for each of n objects that
// make creates. If n is below from, the rest of the server dominates, and it
// returns no number.
func (r *report) grown(servers []*server, n, from int64, make func(i int, c *conn) error) ([]float64, error) {
	var out []float64
	for i, s := range servers {
		c, err := s.dial()
		if err != nil {
			return nil, err
		}
		defer c.close()
		if err := c.do("PING"); err != nil {
			return nil, err
		}
		if n >= from {
			time.Sleep(r.memoryPause()) // lets the server return what its start has used
		}
		before, _, err := s.rss()
		if err != nil {
			return nil, err
		}
		if err := make(i, c); err != nil {
			return nil, err
		}
		if n < from {
			out = append(out, math.NaN())
			continue
		}
		time.Sleep(r.memoryPause()) // lets the server return garbage to the system
		after, _, err := s.rss()
		if err != nil {
			return nil, err
		}
		out = append(out, float64(after-before)/float64(n))
	}
	return out, nil
}

// memoryPause returns the pause before the memory of a server is measured.
func (r *report) memoryPause() time.Duration {
	if r.options.quick {
		return 0
	} else if r.options.short {
		return time.Second
	}
	return 3 * time.Second
}

// progress prints the results of a scaling for its latest value.
func (r *report) progress(s *scaling) {
	n := len(s.curves[0].values)
	fmt.Printf("%12s %-22s", grouped(s.at[n-1]), s.what)
	for _, c := range s.curves {
		fmt.Printf("  %s: %s", c.title, strings.Join(numbers(c.values[n-1]), " · "))
	}
	fmt.Println()
}

// numbers formats the values of the targets, with a dash for a missing one.
func numbers(values []float64) (out []string) {
	for _, v := range values {
		if math.IsNaN(v) {
			return []string{"–"}
		}
		out = append(out, micros(v))
	}
	return out
}

// scaleMarkdown returns the section for RESULTS.md.
func (r *report) scaleMarkdown(list []scaling, plot string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s (%s), with %d clients on the same machine, the median of %d rounds of %v; load average before %s, after %s.\n",
		r.begun.UTC().Format(time.DateOnly), r.machine, r.options.clients, r.options.rounds, r.options.length, r.loadBefore, r.loadAfter)
	fmt.Fprintf(&b, "Each cell has the numbers of %s; µs are of the server's CPU per operation unless it says p99.9.\n", strings.Join(r.names(), " · "))
	if plot != "" {
		fmt.Fprintf(&b, "\n![How cost grows](%s)\n", plot)
	}
	for _, s := range list {
		header := []string{s.what}
		for _, c := range s.curves {
			header = append(header, c.title+", "+c.unit)
		}
		rows := make([]int, len(s.at))
		for i := range rows {
			rows[i] = i
		}
		markdownTable(&b, header, rows, func(i int) []string {
			cells := []string{grouped(s.at[i])}
			for _, c := range s.curves {
				cells = append(cells, strings.Join(numbers(c.values[i]), " · "))
			}
			return cells
		})
	}
	return b.String()
}

// runScale measures how cost grows, instead of the workloads.
func (r *report) runScale(ctx context.Context, chosen *regexp.Regexp) error {
	list, err := r.scale(ctx, chosen)
	if err != nil {
		return err
	}
	r.loadAfter = load()
	fmt.Printf("load average before %s, after %s; %v\n", r.loadBefore, r.loadAfter, time.Since(r.begun).Round(time.Second))
	if r.options.plot != "" {
		if err := os.WriteFile(r.options.plot, []byte(r.scalePlot(list)), 0o644); err != nil {
			return err
		}
		fmt.Println("plot:", r.options.plot)
	}
	if r.options.results == "" {
		return nil
	}
	return r.writeSection(r.options.results, "scale", func(plot string) string { return r.scaleMarkdown(list, plot) })
}
