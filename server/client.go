package server

import (
	"fmt"
	"math"
	"strings"

	"github.com/zsetd/zsetd/protocol"
)

func clientCommands() []Command {
	return []Command{
		{Facts: protocol.Facts{
			Name: "client", Arity: -2,
			Group: "connection", Since: "2.4.0", Complexity: "Depends on subcommand.",
			Summary: "A container for client connection commands",
		}, subcommands: []Command{
			{Facts: protocol.Facts{
				Name: "client|caching", Arity: 3, Flags: "noscript loading stale",
				Group: "connection", Since: "6.0.0", Complexity: "O(1)",
				Summary: "Instruct the server about tracking or not keys in the next request",
				Syntax:  "mode:YES|NO",
			}, run: clientCaching, ofConnection: true},
			{Facts: protocol.Facts{
				Name: "client|getname", Arity: 2, Flags: "noscript loading stale",
				Group: "connection", Since: "2.6.9", Complexity: "O(1)",
				Summary: "Get the current connection name",
			}, run: clientGetname},
			{Facts: protocol.Facts{
				Name: "client|getredir", Arity: 2, Flags: "noscript loading stale",
				Group: "connection", Since: "6.0.0", Complexity: "O(1)",
				Summary: "Get tracking notifications redirection client ID if any",
			}, run: clientGetredir},
			{Facts: protocol.Facts{
				Name: "client|help", Arity: 2, Flags: "loading stale",
				Group: "connection", Since: "5.0.0", Complexity: "O(1)",
				Summary: "Show helpful text about the different subcommands",
			}, run: clientHelp},
			{Facts: protocol.Facts{
				Name: "client|id", Arity: 2, Flags: "noscript loading stale",
				Group: "connection", Since: "5.0.0", Complexity: "O(1)",
				Summary: "Returns the client ID for the current connection",
			}, run: clientId},
			{Facts: protocol.Facts{
				Name: "client|info", Arity: 2, Flags: "noscript loading stale",
				Group: "connection", Since: "6.2.0", Tips: "nondeterministic_output", Complexity: "O(1)",
				Summary: "Returns information about the current client connection.",
			}, run: clientInfo},
			{Facts: protocol.Facts{
				Name: "client|kill", Arity: -3, Flags: "admin noscript loading stale",
				Group: "connection", Since: "2.4.0", Complexity: "O(N) where N is the number of client connections",
				Summary: "Kill the connection of a client",
				Syntax:  "filter:(ip:port@-2.8.12 | new-format:([ID client-id@2.8.12] | [TYPE normal_master_slave_pubsub:(NORMAL|MASTER@3.2.0|SLAVE|REPLICA@5.0.0|PUBSUB)@2.8.12] | [USER username] | [ADDR ip:port] | [LADDR ip:port@6.2.0] | [SKIPME yes/no] | [MAXAGE maxage:integer@7.4.0])...)",
				History: []string{
					"2.8.12 Added new filter format.",
					"2.8.12 `ID` option.",
					"3.2.0 Added `master` type in for `TYPE` option.",
					"5.0.0 Replaced `slave` `TYPE` with `replica`. `slave` still supported for backward compatibility.",
					"6.2.0 `LADDR` option.",
					"7.4.0 `MAXAGE` option.",
				},
			}, run: clientKill},
			{Facts: protocol.Facts{
				Name: "client|list", Arity: -2, Flags: "admin noscript loading stale",
				Group: "connection", Since: "2.4.0", Tips: "nondeterministic_output",
				Complexity: "O(N) where N is the number of client connections",
				Summary:    "Get the list of client connections",
				Syntax:     "[TYPE (NORMAL|MASTER|REPLICA|PUBSUB)@5.0.0] [ID id:(client-id [client-id ...])@6.2.0]",
				History: []string{
					"2.8.12 Added unique client `id` field.",
					"5.0.0 Added optional `TYPE` filter.",
					"6.0.0 Added `user` field.",
					"6.2.0 Added `argv-mem`, `tot-mem`, `laddr` and `redir` fields and the optional `ID` filter.",
					"7.0.0 Added `resp`, `multi-mem`, `rbs` and `rbp` fields.",
					"7.0.3 Added `ssub` field.",
				},
			}, run: clientList},
			{Facts: protocol.Facts{
				Name: "client|no-evict", Arity: 3, Flags: "admin noscript loading stale",
				Group: "connection", Since: "7.0.0", Complexity: "O(1)",
				Summary: "Set client eviction mode for the current connection",
				Syntax:  "enabled:ON|OFF",
			}, run: clientNoEvict, ofConnection: true},
			{Facts: protocol.Facts{
				Name: "client|no-touch", Arity: 3, Flags: "noscript loading stale",
				Group: "connection", Since: "7.2.0", Complexity: "O(1)",
				Summary: "Controls whether commands sent by the client affect the LRU/LFU of accessed keys.",
				Syntax:  "enabled:ON|OFF",
			}, run: clientNoTouch, ofConnection: true},
			{Facts: protocol.Facts{
				Name: "client|pause", Arity: -3, Flags: "admin noscript loading stale",
				Group: "connection", Since: "2.9.50", Complexity: "O(1)",
				Summary: "Stop processing commands from clients for some time",
				Syntax:  "timeout:integer mode:[WRITE|ALL]@6.2.0",
				History: []string{"6.2.0 `CLIENT PAUSE WRITE` mode added along with the `mode` option."},
			}, run: clientPause},
			{Facts: protocol.Facts{
				Name: "client|reply", Arity: 3, Flags: "noscript loading stale",
				Group: "connection", Since: "3.2.0", Complexity: "O(1)",
				Summary: "Instruct the server whether to reply to commands",
				Syntax:  "ON|OFF|SKIP",
			}, run: clientReply, ofConnection: true},
			{Facts: protocol.Facts{
				Name: "client|setinfo", Arity: 4, Flags: "noscript loading stale",
				Group: "connection", Since: "7.2.0", Complexity: "O(1)",
				Summary: "Sets information specific to the client or connection.",
				Syntax:  "attr:(LIB-NAME libname | LIB-VER libver)",
			}, run: clientSetinfo, ofConnection: true},
			{Facts: protocol.Facts{
				Name: "client|setname", Arity: 3, Flags: "noscript loading stale",
				Group: "connection", Since: "2.6.9", Complexity: "O(1)",
				Summary: "Set the current connection name",
				Syntax:  "connection-name",
			}, run: clientSetname, ofConnection: true},
			{Facts: protocol.Facts{
				Name: "client|tracking", Arity: -3, Flags: "noscript loading stale",
				Group: "connection", Since: "6.0.0", Complexity: "O(1). Some options may introduce additional complexity.",
				Summary: "Enable or disable server assisted client side caching support",
				Syntax:  "status:ON|OFF [REDIRECT client-id] [PREFIX prefix [PREFIX prefix ...]] [BCAST] [OPTIN] [OPTOUT] [NOLOOP]",
			}, run: clientTracking, ofConnection: true},
			{Facts: protocol.Facts{
				Name: "client|trackinginfo", Arity: 2, Flags: "noscript loading stale",
				Group: "connection", Since: "6.2.0", Complexity: "O(1)",
				Summary: "Return information about server assisted client side caching for the current connection",
			}, run: clientTrackinginfo},
			{Facts: protocol.Facts{
				Name: "client|unblock", Arity: -3, Flags: "admin noscript loading stale",
				Group: "connection", Since: "5.0.0", Complexity: "O(log N) where N is the number of client connections",
				Summary: "Unblock a client blocked in a blocking command from a different connection",
				Syntax:  "client-id [TIMEOUT|ERROR]",
			}, run: clientUnblock},
			{Facts: protocol.Facts{
				Name: "client|unpause", Arity: 2, Flags: "admin noscript loading stale",
				Group: "connection", Since: "6.2.0", Complexity: "O(N) Where N is the number of paused clients",
				Summary: "Resume processing of clients that were paused",
			}, run: clientUnpause},
		}},
	}
}

