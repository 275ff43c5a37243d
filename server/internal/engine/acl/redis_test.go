package acl_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/servertest/rerun"

	"github.com/zsetd/zsetd/server/servertest/judge"
)

// TestLoginAsRedis checks that unauthenticated clients get the replies of a real Redis.
func TestLoginAsRedis(t *testing.T) {
	rerun.SkipRace(t)
	redis := judge.StartNewer(t, strings.Fields("--requirepass secret --user alice on >wonder ~* +@all --user bob off >secret +@all")...)
	srv, err := server.New(server.Options{Config: map[string]string{
		"requirepass": "secret", "user": "alice on >wonder ~* +@all\nbob off >secret +@all",
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	array := func(args ...string) string {
		s := fmt.Sprintf("*%d\r\n", len(args))
		for _, a := range args {
			s += fmt.Sprintf("$%d\r\n%s\r\n", len(a), a)
		}
		return s
	}
	ten := strings.Fields("a b c d e f g h i j")
	for _, in := range []string{
		"PING\r\n", "GET k\r\n", "NOSUCH\r\n", "GET\r\n", "MULTI\r\n", "CLIENT LIST\r\n", "DEBUG SLEEP 0\r\n",
		"HELLO\r\n", "HELLO 3\r\n", "HELLO 9\r\n", "HELLO 3 AUTH default wrong\r\n", "HELLO 2 SETNAME x\r\n", "RESET\r\nPING\r\n",
		array(ten...), array(append(ten, "k")...), "*11\r\n", "*2147483648\r\n", "*-1\r\nPING\r\n",
		array("AUTH", strings.Repeat("x", 16384)), "*2\r\n$4\r\nAUTH\r\n$16385\r\n", "*1\r\n$99999999999999999999\r\n",
		"AUTH\r\n", "AUTH wrong\r\n", "AUTH secre\r\n", "AUTH secrets\r\n", "AUTH \"\"\r\n", "AUTH default\r\n", "AUTH a b c\r\n",
		"AUTH nobody secret\r\n", "AUTH bob secret\r\n", "AUTH alice secret\r\n", "AUTH default \"\"\r\n",
		"AUTH secret\r\nPING\r\n", "AUTH default secret\r\nPING\r\n", "AUTH alice wonder\r\nACL WHOAMI\r\n",
		"AUTH secret\r\n" + array(append([]string{"DEL"}, append(ten, ten...)...)...) + array("ECHO", strings.Repeat("y", 20000)),
		"AUTH secret\r\nRESET\r\nPING\r\n",
		"POST / HTTP/1.1\r\nHost: x\r\n\r\nPING\r\n", "host: x\r\nPING\r\n", "GET / HTTP/1.1\r\n",
		"QUIT\r\nPING\r\n",
	} {
		ours, err := srv.Dialer()(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		var answers [2]string
		for i, nc := range []net.Conn{redis(), ours} {
			nc.SetDeadline(time.Now().Add(time.Minute))
			go io.WriteString(nc, in+"QUIT\r\n") // a pipe blocks until the replies are read
			b, _ := io.ReadAll(nc)               // after which Redis may reset the connection
			answers[i] = string(b)
			nc.Close()
		}
		if answers[0] != answers[1] {
			t.Errorf("%.80q:\n%.300q, Redis\n%.300q", in, answers[1], answers[0])
		}
	}
}

// TestRenamedAsRedis checks that renamed and disabled commands behave as in Redis: clients
// call them by the new name, ACL rules and statistics use the original name.
func TestRenamedAsRedis(t *testing.T) {
	rerun.SkipRace(t)
	redis := judge.Asker(t, judge.StartNewer(t, "--rename-command", "CONFIG", "hidden", "--rename-command", "FLUSHALL", "", "--rename-command", "get", "fetch")())
	values, err := server.ReadArgs([]string{"--rename-command", "CONFIG", "hidden", "--rename-command", "FLUSHALL", "", "--rename-command", "get", "fetch"})
	if err != nil {
		t.Fatal(err)
	}
	srv, err := server.New(server.Options{Config: values})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	nc, err := srv.Dialer()(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	zsetd := judge.Asker(t, nc)
	slowlog := func(ask func(...string) any) any { // returns the command names in the slow log
		ask("hidden", "set", "slowlog-log-slower-than", "0")
		ask("SLOWLOG", "RESET")
		ask("Fetch", "k")
		var names []any
		for _, e := range ask("SLOWLOG", "GET", "1").([]any) {
			names = append(names, e.([]any)[3])
		}
		return names
	}
	for _, argv := range [][]string{
		{"CONFIG", "GET", "port"}, {"HIDDEN", "GET", "databases"}, {"FLUSHALL"}, {"SET", "k", "v"}, {"GET", "k"}, {"FETCH", "k"}, {"hidden"}, {"hidden", "foo"},
		{"fetch"}, {"EVAL", "return redis.call('get','k')", "0"}, {"EVAL", "return redis.call('fetch','k')", "0"}, {"EVAL", "return redis.call('flushall')", "0"},
		{"ACL", "SETUSER", "a", "+get"}, {"ACL", "SETUSER", "b", "+fetch"}, {"ACL", "SETUSER", "c", "+flushall"}, {"ACL", "SETUSER", "d", "+@all", "-get"}, {"ACL", "LIST"},
		{"COMMAND", "GETKEYS", "fetch", "k"}, {"COMMAND", "GETKEYS", "get", "k"}, {"ACL", "DRYRUN", "default", "get", "k"}, {"ACL", "DRYRUN", "default", "fetch", "k"},
		{"ACL", "DRYRUN", "d", "fetch", "k"}, {"MULTI"}, {"get", "k"}, {"fetch", "k"}, {"EXEC"}, // Redis 8.6.3 finds GET after FETCH by its cache of one command
	} {
		if got, want := fmt.Sprint(zsetd(argv...)), fmt.Sprint(redis(argv...)); got != want {
			t.Errorf("%q:\n%s\n%s, Redis", argv, got, want)
		}
	}
	if got, want := fmt.Sprint(slowlog(zsetd)), fmt.Sprint(slowlog(redis)); got != want {
		t.Errorf("the slow log: got %s, Redis %s", got, want)
	}
}

// TestInputLimitsAsRedis checks that the limits of client input are those of Redis, to the byte.
func TestInputLimitsAsRedis(t *testing.T) {
	rerun.SkipRace(t)
	dial := judge.StartNewer(t, "--proto-max-bulk-len", "1mb", "--client-query-buffer-limit", "1mb")
	srv, err := server.New(server.Options{Config: map[string]string{"proto-max-bulk-len": "1mb", "client-query-buffer-limit": "1mb"}})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	long := func(n int) string { return strings.Repeat("x", n) }
	for _, in := range []string{
		"*2\r\n$4\r\nPING\r\n$1048576\r\n", "*2\r\n$4\r\nPING\r\n$1048577\r\n", "*1\r\n$-1\r\n", "*1\r\n$0\r\n\r\n",
		"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000000\r\n" + long(1000000) + "\r\nSTRLEN k\r\n",
		"*2147483648\r\n", "*-2147483649\r\nPING\r\n", long(65535) + "\r\n", "SET k " + long(60000) + "\r\nSTRLEN k\r\n",
		"PING\r\n" + long(70000), "CONFIG SET proto-max-bulk-len 1048575\r\n", "CONFIG SET client-query-buffer-limit 1048575\r\n", "CONFIG SET maxclients 0\r\n",
		"APPEND big " + long(50) + "\r\nSETRANGE big 1048575 x\r\nSETRANGE big 1048576 x\r\nAPPEND big x\r\nSTRLEN big\r\n",
	} {
		ours, err := srv.Dialer()(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		var answers [2]string
		var wg sync.WaitGroup
		for i, nc := range []net.Conn{dial(), ours} {
			nc.SetDeadline(time.Now().Add(500 * time.Millisecond)) // both servers wait for the rest of an incomplete command
			go io.WriteString(nc, in)
			wg.Go(func() {
				b, _ := io.ReadAll(nc)
				answers[i] = string(b)
				nc.Close()
			})
		}
		wg.Wait()
		if answers[0] != answers[1] {
			t.Errorf("%.60q…:\n%.300q\n%.300q, Redis", in, answers[1], answers[0])
		}
	}
}

// TestRulesAsRedis checks that random lists of ACL rules get the replies of Redis, and
// make users with the same flags, passwords, keys and channels. ACL LIST shows command
// rules in the order in which they were set, as since Redis 7.2. Applied to a user of
// Redis, they have the same effect as the original rules.
func TestRulesAsRedis(t *testing.T) {
	rerun.SkipRace(t)
	redis, zsetd := judge.Asker(t, judge.StartNewer(t)()), judge.Ours(t)
	here := judge.Sorted(zsetd("COMMAND", "LIST"))
	names := slices.DeleteFunc(judge.Sorted(redis("COMMAND", "LIST")), func(n string) bool { return !slices.Contains(here, n) })
	categories := judge.Sorted(redis("ACL", "CAT"))
	r := rand.New(rand.NewPCG(5, 5))
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	var rule func() string
	rule = func() string {
		switch r.IntN(26) {
		case 0, 1, 2, 3:
			return pick("+", "-") + "@" + pick(categories...)
		case 4, 5:
			return pick("+", "-") + pick("config", "client", "acl", "config|get", "client|id", "acl|whoami", "client|list", "object", "object|freq", "xgroup")
		case 6:
			return "+" + pick("select|0", "select|1", "get|a", "SELECT|0", "config|foo", "config|GET", "CONFIG|get")
		case 7:
			return pick("+@all", "-@all", "allcommands", "nocommands", "+@ALL", "+@Read", "-@WRITE", "+GET", "-Set")
		case 8:
			return pick("~*", "allkeys", "resetkeys", "%R~*", "%W~*", "%RW~x", "%WR~y")
		case 9, 10:
			return pick("~", "%R~", "%W~", "%RW~") + pick("a", "b*", "c:*", "a", "[a-z]")
		case 11, 12:
			return pick("&*", "allchannels", "resetchannels", "&a", "&b*", "&a", "&c")
		case 13:
			return pick("on", "off", "nopass", "resetpass", ">p1", ">p2", "<p1", "#"+strings.Repeat("a", 64), "!"+strings.Repeat("a", 64))
		case 14:
			return pick("skip-sanitize-payload", "sanitize-payload", "clearselectors", "ON", "NOPASS", "reset")
		case 15:
			var inner []string
			for range r.IntN(4) {
				inner = append(inner, rule())
			}
			return "(" + strings.Join(inner, " ") + ")"
		case 16:
			return pick("foo", "+nosuch", "-@nosuch", "%X~a", "%~a", "+", "-", "~", "&", ">", "<nope", "#abc", "()", "(", "+config|", "+|get", "-select|0",
				"-config|get", "+@", "( )", "(~a", "~a b", "&a b", "+get|a|b", "")
		}
		return pick("+", "-") + pick(names...)
	}
	// describe returns the properties that ACL GETUSER shows of a user, without the
	// commands, and the line in ACL LIST.
	describe := func(ask func(...string) any, name string) (facts, line string) {
		fields, ok := ask("ACL", "GETUSER", name).([]any)
		if !ok {
			return "no such user", ""
		}
		var without func(fields []any) (rest []any)
		without = func(fields []any) (rest []any) {
			for i := 0; i+1 < len(fields); i += 2 {
				switch field := fmt.Sprint(fields[i]); field {
				case "commands":
				case "selectors":
					for _, s := range fields[i+1].([]any) {
						rest = append(rest, without(s.([]any)))
					}
				default:
					rest = append(rest, field, fields[i+1])
				}
			}
			return rest
		}
		for _, l := range ask("ACL", "LIST").([]any) {
			if l := fmt.Sprint(l); strings.HasPrefix(l, "user "+name+" ") {
				line = l
			}
		}
		return fmt.Sprint(without(fields)), line
	}
	// sorted returns a line with the words in each pair of parentheses sorted, because
	// Redis 7.0 shows single commands in the order of a hash table.
	sorted := func(line string) string {
		parts := strings.SplitAfter(line, "(")
		for i, p := range parts {
			w := strings.Fields(strings.NewReplacer("(", " (", ")", " )").Replace(p))
			slices.Sort(w)
			parts[i] = strings.Join(w, " ")
		}
		return strings.Join(parts, " ")
	}
	refused := 0
	for range 600 {
		for _, ask := range []func(...string) any{redis, zsetd} {
			ask("ACL", "DELUSER", "u")
			ask("ACL", "DELUSER", "v")
		}
		var rules []string
		for range 1 + r.IntN(8) {
			rules = append(rules, rule())
		}
		argv := append([]string{"ACL", "SETUSER", "u"}, rules...)
		got, want := fmt.Sprint(zsetd(argv...)), fmt.Sprint(redis(argv...))
		if got != want {
			t.Errorf("%q:\n%s\n%s, Redis", rules, got, want)
			continue
		}
		if got != "OK" {
			refused++
			continue
		}
		facts, line := describe(zsetd, "u")
		theirs, theirLine := describe(redis, "u")
		if facts != theirs {
			t.Errorf("%q:\n%s\n%s, Redis", rules, facts, theirs)
		}
		again, rest := []string{"ACL", "SETUSER", "v"}, strings.TrimPrefix(line, "user u ")
		for rest != "" { // a pair of parentheses is one rule
			word := rest
			if rest[0] == '(' {
				word = rest[:strings.IndexByte(rest, ')')+1]
			} else if i := strings.IndexByte(rest, ' '); i >= 0 {
				word = rest[:i]
			}
			again, rest = append(again, word), strings.TrimPrefix(rest[len(word):], " ")
		}
		if reply := fmt.Sprint(redis(again...)); reply != "OK" {
			t.Errorf("%q is shown as %q, to which Redis replies %s", rules, line, reply)
			continue
		}
		_, copied := describe(redis, "v")
		if got, want := sorted(copied), sorted(strings.Replace(theirLine, "user u ", "user v ", 1)); got != want {
			t.Errorf("%q are shown as %q: Redis makes of it\n%s\nwant\n%s", rules, line, got, want)
		}
	}
	if refused < 20 || refused > 500 {
		t.Errorf("%d of 600 lists are refused", refused)
	}
}
