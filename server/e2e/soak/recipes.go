//go:build linux

package main

import (
	"fmt"
	"maps"
	"strconv"
	"time"
)

// claims is the event folder: groups that are due are claimed for a while, and removed
// if the worker has them still. No two workers have a group at the same time.
type claims struct {
	*crew
	held                 map[string]*claim
	claimed, done, again int64
}

type claim struct {
	who   string
	until time.Time // the end of the lease, or when it was given back
}

func newClaims(st *stage) *claims {
	w := &claims{crew: &crew{st: st}, held: map[string]*claim{}}
	w.act("fold", 2, w.fold)
	w.act("claim", 2, w.work)
	return w
}

func (w *claims) fold(p *player) error {
	p.rest(10)
	group := fmt.Sprint("group", p.int(60))
	_, err := p.exec(words("ZADD", "due", "NX", "@now+30ms", group), words("ZINCRBY", "due", "0.000001", group), words("ZADD", "details:"+group, "@now", fmt.Sprint("d", p.int(20))))
	return err
}

func (w *claims) work(p *player) error {
	const lease = 1500 * time.Millisecond
	r, err := p.do("BZCLAIM", "0.4", 1, "due", "-inf", "@now", "@now+1500ms", "LEASE")
	if err != nil || r == nil {
		return err
	}
	taken := pairsOf(list(r)[1])
	if len(taken) != 1 {
		return p.wrong("BZCLAIM has replied %s", show(r))
	}
	group, score := text(taken[0][0]), text(taken[0][1])
	end := time.UnixMicro(int64(float(taken[0][1]) * 1e6))
	mine := &claim{p.name, end}
	if other := w.claim(group, mine, end.Add(-lease)); other != nil {
		return p.wrong("claimed %s at %v; %s has it until %v", group, end.Add(-lease), other.who, other.until)
	}
	began := strconv.FormatFloat(float(taken[0][1])-lease.Seconds(), 'f', 6, 64)
	if _, err := p.do("ZRANGEBYSCORE", "details:"+group, "-inf", began); err != nil {
		return err
	}
	p.rest(8)
	if p.one(20) || time.Now().After(end.Add(-200*time.Millisecond)) { // a crash: it is due again when the lease ends
		w.count(&w.again, 1)
		return nil
	}
	w.mu.Lock()
	mine.until = time.Now()
	w.mu.Unlock()
	l, err := p.exec(words("ZREMIFEQ", "due", score, group), words("ZADD", "due", "XX", "LT", "@now+30ms", group),
		words("ZREMRANGEBYSCORE", "details:"+group, "-inf", began))
	if err == nil && number(l[0]) == 1 {
		w.count(&w.done, 1)
	}
	return err
}

// claim notes a claim, or returns another one of the same group that has not ended.
func (w *claims) claim(group string, mine *claim, begun time.Time) *claim {
	w.mu.Lock()
	defer w.mu.Unlock()
	if other := w.held[group]; other != nil && begun.Before(other.until.Add(-edge*time.Millisecond)) {
		return other
	}
	w.held[group] = mine
	w.claimed++
	return nil
}

func (w *claims) finish(c *client) error {
	// A group with details is due or claimed, for a transaction adds both.
	due, err := observe(c, "due")
	if err != nil {
		return err
	}
	keys, err := keysOf(c, "details:")
	for _, key := range keys {
		if due == nil || !due.has(key[len("details:"):]) {
			return fmt.Errorf("there are %s, and the group is not due", key)
		}
	}
	return err
}

func (w *claims) String() string {
	return fmt.Sprintf("claims: %d, %d of them acknowledged, %d given up", w.claimed, w.done, w.again)
}

// boxes are hits that are counted in buckets that expire: the replies to those of a
// bucket are 1, 2, 3, …
type boxes struct {
	*crew
	seen         map[string]map[int64]bool
	doubts, hits int64
}

