//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// sample is what a server has at a moment.
type sample struct {
	at          time.Duration // since the begin
	commands    int64
	clients     int64
	goroutines  int64
	descriptors int64
	keys        int64
	heap, rss   int64
	cpu         int64 // seconds
}

// look asks the server and the system.
func (st *stage) look(c *client) (s sample, err error) {
	r, err := c.ask(words("INFO", "everything"), words("DBSIZE"))
	if err != nil {
		return s, err
	}
	of := func(name string) int64 { return field(r[0], name) }
	return sample{
		at: time.Since(st.begin), commands: st.stats.commands.Load(), clients: of("connected_clients"), goroutines: of("goroutines"),
		descriptors: st.server.descriptors(), keys: number(r[1]), heap: of("allocator_allocated"), rss: of("used_memory_rss"),
		cpu: of("used_cpu_user") + of("used_cpu_sys"),
	}, nil
}

// lookQuietly takes a sample while no worker runs, after garbage was collected.
func (st *stage) lookQuietly(c *client) (best sample, err error) {
	for range 4 {
		if _, err := c.do("MEMORY", "PURGE"); err != nil {
			return best, err
		}
		time.Sleep(100 * time.Millisecond)
		s, err := st.look(c)
		if err != nil {
			return best, err
		}
		if best.heap == 0 || s.heap < best.heap {
			best = s
		}
	}
	return best, nil
}

// checkpoint compares all data while no worker runs.
func (st *stage) checkpoint() error {
	return st.alone(func(c *client, life int) error {
		if err := st.chaos.calm(c); err != nil {
			return err
		}
		if err := st.compare(c, life); err != nil {
			return err
		}
		s, err := st.lookQuietly(c)
		st.samples = append(st.samples, s)
		return err
	})
}

const header = "      time   commands  clients  goroutines  descriptors    keys   heap MB    RSS MB  CPU s"

func (s sample) String() string {
	mb := func(n int64) float64 { return float64(n) / (1 << 20) }
	return fmt.Sprintf("%10s %10d %8d %11d %12d %7d %9.1f %9.1f %6d",
		s.at.Round(time.Second), s.commands, s.clients, s.goroutines, s.descriptors, s.keys, mb(s.heap), mb(s.rss), s.cpu)
}

// table writes at most some 20 of the samples.
func (st *stage) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (without load, after garbage collection)\n%s\n", st.name, header)
	step := max(1, len(st.samples)/20)
	for i, s := range st.samples {
		if i%step == 0 || i == len(st.samples)-1 {
			fmt.Fprintln(&b, s)
		}
	}
	return b.String()
}

// leaks judges the samples of a server that has run the whole time: its use of
// resources while no worker runs must not grow from the first half to the second,
// the beginning left out. There are as many keys all the time.
func (st *stage) leaks() error {
	quiet := st.samples
	if len(quiet) > 3 {
		quiet = quiet[max(1, len(quiet)/4):]
	}
	if len(quiet) < 4 {
		return nil // it was too short
	}
	first, second := quiet[:len(quiet)/2], quiet[len(quiet)/2:]
	median := func(l []sample, of func(sample) int64) int64 {
		var n []int64
		for _, s := range l {
			n = append(n, of(s))
		}
		slices.Sort(n)
		return n[len(n)/2]
	}
	var bad []string
	judge := func(what string, slack func(int64) int64, of func(sample) int64) {
		a, b := median(first, of), median(second, of)
		st.report = append(st.report, fmt.Sprintf("%s: %d, then %d", what, a, b))
		if b > a+slack(a) {
			bad = append(bad, fmt.Sprintf("%s: %d in the first half, %d in the second", what, a, b))
		}
	}
	judge("heap", func(n int64) int64 { return max(n/8, 4<<20) }, func(s sample) int64 { return s.heap })
	judge("descriptors beside clients", func(int64) int64 { return 3 }, func(s sample) int64 { return s.descriptors - s.clients })
	judge("goroutines beside clients", func(int64) int64 { return 5 }, func(s sample) int64 { return s.goroutines - s.clients })
	if len(bad) > 0 {
		return fmt.Errorf("it leaks: %s", strings.Join(bad, "; "))
	}
	return nil
}

// emptied compares an emptied server that all have left with the one that was
// started.
func (st *stage) emptied(c *client) error {
	if _, err := c.ask(words("FLUSHALL"), words("SCRIPT", "FLUSH"), words("FUNCTION", "FLUSH")); err != nil {
		return err
	}
	if _, err := c.do("SAVE"); err != nil { // an error that another save runs is fine
		return err
	}
	var s sample
	for begin := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		var err error
		if s, err = st.lookQuietly(c); err != nil {
			return err
		}
		b := st.fresh
		good := s.descriptors <= b.descriptors+2 && s.goroutines <= b.goroutines+4 && s.heap <= b.heap+8<<20 && s.clients == 1
		if good {
			st.report = append(st.report, fmt.Sprintf("emptied: %d descriptors, %d goroutines, heap %.1f MB; as started: %d, %d, %.1f MB",
				s.descriptors, s.goroutines, float64(s.heap)/(1<<20), b.descriptors, b.goroutines, float64(b.heap)/(1<<20)))
			return nil
		}
		if time.Since(begin) > 10*time.Second {
			return fmt.Errorf("when all are gone and all is deleted, it is not as it was:\n%s\n%s\n%s", header, b, s)
		}
	}
}
