//go:build linux

package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// counters are counters of all types, and a pair of which both are always the same. Each
// counts what was acknowledged, and at most what may have been done besides. The keys of
// the maps are the commands that read them.
type counters struct {
	*crew
	acked, doubts map[string]int64
	recent        map[string]map[int64]int64 // acknowledged in each second, which a crash may take away
	done          int64
}

func newCounters(st *stage) *counters {
	w := &counters{crew: &crew{st: st}, acked: map[string]int64{}, doubts: map[string]int64{}, recent: map[string]map[int64]int64{}}
	w.act("counter", 3, w.step)
	return w
}

func (w *counters) step(p *player) (err error) {
	key, read := fmt.Sprint("counter:", p.int(3)), "GET pair:a"
	switch p.int(6) {
	case 0:
		read = "GET " + key
		_, err = p.do("INCR", key)
	case 1:
		read = "HGET counters " + key
		_, err = p.do("HINCRBY", "counters", key, 1)
	case 2:
		read = "ZSCORE counts " + key
		_, err = p.do("ZINCRBY", "counts", 1, key)
	case 3:
		_, err = p.exec(words("INCR", "pair:a"), words("INCR", "pair:b"))
	case 4:
		_, err = p.do("EVAL", "redis.call('INCR', KEYS[1]) return redis.call('INCR', KEYS[2])", 2, "pair:a", "pair:b")
	case 5:
		r, err := p.do("MGET", "pair:a", "pair:b")
		if l := list(r); err == nil && text(l[0]) != text(l[1]) {
			return p.wrong("two counters that are always increased together are %s", show(r))
		}
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil:
		w.acked[read]++
		w.done++
		if w.recent[read] == nil {
			w.recent[read] = map[int64]int64{}
		}
		if w.st.crashes {
			w.recent[read][time.Now().Unix()]++
		}
	case !notDone(err):
		w.doubts[read]++
	}
	return err
}

func (w *counters) finish(c *client) error {
	for _, read := range slices.Sorted(maps.Keys(w.acked)) {
		r, err := c.do(strings.Fields(read)...)
		if err != nil {
			return err
		}
		least := w.acked[read]
		for second, n := range w.recent[read] {
			if w.st.lossy(time.Unix(second, 0)) || w.st.lossy(time.Unix(second+1, 0)) {
				least -= n
			}
		}
		n := int64(0) // a crash may have taken all of it away
		if r != nil {
			n = number(r)
		}
		if n < least || n > w.acked[read]+w.doubts[read] {
			return fmt.Errorf("%s is %s; %d were acknowledged (of them %d may be lost), and %d are in doubt",
				read, show(r), w.acked[read], w.acked[read]-least, w.doubts[read])
		}
	}
	return nil
}

func (w *counters) String() string { return fmt.Sprintf("counters: %d", w.done) }

// accounts are ten amounts, between which players move amounts: the sum never changes.
type accounts struct {
	*crew
	keys                      []string
	moved, conflicts, checked int64
}

const total = 10_000

func newAccounts(st *stage) *accounts {
	w := &accounts{crew: &crew{st: st}}
	open := words("MSETNX") // a crash may take them away, all or none
	for i := range 10 {
		key := fmt.Sprint("account:", i)
		w.keys, open = append(w.keys, key), append(open, key, strconv.Itoa(total/10))
	}
	for _, p := range w.act("account", 3, w.step) {
		p.setup = func() error { _, err := p.all(open); return err }
	}
	return w
}

func (w *accounts) check(r any, err error, who string) error {
	if err != nil {
		return err
	}
	sum := int64(0)
	for _, n := range list(r) {
		if n == nil {
			return &mismatch{"accounts", "one is missing: " + show(r)}
		}
		sum += number(n)
	}
	if sum != total {
		return &mismatch{"accounts", fmt.Sprintf("%s sees %s, which is %d in all, must be %d", who, show(r), sum, total)}
	}
	w.count(&w.checked, 1)
	return nil
}

