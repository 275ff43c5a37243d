package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// TestObserve checks the replies that an observation receives, and what it refuses.
func TestObserve(t *testing.T) {
	srv := openForTest(t, Options{})
	mustDo(t, srv, "ZADD", "board", 1, "a b", 2.5, "\xff")
	o, err := srv.Observe(t.Context(), "ZRANGE", "board", 0, 1, "WITHSCORES")
	if err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		write []any
		want  string
	}{
		{nil, "[[a b 1] [\xff 2.5]]"},
		{[]any{"ZADD", "board", 0, "c"}, "[[c 0] [a b 1]]"},
		{[]any{"SET", "board", "x"}, "WRONGTYPE Operation against a key holding the wrong kind of value"},
		{[]any{"DEL", "board"}, "[]"},
	}
	i := 0
	for reply, err := range o.Replies() {
		if e, failed := errors.AsType[protocol.ReplyError](err); failed {
			reply = string(e)
		} else if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(reply); got != steps[i].want {
			t.Errorf("step %d: %q, want %q", i, got, steps[i].want)
		}
		if i++; i == len(steps) {
			break
		}
		mustDo(t, srv, steps[i].write...)
	}
	if n := sessionCount(srv); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
	for _, args := range [][]any{{}, {"GET"}, {"SET", "k", "v"}, {"ZRANDMEMBER", "k"}, {"DBSIZE"}, {"NOSUCH"}, {"GET", struct{}{}}} {
		if _, err := srv.Observe(t.Context(), args...); err == nil {
			t.Errorf("%v is observed", args)
		}
	}
	if _, err := srv.Subscribe(t.Context(), "__query@0__:SET k v"); err == nil {
		t.Error("a subscription to a query that writes")
	}
	if err := srv.Check(); err != nil {
		t.Error(err)
	}
}

// TestObservationEnds checks each way to end an observation.
func TestObservationEnds(t *testing.T) {
	for name, end := range map[string]struct {
		end func(*Server, *Observation, context.CancelFunc)
		err error
	}{
		"context":  {func(_ *Server, _ *Observation, cancel context.CancelFunc) { cancel() }, context.Canceled},
		"close":    {func(_ *Server, o *Observation, _ context.CancelFunc) { o.Close() }, nil},
		"closed":   {func(srv *Server, _ *Observation, _ context.CancelFunc) { srv.Close() }, ErrServerClosed},
		"shutdown": {func(srv *Server, _ *Observation, _ context.CancelFunc) { srv.Shutdown(context.Background()) }, ErrServerClosed},
	} {
		t.Run(name, func(t *testing.T) {
			srv := openForTest(t, Options{})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			o, err := srv.Observe(ctx, "GET", "k")
			if err != nil {
				t.Fatal(err)
			}
			var last error
			n := 0
			for _, err := range o.Replies() {
				if err != nil {
					last = err
				} else if n++; n == 1 {
					end.end(srv, o, cancel)
				}
			}
			if n != 1 || !errors.Is(last, end.err) {
				t.Errorf("%d replies, then %v, want %v", n, last, end.err)
			}
		})
	}
}

// TestObservationsConcurrent checks that each of many observations ends with the last state, while
// others come and go.
func TestObservationsConcurrent(t *testing.T) {
	srv := openForTest(t, Options{Config: map[string]string{"query-cpu": "100"}})
	const last = 300
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			for {
				o, err := srv.Observe(t.Context(), "GET", fmt.Sprint("k", i%4))
				if err != nil {
					t.Error(err)
					return
				}
				n := 0
				for reply, err := range o.Replies() {
					if err != nil {
						t.Error(err)
						return
					}
					if reply == fmt.Sprint(last) {
						return
					}
					if n++; n > 20+i {
						break
					}
				}
			}
		})
	}
	for n := range last + 1 {
		for k := range 4 {
			mustDo(t, srv, "SET", fmt.Sprint("k", k), n)
		}
	}
	all.Wait()
	if err := srv.Check(); err != nil {
		t.Error(err)
	}
}

// TestObservationOfSlowReader checks that a reader which is slow receives few of many states, and
// the last one, and that what waits for it is bounded.
func TestObservationOfSlowReader(t *testing.T) {
	srv := openForTest(t, Options{Config: map[string]string{"query-cpu": "100"}})
	value := strings.Repeat("x", 5000)
	mustDo(t, srv, "SET", "k", value+"0")
	o, err := srv.Observe(t.Context(), "GET", "k")
	if err != nil {
		t.Fatal(err)
	}
	const last = 1000
	received := 0
	for reply, err := range o.Replies() {
		if err != nil {
			t.Fatal(err)
		}
		received++
		if reply == value+fmt.Sprint(last) {
			break
		}
		if received == 1 {
			for n := 1; n <= last; n++ {
				mustDo(t, srv, "SET", "k", value+fmt.Sprint(n))
			}
		}
	}
	srv.engine.Mu.Lock()
	defer srv.engine.Mu.Unlock()
	if n := srv.engine.Queries.Messages; n > 20 {
		t.Errorf("%d messages were sent to a reader that read %d", n, received)
	}
}

