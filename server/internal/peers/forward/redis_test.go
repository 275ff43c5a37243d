package forward_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/internal/tests/transcript"
	"github.com/zsetd/zsetd/server/servertest"
	"github.com/zsetd/zsetd/server/servertest/wait"

	"github.com/zsetd/zsetd/server/servertest/judge"
)

// Forwarding: commands of clients that have stayed are answered from the new home.

// home starts a zsetd and returns it with its address for forward-to.
func home(t *testing.T) (*servertest.Server, string) {
	srv := servertest.Run(t)
	return srv, "redis://" + srv.Addr()
}

// forwardTo makes a server forward; "" ends that.
func forwardTo(t *testing.T, srv *servertest.Server, to string) {
	t.Helper()
	if got := srv.Must("CONFIG", "SET", "forward-to", to); fmt.Sprint(got) != "OK" {
		t.Fatal(got)
	}
}

// straggler is a client of the source.
type straggler struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

func straggle(t *testing.T, addr string) *straggler {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	nc.SetDeadline(time.Now().Add(time.Minute))
	t.Cleanup(func() { nc.Close() })
	return &straggler{t, nc, bufio.NewReader(nc)}
}

func (c *straggler) send(s string) {
	c.t.Helper()
	if _, err := io.WriteString(c, s); err != nil {
		c.t.Fatal(err)
	}
}

func (c *straggler) reply() any {
	c.t.Helper()
	v, err := protocol.DecodeFrom(c.r)
	if err != nil {
		c.t.Fatal(err)
	}
	return v
}

func (c *straggler) expect(want string) {
	c.t.Helper()
	if got := fmt.Sprint(c.reply()); got != want {
		c.t.Fatalf("got %.300q, want %.300q", got, want)
	}
}

// ask sends command lines together and checks their replies.
func (c *straggler) ask(lines ...string) {
	c.t.Helper()
	var b []byte
	var want []string
	for i := 0; i < len(lines); i += 2 {
		b = transcript.AppendCommand(b, strings.Fields(lines[i]))
		want = append(want, lines[i+1])
	}
	c.send(string(b))
	for _, w := range want {
		if w != "" { // CLIENT REPLY suppresses it
			c.expect(w)
		}
	}
}

// TestForward checks commands before and after the switch, both ways, on all transports.
func TestForward(t *testing.T) {
	for name, to := range map[string]func(t *testing.T) string{
		"zsetd": func(t *testing.T) string { _, to := home(t); return to },
		"redis": func(t *testing.T) string {
			port := judge.FreePort(t)
			judge.Start(t, "--port", port)
			return "redis://127.0.0.1:" + port
		},
		"password": func(t *testing.T) string {
			srv := servertest.Run(t, server.Options{Config: map[string]string{"requirepass": "p@ss"}})
			return "redis://:p%40ss@" + srv.Addr()
		},
		"unix": func(t *testing.T) string {
			return "unix:" + unixHome(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, mode := range []string{"epoll", "net"} {
				t.Run(mode, func(t *testing.T) { testForward(t, to(t), mode) })
			}
		})
	}
}

// unixHome starts a server at a unix socket.
func unixHome(t *testing.T) string {
	dir, err := os.MkdirTemp("", "home") // not t.TempDir: the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.Listen("unix", dir+"/s")
	if err != nil {
		t.Fatal(err)
	}
	srv := servertest.Run(t)
	go srv.Serve(l)
	return l.Addr().String()
}

