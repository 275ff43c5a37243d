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
	if c.Nested || s.NoBlock {
		c.Reply.Error("ERR MONITOR isn't allowed for DENY BLOCKING client")
		return
	}
	if s.monitoring || s.Replica {
		return // no second reply, as in Redis
	}
	s.monitoring = true
	c.Engine.Monitors[s] = struct{}{}
	c.Reply.OK()
}

func (srv *Engine) stopMonitor(s *Session) {
	s.monitoring = false
	delete(srv.Monitors, s)
}

// monitor sends a completed command to the MONITOR clients.
func (srv *Engine) monitor(c *Call, now time.Time) {
	if !c.Command.Spec.Flags().Has(protocol.Admin | protocol.SkipMonitor) {
		srv.SendMonitors(c, now)
	}
}

// SendMonitors sends a command to the clients that called MONITOR.
func (srv *Engine) SendMonitors(c *Call, now time.Time) {
	us := now.UnixMicro()
	addr := c.Session.Addr
	if c.Session.Script {
		addr = "lua"
	}
	line := fmt.Appendf(nil, "+%d.%06d [%d %s]", us/1e6, us%1e6, c.Session.DB.ID(), addr)
	for i := range c.Argv {
		line = append(line, ' ')
		line = protocol.AppendQuoted(line, c.shown(i))
	}
	line = append(line, '\r', '\n')
	for s := range srv.Monitors {
		if s.Replies != ReplyOff { // these are replies, unlike messages
			s.Push(line)
		}
	}
}
