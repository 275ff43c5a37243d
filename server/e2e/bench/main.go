//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if isServer() {
		return
	}
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// isServer is one of the servers if the arguments say so, until its end.
func isServer() bool {
	if len(os.Args) != 3 {
		return false
	}
	serve, ok := map[string]func(port string) error{floorCommand: serveFloor, profiledCommand: serveProfiled}[os.Args[1]]
	if !ok {
		return false
	}
	if err := serve(os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	return true
}

// options are the command line flags.
type options struct {
	zsetd, redis, also string
	short              bool
	quick              bool // for tests: minimal
	work               string
	clients            int
	rounds             int
	length             time.Duration
	scale              bool
	members            int64
	results, summary   string
	plot               string
	profile            string
}

// parseOptions reads the command line.
func parseOptions() (o options, err error) {
	flag.StringVar(&o.zsetd, "zsetd", "", "the binary that is measured")
	flag.StringVar(&o.redis, "redis", "redis-server", "the server that it is compared with")
	flag.StringVar(&o.also, "also", "", "further servers, separated by commas; those that are not found are left out")
	flag.BoolVar(&o.short, "short", false, "a run of less than two minutes, on a tenth of the data: to see that all is well")
	flag.StringVar(&o.work, "work", "", "a regular expression: the works to run, data sets of which to measure the memory, floor, replication, durable, start, console, live (only so), or with -scale quantities")
	flag.IntVar(&o.clients, "clients", 50, "how many clients there are")
	flag.IntVar(&o.rounds, "rounds", 0, "how often each server does each work; 3, or 2 in a short run")
	flag.DurationVar(&o.length, "length", 0, "how long a round is; 1.2s, 500ms with -scale, or 300ms in a short run")
	flag.BoolVar(&o.scale, "scale", false, "measure how cost grows instead (scale.go)")
	flag.Int64Var(&o.members, "members", 10000000, "with -scale: the most members in one set; and the most sets, and strings in a file, up to 10000000")
	flag.StringVar(&o.results, "results", "", "a file whose tables are replaced, between <!-- bench --> (with -scale: <!-- scale -->), <!-- start --> and <!-- replication --> or <!-- live -->, and its end; with -work start, replication or live only that")
	flag.StringVar(&o.summary, "summary", "", "with -results: a file whose summary is replaced, between <!-- bench --> and its end")
	flag.StringVar(&o.plot, "plot", "", "an SVG file to be written")
	flag.StringVar(&o.profile, "profile", "", "a file to be written: the CPU profile of zsetd under the works, for the compiler (profile.go); nothing is compared")
	flag.Parse()
	if o.results != "" && (!slices.Contains([]string{"", startWork, replicationWork, liveWork}, o.work) || o.short) {
		return o, errors.New("a table that is kept is that of a whole and long run")
	}
	if o.rounds == 0 {
		o.rounds = 3
		if o.short && o.scale {
			o.rounds = 1
		} else if o.short {
			o.rounds = 2
		}
	}
	if o.length == 0 {
		o.length = 1200 * time.Millisecond
		if o.scale {
			o.length = 500 * time.Millisecond
		}
		if o.short {
			o.length = 300 * time.Millisecond
		}
	}
	return o, nil
}

// chosen returns the expression that chooses works by their names.
func (o *options) chosen() (*regexp.Regexp, error) {
	pattern := o.work
	if o.work == liveWork {
		pattern = "^" + liveWork + "$" // no work whose name has the word
	}
	return regexp.Compile("(?i)" + pattern)
}

// plan is what a run measures.
type plan struct {
	limits      limits
	works       []work
	data        []shape // whose memory is measured
	durable     []work
	withConsole []work
	floor       bool
	replicates  bool
	starts      bool
	live        bool
	viewers     bool

	part  int64         // each data set has 1/part of its full size
	pause time.Duration // before memory at rest is measured
	churn churn
}

// plan returns what is measured of the chosen works.
func (o *options) plan(chosen *regexp.Regexp) *plan {
	p := &plan{part: 1, pause: 5 * time.Second, churn: churn{10, time.Minute}}
	if o.short {
		p.part, p.pause, p.churn = 10, time.Second, churn{10, 5 * time.Second}
	}
	p.limits = limits{members: 1000000 / p.part, sets: 2000, alive: 100000}
	p.works = slices.DeleteFunc(works(p.limits), func(w work) bool { return !chosen.MatchString(w.title()) })
	p.data = slices.DeleteFunc(shapes(p.part), func(s shape) bool { return !chosen.MatchString(s.name) })
	p.durable = slices.DeleteFunc(durableWorks(), func(w work) bool { return !chosen.MatchString(w.title()) })
	p.floor, p.replicates, p.starts = chosen.MatchString(floorCommand), chosen.MatchString(replicationWork), chosen.MatchString(startWork)
	// These take minutes more, so a whole run has none of them.
	p.live = o.work == liveWork
	p.viewers = o.work != "" && chosen.MatchString("console viewers")
	p.withConsole = slices.DeleteFunc([]work{zadd(1), zadd(16)}, func(w work) bool { return o.work == "" || !chosen.MatchString("console "+w.title()) })
	return p
}

// console reports whether the console is measured.
func (p *plan) console() bool { return p.viewers || len(p.withConsole) > 0 && len(p.works) == 0 }

func (p *plan) empty() bool {
	return len(p.works) == 0 && len(p.data) == 0 && len(p.durable) == 0 && !p.floor && !p.replicates && !p.starts && !p.live && !p.console()
}

func run(ctx context.Context) error {
	o, err := parseOptions()
	if err != nil {
		return err
	}
	chosen, err := o.chosen()
	if err != nil {
		return err
	}
	var targets []target
	if o.profile == "" {
		if targets, err = findTargets(o); err != nil {
			return err
		}
	}
	p := o.plan(chosen)
	if !o.scale && p.empty() {
		return fmt.Errorf("no workload matches %q", o.work)
	}
	r := &report{targets: targets, begun: time.Now(), machine: machine(), loadBefore: load(), members: p.limits.members, options: o}
	fmt.Printf("%s; load average %s\n", r.machine, r.loadBefore)
	if o.plot != "" {
		if r.options.plot, err = filepath.Abs(o.plot); err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(o.plot), 0o755); err != nil {
			return err
		}
	}
	if o.profile != "" {
		return r.profile(ctx, p.works, p.limits)
	}
	if o.scale {
		return r.runScale(ctx, chosen)
	}
	if err := r.measure(ctx, p); err != nil {
		return err
	}
	r.loadAfter = load()
	fmt.Printf("load average before %s, after %s; %v\n", r.loadBefore, r.loadAfter, time.Since(r.begun).Round(time.Second))
	if o.plot != "" && len(r.rows) > 0 {
		if err := os.WriteFile(o.plot, []byte(r.plot()), 0o644); err != nil {
			return err
		}
		fmt.Println("plot:", o.plot)
	}
	if o.results == "" {
		return nil
	}
	return r.write(p)
}

