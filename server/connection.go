package server

import "github.com/zsetd/zsetd/protocol"

func connectionCommands() []Command {
	return []Command{
		{Facts: protocol.Facts{
			Name: "auth", Arity: -2, Flags: "noscript loading stale fast no_auth allow_busy",
			Group: "connection", Since: "1.0.0", Complexity: "O(N) where N is the number of passwords defined for the user",
			Summary: "Authenticate to the server",
			Syntax:  "[username@6.0.0] password",
			History: []string{"6.0.0 Added ACL style (username and password)."},
		}, run: auth, ofConnection: true},
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
		}, run: hello, ofConnection: true},
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
		}, run: quit, ofConnection: true},
		{Facts: protocol.Facts{
			Name: "reset", Arity: 1, Flags: "noscript loading stale fast no_auth allow_busy",
			Group: "connection", Since: "6.2.0", Complexity: "O(1)",
			Summary: "Reset the connection",
		}, run: reset, ofConnection: true},
		{Facts: protocol.Facts{
			Name: "select", Arity: 2, Flags: "loading stale fast",
			Group: "connection", Since: "1.0.0", Complexity: "O(1)",
			Summary: "Change the selected database for the current connection",
			Syntax:  "index",
		}, run: selectCommand, ofConnection: true},
	}
}

// redisVersion is the version of Redis whose commands and replies zsetd implements.
// Clients read it to find out which features they may use.
const redisVersion = "7.2.4"

// extensionSince is the version in COMMAND DOCS for commands that Redis does not have:
// the version of zsetd that introduced them.
const extensionSince = "zsetd 0.1.0"

const errWrongPass = "WRONGPASS invalid username-password pair or user is disabled."

// setDefaultUser gives the session the default user, as a new session has.
func (s *Session) setDefaultUser() {
	s.user, s.authenticated = s.srv.acl.standard, !s.srv.acl.loginRequired.Load()
}

// setOwner gives the session the embedding program's user, which is unrestricted.
func (s *Session) setOwner() { s.user, s.authenticated = s.srv.acl.owner, true }

// credentials returns the user of that name if the password is right, and otherwise
// logs the attempt and returns nil.
func (c *Call) credentials(name, password []byte) *user {
	if u := c.srv.acl.users[string(name)]; u.accepts(password) {
		return u
	}
	c.sess.logDenial(deniedAuth, c.sess.denialContext(), string(c.argv[0]), string(name))
	return nil
}

// login gives the session the user u.
func (s *Session) login(u *user) { s.user, s.authenticated = u, true }

func auth(c *Call) {
	name, password := []byte(defaultUser), c.Bytes()
	c.redact(1)
	c.redact(2)
	if c.Len() > 0 {
		name, password = password, c.Bytes()
	} else if c.srv.acl.standard.nopass {
		c.Fail("ERR AUTH <password> called without any password configured for the default user. " +
			"Are you sure your configuration is correct?")
	}
	if !c.end() {
		return
	}
	u := c.credentials(name, password)
	if u == nil {
		c.Reply.Error(errWrongPass)
		return
	}
	c.sess.login(u)
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
	var u *user
	var name []byte
	named := false
	for c.More() {
		switch {
		case c.Len() >= 3 && c.Is("AUTH"):
			c.redact(1 + c.Pos())
			c.redact(2 + c.Pos())
			if u = c.credentials(c.Bytes(), c.Bytes()); u == nil {
				c.Fail(errWrongPass)
			}
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
	if u != nil {
		s.login(u)
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
	r.BulkString(s.srv.mode())
	r.BulkString("role")
	r.BulkString("master")
	r.BulkString("modules")
	r.Array(0)
}

const errClientName = "ERR Client names cannot contain spaces, newlines or special characters."

// validClientName reports whether CLIENT LIST can contain a name.
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
	if s.replies != replySkip { // a skip concerns this reply
		s.replies = replyOn
	}
	s.setDefaultUser()
	c.Reply.SetVersion(2)
	c.Reply.Status("RESET")
}

func selectCommand(c *Call) {
	if n, ok := protocol.ParseInt(c.Peek(0)); ok && n != 0 && n == int64(int32(n)) && c.srv.cluster != nil {
		c.notClustered("select")
		return
	}
	db := c.database()
	if !c.ok() {
		return
	}
	c.sess.db = db
	c.Reply.OK()
}
