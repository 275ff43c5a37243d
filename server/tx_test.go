package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/protocol"
)

var errUndo = errors.New("for the test")

// undone runs commands in a transaction and rolls them back.
func undone(t *testing.T, srv *Server, commands ...[]any) {
	t.Helper()
	if err := srv.Tx(t.Context(), func(tx *Tx) error {
		for _, args := range commands {
			if _, err := tx.Do(args...); err != nil {
				t.Errorf("%v: %v", args, err)
			}
		}
		return errUndo
	}); err != errUndo {
		t.Fatal(err)
	}
}

// received returns the next n messages of a subscription.
func received(t *testing.T, sub *Subscription, n int) (list []string) {
	t.Helper()
	for m, err := range sub.Messages() {
		if err != nil {
			t.Fatal(err)
		}
		if list = append(list, m.Channel+" "+m.Payload); len(list) == n {
			break
		}
	}
	return list
}

// infoField returns a line of INFO without its name.
func infoField(t *testing.T, srv *Server, section, name string) string {
	t.Helper()
	_, after, _ := strings.Cut(mustDo(t, srv, "INFO", section).(string), "\n"+name+":")
	value, _, _ := strings.Cut(after, "\r\n")
	return value
}

// conversation is a connection of a client.
type conversation struct {
	t *testing.T
	net.Conn
}

func converseWith(t *testing.T, srv *Server) conversation {
	t.Helper()
	nc, err := srv.Dialer()(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	return conversation{t, nc}
}

// ask sends a line, and checks what comes back.
func (c conversation) ask(line, want string) {
	c.t.Helper()
	if line != "" {
		fmt.Fprint(c, line+"\r\n")
	}
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
		c.t.Errorf("%s: %q, %v, want %q", line, got, err, want)
	}
}

