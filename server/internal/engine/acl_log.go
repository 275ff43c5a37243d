package engine

import (
	"slices"
	"strings"

	"github.com/zsetd/zsetd/protocol"
)

// denialLog is the content of ACL LOG, the latest first.
type denialLog []*denialEntry

// denialEntry is one denial, or several similar ones.
type denialEntry struct {
	ID               int64
	Count            int64
	Reason           Denial
	Context          denialContext
	Object, Username string
	Client           string // the last one, as in CLIENT LIST
	Created, Updated int64  // milliseconds since 1970
}

// DenialContext is the context of a denied command.
type denialContext string

// DeniedToplevel is a context of a denial in ACL LOG.
const (
	DeniedToplevel denialContext = "toplevel"
	deniedInMulti  denialContext = "multi"
	deniedInScript denialContext = "lua"
)

// A denial is merged with a similar one if that is among the last mergeEntries and
// not older than mergeTime, in milliseconds.
const (
	mergeEntries = 10
	mergeTime    = 60000
)

// DenialContext returns where the session's commands come from.
func (s *Session) DenialContext() denialContext {
	if s.Multi || s.Call.Nested {
		return deniedInMulti
	}
	return DeniedToplevel
}

// LogDenial counts and logs a denial. The object is the command, key or channel
// that was denied.
func (s *Session) LogDenial(reason Denial, where denialContext, object, username string) {
	srv := s.Engine
	a := srv.ACL
	a.Refusals[reason]++
	now := srv.Keys.Now()
	client := strings.TrimSuffix(string(s.AppendInfo(nil)), "\n")
	for i, e := range a.Log[:min(mergeEntries, len(a.Log))] {
		age := max(now-e.Updated, e.Updated-now) // the clock may have gone back
		if e.Reason == reason && e.Context == where && age <= mergeTime && e.Object == object && e.Username == username {
			e.Count++
			e.Client, e.Updated = client, now
			copy(a.Log[1:i+1], a.Log[:i])
			a.Log[0] = e
			return
		}
	}
	e := &denialEntry{ID: a.nextLogEntry, Count: 1, Reason: reason, Context: where, Object: object, Username: username,
		Client: client, Created: now, Updated: now}
	a.nextLogEntry++
	a.Log = slices.Insert(a.Log, 0, e)
	if limit := ClampInt(srv.Config.aclLogMaxLen); len(a.Log) > limit {
		clear(a.Log[limit:])
		a.Log = a.Log[:limit]
	}
}

// ACLLog is the handler of ACL LOG.
func ACLLog(c *Call) {
	a := c.Engine.ACL
	if c.Len() > 1 {
		c.BadSubcommand()
		return
	}
	count := int64(10)
	if c.Len() == 1 {
		if protocol.EqualFold(c.Peek(0), "RESET") {
			a.Log = nil
			c.Reply.OK()
			return
		}
		count = max(0, c.Int())
	}
	if !c.OK() {
		return
	}
	r := c.Reply
	entries := a.Log[:min(count, int64(len(a.Log)))]
	r.Array(len(entries))
	for _, e := range entries {
		r.Map(10)
		r.BulkString("count")
		r.Int(e.Count)
		r.BulkString("reason")
		r.BulkString(e.Reason.String())
		r.BulkString("context")
		r.BulkString(string(e.Context))
		r.BulkString("object")
		r.BulkString(e.Object)
		r.BulkString("username")
		r.BulkString(e.Username)
		r.BulkString("age-seconds")
		r.Double(float64(c.Now()-e.Updated) / 1000)
		r.BulkString("client-info")
		r.BulkString(e.Client)
		r.BulkString("entry-id")
		r.Int(e.ID)
		r.BulkString("timestamp-created")
		r.Int(e.Created)
		r.BulkString("timestamp-last-updated")
		r.Int(e.Updated)
	}
}