// TestQueryOfStaleReplica checks that observations of a replica without a link receive the errors
// of the commands.
func TestQueryOfStaleReplica(t *testing.T) {
	refuse := func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no network") }
	for _, serve := range []string{"yes", "no"} {
		srv := openForTest(t, Options{Dial: refuse, Config: map[string]string{
			"replicaof": "127.0.0.1 1", "replica-serve-stale-data": serve,
		}})
		for _, args := range [][]any{
			{"GET", "k"},
			{"EVAL_RO", "return 1", 1, "k"},
			{"EVAL_RO", "#!lua flags=allow-stale,no-writes\nreturn 1", 1, "k"},
			{"EVAL_RO", "#!lua flags=no-writes\nreturn 1", 1, "k"},
		} {
			want, wantErr := srv.Do(t.Context(), args...)
			o, err := srv.Observe(t.Context(), args...)
			if err != nil {
				t.Fatal(err)
			}
			for reply, err := range o.Replies() {
				if reply != want || fmt.Sprint(err) != fmt.Sprint(wantErr) {
					t.Errorf("replica-serve-stale-data %s: %v: %v %v, want %v %v", serve, args, reply, err, want, wantErr)
				}
				break
			}
		}
	}
}

// TestQueryLeavesNoTrace checks that evaluations change no statistics, access times or logs.
func TestQueryLeavesNoTrace(t *testing.T) {
	srv := openForTest(t, Options{Config: map[string]string{"slowlog-log-slower-than": "-1", "notify-keyspace-events": "KEAm"}})
	mustDo(t, srv, "SET", "k", "v")
	mustDo(t, srv, "PFADD", "p", "a", "b")
	misses, err := srv.PSubscribe(t.Context(), "__keyevent@0__:keymiss")
	if err != nil {
		t.Fatal(err)
	}
	before := fmt.Sprint(mustDo(t, srv, "INFO", "commandstats"), mustDo(t, srv, "DUMP", "p"))
	hits := srv.engine.Hits()
	for _, args := range [][]any{{"GET", "k"}, {"GET", "none"}, {"PFCOUNT", "p"}, {"LLEN", "k"}, {"EVAL_RO", "return redis.call('get', KEYS[1])", 1, "k"}} {
		o, err := srv.Observe(t.Context(), args...)
		if err != nil {
			t.Fatal(err)
		}
		for reply, err := range o.Replies() {
			if args[0] == "EVAL_RO" && (reply != "v" || err != nil) {
				t.Errorf("EVAL_RO: %v %v", reply, err)
			}
			break
		}
	}
	if n := srv.engine.Hits(); n != hits {
		t.Errorf("%d hits", n-hits)
	}
	after := fmt.Sprint(mustDo(t, srv, "INFO", "commandstats"), mustDo(t, srv, "DUMP", "p"))
	for _, name := range []string{"get", "pfcount", "llen", "eval_ro"} {
		if strings.Contains(after, "cmdstat_"+name+":") != strings.Contains(before, "cmdstat_"+name+":") {
			t.Errorf("%s is in the statistics", name)
		}
	}
	if !strings.HasSuffix(after, before[len(before)-20:]) {
		t.Error("PFCOUNT has written its key")
	}
	mustDo(t, srv, "PUBLISH", "__keyevent@0__:keymiss", "end")
	for m := range misses.Messages() {
		if m.Payload != "end" {
			t.Errorf("an event: %v", m)
		}
		break
	}
	if errors := mustDo(t, srv, "INFO", "errorstats"); strings.Contains(fmt.Sprint(errors), "WRONGTYPE") {
		t.Error(errors)
	}
}

