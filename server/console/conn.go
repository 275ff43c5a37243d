package console

import (
	"bufio"
	"context"
	"net"
	"strconv"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server"
)

// conn is a connection in memory to the server, in RESP3.
type conn struct {
	nc     net.Conn
	r      *bufio.Reader
	stop   func() bool         // forgets the context
	rename func(string) string // CommandName of the server
}

// Sizes of the buffer of replies in bytes.
const (
	replyBuffer = 16 << 10
	feedBuffer  = 4 << 10 // of a source of events
)

// feedName is the name of the connections of sources of events.
const feedName = "http:events"

// dial connects, with a buffer of so many bytes for replies. The connection is closed when ctx ends.
func (c *Console) dial(ctx context.Context, buffer int) (*conn, error) {
	nc, err := c.srv.Dialer()(ctx, "", "")
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { nc.Close() })
	return &conn{nc, bufio.NewReaderSize(nc, buffer), stop, c.srv.CommandName}, nil
}

func (c *conn) close() {
	c.stop()
	c.nc.Close()
}

// do executes one command, given by the name of Redis, and returns its reply. Push messages
// before the reply are dropped.
func (c *conn) do(args ...string) (any, error) {
	if err := c.send(args...); err != nil {
		return nil, err
	}
	return c.reply()
}

// must executes a command and returns an error reply as an error.
func (c *conn) must(args ...string) (any, error) {
	reply, err := c.do(args...)
	if refused, is := reply.(protocol.ReplyError); is && err == nil {
		return nil, refused
	}
	return reply, err
}

// send sends a command, given by the name of Redis.
func (c *conn) send(args ...string) error {
	if name := c.rename(args[0]); name != "" {
		args = append([]string{name}, args[1:]...)
	}
	_, err := c.nc.Write(appendCommand(nil, args))
	return err
}

// ask executes one command, given by the name that clients call it, and returns its reply.
func (c *conn) ask(args ...string) (any, error) {
	if _, err := c.nc.Write(appendCommand(nil, args)); err != nil {
		return nil, err
	}
	return c.reply()
}

// reply reads the next reply that is no push message.
func (c *conn) reply() (any, error) {
	for {
		v, err := protocol.DecodeFrom(c.r)
		if _, push := v.(protocol.Push); !push || err != nil {
			return v, err
		}
	}
}

// ask executes one command, given by the name of Redis, with all permissions and apart from
// the statistics.
func (c *Console) ask(ctx context.Context, name string, args ...any) (reply any, err error) {
	if called := c.srv.CommandName(name); called != "" {
		name = called
	}
	return c.srv.Do(server.Apart(ctx), append([]any{name}, args...)...)
}

// appendCommand appends a command in RESP.
func appendCommand(b []byte, args []string) []byte {
	b = append(b, '*')
	b = strconv.AppendInt(b, int64(len(args)), 10)
	b = append(b, "\r\n"...)
	for _, arg := range args {
		b = append(b, '$')
		b = strconv.AppendInt(b, int64(len(arg)), 10)
		b = append(b, "\r\n"...)
		b = append(b, arg...)
		b = append(b, "\r\n"...)
	}
	return b
}
