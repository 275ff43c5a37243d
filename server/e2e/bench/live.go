//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// liveWork is the argument of -work that selects this measurement alone.
const liveWork = "live"

// The load of the rows about live queries.
const (
	topViewers     = 10
	topChanges     = 10 * time.Millisecond // between two changes of the top ten
	numberViewers  = 10000
	listUsers      = 100000
	listViewers    = 1000
	listInterval   = time.Millisecond // between two joins or leaves
	listTime       = 10 * time.Second
	untouched      = 100000
	liveRounds     = 5
	settleDeadline = time.Minute
)

// liveRow is a quantity of servers without and with viewers: zsetd, whose viewers subscribe to a
// query, and the reference, whose viewers subscribe to events of the key and read it after each.
type liveRow struct {
	name                           string // with its unit
	zsetd, queries, redis, reading string
}

func (r *report) liveColumns() []string {
	return []string{"work", "zsetd", "with live queries", r.targets[0].name, "with events and reads"}
}

func (w liveRow) cells() []string { return []string{w.name, w.zsetd, w.queries, w.redis, w.reading} }

// liveMarkdown returns the section for RESULTS.md.
func (r *report) liveMarkdown(string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s (%s), medians of %d rounds of %v; load average before %s, after %s.\n",
		r.begun.UTC().Format(time.DateOnly), r.machine, liveRounds, r.options.length, r.loadBefore, r.loadAfter)
	markdownTable(&b, r.liveColumns(), r.live, liveRow.cells)
	return b.String()
}

// liveMeasurement collects the rows.
type liveMeasurement struct {
	*report
	l      limits
	part   int // what the numbers of viewers and users are divided by
	rounds int
}

// measureLive measures what viewers of replies cost.
func (r *report) measureLive(ctx context.Context, l limits) error {
	m := &liveMeasurement{report: r, l: l, part: 1, rounds: liveRounds}
	if r.options.short {
		m.part, m.rounds = 10, 1
	}
	fmt.Println(aligned(m.liveColumns()))
	return errors.Join(m.topTen(ctx), m.number(ctx), m.waitingList(ctx), m.untouched(ctx))
}

func (m *liveMeasurement) add(row liveRow) {
	m.live = append(m.live, row)
	fmt.Println(aligned(row.cells()))
}

// start starts the server of a target with room for the viewers, and events of sorted sets and
// strings where there are no live queries.
func (m *liveMeasurement) start(ctx context.Context, t target) (*server, error) {
	t.flags = append(slices.Clone(t.flags), "--maxclients", strconv.Itoa(numberViewers+200))
	if t.name != "zsetd" {
		t.flags = append(t.flags, "--notify-keyspace-events", "Kz$")
	}
	return t.start(ctx)
}

// topTen has viewers of the ten highest members of the large set, which writers change.
func (m *liveMeasurement) topTen(ctx context.Context) error {
	rate := liveRow{name: fmt.Sprintf("ZADD P16, %d viewers of the top ten, 1000/s", topViewers)}
	lag := liveRow{name: "a change there arrives at half load, p50 · p99 ms", zsetd: "–", redis: "–"}
	for i, t := range m.targets[:2] {
		s, err := m.start(ctx, t)
		if err != nil {
			return err
		}
		defer s.stop()
		var late histogram
		var mu sync.Mutex
		watch := func() (*viewers, error) {
			return s.view(topViewers, "big", func(int) []string { return []string{"ZRANGE big 0 9 REV WITHSCORES"} }, func(_ int, reply []byte) {
				if _, after, ok := bytes.Cut(reply, []byte("at:")); ok {
					if at, err := strconv.ParseInt(string(after[:19]), 10, 64); err == nil {
						mu.Lock()
						late.add(time.Since(time.Unix(0, at)))
						mu.Unlock()
					}
				}
			})
		}
		w := zadd(16)
		alone, with, err := m.pair(ctx, s, w, watch)
		if err != nil {
			return err
		}
		v, err := watch()
		if err != nil {
			return err
		}
		late = histogram{}
		g := &generator{server: s, clients: m.options.clients, rate: middle(alone.rate) / 2, length: 3 * m.options.length, limits: m.l}
		stop := make(chan struct{})
		changed := make(chan error, 1)
		go func() { changed <- s.changeTop(stop) }()
		_, err = g.run(ctx, w)
		close(stop)
		if err = errors.Join(err, <-changed); err != nil {
			return err
		}
		time.Sleep(time.Second) // late ones count, too
		v.close()
		cell := fmt.Sprintf("%s · %s", millis(late.quantile(0.5)), millis(late.quantile(0.99)))
		if i == 1 {
			rate.zsetd, rate.queries, lag.queries = alone.perSec(), with.perSec(), cell
		} else {
			rate.redis, rate.reading, lag.reading = alone.perSec(), with.perSec(), cell
		}
	}
	m.add(rate)
	m.add(lag)
	return nil
}

