package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/internal/transcript"
)

// patience is the time for a reply that must come.
const patience = time.Minute

// conn is a connection to a server.
type conn struct {
	nc     net.Conn
	r      *bufio.Reader
	closed bool // by the server
}

// newConn returns a connection that uses nc.
func newConn(nc net.Conn) *conn { return &conn{nc: nc, r: bufio.NewReaderSize(nc, 64<<10)} }

// send sends bytes.
func (c *conn) send(b []byte) error {
	c.nc.SetWriteDeadline(time.Now().Add(patience))
	_, err := c.nc.Write(b)
	return err
}

// receive returns the next reply, encoded, or closed.
func (c *conn) receive(wait time.Duration) (string, error) {
	c.nc.SetReadDeadline(time.Now().Add(wait))
	// Nothing is consumed when nothing comes in time.
	if _, err := c.r.Peek(1); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return "", err
		}
		c.closed = true
		return transcript.Closed, nil
	}
	c.nc.SetReadDeadline(time.Now().Add(patience))
	b, err := transcript.ReadReply(c.r, nil)
	return string(b), err
}

func (c *conn) roundtrip(t *testing.T, words ...string) string {
	t.Helper()
	if err := c.send(transcript.AppendCommand(nil, words)); err != nil {
		t.Fatal(err)
	}
	r, err := c.receive(patience)
	if err != nil {
		t.Fatalf("%s: %v", words, err)
	}
	return r
}

// pipeline sends command lines and returns their replies.
func (c *conn) pipeline(lines [][]string) ([]string, error) {
	var b []byte
	for _, argv := range lines {
		b = transcript.AppendCommand(b, argv)
	}
	sent := make(chan error, 1)
	go func() { sent <- c.send(b) }()
	replies := make([]string, 0, len(lines))
	c.nc.SetReadDeadline(time.Now().Add(time.Minute))
	var buf []byte
	for i := range lines {
		var err error
		buf, err = transcript.ReadReply(c.r, buf[:0])
		if err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				err = errors.New("the connection was closed")
			}
			return replies, fmt.Errorf("no reply to %q: %w (%d bytes %.80q)", lines[i], err, len(buf), buf)
		}
		replies = append(replies, string(buf))
	}
	return replies, <-sent
}

// peer is a server: a connection for commands, and one for events.
type peer struct {
	cmd, events *conn
}

func newPeer(cmd, events net.Conn) *peer {
	return &peer{newConn(cmd), newConn(events)}
}

// ownPeer starts a zsetd server, which stops at the end of the test.
func ownPeer(t testing.TB, o server.Options) *peer {
	t.Helper()
	srv, err := server.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Close() })
	if err := srv.Ready(context.Background()); err != nil {
		t.Fatal(err)
	}
	dial := func() net.Conn {
		nc, err := srv.Dialer()(context.Background(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		return nc
	}
	return newPeer(dial(), dial())
}

// pipeline sends command lines and returns their replies.
func (p *peer) pipeline(lines [][]string) ([]string, error) { return p.cmd.pipeline(lines) }

func (p *peer) do(argv ...string) string {
	r, err := p.pipeline([][]string{argv})
	if err != nil {
		return err.Error()
	}
	return r[0]
}

// info returns a field of a peer's INFO.
func (p *peer) info(field string) string {
	for line := range strings.Lines(p.do("INFO", "everything")) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && name == field {
			return value
		}
	}
	return ""
}
