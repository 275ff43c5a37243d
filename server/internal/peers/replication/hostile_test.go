package replication_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/servertest/rerun"
	"github.com/zsetd/zsetd/server/servertest/wait"

	"github.com/zsetd/zsetd/server/servertest/judge"
)

// TestHostileReplica checks that replicas which break the protocol, leave at any time or
// ask again and again harm neither the primary nor another replica.
func TestHostileReplica(t *testing.T) {
	p := primaryOf(t, map[string]string{"client-output-buffer-limit": "replica 4mb 0 0"})
	p.run(values()...)
	p.follow()
	dial := func() net.Conn {
		nc, err := net.Dial("tcp", p.srv.Addr())
		if err != nil {
			t.Fatal(err)
		}
		nc.SetDeadline(time.Now().Add(time.Minute))
		return nc
	}
	garbage := strings.Repeat("\x00\xff*3\r\n$-1\r\n", 100)
	for name, say := range map[string]string{
		"garbage after PSYNC":   "PSYNC ? -1\r\n" + garbage,
		"garbage after SYNC":    "SYNC\r\n" + garbage,
		"impossible ACKs":       "PSYNC ? -1\r\nREPLCONF ACK 9223372036854775807\r\nREPLCONF ACK -9223372036854775808\r\nREPLCONF ACK x\r\n",
		"ACKs before PSYNC":     "REPLCONF ACK 100\r\nPSYNC ? -1\r\n",
		"commands after PSYNC":  "PSYNC ? -1\r\nSET stolen 1\r\nFLUSHALL\r\nPSYNC ? -1\r\nSYNC\r\nMULTI\r\nEXEC\r\nSUBSCRIBE c\r\n",
		"PSYNC within MULTI":    "MULTI\r\nPSYNC ? -1\r\nEXEC\r\n",
		"impossible offsets":    "PSYNC " + p.primary.Info("master_replid") + " -9223372036854775808\r\n",
		"offsets of the future": "PSYNC " + p.primary.Info("master_replid") + " 9223372036854775807\r\n",
		"half a command":        "PSYNC ? -1\r\n*2\r\n$8\r\nREPLC",
		"a long announcement":   "REPLCONF ip-address " + strings.Repeat("x", 300) + "\r\nREPLCONF capa " + strings.Repeat("y", 10_000) + "\r\nPSYNC ? -1\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			for _, read := range []int64{0, 1, 5000} { // bytes before it leaves
				nc := dial()
				fmt.Fprint(nc, say)
				nc.SetReadDeadline(time.Now().Add(50 * time.Millisecond)) // some get less
				io.CopyN(io.Discard, nc, read)
				nc.Close()
			}
			if got := p.primary.Do("PING"); got != "+PONG\r\n" {
				t.Fatal(got)
			}
		})
	}
	// One that has acknowledged what it has not must not count in WAIT.
	wait.Until(t, "they have left", func() bool { return p.primary.Info("connected_slaves") == "1" })
	// Very many that ask for the data and never read.
	var stuck []net.Conn
	many := 200
	if rerun.Race { // each transfer is ten times as slow
		many = 40
	}
	for range many {
		nc := dial()
		defer nc.Close()
		fmt.Fprint(nc, "SYNC\r\n")
		stuck = append(stuck, nc)
	}
	value := strings.Repeat("v", 1<<20)
	for range 16 {
		if got := p.primary.Do("SET", "big", value); got != "+OK\r\n" {
			t.Fatal(got)
		}
	}
	p.primary.Do("SET", "stolen", "2")
	p.primary.Do("DEL", "big")
	p.linked()
	p.equal()
	for _, nc := range stuck {
		nc.Close()
	}
	wait.Until(t, "only one replica is left", func() bool { return p.primary.Info("connected_slaves") == "1" })
	if got := p.primary.Do("GET", "stolen"); got != "$1\r\n2\r\n" {
		t.Errorf("stolen is %q", got)
	}
}

// TestRepliesToReplicas checks that a command of a replica which has a reply ends the
// connection in place of it, as in Redis, and that others do not.
func TestRepliesToReplicas(t *testing.T) {
	t.Run("zsetd", func(t *testing.T) {
		p := primaryOf(t, nil)
		testRepliesToReplicas(t, p.dial, p.primary)
	})
	t.Run("redis", func(t *testing.T) {
		dial := judge.StartNewer(t, "--repl-diskless-sync-delay", "0")
		testRepliesToReplicas(t, dial, judge.NewPeer(dial(), dial()))
	})
}

func testRepliesToReplicas(t *testing.T, dial func() net.Conn, primary *judge.Peer) {
	for _, c := range []struct{ command, reply string }{ // no reply: it stays
		{"PING", "+PONG"},
		{"GET foo", "-ERR"},
		{"get", "-ERR"},
		{"XINFO HELP", "+XINFO"},
		{"nosuch", "-ERR"},
		{"REPLCONF listening-port 7", "+OK"},
		{"REPLCONF nonsense x", "-ERR"},
		{"MULTI", "+OK"},
		{"QUIT", "+OK"},
		{"RESET", "-ERR"},
		{"WAIT 2 1", ":0\r\n"},
		{"SELECT 1", "+OK"},
		{"*1\r\n$-5", "-ERR"},
		{"REPLCONF ACK 0", ""},
		{"REPLCONF GETACK *", ""},
		{"CLIENT REPLY OFF", ""},
		{"MONITOR", ""},
		{"PSYNC ? -1", ""},
		{"SYNC", ""},
	} {
		failures := primary.Info("unexpected_error_replies")
		nc := dial()
		nc.SetDeadline(time.Now().Add(time.Minute))
		fmt.Fprint(nc, "REPLCONF capa eof capa psync2\r\n")
		in := bufio.NewReader(nc)
		in.ReadString('\n') // PSYNC wants it to be read
		fmt.Fprint(nc, "PSYNC ? -1\r\n")
		line, err := "\n", error(nil)
		for line == "\n" && err == nil { // sent while the transfer waits for the end of the one before
			line, err = in.ReadString('\n')
		}
		if !strings.HasPrefix(line, "+FULLRESYNC ") {
			t.Fatal(line, err)
		}
		if fmt.Fprint(nc, c.command+"\r\n"); c.reply == "" {
			name, sub, _ := strings.Cut(strings.ToLower(c.command), " ")
			if sub, _, _ = strings.Cut(sub, " "); name == "client" {
				name += "|" + sub
			}
			wait.Until(t, c.command+" has run", func() bool {
				return strings.Contains(primary.Do("CLIENT", "LIST", "TYPE", "replica"), "cmd="+name)
			})
			nc.Close()
		} else if rest, err := io.ReadAll(in); err != nil || strings.Contains(string(rest), c.reply) {
			t.Errorf("%s: %q, %v", c.command, rest, err)
		}
		want, _ := strconv.Atoi(failures)
		if c.reply == "-ERR" {
			want++
		}
		if got := primary.Info("unexpected_error_replies"); got != strconv.Itoa(want) {
			t.Errorf("%s: %s unexpected errors, want %d", c.command, got, want)
		}
		wait.Until(t, "the replica has left", func() bool { return primary.Info("connected_slaves") == "0" })
	}
}
