package data

import (
	"bufio"
	"errors"
	"math"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/rdb"
)

// Values are exported and imported in Redis's format, which package rdb implements.

// DumpCommands returns the rows of DUMP, RESTORE and MIGRATE.
func DumpCommands() []engine.Command {
	return []engine.Command{
		{Facts: protocol.Facts{
			Name: "dump", Arity: 2, Flags: "readonly", Keys: "1 RO access",
			Group: "generic", Since: "2.6.0", Tips: "nondeterministic_output",
			Complexity: "O(N), N bytes of the value",
			Summary:    "Serialize the value of a key for RESTORE",
			Syntax:     "key",
		}, Run: dump},
		{Facts: protocol.Facts{
			Name: "migrate", Arity: -6, Flags: "write",
			Keys:   "3 RW access delete; KEYS@-2..-1 RW access delete incomplete",
			KeysBy: protocol.KeysOfMigrate,
			Group:  "generic", Since: "2.6.0", Categories: "keyspace dangerous", Tips: "nondeterministic_output",
			Complexity: "O(N), N bytes of the values, plus the transfer",
			Summary:    "Move or copy keys to another server by DUMP and RESTORE",
			Syntax:     "host port key-selector:(key | empty-string:\"\") destination-db timeout:integer [COPY@3.0.0] [REPLACE@3.0.0] authentication:[AUTH auth=password:string@4.0.7 | auth2:(AUTH2 username password)@6.0.0] [KEYS keys=key:key@3.0.6 [key ...]]",
			History: []string{
				"3.0.0 `COPY`, `REPLACE`",
				"3.0.6 `KEYS`",
				"4.0.7 `AUTH`",
				"6.0.0 `AUTH2`",
			},
		}, Run: migrate, Secret: true},
		{Facts: protocol.Facts{
			Name: "restore", Arity: -4, Flags: "write denyoom", Keys: "1 OW update",
			Group: "generic", Since: "2.6.0", Categories: "keyspace dangerous",
			Complexity: "O(N), N bytes of the value; O(M log M) for a sorted set of M members",
			Summary:    "Create a key from the reply of DUMP",
			Syntax:     "key ttl serialized-value [REPLACE@3.0.0] [ABSTTL@5.0.0] [IDLETIME seconds@5.0.0] [FREQ frequency@5.0.0]",
			History: []string{
				"3.0.0 `REPLACE`",
				"5.0.0 `ABSTTL`",
				"5.0.0 `IDLETIME`, `FREQ`",
			},
		}, Run: restore},
		{Facts: protocol.Facts{
			Name: "restore-asking", Arity: -4, Flags: "write denyoom asking", Keys: "1 OW update",
			Group: "server", Since: "3.0.0", Categories: "keyspace dangerous", System: true,
			Complexity: "O(N), N bytes of the value; O(M log M) for a sorted set of M members",
			Summary:    "RESTORE as MIGRATE sends it to a node of a cluster",
			Syntax:     "key ttl serialized-value [REPLACE@3.0.0] [ABSTTL@5.0.0] [IDLETIME seconds@5.0.0] [FREQ frequency@5.0.0]",
			History: []string{
				"3.0.0 `REPLACE`",
				"5.0.0 `ABSTTL`",
				"5.0.0 `IDLETIME`, `FREQ`",
			},
		}, Run: restoreAsking},
	}
}

func dump(c *engine.Call) {
	key := c.Bytes()
	e := c.DB.Get(key)
	if e == nil {
		c.Reply.Null()
		return
	}
	c.Reply.Bulk(c.Codec().AppendPayload(nil, e.Value()))
}

// restoreOptions are the options of RESTORE.
type restoreOptions struct {
	replace, absolute bool
	idle, freq        int64 // -1: not given
}

