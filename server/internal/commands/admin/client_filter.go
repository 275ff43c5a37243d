package admin

import (
	"fmt"
	"maps"
	"math"
	"strings"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
)

// clientFilter selects the clients of CLIENT KILL and CLIENT LIST: those that meet all
// conditions, by their names. A condition that is given twice has the later value, as in
// Redis. The conditions with NOT- before their names, and most of the others, are those of
// Valkey 9.0.
type clientFilter map[string]func(*engine.Session) bool

func (f clientFilter) accepts(s *engine.Session) bool {
	for _, meets := range f {
		if !meets(s) {
			return false
		}
	}
	return true
}

// clientFilterOf parses conditions up to the end of the arguments. skipMe is the default
// of SKIPME. ids parses the value of ID.
func clientFilterOf(c *engine.Call, skipMe bool, ids func(*engine.Call) map[int64]bool) clientFilter {
	f := clientFilter{}
	given := map[string]map[int64]bool{} // IDs
	if c.Engine.Config.Valkey() {
		ids = idsOfValkey
	}
	for c.More() {
		if c.Len() < 2 {
			c.Fail(protocol.ErrSyntax)
			break
		}
		name := strings.ToUpper(c.String())
		plain, negated := strings.CutPrefix(name, "NOT-")
		var meets func(*engine.Session) bool
		switch {
		case plain == "ID":
			wanted := ids(c)
			if c.Engine.Config.Valkey() { // repeated, it adds
				maps.Copy(wanted, given[name])
				given[name] = wanted
			}
			meets = func(s *engine.Session) bool { return wanted[s.ID] }
		case name == "SKIPME":
			if skipMe = c.Is("YES"); !skipMe && !c.Is("NO") {
				c.Fail(protocol.ErrSyntax)
			}
			continue
		case name == "MAXAGE":
			least := atLeastOne(c, "maxage")
			meets = func(s *engine.Session) bool {
				return int64(s.Engine.Turn.At.Sub(s.Activity.Created).Seconds()) >= least
			}
		case name == "IDLE":
			least := atLeastOne(c, "idle")
			meets = func(s *engine.Session) bool { return s.IdleSeconds() >= least }
		default:
			meets = clientCondition(c, name, plain)
		}
		if f[name] = meets; negated {
			f[name] = func(s *engine.Session) bool { return !meets(s) }
		}
	}
	if skipMe {
		f["SKIPME"] = func(s *engine.Session) bool { return s != c.Session }
	}
	return f
}

// clientCondition parses the value of the condition name, of which plain is the name without
// NOT-.
func clientCondition(c *engine.Call, name, plain string) func(*engine.Session) bool {
	switch plain {
	case "TYPE":
		class := clientClass(c)
		return func(s *engine.Session) bool { return s.Class() == class }
	case "USER":
		user := c.Bytes()
		u := c.Engine.ACL.Users[string(user)]
		if u == nil {
			c.Fail("ERR No such user '" + engine.Clip(user, len(user)) + "'")
		}
		return func(s *engine.Session) bool { return s.Login.User == u }
	case "FLAGS":
		letters := c.String()
		if strings.Trim(letters, engine.ClientFlags) != "" {
			c.Fail("ERR Unknown flags found in the provided filter: " + letters)
		}
		return func(s *engine.Session) bool { return s.HasFlags(letters) }
	case "CAPA":
		letters := c.String()
		if strings.Trim(letters, "r") != "" {
			c.Fail("ERR Unknown capa found in the provided filter: " + letters)
		}
		return func(s *engine.Session) bool { return s.Login.Redirectable || letters == "" }
	case "DB":
		n, last := c.IntOr("ERR "+name+" is not an integer or out of range"), int64(c.Engine.Keys.Len()-1)
		if n < 0 || n > last {
			c.Fail(fmt.Sprintf("ERR %s number should be between 0 and %d", name, last))
		}
		return func(s *engine.Session) bool { return int64(s.DB.ID()) == n }
	}
	text := c.String()
	switch plain {
	case "ADDR":
		return func(s *engine.Session) bool { return s.Peer.Addr == text }
	case "LADDR":
		return func(s *engine.Session) bool { return s.Peer.LocalAddr == text }
	case "NAME":
		return func(s *engine.Session) bool { return s.Login.Name == text }
	case "LIB-NAME":
		return func(s *engine.Session) bool { return s.Login.LibName == text }
	case "LIB-VER":
		return func(s *engine.Session) bool { return s.Login.LibVersion == text }
	case "IP":
		return func(s *engine.Session) bool {
			i := strings.LastIndexByte(s.Peer.Addr, ':')
			return strings.Trim(s.Peer.Addr[:max(i, 0)], "[]") == strings.Trim(text, "[]")
		}
	}
	c.Fail(protocol.ErrSyntax)
	return nil
}

