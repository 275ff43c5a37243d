package admin

import (
	"bytes"
	"math"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
)

// ClientCommands returns the rows of the CLIENT command.
func ClientCommands() []engine.Command {
	rows := []engine.Command{
		{Facts: protocol.Facts{
			Name: "client", Arity: -2,
			Group: "connection", Since: "2.4.0", Complexity: "That of the subcommand",
			Summary: "Connections of clients",
		}, Subcommands: []engine.Command{
			{Facts: protocol.Facts{
				Name: "client|caching", Arity: 3, Flags: "noscript loading stale",
				Group: "connection", Since: "6.0.0", Complexity: "O(1)",
				Summary: "Track the keys of the next command, or not, in the modes OPTIN and OPTOUT",
				Syntax:  "mode:YES|NO",
			}, Run: clientCaching, OfConnection: true},
			{Facts: protocol.Facts{
				Name: "client|capa", Arity: -3, Flags: "noscript loading stale allow_busy",
				Group: "connection", Since: "8.0.0", Complexity: "O(N), N words given",
				Summary: "Announce what the client can do: with `REDIRECT` a replica replies the address of its primary to commands on data. A command of Valkey",
				Syntax:  "capability [capability ...]",
			}, Run: clientCapa, OfConnection: true},
			{Facts: protocol.Facts{
				Name: "client|getname", Arity: 2, Flags: "noscript loading stale",
				Group: "connection", Since: "2.6.9", Complexity: "O(1)",
				Summary: "Name of this connection",
			}, Run: clientGetname},
			{Facts: protocol.Facts{
				Name: "client|getredir", Arity: 2, Flags: "noscript loading stale",
				Group: "connection", Since: "6.0.0", Complexity: "O(1)",
				Summary: "ID of the client that receives the invalidations of this one",
			}, Run: clientGetredir},
			engine.HelpRow(protocol.Facts{Name: "client|help", Group: "connection", Since: "5.0.0"},
				"CACHING (YES|NO)",
				"    Track the keys of the next command or not, for the modes OPTIN and OPTOUT.",
				"CAPA <capability> [<capability> ...]",
				"    Announce what the client can do: REDIRECT.",
				"GETREDIR",
				"    The ID of the client that gets this connection's invalidations.",
				"GETNAME",
				"    The name of this connection.",
				"ID",
				"    The ID of this connection.",
				"INFO",
				"    The fields of this connection, as LIST has them.",
				"KILL <ip:port>",
				"    Close the connection from this address.",
				"KILL <option> <value> [<option> <value> [...]]",
				"    Close the connections that meet all conditions:",
				"    * ADDR <ip:port> or <unixsocket>:0, the remote address",
				"    * LADDR <ip:port> or <unixsocket>:0, the local address",
				"    * TYPE NORMAL, MASTER, REPLICA or PUBSUB",
				"    * USER <username>, logged in by this name",
				"    * ID <id> [<id> ...]",
				"    * MAXAGE <seconds>, open for at least so long",
				"    * IDLE <seconds>, without a command for at least so long",
				"    * FLAGS <letters>, all of them in the field flags",
				"    * NAME <name>, LIB-NAME <name>, LIB-VER <version>",
				"    * DB <index>, with this database selected",
				"    * CAPA <letters>, all of them in the field capa",
				"    * IP <ip>, the remote address without the port",
				"    * NOT-<option>, for all but SKIPME, MAXAGE and IDLE: the others",
				"    * SKIPME YES or NO: spare this connection (default: YES)",
				"LIST [options ...]",
				"    The fields of all connections, or of those that meet all conditions: the options",
				"    of KILL. SKIPME is NO unless it is given.",
				"UNPAUSE",
				"    End PAUSE.",
				"PAUSE <timeout> [WRITE|ALL]",
				"    Delay the commands of clients, or those that write, for <timeout> milliseconds.",
				"REPLY (ON|OFF|SKIP)",
				"    Send replies, no replies, or no reply to the next command.",
				"SETNAME <name>",
				"    Name this connection.",
				"SETINFO <option> <value>",
				"    Describe the client library in LIST: LIB-NAME or LIB-VER.",
				"UNBLOCK <clientid> [TIMEOUT|ERROR]",
				"    End the waiting of a client, as after its timeout or with an error.",
				"TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> [...]]",
				"         [OPTIN] [OPTOUT] [NOLOOP]",
				"    Send invalidations of the keys that this connection has read.",
				"TRACKINGINFO",
				"    The options of TRACKING for this connection.",
				"NO-EVICT (ON|OFF)",
				"    Exempt this connection from maxmemory-clients.",
				"NO-TOUCH (ON|OFF)",
				"    Leave the access times of keys alone."),
			{Facts: protocol.Facts{
				Name: "client|id", Arity: 2, Flags: "noscript loading stale",
				Group: "connection", Since: "5.0.0", Complexity: "O(1)",
				Summary: "ID of this connection",
			}, Run: clientId},
			{Facts: protocol.Facts{
				Name: "client|info", Arity: 2, Flags: "noscript loading stale",
				Group: "connection", Since: "6.2.0", Tips: "nondeterministic_output", Complexity: "O(1)",
				Summary: "Fields of this connection, as in CLIENT LIST",
			}, Run: clientInfo},
			{Facts: protocol.Facts{
				Name: "client|kill", Arity: -3, Flags: "admin noscript loading stale",
				Group: "connection", Since: "2.4.0", Complexity: "O(N log N), N connections",
				Summary: "Close the connections that meet all conditions",
				Syntax:  "filter:(ip:port@-2.8.12 | new-format:([ID client-id@2.8.12] | [TYPE normal_master_slave_pubsub:(NORMAL|MASTER@3.2.0|SLAVE|REPLICA@5.0.0|PUBSUB)@2.8.12] | [USER username] | [ADDR ip:port] | [LADDR ip:port@6.2.0] | [SKIPME yes/no] | [MAXAGE maxage:integer@7.4.0] | [IDLE idle:integer@9.0.0] | [FLAGS flags@9.0.0] | [NAME name@9.0.0] | [LIB-NAME lib-name@9.0.0] | [LIB-VER lib-ver@9.0.0] | [DB db:integer@9.0.0] | [CAPA capa@9.0.0] | [IP ip@9.0.0])...)",
				History: []string{
					"2.8.12 Conditions with names",
					"2.8.12 `ID`",
					"3.2.0 `TYPE master`",
					"5.0.0 `TYPE replica` for `slave`, which remains valid",
					"6.2.0 `LADDR`",
					"7.4.0 `MAXAGE`",
					"9.0.0 `IDLE`, `FLAGS`, `NAME`, `LIB-NAME`, `LIB-VER`, `DB`, `CAPA`, `IP`, and each condition with `NOT-` before it, of Valkey",
				},
			}, Run: clientKill},
			{Facts: protocol.Facts{
				Name: "client|list", Arity: -2, Flags: "admin noscript loading stale",
				Group: "connection", Since: "2.4.0", Tips: "nondeterministic_output",
				Complexity: "O(N log N), N connections",
				Summary:    "Fields of all connections, or of those that meet all conditions",
				Syntax:     "[TYPE (NORMAL|MASTER|REPLICA|PUBSUB)@5.0.0] [ID id:(client-id [client-id ...])@6.2.0] [USER username@8.1.0] [ADDR ip:port@8.1.0] [LADDR ip:port@8.1.0] [SKIPME yes/no@8.1.0] [MAXAGE maxage:integer@8.1.0] [IDLE idle:integer@9.0.0] [FLAGS flags@9.0.0] [NAME name@9.0.0] [LIB-NAME lib-name@9.0.0] [LIB-VER lib-ver@9.0.0] [DB db:integer@9.0.0] [CAPA capa@9.0.0] [IP ip@9.0.0]",
				History: []string{
					"2.8.12 Field `id`",
					"5.0.0 `TYPE`",
					"6.0.0 Field `user`",
					"6.2.0 `ID`; fields `argv-mem`, `tot-mem`, `laddr`, `redir`",
					"7.0.0 Fields `resp`, `multi-mem`, `rbs`, `rbp`",
					"7.0.3 Field `ssub`",
					"7.4.0 Field `watch`",
					"8.0.0 Fields `io-thread`, `tot-net-in`, `tot-net-out`, `tot-cmds`, `capa`",
					"9.0.0 The conditions of CLIENT KILL, of Valkey",
				},
			}, Run: clientList},
			{Facts: protocol.Facts{
				Name: "client|no-evict", Arity: 3, Flags: "admin noscript loading stale",
				Group: "connection", Since: "7.0.0", Complexity: "O(1)",
				Summary: "Exempt this connection from maxmemory-clients, or not",
				Syntax:  "enabled:ON|OFF",
			}, Run: clientNoEvict, OfConnection: true},
			{Facts: protocol.Facts{
				Name: "client|no-touch", Arity: 3, Flags: "noscript loading stale",
				Group: "connection", Since: "7.2.0", Complexity: "O(1)",
				Summary: "Let the commands of this connection leave access times alone, or not",
				Syntax:  "enabled:ON|OFF",
			}, Run: clientNoTouch, OfConnection: true},
			{Facts: protocol.Facts{
				Name: "client|pause", Arity: -3, Flags: "admin noscript loading stale",
				Group: "connection", Since: "3.0.0", Complexity: "O(1)",
				Summary: "Delay the commands of all clients, or only those that write, for some time",
				Syntax:  "timeout:integer mode:[WRITE|ALL]@6.2.0",
				History: []string{"6.2.0 `WRITE`, `ALL`"},
			}, Run: clientPause},
			{Facts: protocol.Facts{
				Name: "client|reply", Arity: 3, Flags: "noscript loading stale",
				Group: "connection", Since: "3.2.0", Complexity: "O(1)",
				Summary: "Send the replies of this connection, or not, or not the next one",
				Syntax:  "action:(ON|OFF|SKIP)",
			}, Run: clientReply, OfConnection: true, NotNested: true},
			{Facts: protocol.Facts{
				Name: "client|setinfo", Arity: 4, Flags: "noscript loading stale",
				Group: "connection", Since: "7.2.0", Tips: "request_policy:all_nodes response_policy:all_succeeded", Complexity: "O(1)",
				Summary: "Set the name or the version of the client library for CLIENT LIST",
				Syntax:  "attr:(LIB-NAME libname | LIB-VER libver)",
			}, Run: clientSetinfo, OfConnection: true},
			{Facts: protocol.Facts{
				Name: "client|setname", Arity: 3, Flags: "noscript loading stale",
				Group: "connection", Since: "2.6.9", Tips: "request_policy:all_nodes response_policy:all_succeeded", Complexity: "O(1)",
				Summary: "Name this connection",
				Syntax:  "connection-name",
			}, Run: clientSetname, OfConnection: true},
			{Facts: protocol.Facts{
				Name: "client|tracking", Arity: -3, Flags: "noscript loading stale",
				Group: "connection", Since: "6.0.0", Complexity: "O(P), P prefixes given or registered",
				Summary: "Send invalidations of the keys that this connection reads, or not",
				Syntax:  "status:ON|OFF [REDIRECT client-id] [PREFIX prefix [PREFIX prefix ...]] [BCAST] [OPTIN] [OPTOUT] [NOLOOP]",
			}, Run: clientTracking, OfConnection: true},
			{Facts: protocol.Facts{
				Name: "client|trackinginfo", Arity: 2, Flags: "noscript loading stale",
				Group: "connection", Since: "6.2.0", Complexity: "O(P), P prefixes",
				Summary: "How the keys of this connection are tracked",
			}, Run: clientTrackinginfo},
			{Facts: protocol.Facts{
				Name: "client|unblock", Arity: -3, Flags: "admin noscript loading stale",
				Group: "connection", Since: "5.0.0", Complexity: "O(K), K keys that the command waits for",
				Summary: "End the waiting of another client's blocking command",
				Syntax:  "client-id unblock-type:[TIMEOUT|ERROR]",
			}, Run: clientUnblock},
			{Facts: protocol.Facts{
				Name: "client|unpause", Arity: 2, Flags: "admin noscript loading stale",
				Group: "connection", Since: "6.2.0", Complexity: "O(N), N connections with delayed commands",
				Summary: "End CLIENT PAUSE",
			}, Run: clientUnpause},
		}},
	}
	for i := range rows[0].Subcommands {
		rows[0].Subcommands[i].KeepsCaching = true
	}
	return rows
}

