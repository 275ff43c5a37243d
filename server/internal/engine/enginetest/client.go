package enginetest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/zsetd/zsetd/protocol"
)

// Client sends and reads bytes of the protocol.
type Client struct {
	t *testing.T
	net.Conn
	R *bufio.Reader // of the connection
}

// Dial connects to an address.
func Dial(t *testing.T, addr string) *Client {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return NewClient(t, c)
}

// NewClient returns the client of a connection.
func NewClient(t *testing.T, c net.Conn) *Client {
	c.SetDeadline(time.Now().Add(time.Minute))
	t.Cleanup(func() { c.Close() })
	return &Client{t, c, bufio.NewReader(c)}
}

// Pipe connects to a server without a socket.
func Pipe(t *testing.T, srv *Server) *Client {
	nc, err := srv.Dialer()(context.Background(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	return NewClient(t, nc)
}

// Send sends bytes.
func (c *Client) Send(s string) {
	c.t.Helper()
	if _, err := io.WriteString(c, s); err != nil {
		c.t.Fatal(err)
	}
}

// Reply reads a reply.
func (c *Client) Reply() any {
	c.t.Helper()
	v, err := protocol.DecodeFrom(c.R)
	if err != nil {
		c.t.Fatal(err)
	}
	return v
}

// Expect reads a reply that must be this one.
func (c *Client) Expect(want string) {
	c.t.Helper()
	if got := fmt.Sprint(c.Reply()); got != want {
		c.t.Fatalf("got %.200q, want %.200q", got, want)
	}
}

// All returns the bytes that the server sends until it closes the connection.
func (c *Client) All() string {
	c.t.Helper()
	b, err := io.ReadAll(c.R)
	if err != nil {
		c.t.Fatalf("after %q: %v", b, err)
	}
	return string(b)
}

// Call sends a line, which the server splits at spaces, and returns the reply.
func (c *Client) Call(line string) any {
	c.t.Helper()
	c.Send(line + "\r\n")
	return c.Reply()
}