// changeTop adds a member to the top ten of the large set again and again, with the time in its
// name.
func (s *server) changeTop(stop chan struct{}) error {
	c, err := s.dial()
	if err != nil {
		return err
	}
	defer c.close()
	for i := int64(0); ; i++ {
		select {
		case <-stop:
			return nil
		case <-time.After(topChanges):
		}
		if err := c.do("ZADD", "big", strconv.FormatInt(1e12+i, 10), fmt.Sprintf("at:%d", time.Now().UnixNano())); err != nil {
			return err
		}
	}
}

func millis(d time.Duration) string { return micros(d.Seconds() * 1e3) }

// paired are the rates and the CPU per operation of rounds without or with viewers.
type paired struct{ rate, cpu []float64 }

func (p paired) perSec() string { return fmt.Sprintf("%.0f", middle(p.rate)/1000) }

func (p *paired) add(s *sample) {
	p.rate, p.cpu = append(p.rate, s.perSec()), append(p.cpu, s.perOp())
}

// pair applies a workload without and with viewers in turn.
func (m *liveMeasurement) pair(ctx context.Context, s *server, w work, watch func() (*viewers, error)) (alone, with paired, err error) {
	for range m.rounds {
		for _, watched := range []bool{false, true} {
			var v *viewers
			if watched {
				if v, err = watch(); err != nil {
					return alone, with, err
				}
			}
			g := &generator{server: s, clients: m.options.clients, length: m.options.length, limits: m.l}
			sample, err := g.run(ctx, w)
			if v != nil {
				v.close()
			}
			if err != nil {
				return alone, with, fmt.Errorf("%s, %s: %w", w.title(), s.name, err)
			}
			if watched {
				with.add(sample)
			} else {
				alone.add(sample)
			}
		}
	}
	return alone, with, nil
}

// number has viewers of one number. The next change follows when all have seen the one before.
func (m *liveMeasurement) number(ctx context.Context) error {
	n := numberViewers / m.part
	row := liveRow{name: fmt.Sprintf("PUBLISH, and INCR, to %s viewers, µs per viewer", grouped(int64(n)))}
	for i, t := range m.targets[:2] {
		var cells [2]string
		for k, write := range [][]string{{"PUBLISH", "news", "0123456789abcdef"}, {"INCR", "counter"}} {
			s, err := m.start(ctx, t)
			if err != nil {
				return err
			}
			var arrived atomic.Int64
			all := make(chan struct{}, 1)
			seen := func(int, []byte) {
				if arrived.Add(1) == int64(n) {
					all <- struct{}{}
				}
			}
			queries := func(int) []string { return []string{"GET counter"} }
			if k == 0 {
				queries = nil
			}
			cells[k], err = s.waves(n, write, queries, seen, &arrived, all, time.Duration(m.rounds)*m.options.length)
			s.stop()
			if err != nil {
				return fmt.Errorf("%s, %s: %w", write[0], t.name, err)
			}
		}
		if i == 1 {
			row.zsetd, row.queries = cells[0], cells[1]
		} else {
			row.redis, row.reading = cells[0], cells[1]
		}
	}
	m.add(row)
	return nil
}