// badSubcommand replies the error of a subcommand whose number of arguments is
// valid for its table row, but not for the subcommand.
func (c *Call) badSubcommand() {
	name, _, _ := strings.Cut(c.cmd.Name, "|")
	c.Reply.Error("ERR unknown subcommand or wrong number of arguments for '" + clip(c.argv[1], 128) + "'. Try " +
		strings.ToUpper(name) + " HELP.")
}

func clientGetname(c *Call) {
	if c.sess.name == "" {
		c.Reply.Null()
		return
	}
	c.Reply.BulkString(c.sess.name)
}

func clientId(c *Call) { c.Reply.Int(c.sess.id) }

func clientInfo(c *Call) { c.Reply.Verbatim("txt", string(c.sess.appendInfo(nil))) }

// clientClass is the type of a client in CLIENT commands.
type clientClass string

const (
	classNormal  clientClass = "normal"
	classMaster  clientClass = "master"
	classReplica clientClass = "replica"
	classPubsub  clientClass = "pubsub"
)

// class returns the type of a session.
func (s *Session) class() clientClass {
	if s.subscriptions() > 0 {
		return classPubsub
	}
	return classNormal
}

// clientClass parses the type of a client.
func (c *Call) clientClass() clientClass {
	b := c.Bytes()
	switch {
	case protocol.EqualFold(b, "NORMAL"):
		return classNormal
	case protocol.EqualFold(b, "MASTER"):
		return classMaster
	case protocol.EqualFold(b, "REPLICA"), protocol.EqualFold(b, "SLAVE"):
		return classReplica
	case protocol.EqualFold(b, "PUBSUB"):
		return classPubsub
	}
	c.Fail("ERR Unknown client type '" + untilNUL(b) + "'")
	return ""
}