func clientGetname(c *engine.Call) {
	if c.Session.Login.Name == "" {
		c.Reply.Null()
		return
	}
	c.Reply.BulkString(c.Session.Login.Name)
}

func clientId(c *engine.Call) { c.Reply.Int(c.Session.ID) }

func clientInfo(c *engine.Call) { c.Reply.Verbatim("txt", string(c.Session.AppendInfo(nil))) }

// onOff parses ON or OFF as the last argument.
func onOff(c *engine.Call) bool {
	on := c.Is("ON")
	if !on && !c.Is("OFF") {
		c.Fail(protocol.ErrSyntax)
	}
	return on
}

func clientNoEvict(c *engine.Call) {
	on := onOff(c)
	if !c.End() {
		return
	}
	c.Session.Modes.NoEvict = on
	c.Session.Weigh()
	c.Reply.OK()
}

func clientNoTouch(c *engine.Call) {
	on := onOff(c)
	if !c.End() {
		return
	}
	c.Session.Modes.NoTouch = on
	c.Reply.OK()
}

func clientPause(c *engine.Call) {
	if c.Len() > 2 {
		c.BadSubcommand()
		return
	}
	if mode := c.Peek(1); mode != nil && !protocol.EqualFold(mode, "WRITE") && !protocol.EqualFold(mode, "ALL") {
		c.Fail("ERR CLIENT PAUSE mode must be WRITE or ALL")
	}
	ms := c.IntOr("ERR timeout is not an integer or out of range")
	switch {
	case ms < 0:
		c.Fail("ERR timeout is negative")
	case ms > math.MaxInt64-c.Now():
		c.Fail("ERR timeout is out of range")
	}
	all := !c.Is("WRITE")
	if !c.OK() {
		return
	}
	c.Engine.Pause(c.Engine.After(ms), all)
	c.Reply.OK()
}