// waves returns the CPU per delivery of a write that all viewers see.
func (s *server) waves(n int, write []string, queries func(int) []string, seen func(int, []byte), arrived *atomic.Int64, all chan struct{}, length time.Duration) (string, error) {
	v, err := s.view(n, "counter", queries, seen)
	if err != nil {
		return "", err
	}
	defer v.close()
	c, err := s.dial()
	if err != nil {
		return "", err
	}
	defer c.close()
	select { // the first replies
	case <-all:
	default:
	}
	wave := func() error {
		arrived.Store(0)
		if err := c.do(write...); err != nil {
			return err
		}
		select {
		case <-all:
			return nil
		case <-time.After(settleDeadline):
			return fmt.Errorf("%d of %d viewers have seen a change", arrived.Load(), n)
		}
	}
	if err := wave(); err != nil {
		return "", err
	}
	before, err := s.cpu()
	if err != nil {
		return "", err
	}
	waves := 0
	for end := time.Now().Add(length); time.Now().Before(end); waves++ {
		if err := wave(); err != nil {
			return "", err
		}
	}
	after, err := s.cpu()
	return micros((after - before).Seconds() * 1e6 / float64(waves*n)), err
}

// waitingList has users that each view their own rank, a hundred on a connection.
func (m *liveMeasurement) waitingList(ctx context.Context) error {
	users, n := listUsers/m.part, listViewers/m.part
	title := grouped(int64(users)) + " ranks on " + grouped(int64(n)) + " connections"
	rate := liveRow{name: title + ", ZADD P16, 1000/s"}
	changing := liveRow{name: "changes a second, of 1 000", zsetd: "–", redis: "–"}
	load := liveRow{name: "meanwhile, % of a core", zsetd: "–", redis: "–"}
	settled := liveRow{name: "all ranks right after the last change, ms", zsetd: "–", redis: "–"}
	size := liveRow{name: "bytes of a subscription beside its name", zsetd: "–", redis: "–", reading: "–"}
	w := work{name: "ZADD list", pipeline: 16, command: fmt.Sprintf("ZADD list {now} user:{r/%d}", users), data: func(c *conn, _ limits) error {
		return c.fill(0, int64(users), func(b *batch, i int64) {
			b.command("ZADD", "list", "NX", strconv.FormatInt(i, 10), padded("user:", i))
		})
	}}
	for i, t := range m.targets[:2] {
		s, err := m.start(ctx, t)
		if err != nil {
			return err
		}
		defer s.stop()
		ranks := make([]atomic.Int64, users)
		names := 0
		watch := func() (*viewers, error) {
			names = 0
			return s.view(n, "list", func(i int) (list []string) {
				for user := i * users / n; user < (i+1)*users/n; user++ {
					list = append(list, "ZRANK list "+padded("user:", int64(user)))
					names += len(list[len(list)-1])
				}
				return list
			}, func(query int, reply []byte) { ranks[query].Store(numberIn(reply)) })
		}
		alone, with, err := m.pair(ctx, s, w, watch)
		if err != nil {
			return err
		}
		time.Sleep(2 * time.Second)
		before, _, err := s.rss()
		if err != nil {
			return err
		}
		v, err := watch()
		if err != nil {
			return err
		}
		defer v.close()
		time.Sleep(2 * time.Second)
		after, _, err := s.rss()
		if err != nil {
			return err
		}
		changes, share, late, err := s.joinAndLeave(ranks)
		if err != nil {
			return err
		}
		if i == 1 {
			rate.zsetd, rate.queries, changing.queries, load.queries, settled.queries = alone.perSec(), with.perSec(), changes, share, late
			size.queries = fmt.Sprintf("%.0f", (float64(after-before)-float64(names))/float64(users))
		} else {
			rate.redis, rate.reading, changing.reading, load.reading, settled.reading = alone.perSec(), with.perSec(), changes, share, late
		}
	}
	m.add(rate)
	m.add(changing)
	m.add(load)
	m.add(settled)
	m.add(size)
	return nil
}

