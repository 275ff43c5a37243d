//go:build linux

package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// counters are counted up by several. Each is what was acknowledged, and at most
// what may have been done besides; two that are always counted up together are
// always the same.
type counters struct {
	st            *stage
	players       []*player
	mu            sync.Mutex
	acked, doubts map[string]int64
	recent        map[string]map[int64]int64 // acknowledged by second, for what a crash may take away
	done          int64
}

func newCounters(st *stage, n int) *counters {
	w := &counters{st: st, acked: map[string]int64{}, doubts: map[string]int64{}, recent: map[string]map[int64]int64{}}
	for i := range n {
		w.players = append(w.players, st.player("counter", i))
	}
	return w
}

func (w *counters) run() {
	var wg sync.WaitGroup
	for _, p := range w.players {
		wg.Go(func() { p.play(func() error { return w.step(p) }) })
	}
	wg.Wait()
}

func (w *counters) step(p *player) error {
	key := fmt.Sprint("counter:", p.int(3))
	var err error
	switch p.int(6) {
	case 0:
		_, err = p.do("INCR", key)
	case 1:
		_, err = p.do("HINCRBY", "counters", key, 1)
		key = "hash " + key
	case 2:
		_, err = p.do("ZINCRBY", "counts", 1, key)
		key = "zset " + key
	case 3:
		key = "pair:a"
		_, err = p.exec(words("INCR", "pair:a"), words("INCR", "pair:b"))
	case 4:
		key = "pair:a"
		_, err = p.do("EVAL", "redis.call('INCR', KEYS[1]) return redis.call('INCR', KEYS[2])", 2, "pair:a", "pair:b")
	case 5:
		r, err := p.do("MGET", "pair:a", "pair:b")
		if err != nil {
			return err
		}
		if l := list(r); text(l[0]) != text(l[1]) {
			return p.wrong("two counters that are always counted up together are %s", show(r))
		}
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil:
		w.acked[key]++
		w.done++
		if w.recent[key] == nil {
			w.recent[key] = map[int64]int64{}
		}
		if w.st.crashes {
			w.recent[key][time.Now().Unix()]++
		}
	case !isRefused(err):
		w.doubts[key]++
	}
	return err
}

func (w *counters) finish(c *client) error {
	for _, key := range slices.Sorted(maps.Keys(w.acked)) {
		var r any
		var err error
		if name, ok := strings.CutPrefix(key, "hash "); ok {
			r, err = c.do("HGET", "counters", name)
		} else if name, ok := strings.CutPrefix(key, "zset "); ok {
			r, err = c.do("ZSCORE", "counts", name)
		} else {
			r, err = c.do("GET", key)
		}
		if err != nil {
			return err
		}
		least := w.acked[key]
		for second, n := range w.recent[key] {
			if w.st.lossy(time.Unix(second, 0)) || w.st.lossy(time.Unix(second+1, 0)) {
				least -= n
			}
		}
		n := int64(0) // a crash may have taken all of it away
		if r != nil {
			n = number(r)
		}
		if n < least || n > w.acked[key]+w.doubts[key] {
			return fmt.Errorf("%s is %s; %d were acknowledged (of them %d may be lost), and %d are in doubt",
				key, show(r), w.acked[key], w.acked[key]-least, w.doubts[key])
		}
	}
	return nil
}

func (w *counters) String() string { return fmt.Sprintf("counters: %d", w.done) }

// accounts are ten sums of which the total never changes, as workers move amounts
// between them.
type accounts struct {
	st                        *stage
	players                   []*player
	moved, conflicts, checked counter
}

const total = 10_000

func newAccounts(st *stage, n int) *accounts {
	w := &accounts{st: st}
	for i := range n {
		p := st.player("account", i)
		p.setup = func() error { // a crash may take them away, all or none
			args := words("MSETNX")
			for i := range 10 {
				args = append(args, fmt.Sprint("account:", i), strconv.Itoa(total/10))
			}
			_, err := p.all(args)
			return err
		}
		w.players = append(w.players, p)
	}
	return w
}

func (w *accounts) run() {
	var wg sync.WaitGroup
	for _, p := range w.players {
		wg.Go(func() { p.play(func() error { return w.step(p) }) })
	}
	wg.Wait()
}

func (w *accounts) keys() (keys []string) {
	for i := range 10 {
		keys = append(keys, fmt.Sprint("account:", i))
	}
	return keys
}

func (w *accounts) check(r any, whole string) error {
	sum := int64(0)
	for _, n := range list(r) {
		if n == nil {
			return &mismatch{"accounts", "one is missing: " + show(r)}
		}
		sum += number(n)
	}
	if sum != total {
		return &mismatch{"accounts", fmt.Sprintf("%s sees %s, which is %d in all, must be %d", whole, show(r), sum, total)}
	}
	w.checked.add(1)
	return nil
}

