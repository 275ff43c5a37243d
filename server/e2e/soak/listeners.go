//go:build linux

package main

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// news are messages that their publishers number. A subscriber receives each message
// once and in order, as long as its connection lasts.
type news struct {
	*crew
	doubt                     map[string]map[int64]bool // of each publisher: those that may not have been published
	published, received, anew int64
}

func newNews(st *stage) *news {
	w := &news{crew: &crew{st: st}, doubt: map[string]map[int64]bool{}}
	for i := range 3 {
		var n int64
		p := w.act(fmt.Sprint("publisher ", i), 1, func(p *player) error { return w.publish(p, &n) })[0]
		w.doubt[p.name] = map[int64]bool{}
	}
	for i := range 5 {
		p := st.player("subscriber", i)
		p.hello = i%2 == 1
		w.acts = append(w.acts, func() {
			w.listen(p, [][]string{{"SUBSCRIBE", "news:a"}, {"PSUBSCRIBE", "news:*"}, {"SSUBSCRIBE", "news:a"}}[i%3])
		})
	}
	return w
}

func (w *news) publish(p *player, n *int64) error {
	p.rest(10)
	*n++
	message := fmt.Sprintf("%s/%d/%s", p.name, *n, strings.Repeat("x", p.int(300)))
	w.mu.Lock()
	w.doubt[p.name][*n] = true
	w.mu.Unlock()
	send := p.all
	if p.one(3) {
		send = p.exec
	}
	_, err := send(words("PUBLISH", "news:a", message), words("SPUBLISH", "news:a", message))
	if err == nil {
		w.mu.Lock()
		delete(w.doubt[p.name], *n)
		w.published++
		w.mu.Unlock()
	}
	return err
}

// listen listens until the stage is over, with a new connection whenever one breaks.
func (w *news) listen(p *player, command []string) {
	for !w.st.over.Load() {
		err := w.session(p, command)
		p.close()
		if m := (*mismatch)(nil); errors.As(err, &m) || timedOut(err) && !w.st.over.Load() {
			w.st.fail(p, err)
			return
		}
		w.count(&w.anew, 1)
		p.rest(30)
	}
}

func (w *news) session(p *player, command []string) error {
	if err := p.connect(); err != nil || p.c == nil {
		return err
	}
	last := map[string]int64{} // of each publisher
	var problem error
	handle := func(m []any) {
		if len(m) > 0 && strings.HasSuffix(text(m[0]), "message") && problem == nil {
			problem = w.receive(p, m, last)
		}
	}
	p.c.pushed = handle
	if err := p.c.send(command); err != nil {
		return err
	}
	leave := time.Now().Add(time.Duration(2+p.int(60)) * time.Second)
	for !w.st.over.Load() && time.Now().Before(leave) && problem == nil {
		// In RESP3 messages are pushed, and PING has a reply of its own. In RESP2
		// messages are arrays, as the reply to PING is.
		if p.hello || p.one(50) {
			if err := p.c.send([]string{"PING", "x"}); err != nil {
				return err
			}
		}
		limit := time.Second
		if p.hello {
			limit = answerTime
		}
		r, err := p.c.readFor(limit)
		if timedOut(err) && !p.hello {
			return nil // there was no message; the connection is in doubt now
		}
		if err != nil {
			return err
		}
		if handle(list(r)); p.hello {
			time.Sleep(20 * time.Millisecond)
		}
	}
	if p.one(2) && problem == nil {
		p.c.reset()
	}
	return problem
}

// receive judges a message by those before it.
func (w *news) receive(p *player, m []any, last map[string]int64) error {
	publisher, rest, _ := strings.Cut(text(m[len(m)-1]), "/")
	number, _, ok := strings.Cut(rest, "/")
	if !ok {
		return p.wrong("a message that no client has published: %s", show(m))
	}
	n, _ := strconv.ParseInt(number, 10, 64)
	before, known := last[publisher]
	last[publisher] = n
	w.mu.Lock()
	defer w.mu.Unlock()
	w.received++
	ordered := !known || n > before
	for i := before + 1; known && i < n; i++ {
		ordered = ordered && w.doubt[publisher][i]
	}
	if !ordered {
		return p.wrong("of %s message %d came after %d", publisher, n, before)
	}
	return nil
}

