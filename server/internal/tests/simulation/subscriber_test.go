package simulation

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// liveQuery is a query that each node has a subscriber of.
type liveQuery struct {
	db       int
	interval string // "" or one with its comma
	words    string
	either   bool // WRONGTYPE is one of the replies
}

var liveQueries = []liveQuery{
	{words: "ZRANGE board 0 9 REV WITHSCORES"},
	{words: "ZRANGE board 0 2", interval: ",250ms"},
	{words: "ZRANK board m3"},
	{words: "ZCARD board", db: 1},
	{words: "ZCOUNT hits @now-30s +inf"},
	{words: "ZCOUNT hits @now-20s (@now", interval: ",1s"},
	{words: "ZRANGE hits (@now +inf BYSCORE LIMIT 0 3"},
	{words: "HGETALL fields"},
	{words: "MGET pair0 pair1"},
	{words: "EXISTS passing pair0 board"},
	{words: "GET passing"},
	{words: "ZCARD kind", either: true},
	{words: "EVAL_RO \"return {redis.call('GET',KEYS[1]) == redis.call('GET',KEYS[2]), redis.call('GET',KEYS[1])}\" 2 pair0 pair1"},
	{words: "LRANGE list -3 -1"},
}

func (q liveQuery) channel() string {
	return fmt.Sprintf("__query@%d%s__:%s", q.db, q.interval, q.words)
}

// viewed executes a command that changes the keys of live queries.
func (c *client) viewed() {
	ms := c.random.IntN(5000)
	member := fmt.Sprint("m", c.random.IntN(20))
	id := fmt.Sprint(c.name, "-", c.random.Uint32())
	all := [][][]any{
		{{"ZADD", "board", ms % 100, member}},
		{{"ZADD", "board", ms % 100, member}},
		{{"ZINCRBY", "board", 1, member}},
		{{"ZREM", "board", member}},
		{{"ZPEXPIRE", "board", ms + 1, "MEMBERS", 1, member}},
		{{"ZADD", "hits", "@now", id}},
		{{"ZADD", "hits", "@now+2s", id}},
		{{"ZREMRANGEBYSCORE", "hits", "-inf", "@now-1m"}},
		{{"HSET", "fields", ms % 9, ms}},
		{{"HPEXPIRE", "fields", ms + 1, "FIELDS", 1, ms % 9}},
		{{"SET", "passing", id, "PX", ms + 1}},
		{{"PEXPIRE", "passing", ms + 1}},
		{{"MULTI"}, {"SET", "pair0", id}, {"SET", "pair1", id}, {"EXEC"}},
		{{"EVAL", "redis.call('SET', KEYS[1], ARGV[1]) redis.call('SET', KEYS[2], ARGV[1])", 2, "pair0", "pair1", id}},
		{{"SET", "kind", id}},
		{{"MULTI"}, {"DEL", "kind"}, {"ZADD", "kind", 1, id}, {"EXEC"}},
		{{"COPY", "board", "shelf", "REPLACE"}},
		{{"COPY", "shelf", "board", "REPLACE"}},
		{{"COPY", "board", "board", "DB", 1, "REPLACE"}},
		{{"SWAPDB", 1, 2}},
		{{"EVAL", "redis.call('SELECT', 1) redis.call('FLUSHDB')", 0}},
	}
	for _, args := range all[c.random.IntN(len(all))] {
		if _, ok := c.do(args...); !ok {
			return
		}
	}
}

// subscriber is a client of one node, whatever its role is, that is subscribed to the live
// queries. It connects again when its connection is lost.
type subscriber struct {
	*simulation
	node   *node
	random *rand.Rand

	mu       sync.Mutex
	conn     net.Conn
	over     bool
	latest   map[string]string // by channel, of this connection
	messages int
}

func (u *subscriber) name() string { return "subscriber-" + u.node.name }

func (u *subscriber) run() {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		conn, err := u.network.dial(ctx, u.name(), u.node.name)
		cancel()
		u.mu.Lock()
		if u.over {
			if err == nil {
				conn.Close()
			}
			u.mu.Unlock()
			return
		}
		if err == nil {
			u.conn = conn
		}
		u.mu.Unlock()
		if err == nil {
			u.follow(conn)
		}
		wait.Pace(time.Duration(u.random.Int64N(int64(time.Second))))
	}
}

