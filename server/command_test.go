package server

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/protocol"
)

// checkout takes the cheapest items of a sorted set as long as the budget lasts.
func checkout() Command {
	return Command{
		Name: "shop.checkout", Arity: 3, Flags: "write fast", Keys: "1 RW access delete; 2 RW insert",
		Summary: "Move the cheapest item to a cart", Syntax: "key key",
		Run: func(c *Call) (any, error) {
			popped, err := c.Do("ZPOPMIN", c.Args()[0])
			if err != nil {
				return nil, err
			}
			list := popped.([]any)
			if len(list) == 0 {
				return nil, errors.New("EMPTY nothing to sell")
			}
			if _, err := c.Do("SADD", c.Arg(1), list[0]); err != nil {
				return nil, err
			}
			return list[0], nil
		},
	}
}

// programServer returns a server with commands for the tests.
func programServer(t *testing.T, config map[string]string) *Server {
	t.Helper()
	reply := func(name, flags string, run func(*Call) (any, error)) Command {
		return Command{Name: name, Arity: -1, Flags: flags, Run: run}
	}
	return openForTest(t, Options{Config: config, Commands: []Command{
		checkout(),
		reply("my.do", "write", func(c *Call) (any, error) {
			args := make([]any, len(c.Args()))
			for i, a := range c.Args() {
				args[i] = a
			}
			return c.Do(args...)
		}),
		reply("my.read", "readonly", func(c *Call) (any, error) { return c.Do("SET", "k", 1) }),
		reply("my.db", "", func(c *Call) (any, error) { return c.DB(), nil }),
		reply("my.types", "", func(c *Call) (any, error) {
			return []any{
				nil, "a", []byte("b"), 1, int64(2), 2.5, true, []string{"c"}, protocol.Status("d"), protocol.Map{{Key: "e", Value: 1}},
				protocol.Set{"f"}, protocol.BigNumber("12345678901234567890"), protocol.ReplyError("CODE g"),
			}, nil
		}),
		reply("my.bad", "", func(c *Call) (any, error) { return []any{1, struct{}{}}, nil }),
		reply("my.error", "", func(c *Call) (any, error) { return nil, fmt.Errorf("%s", c.Arg(0)) }),
		reply("my.panic", "write", func(c *Call) (any, error) {
			if c.Arg(0) != "" {
				c.Do("SET", "k", c.Arg(0))
			} else {
				c.Do("GET", "k")
			}
			panic("for the test")
		}),
	}})
}

