package server_test

import (
	"fmt"
	"io"
	"net"
	"strings"
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