// clientFilter selects the clients of CLIENT KILL.
type clientFilter struct {
	id          int64
	class       clientClass
	user        *user
	addr, laddr string
	skipMe      bool
	maxAge      int64 // seconds; 0 for any
}

func (f *clientFilter) accepts(s, me *Session) bool {
	return (f.id == 0 || f.id == s.id) && (f.class == "" || f.class == s.class()) && (f.user == nil || f.user == s.user) &&
		(f.addr == "" || f.addr == s.addr) && (f.laddr == "" || f.laddr == s.laddr) && !(f.skipMe && s == me) &&
		(f.maxAge == 0 || int64(s.srv.at.Sub(s.created).Seconds()) >= f.maxAge)
}

func clientKill(c *Call) {
	old := c.Len() == 1 // CLIENT KILL addr
	f := clientFilter{skipMe: !old}
	if old {
		f.addr = c.String()
	}
	for c.More() {
		switch {
		case c.Len() < 2:
			c.Fail(protocol.ErrSyntax)
		case c.Is("ID"):
			f.id = c.IntIn(1, math.MaxInt64, "ERR client-id should be greater than 0")
		case c.Is("TYPE"):
			f.class = c.clientClass()
		case c.Is("USER"):
			name := c.Bytes()
			if f.user = c.srv.acl.users[string(name)]; f.user == nil {
				c.Fail("ERR No such user '" + clip(name, len(name)) + "'")
			}
		case c.Is("ADDR"):
			f.addr = c.String()
		case c.Is("LADDR"):
			f.laddr = c.String()
		case c.Is("MAXAGE"):
			if f.maxAge = c.IntOr("ERR maxage is not an integer or out of range"); f.maxAge <= 0 {
				c.Fail("ERR maxage should be greater than 0")
			}
		case c.Is("SKIPME"):
			if f.skipMe = c.Is("YES"); !f.skipMe && !c.Is("NO") {
				c.Fail(protocol.ErrSyntax)
			}
		default:
			c.Fail(protocol.ErrSyntax)
		}
	}
	if !c.ok() {
		return
	}
	killed := int64(0)
	for _, s := range c.srv.byID() {
		if s.killed || s.closing || !f.accepts(s, c.sess) {
			continue
		}
		killed++
		if s == c.sess {
			s.closing = true // after the reply
		} else {
			s.kill()
		}
	}
	switch {
	case !old:
		c.Reply.Int(killed)
	case killed == 0:
		c.Reply.Error("ERR No such client")
	default:
		c.Reply.OK()
	}
}

func clientList(c *Call) {
	var listed []*Session
	switch {
	case c.Len() == 0:
		listed = c.srv.byID()
	case c.Len() == 2 && c.Is("TYPE"):
		class := c.clientClass()
		for _, s := range c.srv.byID() {
			if s.class() == class {
				listed = append(listed, s)
			}
		}
	case c.Len() > 1 && c.Is("ID"):
		for c.More() {
			if s := c.srv.sessions[c.IntOr("ERR Invalid client ID")]; s != nil {
				listed = append(listed, s)
			}
		}
	default:
		c.Fail(protocol.ErrSyntax)
	}
	if !c.ok() {
		return
	}
	var b []byte
	for _, s := range listed {
		if !s.killed {
			b = s.appendInfo(b)
		}
	}
	c.Reply.Verbatim("txt", string(b))
}

