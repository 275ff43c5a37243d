//go:build linux

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/zsetd/zsetd/server/e2e/program"
)

// options are those of the command line.
type options struct {
	time      time.Duration
	seed      uint64
	rate      float64
	race      bool
	owners    int
	dir       string
	binary    string
	transport string
	stages    string
	verbose   bool
	only      string
	calm      bool
	deeds     []string

	lie bool // the model is made wrong now and then, for a test
	out io.Writer

	mu sync.Mutex
}

func (o *options) print(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	fmt.Fprintln(o.out, text)
}

func (o *options) printf(format string, args ...any) { o.print(fmt.Sprintf(format, args...)) }

func main() {
	o := &options{out: os.Stdout}
	flag.DurationVar(&o.time, "time", time.Hour, "how long")
	flag.Uint64Var(&o.seed, "seed", 0, "what is drawn: a number that an earlier run has printed; 0 is another each time")
	flag.Float64Var(&o.rate, "rate", 0, "at most so many `commands` in a second to each server; 0 is no limit")
	flag.BoolVar(&o.race, "race", false, "build the server with the race detector")
	flag.IntVar(&o.owners, "owners", 8, "workers that have keys of their own")
	flag.StringVar(&o.dir, "dir", "", "where logs and files are; removed in the end if all is well")
	flag.StringVar(&o.binary, "zsetd", "", "a server that was built already")
	flag.StringVar(&o.transport, "transport", "", "epoll or net; both if nothing is said")
	flag.StringVar(&o.stages, "stages", "steady,crash", "which of the two servers there are")
	flag.BoolVar(&o.verbose, "v", false, "tell what the server has whenever all is compared")
	flag.StringVar(&o.only, "only", "", "the one type that keys of their own have, to find a fault")
	flag.BoolVar(&o.calm, "calm", false, "only workers with keys of their own, and no operator")
	flag.Func("deeds", "what the operator does: names of chaos.go, with commas, to find a fault", func(s string) error {
		o.deeds = strings.Split(s, ",")
		return nil
	})
	flag.Parse()
	if o.seed == 0 {
		o.seed = uint64(rand.Uint32())
	}
	if err := o.run(); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func (o *options) run() (err error) {
	if o.dir == "" {
		if o.dir, err = os.MkdirTemp("", "zsetd-soak-"); err != nil {
			return err
		}
	}
	if o.binary == "" {
		if o.binary, err = program.Build(o.dir, o.race); err != nil {
			return err
		}
	}
	o.printf("soak: %v, seed %d, race %v, rate %v, %s", o.time, o.seed, o.race, o.rate, o.dir)
	var stages []*stage
	for name := range strings.SplitSeq(o.stages, ",") {
		st, err := newStage(name, o, name == "crash")
		if err != nil {
			return err
		}
		stages = append(stages, st)
	}
	errs := make([]error, len(stages))
	var wg sync.WaitGroup
	for i, st := range stages {
		wg.Go(func() { errs[i] = st.run(o.time) })
	}
	wg.Wait()
	for _, st := range stages {
		st.tell()
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("seed %d: %w", o.seed, err)
	}
	return os.RemoveAll(o.dir)
}

// tell prints what a stage has done.
func (st *stage) tell() {
	s := &st.stats
	seconds := time.Since(st.begin).Seconds()
	st.o.printf("\n%s: %d commands, %.0f in a second; of the owners %d steps, %d refused, %d keys adopted, %d comparisons of keys; "+
		"%d connections lost, %d recoveries, %d steps that were not there then",
		st.name, s.commands.Load(), float64(s.commands.Load())/seconds, s.steps.Load(), s.refused.Load(), s.adopted.Load(), s.compared.Load(),
		s.lost.Load(), s.recovered.Load(), s.takenBack.Load())
	for _, w := range st.workers {
		st.o.print("   " + w.String())
	}
	for _, line := range st.report {
		st.o.print("   " + line)
	}
	if st.crashes {
		kills, most := st.lost()
		st.o.printf("   %d starts, %d kills; what they have taken away is not older than %v", len(st.lives), kills, most.Round(time.Millisecond))
		return
	}
	st.o.print(st.table())
}
