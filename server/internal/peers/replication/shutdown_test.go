package replication_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// silentReplica makes the server wait for a replica at its stop: it receives everything
// and acknowledges nothing. The returned function acknowledges everything.
func silentReplica(t *testing.T, p *pair) func() {
	c := dialLines(t, p)
	fmt.Fprint(c, "REPLCONF capa psync2\r\n")
	c.expect("+OK")
	fmt.Fprint(c, "PSYNC ? -1\r\n")
	go io.Copy(io.Discard, c)
	wait.Until(t, "the replica is online", func() bool { return strings.Contains(p.primary.Info("slave0"), "state=online") })
	p.run("SET key value")
	return func() { fmt.Fprintf(c, "REPLCONF ACK %s\r\n", p.primary.Info("master_repl_offset")) }
}

// lineReader is a connection whose replies are lines.
type lineReader struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

func dialLines(t *testing.T, p *pair) *lineReader {
	nc, err := net.Dial("tcp", p.srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	return &lineReader{t, nc, bufio.NewReader(nc)}
}

func (c *lineReader) expect(want string) {
	c.t.Helper()
	if got, err := c.r.ReadString('\n'); got != want+"\r\n" {
		c.t.Fatalf("got %q, %v; want %q", got, err, want)
	}
}

// TestShutdownAbort checks SHUTDOWN ABORT while the server waits for a replica: the server
// continues, with the commands that the wait has held back.
func TestShutdownAbort(t *testing.T) {
	const failed = "-ERR Errors trying to SHUTDOWN. Check logs."
	begin := map[string]func(p *pair, c *lineReader) (await func()){
		"command": func(p *pair, c *lineReader) func() {
			fmt.Fprint(c, "SHUTDOWN NOSAVE\r\n")
			return func() { c.expect(failed) }
		},
		"Shutdown": func(p *pair, c *lineReader) func() {
			done := make(chan error, 1)
			go func() { done <- p.srv.Shutdown(context.Background()) }()
			return func() {
				if err := <-done; !errors.Is(err, server.ErrShutdownAborted) {
					p.t.Errorf("Shutdown: %v", err)
				}
			}
		},
	}
	for name, begin := range begin {
		t.Run(name, func(t *testing.T) {
			p := primaryOf(t, map[string]string{"shutdown-timeout": "3600"})
			acknowledge := silentReplica(t, p)
			for n := range 2 {
				caller, writer := dialLines(t, p), dialLines(t, p)
				await := begin(p, caller)
				wait.Until(t, "the stop pauses writes", func() bool { return p.primary.Info("shutdown_in_milliseconds") != "" })
				fmt.Fprint(writer, "INCR n\r\nPING\r\n")
				wait.Until(t, "the write waits", func() bool { return p.primary.Info("blocked_clients") != "0" })
				if got := p.primary.Do("SHUTDOWN", "ABORT"); got != "+OK\r\n" {
					t.Fatalf("SHUTDOWN ABORT: %q", got)
				}
				await()
				writer.expect(fmt.Sprint(":", n+1))
				writer.expect("+PONG")
				if got := p.primary.Do("SHUTDOWN", "ABORT"); got != "-ERR No shutdown in progress.\r\n" {
					t.Fatalf("a second SHUTDOWN ABORT: %q", got)
				}
			}
			begin(p, dialLines(t, p))
			wait.Until(t, "the server ends once the replica has everything", func() bool {
				acknowledge()
				return p.srv.Ready(context.Background()) != nil
			})
		})
	}
}
