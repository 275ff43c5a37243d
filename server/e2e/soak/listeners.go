//go:build linux

package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// news are messages that their publisher numbers: each subscriber receives each
// message, once and in order, as long as the connection lasts.
type news struct {
	st        *stage
	puts      []*player
	takes     []*player
	mu        sync.Mutex
	doubt     map[string]map[int64]bool // that may not have been published
	published counter
	received  counter
	anew      counter
}

func newNews(st *stage, n int) *news {
	w := &news{st: st, doubt: map[string]map[int64]bool{}}
	for i := range n {
		p := st.player("publisher", i)
		w.puts = append(w.puts, p)
		w.doubt[p.name] = map[int64]bool{}
	}
	for i := range n + 2 {
		p := st.player("subscriber", i)
		p.hello = i%2 == 1
		w.takes = append(w.takes, p)
	}
	return w
}

func (w *news) run() {
	var wg sync.WaitGroup
	for _, p := range w.puts {
		var n int64
		wg.Go(func() { p.play(func() error { return w.publish(p, &n) }) })
	}
	for i, p := range w.takes {
		wg.Go(func() { w.listen(p, i) })
	}
	wg.Wait()
}

func (w *news) publish(p *player, n *int64) error {
	time.Sleep(time.Duration(p.int(10)) * time.Millisecond)
	*n++
	message := fmt.Sprintf("%s/%d/%s", p.name, *n, strings.Repeat("x", p.int(300)))
	w.mu.Lock()
	w.doubt[p.name][*n] = true
	w.mu.Unlock()
	commands := [][]string{words("PUBLISH", "news:a", message), words("SPUBLISH", "news:a", message)}
	var err error
	if p.one(3) {
		_, err = p.exec(commands...)
	} else {
		_, err = p.all(commands...)
	}
	if err == nil {
		w.mu.Lock()
		delete(w.doubt[p.name], *n)
		w.mu.Unlock()
		w.published.add(1)
	}
	return err
}

// listen listens until the stage is over, with a new connection whenever one breaks.
func (w *news) listen(p *player, how int) {
	for !w.st.over.Load() {
		err := w.session(p, how)
		p.close()
		if m := (*mismatch)(nil); errors.As(err, &m) || timedOut(err) && !w.st.over.Load() {
			w.st.fail(p, err)
			return
		}
		w.anew.add(1)
		time.Sleep(time.Duration(p.int(30)) * time.Millisecond)
	}
}

