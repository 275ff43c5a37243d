package server

import (
	"slices"
	"strings"

	"github.com/zsetd/zsetd/protocol"
)

// denialLog is the content of ACL LOG, the latest first.
type denialLog []*denialEntry

// denialEntry is one denial, or several similar ones.
type denialEntry struct {
	id               int64
	count            int64
	reason           denial
	context          denialContext
	object, username string
	client           string // the last one, as in CLIENT LIST
	created, updated int64  // milliseconds since 1970
}

// denialContext is the context of a denied command.
type denialContext string

const (
	deniedToplevel denialContext = "toplevel"
	deniedInMulti  denialContext = "multi"
	deniedInScript denialContext = "lua"
)

// A denial is merged with a similar one if that is among the last mergeEntries and
// not older than mergeTime, in milliseconds.
const (
	mergeEntries = 10
	mergeTime    = 60000
)

// denialContext returns where the session's commands come from.
func (s *Session) denialContext() denialContext {
	if s.multi || s.call.nested {
		return deniedInMulti
	}
	return deniedToplevel
}

// logDenial counts and logs a denial. The object is the command, key or channel
// that was denied.
func (s *Session) logDenial(reason denial, where denialContext, object, username string) {
	srv := s.srv
	a := srv.acl
	a.refusals[reason]++
	now := srv.keys.Now()
	client := strings.TrimSuffix(string(s.appendInfo(nil)), "\n")
	for i, e := range a.log[:min(mergeEntries, len(a.log))] {
		age := max(now-e.updated, e.updated-now) // the clock may have gone back
		if e.reason == reason && e.context == where && age <= mergeTime && e.object == object && e.username == username {
			e.count++
			e.client, e.updated = client, now
			copy(a.log[1:i+1], a.log[:i])
			a.log[0] = e
			return
		}
	}
	e := &denialEntry{id: a.nextLogEntry, count: 1, reason: reason, context: where, object: object, username: username,
		client: client, created: now, updated: now}
	a.nextLogEntry++
	a.log = slices.Insert(a.log, 0, e)
	if limit := clampInt(srv.config.aclLogMaxLen); len(a.log) > limit {
		clear(a.log[limit:])
		a.log = a.log[:limit]
	}
}

func aclLog(c *Call) {
	a := c.srv.acl
	if c.Len() > 1 {
		c.badSubcommand()
		return
	}
	count := int64(10)
	if c.Len() == 1 {
		if protocol.EqualFold(c.Peek(0), "RESET") {
			a.log = nil
			c.Reply.OK()
			return
		}
		count = max(0, c.Int())
	}
	if !c.ok() {
		return
	}
	r := c.Reply
	entries := a.log[:min(count, int64(len(a.log)))]
	r.Array(len(entries))
	for _, e := range entries {
		r.Map(10)
		r.BulkString("count")
		r.Int(e.count)
		r.BulkString("reason")
		r.BulkString(e.reason.String())
		r.BulkString("context")
		r.BulkString(string(e.context))
		r.BulkString("object")
		r.BulkString(e.object)
		r.BulkString("username")
		r.BulkString(e.username)
		r.BulkString("age-seconds")
		r.Double(float64(c.now()-e.updated) / 1000)
		r.BulkString("client-info")
		r.BulkString(e.client)
		r.BulkString("entry-id")
		r.Int(e.id)
		r.BulkString("timestamp-created")
		r.Int(e.created)
		r.BulkString("timestamp-last-updated")
		r.Int(e.updated)
	}
}
