package transport

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// How many loops serve follows the load. A server starts with one: it finds the most
// clients ready at a time, and no other loop waits for the engine's lock. While loops are
// busy a goroutine (followLoad) measures them. It starts further ones, up to one less than
// GOMAXPROCS, if the machine has idle cores, and keeps them if they serve more commands
// (scaler). When the load falls fewer loops serve. The others then sleep, without clients.
//
// A loop gives a client away between its own turns, when the client has nothing in progress
// (give). It takes the socket off its epoll, and posts the client to the other loop. That
// one handles the post as any other, and so asks its own epoll for the client's events:
// those that have occurred by then are reported, too.

const (
	// watchedRounds is after how many waits a loop has the load measured.
	watchedRounds = 1024
	// loadWindow is how long each measurement of the load takes.
	loadWindow = 200 * time.Millisecond
	// giveTries is in how many rounds a loop looks for clients to give away.
	giveTries = 16
)

// loops are the loops of a server. The first connection starts one.
type loops struct {
	all    []*loop // changed with Transport.mu until it is stopping
	active int     // the first ones of all: these serve, and new connections go to them
	next   int
	gone   sync.WaitGroup // the loops and followLoad

	watched atomic.Bool // followLoad runs
	stopped context.Context
	end     context.CancelFunc // ends stopped; nil without loops
	closed  sync.Once

	// unsettled makes tests of moves: three loops serve, and each gives a client away after
	// each of its events.
	unsettled bool
}

// order asks a loop to give n clients to another loop.
type order struct {
	to *loop
	n  int
}

// meter measures a loop.
type meter struct {
	on    bool // more than one loop is possible
	begin time.Time
	ran   int64 // commands, of the loop's own goroutine

	clients  atomic.Int64 // in loop.conns
	commands atomic.Int64 // ran, as of the last turns
	asleep   atomic.Int64 // nanoseconds in all sleeps that have ended
	since    atomic.Int64 // nanoseconds from begin to that of the present sleep; 0: awake
}

func (m *meter) sleeps() {
	if m.on {
		m.since.Store(int64(time.Since(m.begin)))
	}
}

func (m *meter) wakes() {
	if m.on {
		m.asleep.Add(int64(time.Since(m.begin)) - m.since.Swap(0))
	}
}

func (m *meter) publish() {
	if m.on {
		m.commands.Store(m.ran)
	}
}

// slept returns for how long the loop has slept. It may miss a sleep that ends meanwhile; the
// next window then has it.
func (m *meter) slept() time.Duration {
	slept := m.asleep.Load()
	if since := m.since.Load(); since != 0 {
		slept += int64(time.Since(m.begin)) - since
	}
	return time.Duration(slept)
}

// nextLoop returns the loop for the next connection.
func (t *Transport) nextLoop() (*loop, error) {
	ls := &t.loops
	for len(ls.all) == 0 || ls.unsettled && len(ls.all) < 3 {
		if err := t.addLoop(); err != nil {
			return nil, err
		}
		ls.active = len(ls.all)
	}
	ls.next++
	return ls.all[ls.next%ls.active], nil
}

// addLoop starts a loop. Transport.mu is held.
func (t *Transport) addLoop() error {
	l, err := newLoop(t)
	if err != nil {
		return err
	}
	ls := &t.loops
	if len(ls.all) == 0 {
		ls.stopped, ls.end = context.WithCancel(context.Background())
		l.useAlarm(createTimer)
	}
	l.meter.on, l.meter.begin = runtime.GOMAXPROCS(0) > 2 && !ls.unsettled, time.Now()
	ls.all = append(ls.all, l)
	ls.gone.Go(l.run)
	return nil
}

// stop ends the loops, whose connections are closed, and waits until they have
// ended. No connection may be added afterwards.
func (ls *loops) stop() {
	if ls.end != nil {
		ls.end()
	}
	for _, l := range ls.all {
		l.mu.Lock()
		if !l.quit {
			l.quit = true
			l.rouse()
		}
		l.mu.Unlock()
	}
	ls.gone.Wait()
	for _, l := range ls.all {
		l.dropAlarm()
	}
}

// close closes the descriptors of the loops, which have ended.
func (ls *loops) close() {
	ls.closed.Do(func() {
		for _, l := range ls.all {
			if l.alarm != nil {
				unix.Close(l.alarm.fd)
			}
			unix.Close(l.event)
			unix.Close(l.epoll)
		}
	})
}

// watchLoad starts followLoad unless it runs. A loop calls it.
func (t *Transport) watchLoad() {
	if t.loops.watched.CompareAndSwap(false, true) {
		t.loops.gone.Go(t.followLoad)
	}
}

