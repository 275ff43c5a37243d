package admin_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
	"github.com/zsetd/zsetd/server/servertest"
	"github.com/zsetd/zsetd/server/servertest/wait"

	"github.com/zsetd/zsetd/server/servertest/judge"
)

// TestDroppedClientFlags checks the flags of clients whose user is deleted: CLIENT LIST
// of the same transaction has them, as a real Redis does.
func TestDroppedClientFlags(t *testing.T) {
	srv, err := server.New(server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Close() })
	ours := func() net.Conn {
		nc, err := srv.Dialer()(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
		return nc
	}
	dials := []func() net.Conn{ours, judge.Start(t)}
	fill := strings.Repeat("GET big\r\n", 100) // more than sockets hold
	for _, c := range []struct{ name, send, flags string }{
		{"idle", "", "A"},
		{"closing", fill + "QUIT\r\n", "cA"},
		{"closing, with tracking", "HELLO 3\r\nCLIENT TRACKING ON BCAST\r\n" + fill + "QUIT\r\n", "tBcA"},
		{"blocked", "BLPOP nothing 0\r\n", "bA"},
		{"in a transaction", "WATCH k\r\nMULTI\r\n", "xA"},
		{"subscribed", "SUBSCRIBE ch\r\n", "PA"},
		{"monitoring", "MONITOR\r\n", "OA"},
	} {
		for i, dial := range dials {
			admin, client := enginetest.NewClient(t, dial()), enginetest.NewClient(t, dial())
			admin.Call("ACL SETUSER alice on nopass +@all ~* &*")
			admin.Call("SETRANGE big 100000 x")
			id := fmt.Sprint(client.Call("CLIENT ID"))
			client.Call("AUTH alice any")
			go fmt.Fprint(client, c.send)
			state := func(list string) (flags, user string) {
				for line := range strings.Lines(list) {
					if strings.HasPrefix(line, "id="+id+" ") {
						for _, field := range strings.Fields(line) {
							if value, ok := strings.CutPrefix(field, "flags="); ok {
								flags = strings.ReplaceAll(value, "U", "") // of a unix socket
							}
							if value, ok := strings.CutPrefix(field, "user="); ok {
								user = value
							}
						}
					}
				}
				return flags, user
			}
			want := strings.TrimSuffix(c.flags, "A")
			wait.Until(t, "the client is "+c.name, func() bool {
				flags, _ := state(fmt.Sprint(admin.Call("CLIENT LIST")))
				return strings.Trim(flags, "N") == want
			})
			for _, line := range []string{"MULTI", "ACL DELUSER alice", "CLIENT LIST"} {
				admin.Call(line)
			}
			list := strings.TrimPrefix(fmt.Sprint(admin.Call("EXEC")), "[1 ")
			if flags, user := state(list); flags != c.flags || user != "default" {
				t.Errorf("%s, server %d: flags %q of user %q, want %q of the default user", c.name, i, flags, user, c.flags)
			}
			wait.Until(t, "the client is gone", func() bool { flags, _ := state(fmt.Sprint(admin.Call("CLIENT LIST"))); return flags == "" })
			client.Close()
		}
	}
}

// TestClientConditions checks each condition of CLIENT LIST and CLIENT KILL on clients that differ
// in it.
func TestClientConditions(t *testing.T) {
	srv := servertest.Run(t, server.Options{Config: map[string]string{"user": "other on nopass ~* &* +@all"}})
	n := judge.NewPeer(enginetest.Dial(t, srv.Addr()), enginetest.Dial(t, srv.Addr()))
	for _, one := range []struct{ setup, condition string }{
		{"CLIENT SETNAME mine", "NAME mine"},
		{"CLIENT SETINFO lib-name mine", "LIB-NAME mine"},
		{"CLIENT SETINFO lib-ver 1.2", "LIB-VER 1.2"},
		{"AUTH other x", "USER other"},
		{"SELECT 3", "DB 3"},
		{"SUBSCRIBE c", "TYPE pubsub"},
		{"SUBSCRIBE c", "FLAGS P"},
		{"CLIENT NO-EVICT on", "FLAGS e"},
		{"CLIENT CAPA redirect", "CAPA r"},
		{"PING", "IP 127.0.0.2"},
	} {
		from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
		nc, err := from.DialContext(t.Context(), "tcp", srv.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		nc.SetDeadline(time.Now().Add(time.Minute))
		r := bufio.NewReader(nc)
		fmt.Fprint(nc, "CLIENT ID\r\n")
		mine, _ := r.ReadString('\n')
		mine = strings.Trim(mine, ":\r\n")
		fmt.Fprint(nc, one.setup+"\r\n")
		if reply, err := r.ReadString('\n'); err != nil || reply[0] == '-' {
			t.Fatal(one.setup, reply, err)
		}
		words := strings.Fields(one.condition)
		list := func(words ...string) string { return n.Do(append([]string{"CLIENT", "LIST"}, words...)...) }
		if got := list(words...); strings.Count(got, "id=") != 1 || !strings.Contains(got, "id="+mine+" ") {
			t.Errorf("LIST %s: %q, want %s alone", one.condition, got, mine)
		}
		if got := list("NOT-"+words[0], words[1]); strings.Contains(got, "id="+mine+" ") || !strings.Contains(got, "id=") {
			t.Errorf("LIST NOT-%s: %q, want others than %s", one.condition, got, mine)
		}
		if one.setup == "PING" { // the condition of old, without a name
			words = []string{nc.LocalAddr().String()}
		}
		if got := n.Do(append([]string{"CLIENT", "KILL"}, words...)...); got != ":1\r\n" && (got != "+OK\r\n" || len(words) != 1) {
			t.Errorf("KILL %s: %q", one.condition, got)
		}
		if _, err := io.Copy(io.Discard, r); err != nil {
			t.Errorf("KILL %s: %v", one.condition, err)
		}
	}
}