// appendInfo appends the line of CLIENT LIST.
func (s *Session) appendInfo(b []byte) []byte {
	taken, free := 0, 0
	if s.query != nil {
		taken, free = s.query()
	}
	multi := -1
	if s.multi || s.execing > 0 {
		multi = max(len(s.queue), s.execing)
	}
	// As in Redis: the first buffer, and the rest in blocks.
	n := s.backlog()
	first := min(n, firstReplies)
	blocks, events := 0, "r"
	if n > first {
		blocks = int((n - first + blockSize - 1) / blockSize)
	}
	if s.flushing.Load() != 0 {
		events = "rw"
	}
	last := "NULL"
	if s.last != nil {
		last = s.last.Name
	}
	return fmt.Appendf(b, "id=%d addr=%s laddr=%s fd=%d name=%s age=%d idle=%d flags=%s db=%d sub=%d psub=%d ssub=%d "+
		"multi=%d qbuf=%d qbuf-free=%d argv-mem=%d multi-mem=%d rbs=%d rbp=%d obl=%d oll=%d omem=%d tot-mem=%d events=%s "+
		"cmd=%s user=%s redir=%d resp=%d lib-name=%s lib-ver=%s\n",
		s.id, s.addr, s.laddr, s.fd, s.name, int64(s.srv.at.Sub(s.created).Seconds()), int64(s.srv.at.Sub(s.lastUsed).Seconds()),
		s.flags(), s.db.ID(), len(s.channels), len(s.patterns), len(s.shards),
		multi, taken, free, argsSize(s.running()), s.queued+int64(len(s.watches))*perName, s.out.Cap(), s.out.Len(), first, blocks, n-first,
		s.memory(), events,
		last, s.user.name, s.redirection(), s.out.Version(), s.libName, s.libVer)
}

// flags returns the letters of a session in CLIENT LIST.
func (s *Session) flags() string {
	var b []byte
	for _, f := range []struct {
		is     bool
		letter byte
	}{
		{s.monitoring, 'O'},
		{s.subscriptions() > 0, 'P'},
		{s.multi || s.execing > 0, 'x'},
		{s.blocked != nil || s.postponed != nil, 'b'},
		{s.cache != nil, 't'},
		{s.cache != nil && s.cache.broken, 'R'},
		{s.cache != nil && s.cache.bcast, 'B'},
		{s.touched, 'd'},
		{s.closing, 'c'},
		{s.killed, 'A'},
		{s.unix, 'U'},
		{s.readonly, 'r'},
		{s.noEvict, 'e'},
		{s.noTouch, 'T'},
	} {
		if f.is {
			b = append(b, f.letter)
		}
	}
	if len(b) == 0 {
		return "N"
	}
	return string(b)
}

// onOff parses ON or OFF as the last argument.
func (c *Call) onOff() bool {
	on := c.Is("ON")
	if !on && !c.Is("OFF") {
		c.Fail(protocol.ErrSyntax)
	}
	return on
}

func clientNoEvict(c *Call) {
	on := c.onOff()
	if !c.end() {
		return
	}
	c.sess.noEvict = on
	c.sess.weigh()
	c.Reply.OK()
}

func clientNoTouch(c *Call) {
	on := c.onOff()
	if !c.end() {
		return
	}
	c.sess.noTouch = on
	c.Reply.OK()
}

func clientPause(c *Call) {
	if c.Len() > 2 {
		c.badSubcommand()
		return
	}
	if mode := c.Peek(1); mode != nil && !protocol.EqualFold(mode, "WRITE") && !protocol.EqualFold(mode, "ALL") {
		c.Fail("ERR CLIENT PAUSE mode must be WRITE or ALL")
	}
	ms := c.IntOr("ERR timeout is not an integer or out of range")
	switch {
	case ms < 0:
		c.Fail("ERR timeout is negative")
	case ms > math.MaxInt64-c.now():
		c.Fail("ERR timeout is out of range")
	}
	all := !c.Is("WRITE")
	if !c.ok() {
		return
	}
	c.srv.pause(c.srv.after(ms), all)
	c.Reply.OK()
}