// joinAndLeave lets the first user leave the list and join it at its end, again and again. It returns the
// changes a second, the server's share of a core meanwhile, and how long after the last change all viewers have seen the right rank.
func (s *server) joinAndLeave(ranks []atomic.Int64) (rate, share, late string, err error) {
	c, err := s.dial()
	if err != nil {
		return "", "", "", err
	}
	defer c.close()
	before, err := s.cpu()
	if err != nil {
		return "", "", "", err
	}
	begin := time.Now()
	const first = int64(1e12)
	next := first
	for due := begin; time.Since(begin) < listTime; due = due.Add(2 * listInterval) {
		time.Sleep(time.Until(due))
		var b batch
		b.command("ZPOPMIN", "list")
		if _, err := c.Write(b.text); err != nil {
			return "", "", "", err
		}
		raw, err := readRaw(c.r, nil)
		if err != nil {
			return "", "", "", err
		}
		time.Sleep(time.Until(due.Add(listInterval)))
		next++
		if err := c.do("ZADD", "list", strconv.FormatInt(next, 10), string(bulks(raw)[0])); err != nil {
			return "", "", "", err
		}
	}
	last := time.Now()
	after, err := s.cpu()
	if err != nil {
		return "", "", "", err
	}
	var b batch
	b.command("ZRANGE", "list", "0", "-1")
	if _, err := c.Write(b.text); err != nil {
		return "", "", "", err
	}
	raw, err := readRaw(c.r, nil)
	if err != nil {
		return "", "", "", err
	}
	want := make([]int64, len(ranks))
	for rank, member := range bulks(raw) {
		user, err := strconv.Atoi(strings.TrimPrefix(string(member), "user:"))
		if err != nil {
			return "", "", "", err
		}
		want[user] = int64(rank)
	}
	for time.Since(last) < settleDeadline {
		wrong := 0
		for user := range ranks {
			if ranks[user].Load() != want[user] {
				wrong++
			}
		}
		if wrong == 0 {
			return fmt.Sprintf("%.0f", float64(next-first)*2/last.Sub(begin).Seconds()), fmt.Sprintf("%.0f", 100*(after-before).Seconds()/last.Sub(begin).Seconds()), fmt.Sprintf("%.0f", time.Since(last).Seconds()*1e3), nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	return "", "", "", fmt.Errorf("%s: some ranks are wrong a minute after the last change", s.name)
}

// untouched has queries of keys that nothing changes.
func (m *liveMeasurement) untouched(ctx context.Context) error {
	s, err := m.start(ctx, m.targets[1])
	if err != nil {
		return err
	}
	defer s.stop()
	n := untouched / m.part
	alone, with, err := m.pair(ctx, s, zadd(16), func() (*viewers, error) {
		return s.view(n/1000, "other", func(i int) (list []string) {
			for k := range 1000 {
				list = append(list, fmt.Sprintf("GET other:%d", i*1000+k))
			}
			return list
		}, func(int, []byte) {})
	})
	if err != nil {
		return err
	}
	m.add(liveRow{name: fmt.Sprintf("ZADD P16, %s queries of other keys, µs", grouped(int64(n))), zsetd: micros(middle(alone.cpu)), queries: micros(middle(with.cpu)), redis: "–", reading: "–"})
	return nil
}

// viewers are clients that keep replies up to date.
type viewers struct {
	conns   []net.Conn
	reading sync.WaitGroup
}

func (v *viewers) close() {
	for _, c := range v.conns {
		c.Close()
	}
	v.reading.Wait()
}

// view connects n viewers. Viewer i follows the replies to the commands that queries(i) returns, which read
// the key; seen gets each reply, as JSON or in RESP, with the number of the command among those of all
// viewers. Without queries they follow the messages of the channel news. It returns when all have their
// first replies.
func (s *server) view(n int, key string, queries func(i int) []string, seen func(query int, reply []byte)) (*viewers, error) {
	v := &viewers{}
	begun := make(chan error, n)
	from := 0
	for i := range n {
		c, err := s.dial()
		if err != nil {
			v.close()
			return nil, err
		}
		v.conns = append(v.conns, c)
		var list []string
		if queries != nil {
			list = queries(i)
		}
		first := from
		from += len(list)
		follow := followEvents
		switch {
		case queries == nil:
			follow = followChannel
		case s.name == "zsetd":
			follow = followQueries
		}
		v.reading.Go(func() {
			var once sync.Once
			err := follow(c, key, list, func() { once.Do(func() { begun <- nil }) }, func(query int, reply []byte) { seen(first+query, reply) })
			once.Do(func() { begun <- err })
		})
		if i%100 == 99 || i == n-1 { // not more at once than the server accepts
			for range i%100 + 1 {
				if err := <-begun; err != nil {
					v.close()
					return nil, err
				}
			}
		}
	}
	return v, nil
}

// followChannel follows a channel until the connection ends.
func followChannel(c *conn, _ string, _ []string, begun func(), seen func(int, []byte)) error {
	if err := c.do("SUBSCRIBE", "news"); err != nil {
		return err
	}
	begun()
	for {
		if err := skipReply(c.r); err != nil {
			return err
		}
		seen(0, nil)
	}
}

// followQueries follows live queries.
func followQueries(c *conn, _ string, commands []string, begun func(), seen func(int, []byte)) error {
	var b batch
	names := []string{"SUBSCRIBE"}
	numbers := map[string]int{}
	for i, command := range commands {
		names = append(names, "__query@0__:"+command)
		numbers[names[i+1]] = i
	}
	b.command(names...)
	if _, err := c.Write(b.text); err != nil {
		return err
	}
	var raw []byte
	for first := len(commands); ; {
		var err error
		if raw, err = readRaw(c.r, raw[:0]); err != nil {
			return err
		}
		words := bulks(raw)
		if len(words) < 3 || string(words[0]) != "message" { // a confirmation
			continue
		}
		seen(numbers[string(words[1])], words[2])
		if first--; first == 0 {
			begun()
		}
	}
}

// followEvents follows the events of a key, and reads after each one that comes when the reply to the read
// before has come.
func followEvents(c *conn, key string, commands []string, begun func(), seen func(int, []byte)) error {
	var read batch
	read.command("HELLO", "3")
	if _, err := c.Write(read.text); err != nil {
		return err
	}
	if _, err := readRaw(c.r, nil); err != nil {
		return err
	}
	read = batch{}
	for _, command := range commands {
		read.command(strings.Fields(command)...)
	}
	var b batch
	b.command("SUBSCRIBE", "__keyspace@0__:"+key)
	if _, err := c.Write(append(b.text, read.text...)); err != nil {
		return err
	}
	var raw []byte
	first, again := true, false
	for waits := len(commands); ; {
		var err error
		if raw, err = readRaw(c.r, raw[:0]); err != nil {
			return err
		}
		if raw[0] == '>' {
			if waits > 0 {
				again = true
				continue
			}
		} else {
			seen(len(commands)-waits, raw)
			if waits--; waits > 0 {
				continue
			}
			if first {
				first = false
				begun()
			}
			if !again {
				continue
			}
		}
		again, waits = false, len(commands)
		if _, err := c.Write(read.text); err != nil {
			return err
		}
	}
}

// readRaw appends a reply, RESP2 or RESP3, as it is.
func readRaw(r *bufio.Reader, to []byte) ([]byte, error) {
	for left := 1; left > 0; left-- {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return to, err
		}
		to = append(to, line...)
		n, err := parseCount(bytes.TrimSuffix(line[1:], []byte("\r\n")))
		switch line[0] {
		case '-':
			return to, errors.New("the server says: " + string(line))
		case '*', '>', '~':
			left += max(n, 0)
		case '%':
			left += 2 * n
		case '$', '=':
			if n >= 0 && err == nil {
				at := len(to)
				to = slices.Grow(to, n+2)[:at+n+2]
				if _, err := io.ReadFull(r, to[at:]); err != nil {
					return to, err
				}
			}
		}
	}
	return to, nil
}

// bulks returns the bulk strings of a reply.
func bulks(raw []byte) (list [][]byte) {
	for len(raw) > 0 {
		end := bytes.IndexByte(raw, '\n') + 1
		kind := raw[0]
		n, err := parseCount(bytes.TrimSuffix(raw[1:end], []byte("\r\n")))
		raw = raw[end:]
		if kind == '$' && err == nil && n >= 0 {
			list = append(list, raw[:n])
			raw = raw[n+2:]
		}
	}
	return list
}

// numberIn returns the integer after the first colon, or -1.
func numberIn(reply []byte) int64 {
	_, text, _ := bytes.Cut(reply, []byte(":"))
	end := 0
	for end < len(text) && text[end] >= '0' && text[end] <= '9' {
		end++
	}
	n, err := strconv.ParseInt(string(text[:end]), 10, 64)
	if err != nil {
		return -1
	}
	return n
}
