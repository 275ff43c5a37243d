package engine_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
	"github.com/zsetd/zsetd/server/servertest/rerun"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// FuzzQueryName subscribes to live queries with any name. A name that is refused has one error
// and changes nothing. One that is accepted has a message with its reply, means the same when its
// words are split and joined, and is evaluated when a key of its command changes.
func FuzzQueryName(f *testing.F) {
	rerun.Skip(f)
	for _, rest := range []string{
		"", "0", "0__:", "0__:GET k", "2,250ms__:ZRANGE board 0 9 REV WITHSCORES", "3__:GET k", "-1__:GET k", "00__:GET k", "+1__:GET k", "x__:GET k",
		"0,__:GET k", "0,-1s__:GET k", "0,25h__:GET k", "0,1h2m3.5s__:GET k", "0__:__:GET k", "1__:GET \"a __: b\"", "0__:GET 'k", "0__:GET \"k\"x",
		"0__:GET \"\\x00\\n\\xff\"", "0__:\tGET\t\nk\r\v\f", "0__:MGET a b a \"\"", "0__:SET k v", "0__:OBJECT ENCODING k", "0__:OBJECT HELP", "0__:object",
		"0__:XREAD COUNT 1 STREAMS a b 0 $", "0__:XREAD BLOCK 0 STREAMS a 0", "0__:SORT_RO k BY w_* GET #", "0__:ZUNION 2 a b WEIGHTS 1 2", "0__:ZUNION 9 a",
		"0__:ZCOUNT hits (@now-5m @now+1h", "0__:EVAL_RO \"return redis.call('get',KEYS[1])\" 1 k", "0__:EVAL_RO x -1 k", "0__:FCALL_RO f 1 k", "0__:EVALSHA_RO s 1 k",
		"0__:GET k\r\n+OK", "0__:NO\r\nSUCH k", "0__:LCS a b IDX", "0__:DUMP k", "0__:BITFIELD_RO k GET u8 0", "0__:GEOSEARCH g FROMMEMBER m BYRADIUS 1 km",
	} {
		f.Add(rest)
	}
	var srv *enginetest.Server // reused: a start takes longer than most inputs
	f.Fuzz(func(t *testing.T, rest string) {
		if srv == nil {
			var err error
			if srv, err = enginetest.New(engine.Options{Config: map[string]string{"databases": "3", "query-cpu": "100"}}); err != nil {
				t.Fatal(err)
			}
		}
		s, writer := sessionClient{t, srv.NewSession(engine.Peer{FD: -1, Wake: func() {}})}, sessionClient{t, srv.NewSession(engine.Peer{FD: -1, Wake: func() {}})}
		defer func() {
			s.Do("RESET")
			writer.Do("FLUSHALL")
			s.S.Close()
			writer.S.Close()
			if subscriptions, queries, _ := counts(srv); subscriptions != 0 || queries != 0 {
				t.Errorf("%d subscriptions and %d queries are left", subscriptions, queries)
			}
			if err := srv.Check(); err != nil {
				t.Error(err)
			}
		}()
		name := "__query@" + rest
		payload, refusal := s.subscribe(name)
		if refusal != "" {
			if subscriptions, queries, _ := counts(srv); subscriptions != 0 || queries != 0 || fmt.Sprint(s.Do("PING")) != "[PONG]" {
				t.Fatalf("%s, and there are %d subscriptions and %d queries", refusal, subscriptions, queries)
			}
			return
		}
		head, text, _ := strings.Cut(rest, "__:")
		db, interval, _ := strings.Cut(head, ",")
		argv, ok := protocol.SplitArgs(nil, []byte(text))
		if !ok {
			t.Fatalf("%q is accepted, and cannot be split", name)
		}
		words := make([]string, len(argv))
		for i, arg := range argv {
			words[i] = string(arg)
		}
		joined := "__query@" + db + "__:" + protocol.JoinArgs(words)
		if again, _ := protocol.SplitArgs(nil, []byte(protocol.JoinArgs(words))); !slices.EqualFunc(again, words, func(a []byte, b string) bool { return string(a) == b }) {
			t.Fatalf("%q is joined to %q", words, again)
		}
		same, refusal := s.subscribe(joined)
		cmd, _ := srv.Table.Find(argv)
		if cmd.ScriptFlags != nil {
			return // it may take long, or show the time that it has
		}
		if same != payload || refusal != "" {
			t.Fatalf("%q has %.200q, %q has %.200q %s", name, payload, joined, same, refusal)
		}
		refs := cmd.Spec.AppendKeys(nil, argv)
		if len(refs) == 0 {
			t.Fatalf("%q names no key", name)
		}
		if n, err := strconv.Atoi(db); err != nil {
			t.Fatal(err)
		} else {
			writer.Do("SELECT", strconv.Itoa(n))
		}
		s.Do("UNSUBSCRIBE", joined)
		if interval != "" && joined != name {
			s.Do("UNSUBSCRIBE", name)
			s.subscribe(joined)
		} else if joined == name {
			s.subscribe(name)
		}
		for _, ref := range refs[:min(4, len(refs))] {
			_, _, before := counts(srv)
			writer.Do("SET", words[ref.Index], "v")
			wait.Until(t, "a change of the key is followed", func() bool {
				_, _, now := counts(srv)
				return now > before
			})
		}
	})
}

// counts returns the numbers of subscriptions, queries, and evaluations so far.
func counts(srv *enginetest.Server) (subscriptions int64, queries int, evaluations int64) {
	srv.InTurn(func() {
		subscriptions, queries, evaluations = srv.Queries.Subscriptions, srv.Queries.Len(), srv.Queries.Evaluations
	})
	return subscriptions, queries, evaluations
}

// sessionClient is a session and the test that it fails.
type sessionClient struct {
	t *testing.T
	S *engine.Session
}

// Do runs a command and returns what the session has received since the previous one.
func (c sessionClient) Do(words ...string) (received []any) {
	c.t.Helper()
	var argv [][]byte
	for _, w := range words {
		argv = append(argv, []byte(w))
	}
	_, out, ending := c.S.Turn([][][]byte{argv}, nil)
	c.S.Written()
	for len(out) > 0 {
		v, n, err := protocol.Decode(out)
		if err != nil {
			c.t.Fatalf("%.300q: %v", out, err)
		}
		out, received = out[n:], append(received, v)
	}
	if ending {
		c.t.Fatalf("%.300q ends the session", words)
	}
	return received
}

// subscribe subscribes to a live query, and returns its first message or the error.
func (c sessionClient) subscribe(name string) (payload, refusal string) {
	c.t.Helper()
	received := c.Do("SUBSCRIBE", name)
	if e, refused := received[0].(protocol.ReplyError); refused {
		if len(received) != 1 {
			c.t.Fatalf("%.300q: more than an error", received)
		}
		return "", string(e)
	}
	if reply := received[0].([]any); reply[0] != "subscribe" || reply[1] != name {
		c.t.Fatalf("%.300q: %.300q", name, reply)
	}
	received = received[1:]
	wait.Until(c.t, "the first message", func() bool {
		for _, v := range received {
			if m, ok := v.([]any); ok && m[0] == "message" && m[1] == name {
				payload = m[2].(string)
			}
		}
		received = c.Do("PING")
		return payload != ""
	})
	if !json.Valid([]byte(payload)) {
		c.t.Fatalf("%.300q: %.300q", name, payload)
	}
	return payload, ""
}
