package engine

import (
	"fmt"
	"time"

	"github.com/zsetd/zsetd/protocol"
)

// Redact hides an argument of the command, counted from its name, in MONITOR and
// the slow log.
func (c *Call) Redact(i int) { c.secret = append(c.secret, i) }

const redacted = "(redacted)"

// shown returns argument i of the command, redacted if it is secret.
func (c *Call) shown(i int) string {
	for _, s := range c.secret {
		if s == i {
			return redacted
		}
	}
	return protocol.View(c.Argv[i])
}

// Monitor is the handler of MONITOR.
func Monitor(c *Call) {
	s := c.Session
	if c.Nested || s.Modes.NoBlock {
		c.Reply.Error("ERR MONITOR isn't allowed for DENY BLOCKING client")
		return
	}
	if s.Modes.monitoring || s.Modes.Replica {
		return // no second reply, as in Redis
	}
	s.Modes.monitoring = true
	c.Engine.Clients.Monitors[s] = struct{}{}
	c.Reply.OK()
}

func (t *clients) stopMonitor(s *Session) {
	s.Modes.monitoring = false
	delete(t.Monitors, s)
}

// monitor sends a completed command to the MONITOR clients.
func (t *clients) monitor(c *Call, now time.Time) {
	if !c.Command.Spec.Flags().Has(protocol.Admin | protocol.SkipMonitor) {
		t.SendMonitors(c, now)
	}
}

// SendMonitors sends a command to the clients that called MONITOR.
func (t *clients) SendMonitors(c *Call, now time.Time) {
	us := now.UnixMicro()
	addr := c.Session.Peer.Addr
	if c.Session.Modes.Script {
		addr = "lua"
	}
	line := fmt.Appendf(nil, "+%d.%06d [%d %s]", us/1e6, us%1e6, c.Session.DB.ID(), addr)
	for i := range c.Argv {
		line = append(line, ' ')
		line = protocol.AppendQuoted(line, c.shown(i))
	}
	line = append(line, '\r', '\n')
	for s := range t.Monitors {
		if s.Modes.Replies != ReplyOff { // these are replies, unlike messages
			s.Push(line)
		}
	}
}