func (w *accounts) step(p *player) (err error) {
	a, b := w.keys[p.int(10)], w.keys[p.int(10)]
	n := p.int(50) - 25
	way := p.int(6)
	switch {
	case way == 0:
		r, err := p.do("MGET", w.keys)
		return w.check(r, err, "MGET")
	case way == 1:
		var gets [][]string
		for _, key := range w.keys {
			gets = append(gets, words("GET", key))
		}
		r, err := p.exec(gets...)
		return w.check(r, err, "a transaction")
	case a == b:
		return nil
	case way == 2:
		_, err = p.do("EVAL", "local n = ARGV[1]; redis.call('DECRBY', KEYS[1], n) redis.call('INCRBY', KEYS[2], n) return 'OK'", 2, a, b, n)
	case way == 3:
		_, err = p.exec(words("DECRBY", a, n), words("INCRBY", b, n))
	default:
		r, err := p.all(words("WATCH", a, b), words("MGET", a, b))
		if err != nil {
			p.close() // or it would go on to watch
			return err
		}
		if p.one(3) {
			p.rest(3)
		}
		have := list(r[1])
		done, err := p.exec(words("SET", a, number(have[0])-int64(n)), words("SET", b, number(have[1])+int64(n)))
		if err == nil && done == nil {
			w.count(&w.conflicts, 1)
			return nil
		}
		if err != nil {
			return err
		}
	}
	w.count(&w.moved, 1)
	return err
}

func (w *accounts) finish(c *client) error {
	r, err := c.do(words("MGET", w.keys)...)
	return w.check(r, err, "the end")
}

func (w *accounts) String() string {
	return fmt.Sprintf("accounts: %d transfers, %d conflicts, %d looks at the whole", w.moved, w.conflicts, w.checked)
}

// queue is a list or a sorted set into which producers put elements. Consumers take each
// element once, most of them with the commands that block.
type queue struct {
	*crew
	key, second string // elements are moved to the second one before they are taken
	sorted      bool
	next        int
	elements    map[string]*element
	refused     map[string]string // why
	lostPops    int64             // elements that may have been taken by connections that broke meanwhile
	taken, put  int64
}

// element is one of a queue.
type element struct{ put, taken time.Time } // when it was acknowledged; zero: it was not

func newQueue(st *stage, key string, sorted bool) *queue {
	w := &queue{crew: &crew{st: st}, key: key, second: key + ":2", sorted: sorted, elements: map[string]*element{}, refused: map[string]string{}}
	w.act(key+" producer", 2, w.produce)
	w.act(key+" consumer", 2, w.consume)
	return w
}

func (w *queue) produce(p *player) error {
	length, args := "LLEN", words([]string{"LPUSH", "RPUSH"}[p.int(2)], w.key)
	if w.sorted {
		length, args = "ZCARD", words("ZADD", w.key)
	}
	if p.one(10) {
		if r, err := p.do(length, w.key); err != nil {
			return err
		} else if number(r) > 300 {
			time.Sleep(20 * time.Millisecond)
			return nil
		}
	}
	p.rest(6)
	var names []string
	w.mu.Lock()
	for range 1 + p.int(3) {
		w.next++
		name := fmt.Sprint("e", w.next)
		names = append(names, name)
		w.elements[name] = &element{}
		if w.sorted {
			args = append(args, fmt.Sprintf("@now+%dms", p.int(40)))
		}
		args = append(args, name)
	}
	w.mu.Unlock()
	send := p.all
	if p.one(4) {
		send = p.exec
	}
	_, err := send(args)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range names {
		switch e := w.elements[name]; {
		case err == nil:
			if e != nil {
				e.put = time.Now()
			}
			w.put++
		case notDone(err):
			delete(w.elements, name)
			w.refused[name] = err.Error()
		}
	}
	return err
}

