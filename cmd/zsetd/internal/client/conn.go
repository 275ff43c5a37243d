package client

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strconv"
)

// Conn is a connection to a server. Close may be called concurrently, and ends a
// Receive; the other methods need exclusive access.
type Conn struct {
	nc net.Conn
	r  *bufio.Reader
	w  *bufio.Writer
}

// Dial connects to the server, without a login.
func Dial(ctx context.Context, o *Options) (*Conn, error) {
	network := "tcp"
	if o.Socket != "" {
		network = "unix"
	}
	var nc net.Conn
	var err error
	if o.Secure {
		config, configErr := o.tlsConfig()
		if configErr != nil {
			return nil, configErr
		}
		nc, err = (&tls.Dialer{Config: config}).DialContext(ctx, network, o.Address())
	} else {
		nc, err = (&net.Dialer{}).DialContext(ctx, network, o.Address())
	}
	if err != nil {
		return nil, err
	}
	return &Conn{nc: nc, r: bufio.NewReader(nc), w: bufio.NewWriter(nc)}, nil
}

// Login sends user, password, version of the protocol and database. refused are the
// error replies, each with its command; the connection is usable nevertheless.
func (c *Conn) Login(o *Options) (refused []error, err error) {
	var commands [][]string
	switch {
	case o.Password != "" && o.User != "":
		commands = append(commands, []string{"AUTH", o.User, o.Password})
	case o.Password != "":
		commands = append(commands, []string{"AUTH", o.Password})
	}
	switch {
	case o.RESP3:
		commands = append(commands, []string{"HELLO", "3"})
	case o.RESP2:
		commands = append(commands, []string{"HELLO", "2"})
	}
	if o.DB != 0 {
		commands = append(commands, []string{"SELECT", strconv.Itoa(o.DB)})
	}
	for _, words := range commands {
		reply, err := c.Do(words...)
		if err != nil {
			return nil, err
		}
		if reply.IsError() {
			name := words[0]
			if name != "AUTH" {
				name += " " + words[1]
			}
			refused = append(refused, fmt.Errorf("%s failed: %s", name, reply.Text))
		}
	}
	return refused, nil
}

// Send sends a command.
func (c *Conn) Send(words ...string) error {
	fmt.Fprintf(c.w, "*%d\r\n", len(words))
	for _, word := range words {
		fmt.Fprintf(c.w, "$%d\r\n", len(word))
		c.w.WriteString(word)
		c.w.WriteString("\r\n")
	}
	return c.w.Flush()
}

// Receive returns the next reply or push message. The error is io.EOF if the server has
// closed the connection.
func (c *Conn) Receive() (Reply, error) { return ReadReply(c.r) }

// Do sends a command and returns its reply. It skips push messages.
func (c *Conn) Do(words ...string) (Reply, error) {
	if err := c.Send(words...); err != nil {
		return Reply{}, err
	}
	for {
		reply, err := c.Receive()
		if err != nil || reply.Kind != Push {
			return reply, err
		}
	}
}

// Close closes the connection.
func (c *Conn) Close() error { return c.nc.Close() }