func TestProgramCommand(t *testing.T) {
	srv := programServer(t, map[string]string{"notify-keyspace-events": "KEA"})
	ctx := t.Context()
	events, err := srv.PSubscribe(ctx, "__keyevent@0__:*")
	if err != nil {
		t.Fatal(err)
	}
	mustDo(t, srv, "ZADD", "items", 3, "pen", 1, "ink")
	if got := mustDo(t, srv, "shop.CHECKOUT", "items", "cart"); got != "ink" {
		t.Errorf("got %v", got)
	}
	if got := mustDo(t, srv, "SMEMBERS", "cart"); fmt.Sprint(got) != "[ink]" {
		t.Errorf("the cart has %v", got)
	}
	var seen []string
	for m, err := range events.Messages() {
		if err != nil {
			t.Fatal(err)
		}
		if seen = append(seen, strings.TrimPrefix(m.Channel, "__keyevent@0__:")); len(seen) == 3 {
			break
		}
	}
	if !slices.Equal(seen, []string{"zadd", "zpopmin", "sadd"}) {
		t.Errorf("events %v", seen)
	}
	for _, c := range []struct{ line, want string }{
		{"SHOP.CHECKOUT items", "ERR wrong number of arguments for 'shop.checkout' command"},
		{"SHOP.CHECKOUT none cart", "EMPTY nothing to sell"},
		{"SHOP.CHECKOUT cart cart", "WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"MY.ERROR oops", "ERR oops"},
		{"MY.ERROR X", "X"},
		{"MY.BAD", "ERR the handler of 'my.bad' returned a struct {}, which is no reply"},
		{"MY.READ", "ERR 'set' writes, and 'my.read' lacks the flag write"},
		{"MY.DO", "ERR zsetd: no command"},
		{"MY.DO nothing x", "ERR unknown command 'nothing', with args beginning with: 'x' "},
		{"MY.DO EVAL x 0", "ERR 'eval' cannot be called by a command of the program"},
		{"MY.DO MY.DB", "ERR 'my.db' cannot be called by a command of the program"},
		{"MY.DO GET", "ERR wrong number of arguments for 'get' command"},
		{"MY.DO MULTI", "ERR 'multi' cannot be called by a command of the program"}, {"MY.DO BLPOP none 0", "<nil>"},
		{"MY.DO SET k v", "OK"},
		{"MY.DO GET k", "v"},
		{"MY.PANIC", "ERR internal error in 'my.panic', see the server's log"},
		{"MY.DB", "0"},
		{"MY.TYPES", "[<nil> a b 1 2 2.5 true [c] d [{e 1}] [f] 12345678901234567890 CODE g]"},
		{"COMMAND GETKEYS SHOP.CHECKOUT a b", "[a b]"},
		{"EVAL return(redis.call('SHOP.CHECKOUT','items','cart')) 0", "pen"},
		{"EVAL return(redis.call('MY.ERROR','CODE')) 0", "ERR CODE script: "},
	} {
		var args []any
		for word := range strings.FieldsSeq(c.line) {
			args = append(args, word)
		}
		reply, err := srv.Do(ctx, args...)
		got := fmt.Sprint(reply)
		if err != nil {
			got = err.Error()
		}
		if got != c.want && (!strings.HasSuffix(c.want, ": ") || !strings.HasPrefix(got, c.want)) {
			t.Errorf("%s: got %q, want %q", c.line, got, c.want)
		}
	}
	info := mustDo(t, srv, "COMMAND", "INFO", "shop.checkout").([]any)[0].([]any)
	if got := fmt.Sprint(info[:7]); got != "[shop.checkout 3 [write module fast] 1 2 1 [@write @fast]]" {
		t.Errorf("COMMAND INFO: %s", got)
	}
	if docs := fmt.Sprint(mustDo(t, srv, "COMMAND", "DOCS", "shop.checkout")); !strings.Contains(docs, "Move the cheapest item") || !strings.Contains(docs, "{group module}") {
		t.Errorf("COMMAND DOCS: %s", docs)
	}
	if stats := mustDo(t, srv, "INFO", "commandstats").(string); !strings.Contains(stats, "cmdstat_shop.checkout:calls=4,") || !strings.Contains(stats, "cmdstat_zpopmin:calls=4,") {
		t.Errorf("INFO commandstats: %s", stats)
	}
	if err := srv.Check(); err != nil {
		t.Error(err)
	}
}

// In a transaction, with users and through a connection, a command is one like others.
func TestProgramCommandConnection(t *testing.T) {
	srv := programServer(t, map[string]string{"user": "ann on nopass ~i* ~c* +shop.checkout +zpopmin +zadd +multi +exec +select +my.db\n" +
		"bob on nopass ~* +@all -@fast +auth\neve on nopass ~* +shop.checkout"})
	nc, err := srv.Dialer()(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(time.Minute))
	for _, c := range []struct{ send, want string }{
		{"ZADD items 1 a 2 b 3 c", ":3\r\n"},
		{"AUTH ann x", "+OK\r\n"},
		{"SHOP.CHECKOUT items other", "-NOPERM No permissions to access a key\r\n"},
		{"SHOP.CHECKOUT items cart", "-ERR ACL failure in script: User ann has no permissions to run the 'sadd' command\r\n"},
		{"AUTH default x\r\nACL SETUSER ann +sadd\r\nAUTH ann x", "+OK\r\n+OK\r\n+OK\r\n"},
		{"MULTI\r\nSHOP.CHECKOUT items cart\r\nSHOP.CHECKOUT items\r\nEXEC", "+OK\r\n+QUEUED\r\n-ERR wrong number of arguments for 'shop.checkout' command\r\n" +
			"-EXECABORT Transaction discarded because of previous errors.\r\n"},
		{"MULTI\r\nSHOP.CHECKOUT items cart\r\nZADD items 9 z\r\nEXEC", "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n$1\r\nb\r\n:1\r\n"},
		{"SELECT 2\r\nMY.DB\r\nSELECT 0", "+OK\r\n:2\r\n+OK\r\n"},
		{"AUTH bob x\r\nSHOP.CHECKOUT items cart", "+OK\r\n-NOPERM User bob has no permissions to run the 'shop.checkout' command\r\n"},
	} {
		if _, err := fmt.Fprint(nc, c.send+"\r\n"); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(c.want))
		for n := 0; n < len(got); {
			m, err := nc.Read(got[n:])
			if n += m; err != nil || string(got[:n]) != c.want[:n] {
				t.Fatalf("%s: got %q (%v), want %q", c.send, got[:n], err, c.want)
			}
		}
	}
}