func (w *accounts) step(p *player) error {
	a, b := fmt.Sprint("account:", p.int(10)), fmt.Sprint("account:", p.int(10))
	n := p.int(50) - 25
	switch p.int(6) {
	case 0:
		r, err := p.do("MGET", w.keys())
		if err != nil {
			return err
		}
		return w.check(r, "MGET")
	case 1:
		var gets [][]string
		for _, key := range w.keys() {
			gets = append(gets, words("GET", key))
		}
		r, err := p.exec(gets...)
		if err != nil {
			return err
		}
		return w.check(r, "a transaction")
	case 2:
		if a != b {
			_, err := p.do("EVAL", "local n = ARGV[1]; redis.call('DECRBY', KEYS[1], n) redis.call('INCRBY', KEYS[2], n) return 'OK'", 2, a, b, n)
			w.moved.add(1)
			return err
		}
	case 3:
		_, err := p.exec(words("DECRBY", a, n), words("INCRBY", b, n))
		w.moved.add(1)
		return err
	}
	if a == b {
		return nil
	}
	r, err := p.all(words("WATCH", a, b), words("MGET", a, b))
	if err != nil {
		p.close() // or it would go on to watch
		return err
	}
	if p.one(3) {
		time.Sleep(time.Duration(p.int(2000)) * time.Microsecond)
	}
	have := list(r[1])
	done, err := p.exec(words("SET", a, number(have[0])-int64(n)), words("SET", b, number(have[1])+int64(n)))
	if err == nil && done == nil {
		w.conflicts.add(1)
	} else if err == nil {
		w.moved.add(1)
	}
	return err
}

func (w *accounts) finish(c *client) error {
	r, err := c.do(append([]string{"MGET"}, w.keys()...)...)
	if err != nil {
		return err
	}
	return w.check(r, "the end")
}

func (w *accounts) String() string {
	return fmt.Sprintf("accounts: %d transfers, %d conflicts, %d looks at the whole", w.moved.get(), w.conflicts.get(), w.checked.get())
}

// queue is a list or a sorted set into which some put elements that others take,
// most of them waiting. Each element is taken once.
type queue struct {
	st       *stage
	key      string
	sorted   bool
	puts     []*player
	takes    []*player
	mu       sync.Mutex
	next     int
	elements map[string]*element
	refused  map[string]string // why
	lostPops int               // connections that broke while they waited: each may have taken one that no client received
	taken    int64
	put      int64
}

// element is one of a queue.
type element struct {
	put   time.Time // acknowledged; zero: in doubt
	taken time.Time
}

func newQueue(st *stage, key string, sorted bool, n int) *queue {
	w := &queue{st: st, key: key, sorted: sorted, elements: map[string]*element{}, refused: map[string]string{}}
	for i := range n {
		w.puts = append(w.puts, st.player(key+" producer", i))
		w.takes = append(w.takes, st.player(key+" consumer", i))
	}
	return w
}

func (w *queue) run() {
	var wg sync.WaitGroup
	for i := range w.puts {
		wg.Go(func() { w.puts[i].play(func() error { return w.produce(w.puts[i]) }) })
		wg.Go(func() { w.takes[i].play(func() error { return w.consume(w.takes[i]) }) })
	}
	wg.Wait()
}

