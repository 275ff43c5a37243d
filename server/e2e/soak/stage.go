//go:build linux

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/zsetd/zsetd/server/servertest/port"
)

// stage is a server and all who work with it: one whose server runs the whole time,
// or one whose server is killed again and again.
type stage struct {
	name    string
	o       *options
	crashes bool
	dir     string
	port    string
	begin   time.Time

	// gate is held by each worker while it does a step, and by who wants to have
	// the server for himself.
	gate     sync.RWMutex
	over     atomic.Bool // the workers are to stop
	failed   atomic.Bool
	evicting atomic.Bool // there is a limit of memory and a policy, or perhaps still is

	life   atomic.Int64 // of the server: how often it was started
	mu     sync.Mutex
	lives  []life
	server *process

	owners  []*owner
	workers []worker
	stats   ownerStats
	report  []string
	chaos   *chaos
	numbers uint64 // of players
	fresh   sample // just after the start
	samples []sample
}

// life is a server from its start to its end.
type life struct {
	always bool // appendfsync
	ended  time.Time
	killed bool
	// Bounds of the instant of the data after the restart.
	lo, hi         time.Time
	loName, hiName string
}

// worker is a client that shares keys with others.
type worker interface {
	run()                   // until the stage is over
	finish(c *client) error // compares the data at the end, when no worker runs
	String() string         // a summary of its work
}

// window is how old a write may be that a crash takes away under everysec: a second,
// and the time that writes take on a busy disk. Losses are reported.
const window = 8 * time.Second

func newStage(name string, o *options, crashes bool) (*stage, error) {
	st := &stage{name: name, o: o, crashes: crashes, begin: time.Now(), dir: filepath.Join(o.dir, name)}
	if err := os.MkdirAll(st.dir, 0o755); err != nil {
		return nil, err
	}
	var err error
	st.port, err = port.Free()
	return st, err
}

// random returns a source of what worker n draws.
func (st *stage) random(n uint64) *rand.Rand {
	if st.crashes {
		n += 1 << 32
	}
	return rand.New(rand.NewPCG(st.o.seed, n))
}

// launch starts the server, waits until it has loaded its data, and gives it the function
// of the owners.
func (st *stage) launch(r *rand.Rand) error {
	always := st.crashes && r.IntN(2) == 0
	args := []string{"--port", st.port, "--bind", "127.0.0.1", "--enable-debug-command", "local", "--maxclients", "2000"}
	if always {
		args = append(args, "--appendonly", "yes", "--appendfsync", "always")
	}
	var env []string
	if st.o.race {
		env = append(env, "GORACE=halt_on_error=1 exitcode=66")
	}
	if st.o.transport == "net" || st.o.transport == "" && st.crashes && r.IntN(3) == 0 {
		args = append(args, "--transport", "net")
	}
	p, err := start(st.o.binary, st.dir, env, args)
	if err != nil {
		return err
	}
	st.mu.Lock()
	st.server = p
	st.lives = append(st.lives, life{always: always})
	st.mu.Unlock()
	st.life.Add(1)
	c, _, err := st.dial()
	if err != nil {
		return err
	}
	defer c.close()
	_, err = c.ask(words("FUNCTION", "LOAD", "REPLACE", "#!lua name=soak\nredis.register_function('soak_call', function(keys, args) return redis.call(unpack(args)) end)"))
	return err
}

func (st *stage) addr() string { return "127.0.0.1:" + st.port }

// dial connects, however long the server takes to come back, and tells which life
// of it that is.
func (st *stage) dial() (*client, int, error) {
	var last error
	for begin := time.Now(); time.Since(begin) < answerTime; time.Sleep(5 * time.Millisecond) {
		if st.failed.Load() {
			return nil, 0, errOver
		}
		n := st.life.Load()
		c, err := dial(st.addr())
		if err == nil {
			if _, err = c.ask(words("PING")); err == nil && st.life.Load() == n {
				return c, int(n), nil
			}
			c.close()
		}
		last = err
	}
	return nil, 0, fmt.Errorf("no connection within %v: %w", answerTime, last)
}

var errOver = errors.New("the stage is over")

// enter is called before a step; false means that it is over.
func (st *stage) enter() bool {
	if st.over.Load() {
		return false
	}
	st.gate.RLock()
	if st.over.Load() {
		st.gate.RUnlock()
		return false
	}
	return true
}

func (st *stage) leave() { st.gate.RUnlock() }

// pace keeps to the rate.
func (st *stage) pace(r *rand.Rand) {
	rate := st.o.rate
	if rate <= 0 {
		return
	}
	for !st.over.Load() && float64(st.stats.commands.Load()) > time.Since(st.begin).Seconds()*rate {
		time.Sleep(time.Millisecond + time.Duration(r.IntN(4))*time.Millisecond)
	}
}

