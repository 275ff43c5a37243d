package server

import (
	"fmt"
	"time"

	"github.com/zsetd/zsetd/protocol"
)

// redact hides an argument of the command, counted from its name, in MONITOR and
// the slow log.
func (c *Call) redact(i int) { c.secret = append(c.secret, i) }

const redacted = "(redacted)"

// shown returns argument i of the command, redacted if it is secret.
func (c *Call) shown(i int) string {
	for _, s := range c.secret {
		if s == i {
			return redacted
		}
	}
	return protocol.View(c.argv[i])
}

func monitor(c *Call) {
	s := c.sess
	if c.nested || s.noBlock {
		c.Reply.Error("ERR MONITOR isn't allowed for DENY BLOCKING client")
		return
	}
	if s.monitoring {
		return // no second reply, as in Redis
	}
	s.monitoring = true
	c.srv.monitors[s] = struct{}{}
	c.Reply.OK()
}

func (srv *Server) stopMonitor(s *Session) {
	s.monitoring = false
	delete(srv.monitors, s)
}

// monitor sends a completed command to the MONITOR clients.
func (srv *Server) monitor(c *Call, now time.Time) {
	if !c.cmd.spec.Flags().Has(protocol.Admin | protocol.SkipMonitor) {
		srv.sendMonitors(c, now)
	}
}

func (srv *Server) sendMonitors(c *Call, now time.Time) {
	us := now.UnixMicro()
	addr := c.sess.addr
	if c.sess.script {
		addr = "lua"
	}
	line := fmt.Appendf(nil, "+%d.%06d [%d %s]", us/1e6, us%1e6, c.sess.db.ID(), addr)
	for i := range c.argv {
		line = append(line, ' ')
		line = appendQuoted(line, c.shown(i))
	}
	line = append(line, '\r', '\n')
	for s := range srv.monitors {
		if s.replies != replyOff { // these are replies, unlike messages
			s.push(line)
		}
	}
}

// appendQuoted appends s in Redis's quotes, which can represent any byte.
func appendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\\' || c == '"':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, `\n`...)
		case c == '\r':
			b = append(b, `\r`...)
		case c == '\t':
			b = append(b, `\t`...)
		case c == '\a':
			b = append(b, `\a`...)
		case c == '\b':
			b = append(b, `\b`...)
		case c >= ' ' && c <= '~':
			b = append(b, c)
		default:
			b = fmt.Appendf(b, `\x%02x`, c)
		}
	}
	return append(b, '"')
}