// follow subscribes and receives messages until the connection is lost.
func (u *subscriber) follow(conn net.Conn) {
	defer func() {
		conn.Close()
		u.mu.Lock()
		u.latest = nil
		u.mu.Unlock()
	}()
	conn.SetDeadline(time.Now().Add(5 * time.Second))
	b := fmt.Appendf(nil, "*%d\r\n$9\r\nSUBSCRIBE\r\n", 1+len(liveQueries))
	for _, q := range liveQueries {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(q.channel()), q.channel())
	}
	if _, err := conn.Write(b); err != nil {
		return
	}
	in, silent := bufio.NewReader(conn), false
	for {
		conn.SetDeadline(time.Now().Add(5 * time.Second))
		if _, err := in.Peek(1); errors.Is(err, os.ErrDeadlineExceeded) && !silent {
			silent = true
			conn.SetDeadline(time.Now().Add(5 * time.Second))
			conn.Write([]byte("*1\r\n$4\r\nPING\r\n"))
			continue
		}
		silent = false
		reply, err := protocol.DecodeFrom(in)
		if err != nil {
			return
		}
		if e, _ := reply.(protocol.ReplyError); strings.HasPrefix(string(e), "MASTERDOWN ") {
			continue // the reply of a stale replica to PING
		}
		switch m, _ := reply.([]any); {
		case len(m) == 0:
			u.log("%s: %v", u.name(), reply) // such as LOADING
			return
		case m[0] == "message":
			u.received(fmt.Sprint(m[1]), fmt.Sprint(m[2]))
		}
	}
}

// received checks that a message is a state that the node may have had, and keeps it.
func (u *subscriber) received(channel, payload string) {
	var message struct {
		Result any
		Error  *string
	}
	d := json.NewDecoder(strings.NewReader(payload))
	d.UseNumber()
	if err := d.Decode(&message); err != nil {
		u.Errorf("%s: %s: %q: %v", u.name(), channel, payload, err)
	}
	at := slices.IndexFunc(liveQueries, func(q liveQuery) bool { return q.channel() == channel })
	if at < 0 {
		u.Errorf("%s: a message of %s", u.name(), channel)
		return
	}
	state := fmt.Sprint(message.Result)
	if message.Error != nil {
		state = *message.Error
		stale := u.node.followed.Load() && (strings.HasPrefix(state, "MASTERDOWN ") || strings.Contains(state, " on a stale replica"))
		if wrong := strings.HasPrefix(state, "WRONGTYPE ") && liveQueries[at].either; !stale && !wrong {
			u.Errorf("%s: %s: %s", u.name(), channel, state)
		}
	} else if pair, ok := message.Result.([]any); ok {
		switch name, _, _ := strings.Cut(liveQueries[at].words, " "); {
		case name == "MGET" && pair[0] != pair[1], name == "EVAL_RO" && pair[0] == nil:
			u.Errorf("%s: %s: half a transaction: %s", u.name(), channel, payload)
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.latest == nil {
		u.latest = map[string]string{}
	}
	u.latest[channel] = state
	u.messages++
}

// difference returns the first query whose latest message is not the reply of its command.
func (u *subscriber) difference() string {
	u.mu.Lock()
	latest := maps.Clone(u.latest)
	u.mu.Unlock()
	for _, q := range liveQueries {
		got, ok := latest[q.channel()]
		if want := u.reply(q); !ok || got != want {
			return fmt.Sprintf("%s: %s: %q (%v), want %q", u.name(), q.channel(), got, ok, want)
		}
	}
	return ""
}

// reply returns the present reply of the node to the command of a query, as difference compares it.
func (u *subscriber) reply(q liveQuery) string {
	words, ok := protocol.SplitArgs(nil, []byte(q.words))
	if !ok {
		u.Fatalf("%s cannot be split", q.words)
	}
	args := []any{}
	if q.db != 0 {
		args = append(args, "EVAL_RO", "redis.call('SELECT', ARGV[1]) return redis.call(unpack(ARGV, 2))", 0, q.db)
	}
	for _, w := range words {
		args = append(args, string(w))
	}
	reply, err := u.node.srv.Do(u.Context(), args...)
	if e, failed := errors.AsType[protocol.ReplyError](err); failed {
		return string(e)
	} else if err != nil {
		u.Fatalf("%s: %v: %v", u.node.name, args, err)
	}
	if m, ok := reply.(protocol.Map); ok {
		pairs := []any{}
		for _, p := range m {
			pairs = append(pairs, []any{p.Key, p.Value})
		}
		reply = pairs
	}
	return fmt.Sprint(reply)
}

// end ends the subscriber.
func (u *subscriber) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.over = true
	if u.conn != nil {
		u.conn.Close()
	}
}

// observe checks that each subscriber of a node that runs has the present replies, soon after the
// clients have paused.
func (s *simulation) observe() {
	if s.Failed() {
		return
	}
	s.paused.Store(true)
	defer s.paused.Store(false)
	for _, u := range s.subscribers {
		if u.node.srv == nil {
			continue
		}
		difference := ""
		for end := time.Now().Add(40 * time.Second); time.Now().Before(end); wait.Pace(100 * time.Millisecond) {
			synctest.Wait()
			if difference = u.difference(); difference == "" {
				break
			}
		}
		if difference != "" {
			s.Errorf("after %v: %s", time.Since(s.start), difference)
		}
	}
}