// measure measures and prints all of the plan.
func (r *report) measure(ctx context.Context, p *plan) error {
	for _, step := range []struct {
		chosen  bool
		measure func() error
	}{
		{len(p.works) > 0, func() error { return r.measureWorks(ctx, p.works, p.limits) }},
		{p.floor, func() error { return r.measureFloor(ctx, p.limits) }},
		{len(p.data) > 0, func() error { return r.measureMemories(ctx, p) }},
		{p.replicates, func() error { return r.measureReplication(ctx, shapes(p.part)[:2], zadd(16), p.limits) }},
		{len(p.durable) > 0, func() error { return r.measureDurable(ctx, p.durable, p.limits) }},
		{p.starts, func() error { return r.measureStarts(ctx, startShapes(p.part), p.pause) }},
		{p.live, func() error { return r.measureLive(ctx, p.limits) }},
		{p.console(), func() error { return r.measureConsole(ctx, p.withConsole, p.viewers, p.limits) }},
		{r.options.work == "", func() (err error) {
			if r.idle, err = measureIdle(ctx, r.targets, 2*p.pause); err == nil {
				fmt.Print(r.idleText())
			}
			return err
		}},
	} {
		if step.chosen {
			if err := step.measure(); err != nil {
				return err
			}
		}
	}
	if !slices.Contains([]string{startWork, replicationWork, liveWork}, r.options.work) {
		fmt.Print(r.meansText(), r.verdictText())
	}
	return nil
}