func testForward(t *testing.T, to, mode string) {
	srv := servertest.Run(t, server.Options{Config: map[string]string{"transport": mode}})
	dial := func() *straggler { return straggle(t, srv.Addr()) }
	a, multi, watching, blocked, timed, paused, subscriber := dial(), dial(), dial(), dial(), dial(), dial(), dial()
	a.ask("SET before 1", "OK", "SELECT 3", "OK")
	multi.ask("MULTI", "OK", "SET queued 1", "QUEUED")
	watching.ask("WATCH before", "OK", "MULTI", "OK", "SET lost 1", "QUEUED")
	blocked.send("BLPOP list 0\r\n")
	timed.send("BLPOP list 1000\r\n")
	subscriber.ask("SUBSCRIBE news", "[subscribe news 1]", "PSUBSCRIBE n*", "[psubscribe n* 2]")
	wait.Until(t, "two clients are blocked", func() bool { return strings.Contains(fmt.Sprint(srv.Must("INFO", "clients")), "blocked_clients:2") })
	srv.Must("CLIENT", "PAUSE", 1000000, "WRITE")
	paused.send("SET late 1\r\n")
	wait.Until(t, "a write waits for the end of the pause", func() bool { return strings.Contains(fmt.Sprint(srv.Must("INFO", "clients")), "blocked_clients:3") })
	forwardTo(t, srv, to)

	paused.expect("OK")
	timed.expect("<nil>")
	a.ask("GET before", "<nil>", "SET x 3", "OK", "CLIENT GETNAME", "<nil>", "INCR x", "4", "SELECT 0", "OK", "GET x", "<nil>",
		"PING", "PONG", "GET late", "1", "SET x 0", "OK", "NOSUCH", "ERR unknown command 'NOSUCH'", "LPUSH x 1",
		"WRONGTYPE Operation against a key holding the wrong kind of value")
	multi.ask("INCR queued", "QUEUED", "EXEC", "[OK 2]", "GET queued", "2")
	watching.ask("EXEC", "<nil>", "EXISTS lost", "0")
	watching.ask("WATCH x", "OK", "MULTI", "OK", "INCR x", "QUEUED", "EXEC", "[1]")
	watching.ask("WATCH x", "OK")
	a.ask("SET x 10", "OK")
	watching.ask("MULTI", "OK", "INCR x", "QUEUED", "EXEC", "<nil>", "MULTI", "OK", "INCR x", "QUEUED", "EXEC", "[11]")
	watching.ask("WATCH x", "OK", "UNWATCH", "OK")
	a.ask("SET x 20", "OK")
	watching.ask("MULTI", "OK", "LPUSH x 1", "QUEUED", "INCR x", "QUEUED", "EXEC", "[WRONGTYPE Operation against a key holding the wrong kind of value 21]")
	watching.ask("MULTI", "OK", "EVALSHA no 0", "QUEUED", "DISCARD", "OK", "MULTI", "OK", "PING", "QUEUED", "EXEC", "[PONG]")
	watching.ask("MULTI", "OK", "CLIENT ID", "QUEUED", "GET x", "QUEUED", "EXEC",
		"EXECABORT Transaction discarded because of: CLIENT|ID cannot be forwarded in a transaction with commands on data")

	a.ask("RPUSH list e", "1")
	blocked.expect("[list e]")
	a.ask("PUBLISH news hello", "2")
	subscriber.expect("[message news hello]")
	subscriber.expect("[pmessage n* news hello]")
	subscriber.ask("SUBSCRIBE other", "[subscribe other 3]", "UNSUBSCRIBE news", "[unsubscribe news 2]")
	a.ask("PUBLISH other 1", "1")
	subscriber.expect("[message other 1]")
	subscriber.ask("GET x", "ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context")

	a.send("HELLO 3\r\n")
	a.reply()
	a.ask("HSET h f v", "1", "HGETALL h", "[{f v}]", "ZADD z 1.5 m", "1", "ZSCORE z m", "1.5")
	a.ask("CLIENT REPLY SKIP", "", "SET skipped 1", "", "GET skipped", "1")
	a.ask("EVAL return{1,KEYS[1],redis.call('get','x')} 1 x", "[1 x 21]", "SCRIPT LOAD return'a'", "0ffd99d31d31ba22b13807d9dac14592bcb55b1d")
}