// TestHostileQueries checks that queries which ask for too much have an error and leave nothing.
func TestHostileQueries(t *testing.T) {
	srv := openForTest(t, Options{Config: map[string]string{"query-cpu": "100", "query-max": "10000"}})
	mustDo(t, srv, "SET", "long", strings.Repeat("x", 2<<20))
	for i := 0; i < 100_000; i += 1000 {
		args := []any{"ZADD", "many"}
		for j := range 1000 {
			args = append(args, i+j, fmt.Sprint("a member of many ", i+j))
		}
		mustDo(t, srv, args...)
	}
	for _, test := range []struct {
		args []any
		want string
	}{
		{[]any{"GET", "long"}, "ERR the reply to a live query exceeds 1048576 bytes: ask for less"},
		{[]any{"ZRANGE", "many", 0, -1}, "ERR the reply to a live query exceeds 1048576 bytes: ask for less"},
		{[]any{"EVAL_RO", "while true do end", 1, "k"}, "ERR "},
		{[]any{"EVAL_RO", "while true do pcall(redis.call, 'GET', KEYS[1]) end", 1, "k"}, "ERR "},
	} {
		o, err := srv.Observe(t.Context(), test.args...)
		if err != nil {
			t.Fatal(err)
		}
		for reply, err := range o.Replies() {
			if e, failed := errors.AsType[protocol.ReplyError](err); !failed || !strings.HasPrefix(string(e), test.want) {
				t.Errorf("%v: %.100v %v", test.args, reply, err)
			}
			break
		}
	}
	for name, want := range map[string]string{
		"__query@0__:GET " + strings.Repeat("k", 1<<20): "ERR a live query has at most 65536 bytes",
		"__query@0__:NO\r\nSUCH k":                      "ERR unknown command 'NO', with args beginning with: 'SUCH' 'k' ",
	} {
		if _, err := srv.Subscribe(t.Context(), name); fmt.Sprint(err) != want {
			t.Errorf("%.100q: %q, want %q", name, fmt.Sprint(err), want)
		}
	}
	var names []string
	for i := range 10_000 {
		names = append(names, fmt.Sprintf("__query@0__:ZRANGE many %d %d", i, i))
	}
	if _, err := srv.Subscribe(t.Context(), append(names, "__query@0__:GET\n k\r\n")...); err == nil {
		t.Error("more subscriptions than query-max")
	}
	names[0] = "__query@0__:GET\n k\r\n"
	sub, err := srv.Subscribe(t.Context(), names...)
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]bool{}
	for _, name := range names {
		left[name] = true
	}
	for m, err := range sub.Messages() {
		if err != nil {
			t.Fatal(err)
		}
		if delete(left, m.Channel); len(left) == 0 {
			break
		}
	}
	leavesNothing(t, srv)
}

// leavesNothing checks that no subscription or session is left once the server has noticed the end
// of its clients.
func leavesNothing(t *testing.T, srv *Server) {
	t.Helper()
	sessions, text := 0, ""
	if !wait.Holds(func() bool {
		sessions, text = sessionCount(srv), fmt.Sprint(mustDo(t, srv, "INFO", "stats"))
		return sessions == 0 && strings.Contains(text, "live_queries:0\r\n") && strings.Contains(text, "live_query_subscriptions:0\r\n")
	}) {
		t.Errorf("%d sessions are left: %s", sessions, text)
	}
	if err := srv.Check(); err != nil {
		t.Error(err)
	}
}