// followLoad makes as many loops serve as the load needs, until one suffices.
func (t *Transport) followLoad() {
	defer t.recovers()
	ls := &t.loops
	defer ls.watched.Store(false)
	tick := time.NewTicker(loadWindow)
	defer tick.Stop()
	t.mu.Lock()
	s := newScaler(ls.active)
	t.mu.Unlock()
	before := t.readMeters()
	for {
		select {
		case <-ls.stopped.Done():
			return
		case <-tick.C:
		}
		now := t.readMeters()
		l := now.load(before)
		before = now
		n, enough := s.next(l)
		if enough {
			return
		}
		s.loops = t.arrange(n)
		if s.loops != now.active {
			t.engine.Log.Debug("the number of loops follows the load", "loops", s.loops, "before", now.active, "busy", l.busy, "commands per second", l.rate, "idle cores", l.idle)
		}
	}
}

// reading is what the meters of all loops and of the machine have counted so far.
type reading struct {
	at              time.Time
	slept, idle     time.Duration
	knownIdle       bool
	commands        int64
	clients, active int
	all             int
}

func (t *Transport) readMeters() (r reading) {
	r.idle, r.knownIdle = idleTime()
	t.mu.Lock()
	defer t.mu.Unlock()
	ls := &t.loops
	r.active, r.all = ls.active, len(ls.all)
	for _, l := range ls.all {
		r.slept += l.meter.slept()
		r.commands += l.meter.commands.Load()
		r.clients += int(l.meter.clients.Load())
	}
	r.at = time.Now()
	return r
}

// load returns the load since an earlier reading.
func (r reading) load(before reading) load {
	took := r.at.Sub(before.at).Seconds()
	l := load{
		busy:    float64(before.all) - (r.slept-before.slept).Seconds()/took,
		rate:    float64(r.commands-before.commands) / took,
		clients: r.clients,
		procs:   runtime.GOMAXPROCS(0),
		idle:    (r.idle - before.idle).Seconds() / took,
	}
	l.busy = min(max(l.busy, 0), float64(before.all))
	if !r.knownIdle || !before.knownIdle {
		l.idle = float64(l.procs) // let the trial decide
	}
	return l
}

// arrange makes n loops serve, if it can, and asks loops with too many clients to give
// some away. It returns how many serve.
func (t *Transport) arrange(n int) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	ls := &t.loops
	for len(ls.all) < n && !t.stopping {
		if err := t.addLoop(); err != nil {
			t.engine.Log.Warn("cannot start another loop", "error", err)
			break
		}
	}
	ls.active = min(n, len(ls.all))
	clients := make([]int, len(ls.all))
	for i, l := range ls.all {
		clients[i] = int(l.meter.clients.Load())
	}
	for from, row := range balance(clients, ls.active) {
		ls.all[from].order(ls.all, row)
	}
	return ls.active
}

// order asks the loop to give row[i] clients to loop i of all.
func (l *loop) order(all []*loop, row []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.orders = nil
	for to, n := range row {
		if n > 0 {
			l.orders = append(l.orders, order{all[to], n})
		}
	}
	if len(l.orders) > 0 && l.sleeping {
		l.sleeping = false
		l.rouse()
	}
}

// giveAway gives clients to other loops as ordered. Those that cannot be given now are tried
// again in the next rounds.
func (l *loop) giveAway() {
	for _, c := range l.conns {
		o := &l.giving[0]
		if c == nil || !l.give(c, o.to) {
			continue
		}
		if o.n--; o.n == 0 {
			if l.giving = l.giving[1:]; len(l.giving) == 0 {
				return
			}
		}
	}
	if l.tries--; l.tries == 0 {
		l.giving = nil
	}
}

// giveServed gives the clients of n events to the next loop. Only tests ask for that.
func (l *loop) giveServed(n int) {
	for i := range l.events[:n] {
		if c := l.conn(&l.events[i]); c != nil {
			all := l.t.loops.all
			l.give(c, all[(slices.Index(all, l)+1)%len(all)])
		}
	}
}

// give gives a client to another loop, unless it has something in progress. The loop calls it
// between its turns. Afterwards the client belongs to the other loop.
func (l *loop) give(c *polled, to *loop) bool {
	if !c.inLoop() || c.phase != receiving || c.state.load() != serving || c.queued || c.inNotified || c.pending ||
		c.out != nil || c.rest != nil || c.last != nil {
		return false
	}
	l.mu.Lock()
	if c.posted {
		l.mu.Unlock()
		return false
	}
	if c.interest != 0 {
		c.setInterest(0)
	}
	l.forget(c)
	c.loop.Store(to)
	l.mu.Unlock()
	c.wake()
	return true
}

// forget removes a connection whose events are not asked for.
func (l *loop) forget(c *polled) {
	if c.fd < len(l.conns) && l.conns[c.fd] != nil {
		l.conns[c.fd] = nil
		l.meter.clients.Add(-1)
	}
}