// TestForwardErrors checks that a target that goes away loses no acknowledged write, and
// that replies say what is known.
func TestForwardErrors(t *testing.T) {
	srv := servertest.Run(t)
	target, err := server.New(server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { target.Close() })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go target.Serve(l)
	forwardTo(t, srv, "redis://"+l.Addr().String())
	c, blocked, watching := straggle(t, srv.Addr()), straggle(t, srv.Addr()), straggle(t, srv.Addr())
	subscriber := straggle(t, srv.Addr())
	c.ask("SET k 1", "OK")
	subscriber.ask("SUBSCRIBE news", "[subscribe news 1]")
	watching.ask("WATCH k", "OK", "MULTI", "OK", "GET k", "QUEUED")
	blocked.send("BLPOP list 0\r\n")
	wait.Until(t, "a client is blocked at the target", func() bool {
		info, err := target.Do(t.Context(), "INFO", "clients")
		return err == nil && strings.Contains(fmt.Sprint(info), "blocked_clients:1")
	})
	target.Close()
	says := func(c *straggler, part string) {
		t.Helper()
		if got := fmt.Sprint(c.reply()); !strings.HasPrefix(got, "FORWARD ") || !strings.Contains(got, part) {
			t.Errorf("got %q, want an error with %q", got, part)
		}
	}
	says(blocked, "the command may have run")
	wait.Until(t, "the connection is known to be lost", func() bool {
		c.send("GET k\r\n")
		return strings.Contains(fmt.Sprint(c.reply()), "the command has not run")
	})
	c.send("GET k\r\nPING\r\nINCR k\r\nNOSUCH\r\n")
	says(c, "the command has not run")
	c.expect("PONG")
	says(c, "the command has not run")
	c.expect("ERR unknown command 'NOSUCH'")
	subscriber.ask("SUBSCRIBE more", "[subscribe more 2]") // in spite of that

	next := servertest.Run(t)
	next.Must("SET", "k", "2")
	forwardTo(t, srv, "redis://"+next.Addr())
	watching.ask("EXEC", "<nil>", "GET k", "2")
	c.ask("INCR k", "3")
	watching.ask("WATCH k", "OK")
	next.Must("CLIENT", "KILL", "TYPE", "normal")
	wait.Until(t, "another connection watches", func() bool {
		watching.send("WATCH other\r\n")
		return fmt.Sprint(watching.reply()) == "OK"
	})
	watching.ask("MULTI", "OK", "GET k", "QUEUED", "EXEC", "<nil>", "MULTI", "OK", "GET k", "QUEUED", "EXEC", "[3]")
	wait.Until(t, "the subscription is at the next target", func() bool { return fmt.Sprint(next.Must("PUBLISH", "more", "m")) == "1" })
	subscriber.expect("[message more m]")

	forwardTo(t, srv, "")
	c.ask("GET k", "<nil>", "SET k 9", "OK", "PUBLISH more own", "1")
	subscriber.expect("[message more own]")
	wait.Until(t, "the target has no clients left", func() bool {
		return strings.Contains(fmt.Sprint(next.Must("INFO", "clients")), "connected_clients:1\r")
	})
	if got := fmt.Sprint(next.Must("GET", "k")); got != "3" {
		t.Errorf("after the end of forwarding the target has %s", got)
	}
}

// A transaction of the program, which would find no data here, is refused.
func TestForwardTx(t *testing.T) {
	_, to := home(t)
	srv := servertest.Run(t)
	forwardTo(t, srv, to)
	called := false
	err := srv.Tx(t.Context(), func(*server.Tx) error { called = true; return nil })
	if err == nil || err.Error() != "ERR the data have moved: a transaction of the program cannot use them here" || called {
		t.Errorf("%v, called %v", err, called)
	}
	forwardTo(t, srv, "")
	if err := srv.Tx(t.Context(), func(*server.Tx) error { called = true; return nil }); err != nil || !called {
		t.Errorf("after the end of forwarding: %v", err)
	}
}