func clientUnpause(c *Call) {
	c.srv.unpause()
	c.Reply.OK()
}

func clientReply(c *Call) {
	s := c.sess
	switch {
	case c.Is("ON"):
		s.replies = replyOn
		c.Reply.OK()
	case c.Is("OFF"):
		s.replies = replyOff
	case c.Is("SKIP"):
		if s.replies != replyOff {
			s.replies = replySkipNext
		}
	default:
		c.Reply.Error(protocol.ErrSyntax)
	}
}

func clientSetinfo(c *Call) {
	attr, value := c.Bytes(), c.Bytes()
	var field *string
	switch {
	case protocol.EqualFold(attr, "LIB-NAME"):
		field = &c.sess.libName
	case protocol.EqualFold(attr, "LIB-VER"):
		field = &c.sess.libVer
	default:
		c.Reply.Error("ERR Unrecognized option '" + clip(attr, len(attr)) + "'")
		return
	}
	if !validClientName(value) {
		c.Reply.Error("ERR " + string(attr) + " cannot contain spaces, newlines or special characters.")
		return
	}
	*field = string(value)
	c.Reply.OK()
}

func clientSetname(c *Call) {
	name := c.Bytes()
	if !validClientName(name) {
		c.Reply.Error(errClientName)
		return
	}
	c.sess.name = string(name)
	c.Reply.OK()
}

func clientUnblock(c *Call) {
	if c.Len() > 2 {
		c.badSubcommand()
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
	if !c.ok() {
		return
	}
	s := c.srv.sessions[id]
	if s == nil || s.blocked == nil {
		c.Reply.Int(0)
		return
	}
	reply := s.blocked.timeout
	if withError {
		reply = func(r *protocol.Reply) { r.Error("UNBLOCKED client unblocked via CLIENT UNBLOCK") }
	}
	s.endWait(s.blocked, reply)
	c.Reply.Int(1)
}

func clientHelp(c *Call) {
	c.help("CACHING (YES|NO)",
		"    Enable/disable tracking of the keys for next command in OPTIN/OPTOUT modes.",
		"GETREDIR",
		"    Return the client ID we are redirecting to when tracking is enabled.",
		"GETNAME",
		"    Return the name of the current connection.",
		"ID",
		"    Return the ID of the current connection.",
		"INFO",
		"    Return information about the current client connection.",
		"KILL <ip:port>",
		"    Kill connection made from <ip:port>.",
		"KILL <option> <value> [<option> <value> [...]]",
		"    Kill connections. Options are:",
		"    * ADDR (<ip:port>|<unixsocket>:0)",
		"      Kill connections made from the specified address",
		"    * LADDR (<ip:port>|<unixsocket>:0)",
		"      Kill connections made to specified local address",
		"    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
		"      Kill connections by type.",
		"    * USER <username>",
		"      Kill connections authenticated by <username>.",
		"    * SKIPME (YES|NO)",
		"      Skip killing current connection (default: yes).",
		"    * MAXAGE <maxage>",
		"      Kill connections older than the specified age.",
		"LIST [options ...]",
		"    Return information about client connections. Options:",
		"    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
		"      Return clients of specified type.",
		"UNPAUSE",
		"    Stop the current client pause, resuming traffic.",
		"PAUSE <timeout> [WRITE|ALL]",
		"    Suspend all, or just write, clients for <timeout> milliseconds.",
		"REPLY (ON|OFF|SKIP)",
		"    Control the replies sent to the current connection.",
		"SETNAME <name>",
		"    Assign the name <name> to the current connection.",
		"SETINFO <option> <value>",
		"    Set client meta attr. Options are:",
		"    * LIB-NAME: the client lib name.",
		"    * LIB-VER: the client lib version.",
		"UNBLOCK <clientid> [TIMEOUT|ERROR]",
		"    Unblock the specified blocked client.",
		"TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> [...]]",
		"         [OPTIN] [OPTOUT] [NOLOOP]",
		"    Control server assisted client side caching.",
		"TRACKINGINFO",
		"    Report tracking status for the current connection.",
		"NO-EVICT (ON|OFF)",
		"    Protect current client connection from eviction.",
		"NO-TOUCH (ON|OFF)",
		"    Will not touch LRU/LFU stats when this mode is on.")
}
