package server

import (
	"fmt"
	"math"
	"time"

	"github.com/zsetd/zsetd/protocol"
)

// slowLog keeps the latest slow commands, the newest last.
type slowLog struct {
	entries []slowEntry
	lastID  int64
}

type slowEntry struct {
	id         int64
	at         int64 // seconds since 1970
	took       int64 // microseconds
	argv       []string
	addr, name string
}

// The numbers of arguments that an entry keeps, and of bytes of each.
const (
	slowlogArgs     = 32
	slowlogArgBytes = 128
)

// logSlow enters a command in the slow log.
func (srv *Server) logSlow(c *Call, now time.Time, took time.Duration) {
	limit := clampInt(srv.config.slowlogMaxLen)
	if c.cmd.spec.Flags().Has(protocol.SkipSlowlog) {
		return
	}
	l := &srv.slowlog
	e := slowEntry{id: l.lastID, at: now.Unix(), took: took.Microseconds(), addr: c.sess.addr, name: c.sess.name}
	l.lastID++
	e.argv = make([]string, min(len(c.argv), slowlogArgs))
	for i := range e.argv {
		arg := c.shown(i)
		switch {
		case i == slowlogArgs-1 && len(c.argv) > slowlogArgs:
			e.argv[i] = fmt.Sprintf("... (%d more arguments)", len(c.argv)-slowlogArgs+1)
		case len(arg) > slowlogArgBytes:
			e.argv[i] = fmt.Sprintf("%s... (%d more bytes)", arg[:slowlogArgBytes], len(arg)-slowlogArgBytes)
		default:
			e.argv[i] = string([]byte(arg))
		}
	}
	l.entries = append(l.entries, e)
	if n := len(l.entries) - limit; n > 0 {
		clear(l.entries[:n])
		l.entries = l.entries[n:]
	}
}

func slowlogGet(c *Call) {
	count := int64(10)
	if c.Len() > 1 {
		c.badSubcommand()
		return
	}
	if c.Len() == 1 {
		count = c.IntIn(-1, math.MaxInt64, "ERR count should be greater than or equal to -1")
	}
	if !c.ok() {
		return
	}
	entries := c.srv.slowlog.entries
	if count >= 0 && count < int64(len(entries)) {
		entries = entries[int64(len(entries))-count:]
	}
	c.Reply.Array(len(entries))
	for i := len(entries) - 1; i >= 0; i-- {
		e := &entries[i]
		c.Reply.Array(6)
		c.Reply.Int(e.id)
		c.Reply.Int(e.at)
		c.Reply.Int(e.took)
		c.Reply.Array(len(e.argv))
		for _, arg := range e.argv {
			c.Reply.BulkString(arg)
		}
		c.Reply.BulkString(e.addr)
		c.Reply.BulkString(e.name)
	}
}

func slowlogLen(c *Call) { c.Reply.Int(int64(len(c.srv.slowlog.entries))) }

func slowlogReset(c *Call) {
	c.srv.slowlog.entries = nil
	c.Reply.OK()
}

func slowlogHelp(c *Call) {
	c.help("GET [<count>]",
		"    Return top <count> entries from the slowlog (default: 10, -1 mean all).",
		"    Entries are made of:",
		"    id, timestamp, time in microseconds, arguments array, client IP and port,",
		"    client name",
		"LEN",
		"    Return the length of the slowlog.",
		"RESET",
		"    Reset the slowlog.")
}