func (w *queue) produce(p *player) error {
	if p.one(10) {
		length := "LLEN"
		if w.sorted {
			length = "ZCARD"
		}
		r, err := p.do(length, w.key)
		if err != nil {
			return err
		}
		if number(r) > 300 {
			time.Sleep(20 * time.Millisecond)
			return nil
		}
	}
	time.Sleep(time.Duration(p.int(6)) * time.Millisecond)
	args := words([]string{"LPUSH", "RPUSH"}[p.int(2)], w.key)
	if w.sorted {
		args = words("ZADD", w.key)
	}
	var names []string
	w.mu.Lock()
	for range 1 + p.int(3) {
		w.next++
		name := fmt.Sprint("e", w.next)
		names = append(names, name)
		w.elements[name] = &element{}
		if w.sorted {
			args = append(args, words("@now+"+strconv.Itoa(p.int(40))+"ms")...)
		}
		args = append(args, name)
	}
	w.mu.Unlock()
	var err error
	if p.one(4) {
		_, err = p.exec(args)
	} else {
		_, err = p.all(args)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range names {
		switch {
		case err == nil:
			if e := w.elements[name]; e != nil {
				e.put = time.Now()
			}
			w.put++
		case isRefused(err):
			delete(w.elements, name)
			w.refused[name] = err.Error()
		}
	}
	return err
}

func (w *queue) consume(p *player) error {
	var r any
	var err error
	timeout := "0." + strconv.Itoa(1+p.int(4))
	other := w.key + ":2"
	if w.sorted {
		switch p.int(4) {
		case 0:
			r, err = p.do("BZPOPMIN", other, w.key, timeout)
		case 1:
			r, err = p.do("BZPOPMAX", w.key, other, timeout)
		case 2:
			r, err = p.do("BZMPOP", timeout, 2, w.key, other, "MIN", "COUNT", 3)
		case 3:
			r, err = p.do("BZPOPBYSCORE", timeout, 2, w.key, other, "-inf", "@now", "COUNT", 3)
		}
	} else {
		switch p.int(5) {
		case 0:
			r, err = p.do("BLPOP", other, w.key, timeout)
		case 1:
			r, err = p.do("BRPOP", w.key, other, timeout)
		case 2:
			r, err = p.do("BLMPOP", timeout, 2, other, w.key, "LEFT", "COUNT", 3)
		case 3:
			_, err = p.do("BLMOVE", w.key, other, "LEFT", "RIGHT", timeout)
			return w.broken(err, 0)
		case 4:
			r, err = p.do("LPOP", w.key, 2)
			if r != nil {
				r = []any{w.key, r}
			}
		}
	}
	if err != nil || r == nil {
		return w.broken(err, 3)
	}
	var names []string
	l := list(r)
	for _, e := range l[1:] {
		names = append(names, strings.Fields(strings.Trim(strings.ReplaceAll(flat(e), ",", " "), " "))...)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	for _, name := range names {
		if !strings.HasPrefix(name, "e") {
			continue // a score
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
	if w.taken%1000 < int64(len(names)) {
		for name, e := range w.elements {
			if !e.taken.IsZero() && now.Sub(e.taken) > 2*window && !w.st.lossy(e.taken) { // or a crash may have brought it back
				delete(w.elements, name)
			}
		}
	}
	return nil
}

// flat writes all that is in a reply, with commas.
func flat(v any) string {
	if l, ok := v.([]any); ok {
		var parts []string
		for _, e := range l {
			parts = append(parts, flat(e))
		}
		return strings.Join(parts, ",")
	}
	return text(v)
}

func (w *queue) broken(err error, n int) error {
	if r := (*refusal)(nil); err != nil && !errors.As(err, &r) {
		w.mu.Lock()
		w.lostPops += n
		w.mu.Unlock()
	}
	return err
}

func (w *queue) finish(c *client) error {
	there := map[string]int{}
	for _, key := range []string{w.key, w.key + ":2"} {
		v, err := observe(c, key)
		if err != nil {
			return err
		}
		if v == nil {
			continue
		}
		for _, e := range v.list {
			there[e]++
		}
		for e := range v.scores {
			there[e]++
		}
	}
	missing := 0
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
	st      *stage
	players []*player
	hits    counter
	misses  counter
}

func newCache(st *stage, n int) *cache {
	w := &cache{st: st}
	for i := range n {
		w.players = append(w.players, st.player("cache", i))
	}
	return w
}

func (w *cache) run() {
	var wg sync.WaitGroup
	for i, p := range w.players {
		wg.Go(func() {
			version, doubt := map[string]int{}, map[string]bool{}
			p.play(func() error { return w.step(p, i, version, doubt) })
		})
	}
	wg.Wait()
}

func (w *cache) step(p *player, n int, version map[string]int, doubt map[string]bool) error {
	key := fmt.Sprintf("cached:%d:%d", n, p.int(800))
	value := func(v int) string { return fmt.Sprintf("%s %d %s", key, v, strings.Repeat("x", v%700)) }
	if p.one(3) {
		version[key]++
		doubt[key] = true
		_, err := p.do("SET", key, value(version[key]), "PX", 1000+p.int(30_000))
		if err == nil {
			doubt[key] = false
		}
		return err
	}
	r, err := p.do("GET", key)
	if err != nil {
		return err
	}
	if r == nil {
		w.misses.add(1)
		return nil
	}
	w.hits.add(1)
	if s := text(r); s != value(version[key]) && !doubt[key] && !w.st.crashes {
		return p.wrong("%s is %s, must be %s", key, show(r), show(value(version[key])))
	} else if !strings.HasPrefix(s, key+" ") {
		return p.wrong("%s is %s", key, show(r))
	}
	return nil
}

func (w *cache) finish(*client) error { return nil }

func (w *cache) String() string {
	return fmt.Sprintf("cache: %d hits, %d misses", w.hits.get(), w.misses.get())
}