func (o *restoreOptions) read(c *engine.Call) {
	for c.More() {
		switch {
		case c.Is("REPLACE"):
			o.replace = true
		case c.Is("ABSTTL"):
			o.absolute = true
		case o.freq < 0 && c.Len() >= 2 && c.Is("IDLETIME"):
			if o.idle = c.Int(); c.Err() == "" && o.idle < 0 {
				c.Fail("ERR Invalid IDLETIME value, must be >= 0")
			}
		case o.idle < 0 && c.Len() >= 2 && c.Is("FREQ"):
			if o.freq = c.Int(); c.Err() == "" && (o.freq < 0 || o.freq > 255) {
				c.Fail("ERR Invalid FREQ value, must be >= 0 and <= 255")
			}
		default:
			c.Fail(protocol.ErrSyntax)
		}
	}
}

// restore checks the options, the existence of the key, the time, and the value
// last, as Redis does.
func restore(c *engine.Call) {
	key, ttl, payload := c.Bytes(), c.Bytes(), c.Bytes()
	o := restoreOptions{idle: -1, freq: -1}
	o.read(c)
	if c.Err() == "" && !o.replace && c.DB.Edit(key) != nil {
		c.Fail("BUSYKEY Target key name already exists.")
	}
	unit := engine.TimeUnit(0)
	if o.absolute {
		unit = engine.Absolute
	}
	deadline, _ := c.ReadTime(ttl, unit, protocol.ErrNotInteger)
	if deadline < 0 {
		c.Fail("ERR Invalid TTL value, must be >= 0")
	}
	if !c.OK() {
		return
	}
	value, err := c.Codec().Payload(payload)
	switch {
	case errors.Is(err, rdb.ErrChecksum):
		c.Reply.Error("ERR DUMP payload version or checksum are wrong")
		return
	case err != nil:
		c.Reply.Error("ERR Bad data format")
		return
	}
	old, there := c.Overwritten(c.DB, key)
	deleted := o.replace && c.DB.Delete(key)
	if deadline != 0 && !o.absolute {
		deadline += c.Now() // overflow wraps to a time in the past, as in Redis
	}
	c.Reply.OK()
	if deadline != 0 && c.Past(deadline) {
		c.CountExpired(1, 0)
		if deleted {
			c.Changed(key, engine.ClassGeneric, "del")
		}
		return
	}
	e := c.DB.Add(key, value)
	if deadline != 0 {
		e = c.SetDeadline(e, deadline)
	}
	switch {
	case c.Keys().Frequency.On:
		if o.freq >= 0 {
			c.Keys().SetFrequent(e, uint8(o.freq))
		}
	case o.idle >= 0:
		e.SetAccess(c.Now() - min(o.idle, math.MaxInt64/1000)*1000)
	}
	c.Changed(key, engine.ClassGeneric, "restore")
	if there {
		c.Overwrote(c.DB, key, old, keyspace.KindOf(value))
	}
}

// restoreAsking is the variant that MIGRATE sends to nodes of a cluster.
func restoreAsking(c *engine.Call) { restore(c) }

// migration is one call of MIGRATE.
type migration struct {
	host, port         string
	db                 int64
	timeout            time.Duration
	copy, replace      bool
	username, password []byte
	hasUser, hasAuth   bool
}