// TestForwardUsers checks that a client's own user decides what it may do, and that
// clients that have not logged in reach nothing.
func TestForwardUsers(t *testing.T) {
	_, to := home(t)
	srv := servertest.Run(t, server.Options{Config: map[string]string{
		"requirepass": "p", "user": "reader on >r ~a* &* +@read +auth +multi +exec +client",
	}})
	c := straggle(t, srv.Addr())
	forwardTo(t, srv, to)
	c.ask("GET a", "NOAUTH Authentication required.", "AUTH reader r", "OK", "GET a", "<nil>",
		"SET a 1", "NOPERM User reader has no permissions to run the 'set' command",
		"GET b", "NOPERM No permissions to access a key", "GET a1", "<nil>", "MULTI", "OK", "GET a", "QUEUED")
	srv.Must("ACL", "SETUSER", "reader", "-get")
	c.expect2(t, "EXEC", "EXECABORT")
	c.ask("AUTH p", "OK", "SET a 1", "OK", "GET a", "1")
	if got := fmt.Sprint(srv.Must("GET", "a")); got != "1" {
		t.Errorf("the embedding program reads %s", got)
	}
	if got := fmt.Sprint(srv.Must("INFO", "replication")); !strings.Contains(got, "forward_to:"+to) {
		t.Errorf("INFO does not say where to: %s", got)
	}
}

// expect2 sends a line and checks the beginning of its reply.
func (c *straggler) expect2(t *testing.T, line, prefix string) {
	t.Helper()
	c.send(line + "\r\n")
	if got := fmt.Sprint(c.reply()); !strings.HasPrefix(got, prefix) {
		t.Errorf("%s: got %q, want %q", line, got, prefix)
	}
}

// TestForwardLarge checks long pipelines, large values in both directions, and clients that
// send no more.
func TestForwardLarge(t *testing.T) {
	_, to := home(t)
	srv := servertest.Run(t, server.Options{Config: map[string]string{"timeout": "1"}})
	forwardTo(t, srv, to)
	large := strings.Repeat("x", 3<<20)
	const n = 5000
	var b []byte
	for i := range n {
		b = transcript.AppendCommand(b, []string{"INCR", "counter"})
		if i%1000 == 0 {
			b = transcript.AppendCommand(b, []string{"SET", "large", large})
			b = transcript.AppendCommand(b, []string{"GET", "large"})
			b = transcript.AppendCommand(b, []string{"ECHO", "own"})
		}
	}
	c := straggle(t, srv.Addr()) // which must not be idle for a second now
	go func() {
		c.Write(b)
		c.Conn.(*net.TCPConn).CloseWrite()
	}()
	for i := range n {
		c.expect(fmt.Sprint(i + 1))
		if i%1000 == 0 {
			c.expect("OK")
			if got := fmt.Sprint(c.reply()); got != large {
				t.Fatalf("a value of %d bytes became one of %d", len(large), len(got))
			}
			c.expect("own")
		}
	}
	if rest, err := io.ReadAll(c.r); err != nil || len(rest) > 0 {
		t.Errorf("%d bytes after the last reply, %v", len(rest), err)
	}
	hidden := straggle(t, srv.Addr())
	hidden.send("BLPOP gone 0\r\n")
	wait.Until(t, "it is blocked", func() bool { return strings.Contains(fmt.Sprint(srv.Must("CLIENT", "LIST")), "flags=b") })
	hidden.Close()
	wait.Until(t, "a client that leaves takes no element", func() bool {
		return !strings.Contains(fmt.Sprint(srv.Must("CLIENT", "LIST")), "flags=b")
	})
	srv.Must("RPUSH", "gone", "e")
	if got := fmt.Sprint(srv.Must("LLEN", "gone")); got != "1" {
		t.Errorf("the list has %s elements", got)
	}
}

