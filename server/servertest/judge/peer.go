package judge

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
	"github.com/zsetd/zsetd/server/internal/tests/transcript"
)

// Patience is the time for a reply that must come.
const Patience = time.Minute

// Conn is a connection to a server.
type Conn struct {
	NC     net.Conn
	R      *bufio.Reader
	Closed bool // by the server
}

// NewConn returns a connection that uses nc.
func NewConn(nc net.Conn) *Conn { return &Conn{NC: nc, R: bufio.NewReaderSize(nc, 64<<10)} }

// Send sends bytes.
func (c *Conn) Send(b []byte) error {
	c.NC.SetWriteDeadline(time.Now().Add(Patience))
	_, err := c.NC.Write(b)
	return err
}

// Receive returns the next reply, encoded, or transcript.Closed.
func (c *Conn) Receive(wait time.Duration) (string, error) {
	c.NC.SetReadDeadline(time.Now().Add(wait))
	// Nothing is consumed when nothing comes in time.
	if _, err := c.R.Peek(1); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return "", err
		}
		c.Closed = true
		return transcript.Closed, nil
	}
	c.NC.SetReadDeadline(time.Now().Add(Patience))
	b, err := transcript.ReadReply(c.R, nil)
	return string(b), err
}

// RoundTrip sends a command and returns the reply.
func (c *Conn) RoundTrip(t *testing.T, words ...string) string {
	t.Helper()
	if err := c.Send(transcript.AppendCommand(nil, words)); err != nil {
		t.Fatal(err)
	}
	r, err := c.Receive(Patience)
	if err != nil {
		t.Fatalf("%s: %v", words, err)
	}
	return r
}

// Pipeline sends command lines and returns their replies. After an error it closes the connection:
// a reply that came late would be taken for that of the next command.
func (c *Conn) Pipeline(lines [][]string) ([]string, error) {
	var b []byte
	for _, argv := range lines {
		b = transcript.AppendCommand(b, argv)
	}
	sent := make(chan error, 1)
	go func() { sent <- c.Send(b) }()
	replies := make([]string, 0, len(lines))
	c.NC.SetReadDeadline(time.Now().Add(time.Minute))
	var buf []byte
	for i := range lines {
		var err error
		buf, err = transcript.ReadReply(c.R, buf[:0])
		if err != nil {
			c.NC.Close()
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				err = errors.New("the connection was closed")
			}
			return replies, fmt.Errorf("no reply to %q: %w (%d bytes %.80q)", lines[i], err, len(buf), buf)
		}
		replies = append(replies, string(buf))
	}
	return replies, <-sent
}

// Peer is a server: a connection for commands, and one for events.
type Peer struct {
	Cmd, Events *Conn
}

// NewPeer returns the server of these connections.
func NewPeer(cmd, events net.Conn) *Peer {
	return &Peer{NewConn(cmd), NewConn(events)}
}

// Own starts a zsetd server, which stops at the end of the test.
func Own(t testing.TB, o server.Options) *Peer {
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
	return NewPeer(dial(), dial())
}

// Pipeline sends command lines and returns their replies.
func (p *Peer) Pipeline(lines [][]string) ([]string, error) { return p.Cmd.Pipeline(lines) }

// Do sends a command and returns the reply, or the error.
func (p *Peer) Do(argv ...string) string {
	r, err := p.Pipeline([][]string{argv})
	if err != nil {
		return err.Error()
	}
	return r[0]
}

// Info returns a field of INFO.
func (p *Peer) Info(field string) string {
	for line := range strings.Lines(p.Do("INFO", "everything")) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && name == field {
			return value
		}
	}
	return ""
}
