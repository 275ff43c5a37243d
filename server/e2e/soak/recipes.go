//go:build linux

package main

import (
	"fmt"
	"strconv"
	"sync"
	"time"
)

// claims is the event folder: groups that are due are claimed for a while, and
// removed if the worker has them still. No two have a group at the same time.
type claims struct {
	st      *stage
	puts    []*player
	takes   []*player
	mu      sync.Mutex
	held    map[string]*claim
	claimed int64
	done    int64
	again   int64
}

type claim struct {
	who   string
	until time.Time // the end of the lease, or when it was given back
}

func newClaims(st *stage, n int) *claims {
	w := &claims{st: st, held: map[string]*claim{}}
	for i := range n {
		w.puts = append(w.puts, st.player("fold", i))
		w.takes = append(w.takes, st.player("claim", i))
	}
	return w
}

func (w *claims) run() {
	var wg sync.WaitGroup
	for i := range w.puts {
		wg.Go(func() { w.puts[i].play(func() error { return w.fold(w.puts[i]) }) })
		wg.Go(func() { w.takes[i].play(func() error { return w.work(w.takes[i]) }) })
	}
	wg.Wait()
}

func (w *claims) fold(p *player) error {
	time.Sleep(time.Duration(p.int(10)) * time.Millisecond)
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
	begun := end.Add(-lease)
	w.mu.Lock()
	if other := w.held[group]; other != nil && begun.Before(other.until.Add(-edge*time.Millisecond)) {
		w.mu.Unlock()
		return p.wrong("claimed %s at %v; %s has it until %v", group, begun, other.who, other.until)
	}
	mine := &claim{p.name, end}
	w.held[group] = mine
	w.claimed++
	w.mu.Unlock()
	began := strconv.FormatFloat(float(taken[0][1])-lease.Seconds(), 'f', 6, 64)
	if _, err := p.do("ZRANGEBYSCORE", "details:"+group, "-inf", began); err != nil {
		return err
	}
	time.Sleep(time.Duration(p.int(8)) * time.Millisecond)
	if p.one(20) || time.Now().After(end.Add(-200*time.Millisecond)) { // a crash: it is due again when the lease ends
		w.mu.Lock()
		w.again++
		w.mu.Unlock()
		return nil
	}
	w.mu.Lock()
	mine.until = time.Now()
	w.mu.Unlock()
	l, err := p.exec(words("ZREMIFEQ", "due", score, group), words("ZADD", "due", "XX", "LT", "@now+30ms", group),
		words("ZREMRANGEBYSCORE", "details:"+group, "-inf", began))
	if err != nil {
		return err
	}
	if number(l[0]) == 1 {
		w.mu.Lock()
		w.done++
		w.mu.Unlock()
	}
	return nil
}

func (w *claims) finish(c *client) error {
	// Every group with details is due, or claimed; or its last details came with a
	// fold that was refused half way, which there is not.
	due, err := observe(c, "due")
	if err != nil {
		return err
	}
	keys, err := keysOf(c, "details:")
	if err != nil {
		return err
	}
	for _, key := range keys {
		group := key[len("details:"):]
		if due == nil || !due.has(group) {
			return fmt.Errorf("there are %s, and the group is not due", key)
		}
	}
	return nil
}

func (w *claims) String() string {
	return fmt.Sprintf("claims: %d, %d of them acknowledged, %d given up", w.claimed, w.done, w.again)
}

// boxes are hits that are counted in buckets that expire: the replies to those of a
// bucket are 1, 2, 3, …
type boxes struct {
	st      *stage
	players []*player
	mu      sync.Mutex
	seen    map[string]map[int64]bool
	doubts  int
	hits    int64
}

func newBoxes(st *stage, n int) *boxes {
	w := &boxes{st: st, seen: map[string]map[int64]bool{}}
	for i := range n {
		w.players = append(w.players, st.player("box", i))
	}
	return w
}

func (w *boxes) run() {
	var wg sync.WaitGroup
	for _, p := range w.players {
		wg.Go(func() { p.play(func() error { return w.step(p) }) })
	}
	wg.Wait()
}