// fail tells what has gone wrong, and ends the stage.
func (st *stage) fail(who any, err error) {
	if errors.Is(err, errOver) {
		return
	}
	st.over.Store(true)
	if st.failed.Swap(true) {
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\nFAILED: stage %s, seed %d, after %v, %s\n  %v: %v\n",
		st.name, st.o.seed, time.Since(st.begin).Round(time.Millisecond), time.Now().Format("15:04:05.000"), who, err)
	if o, ok := who.(*owner); ok {
		key := ""
		if m := (*mismatch)(nil); errors.As(err, &m) {
			key = m.key
		}
		fmt.Fprintf(&b, "  what it has done last, of that key:\n%s", o.ring.last(8, key))
	}
	if st.chaos != nil {
		fmt.Fprintf(&b, "  what the operator has done last:\n%s", st.chaos.p.ring.last(40, ""))
	}
	fmt.Fprintf(&b, "  the server's log and file are in %s\n", st.dir)
	st.o.print(b.String())
}

// In each cycle there is a time in which keys with deadlines are evicted. Shortly
// before it and during it, only workers that expect evictions set deadlines.
const (
	cycle     = 40 * time.Second
	noMore    = 8 * time.Second  // no more deadlines
	evictFrom = 22 * time.Second // all of before have passed
	evictTo   = 31 * time.Second
	anewFrom  = 32 * time.Second
)

// mayExpire reports whether keys may be given deadlines, of which none is further
// away than 13 seconds.
func (st *stage) mayExpire() bool {
	t := time.Since(st.begin) % cycle
	return st.crashes || (t < noMore || t > anewFrom) && !st.evicting.Load()
}

// evicts reports whether keys with deadlines may be evicted.
func (st *stage) evicts() bool {
	t := time.Since(st.begin) % cycle
	return !st.crashes && t > evictFrom && t < evictTo
}

// mayLose is for how long a step may still be taken back.
func (st *stage) mayLose() time.Duration {
	if st.crashes {
		return window
	}
	return 0
}

// lostSince returns whether the ends of the lives from old to new may have lost
// acknowledged writes, and the moment after which.
func (st *stage) lostSince(old, now int) (from time.Time, lossy bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for i := max(1, old); i < now; i++ {
		if l := st.lives[i-1]; l.killed && !l.always && !lossy {
			from, lossy = l.ended.Add(-window), true
		}
	}
	return from, lossy
}

// moment notes what a worker has found out about the moment that the data are of, and
// fails if all of them together say that there is no such moment.
func (st *stage) moment(old, now int, name string, lo, hi time.Time) error {
	if old != now-1 || old == 0 {
		return nil
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	l := &st.lives[old-1]
	if lo.After(l.lo) {
		l.lo, l.loName = lo, name
	}
	if !hi.IsZero() && (l.hi.IsZero() || hi.Before(l.hi)) {
		l.hi, l.hiName = hi, name
	}
	if !l.hi.IsZero() && l.lo.After(l.hi) {
		return &mismatch{"all", fmt.Sprintf("after server %d was killed there is no moment that all data are of: %s has what was sent at %s, and %s lacks what was acknowledged at %s",
			old, l.loName, l.lo.Format("15:04:05.000000"), l.hiName, l.hi.Format("15:04:05.000000"))}
	}
	return nil
}

// end ends the server in one of the ways.
func (st *stage) end(how string) error {
	st.mu.Lock()
	p, l := st.server, &st.lives[len(st.lives)-1]
	l.killed = how == "kill"
	l.ended = time.Now()
	st.mu.Unlock()
	switch how {
	case "kill":
		p.signal(syscall.SIGKILL)
	case "term":
		p.signal(syscall.SIGTERM)
	case "signals": // further ones do not keep it from saving
		for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGTERM, syscall.SIGINT, syscall.SIGINT} {
			p.signal(s)
			time.Sleep(time.Millisecond)
		}
	case "truncate": // the last save writes a fresh file
		if err := st.truncate(); err != nil {
			return err
		}
		p.signal(syscall.SIGTERM)
	case "shutdown":
		for begin := time.Now(); !p.ended(); time.Sleep(10 * time.Millisecond) {
			c, err := dial(st.addr())
			if err != nil {
				continue
			}
			r, err := c.do("SHUTDOWN")
			c.close()
			if time.Since(begin) > answerTime {
				return fmt.Errorf("SHUTDOWN: %s %v", show(r), err)
			}
		}
	}
	if err := p.wait(answerTime); err != nil {
		return err
	}
	if how == "kill" {
		return nil
	}
	if !p.cmd.ProcessState.Success() {
		return fmt.Errorf("the server was stopped (%s), and its exit status is %v", how, p.cmd.ProcessState)
	}
	return nil
}

// truncate cuts the file of the data to a half of what it takes on the disk, as another
// program may do while the server has it open.
func (st *stage) truncate() error {
	path := filepath.Join(st.dir, "zsetd.db")
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	size := info.Size()
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		size = min(size, s.Blocks*512)
	}
	return os.Truncate(path, size/2)
}

// alone has the server for itself while f runs.
func (st *stage) alone(f func(c *client, life int) error) error {
	st.gate.Lock()
	defer st.gate.Unlock()
	c, life, err := st.dial()
	if err != nil {
		return err
	}
	defer c.close()
	return f(c, life)
}