func TestTx(t *testing.T) {
	srv := openForTest(t, Options{Config: map[string]string{"notify-keyspace-events": "KEA"}})
	ctx := t.Context()
	events, err := srv.PSubscribe(ctx, "__keyevent@0__:*", "news")
	if err != nil {
		t.Fatal(err)
	}
	popped := make(chan any, 1)
	go func() { reply, _ := srv.Do(ctx, "BLPOP", "list", 0); popped <- reply }()
	for srv.BlockedClients() == 0 {
		runtime.Gosched()
	}
	if err := srv.Tx(ctx, func(tx *Tx) error {
		key := []byte("a")
		tx.Do("SET", key, 1)
		key[0] = '?' // the caller's again
		if n, err := tx.Do("INCR", "a"); n != int64(2) || err != nil {
			t.Errorf("INCR: %v, %v", n, err)
		}
		tx.Do("PUBLISH", "news", "message")
		tx.Do("RPUSH", "list", "x", "y")
		tx.Do("LPOP", "list") // before the client that waits gets it
		if _, err := tx.Do("LPUSH", "a", 1); err == nil || !strings.HasPrefix(err.Error(), "WRONGTYPE") {
			t.Errorf("LPUSH to a string: %v", err)
		}
		tx.Do("SELECT", 1)
		tx.Do("SET", "b", 1)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if got := <-popped; !reflect.DeepEqual(got, []any{"list", "y"}) {
		t.Errorf("BLPOP: %v", got)
	}
	want := []string{"__keyevent@0__:set a", "__keyevent@0__:incrby a", "news message", "__keyevent@0__:rpush list", "__keyevent@0__:lpop list"}
	if got := received(t, events, len(want)); !reflect.DeepEqual(got, want) {
		t.Errorf("events: %q", got)
	}
	if got := mustDo(t, srv, "GET", "a"); got != "2" {
		t.Errorf("GET a: %v", got)
	}
	if got := mustDo(t, srv, "DBSIZE"); got != int64(1) {
		t.Errorf("DBSIZE: %v", got)
	}
}

// A rollback leaves the data as they were, and none of their listeners learns anything.
func TestTxRollback(t *testing.T) {
	file := filepath.Join(t.TempDir(), "data.db")
	srv, err := New(Options{File: file, Config: map[string]string{"notify-keyspace-events": "KEA"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	mustDo(t, srv, "ZADD", "z", 1, "a", 2, "b")
	mustDo(t, srv, "SET", "s", "old", "EX", 100)
	changes := infoField(t, srv, "persistence", "rdb_changes_since_last_save")
	events, err := srv.PSubscribe(ctx, "*")
	if err != nil {
		t.Fatal(err)
	}
	observation, err := srv.Observe(ctx, "ZRANGE", "z", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	replies := make(chan any, 10)
	go func() {
		for reply := range observation.Replies() {
			replies <- reply
		}
	}()
	<-replies
	watcher := converseWith(t, srv)
	watcher.ask("WATCH z s new", "+OK\r\n")
	watcher.ask("MULTI", "+OK\r\n")
	undone(t, srv, []any{"ZADD", "z", 3, "c"}, []any{"ZREM", "z", "a"}, []any{"SET", "s", "new"}, []any{"RPUSH", "new", 1},
		[]any{"PUBLISH", "news", 1}, []any{"DEL", "z"}, []any{"RENAME", "new", "newer"}, []any{"ZADDEX", "x", "EX", 5, 1, "m"})
	if got := mustDo(t, srv, "ZRANGE", "z", 0, -1); !reflect.DeepEqual(got, []any{"a", "b"}) {
		t.Errorf("ZRANGE: %v", got)
	}
	if got, left := mustDo(t, srv, "GET", "s"), mustDo(t, srv, "TTL", "s").(int64); got != "old" || left < 90 {
		t.Errorf("GET s: %v for %v s", got, left)
	}
	if got := mustDo(t, srv, "DBSIZE"); got != int64(2) {
		t.Errorf("DBSIZE: %v", got)
	}
	if got := infoField(t, srv, "persistence", "rdb_changes_since_last_save"); got != changes {
		t.Errorf("changes: %s, were %s", got, changes)
	}
	watcher.ask("EXEC", "*0\r\n")
	mustDo(t, srv, "ZADD", "z", 4, "d")
	if got := received(t, events, 1); got[0] != "__keyspace@0__:z zadd" {
		t.Errorf("the first message is %s", got)
	}
	if got := <-replies; !reflect.DeepEqual(got, []any{"a", "b", "d"}) {
		t.Errorf("the live query replies %v", got)
	}
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	srv = openForTest(t, Options{File: file})
	if got := mustDo(t, srv, "ZRANGE", "z", 0, -1); !reflect.DeepEqual(got, []any{"a", "b", "d"}) {
		t.Errorf("after a restart: %v", got)
	}
	if got := mustDo(t, srv, "DBSIZE"); got != int64(2) {
		t.Errorf("DBSIZE after a restart: %v", got)
	}
}

// Events name the members of their own command, after a rollback too.
func TestTxMembers(t *testing.T) {
	srv := openForTest(t, Options{Config: map[string]string{"notify-keyspace-events": "Sz"}})
	events, err := srv.PSubscribe(t.Context(), "*")
	if err != nil {
		t.Fatal(err)
	}
	undone(t, srv, []any{"ZADD", "z", 1, "gone"}, []any{"ZADD", "z", 1, "gone2"})
	if err := srv.Tx(t.Context(), func(tx *Tx) error {
		tx.Do("ZADD", "z", 1, "a", 2, "b")
		tx.Do("ZADD", "z", 3, "c")
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if got := received(t, events, 2); !reflect.DeepEqual(got, []string{"__subkeyspace@0__:z zadd|1:a,1:b", "__subkeyspace@0__:z zadd|1:c"}) {
		t.Errorf("%q", got)
	}
}

// A live query of a large sorted set, which is evaluated only for changes in its range, is right
// after a rollback.
func TestTxRollbackAndRanges(t *testing.T) {
	srv := openForTest(t, Options{})
	for i := range 300 {
		mustDo(t, srv, "ZADD", "z", i, i)
	}
	o, err := srv.Observe(t.Context(), "ZRANGE", "z", 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for reply, err := range o.Replies() {
		got = append(got, fmt.Sprint(reply, err))
		switch len(got) {
		case 1:
			undone(t, srv, []any{"ZADD", "z", 500, "x"})
			mustDo(t, srv, "ZADD", "z", -1, "y")
		case 2:
			undone(t, srv, []any{"ZADD", "z", -2, "x"})
			mustDo(t, srv, "ZADD", "z", -3, "z")
		}
		if len(got) == 3 {
			break
		}
	}
	if want := []string{"[0 1] <nil>", "[y 0] <nil>", "[z y] <nil>"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
}

// What expires in a transaction that is rolled back expires once.
func TestTxRollbackOfExpired(t *testing.T) {
	srv := openForTest(t, Options{Config: map[string]string{"notify-keyspace-events": "Ex"}})
	events, err := srv.PSubscribe(t.Context(), "*")
	if err != nil {
		t.Fatal(err)
	}
	mustDo(t, srv, "SET", "k", 1, "PX", 100)
	if err := srv.Tx(t.Context(), func(tx *Tx) error {
		tx.Do("PEXPIRE", "k", 0)
		return errUndo
	}); err != errUndo {
		t.Fatal(err)
	}
	srv.Advance(time.Second)
	mustDo(t, srv, "SET", "last", 1, "PX", 1)
	srv.Advance(time.Second)
	if got := received(t, events, 2); got[0] != "__keyevent@0__:expired k" || got[1] != "__keyevent@0__:expired last" {
		t.Errorf("events: %q", got)
	}
	if got := infoField(t, srv, "stats", "expired_keys"); got != "2" {
		t.Errorf("expired_keys: %s", got)
	}
}

// A client that caches a key hears of a change after a rollback of another one.
func TestTxRollbackAndCaches(t *testing.T) {
	srv := openForTest(t, Options{})
	mustDo(t, srv, "SET", "k", 1)
	messages := converseWith(t, srv)
	messages.ask("CLIENT ID", ":")
	var id int
	fmt.Fscanf(messages, "%d\r\n", &id)
	messages.ask("SUBSCRIBE __redis__:invalidate", "*3\r\n$9\r\nsubscribe\r\n$20\r\n__redis__:invalidate\r\n:1\r\n")
	c := converseWith(t, srv)
	c.ask(fmt.Sprint("CLIENT TRACKING on REDIRECT ", id), "+OK\r\n")
	c.ask("GET k", "$1\r\n1\r\n")
	undone(t, srv, []any{"SET", "k", 2})
	mustDo(t, srv, "SET", "k", 3)
	messages.ask("", "*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n*1\r\n$1\r\nk\r\n")
}

// No name of a command is that of transactions, not even one that rename-command gives.
func TestTxName(t *testing.T) {
	srv := openForTest(t, Options{Config: map[string]string{"rename-command": `flushall "go transaction"`}})
	mustDo(t, srv, "SET", "k", 1)
	called := false
	if err := srv.Tx(t.Context(), func(*Tx) error { called = true; return nil }); err != nil || !called || mustDo(t, srv, "EXISTS", "k") != int64(1) {
		t.Errorf("%v, called %v", err, called)
	}
}

func TestTxPanic(t *testing.T) {
	srv := openForTest(t, Options{})
	func() {
		defer func() {
			if p := recover(); p != "for the test" {
				t.Errorf("recovered %v", p)
			}
		}()
		srv.Tx(t.Context(), func(tx *Tx) error {
			tx.Do("SET", "k", 1)
			panic("for the test")
		})
	}()
	if got := mustDo(t, srv, "DBSIZE"); got != int64(0) {
		t.Errorf("DBSIZE: %v", got)
	}
}

// A function that ends its goroutine stops the server, and no call hangs.
func TestTxGoexit(t *testing.T) {
	exit := Command{Name: "exit", Arity: 1, Flags: "write", Run: func(c *Call) (any, error) {
		c.Do("SET", "k", 1)
		runtime.Goexit()
		return nil, nil
	}}
	for name, call := range map[string]func(*Server){
		"Tx":      func(srv *Server) { srv.Tx(t.Context(), func(*Tx) error { runtime.Goexit(); return nil }) },
		"command": func(srv *Server) { srv.Do(t.Context(), "exit") },
	} {
		srv, err := New(Options{Commands: []Command{exit}})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			call(srv)
		}()
		<-ended
		var stopped *PanicError
		if _, err := srv.Do(t.Context(), "PING"); !errors.As(err, &stopped) || !strings.Contains(fmt.Sprint(stopped.Value), "Goexit") {
			t.Errorf("%s: then PING: %v", name, err)
		}
		srv.Close()
	}
}

func TestTxRefuses(t *testing.T) {
	srv := openForTest(t, Options{Commands: []Command{{Name: "mine", Arity: 1, Run: func(*Call) (any, error) { return nil, nil }}}})
	var kept *Tx
	if err := srv.Tx(t.Context(), func(tx *Tx) error {
		kept = tx
		for _, c := range [][2]string{
			{"FLUSHALL", "ERR 'flushall' cannot be rolled back, so a transaction cannot call it"},
			{"FLUSHDB", "ERR 'flushdb' cannot be rolled back, so a transaction cannot call it"},
			{"SWAPDB 0 1", "ERR 'swapdb' cannot be rolled back, so a transaction cannot call it"},
			{"MULTI", "ERR 'multi' cannot be called by a command of the program"},
			{"EVAL return 0", "ERR 'eval' cannot be called by a command of the program"},
			{"mine", "ERR 'mine' cannot be called by a command of the program"},
			{"NOSUCH", "ERR unknown command 'NOSUCH'"},
			{"GET", "ERR wrong number of arguments for 'get' command"},
		} {
			var args []any
			for word := range strings.FieldsSeq(c[0]) {
				args = append(args, word)
			}
			if _, err := tx.Do(args...); err == nil || err.Error() != c[1] {
				t.Errorf("%s: %v", c[0], err)
			}
		}
		if _, err := tx.Do(); err == nil {
			t.Error("no command is no error")
		}
		if got, err := tx.Do("BLPOP", "none", 0); got != nil || err != nil { // it does not block
			t.Errorf("BLPOP: %v, %v", got, err)
		}
		if _, err := srv.Do(t.Context(), "PING"); !errors.Is(err, ErrWithin) {
			t.Errorf("Server.Do in it: %v", err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := kept.Do("PING"); err == nil {
		t.Error("a transaction is valid after its end")
	}
	if _, err := srv.Do(t.Context(), "go transaction"); err == nil || !strings.HasPrefix(err.Error(), "ERR unknown command 'go transaction'") {
		t.Errorf("the name of transactions: %v", err)
	}
	mustDo(t, srv, "REPLICAOF", "127.0.0.1", 1)
	called := false
	call := func(ctx context.Context) error {
		return srv.Tx(ctx, func(*Tx) error { called = true; return nil })
	}
	if err := call(t.Context()); !errors.Is(err, protocol.ReplyError("READONLY You can't write against a read only replica.")) || called {
		t.Errorf("on a replica: %v, called %v", err, called)
	}
	mustDo(t, srv, "REPLICAOF", "NO", "ONE")
	mustDo(t, srv, "CLIENT", "PAUSE", 1_000_000, "WRITE")
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) || called {
		t.Errorf("while paused: %v, called %v", err, called)
	}
	ended := make(chan error)
	go func() { ended <- call(t.Context()) }()
	for srv.BlockedClients() == 0 {
		runtime.Gosched()
	}
	mustDo(t, srv, "CLIENT", "UNPAUSE")
	if err := <-ended; err != nil || !called {
		t.Errorf("after the pause: %v, called %v", err, called)
	}
	srv.Close()
	if err := call(t.Context()); !errors.Is(err, ErrServerClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// Random transactions of all kinds of values leave the state as it was, and its memory.
func TestTxRollbackModel(t *testing.T) {
	for _, config := range []map[string]string{{}, {"cluster-enabled": "yes"}, {"maxmemory": "1gb", "maxmemory-policy": "allkeys-lru"}} {
		config["enable-debug-command"] = "yes"
		seed := rand.Uint64()
		r := rand.New(rand.NewPCG(seed, 0))
		srv := openForTest(t, Options{Config: config})
		for range 150 {
			do := srv.Do
			before, size := digest(t, srv), mustDo(t, srv, "DBSIZE")
			srv.Tx(t.Context(), func(tx *Tx) error {
				for range 1 + r.IntN(12) {
					tx.Do(randomWrite(r)...)
				}
				return errUndo
			})
			if after := digest(t, srv); after != before || mustDo(t, srv, "DBSIZE") != size {
				t.Fatalf("seed %d: rolled back to %s, not %s", seed, after, before)
			}
			if err := srv.Check(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			for range 5 {
				do(t.Context(), randomWrite(r)...)
			}
		}
	}
}

func digest(t *testing.T, srv *Server) any {
	t.Helper()
	return mustDo(t, srv, "DEBUG", "DIGEST")
}

// randomWrite returns a random command that writes.
func randomWrite(r *rand.Rand) []any {
	key := func() string { return string(rune('a' + r.IntN(6))) }
	k, m, n := key(), fmt.Sprint(r.IntN(300)), r.IntN(100)
	many := func(args ...any) []any {
		for range 1 + r.IntN(40) {
			args = append(args, r.IntN(300))
		}
		return args
	}
	lines := [][]any{
		{"SET", k, m}, {"SET", k, strings.Repeat(m, 200), "EX", 100}, {"APPEND", k, m}, {"SETRANGE", k, n, m}, {"INCR", k}, {"GETDEL", k},
		many("RPUSH", k), {"LPUSH", k, m}, {"LPOP", k}, {"LSET", k, 0, m}, {"LTRIM", k, 1, 3}, {"LINSERT", k, "BEFORE", m, n}, {"RPOPLPUSH", k, key()},
		many("SADD", k), {"SREM", k, m}, {"SPOP", k}, {"SMOVE", k, key(), m}, {"SUNIONSTORE", k, key(), key()},
		{"HSET", k, m, n}, {"HDEL", k, m}, {"HINCRBY", k, m, n}, {"HEXPIRE", k, 100, "FIELDS", 1, m},
		{"ZADD", k, n, m}, {"ZINCRBY", k, n, m}, {"ZREM", k, m}, {"ZPOPMIN", k, 3}, {"ZADDEX", k, "EX", 100, n, m}, {"ZREMRANGEBYRANK", k, 0, 2},
		{"ZUNIONSTORE", k, 2, key(), key()}, {"ZRANGESTORE", k, key(), 0, 3},
		{"XADD", k, "*", m, n}, {"XTRIM", k, "MAXLEN", 2}, {"XGROUP", "CREATE", k, "g", 0, "MKSTREAM"}, {"XREADGROUP", "GROUP", "g", m, "STREAMS", k, ">"},
		{"DEL", k}, {"UNLINK", k}, {"RENAME", k, key()}, {"COPY", k, key(), "REPLACE"}, {"MOVE", k, 1}, {"EXPIRE", k, 100}, {"PERSIST", k},
		{"SORT", k, "ALPHA", "STORE", key()}, {"PFADD", k, m}, {"SETBIT", k, n, 1}, {"BITOP", "OR", k, key(), key()}, {"GEOADD", k, 1, 1, m},
	}
	return lines[r.IntN(len(lines))]
}

func TestDoMany(t *testing.T) {
	srv := openForTest(t, Options{})
	ctx := t.Context()
	replies, err := srv.DoMany(ctx, []any{"SET", "s", 1}, []any{"LPUSH", "s", 1}, []any{"INCR", "s"}, []any{"MGET", "s", "none"})
	wrong := protocol.ReplyError("WRONGTYPE Operation against a key holding the wrong kind of value")
	if want := []any{protocol.Status("OK"), wrong, int64(2), []any{"2", nil}}; err != nil || !reflect.DeepEqual(replies, want) {
		t.Errorf("%v, %v", replies, err)
	}
	if replies, err := srv.DoMany(ctx); replies != nil || err != nil {
		t.Errorf("no command: %v, %v", replies, err)
	}
	for _, bad := range [][]any{{"SET", "s", struct{}{}}, {}, {"MULTI"}} {
		if _, err := srv.DoMany(ctx, []any{"SET", "s", "changed"}, bad); err == nil || !strings.Contains(err.Error(), "command 1: ") {
			t.Errorf("%v: %v", bad, err)
		}
	}
	if got := mustDo(t, srv, "GET", "s"); got != "2" {
		t.Errorf("after commands that cannot be sent: %v", got)
	}
	many := make([][]any, 1000) // more than a turn, and more output than a block
	for i := range many {
		many[i] = []any{"ECHO", strings.Repeat(fmt.Sprint(i%10), 1000)}
	}
	replies, err = srv.DoMany(ctx, many...)
	if err != nil || len(replies) != len(many) {
		t.Fatalf("%d replies, %v", len(replies), err)
	}
	for i, reply := range replies {
		if reply != many[i][1] {
			t.Fatalf("reply %d: %v", i, reply)
		}
	}
}

// A command that blocks holds back those after it.
func TestDoManyBlocked(t *testing.T) {
	srv := openForTest(t, Options{})
	type result struct {
		replies []any
		err     error
	}
	many := func(ctx context.Context) <-chan result {
		c := make(chan result, 1)
		go func() {
			replies, err := srv.DoMany(ctx, []any{"PING"}, []any{"BLPOP", "list", 0}, []any{"SET", "after", 1})
			c <- result{replies, err}
		}()
		for srv.BlockedClients() == 0 {
			runtime.Gosched()
		}
		return c
	}
	c := many(t.Context())
	if got := mustDo(t, srv, "EXISTS", "after"); got != int64(0) {
		t.Error("the command after BLPOP has run")
	}
	mustDo(t, srv, "RPUSH", "list", "x")
	if got := <-c; got.err != nil || !reflect.DeepEqual(got.replies, []any{protocol.Status("PONG"), []any{"list", "x"}, protocol.Status("OK")}) {
		t.Errorf("%v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c = many(ctx)
	cancel()
	if got := <-c; !errors.Is(got.err, context.Canceled) || !reflect.DeepEqual(got.replies, []any{protocol.Status("PONG")}) {
		t.Errorf("canceled: %v", got)
	}
}
