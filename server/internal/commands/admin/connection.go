package admin

import (
	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/base/process"
	"github.com/zsetd/zsetd/server/internal/commands/data"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/acl"
)

// ConnectionCommands returns the rows of the commands on the connection.
func ConnectionCommands() []engine.Command {
	return []engine.Command{
		{Facts: protocol.Facts{
			Name: "auth", Arity: -2, Flags: "noscript loading stale fast no_auth allow_busy",
			Group: "connection", Since: "1.0.0", Complexity: "O(P), P passwords of the user",
			Summary: "Log in with a password, and the name of a user",
			Syntax:  "[username@6.0.0] password",
			History: []string{"6.0.0 `username`"},
		}, Run: auth, OfConnection: true, Secret: true},
		{Facts: protocol.Facts{
			Name: "echo", Arity: 2, Flags: "loading stale fast",
			Group: "connection", Since: "1.0.0", Complexity: "O(1)",
			Summary: "Reply with message",
			Syntax:  "message",
		}, Run: echo, Importable: true, Batching: engine.BatchAlways},
		{Facts: protocol.Facts{
			Name: "hello", Arity: -1, Flags: "noscript loading stale fast no_auth allow_busy",
			Group: "connection", Since: "6.0.0", Complexity: "O(1)",
			Summary: "Choose the version of the protocol, with AUTH and SETNAME in the same step",
			Syntax:  "arguments:[protover auth:[AUTH username password] [SETNAME clientname]]",
			History: []string{"6.2.0 No `protover`: the reply describes the connection"},
		}, Run: hello, OfConnection: true, Secret: true},
		{Facts: protocol.Facts{
			Name: "ping", Arity: -1, Flags: "fast",
			Group: "connection", Since: "1.0.0", Tips: "request_policy:all_shards response_policy:all_succeeded",
			Complexity: "O(1)",
			Summary:    "Reply with PONG, or with message",
			Syntax:     "[message]",
		}, Run: ping, WhileSubscribed: true, RefusedUnsaved: true, Importable: true, Batching: engine.BatchAlways},
		{Facts: protocol.Facts{
			Name: "quit", Arity: -1, Flags: "noscript loading stale fast no_auth allow_busy",
			Group: "connection", Since: "1.0.0", Deprecated: "7.2.0", ReplacedBy: "the client's end of the connection",
			Complexity: "O(1)",
			Summary:    "End the connection after the reply",
		}, Run: quit, OfConnection: true, InMulti: true, EndsQueueing: true, WhileSubscribed: true},
		{Facts: protocol.Facts{
			Name: "reset", Arity: 1, Flags: "noscript loading stale fast no_auth allow_busy",
			Group: "connection", Since: "6.2.0", Complexity: "O(N), N watched keys and subscriptions",
			Summary: "Return the connection to its initial state",
		}, Run: reset, OfConnection: true, InMulti: true, EndsQueueing: true, WhileSubscribed: true},
		{Facts: protocol.Facts{
			Name: "select", Arity: 2, Databases: protocol.FirstDatabase, Flags: "loading stale fast",
			Group: "connection", Since: "1.0.0", Complexity: "O(1)",
			Summary: "Choose the database of the connection",
			Syntax:  "index",
		}, Run: selectCommand, OfConnection: true, OtherDatabases: true, Importable: true},
	}
}

const errWrongPass = "WRONGPASS invalid username-password pair or user is disabled."

// credentials returns the user of that name if the password is right, and otherwise
// logs the attempt and returns nil.
func credentials(c *engine.Call, name, password []byte) *acl.User {
	if u := c.Engine.ACL.Users[string(name)]; u.Accepts(password) {
		return u
	}
	c.Session.LogDenial(acl.DeniedAuth, c.Session.DenialContext(), string(c.Argv[0]), string(name))
	return nil
}

// Login gives the session the user u.
func Login(s *engine.Session, u *acl.User) { s.Login.User, s.Login.Authenticated = u, true }

func auth(c *engine.Call) {
	name, password := []byte(acl.DefaultUser), c.Bytes()
	c.Redact(1)
	c.Redact(2)
	if c.Len() > 0 {
		name, password = password, c.Bytes()
	} else if c.Engine.ACL.Standard.Nopass {
		c.Fail("ERR AUTH <password> called without any password configured for the default user. " +
			"Are you sure your configuration is correct?")
	}
	if !c.End() {
		return
	}
	u := credentials(c, name, password)
	if u == nil {
		c.Reply.Error(errWrongPass)
		return
	}
	Login(c.Session, u)
	c.Reply.OK()
}