func newBoxes(st *stage) *boxes {
	w := &boxes{crew: &crew{st: st}, seen: map[string]map[int64]bool{}}
	w.act("box", 2, w.step)
	return w
}

func (w *boxes) step(p *player) error {
	const width, keep = 500, 5
	start := nowMs() / width * width
	bucket, key := strconv.FormatInt(start, 10), "hits:"+strconv.Itoa(p.int(2))
	if p.one(20) {
		if r, err := p.do("ZCARD", key); err != nil {
			return err
		} else if n := number(r); n > keep+1 {
			return p.wrong("%s has %d buckets", key, n)
		}
	}
	r, err := p.do("ZADDEX", key, "INCR", "PXAT", start+keep*width-1, "MEMBERS", 1, 1, bucket)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.doubts++
		return err
	}
	if r == nil {
		return nil // too late
	}
	name := key + " " + bucket
	seen := w.seen[name]
	if seen == nil {
		if len(w.seen) > 100 {
			before := key + " " + strconv.FormatInt(start-20*width*keep, 10)
			maps.DeleteFunc(w.seen, func(old string, _ map[int64]bool) bool { return old < before })
		}
		seen = map[int64]bool{}
		w.seen[name] = seen
	}
	n := number(r)
	if seen[n] {
		return p.wrong("the hit %d of %s is counted twice", n, name)
	}
	seen[n] = true
	w.hits++
	if n > int64(len(seen)+len(w.acts))+w.doubts {
		return p.wrong("%s has %s hits, of which %d were acknowledged and %d are in doubt", name, show(r), len(seen), w.doubts)
	}
	return nil
}

func (w *boxes) String() string { return fmt.Sprintf("boxes: %d hits, %d in doubt", w.hits, w.doubts) }

// rooms are waiting lists, in which no member moves back, and rooms that reject.
type rooms struct {
	*crew
	tickets, full int64
}

// ticket is the place of a user at a time.
type ticket struct {
	rank int64
	sent time.Time
}

func newRooms(st *stage) *rooms {
	w := &rooms{crew: &crew{st: st}}
	for i := range 2 {
		tickets := map[string]ticket{}
		w.act(fmt.Sprint("room ", i), 1, func(p *player) error { return w.step(p, tickets) })
	}
	return w
}

func (w *rooms) step(p *player, tickets map[string]ticket) error {
	user := fmt.Sprint(p.name, ".", p.int(20))
	const grace = 3000
	switch p.int(5) {
	case 0:
		delete(tickets, user)
		_, err := p.do("ZREM", "line", user)
		return err
	case 1:
		r, err := p.do("ZADDEX", "room", "PX", 400, "MAXLEN", 10, "REJECT", "MEMBERS", 1, "*", user)
		if err != nil {
			return err
		}
		if r == nil {
			w.count(&w.full, 1)
		}
		r, err = p.do("ZCARD", "room")
		if err == nil && number(r) > 10 {
			return p.wrong("a room of 10 has %s", show(r))
		}
		return err
	}
	old, known := tickets[user]
	delete(tickets, user)
	sent := time.Now()
	r, err := p.all(words("ZADDEX", "line", "PX", grace, "MEMBERS", 1, "*", user), words("ZRANK", "line", user))
	if err != nil {
		return err
	}
	w.count(&w.tickets, 1)
	now := time.Now()
	if r[1] == nil {
		if now.Sub(sent) < (grace-edge)*time.Millisecond {
			return p.wrong("%s has just checked in, and has no rank", user)
		}
		return nil
	}
	rank := number(r[1])
	if known && rank > old.rank && now.Sub(old.sent) < (grace-2*edge)*time.Millisecond {
		return p.wrong("%s had rank %d, and has %d", user, old.rank, rank)
	}
	tickets[user] = ticket{rank, sent}
	return nil
}

func (w *rooms) String() string {
	return fmt.Sprintf("rooms: %d check-ins, %d times full", w.tickets, w.full)
}

