package server_test

import (
	"io"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
	"github.com/zsetd/zsetd/server/internal/tests/transcript"
	"github.com/zsetd/zsetd/server/servertest/wait"

	"github.com/zsetd/zsetd/server/servertest/judge"
)

// TestDialectOfValkey sends lines to a server with the dialect of Valkey and, where it is
// installed, to Valkey 9, and compares both with the replies.
func TestDialectOfValkey(t *testing.T) {
	exchanges := []struct{ line, reply string }{
		{"HSET h a 1 b 2", ":2"},
		{"HEXPIRE h 10 NX XX FIELDS 1 a", "-ERR NX and XX, GT or LT options at the same time are not compatible"},
		{"HEXPIRE h 10 NX NX FIELDS", "-ERR numfields should be greater than 0 and match the provided number of fields"},
		{"HEXPIRE h -1 FIELDS 1 a", "-ERR invalid expire time in 'hexpire' command"},
		{"HEXPIRE h x FIELDS 1 a", "-ERR value is not an integer or out of range"},
		{"HEXPIRE h 10 FIELDS 1 a NX", "-ERR numfields should be greater than 0 and match the provided number of fields"},
		{"HEXPIRE h -1 FOO 1 a", "-ERR numfields should be greater than 0 and match the provided number of fields"},
		{"HEXPIRE h x FOO BAR FIELDS 1 a", "-ERR Unsupported option FOO"},
		{"HTTL h a 1 c", "-ERR syntax error"},
		{"HTTL h FIELDS 2 a", "-ERR syntax error"},
		{"HPERSIST h FIELDS 2 a", "-ERR numfields should be greater than 0 and match the provided number of fields"},
		{"HGETDEL h FIELDS a b", "-ERR value is not an integer or out of range"},
		{"HGETEX h EX 10 PX 10 FIELDS 1 a", "-ERR syntax error"},
		{"HGETEX h EX FIELDS 1 a", "-ERR syntax error"},
		{"HGETEX h EX x FIELDS 1 a", "-ERR value is not an integer or out of range"},
		{"HSETEX h EX x FIELDS 1 a 1", "-ERR value is not an integer or out of range"},
		{"HGETEX h EX 10 EX 20 FIELDS 1 a", "*1"},
		{"HSETEX h NX XX FIELDS 1 a 1", "-ERR syntax error"},
		{"HSETEX h NX NX FIELDS 1 a 1", ":0"},
		{"HSETEX h FOO FIELDS 1 a 1", "-ERR syntax error"},
		{"SET text 1", "+OK"},
		{"HEXPIRE text x FIELDS 1 a", "-ERR value is not an integer or out of range"},
		{"HEXPIRE text 10 FIELDS 0 a", "-ERR numfields should be greater than 0 and match the provided number of fields"},
		{"HTTL text FIELDS 2 a", "-ERR syntax error"},
		{"HGETDEL text FIELDS x a", "-ERR value is not an integer or out of range"},
		{"HPERSIST text FOO 1 a", "-ERR syntax error"},
		{"HGETEX text NX FIELDS 1 a", "-ERR syntax error"},
		{"HSETEX text PERSIST FIELDS 1 a 1", "-ERR syntax error"},
		{"HEXPIRE text 10 FOO BAR FIELDS", "-ERR numfields should be greater than 0 and match the provided number of fields"},
		{"HGETEX text EX x FIELDS 1 a", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"HSETEX text EX x FIELDS 1 a 1", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"HSET late a 1", ":1"},
		{"HPEXPIREAT late 9000000000000000 FIELDS 1 a", "*1\n:1"},
		{"HPEXPIRETIME late FIELDS 1 a", "*1\n:9000000000000000"},
		{"HGETEX late EXAT 9000000000000 FIELDS 1 a", "*1\n$1\n1"},
		{"HPEXPIREAT late 9000000000000000 FIELDS 1 nosuch", "*1\n:-2"},
		{"HSET small a 1", ":1"},
		{"HEXPIRE small 10 XX FIELDS 1 nosuch", "*1\n:-2"},
		{"OBJECT ENCODING small", "$8\nlistpack"},
		{"XGROUP CREATE x g 0 MKSTREAM ENTRIESREAD 5", "+OK"},
		{"XINFO GROUPS x", "*1\n*12\n$4\nname\n$1\ng\n$9\nconsumers\n:0\n$7\npending\n:0\n$17\nlast-delivered-id\n$3\n0-0\n$12\nentries-read\n:5\n$3\nlag\n:0"},
		{"HSETEX h KEEPTTL FIELDS 1 a 3", ":1"},
		{"SCAN 0 TYPE foo", "-ERR unknown type name 'foo'"},
		{"SCAN 0 NOSCORES", "-ERR NOSCORES option can only be used in ZSCAN"},
		{"HSCAN h 0 noscores", "-ERR NOSCORES option can only be used in ZSCAN"},
		{"SCAN 0 NOVALUES", "-ERR NOVALUES option can only be used in HSCAN"},
		{"SET s b IFEQ a XX", "-ERR syntax error"},
		{"GETEX none EX abc", "-ERR value is not an integer or out of range"},
		{"MSETEX 0 a b", "-ERR invalid numkeys value or out of range"},
		{"GEOADD g 1 1 a", ":1"},
		{"GEOSEARCH g FROMMEMBER x BYRADIUS 1 km", "-ERR member x does not exist"},
		{"CLIENT LIST ID str", "-ERR syntax error"},
		{"CLIENT KILL ID -1", "-ERR client-id should be greater than 0"},
		{"MULTI", "+OK"},
		{"MULTI", "-ERR Command 'multi' not allowed inside a transaction"},
		{"EXEC", "-EXECABORT Transaction discarded because of previous errors."},
		{"EVAL return(redis.call('foo')) 0", "-ERR Unknown command called from script script: on @user_script:1."},
		{"EVALSHA abc 0", "-NOSCRIPT No matching script."},
		{"READONLY", "+OK"},
		{"CONFIG GET maxmemory hz", "*4\n$2\nhz\n$2\n10\n$9\nmaxmemory\n$1\n0"},
		{"ACL SETUSER u on nopass resetchannels &foo skip-sanitize-payload +@all", "+OK"},
		{"ACL LIST", "*2\n$34\nuser default on nopass ~* &* +@all\n$41\nuser u on nopass resetchannels &foo +@all"},
		{"ACL GETUSER u", "*14\n$5\nflags\n*2\n$2\non\n$6\nnopass\n$9\npasswords\n*0\n$8\ncommands\n$5\n+@all\n$4\nkeys\n$0\n\n$8\nchannels\n$4\n&foo\n" +
			"$9\ndatabases\n$6\nalldbs\n$9\nselectors\n*0"},
		{"NOSUCH", "-ERR unknown command 'NOSUCH', with args beginning with: "},
		{"RPUSH empty \"\" 1", ":2"},
		{"SORT empty", "-ERR One or more scores can't be converted into double"},
		{"RPUSH high 1e400 1", ":2"},
		{"SORT high", "-ERR One or more scores can't be converted into double"},
		{"FUNCTION LOAD \"#!lua name=l\\nserver.register_function('f-8', function() end)\"",
			"-ERR Function names can only contain letters, numbers, or underscores(_) and must be at least one character long"},
		{"FUNCTION LOAD \"#!lua name=l\\nlocal f = function() end server.register_function('f', f) server.register_function('f', f)\"",
			"-ERR Function already exists in the library"},
		{"XREAD COUNT 1 STREAMS a", "-ERR Unbalanced 'xread' list of streams: for each stream key an ID or '$' must be specified."},
	}
	compare := func(t *testing.T, p *judge.Peer) {
		for _, x := range exchanges {
			words := strings.Fields(x.line)
			if strings.Contains(x.line, `"`) {
				var err error
				if words, err = transcript.SplitWords(x.line); err != nil {
					t.Fatal(err)
				}
			}
			got := strings.ReplaceAll(strings.TrimSuffix(p.Do(words...), "\r\n"), "\r\n", "\n")
			if !strings.Contains(x.reply, "\n") {
				got, _, _ = strings.Cut(got, "\n")
			}
			if got != x.reply {
				t.Errorf("%s: %q; want %q", x.line, got, x.reply)
			}
		}
		p.Events.RoundTrip(t, "HELLO", "3")
		if got := p.Events.RoundTrip(t, "COMMAND", "INFO", "ping"); !strings.HasSuffix(got, "~0\r\n*0\r\n") {
			t.Errorf("the subcommands of a command without any: %q", got)
		}
		for _, raw := range []struct{ request, reply string }{
			{"ECHO a\"b\"'c'\r\n", "$3\r\nabc\r\n"},
			{"*1\r\n$4\r\nPINGxx", "-ERR Protocol error: invalid CRLF in request\r\n"},
		} {
			if err := p.Events.Send([]byte(raw.request)); err != nil {
				t.Fatal(err)
			}
			if got, err := p.Events.Receive(judge.Patience); got != raw.reply {
				t.Errorf("%q: %q, %v; want %q", raw.request, got, err, raw.reply)
			}
		}
	}
	t.Run("zsetd", func(t *testing.T) {
		p := judge.Own(t, server.Options{Config: map[string]string{"dialect": "valkey"}})
		compare(t, p)
		if got := p.Do("CLIENT", "INFO"); !strings.Contains(got, " qbuf=0 ") {
			t.Errorf("a client without other commands: %s", got)
		}
		if got := p.Do("FUNCTION", "LOAD", "#!lua name=x\nredis.register_function('f', function() end)"); got != "$1\r\nx\r\n" {
			t.Errorf("a library that uses the table redis: %q", got)
		}
	})
	t.Run("Valkey", func(t *testing.T) { compare(t, judge.NewerServers()[1].Start(t)) })
}