// TestQueriesOfClientThatNeverReads checks that the messages for a client that never reads are
// bounded, and go with it.
func TestQueriesOfClientThatNeverReads(t *testing.T) {
	srv := openForTest(t, Options{Config: map[string]string{"query-cpu": "100"}})
	mustDo(t, srv, "SET", "k", "")
	c, err := srv.Dialer()(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(c, "SUBSCRIBE \"__query@0__:GET k\"\r\n")
	wait.Until(t, "the subscription", func() bool { return strings.Contains(fmt.Sprint(mustDo(t, srv, "INFO")), "live_queries:1\r\n") })
	for n := range 1000 {
		mustDo(t, srv, "SET", "k", strings.Repeat("x", 5000)+fmt.Sprint(n))
	}
	srv.engine.Mu.Lock()
	messages, leftOut := srv.engine.Queries.Messages, srv.engine.Queries.LeftOut
	srv.engine.Mu.Unlock()
	if messages > 200 || leftOut == 0 {
		t.Errorf("%d messages for a client that reads none, %d left out", messages, leftOut)
	}
	c.Close()
	leavesNothing(t, srv)
}

// TestQueryShare checks that a query which takes long neither stops other clients nor other
// queries.
func TestQueryShare(t *testing.T) {
	srv := openForTest(t, Options{Config: map[string]string{"query-cpu": "10"}})
	for i := 0; i < 200_000; i += 1000 {
		args := []any{"ZADD", "big"}
		for j := range 1000 {
			args = append(args, i+j, fmt.Sprint("member", i+j))
		}
		mustDo(t, srv, args...)
	}
	slow, err := srv.Observe(t.Context(), "ZINTERCARD", 2, "big", "big")
	if err != nil {
		t.Fatal(err)
	}
	quick, err := srv.Observe(t.Context(), "GET", "k")
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	const last = 2000
	var done sync.WaitGroup
	done.Go(func() {
		for reply, err := range quick.Replies() {
			if err != nil {
				t.Error(err)
				return
			}
			if reply == fmt.Sprint(last) {
				return
			}
		}
	})
	for n := range last + 1 {
		mustDo(t, srv, "ZADD", "big", n, "x")
		mustDo(t, srv, "SET", "k", n)
	}
	done.Wait()
	wait.Until(t, "the last state", func() bool {
		srv.engine.Mu.Lock()
		defer srv.engine.Mu.Unlock()
		return srv.engine.Queries.Evaluations > 3
	})
}

// evaluations returns how many evaluations of live queries there have been.
func evaluations(srv *Server) int64 {
	srv.engine.Mu.Lock()
	defer srv.engine.Mu.Unlock()
	return srv.engine.Queries.Evaluations
}

// TestQueryOfScores checks that a query which reads a range of a large sorted set is evaluated if a
// change may touch the range, and only then.
func TestQueryOfScores(t *testing.T) {
	srv := openForTest(t, Options{Config: map[string]string{"query-cpu": "100"}})
	fill := []any{"ZADD", "z"}
	for i := range 1000 {
		fill = append(fill, i, fmt.Sprint("m", i))
	}
	mustDo(t, srv, fill...)
	for _, args := range [][]any{
		{"ZRANGE", "z", 0, 9, "REV", "WITHSCORES"}, {"ZREVRANK", "z", "m800"}, // the highest
		{"ZRANK", "z", "m200"}, {"ZRANGE", "z", 0, 9}, {"ZRANK", "z", "m150", "WITHSCORE"}, // the lowest
		{"ZRANGEBYSCORE", "z", 500, "(510"}, {"ZCOUNT", "z", 505, 520}, // between
	} {
		o, err := srv.Observe(t.Context(), args...)
		if err != nil {
			t.Fatal(args, err)
		}
		defer o.Close()
	}
	mustDo(t, srv, "ZADD", "z", 300, "n") // the first change is one of anything
	for _, c := range []struct {
		evaluated int64
		args      []any
	}{
		{0, []any{"ZADD", "z", 301, "n", 302, "o"}},
		{0, []any{"ZINCRBY", "z", 1, "n"}},
		{0, []any{"ZREM", "z", "n"}},
		{2, []any{"ZADD", "z", 300, "m600", 700, "o"}}, // the range between, as it has moved over it
		{0, []any{"ZREMRANGEBYSCORE", "z", 610, 612}},
		{2, []any{"ZPOPMAX", "z"}},
		{1, []any{"ZADD", "z", 801, "p"}},
		{1, []any{"ZADD", "z", 799, "p"}}, // it was at 801
		{0, []any{"ZADD", "z", 798, "p"}},
		{1, []any{"ZADD", "z", 200, "q"}}, // may be before m200
		{3, []any{"ZADD", "z", 5, "q"}},
		{3, []any{"ZADD", "z", 5, "m150"}},
		{1, []any{"ZADD", "z", 502, "r"}},
		{2, []any{"ZREM", "z", "m507"}},
		{0, []any{"EVAL", "redis.call('ZADD', 'z', 400, 's', 401, 't')", 1, "z"}},
		{7, []any{"EXPIRE", "z", 1000}},
		{7, []any{"RENAME", "z", "y"}},
		{0, []any{"ZADD", "y", 1, "a"}},
		{7, []any{"RENAME", "y", "z"}},
		{7, []any{"ZRANGESTORE", "z", "z", 0, 800}},
		{7, []any{"ZADD", "z", 300, "u"}}, // another set is at the key
		{1, []any{"ZADD", "z", 301, "u"}}, // m800, which may come back anywhere
		{7, []any{"DEL", "z"}},
	} {
		before := evaluations(srv)
		mustDo(t, srv, c.args...)
		if n := evaluations(srv) - before; n != c.evaluated {
			t.Errorf("%v: %d evaluations, want %d", c.args, n, c.evaluated)
		}
	}
	if err := srv.engine.Check(); err != nil {
		t.Error(err)
	}
}

// TestQueryOfMembers checks that a query which reads only members that it names is evaluated when
// a change names one of them, or none.
func TestQueryOfMembers(t *testing.T) {
	srv := openForTest(t, Options{Config: map[string]string{"query-cpu": "100"}})
	for _, args := range [][]any{
		{"HSET", "h", "a", 1, "b", 1, "c", 1}, {"ZADD", "z", 1, "a", 2, "b", 3, "c"}, {"SADD", "s", "a", "b", "c"},
	} {
		mustDo(t, srv, args...)
	}
	var all []*Observation
	for _, args := range [][]any{
		{"HGET", "h", "a"}, {"HMGET", "h", "a", "b", "a"}, {"HEXISTS", "h", "a"}, {"HSTRLEN", "h", "a"},
		{"ZSCORE", "z", "a"}, {"ZMSCORE", "z", "a", "b"}, {"GEOPOS", "z", "a"}, {"GEOHASH", "z", "b"},
		{"SISMEMBER", "s", "a"}, {"SMISMEMBER", "s", "a", "b"}, {"SCARD", "s"},
	} {
		o, err := srv.Observe(t.Context(), args...)
		if err != nil {
			t.Fatal(args, err)
		}
		all = append(all, o)
	}
	const script = "redis.call('HSET', 'h', 'c', 3) redis.call('ZADD', 'z', 9, 'c')"
	for _, c := range []struct {
		evaluated int64
		args      []any
	}{
		{0, []any{"HSET", "h", "c", 2, "d", 3}},
		{0, []any{"HDEL", "h", "d"}},
		{0, []any{"HINCRBY", "h", "c", 1}},
		{0, []any{"HPEXPIRE", "h", 100000, "FIELDS", 1, "c"}},
		{0, []any{"ZADD", "z", 5, "c", 6, "d"}},
		{0, []any{"ZPOPMAX", "z"}},
		{0, []any{"ZINCRBY", "z", 1, "c"}},
		{0, []any{"EVAL", script, 0}},
		{0, []any{"ZREM", "z", "c"}},
		{1, []any{"SADD", "s", "d"}}, // SCARD
		{1, []any{"SMOVE", "s", "t", "c"}},
		{4, []any{"HSET", "h", "a", 2}},
		{1, []any{"HSET", "h", "c", 5, "b", 2}},
		{4, []any{"HDEL", "h", "a"}},
		{3, []any{"ZADD", "z", 7, "a"}},
		{2, []any{"ZPOPMIN", "z"}},
		{3, []any{"SREM", "s", "a"}},
		{2, []any{"SMOVE", "s", "t", "b"}},
		{4, []any{"DEL", "h"}},
		{4, []any{"RENAME", "z", "y"}},
		{3, []any{"SUNIONSTORE", "s", "t"}},
		{11, []any{"FLUSHALL"}},
	} {
		before := evaluations(srv)
		mustDo(t, srv, c.args...)
		if n := evaluations(srv) - before; n != c.evaluated {
			t.Errorf("%v: %d evaluations, want %d", c.args, n, c.evaluated)
		}
	}
	for _, o := range all {
		o.Close()
	}
	wait.Until(t, "the end of the queries", func() bool {
		srv.engine.Mu.Lock()
		defer srv.engine.Mu.Unlock()
		return srv.engine.Queries.Len() == 0
	})
	if err := srv.engine.Check(); err != nil {
		t.Error(err)
	}
}

// TestQueryOfMixedReply checks that the same elements in another order are no other reply, and
// that other elements are one.
func TestQueryOfMixedReply(t *testing.T) {
	srv := openForTest(t, Options{Config: map[string]string{"query-cpu": "100"}})
	for i := range 300 {
		mustDo(t, srv, "SADD", "a", fmt.Sprint("member", i))
		mustDo(t, srv, "HSET", "h", fmt.Sprint("field", i), i)
	}
	for _, args := range [][]any{{"SUNION", "a", "b"}, {"HGETALL", "h"}} {
		o, err := srv.Observe(t.Context(), args...)
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
	}
	messages := func() int64 {
		srv.engine.Mu.Lock()
		defer srv.engine.Mu.Unlock()
		return srv.engine.Queries.Messages
	}
	for _, c := range []struct {
		messages int64
		args     []any
	}{
		{0, []any{"SADD", "b", "member1"}},
		{0, []any{"SADD", "b", "member2", "member299"}},
		{0, []any{"HSET", "h", "field7", 7}},
		{1, []any{"SADD", "b", "member300"}},
		{1, []any{"HSET", "h", "field7", 8, "field8", 7}},
		{0, []any{"SREM", "b", "member1"}},
		{1, []any{"SREM", "b", "member300"}},
	} {
		before := messages()
		mustDo(t, srv, c.args...)
		if n := messages() - before; n != c.messages {
			t.Errorf("%v: %d messages, want %d", c.args, n, c.messages)
		}
	}
}