// migrate moves keys to another server. As in Redis, no other client is served
// meanwhile, so the move is atomic for clients of either server; the timeout bounds
// it. It sends commands that any Redis since 5.0 understands.
func migrate(c *engine.Call) {
	m := migration{host: c.String(), port: c.String()}
	key, db, timeout := c.Bytes(), c.Bytes(), c.Bytes()
	keys := m.options(c, key)
	number := func(b []byte) int64 {
		n, ok := protocol.ParseInt(b)
		if !ok {
			c.Fail(protocol.ErrNotInteger)
		}
		return n
	}
	ms := number(timeout)
	m.db = number(db)
	if !c.OK() {
		return
	}
	if ms <= 0 {
		ms = 1000
	}
	m.timeout = time.Duration(min(ms, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
	there := keys[:0:0]
	for _, key := range keys {
		if c.DB.Get(key) != nil {
			there = append(there, key)
		}
	}
	if len(there) == 0 {
		c.Reply.Status("NOKEY")
		return
	}
	m.run(c, there)
}

// options parses the options, and returns the keys.
func (m *migration) options(c *engine.Call, key []byte) [][]byte {
	for c.More() {
		switch {
		case c.Is("COPY"):
			m.copy = true
		case c.Is("REPLACE"):
			m.replace = true
		case c.Is("AUTH"):
			c.Redact(1 + c.Pos())
			m.password, m.hasAuth = c.Bytes(), true
		case c.Is("AUTH2"):
			c.Redact(1 + c.Pos())
			c.Redact(2 + c.Pos())
			m.username, m.password = c.Bytes(), c.Bytes()
			m.hasAuth, m.hasUser = true, true
		case c.Is("KEYS"):
			if len(key) > 0 {
				c.Fail("ERR When using MIGRATE KEYS option, the key argument must be set to the empty string")
			}
			return c.Rest()
		default:
			c.Fail(protocol.ErrSyntax)
		}
	}
	return [][]byte{key}
}

// run sends the keys, and deletes those that have arrived.
func (m *migration) run(c *engine.Call, keys [][]byte) {
	if m.host == "" { // for package net it is this machine
		c.Reply.Error("IOERR error or timeout connecting to the client")
		return
	}
	nc, err := net.DialTimeout("tcp", net.JoinHostPort(m.host, m.port), m.timeout)
	if err != nil {
		_, unknown := errors.AsType[*net.DNSError](err)
		if timeout, ok := errors.AsType[net.Error](err); unknown || ok && timeout.Timeout() {
			c.Reply.Error("IOERR error or timeout connecting to the client")
		} else { // Redis notices only when it writes
			c.Reply.Error("IOERR error or timeout writing to target instance")
		}
		return
	}
	defer nc.Close()
	if _, err := nc.Write(m.commands(c, keys, nc)); err != nil {
		c.Reply.Error("IOERR error or timeout writing to target instance")
		return
	}
	replies := bufio.NewReader(nc)
	refusal, refused := "", false // refused: AUTH or SELECT failed, so no key went to its destination
	before := 1                   // replies to AUTH and SELECT
	if m.hasAuth {
		before = 2
	}
	for i := range before + len(keys) {
		nc.SetReadDeadline(time.Now().Add(m.timeout))
		line, err := replies.ReadString('\n')
		if err != nil {
			if refusal == "" {
				refusal = "IOERR error or timeout reading to target instance"
			}
			break
		}
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(line, "-"):
			if refusal == "" {
				refusal = "ERR Target instance replied with error: " + line[1:]
			}
			refused = refused || i < before
		case i >= before && !m.copy && !refused:
			c.Drop(keys[i-before])
		}
	}
	if refusal != "" {
		c.Reply.Error(refusal)
		return
	}
	c.Reply.OK()
}

// commands returns the commands to send, and sets the write deadline of nc.
func (m *migration) commands(c *engine.Call, keys [][]byte, nc net.Conn) []byte {
	var b []byte
	command := func(args ...[]byte) {
		b = append(strconv.AppendInt(append(b, '*'), int64(len(args)), 10), '\r', '\n')
		for _, a := range args {
			b = append(strconv.AppendInt(append(b, '$'), int64(len(a)), 10), '\r', '\n')
			b = append(append(b, a...), '\r', '\n')
		}
	}
	switch {
	case m.hasUser:
		command([]byte("AUTH"), m.username, m.password)
	case m.hasAuth:
		command([]byte("AUTH"), m.password)
	}
	command([]byte("SELECT"), strconv.AppendInt(nil, m.db, 10))
	for _, key := range keys {
		e := c.DB.Peek(key)
		ttl := int64(0)
		if e.Deadline() != 0 {
			ttl = max(e.Deadline()-c.Now(), 1)
		}
		args := [][]byte{[]byte("RESTORE"), key, strconv.AppendInt(nil, ttl, 10), c.Codec().AppendPortable(nil, e.Value())}
		if m.replace {
			args = append(args, []byte("REPLACE"))
		}
		command(args...)
	}
	nc.SetWriteDeadline(time.Now().Add(m.timeout))
	return b
}
