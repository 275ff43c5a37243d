package server

import (
	"crypto/subtle"

	"github.com/zsetd/zsetd/protocol"
)

func connectionCommands() []Command {
	return []Command{
		{Facts: protocol.Facts{
			Name: "auth", Arity: -2, Flags: "noscript loading stale fast no_auth allow_busy",
			Group: "connection", Since: "1.0.0", Complexity: "O(N) where N is the number of passwords defined for the user",
			Summary: "Authenticate to the server",
			Syntax:  "[username@6.0.0] password",
			History: []string{"6.0.0 Added ACL style (username and password)."},
		}, run: auth},
		{Facts: protocol.Facts{
			Name: "echo", Arity: 2, Flags: "loading stale fast",
			Group: "connection", Since: "1.0.0", Complexity: "O(1)",
			Summary: "Echo the given string",
			Syntax:  "message",
		}, run: echo},
		{Facts: protocol.Facts{
			Name: "hello", Arity: -1, Flags: "noscript loading stale fast no_auth allow_busy",
			Group: "connection", Since: "6.0.0", Complexity: "O(1)",
			Summary: "Handshake with Redis",
			Syntax:  "arguments:[protover [AUTH username password] [SETNAME clientname]]",
			History: []string{"6.2.0 `protover` made optional; when called without arguments the command reports the current connection's context."},
		}, run: hello},
		{Facts: protocol.Facts{
			Name: "ping", Arity: -1, Flags: "fast",
			Group: "connection", Since: "1.0.0", Tips: "request_policy:all_shards response_policy:all_succeeded",
			Complexity: "O(1)",
			Summary:    "Ping the server",
			Syntax:     "[message]",
		}, run: ping},
		{Facts: protocol.Facts{
			Name: "quit", Arity: -1, Flags: "noscript loading stale fast no_auth allow_busy",
			Group: "connection", Since: "1.0.0", Deprecated: "7.2.0", ReplacedBy: "just closing the connection",
			Complexity: "O(1)",
			Summary:    "Close the connection",
		}, run: quit},
		{Facts: protocol.Facts{
			Name: "reset", Arity: 1, Flags: "noscript loading stale fast no_auth allow_busy",
			Group: "connection", Since: "6.2.0", Complexity: "O(1)",
			Summary: "Reset the connection",
		}, run: reset},
		{Facts: protocol.Facts{
			Name: "select", Arity: 2, Flags: "loading stale fast",
			Group: "connection", Since: "1.0.0", Complexity: "O(1)",
			Summary: "Change the selected database for the current connection",
			Syntax:  "index",
		}, run: selectCommand},
	}
}

// redisVersion is the version of Redis whose commands and replies zsetd
// follows. Clients ask for it to find out what they may use.
const redisVersion = "7.2.4"

const errWrongPass = "WRONGPASS invalid username-password pair or user is disabled."

// login checks a password and logs the session in.
func (s *Session) login(user, password []byte) bool {
	want := s.srv.config.requirepass
	if string(user) != "default" || want != "" && subtle.ConstantTimeCompare(password, bytesOf(want)) != 1 {
		return false
	}
	s.user, s.authenticated = "default", true
	return true
}

func auth(c *Call) {
	user, password := []byte("default"), c.Bytes()
	c.redact(1)
	c.redact(2)
	if c.Len() > 0 {
		user, password = password, c.Bytes()
	} else if c.srv.config.requirepass == "" {
		c.Fail("ERR AUTH <password> called without any password configured for the default user. " +
			"Are you sure your configuration is correct?")
	}
	if !c.end() {
		return
	}
	if !c.sess.login(user, password) {
		c.Reply.Error(errWrongPass)
		return
	}
	c.Reply.OK()
}

func echo(c *Call) { c.Reply.Bulk(c.Bytes()) }

func hello(c *Call) {
	version := c.Reply.Version()
	if c.More() {
		version = int(c.IntIn(-1<<31, 1<<31-1, "ERR Protocol version is not an integer or out of range"))
		if c.Err() == "" && version != 2 && version != 3 {
			c.Fail("NOPROTO unsupported protocol version")
		}
	}
	var user, password, name []byte
	named := false
	for c.More() {
		switch {
		case c.Len() >= 3 && c.Is("AUTH"):
			c.redact(1 + c.Pos())
			c.redact(2 + c.Pos())
			user, password = c.Bytes(), c.Bytes()
		case c.Len() >= 2 && c.Is("SETNAME"):
			name, named = c.Bytes(), true
			if !validClientName(name) {
				c.Fail(errClientName)
			}
		default:
			c.Fail("ERR Syntax error in HELLO option '" + clip(c.Peek(0), 128) + "'")
		}
	}
	if !c.ok() {
		return
	}
	s := c.sess
	if user != nil && !s.login(user, password) {
		c.Reply.Error(errWrongPass)
		return
	}
	if !s.authenticated {
		c.Reply.Error("NOAUTH HELLO must be called with the client already authenticated, otherwise the " +
			"HELLO AUTH <user> <pass> option can be used to authenticate the client and select " +
			"the RESP protocol version at the same time")
		return
	}
	if named {
		s.name = string(name)
	}
	r := c.Reply
	r.SetVersion(version)
	r.Map(7)
	r.BulkString("server")
	r.BulkString("redis")
	r.BulkString("version")
	r.BulkString(redisVersion)
	r.BulkString("proto")
	r.Int(int64(version))
	r.BulkString("id")
	r.Int(s.id)
	r.BulkString("mode")
	r.BulkString("standalone")
	r.BulkString("role")
	r.BulkString("master")
	r.BulkString("modules")
	r.Array(0)
}

const errClientName = "ERR Client names cannot contain spaces, newlines or special characters."

// validClientName reports whether a name can stand in CLIENT LIST.
func validClientName(name []byte) bool {
	for _, b := range name {
		if b < '!' || b > '~' {
			return false
		}
	}
	return true
}

func ping(c *Call) {
	if c.Len() > 1 {
		c.Reply.Error(wrongArity("ping"))
		return
	}
	if c.sess.subscriptions() > 0 && c.Reply.Version() == 2 {
		c.Reply.Array(2)
		c.Reply.BulkString("pong")
		if c.Len() == 0 {
			c.Reply.BulkString("")
			return
		}
		c.Reply.Bulk(c.Bytes())
		return
	}
	if c.Len() == 0 {
		c.Reply.Status("PONG")
		return
	}
	c.Reply.Bulk(c.Bytes())
}

func quit(c *Call) {
	c.Reply.OK()
	c.sess.closing = true
}

func reset(c *Call) {
	s := c.sess
	s.reset()
	s.db = c.srv.keys.DB(0)
	s.name = ""
	s.noEvict, s.noTouch = false, false
	s.replies = replyOn
	s.user, s.authenticated = "default", c.srv.config.requirepass == ""
	c.Reply.SetVersion(2)
	c.Reply.Status("RESET")
}

func selectCommand(c *Call) {
	db := c.database()
	if !c.ok() {
		return
	}
	c.sess.db = db
	c.Reply.OK()
}