func clientUnpause(c *engine.Call) {
	c.Engine.Unpause()
	c.Reply.OK()
}

func clientReply(c *engine.Call) {
	s := c.Session
	switch {
	case c.Is("ON"):
		s.Modes.Replies = engine.ReplyOn
		c.Reply.OK()
	case c.Is("OFF"):
		s.Modes.Replies = engine.ReplyOff
	case c.Is("SKIP"):
		if s.Modes.Replies != engine.ReplyOff {
			s.Modes.Replies = engine.ReplySkipNext
		}
	default:
		c.Reply.Error(protocol.ErrSyntax)
	}
}

func clientSetinfo(c *engine.Call) {
	attr, value := c.Bytes(), c.Bytes()
	var field *string
	switch {
	case protocol.EqualFold(attr, "LIB-NAME"):
		field = &c.Session.Login.LibName
	case protocol.EqualFold(attr, "LIB-VER"):
		field = &c.Session.Login.LibVersion
	default:
		c.Reply.Error("ERR Unrecognized option '" + engine.Clip(attr, len(attr)) + "'")
		return
	}
	value, _, _ = bytes.Cut(value, []byte{0}) // as Redis, which reads up to a zero byte
	if !validClientName(value) {
		c.Reply.Error("ERR " + string(attr) + " cannot contain spaces, newlines or special characters.")
		return
	}
	*field = string(value)
	c.Reply.OK()
}

func clientSetname(c *engine.Call) {
	name := c.Bytes()
	if !validClientName(name) {
		c.Reply.Error(errClientName)
		return
	}
	c.Session.Login.Name = string(name)
	c.Reply.OK()
}

func clientUnblock(c *engine.Call) {
	if c.Len() > 2 {
		c.BadSubcommand()
		return
	}
	withError := false
	if how := c.Peek(1); how != nil {
		withError = protocol.EqualFold(how, "ERROR")
		if !withError && !protocol.EqualFold(how, "TIMEOUT") {
			c.Fail("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
		}
	}
	id := c.Int()
	if !c.OK() {
		return
	}
	s := c.Engine.Clients.Find(id)
	if s == nil || s.Stall.Blocked == nil {
		c.Reply.Int(0)
		return
	}
	reply := s.Stall.Blocked.Timeout
	if withError {
		reply = func(r *protocol.Reply) { r.Error("UNBLOCKED client unblocked via CLIENT UNBLOCK") }
	}
	s.EndWait(s.Stall.Blocked, reply)
	c.Reply.Int(1)
}
