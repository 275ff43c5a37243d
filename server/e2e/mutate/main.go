package main

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

func main() {
	var o options
	flag.IntVar(&o.n, "n", 50, "number of faults")
	flag.Uint64Var(&o.seed, "seed", 0, "seed of the sample, 0 for one of the clock")
	flag.StringVar(&o.packages, "package", ".", "regular expression for the packages that get faults")
	flag.StringVar(&o.tests, "tests", ".", "regular expression for the packages whose tests run")
	flag.StringVar(&o.root, "root", ".", "the repository")
	flag.StringVar(&o.dir, "dir", "", "directory of the copies; without it, one that is removed at the end")
	flag.StringVar(&o.places, "places", "", "file for the places that at most one test reaches")
	flag.IntVar(&o.parallel, "parallel", 2, "number of tests at a time")
	flag.Parse()
	if err := o.run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

type options struct {
	n                                  int
	seed                               uint64
	packages, tests, root, dir, places string
	parallel                           int
}

func (o options) run(w io.Writer) error {
	only, err := regexp.Compile(o.packages)
	if err != nil {
		return err
	}
	if o.dir == "" {
		if o.dir, err = os.MkdirTemp("", "mutate-"); err != nil {
			return err
		}
		defer os.RemoveAll(o.dir)
	}
	if o.dir, err = filepath.Abs(o.dir); err != nil {
		return err
	}
	run, err := prepare(w, o)
	if err != nil {
		return err
	}
	run.report(w)
	if o.places != "" {
		if err := run.writePlaces(o.places); err != nil {
			return err
		}
	}
	if o.seed == 0 {
		o.seed = uint64(time.Now().UnixNano())
	}
	fmt.Fprintf(w, "%d faults with seed %d\n", o.n, o.seed)
	return run.sample(w, o, only)
}

// prepare returns the run of a tree that the directory has, or makes one.
func prepare(w io.Writer, o options) (*run, error) {
	files, hash, err := sourceHash(o.root)
	if err != nil {
		return nil, err
	}
	tests, err := regexp.Compile(o.tests)
	if err != nil {
		return nil, err
	}
	hash += fmt.Sprintf("-%x", sha256.Sum256([]byte(o.tests)))[:9]
	r := &run{parallel: o.parallel}
	record := filepath.Join(o.dir, hash, "record.json")
	if err := readJSON(record, r); !errors.Is(err, os.ErrNotExist) {
		return r, err
	}
	if entries, err := os.ReadDir(o.dir); err == nil {
		for _, e := range entries { // copies of other trees
			if err := os.RemoveAll(filepath.Join(o.dir, e.Name())); err != nil {
				return nil, err
			}
		}
	}
	start := time.Now()
	step := func(format string, args ...any) {
		fmt.Fprintf(w, "%5.0f s  %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
	}
	t, err := newTree(o.root, filepath.Join(o.dir, hash), files)
	if err != nil {
		return nil, err
	}
	r.Places = t.places
	step("%d places", len(t.places))
	binaries, err := t.compile(files, tests)
	if err != nil {
		return nil, err
	}
	step("%d packages with tests are compiled", len(binaries))
	if err := r.record(w, t.dir, binaries); err != nil {
		return nil, err
	}
	step("%d tests have run", len(r.Tests))
	return r, writeJSON(record, r)
}

// report prints the number of places and of those that few tests reach, by package.
func (r *run) report(w io.Writer) {
	type row struct{ places, none, one int }
	rows := map[string]*row{}
	for i, p := range r.Places {
		x := rows[p.pkg()]
		if x == nil {
			x = new(row)
			rows[p.pkg()] = x
		}
		x.places++
		switch len(r.Reached[i]) {
		case 0:
			x.none++
		case 1:
			x.one++
		}
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "places\tno test\tone test\t package\t")
	for _, name := range sortedKeys(rows) {
		x := rows[name]
		fmt.Fprintf(t, "%d\t%d\t%d\t %s\t\n", x.places, x.none, x.one, name)
	}
	t.Flush()
}

// writePlaces writes the places that at most one test reaches.
func (r *run) writePlaces(name string) error {
	var b strings.Builder
	for i, p := range r.Places {
		switch tests := r.Reached[i]; len(tests) {
		case 0:
			fmt.Fprintf(&b, "%v: no test\n", p)
		case 1:
			fmt.Fprintf(&b, "%v: %s\n", p, r.name(tests[0]))
		}
	}
	return os.WriteFile(name, []byte(b.String()), 0o666)
}

// sample tries faults at random places, and prints those that no test notices.
func (r *run) sample(w io.Writer, o options, only *regexp.Regexp) error {
	var candidates []int
	for i, p := range r.Places {
		if only.MatchString(p.pkg()) {
			candidates = append(candidates, i)
		}
	}
	random := rand.New(rand.NewPCG(o.seed, 0))
	random.Shuffle(len(candidates), func(i, j int) { candidates[i], candidates[j] = candidates[j], candidates[i] })
	candidates = candidates[:min(o.n, len(candidates))]
	type row struct{ noticed, all int }
	rows := map[string]*row{}
	var missed []int
	for n, id := range candidates {
		p := r.Places[id]
		noticed, by, err := r.try(id)
		if err != nil {
			return err
		}
		x := rows[p.pkg()]
		if x == nil {
			x = new(row)
			rows[p.pkg()] = x
		}
		x.all++
		if noticed {
			x.noticed++
		} else {
			missed = append(missed, id)
			by = fmt.Sprintf("NOT NOTICED by %d tests", len(r.Reached[id]))
		}
		fmt.Fprintf(w, "%d/%d %v: %s\n", n+1, len(candidates), p, by)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, name := range sortedKeys(rows) {
		x := rows[name]
		fmt.Fprintf(t, "%d\tof %d\t %s\t\n", x.noticed, x.all, name)
	}
	t.Flush()
	slices.Sort(missed)
	for _, id := range missed {
		fmt.Fprintf(w, "not noticed: %v (%d tests reach it)\n", r.Places[id], len(r.Reached[id]))
	}
	fmt.Fprintf(w, "%d of %d faults noticed: %.1f %%\n", len(candidates)-len(missed), len(candidates), 100*float64(len(candidates)-len(missed))/float64(max(1, len(candidates))))
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