// measureMemories measures the memory of the plan's data sets.
func (r *report) measureMemories(ctx context.Context, p *plan) error {
	fmt.Println(aligned(r.memoryColumns()))
	for _, s := range p.data {
		row, err := measureMemory(ctx, r.targets, s, p.pause, p.churn)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		r.memory = append(r.memory, row)
		fmt.Println(aligned(r.memoryCells(row)))
	}
	return nil
}

// write writes the sections of the plan into the files of results.
func (r *report) write(p *plan) error {
	whole := r.options.work == ""
	for _, section := range []struct {
		chosen   bool
		file     string
		name     string
		markdown func(plot string) string
	}{
		{p.starts, r.options.results, "start", r.startMarkdown},
		{p.live, r.options.results, liveWork, r.liveMarkdown},
		{p.replicates, r.options.results, "replication", r.replicationMarkdown},
		{whole, r.options.results, "bench", r.markdown},
		{whole && r.options.summary != "", r.options.summary, "bench", func(plot string) string { return summary(r.markdown(plot)) }},
	} {
		if section.chosen {
			if err := r.writeSection(section.file, section.name, section.markdown); err != nil {
				return err
			}
		}
	}
	return nil
}

// findTargets returns the servers: the reference, zsetd and the others.
func findTargets(o options) ([]target, error) {
	quiet := []string{"--save", "", "--appendonly", "no"}
	redis, err := exec.LookPath(o.redis)
	if err != nil {
		return nil, err
	}
	if o.zsetd == "" {
		return nil, errors.New("-zsetd must be given")
	}
	zsetd, err := filepath.Abs(o.zsetd)
	if err != nil {
		return nil, err
	}
	list := []target{{binary: redis, flags: quiet}, {name: "zsetd", binary: zsetd, flags: []string{"--dbfilename", ""}}}
	for name := range strings.SplitSeq(o.also, ",") {
		if other, err := exec.LookPath(name); err == nil && other != redis {
			list = append(list, target{binary: other, flags: quiet})
		}
	}
	for i := range list {
		if list[i].name != "" {
			continue
		}
		if list[i].name, err = versionOf(list[i].binary); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// versionOf returns the kind and the version of a server: "redis 8.6.3".
func versionOf(binary string) (string, error) {
	out, err := exec.Command(binary, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", binary, err)
	}
	return parseVersion(string(out))
}

// parseVersion reads "Redis server v=8.6.3 sha=...".
func parseVersion(text string) (string, error) {
	words := strings.Fields(text)
	if len(words) > 2 {
		if version, ok := strings.CutPrefix(words[2], "v="); ok {
			return strings.ToLower(words[0]) + " " + version, nil
		}
	}
	return "", fmt.Errorf("no version in %q", text)
}

// measureWorks applies workloads to one server of each kind, alternating.
func (r *report) measureWorks(ctx context.Context, list []work, l limits) error {
	var servers []*server
	for _, t := range r.targets {
		s, err := t.start(ctx)
		if err != nil {
			return err
		}
		defer s.stop()
		servers = append(servers, s)
	}
	fmt.Println(aligned(r.columns()))
	for _, w := range list {
		var rate float64
		if w.halfLoadOf != "" {
			if rate = r.halfLoad(w.halfLoadOf); rate == 0 {
				fmt.Printf("%-30s not run: %s was not chosen\n", w.title(), w.halfLoadOf)
				continue
			}
		}
		row, err := r.alternate(ctx, servers, w, l, r.options.clients, rate)
		if err != nil {
			return err
		}
		r.rows = append(r.rows, row)
		fmt.Println(aligned(r.cells(row)))
	}
	return nil
}

// alternate applies a workload to all servers alternately, for all rounds.
func (r *report) alternate(ctx context.Context, servers []*server, w work, l limits, clients int, rate float64) (row, error) {
	row := row{work: w, samples: make([][]*sample, len(servers))}
	for range r.options.rounds {
		for i, s := range servers {
			g := &generator{server: s, clients: clients, rate: rate, length: r.options.length, limits: l}
			sample, err := g.run(ctx, w)
			if err != nil {
				return row, fmt.Errorf("%s, %s: %w", w.title(), s.name, err)
			}
			row.samples[i] = append(row.samples[i], sample)
		}
	}
	return row, nil
}