// A panic after a change stops the server.
func TestProgramCommandPanics(t *testing.T) {
	srv := programServer(t, nil)
	mustDo(t, srv, "SET", "k", 1)
	if _, err := srv.Do(t.Context(), "MY.PANIC"); err == nil || mustDo(t, srv, "GET", "k") != "1" {
		t.Errorf("a panic before a change: %v", err)
	}
	_, err := srv.Do(t.Context(), "MY.PANIC", "2")
	if p, ok := errors.AsType[*PanicError](err); !ok && err.Error() != "ERR internal error: the server is stopping, see its log" || ok && p.Value != "for the test" {
		t.Errorf("a panic after a change: %v", err)
	}
	if _, err := srv.Do(t.Context(), "PING"); err == nil {
		t.Error("the server goes on")
	}
}

func TestProgramCommandErrors(t *testing.T) {
	run := func(*Call) (any, error) { return nil, nil }
	for want, commands := range map[string][]Command{
		`zsetd: command "get": there is a command of this name`:                                {{Name: "get", Arity: 2, Run: run}},
		`zsetd: command "a": there is a command of this name`:                                  {{Name: "a", Arity: 2, Run: run}, {Name: "a", Arity: 2, Run: run}},
		`zsetd: command "a b": the name has a character that is no letter, digit or sign`:      {{Name: "a b", Arity: 2, Run: run}},
		`zsetd: command "config|x": the name has a character that is no letter, digit or sign`: {{Name: "config|x", Arity: 2, Run: run}},
		`zsetd: command "a": the field Run is nil`:                                             {{Name: "a", Arity: 2}},
		`zsetd: command "A": bad name or arity 1`:                                              {{Name: "A", Arity: 1, Run: run}},
		`zsetd: command "a": bad name or arity 0`:                                              {{Name: "a", Run: run}},
		`zsetd: command "": bad name or arity 1`:                                               {{Arity: 1, Run: run}},
		`zsetd: command "a": unknown word "quick" in "module quick"`:                           {{Name: "a", Arity: 1, Flags: "quick", Run: run}},
	} {
		for _, f := range []func(Options) error{CheckConfig, func(o Options) error { _, err := New(o); return err }} {
			if err := f(Options{Commands: commands}); err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		}
	}
}

// TestProgramCallEnds checks what a call of a program refuses: after its end, and arguments and
// replies of types that cannot be sent.
func TestProgramCallEnds(t *testing.T) {
	var kept *Call
	srv := openForTest(t, Options{Commands: []Command{
		{Name: "my.keep", Arity: -1, Flags: "write", Run: func(c *Call) (any, error) {
			kept = c
			return c.Do("SET", "k", struct{}{})
		}},
		{Name: "my.map", Arity: -1, Run: func(c *Call) (any, error) {
			return protocol.Map{{Key: "a", Value: 1}, {Key: "b", Value: struct{}{}}, {Key: "c", Value: 1}}, nil
		}},
	}})
	if _, err := srv.Do(t.Context(), "MY.KEEP"); err == nil || !strings.Contains(err.Error(), "struct {}") {
		t.Errorf("an argument that cannot be sent: %v", err)
	}
	if got, err := kept.Do("SET", "k", 1); got != nil || err == nil || err.Error() != "zsetd: the call of 'my.keep' has ended" {
		t.Errorf("after the end: %v, %v", got, err)
	}
	if got := mustDo(t, srv, "EXISTS", "k"); got != int64(0) {
		t.Errorf("EXISTS: %v", got)
	}
	if _, err := srv.Do(t.Context(), "MY.MAP"); err == nil || err.Error() != "ERR the handler of 'my.map' returned a struct {}, which is no reply" {
		t.Errorf("a map with a value that is no reply: %v", err)
	}
}
