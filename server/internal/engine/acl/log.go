package acl

import "slices"

// LogEntry is one denial, or several similar ones.
type LogEntry struct {
	ID               int64
	Count            int64
	Reason           Denial
	Context          Context
	Object, Username string
	Client           string // the last one, as in CLIENT LIST
	Created, Updated int64  // milliseconds since 1970
}

// Context is the context of a denied command.
type Context string

// The contexts.
const (
	Toplevel Context = "toplevel"
	InMulti  Context = "multi"
	InScript Context = "lua"
)

// A denial is merged with a similar one if that is among the last mergeEntries and
// not older than mergeTime, in milliseconds.
const (
	mergeEntries = 10
	mergeTime    = 60000
)

// Record counts a denial and adds it to the log, which has at most limit entries. The
// caller fills in d.Reason to d.Client; now is in milliseconds since 1970.
func (a *List) Record(d LogEntry, now int64, limit int) {
	a.Denials[d.Reason]++
	for i, e := range a.Log[:min(mergeEntries, len(a.Log))] {
		age := max(now-e.Updated, e.Updated-now) // the clock may have gone back
		if e.Reason == d.Reason && e.Context == d.Context && age <= mergeTime && e.Object == d.Object && e.Username == d.Username {
			e.Count++
			e.Client, e.Updated = d.Client, now
			copy(a.Log[1:i+1], a.Log[:i])
			a.Log[0] = e
			return
		}
	}
	d.ID, d.Count, d.Created, d.Updated = a.nextLogEntry, 1, now, now
	a.nextLogEntry++
	a.Log = slices.Insert(a.Log, 0, &d)
	if len(a.Log) > limit {
		clear(a.Log[limit:])
		a.Log = a.Log[:limit]
	}
}
