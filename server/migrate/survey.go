package migrate

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/internal/base/keyslot"
)

// A Report says what would move, and what would not fit.
type Report struct {
	From, To  string // endpoint and product
	Keys      int64  // of the source
	Observed  int    // commands that MONITOR has shown
	Obstacles []string
	Warnings  []string

	// Stop is how long the source is expected to refuse writes at the cut-over, without
	// the hook; 0 if it does not.
	Stop time.Duration

	continued bool // the target has an unfinished move from this source
}

// Survey examines a move without changing anything. For observe it watches the commands
// at the source with MONITOR, which costs the source up to half of its throughput.
// Obstacles make the move fail, or the application after it.
func Survey(ctx context.Context, o Options, observe time.Duration) (r *Report, err error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	m := newMove(&o)
	defer m.from.close()
	r = &Report{From: o.From.String(), To: o.To.String()}
	if !o.To.IsFile() {
		if m.t, err = openTarget(ctx, o.To, m.status.note); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, m.t.close()) }()
		r.To += " (" + m.t.product.String() + ")"
		if err := r.examineTarget(ctx, m); err != nil {
			return nil, err
		}
	}
	if o.From.IsFile() {
		return r, nil
	}
	if m.sources, err = openSources(ctx, o.From); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeSources(m.sources)) }()
	r.From += " (" + m.sources[0].product.String() + ")"
	for _, s := range m.sources {
		if err := r.examineSource(ctx, m, s); err != nil {
			return nil, fmt.Errorf("%s: %w", s.addr, err)
		}
	}
	if m.t != nil {
		if r.Stop, err = m.expectedStop(ctx); err != nil {
			return nil, err
		}
	}
	if m.t != nil && m.t.tags != nil && !o.From.at.Cluster && observe > 0 && !r.continued {
		if err := r.observe(ctx, m.sources[0], observe); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// The round trips of a cut-over, and what it does besides: see move.cutOver.
const (
	stopTrips = 12
	stopWork  = 5 * time.Millisecond
)

// expectedStop measures round trips.
func (m *move) expectedStop(ctx context.Context) (time.Duration, error) {
	trip := func(c *redis.Client) (least time.Duration, err error) {
		for range 5 {
			began := time.Now()
			if err := c.Ping(ctx).Err(); err != nil {
				return 0, err
			}
			if d := time.Since(began); least == 0 || d < least {
				least = d
			}
		}
		return least, nil
	}
	var here, there time.Duration
	for _, s := range m.sources {
		d, err := trip(s.admin)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", s.addr, err)
		}
		here = max(here, d)
	}
	err := m.t.each(ctx, func(_ context.Context, c *redis.Client) error {
		d, err := trip(c)
		there = max(there, d)
		return err
	})
	return (stopWork + stopTrips*(here+there)).Round(time.Millisecond), err
}

func (r *Report) obstacle(format string, args ...any) {
	r.Obstacles = append(r.Obstacles, fmt.Sprintf(format, args...))
}