func echo(c *engine.Call) { c.Reply.Bulk(c.Bytes()) }

func hello(c *engine.Call) {
	resp := c.Reply.Version()
	if c.More() {
		resp = int(c.IntIn(-1<<31, 1<<31-1, "ERR Protocol version is not an integer or out of range"))
		if c.Err() == "" && resp != 2 && resp != 3 {
			c.Fail("NOPROTO unsupported protocol version")
		}
	}
	var name, user, password []byte
	named := false
	for c.More() {
		switch {
		case c.Len() >= 3 && c.Is("AUTH"):
			c.Redact(1 + c.Pos())
			c.Redact(2 + c.Pos())
			user, password = c.Bytes(), c.Bytes()
		case c.Len() >= 2 && c.Is("SETNAME"):
			name, named = c.Bytes(), true
			if !validClientName(name) {
				c.Fail(errClientName)
			}
		default:
			c.Fail("ERR Syntax error in HELLO option '" + engine.Clip(c.Peek(0), 128) + "'")
		}
	}
	if !c.OK() {
		return
	}
	s := c.Session
	if user != nil { // of the last AUTH
		u := credentials(c, user, password)
		if u == nil {
			c.Reply.Error(errWrongPass)
			return
		}
		Login(s, u)
	}
	if !s.Login.Authenticated {
		c.Reply.Error("NOAUTH HELLO must be called with the client already authenticated, otherwise the " +
			"HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select " +
			"the RESP protocol version at the same time")
		return
	}
	if named {
		s.Login.Name = string(name)
	}
	r := c.Reply
	r.SetVersion(resp)
	zone, fields := s.Engine.Config.AvailabilityZone(), 7
	if zone != "" {
		fields++
	}
	r.Map(fields)
	r.BulkString("server")
	r.BulkString("redis")
	r.BulkString("version")
	r.BulkString(process.RedisVersion)
	r.BulkString("proto")
	r.Int(int64(resp))
	r.BulkString("id")
	r.Int(s.ID)
	r.BulkString("mode")
	r.BulkString(mode(s.Engine))
	r.BulkString("role")
	r.BulkString("master")
	r.BulkString("modules")
	r.Array(0)
	if zone != "" {
		r.BulkString("availability_zone")
		r.BulkString(zone)
	}
}

const errClientName = "ERR Client names cannot contain spaces, newlines or special characters."

// validClientName reports whether a client can have a name. As in Redis, it is checked and
// listed up to a zero byte.
func validClientName(name []byte) bool {
	for _, b := range name {
		if b == 0 {
			break
		}
		if b < '!' || b > '~' {
			return false
		}
	}
	return true
}

func ping(c *engine.Call) {
	if c.Len() > 1 {
		c.Reply.Error(engine.WrongArity("ping"))
		return
	}
	if c.Session.Subscriptions().Len() > 0 && c.Reply.Version() == 2 {
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

func quit(c *engine.Call) {
	c.Reply.OK()
	c.Session.CloseAfterReply()
}

func reset(c *engine.Call) {
	s := c.Session
	if s.Modes.Replica {
		c.Reply.Error("ERR can only reset normal client connections")
		return
	}
	s.Reset()
	s.DB = c.Engine.Keys.DB(0)
	s.Login.Name = ""
	s.Modes.NoEvict, s.Modes.NoTouch = false, false
	if s.Modes.Replies != engine.ReplySkip { // a skip concerns this reply
		s.Modes.Replies = engine.ReplyOn
	}
	s.SetDefaultUser()
	c.Reply.SetVersion(2)
	c.Reply.Status("RESET")
}

func selectCommand(c *engine.Call) {
	if n, ok := protocol.ParseInt(c.Peek(0)); ok && n != 0 && n == int64(int32(n)) && c.Engine.Config.OneDatabase() {
		c.NotClustered("select")
		return
	}
	db := data.ReadDatabase(c)
	if !c.OK() {
		return
	}
	c.Session.DB = db
	c.Reply.OK()
}