func (w *news) String() string {
	return fmt.Sprintf("messages: %d published, %d received, %d subscriptions", w.published, w.received, w.anew)
}

// mirrors cache the values that they have read until an invalidation arrives (CLIENT
// TRACKING): a cached value is never older than the value that they could read.
type mirrors struct {
	*crew
	invalid, served int64
}

func newMirrors(st *stage) *mirrors {
	w := &mirrors{crew: &crew{st: st}}
	w.act("mirrored", 2, w.write)
	for i, tracking := range [][]string{words("CLIENT", "TRACKING", "ON"), words("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "mirrored:")} {
		have := map[string]string{}
		p := w.act(fmt.Sprint("mirror ", i), 1, func(p *player) error { return w.read(p, have, i == 1) })[0]
		p.hello = true
		p.setup = func() error {
			clear(have)
			p.c.pushed = func(m []any) {
				if len(m) < 2 || text(m[0]) != "invalidate" {
					return
				}
				w.count(&w.invalid, 1)
				if m[1] == nil {
					clear(have)
				}
				for _, key := range texts(m[1]) {
					delete(have, key)
				}
			}
			_, err := p.all(tracking)
			return err
		}
	}
	return w
}

func (w *mirrors) write(p *player) (err error) {
	p.rest(6)
	key := fmt.Sprint("mirrored:", p.int(40))
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
	p.rest(3)
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
		w.count(&w.served, 1)
	}
	have[key] = show(r)
	return nil
}

func (w *mirrors) String() string {
	return fmt.Sprintf("mirrors: %d invalidations, %d reads from the cache", w.invalid, w.served)
}

// expiredChannel is the channel of events of keys that expire.
const expiredChannel = "__keyevent@0__:expired"

// alarms are keys that expire: a subscriber receives an event for each at its time.
type alarms struct {
	*crew
	n         int
	waiting   map[string]time.Time // deadlines
	listening bool
	rung      int64
	latest    time.Duration
}