func (r *Report) warn(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

func (r *Report) examineTarget(ctx context.Context, m *move) error {
	n, err := m.t.keys(ctx)
	if err != nil {
		return err
	}
	stored, err := m.t.rdb.HGet(ctx, progressKey, fieldFrom).Result()
	switch {
	case err == nil && stored == m.o.From.String():
		r.continued = true
		r.warn("the target has an unfinished move from this source, which will be continued")
	case err == nil:
		r.obstacle("the target has the unfinished move from %s: --replace deletes it", stored)
	case !errors.Is(err, redis.Nil):
		return err
	case n > 0 && !m.o.Replace:
		r.obstacle("the target has %d keys: --replace deletes them", n)
	case n > 0:
		r.warn("the %d keys of the target will be deleted", n)
	}
	return nil
}

// skew is the difference of clocks from which deadlines are noticeably wrong.
const skew = time.Second

func (r *Report) examineSource(ctx context.Context, m *move, s *source) error {
	others, timed := int64(0), int64(0)
	for _, d := range databasesOf(s.info) {
		if to, moves := m.dbs.of(d.db); moves {
			r.Keys += d.keys
			timed += d.memberDeadlines
			if to != 0 {
				others += d.keys
			}
		}
	}
	if s.info["repl_backlog_active"] == "1" || s.info["repl_backlog_size"] != "" {
		if n, err := strconv.ParseInt(s.info["repl_backlog_size"], 10, 64); err == nil {
			r.warn("after an interruption the move continues if %s has sent less than repl-backlog-size (%s) of changes meanwhile", s.addr, size(n))
		}
	}
	if s.info["role"] != "master" && s.info["role"] != "" {
		r.warn("%s is a replica: its cut-over does not pause its primary", s.addr)
	}
	if err := r.examineModules(ctx, m, s); err != nil || m.t == nil {
		return err
	}
	if others > 0 && m.t.tags != nil {
		r.obstacle("%d keys of %s are in databases other than 0, which a cluster does not have: move one database with redis://host/number", others, s.addr)
	}
	if timed > 0 {
		if err := r.examineDeadlines(ctx, m, s, timed); err != nil {
			return err
		}
	}
	here, err := s.admin.Time(ctx).Result()
	if err != nil {
		return err
	}
	return m.t.each(ctx, func(ctx context.Context, c *redis.Client) error {
		there, err := c.Time(ctx).Result()
		if d := there.Sub(here); err == nil && (d > skew || d < -skew) {
			r.warn("the clock of %s differs from that of %s by %v: keys with a deadline live that much longer or shorter", c.Options().Addr, s.addr, d.Round(time.Millisecond))
		}
		return err
	})
}

// examineDeadlines reports on keys whose members or fields have deadlines.
func (r *Report) examineDeadlines(ctx context.Context, m *move, s *source, keys int64) error {
	switch {
	case m.t.name == "zsetd":
	case s.name != "zsetd":
		if !m.t.form().FieldDeadlines() {
			r.obstacle("%d hashes of %s have fields with deadlines, which %s does not support", keys, s.addr, m.t.product)
		}
	case m.t.major < 7:
		r.obstacle("%d keys of %s have members or fields with deadlines, for which %s has no functions", keys, s.addr, m.t.product)
	case m.o.LoadLibrary:
		r.warn("%d keys of %s have members or fields with deadlines: those of members are kept by the function library, which will be loaded", keys, s.addr)
	default:
		list, err := m.t.rdb.FunctionList(ctx, redis.FunctionListQuery{LibraryNamePattern: "zsetd"}).Result()
		if err != nil {
			return err
		}
		if len(list) == 0 {
			r.obstacle("%d keys of %s have members or fields with deadlines, and the target lacks the function library: --functions loads it", keys, s.addr)
		}
	}
	if !m.t.form().FieldDeadlines() && s.name == "zsetd" {
		r.warn("%s does not support deadlines of fields of hashes: they are left out", m.t.product)
	}
	return nil
}

// examineModules finds values of modules, if the source has modules.
func (r *Report) examineModules(ctx context.Context, m *move, s *source) error {
	if !strings.Contains(s.info["module"], "name=") {
		return nil
	}
	found := map[string]string{} // an example, by type
	known := []string{"none", "string", "list", "set", "zset", "hash", "stream"}
	err := m.eachDatabase(ctx, s, func(c *redis.Client, _ databaseInfo, _ int) error {
		return scan(ctx, c, "", "", func(keys []string) error {
			p := c.Pipeline()
			types := make([]*redis.StatusCmd, len(keys))
			for i, k := range keys {
				types[i] = p.Type(ctx, k)
			}
			_, err := p.Exec(ctx)
			for i, t := range types {
				if name := t.Val(); name != "" && !slices.Contains(known, name) {
					found[name] = keys[i]
				}
			}
			return err
		})
	})
	for _, name := range slices.Sorted(maps.Keys(found)) {
		r.obstacle("%s has values of the module type %s, such as key %.100q, which cannot be moved", s.addr, name, found[name])
	}
	return err
}

// observe watches the commands at the source and reports those with keys of several
// slots.
func (r *Report) observe(ctx context.Context, s *source, d time.Duration) error {
	conn, err := s.dial(ctx)
	if err != nil {
		return err
	}
	var closing sync.Once
	stop := func() { closing.Do(func() { conn.Close() }) }
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	auth := [][]byte{}
	if s.at.Password != "" {
		auth = append(auth, []byte("AUTH"))
		if s.at.User != "" {
			auth = append(auth, []byte(s.at.User))
		}
		auth = append(auth, []byte(s.at.Password))
	}
	hello := ""
	for _, line := range [][][]byte{auth, {[]byte("MONITOR")}} {
		if len(line) > 0 {
			hello += fmt.Sprintf("*%d\r\n", len(line))
			for _, w := range line {
				hello += fmt.Sprintf("$%d\r\n%s\r\n", len(w), w)
			}
		}
	}
	if err := conn.SetDeadline(time.Now().Add(d)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, hello); err != nil {
		return err
	}
	w := watcher{facts: server.Commands(), clients: map[string]*watched{}, found: map[string]*seen{}}
	in := bufio.NewReaderSize(conn, 1<<20)
	for {
		line, err := in.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			break // the time is over
		}
		if len(line) > 0 && line[0] == '-' {
			return fmt.Errorf("%s: MONITOR: %s", s.addr, line)
		}
		if err == nil { // a longer line is ignored
			w.line(line)
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.Observed = w.commands
	for _, name := range slices.Sorted(maps.Keys(w.found)) {
		f := w.found[name]
		r.obstacle("%s uses keys of several slots, %d times: for example %.60q and %.60q need a common hash tag", name, f.times, f.a, f.b)
	}
	return nil
}

// watcher finds commands and transactions with keys of several slots in the lines of
// MONITOR.
type watcher struct {
	facts    map[string]*protocol.Command
	clients  map[string]*watched // those in MULTI
	found    map[string]*seen
	commands int
}

// watched is the transaction of a client.
type watched struct{ first string }

// seen is a finding.
type seen struct {
	times int
	a, b  string
}

// line reads a line like
//
//	1339518083.107412 [0 127.0.0.1:60866] "keys" "*"
func (w *watcher) line(line []byte) {
	_, rest, ok := strings.Cut(strings.TrimSpace(string(line)), " [")
	where, text, ok2 := strings.Cut(rest, "] ")
	_, client, ok3 := strings.Cut(where, " ")
	if !ok || !ok2 || !ok3 || client == "lua" {
		return // a command of a script, whose keys are those of the script
	}
	args, ok := protocol.SplitArgs(nil, []byte(text))
	if !ok || len(args) == 0 {
		return
	}
	w.commands++
	name := strings.ToLower(string(args[0]))
	switch name {
	case "multi":
		if len(w.clients) < maxWatched {
			w.clients[client] = &watched{}
		}
		return
	case "exec", "discard":
		delete(w.clients, client)
		return
	}
	a := applier{facts: w.facts}
	first := ""
	for _, ref := range a.keysOf(args) {
		key := string(args[ref.Index])
		if first == "" {
			first = key
		}
		if keyslot.Of(first) != keyslot.Of(key) {
			w.add(strings.ToUpper(name), first, key)
			break
		}
	}
	if t := w.clients[client]; t != nil && first != "" {
		if t.first == "" {
			t.first = first
		}
		if keyslot.Of(t.first) != keyslot.Of(first) {
			w.add("MULTI", t.first, first)
		}
	}
}

// maxWatched bounds the clients that are watched: some leave within MULTI.
const maxWatched = 10_000

func (w *watcher) add(name, a, b string) {
	f := w.found[name]
	if f == nil {
		f = &seen{a: a, b: b}
		w.found[name] = f
	}
	f.times++
}