// atLeastOne parses the positive value of a condition.
func atLeastOne(c *engine.Call, name string) int64 {
	n := c.IntOr("ERR " + name + " is not an integer or out of range")
	if n <= 0 {
		c.Fail("ERR " + name + " should be greater than 0")
	}
	return n
}

// clientClass parses the type of a client.
func clientClass(c *engine.Call) engine.ClientClass {
	b := c.Bytes()
	switch {
	case protocol.EqualFold(b, "NORMAL"):
		return engine.ClassNormal
	case protocol.EqualFold(b, "MASTER"), protocol.EqualFold(b, "PRIMARY"):
		return engine.ClassMaster
	case protocol.EqualFold(b, "REPLICA"), protocol.EqualFold(b, "SLAVE"):
		return engine.ClassReplica
	case protocol.EqualFold(b, "PUBSUB"):
		return engine.ClassPubsub
	}
	c.Fail("ERR Unknown client type '" + engine.UntilNUL(b) + "'")
	return ""
}

// idsOfKill parses the IDs of CLIENT KILL: as many as there are numbers.
func idsOfKill(c *engine.Call) map[int64]bool {
	ids := map[int64]bool{}
	for {
		ids[c.IntIn(1, math.MaxInt64, "ERR client-id should be greater than 0")] = true
		if _, number := protocol.ParseInt(c.Peek(0)); !number || c.Err() != "" {
			return ids
		}
	}
}

// idsOfValkey parses the IDs of both commands in the dialect of Valkey.
func idsOfValkey(c *engine.Call) map[int64]bool {
	if _, number := protocol.ParseInt(c.Peek(0)); !number {
		c.Fail(protocol.ErrSyntax)
	}
	return idsOfKill(c)
}

const errClientID = "ERR Invalid client ID"

// idsOfList parses the IDs of CLIENT LIST: all arguments up to a condition.
func idsOfList(c *engine.Call) map[int64]bool {
	ids := map[int64]bool{}
	for {
		ids[c.IntOr(errClientID)] = true
		if !c.More() || c.Err() != "" || isClientCondition(strings.ToUpper(string(c.Peek(0)))) {
			return ids
		}
	}
}

// isClientCondition reports whether a word in capitals is the name of a condition.
func isClientCondition(word string) bool {
	switch strings.TrimPrefix(word, "NOT-") {
	case "ID", "TYPE", "USER", "ADDR", "LADDR", "NAME", "FLAGS", "LIB-NAME", "LIB-VER", "DB", "CAPA", "IP":
		return true
	}
	return word == "SKIPME" || word == "MAXAGE" || word == "IDLE"
}

func clientKill(c *engine.Call) {
	old := c.Len() == 1 // CLIENT KILL addr
	var f clientFilter
	if old {
		addr := c.String()
		f = clientFilter{"ADDR": func(s *engine.Session) bool { return s.Peer.Addr == addr }}
	} else {
		f = clientFilterOf(c, true, idsOfKill)
	}
	if !c.OK() {
		return
	}
	killed := int64(0)
	for _, s := range c.Engine.Clients.ByID() {
		if s.End != engine.Serving || !f.accepts(s) {
			continue
		}
		killed++
		if s == c.Session {
			s.CloseAfterReply()
		} else {
			s.Kill()
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

func clientList(c *engine.Call) {
	first, n := c.Peek(0), c.Len()
	f := clientFilterOf(c, false, idsOfList)
	if c.Err() != "" && !c.Engine.Config.Valkey() { // as Redis, which has one TYPE or IDs
		switch {
		case n > 1 && protocol.EqualFold(first, "ID"):
			c.Reply.Error(errClientID)
			return
		case n != 2 && protocol.EqualFold(first, "TYPE"):
			c.Reply.Error(protocol.ErrSyntax)
			return
		}
	}
	if !c.OK() {
		return
	}
	var b []byte
	for _, s := range c.Engine.Clients.ByID() {
		if f.accepts(s) {
			b = s.AppendListed(b)
		}
	}
	c.Reply.Verbatim("txt", string(b))
}

// clientCapa records what it knows of the client's capabilities. It ignores other words, as
// Valkey does: clients announce what servers to come may use.
func clientCapa(c *engine.Call) {
	for c.More() {
		if c.Is("REDIRECT") {
			c.Session.Login.Redirectable = true
		} else {
			c.Bytes()
		}
	}
	c.Reply.OK()
}