func (w *boxes) step(p *player) error {
	const width, keep = 500, 5
	start := nowMs() / width * width
	bucket := strconv.FormatInt(start, 10)
	key := "hits:" + strconv.Itoa(p.int(2))
	if p.one(20) {
		r, err := p.do("ZCARD", key)
		if err != nil {
			return err
		}
		if n := number(r); n > keep+1 {
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
	if w.seen[name] == nil {
		w.seen[name] = map[int64]bool{}
		for old := range w.seen {
			if len(w.seen) > 100 && old < key+" "+strconv.FormatInt(start-20*width*keep, 10) {
				delete(w.seen, old)
			}
		}
	}
	n := number(r)
	if w.seen[name][n] {
		return p.wrong("the hit %d of %s is counted twice", n, name)
	}
	w.seen[name][n] = true
	w.hits++
	if n > int64(len(w.seen[name])+w.doubts+len(w.players)) {
		return p.wrong("%s has %s hits, of which %d were acknowledged and %d are in doubt", name, show(r), len(w.seen[name]), w.doubts)
	}
	return nil
}

func (w *boxes) finish(*client) error { return nil }

func (w *boxes) String() string { return fmt.Sprintf("boxes: %d hits, %d in doubt", w.hits, w.doubts) }

// rooms are waiting lists, and rooms that reject.
type rooms struct {
	st      *stage
	players []*player
	tickets counter
	full    counter
}

func newRooms(st *stage, n int) *rooms {
	w := &rooms{st: st}
	for i := range n {
		w.players = append(w.players, st.player("room", i))
	}
	return w
}

func (w *rooms) run() {
	var wg sync.WaitGroup
	for _, p := range w.players {
		wg.Go(func() {
			rank, seen := map[string]int64{}, map[string]time.Time{}
			p.play(func() error { return w.step(p, rank, seen) })
		})
	}
	wg.Wait()
}

func (w *rooms) step(p *player, ranks map[string]int64, seen map[string]time.Time) error {
	user := fmt.Sprint(p.name, ".", p.int(20))
	const grace = 3000
	switch p.int(5) {
	case 0:
		delete(ranks, user)
		_, err := p.do("ZREM", "line", user)
		return err
	case 1:
		r, err := p.do("ZADDEX", "room", "PX", 400, "MAXLEN", 10, "REJECT", "MEMBERS", 1, "*", user)
		if err != nil {
			return err
		}
		if r == nil {
			w.full.add(1)
		}
		r, err = p.do("ZCARD", "room")
		if err == nil && number(r) > 10 {
			return p.wrong("a room of 10 has %s", show(r))
		}
		return err
	}
	sent := time.Now()
	r, err := p.all(words("ZADDEX", "line", "PX", grace, "MEMBERS", 1, "*", user), words("ZRANK", "line", user))
	if err != nil {
		delete(ranks, user)
		return err
	}
	w.tickets.add(1)
	now := time.Now()
	if r[1] == nil {
		if now.Sub(sent) < (grace-edge)*time.Millisecond {
			return p.wrong("%s has just checked in, and has no rank", user)
		}
		delete(ranks, user)
		return nil
	}
	rank := number(r[1])
	if old, ok := ranks[user]; ok && rank > old && now.Sub(seen[user]) < (grace-2*edge)*time.Millisecond {
		return p.wrong("%s had rank %d, and has %d", user, old, rank)
	}
	ranks[user], seen[user] = rank, sent
	return nil
}

func (w *rooms) finish(*client) error { return nil }

func (w *rooms) String() string {
	return fmt.Sprintf("rooms: %d check-ins, %d times full", w.tickets.get(), w.full.get())
}

// entries are those of a stream that a group of consumers works on. Each is
// acknowledged once, and none is forgotten.
type entries struct {
	st      *stage
	puts    []*player
	takes   []*player
	mu      sync.Mutex
	open    map[string]bool // acknowledged to the producer, and not yet by a consumer
	unsure  map[string]bool // an acknowledgement was lost
	early   map[string]bool // acknowledged by a consumer, and not yet to the producer
	doubts  int             // XADDs
	added   int64
	acked   int64
	claimed int64
}

func newEntries(st *stage, n int) *entries {
	w := &entries{st: st, open: map[string]bool{}, unsure: map[string]bool{}, early: map[string]bool{}}
	for i := range n {
		w.puts = append(w.puts, st.player("xadd", i))
		w.takes = append(w.takes, st.player("xreadgroup", i))
	}
	for _, p := range append(w.puts, w.takes...) {
		p.setup = func() error {
			_, err := p.c.do("XGROUP", "CREATE", "log", "workers", "0", "MKSTREAM")
			return err
		}
	}
	return w
}

func (w *entries) run() {
	var wg sync.WaitGroup
	for i := range w.puts {
		wg.Go(func() { w.puts[i].play(func() error { return w.add(w.puts[i]) }) })
		wg.Go(func() { w.takes[i].play(func() error { return w.work(w.takes[i]) }) })
	}
	wg.Wait()
}

func (w *entries) add(p *player) error {
	time.Sleep(time.Duration(p.int(8)) * time.Millisecond)
	r, err := p.do("XADD", "log", "*", "n", p.int(1000))
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		if !isRefused(err) {
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
		w.mu.Lock()
		w.claimed += int64(len(found))
		w.mu.Unlock()
	} else {
		r, err := p.do("XREADGROUP", "GROUP", "workers", consumer, "COUNT", 5, "BLOCK", 300, "STREAMS", "log", ">")
		if err != nil || r == nil {
			return err
		}
		found = list(pairsOf(r)[0][1])
	}
	for _, e := range found {
		id := text(list(e)[0])
		if p.one(10) {
			continue // not acknowledged: another worker claims it
		}
		l, err := p.exec(words("XACK", "log", "workers", id), words("XDEL", "log", id))
		w.mu.Lock()
		switch {
		case err != nil:
			if !isRefused(err) {
				w.unsure[id] = true
			}
		case number(l[0]) == 1 && number(l[1]) == 1:
			w.acked++
			if !w.open[id] && len(w.early) < 10_000 {
				w.early[id] = true // the worker that has added it has no reply yet
			}
			delete(w.open, id)
			delete(w.unsure, id)
		case number(l[0]) != number(l[1]):
			err = p.wrong("XACK and XDEL of %s have replied %s", id, show(l))
		}
		w.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *entries) finish(c *client) error {
	v, err := idsOf(c, "log")
	if err != nil {
		return err
	}
	strange := 0
	for id := range v {
		if !w.open[id] {
			strange++
		}
	}
	if strange > w.doubts+len(w.puts) {
		return fmt.Errorf("%d entries that no producer has added; %d possibly added", strange, w.doubts)
	}
	for id := range w.open {
		if !v[id] && !w.unsure[id] {
			return fmt.Errorf("the entry %s is missing, without an acknowledgement", id)
		}
	}
	return nil
}

// idsOf returns the IDs of a stream.
func idsOf(c *client, key string) (map[string]bool, error) {
	r, err := c.do("XRANGE", key, "-", "+")
	if err != nil {
		return nil, err
	}
	ids := map[string]bool{}
	for _, e := range list(r) {
		ids[text(list(e)[0])] = true
	}
	return ids, nil
}

func (w *entries) String() string {
	return fmt.Sprintf("stream: %d added, %d acknowledged, %d claimed from others", w.added, w.acked, w.claimed)
}
