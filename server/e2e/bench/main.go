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

func run(ctx context.Context) error {
	var o options
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
	pattern := o.work
	if o.work == liveWork {
		pattern = "^" + liveWork + "$" // no work whose name has the word
	}
	chosen, err := regexp.Compile("(?i)" + pattern)
	if err != nil {
		return err
	}
	if o.results != "" && (!slices.Contains([]string{"", startWork, replicationWork, liveWork}, o.work) || o.short) {
		return errors.New("a table that is kept is that of a whole and long run")
	}
	var targets []target
	if o.profile == "" {
		if targets, err = findTargets(o); err != nil {
			return err
		}
	}
	part, pause, ch := int64(1), 5*time.Second, churn{10, time.Minute}
	if o.short {
		part, pause, ch = 10, time.Second, churn{10, 5 * time.Second}
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
	l := limits{members: 1000000 / part, sets: 2000, alive: 100000}
	list := slices.DeleteFunc(works(l), func(w work) bool { return !chosen.MatchString(w.title()) })
	data := slices.DeleteFunc(shapes(part), func(s shape) bool { return !chosen.MatchString(s.name) })
	starts := chosen.MatchString(startWork)
	floor := chosen.MatchString(floorCommand)
	replicates := chosen.MatchString(replicationWork)
	live := o.work == liveWork // a whole run would take minutes more
	durable := slices.DeleteFunc(durableWorks(), func(w work) bool { return !chosen.MatchString(w.title()) })
	viewers := o.work != "" && chosen.MatchString("console viewers") // a whole run would take minutes more
	withConsole := slices.DeleteFunc([]work{zadd(1), zadd(16)}, func(w work) bool { return o.work == "" || !chosen.MatchString("console "+w.title()) })
	console := viewers || len(withConsole) > 0 && len(list) == 0
	if !o.scale && len(list) == 0 && len(data) == 0 && !floor && !replicates && !starts && !console && !live && len(durable) == 0 {
		return fmt.Errorf("no workload matches %q", o.work)
	}
	r := &report{targets: targets, begun: time.Now(), machine: machine(), loadBefore: load(), members: l.members, options: o}
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
		return r.profile(ctx, list, l)
	}
	if o.scale {
		return r.runScale(ctx, chosen)
	}
	if err := r.measureWorks(ctx, list, l); err != nil {
		return err
	}
	if floor {
		if err := r.measureFloor(ctx, l); err != nil {
			return err
		}
	}
	for i, s := range data {
		row, err := measureMemory(ctx, targets, s, pause, ch)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		if i == 0 {
			fmt.Println(aligned(r.memoryColumns()))
		}
		r.memory = append(r.memory, row)
		fmt.Println(aligned(r.memoryCells(row)))
	}
	if replicates {
		if err := r.measureReplication(ctx, shapes(part)[:2], zadd(16), l); err != nil {
			return err
		}
	}
	if len(durable) > 0 {
		if err := r.measureDurable(ctx, durable, l); err != nil {
			return err
		}
	}
	if starts {
		if err := r.measureStarts(ctx, startShapes(part), pause); err != nil {
			return err
		}
	}
	if live {
		if err := r.measureLive(ctx, l); err != nil {
			return err
		}
	}
	if console {
		if err := r.measureConsole(ctx, withConsole, viewers, l); err != nil {
			return err
		}
	}
	if o.work == "" {
		if r.idle, err = measureIdle(ctx, targets, 2*pause); err != nil {
			return err
		}
		fmt.Print(r.idleText())
	}
	if !slices.Contains([]string{startWork, replicationWork, liveWork}, o.work) {
		fmt.Print(r.meansText(), r.verdictText())
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
	if starts {
		if err := r.writeSection(o.results, "start", r.startMarkdown); err != nil {
			return err
		}
	}
	if live {
		if err := r.writeSection(o.results, liveWork, r.liveMarkdown); err != nil {
			return err
		}
	}
	if replicates {
		if err := r.writeSection(o.results, "replication", r.replicationMarkdown); err != nil {
			return err
		}
	}
	if o.work != "" {
		return nil
	}
	if err := r.writeSection(o.results, "bench", r.markdown); err != nil || o.summary == "" {
		return err
	}
	return r.writeSection(o.summary, "bench", func(plot string) string { return summary(r.markdown(plot)) })
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
	if len(list) == 0 {
		return nil
	}
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