func (w *news) session(p *player, how int) error {
	if err := p.connect(); err != nil || p.c == nil {
		return err
	}
	command := [][]string{{"SUBSCRIBE", "news:a"}, {"PSUBSCRIBE", "news:*"}, {"SSUBSCRIBE", "news:a"}}[how%3]
	seen := map[string]int64{}
	var problem error
	handle := func(m []any) {
		kind := text(m[0])
		if !strings.HasSuffix(kind, "message") {
			return
		}
		parts := strings.SplitN(text(m[len(m)-1]), "/", 3)
		if len(parts) != 3 {
			problem = p.wrong("a message that no client has published: %s", show(m))
			return
		}
		n, _ := strconv.ParseInt(parts[1], 10, 64)
		last, known := seen[parts[0]]
		seen[parts[0]] = n
		w.received.add(1)
		if !known || n == last+1 {
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		for i := last + 1; i < n; i++ {
			if !w.doubt[parts[0]][i] {
				problem = p.wrong("of %s message %d came after %d", parts[0], n, last)
				return
			}
		}
		if n <= last {
			problem = p.wrong("of %s message %d came after %d", parts[0], n, last)
		}
	}
	p.c.pushed = handle
	if err := p.c.send(command); err != nil {
		return err
	}
	leave := time.Now().Add(time.Duration(2+p.int(60)) * time.Second)
	for !w.st.over.Load() && time.Now().Before(leave) && problem == nil {
		// In RESP2 messages are arrays, as replies; in RESP3 they are pushed, and
		// PING has a reply of its own.
		if p.hello {
			if err := p.c.send([]string{"PING", "x"}); err != nil {
				return err
			}
			if _, err := p.c.read(); err != nil {
				return err
			}
			time.Sleep(20 * time.Millisecond)
			continue
		}
		if p.one(50) {
			if err := p.c.send([]string{"PING"}); err != nil {
				return err
			}
		}
		r, err := p.c.readFor(time.Second)
		if timedOut(err) {
			return nil // there was no message; the connection is in doubt now
		}
		if err != nil {
			return err
		}
		if l := list(r); len(l) > 0 {
			handle(l)
		}
	}
	if p.one(2) && problem == nil {
		p.c.reset()
	}
	return problem
}

func (w *news) finish(*client) error { return nil }

func (w *news) String() string {
	return fmt.Sprintf("messages: %d published, %d received, %d subscriptions", w.published.get(), w.received.get(), w.anew.get())
}

// mirrors cache the values that they have read until an invalidation arrives (CLIENT
// TRACKING): a cached value is never older than the value that they could read.
type mirrors struct {
	st      *stage
	writers []*player
	readers []*player
	invalid counter
	served  counter
}

func newMirrors(st *stage, n int) *mirrors {
	w := &mirrors{st: st}
	for i := range n {
		w.writers = append(w.writers, st.player("mirrored", i))
		p := st.player("mirror", i)
		p.hello = true
		w.readers = append(w.readers, p)
	}
	return w
}

func (w *mirrors) run() {
	var wg sync.WaitGroup
	for _, p := range w.writers {
		wg.Go(func() { p.play(func() error { return w.write(p) }) })
	}
	for i, p := range w.readers {
		have := map[string]string{}
		p.setup = func() error {
			clear(have)
			p.c.pushed = func(m []any) {
				if len(m) < 2 || text(m[0]) != "invalidate" {
					return
				}
				w.invalid.add(1)
				if m[1] == nil {
					clear(have)
				}
				for _, key := range list(m[1]) {
					delete(have, text(key))
				}
			}
			args := words("CLIENT", "TRACKING", "ON")
			if i%2 == 1 {
				args = words("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "mirrored:")
			}
			_, err := p.all(args)
			return err
		}
		wg.Go(func() { p.play(func() error { return w.read(p, have, i%2 == 1) }) })
	}
	wg.Wait()
}

func (w *mirrors) write(p *player) error {
	time.Sleep(time.Duration(p.int(6)) * time.Millisecond)
	key := fmt.Sprint("mirrored:", p.int(40))
	var err error
	switch p.int(5) {
	case 0:
		_, err = p.do("DEL", key)
	case 1:
		_, err = p.do("SET", key, p.int(1000), "PX", 50+p.int(500))
	default:
		_, err = p.do("SET", key, p.int(1000))
	}
	return err
}

func (w *mirrors) read(p *player, have map[string]string, broadcast bool) error {
	time.Sleep(time.Duration(p.int(3)) * time.Millisecond)
	key := fmt.Sprint("mirrored:", p.int(40))
	r, err := p.do("GET", key) // also handles the invalidations before the reply
	if err != nil {
		return err
	}
	late := false
	for begin := time.Now(); have[key] != "" && have[key] != show(r) && (r == nil || broadcast); time.Sleep(time.Millisecond) {
		// An expired key is gone at once, and its readers receive an invalidation when
		// the server removes it; broadcasts are sent, as by Redis, at the end of a turn.
		if time.Since(begin) > answerTime {
			return p.wrong("%s is %s, and was %s; there was no invalidation", key, show(r), have[key])
		}
		if _, err := p.do("PING"); err != nil {
			return err
		}
		late = true
	}
	if late {
		return nil // after a notification there is no other until the client reads again
	}
	if mine, ok := have[key]; ok && mine != show(r) {
		return p.wrong("%s is %s, and was %s; no invalidation has come", key, show(r), mine)
	} else if ok {
		w.served.add(1)
	}
	have[key] = show(r)
	return nil
}

func (w *mirrors) finish(*client) error { return nil }

func (w *mirrors) String() string {
	return fmt.Sprintf("mirrors: %d invalidations, %d reads from the cache", w.invalid.get(), w.served.get())
}

// expiredChannel is the channel of events of keys that expire.
const expiredChannel = "__keyevent@0__:expired"

// alarms are keys that expire: a subscriber receives an event for each at its time.
type alarms struct {
	st      *stage
	setter  *player
	ear     *player
	mu      sync.Mutex
	waiting map[string]time.Time // deadlines
	since   time.Time            // when the ear has begun to listen; zero while it does not
	rung    counter
	latest  time.Duration
}

func newAlarms(st *stage) *alarms {
	return &alarms{st: st, setter: st.player("alarm", 0), ear: st.player("ear", 0), waiting: map[string]time.Time{}}
}

func (w *alarms) run() {
	var wg sync.WaitGroup
	n := 0
	wg.Go(func() {
		w.setter.play(func() error { return w.set(w.setter, &n) })
		// The ear may wait for a key that is not there any more.
		if err := w.setter.connect(); err == nil && w.setter.c != nil {
			w.setter.do("PUBLISH", expiredChannel, "over")
			w.setter.close()
		}
	})
	wg.Go(func() {
		for !w.st.over.Load() {
			err := w.listen(w.ear)
			w.ear.close()
			w.mu.Lock()
			w.since = time.Time{}
			clear(w.waiting)
			w.mu.Unlock()
			if m := (*mismatch)(nil); errors.As(err, &m) {
				w.st.fail(w.ear, err)
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
	wg.Wait()
}

func (w *alarms) set(p *player, n *int) error {
	time.Sleep(time.Duration(p.int(20)) * time.Millisecond)
	if !w.st.mayExpire() {
		return nil
	}
	*n++
	key := fmt.Sprint("alarm:", *n)
	at := time.Now().Add(time.Duration(200+p.int(2000)) * time.Millisecond)
	_, err := p.do("SET", key, "x", "PXAT", at.UnixMilli())
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil && !w.since.IsZero() && time.Now().Before(at.Add(-edge*time.Millisecond)) {
		w.waiting[key] = at
	}
	return err
}

func (w *alarms) listen(p *player) error {
	if err := p.connect(); err != nil || p.c == nil {
		return err
	}
	if err := p.c.send([]string{"SUBSCRIBE", expiredChannel}); err != nil {
		return err
	}
	if r, err := p.c.read(); err != nil || isError(r) {
		return err
	}
	w.mu.Lock()
	w.since = time.Now()
	w.mu.Unlock()
	for !w.st.over.Load() {
		r, err := p.c.readFor(answerTime)
		if err != nil {
			return err
		}
		now := time.Now()
		l := list(r)
		if len(l) < 3 || text(l[0]) != "message" {
			continue
		}
		key := text(l[2])
		w.mu.Lock()
		at, ok := w.waiting[key]
		delete(w.waiting, key)
		if ok {
			w.rung.add(1)
			w.latest = max(w.latest, now.Sub(at))
		}
		overdue := ""
		for key, at := range w.waiting {
			if now.Sub(at) > answerTime {
				overdue = fmt.Sprintf("%s was to expire %v ago, and no event has come", key, now.Sub(at))
			}
		}
		w.mu.Unlock()
		if ok && now.Before(at.Add(-edge*time.Millisecond)) {
			return p.wrong("%s has expired %v too early", key, at.Sub(now))
		}
		if overdue != "" {
			return p.wrong("%s", overdue)
		}
	}
	return nil
}

func (w *alarms) finish(*client) error { return nil }

func (w *alarms) String() string {
	return fmt.Sprintf("alarms: %d, the latest %v late", w.rung.get(), w.latest.Round(time.Millisecond))
}

// visitors are clients that come, do something rude or nothing, and go.
type visitors struct {
	st      *stage
	players []*player
	visits  counter
}

func newVisitors(st *stage, n int) *visitors {
	w := &visitors{st: st}
	for i := range n {
		w.players = append(w.players, st.player("visitor", i))
	}
	return w
}

func (w *visitors) run() {
	var wg sync.WaitGroup
	for _, p := range w.players {
		wg.Go(func() {
			for w.st.enter() {
				err := w.visit(p)
				w.st.leave()
				if err != nil {
					w.st.fail(p, err)
					return
				}
				time.Sleep(time.Duration(p.int(60)) * time.Millisecond)
			}
		})
	}
	wg.Wait()
}

func (w *visitors) visit(p *player) error {
	c, err := dial(w.st.addr())
	if err != nil {
		return nil
	}
	w.visits.add(1)
	defer func() {
		if p.one(2) {
			c.reset()
		} else {
			c.close()
		}
	}()
	brief := func() { time.Sleep(time.Duration(p.int(40)) * time.Millisecond) }
	raw := func(s string) { c.nc.Write([]byte(s)) }
	switch p.int(18) {
	case 0:
		brief()
	case 1: // waits for what never comes, and dies
		c.send(words("BLPOP", "never", "0"))
		brief()
	case 2:
		c.send(words("BZCLAIM", "0", "1", "never:zset", "-inf", "@now", "@now+1s"))
		brief()
	case 3: // half closed: the reply must come all the same
		c.send(words("PING", "half"))
		if tcp, ok := c.nc.(interface{ CloseWrite() error }); ok {
			tcp.CloseWrite()
		}
		r, err := c.readFor(answerTime)
		if timedOut(err) {
			return p.wrong("no reply to a client that has closed its side: %s %v", show(r), err)
		}
	case 4:
		raw("*3\r\n$3\r\nSET\r\n$5\r\nvisit\r\n$1000\r\nhalf a comm")
		brief()
	case 5:
		raw("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		brief()
	case 6:
		raw("*-7\r\n$0\r\n\r\n*2147483648\r\n$-9\r\n")
		brief()
	case 7:
		c.send(words("MONITOR"))
		for end := time.Now().Add(time.Duration(p.int(60)) * time.Millisecond); time.Now().Before(end); {
			if _, err := c.readFor(30 * time.Millisecond); err != nil {
				break
			}
		}
	case 8: // reads nothing
		c.send(words("MONITOR"))
		brief()
	case 9:
		c.send(words("MULTI"), words("SET", "visit", "never"), words("BLPOP", "never", "0"))
		brief()
	case 10:
		c.send(words("WATCH", "counter:0", "account:1", "o0:zset:0"))
		brief()
	case 11:
		c.send(words("SUBSCRIBE", "news:a", "a", "b"), words("PSUBSCRIBE", "*"), words("SSUBSCRIBE", "s"))
		brief()
	case 12:
		c.send(words("HELLO", "3"), words("CLIENT", "TRACKING", "ON", "BCAST"), words("GET", "counter:0"))
		brief()
	case 13:
		c.send(words("CLIENT", "REPLY", "OFF"), words("GET", "counter:0"), words("CLIENT", "REPLY", "ON"))
		brief()
	case 14: // much, and reads nothing of it
		for range 20 {
			if c.send(words("LRANGE", "o0:list:0", "0", "-1"), words("INFO", "everything"), words("HGETALL", "o1:hash:0")) != nil {
				break
			}
		}
		brief()
	case 15:
		c.send(words("SET", "visit:"+strconv.Itoa(p.int(20)), strings.Repeat("v", p.int(200_000)), "EX", "20"))
		if p.one(2) {
			c.readFor(answerTime)
		}
	case 16:
		c.send(words("SUBSCRIBE", "x"), words("QUIT"))
		c.readFor(answerTime)
	case 17:
		c.send(words("EVAL", "for i = 1, 2000 do redis.call('PING') end return redis.call('GET', 'counter:0')", "0"))
		if p.one(2) {
			c.readFor(answerTime)
		}
	}
	return nil
}

func (w *visitors) finish(c *client) error {
	r, err := c.do("GET", "visit")
	if err == nil && r != nil {
		return fmt.Errorf("a transaction that was never executed, or half a command, has left %s", show(r))
	}
	return err
}

func (w *visitors) String() string { return fmt.Sprintf("visitors: %d", w.visits.get()) }
