package server_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server"
)

// What those are told who have not logged in, a real Redis tells them, too.
func TestLoginAsRedis(t *testing.T) {
	redis := startRedis(t, strings.Fields("--requirepass secret --user alice on >wonder ~* +@all --user bob off >secret +@all")...)
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
		"AUTH secret\r\nAUTH wrong\r\nACL WHOAMI\r\n", "AUTH secret\r\nRESET\r\nPING\r\n",
		"POST / HTTP/1.1\r\nHost: x\r\n\r\nPING\r\n", "host: x\r\nPING\r\n", "GET / HTTP/1.1\r\n",
		"QUIT\r\nPING\r\n",
	} {
		ours, err := srv.Dialer()(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		var answers [2]string
		for i, nc := range []net.Conn{redis(), ours} {
			nc.SetDeadline(time.Now().Add(10 * time.Second))
			go io.WriteString(nc, in+"QUIT\r\n") // a pipe takes it only while its answers are read
			b, _ := io.ReadAll(nc)               // after which Redis may reset the connection
			answers[i] = string(b)
			nc.Close()
		}
		if answers[0] != answers[1] {
			t.Errorf("%.80q:\n%.300q, Redis\n%.300q", in, answers[1], answers[0])
		}
	}
}

// Commands that have another name, or none, are called in the same way everywhere as
// in Redis: by the new name where they are called, by their own in rules and figures.
func TestRenamedAsRedis(t *testing.T) {
	redis := asker(t, startRedis(t, "--rename-command", "CONFIG", "hidden", "--rename-command", "FLUSHALL", "", "--rename-command", "get", "fetch")())
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
	zsetd := asker(t, nc)
	slowlog := func(ask func(...string) any) any { // the names that the slow log has
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
		{"ACL", "DRYRUN", "d", "fetch", "k"}, {"MULTI"}, {"fetch", "k"}, {"get", "k"}, {"EXEC"},
	} {
		if got, want := fmt.Sprint(zsetd(argv...)), fmt.Sprint(redis(argv...)); got != want {
			t.Errorf("%q:\n%s\n%s, Redis", argv, got, want)
		}
	}
	if got, want := fmt.Sprint(slowlog(zsetd)), fmt.Sprint(slowlog(redis)); got != want {
		t.Errorf("the slow log has %s, that of Redis %s", got, want)
	}
}

// Limits of what a client may send are those of Redis, to the byte.
func TestInputLimitsAsRedis(t *testing.T) {
	dial := startRedis(t, "--proto-max-bulk-len", "1mb", "--client-query-buffer-limit", "1mb")
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
			nc.SetDeadline(time.Now().Add(500 * time.Millisecond)) // some of it is half a command, for which both wait
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