func newAlarms(st *stage) *alarms {
	w := &alarms{crew: &crew{st: st}, waiting: map[string]time.Time{}}
	setter := w.act("alarm", 1, w.set)[0]
	set := w.acts[0]
	w.acts[0] = func() {
		set()
		// The ear may wait for a key that is not there any more.
		if err := setter.connect(); err == nil && setter.c != nil {
			setter.do("PUBLISH", expiredChannel, "over")
			setter.close()
		}
	}
	ear := st.player("ear", 0)
	w.acts = append(w.acts, func() {
		for !st.over.Load() {
			err := w.listen(ear)
			ear.close()
			w.mu.Lock()
			w.listening = false
			clear(w.waiting)
			w.mu.Unlock()
			if m := (*mismatch)(nil); errors.As(err, &m) {
				st.fail(ear, err)
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
	return w
}

func (w *alarms) set(p *player) error {
	p.rest(20)
	if !w.st.mayExpire() {
		return nil
	}
	w.n++
	key := fmt.Sprint("alarm:", w.n)
	at := time.Now().Add(time.Duration(200+p.int(2000)) * time.Millisecond)
	_, err := p.do("SET", key, "x", "PXAT", at.UnixMilli())
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil && w.listening && time.Now().Before(at.Add(-edge*time.Millisecond)) {
		w.waiting[key] = at
	}
	return err
}

func (w *alarms) listen(p *player) error {
	if err := p.connect(); err != nil || p.c == nil {
		return err
	}
	if r, err := p.c.do("SUBSCRIBE", expiredChannel); err != nil || isError(r) {
		return err
	}
	w.mu.Lock()
	w.listening = true
	w.mu.Unlock()
	for !w.st.over.Load() {
		r, err := p.c.readFor(answerTime)
		if err != nil {
			return err
		}
		if l := texts(r); len(l) == 3 && l[0] == "message" {
			if err := w.ring(p, l[2], time.Now()); err != nil {
				return err
			}
		}
	}
	return nil
}

// ring judges an event, and whether others are overdue.
func (w *alarms) ring(p *player, key string, now time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at, ok := w.waiting[key]; ok {
		delete(w.waiting, key)
		w.rung++
		w.latest = max(w.latest, now.Sub(at))
		if now.Before(at.Add(-edge * time.Millisecond)) {
			return p.wrong("%s has expired %v too early", key, at.Sub(now))
		}
	}
	for key, at := range w.waiting {
		if now.Sub(at) > answerTime {
			return p.wrong("%s was to expire %v ago, and no event has come", key, now.Sub(at))
		}
	}
	return nil
}

func (w *alarms) String() string {
	return fmt.Sprintf("alarms: %d, the latest %v late", w.rung, w.latest.Round(time.Millisecond))
}

// visitors are clients that come, do something rude or nothing, and go.
type visitors struct {
	*crew
	visits int64
}

func newVisitors(st *stage) *visitors {
	w := &visitors{crew: &crew{st: st}}
	for i := range 3 {
		p := st.player("visitor", i)
		w.acts = append(w.acts, func() {
			for st.enter() {
				err := w.visit(p)
				st.leave()
				if err != nil {
					st.fail(p, err)
					return
				}
				p.rest(60)
			}
		})
	}
	return w
}

func (w *visitors) visit(p *player) error {
	c, err := dial(w.st.addr())
	if err != nil {
		return nil
	}
	w.count(&w.visits, 1)
	defer func() {
		if p.one(2) {
			c.reset()
		} else {
			c.close()
		}
	}()
	unanswered := [][]string{ // they go without the replies
		{},
		{"BLPOP never 0"},
		{"BZCLAIM 0 1 never:zset -inf @now @now+1s"},
		{"MONITOR"},
		{"MULTI", "SET visit never", "BLPOP never 0"},
		{"WATCH counter:0 account:1 o0:zset:0"},
		{"SUBSCRIBE news:a a b", "PSUBSCRIBE *", "SSUBSCRIBE s"},
		{"HELLO 3", "CLIENT TRACKING ON BCAST", "GET counter:0"},
		{"CLIENT REPLY OFF", "GET counter:0", "CLIENT REPLY ON"},
	}
	malformed := []string{
		"*3\r\n$3\r\nSET\r\n$5\r\nvisit\r\n$1000\r\nhalf a comm",
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"*-7\r\n$0\r\n\r\n*2147483648\r\n$-9\r\n",
	}
	switch n := p.int(11 + len(unanswered)); n {
	case 0: // half closed: the reply must come all the same
		c.send(words("PING", "half"))
		c.nc.(*net.TCPConn).CloseWrite()
		if r, err := c.readFor(answerTime); timedOut(err) {
			return p.wrong("no reply to a client that has closed its side: %s %v", show(r), err)
		}
		return nil
	case 1:
		c.send(words("MONITOR"))
		for end := time.Now().Add(time.Duration(p.int(60)) * time.Millisecond); time.Now().Before(end) && err == nil; {
			_, err = c.readFor(30 * time.Millisecond)
		}
		return nil
	case 2:
		c.send(words("SUBSCRIBE", "x"), words("QUIT"))
		c.readFor(answerTime)
		return nil
	case 3, 4:
		c.send(words("SET", "visit:"+strconv.Itoa(p.int(20)), strings.Repeat("v", p.int(200_000)), "EX", "20"))
		if n == 4 {
			c.readFor(answerTime)
		}
		return nil
	case 5: // much, and reads nothing of it
		for i := 0; i < 20 && err == nil; i++ {
			err = c.send(words("LRANGE", "o0:list:0", "0", "-1"), words("INFO", "everything"), words("HGETALL", "o1:hash:0"))
		}
	case 6, 7:
		c.send(words("EVAL", "for i = 1, 2000 do redis.call('PING') end return redis.call('GET', 'counter:0')", "0"))
		if n == 7 {
			c.readFor(answerTime)
		}
		return nil
	case 8, 9, 10:
		c.nc.Write([]byte(malformed[n-8]))
	default:
		for _, command := range unanswered[n-11] {
			c.send(strings.Fields(command))
		}
	}
	p.rest(40)
	return nil
}

func (w *visitors) finish(c *client) error {
	r, err := c.do("GET", "visit")
	if err == nil && r != nil {
		return fmt.Errorf("a transaction that was never executed, or half a command, has left %s", show(r))
	}
	return err
}

func (w *visitors) String() string { return fmt.Sprintf("visitors: %d", w.visits) }