// compare compares everything that the owners have.
func (st *stage) compare(c *client, life int) error {
	for _, o := range st.owners {
		if err := o.compareAll(c, life); err != nil {
			st.fail(o, err)
			return err
		}
	}
	return nil
}

// run runs the stage for a time.
func (st *stage) run(limit time.Duration) error {
	r := st.random(1 << 20)
	if err := st.launch(r); err != nil {
		return err
	}
	defer func() { st.server.signal(syscall.SIGKILL) }()
	st.begin = time.Now()
	if err := st.alone(func(c *client, _ int) (err error) { st.fresh, err = st.lookQuietly(c); return err }); err != nil {
		return err
	}
	st.cast()
	var wg sync.WaitGroup
	for n := range st.o.owners {
		o := newOwner(st, n)
		st.owners = append(st.owners, o)
		wg.Go(o.run)
	}
	for _, w := range st.workers {
		wg.Go(w.run)
	}
	until := st.begin.Add(limit)
	st.direct(r, limit, until)
	st.over.Store(true)
	wg.Wait()
	if !st.failed.Load() {
		if err := st.alone(st.finish); err != nil {
			st.fail("the end", err)
		}
	}
	if !st.failed.Load() {
		if err := st.end([]string{"term", "shutdown"}[r.IntN(2)]); err != nil {
			st.fail("stop", err)
		}
	}
	if bad := st.server.complaints(); bad != "" {
		st.fail("log", errors.New(bad))
	}
	if st.failed.Load() {
		return fmt.Errorf("stage %s has failed", st.name)
	}
	return nil
}

// finish compares all when the workers have ended.
func (st *stage) finish(c *client, life int) error {
	if err := st.chaos.calm(c); err != nil {
		return err
	}
	if err := st.compare(c, life); err != nil {
		return err
	}
	for _, w := range st.workers {
		if err := w.finish(c); err != nil {
			st.fail(w, err)
			return err
		}
	}
	s, err := st.lookQuietly(c)
	if err != nil || st.crashes {
		return err
	}
	st.samples = append(st.samples, s)
	if err := st.leaks(); err != nil {
		return err
	}
	return st.emptied(c)
}

// cast engages the workers.
func (st *stage) cast() {
	st.chaos = newChaos(st)
	if st.o.calm {
		if len(st.o.deeds) > 0 {
			st.workers = append(st.workers, st.chaos)
		}
		return
	}
	st.workers = []worker{newCounters(st), newAccounts(st), newQueue(st, "queue", false), newQueue(st, "zqueue", true), newCache(st), newVisitors(st), st.chaos}
	if !st.crashes { // the invariants of these do not hold across a crash
		st.workers = append(st.workers, newClaims(st), newBoxes(st), newRooms(st), newEntries(st), newNews(st), newMirrors(st), newAlarms(st), newViews(st))
	}
}

// direct lets time go by: it restarts the server, or looks at it.
func (st *stage) direct(r *rand.Rand, limit time.Duration, until time.Time) {
	every := max(limit/40, 3*time.Second)
	next := time.Now().Add(every)
	for over := func() bool { return st.over.Load() || time.Now().After(until) }; !over(); {
		if st.crashes {
			st.rest(min(2*time.Second, limit/5)+time.Duration(r.Int64N(int64(min(limit/4, 25*time.Second)))), until)
			if over() {
				return
			}
			if err := st.restart(r); err != nil {
				st.fail("restart", err)
			}
			continue
		}
		st.rest(500*time.Millisecond, until)
		if st.server.ended() {
			st.fail("watch", fmt.Errorf("the server has ended: %v", st.server.cmd.ProcessState))
			return
		}
		if now := time.Now(); now.After(next) && now.Add(every).Before(until) {
			next = now.Add(every)
			if err := st.checkpoint(); err != nil {
				st.fail("the rest", err)
			} else if st.o.verbose {
				st.o.print(st.samples[len(st.samples)-1].String())
			}
		}
	}
}

func (st *stage) rest(d time.Duration, until time.Time) {
	for end := time.Now().Add(d); time.Now().Before(end) && time.Now().Before(until) && !st.over.Load(); {
		time.Sleep(20 * time.Millisecond)
	}
}

// restart ends the server in one of the ways, and starts it again with its file.
func (st *stage) restart(r *rand.Rand) error {
	how := []string{"kill", "kill", "kill", "term", "shutdown", "signals", "truncate"}[r.IntN(7)]
	if err := st.end(how); err != nil {
		return err
	}
	st.mu.Lock()
	st.chaos.p.ring.add(fmt.Sprintf("%s of server %d; appendfsync always: %v", how, len(st.lives), st.lives[len(st.lives)-1].always))
	st.mu.Unlock()
	return st.launch(r)
}

// lost tells how much the kills have taken away at most.
func (st *stage) lost() (kills int, most time.Duration) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, l := range slices.Concat(st.lives) {
		if l.killed {
			kills++
			if !l.hi.IsZero() {
				most = max(most, l.ended.Sub(l.hi))
			}
		}
	}
	return kills, most
}