// TestForwardFromStart checks the parameter in the configuration, addresses that it
// refuses, and that caches of clients are never stale.
func TestForwardFromStart(t *testing.T) {
	target, to := home(t)
	srv := servertest.Run(t, server.Options{Config: map[string]string{"forward-to": to}})
	c := straggle(t, srv.Addr())
	c.ask("SET k v", "OK")
	if got := fmt.Sprint(target.Must("GET", "k")); got != "v" {
		t.Errorf("the target has %s", got)
	}
	c.send("HELLO 3\r\n")
	c.reply()
	c.ask("CLIENT TRACKING ON", "OK", "GET k", "v")
	c.expect("[invalidate [k]]")
	for _, bad := range []string{"http://h", "redis://h/3", "redis://a,b", "h:1"} {
		if _, err := srv.Do(t.Context(), "CONFIG", "SET", "forward-to", bad); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
	forwardTo(t, srv, "redis://127.0.0.1:1/0?cluster")
	c.expect("[invalidate <nil>]")
	forwardTo(t, srv, "")
	c.ask("GET k", "<nil>")
	if got := fmt.Sprint(srv.Must("DBSIZE")); got != "0" {
		t.Errorf("the source has %s keys", got)
	}
}

// TestForwardHidesDueMembers checks that commands which a Redis answers show no members that
// are past their deadlines in its companion keys: the library removes them first.
func TestForwardHidesDueMembers(t *testing.T) {
	port := judge.FreePort(t)
	judge.Start(t, "--port", port)
	library, err := os.ReadFile("../../../../cmd/zsetd/zsetd.lua")
	if err != nil {
		t.Fatal(err)
	}
	redis := straggle(t, "127.0.0.1:"+port)
	due := func(key string, live ...string) {
		t.Helper()
		redis.send(fmt.Sprintf("ZADD %s 1 due %s\r\nZADD zsetd:deadlines:{%s} 1000 due\r\n", key, strings.Join(live, " "), key))
		redis.reply()
		redis.reply()
	}
	srv := servertest.Run(t)
	forwardTo(t, srv, "redis://127.0.0.1:"+port)
	c := straggle(t, srv.Addr())
	due("none", "2", "live")
	c.ask("ZRANGE none 0 -1", "[due live]", "SET text 1", "OK", "TYPE text", "string", "ZCARD none", "2") // there is no library yet

	redis.send(string(transcript.AppendCommand(nil, []string{"FUNCTION", "LOAD", string(library)})))
	redis.expect("zsetd")
	forwardTo(t, srv, "")
	forwardTo(t, srv, "redis://127.0.0.1:"+port)
	for i, test := range [][2]string{
		{"ZRANGE z 0 -1", "[live]"}, {"ZCARD z", "1"}, {"ZSCORE z due", "<nil>"}, {"ZPOPMIN z", "[live 2]"}, {"BZPOPMIN z 1", "[z live 2]"},
		{"EVAL return(redis.call('zcard',KEYS[1])) 1 z", "1"}, {"ZUNION 2 z z", "[live]"}, {"SORT z BY nosort", "[live]"}, {"ZADD z 3 due", "1"},
		{"ZTTL z MEMBERS 1 due", "[-2]"},
	} {
		key := fmt.Sprint("z", i)
		due(key, "2", "live")
		c.ask("GET text", "1", strings.ReplaceAll(test[0], " z", " "+key), strings.ReplaceAll(test[1], "[z ", "["+key+" "), "GET text", "1")
	}
	due("only")
	c.ask("EXISTS only", "0")
	due("multi", "2", "live")
	c.ask("MULTI", "OK", "INCR text", "QUEUED", "ZRANGE multi 0 -1", "QUEUED", "ZTTL multi MEMBERS 1 live", "QUEUED", "EXEC", "[2 [live] [-1]]")
	due("watched", "2", "live")
	c.ask("WATCH watched", "OK", "MULTI", "OK", "ZCARD watched", "QUEUED", "EXEC", "<nil>") // they have expired since
	c.ask("WATCH watched", "OK", "MULTI", "OK", "ZCARD watched", "QUEUED", "EXEC", "[1]")
	c.ask("LPUSH list e", "1", "ZCARD list", "WRONGTYPE Operation against a key holding the wrong kind of value", "GET text", "2")
}
