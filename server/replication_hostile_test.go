package server_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/internal/rerun"
	"github.com/zsetd/zsetd/server/servertest/wait"
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
		"impossible offsets":    "PSYNC " + p.primary.info("master_replid") + " -9223372036854775808\r\n",
		"offsets of the future": "PSYNC " + p.primary.info("master_replid") + " 9223372036854775807\r\n",
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
			if got := p.primary.do("PING"); got != "+PONG\r\n" {
				t.Fatal(got)
			}
		})
	}
	// One that has acknowledged what it has not must not count in WAIT.
	wait.Until(t, "they have left", func() bool { return p.primary.info("connected_slaves") == "1" })
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
		if got := p.primary.do("SET", "big", value); got != "+OK\r\n" {
			t.Fatal(got)
		}
	}
	p.primary.do("SET", "stolen", "2")
	p.primary.do("DEL", "big")
	p.linked()
	p.equal()
	for _, nc := range stuck {
		nc.Close()
	}
	wait.Until(t, "only one replica is left", func() bool { return p.primary.info("connected_slaves") == "1" })
	if got := p.primary.do("GET", "stolen"); got != "$1\r\n2\r\n" {
		t.Errorf("stolen is %q", got)
	}
}
