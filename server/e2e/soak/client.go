//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/zsetd/zsetd/protocol"
)

// A client is a connection. A reply is a string, an int64, a float64, nil, an errorReply,
// or an []any of replies; the pairs of a map are two elements each.
type client struct {
	nc     net.Conn
	r      *bufio.Reader
	w      []byte
	pushed func([]any) // receives the messages that come between replies
}

// errorReply is an error that the server has replied.
type errorReply = protocol.ReplyError

// answerTime is how long a reply may take: long enough for a machine that is
// busy with much else, and short enough to notice a server that hangs.
const answerTime = 90 * time.Second

func dial(addr string) (*client, error) {
	nc, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		return nil, err
	}
	return &client{nc: nc, r: bufio.NewReaderSize(nc, 16<<10)}, nil
}

func (c *client) close() { c.nc.Close() }

// reset ends the connection as a crash of the machine would: by RST.
func (c *client) reset() {
	c.nc.(*net.TCPConn).SetLinger(0)
	c.nc.Close()
}

func appendCommand(b []byte, args []string) []byte {
	b = append(strconv.AppendInt(append(b, '*'), int64(len(args)), 10), "\r\n"...)
	for _, a := range args {
		b = append(strconv.AppendInt(append(b, '$'), int64(len(a)), 10), "\r\n"...)
		b = append(append(b, a...), "\r\n"...)
	}
	return b
}

// send sends commands without waiting for their replies.
func (c *client) send(commands ...[]string) error {
	c.w = c.w[:0]
	for _, args := range commands {
		c.w = appendCommand(c.w, args)
	}
	c.nc.SetWriteDeadline(time.Now().Add(answerTime))
	_, err := c.nc.Write(c.w)
	return err
}

// read waits for a reply.
func (c *client) read() (any, error) { return c.readFor(answerTime) }

func (c *client) readFor(limit time.Duration) (any, error) {
	c.nc.SetReadDeadline(time.Now().Add(limit))
	for {
		v, err := protocol.DecodeFrom(c.r)
		if err != nil {
			return nil, err
		}
		message, pushed := v.(protocol.Push)
		if !pushed {
			return plain(v), nil
		}
		if c.pushed != nil {
			c.pushed(list(plain([]any(message))))
		}
	}
}

// plain makes a reply of RESP3 one that has only the types of RESP2, and float64.
func plain(v any) any {
	switch v := v.(type) {
	case protocol.Status:
		return string(v)
	case bool:
		if v {
			return int64(1)
		}
		return int64(0)
	case protocol.Map:
		l := make([]any, 0, 2*len(v))
		for _, p := range v {
			l = append(l, plain(p.Key), plain(p.Value))
		}
		return l
	case protocol.Set:
		return plain([]any(v))
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	}
	return v
}

func (c *client) do(args ...string) (any, error) {
	if err := c.send(args); err != nil {
		return nil, err
	}
	return c.read()
}

// ask sends commands at once and reads their replies. The first reply that is an
// error is the error.
func (c *client) ask(commands ...[]string) ([]any, error) {
	if err := c.send(commands...); err != nil {
		return nil, err
	}
	replies := make([]any, len(commands))
	var bad error
	for i, args := range commands {
		r, err := c.read()
		if err != nil {
			return nil, err
		}
		if e, is := r.(errorReply); is && bad == nil {
			bad = &refusal{args, e}
		}
		replies[i] = r
	}
	return replies, bad
}

// timedOut reports whether an error is that a reply did not come in time.
func timedOut(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

// show writes a reply for people.
func show(v any) string {
	switch v := v.(type) {
	case nil:
		return "nil"
	case string:
		if len(v) > 200 {
			return fmt.Sprintf("%q… (%d bytes)", v[:200], len(v))
		}
		return strconv.Quote(v)
	case errorReply:
		return "error " + string(v)
	case []any:
		var parts []string
		for i, e := range v {
			if i == 40 {
				parts = append(parts, fmt.Sprintf("… (%d in all)", len(v)))
				break
			}
			parts = append(parts, show(e))
		}
		return "[" + strings.Join(parts, " ") + "]"
	case interface{ String() string }:
		return v.String()
	}
	return fmt.Sprint(v)
}

// text, number and list read a reply that must be of a kind.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return formatScore(v)
	}
	return ""
}

func number(v any) int64 {
	n, err := strconv.ParseInt(text(v), 10, 64)
	if err != nil {
		return math.MinInt64
	}
	return n
}

func float(v any) float64 {
	f, err := strconv.ParseFloat(text(v), 64)
	if err != nil {
		return math.NaN()
	}
	return f
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

// texts returns a reply that is a list of texts.
func texts(v any) (l []string) {
	for _, e := range list(v) {
		l = append(l, text(e))
	}
	return l
}

func formatScore(f float64) string { return strconv.FormatFloat(f, 'g', 17, 64) }
