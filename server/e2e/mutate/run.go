package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// binary is the compiled tests of a package.
type binary struct {
	Name    string // the package, from the root of the module
	Dir     string // in which the tests run
	Program string
}

// test is a test, a fuzz target with its corpus, or an example.
type test struct {
	Binary  int
	Name    string
	Seconds float64
}

// run is the record of a tree: its places, its tests, and which reach which.
type run struct {
	Places   []place
	Binaries []binary
	Tests    []test  // those that pass
	Reached  [][]int // for each place, the tests that reach it, the shortest first
	parallel int
}

// name returns the name of a test with its package.
func (r *run) name(test int) string {
	t := r.Tests[test]
	return r.Binaries[t.Binary].Name + " " + t.Name
}

const (
	// slowest is the time that a test may take without a fault. A test that needs more is not part of a run.
	slowest = 2 * time.Minute
	// memory is the address space of a test in KB: a fault that allocates without end fails.
	memory = 16 << 20
)

// record runs each test once, and notes which places it reaches.
func (r *run) record(w io.Writer, dir string, binaries []binary) error {
	r.Binaries = binaries
	var all []test
	for i, b := range binaries {
		out, err := b.run(context.Background(), nil, "-test.list", ".")
		if err != nil {
			return fmt.Errorf("list the tests of %s: %w\n%s", b.Name, err, out)
		}
		for _, name := range strings.Fields(string(out)) {
			if regexp.MustCompile(`^(Test|Fuzz|Example)\w*$`).MatchString(name) {
				all = append(all, test{Binary: i, Name: name})
			}
		}
	}
	reached := make([][]byte, len(all))
	failed := make([]bool, len(all))
	err := each(r.parallel, len(all), func(i int) error {
		name := filepath.Join(dir, "reached-"+strconv.Itoa(i))
		if err := os.WriteFile(name, make([]byte, len(r.Places)), 0o666); err != nil {
			return err
		}
		defer os.Remove(name)
		start := time.Now()
		b := binaries[all[i].Binary]
		_, err := b.tests(slowest, []string{"ZSETD_MUTANT_REACHED=" + name}, all[i].Name)
		all[i].Seconds = time.Since(start).Seconds()
		failed[i] = err != nil
		if reached[i], err = os.ReadFile(name); err != nil {
			return err
		}
		reached[i] = pack(reached[i])
		return nil
	})
	if err != nil {
		return err
	}
	order := make([]int, 0, len(all))
	for i := range all {
		if failed[i] {
			fmt.Fprintf(w, "left out, as it fails without a fault: %s %s\n", binaries[all[i].Binary].Name, all[i].Name)
			continue
		}
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(all[a].Seconds, all[b].Seconds) })
	r.Reached = make([][]int, len(r.Places))
	for n, i := range order {
		r.Tests = append(r.Tests, all[i])
		for id := range r.Places {
			if reached[i][id/8]&(1<<(id%8)) != 0 {
				r.Reached[id] = append(r.Reached[id], n)
			}
		}
	}
	return nil
}

// pack returns a bit for each byte.
func pack(b []byte) []byte {
	bits := make([]byte, (len(b)+7)/8)
	for i, x := range b {
		bits[i/8] |= x << (i % 8)
	}
	return bits
}

// each calls f for 0 to n-1, in some goroutines.
func each(parallel, n int, f func(i int) error) error {
	next := make(chan int)
	var group sync.WaitGroup
	errs := make([]error, n)
	for range parallel {
		group.Go(func() {
			for i := range next {
				errs[i] = f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	group.Wait()
	return errors.Join(errs...)
}

// try runs the tests that reach a place with its fault, and returns the first that fails.
func (r *run) try(id int) (noticed bool, by string, err error) {
	batch, seconds := map[int][]int{}, 0.0
	limit := 1.0
	for i, n := range r.Reached[id] {
		t := r.Tests[n]
		batch[t.Binary] = append(batch[t.Binary], n)
		seconds += t.Seconds
		if seconds < limit && i < len(r.Reached[id])-1 {
			continue
		}
		if by, err := r.tryBatch(id, batch); by != "" || err != nil {
			return by != "", by, err
		}
		batch, seconds = map[int][]int{}, 0
		limit *= 2
	}
	return false, "", nil
}

// tryBatch runs tests with a fault, those of one package in one process.
func (r *run) tryBatch(id int, batch map[int][]int) (by string, err error) {
	var group [][]int
	for _, tests := range batch {
		group = append(group, tests)
	}
	found := make([]string, len(group))
	err = each(r.parallel, len(group), func(i int) error {
		b := r.Binaries[r.Tests[group[i][0]].Binary]
		var names []string
		seconds := 0.0
		for _, n := range group[i] {
			names = append(names, r.Tests[n].Name)
			seconds += r.Tests[n].Seconds
		}
		limit := 20*time.Second + time.Duration(8*seconds*float64(time.Second))
		out, err := b.tests(limit, []string{"ZSETD_MUTANT=" + strconv.Itoa(id)}, names...)
		if err == nil {
			return nil
		}
		if failing := regexp.MustCompile(`(?m)^--- FAIL: ([^\s/]+)`).FindSubmatch(out); failing != nil {
			names = []string{string(failing[1])}
		}
		if _, err := b.tests(limit, nil, names...); err != nil {
			return nil // fails without the fault, too
		}
		found[i] = b.Name + " " + strings.Join(names[:min(3, len(names))], " ")
		return nil
	})
	for _, f := range found {
		by = cmp.Or(by, f)
	}
	return by, err
}

// tests runs some tests. A run that does not end in time has failed.
func (b binary) tests(limit time.Duration, env []string, names ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit+10*time.Second)
	defer cancel()
	return b.run(ctx, env, "-test.failfast", "-test.timeout", limit.String(), "-test.run", "^("+strings.Join(names, "|")+")$")
}

// run runs the program, and ends all processes that it has left.
func (b binary) run(ctx context.Context, env []string, args ...string) ([]byte, error) {
	cmd := exec.Command("sh", append([]string{"-c", "ulimit -v " + strconv.Itoa(memory) + `; exec "$0" "$@"`, b.Program}, args...)...)
	cmd.Dir = b.Dir
	cmd.Env = environment(env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	end := func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	stop := context.AfterFunc(ctx, end)
	defer stop()
	err := cmd.Wait()
	end()
	return out.Bytes(), err
}