// entries are those of a stream that a group of consumers works on. Each is acknowledged
// once, and none is forgotten.
type entries struct {
	*crew
	open   map[string]bool // acknowledged to the producer, and not yet by a consumer
	unsure map[string]bool // an acknowledgement was lost
	early  map[string]bool // acknowledged by a consumer, and not yet to the producer
	// doubts are entries that may have been added.
	doubts, added, acked, claimed int64
}

func newEntries(st *stage) *entries {
	w := &entries{crew: &crew{st: st}, open: map[string]bool{}, unsure: map[string]bool{}, early: map[string]bool{}}
	for _, p := range append(w.act("xadd", 2, w.add), w.act("xreadgroup", 2, w.work)...) {
		p.setup = func() error {
			_, err := p.c.do("XGROUP", "CREATE", "log", "workers", "0", "MKSTREAM")
			return err
		}
	}
	return w
}

func (w *entries) add(p *player) error {
	p.rest(8)
	r, err := p.do("XADD", "log", "*", "n", p.int(1000))
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		if !notDone(err) {
			w.doubts++
		}
		return err
	}
	w.added++
	id := text(r)
	if w.early[id] {
		delete(w.early, id)
		return nil
	}
	if w.open[id] {
		return p.wrong("the ID %s was given twice", id)
	}
	w.open[id] = true
	return nil
}

func (w *entries) work(p *player) error {
	consumer := fmt.Sprint("c", p.int(4))
	var found []any
	if p.one(5) {
		r, err := p.do("XAUTOCLAIM", "log", "workers", consumer, 600, "0", "COUNT", 10)
		if err != nil {
			return err
		}
		found = list(list(r)[1])
		w.count(&w.claimed, len(found))
	} else {
		r, err := p.do("XREADGROUP", "GROUP", "workers", consumer, "COUNT", 5, "BLOCK", 300, "STREAMS", "log", ">")
		if err != nil || r == nil {
			return err
		}
		found = list(pairsOf(r)[0][1])
	}
	for _, e := range found {
		if p.one(10) {
			continue // not acknowledged: another consumer claims it
		}
		id := text(list(e)[0])
		l, err := p.exec(words("XACK", "log", "workers", id), words("XDEL", "log", id))
		if err = w.acknowledged(p, id, l, err); err != nil {
			return err
		}
	}
	return nil
}

// acknowledged judges the replies to XACK and XDEL.
func (w *entries) acknowledged(p *player, id string, l []any, err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err != nil:
		if !notDone(err) {
			w.unsure[id] = true
		}
	case number(l[0]) == 1 && number(l[1]) == 1:
		w.acked++
		if !w.open[id] && len(w.early) < 10_000 {
			w.early[id] = true // the producer has no reply yet
		}
		delete(w.open, id)
		delete(w.unsure, id)
	case number(l[0]) != number(l[1]):
		return p.wrong("XACK and XDEL of %s have replied %s", id, show(l))
	}
	return err
}

func (w *entries) finish(c *client) error {
	r, err := c.do("XRANGE", "log", "-", "+")
	if err != nil {
		return err
	}
	there, strange := map[string]bool{}, int64(0)
	for _, e := range list(r) {
		id := text(list(e)[0])
		if there[id] = true; !w.open[id] {
			strange++
		}
	}
	if strange > w.doubts+2 { // the two producers may each wait for a reply
		return fmt.Errorf("%d entries that no producer has added; %d possibly added", strange, w.doubts)
	}
	for id := range w.open {
		if !there[id] && !w.unsure[id] {
			return fmt.Errorf("the entry %s is missing, without an acknowledgement", id)
		}
	}
	return nil
}

func (w *entries) String() string {
	return fmt.Sprintf("stream: %d added, %d acknowledged, %d claimed from others", w.added, w.acked, w.claimed)
}