// TestEventsOfValkey compares events, and how calls count that another client has ended, with
// those of Valkey 9, as TestDialectOfValkey does replies.
func TestLoginOfValkey(t *testing.T) {
	exchanges := []struct{ line, reply string }{
		{"NOSUCH", "-NOAUTH Authentication required."},
		{"GET", "-NOAUTH Authentication required."},
		{"GET k", "-NOAUTH Authentication required."},
		{"AUTH wrong", "-WRONGPASS invalid username-password pair or user is disabled."},
		{"AUTH", "-ERR wrong number of arguments for 'auth' command"},
		{"PING", "-NOAUTH Authentication required."},
		{"AUTH secret", "+OK"},
		{"GET", "-ERR wrong number of arguments for 'get' command"},
		{"GET k", "$-1"},
	}
	compare := func(t *testing.T, conn net.Conn) {
		c := enginetest.NewClient(t, conn)
		for _, x := range exchanges {
			if _, err := io.WriteString(conn, x.line+"\r\n"); err != nil {
				t.Fatal(err)
			}
			if got, err := c.R.ReadString('\n'); err != nil || got != x.reply+"\r\n" {
				t.Errorf("%s: %q, %v, want %q", x.line, got, err, x.reply)
			}
		}
	}
	t.Run("zsetd", func(t *testing.T) {
		srv, err := server.New(server.Options{Config: map[string]string{"dialect": "valkey", "requirepass": "secret"}})
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		conn, err := srv.Dialer()(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		compare(t, conn)
	})
	t.Run("Valkey", func(t *testing.T) {
		path := judge.NewerServers()[1].Path(t)
		if path == "" {
			t.Skip("Valkey is not installed")
		}
		compare(t, judge.StartProgram(t, path, "--requirepass", "secret")())
	})
}

func TestEventsOfValkey(t *testing.T) {
	exchanges := []struct{ line, events string }{
		{"SET k 1 PXAT 1", ""},
		{"SET k 1 NX EXAT 1", ""},
		{"SET k 1", "set k"},
		{"SET k 1 NX PXAT 1", ""},
		{"SET k 1 GET PXAT 1", "expired k"},
		{"SET k 1 XX PXAT 1", ""},
		{"RPUSH k 1", "rpush k"},
		{"SET k 1 EXAT 1", "expired k"},
		{"SET k 1", "set k"},
		{"GETEX k PXAT 1", "expired k"},
		{"SET k 1", "set k"},
		{"EXPIRE k 0", "expired k"},
		{"SET k 1 PX 100000", "set k, expire k"},
		{"MSETEX 1 k 1 PX 100000", "set k, expire k"},
		{"HSET h f v g w", "hset h"},
		{"HSETEX h PXAT 1 FIELDS 1 f v", "hset h, hexpire h, hexpired h"},
	}
	const endOfBatch = "end of batch"
	compare := func(t *testing.T, p *judge.Peer) {
		p.Do("CONFIG", "SET", "notify-keyspace-events", "EA")
		p.Events.RoundTrip(t, "PSUBSCRIBE", "__keyevent*")
		p.Events.RoundTrip(t, "SUBSCRIBE", endOfBatch)
		for _, x := range exchanges {
			p.Do(strings.Fields(x.line)...)
			p.Do("PUBLISH", endOfBatch, "")
			var events []string
			for {
				r, err := p.Events.Receive(judge.Patience)
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(r, endOfBatch) {
					break
				}
				words := strings.Split(r, "\r\n") // pmessage, pattern, channel, payload
				_, event, _ := strings.Cut(words[6], "__:")
				events = append(events, event+" "+words[8])
			}
			if got := strings.Join(events, ", "); got != x.events {
				t.Errorf("%s: %q; want %q", x.line, got, x.events)
			}
		}
		p.Events.RoundTrip(t, "RESET")
		_, id, _ := strings.Cut(strings.TrimSpace(p.Events.RoundTrip(t, "CLIENT", "ID")), ":")
		if err := p.Events.Send([]byte("BLPOP none 0\r\n")); err != nil {
			t.Fatal(err)
		}
		wait.Until(t, "the client is blocked", func() bool { return p.Info("blocked_clients") == "1" })
		p.Do("CLIENT", "UNBLOCK", id, "ERROR")
		if got := p.Do("INFO", "commandstats"); !strings.Contains(got, "rejected_calls=1,failed_calls=0\r\n") {
			t.Errorf("BLPOP that CLIENT UNBLOCK ends: %s", got)
		}
		p.Do("CONFIG", "RESETSTAT")
		for i := range 128 {
			p.Do("EVAL", "return redis.error_reply(ARGV[1] .. ' x')", "0", strconv.Itoa(i))
		}
		p.Do("EVAL", "return 1 + {}", "0")
		p.Do("EVAL", "return redis.error_reply('LAST x')", "0")
		p.Do("EVALSHA", "abc", "0")
		p.Do("EVAL", "return redis.call('LPOP', 'none', 'x')", "0")
		p.Do("EVAL", "x(", "0")
		got := p.Do("INFO", "errorstats")
		for _, want := range []string{"OVERFLOW:count=2", "stat_127:count=1", "NOSCRIPT:count=1", "_ERR:count=2"} {
			if !strings.Contains(got, want+"\r\n") {
				t.Errorf("errors after 128 codes: %s; want %s", got, want)
			}
		}
	}
	t.Run("zsetd", func(t *testing.T) {
		compare(t, judge.Own(t, server.Options{Config: map[string]string{"dialect": "valkey"}}))
	})
	t.Run("Valkey", func(t *testing.T) { compare(t, judge.NewerServers()[1].Start(t)) })
}