func (w *queue) consume(p *player) error {
	var args []string
	timeout, most := "0."+strconv.Itoa(1+p.int(4)), 3
	if w.sorted {
		args = [][]string{
			words("BZPOPMIN", w.second, w.key, timeout), words("BZPOPMAX", w.key, w.second, timeout),
			words("BZMPOP", timeout, 2, w.key, w.second, "MIN", "COUNT", 3),
			words("BZPOPBYSCORE", timeout, 2, w.key, w.second, "-inf", "@now", "COUNT", 3),
		}[p.int(4)]
	} else {
		args = [][]string{
			words("BLPOP", w.second, w.key, timeout), words("BRPOP", w.key, w.second, timeout),
			words("BLMPOP", timeout, 2, w.second, w.key, "LEFT", "COUNT", 3), words("LPOP", w.key, 2),
			words("BLMOVE", w.key, w.second, "LEFT", "RIGHT", timeout),
		}[p.int(5)]
	}
	r, err := p.do(args)
	if args[0] == "BLMOVE" {
		r, most = nil, 0
	}
	if err != nil || r == nil {
		if e := (*refusal)(nil); err != nil && !errors.As(err, &e) {
			w.count(&w.lostPops, most)
		}
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	before, now := w.taken, time.Now()
	for _, name := range flat(r) {
		if !strings.HasPrefix(name, "e") {
			continue // a key or a score
		}
		e := w.elements[name]
		if e == nil {
			return p.wrong("took %s, which was never put there, or taken long ago, or refused (%s); reply %s", name, w.refused[name], show(r))
		}
		if !e.taken.IsZero() && !w.st.lossy(e.taken) {
			return p.wrong("took %s, which was taken already, %v ago; reply %s", name, now.Sub(e.taken), show(r))
		}
		e.taken = now
		w.taken++
	}
	if w.taken/1000 > before/1000 {
		maps.DeleteFunc(w.elements, func(_ string, e *element) bool {
			return !e.taken.IsZero() && now.Sub(e.taken) > 2*window && !w.st.lossy(e.taken) // a crash cannot bring it back
		})
	}
	return nil
}

// flat lists all that is in a reply.
func flat(v any) (l []string) {
	if _, ok := v.([]any); !ok {
		return []string{text(v)}
	}
	for _, e := range list(v) {
		l = append(l, flat(e)...)
	}
	return l
}

func (w *queue) finish(c *client) error {
	there := map[string]int{}
	for _, key := range []string{w.key, w.second} {
		v, err := observe(c, key)
		if err != nil {
			return err
		}
		if v == nil {
			continue
		}
		for _, e := range slices.Concat(v.list, v.members()) {
			there[e]++
		}
	}
	missing := int64(0)
	for name, e := range w.elements {
		n := there[name]
		delete(there, name)
		switch {
		case n > 1:
			return fmt.Errorf("%s is there %d times", name, n)
		case n == 1 && !e.taken.IsZero() && !w.st.lossy(e.taken):
			return fmt.Errorf("%s was taken %v ago, and is there", name, time.Since(e.taken))
		case n == 0 && e.taken.IsZero() && !e.put.IsZero() && !w.st.lossy(e.put):
			missing++
		}
	}
	for name := range there {
		return fmt.Errorf("%s is there, and was never put there, or taken long ago", name)
	}
	if missing > w.lostPops {
		return fmt.Errorf("%d elements are missing; at most %d can have been taken by clients whose connections broke", missing, w.lostPops)
	}
	return nil
}

func (w *queue) String() string {
	return fmt.Sprintf("queue %s: %d put, %d taken, %d may be lost with connections", w.key, w.put, w.taken, w.lostPops)
}

// cache has keys that may be evicted: a value that is there is the last that was set.
type cache struct {
	*crew
	hits, misses int64
}

func newCache(st *stage) *cache {
	w := &cache{crew: &crew{st: st}}
	for i := range 2 {
		version, doubt := map[string]int{}, map[string]bool{}
		w.act(fmt.Sprint("cache ", i), 1, func(p *player) error { return w.step(p, i, version, doubt) })
	}
	return w
}

func (w *cache) step(p *player, n int, version map[string]int, doubt map[string]bool) error {
	key := fmt.Sprintf("cached:%d:%d", n, p.int(800))
	value := func(v int) string { return fmt.Sprintf("%s %d %s", key, v, strings.Repeat("x", v%700)) }
	if p.one(3) {
		version[key]++
		_, err := p.do("SET", key, value(version[key]), "PX", 1000+p.int(30_000))
		doubt[key] = err != nil
		return err
	}
	r, err := p.do("GET", key)
	if err != nil {
		return err
	}
	if r == nil {
		w.count(&w.misses, 1)
		return nil
	}
	w.count(&w.hits, 1)
	if s := text(r); s != value(version[key]) && !doubt[key] && !w.st.crashes || !strings.HasPrefix(s, key+" ") {
		return p.wrong("%s is %s, must be %s", key, show(r), show(value(version[key])))
	}
	return nil
}

func (w *cache) String() string { return fmt.Sprintf("cache: %d hits, %d misses", w.hits, w.misses) }
