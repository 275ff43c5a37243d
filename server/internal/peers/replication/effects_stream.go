package replication

import (
	"slices"

	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/internal/values/operation"
	"github.com/zsetd/zsetd/server/internal/values/sequence"
)

// stream writes an operation on a stream.
func (w *writer) stream(key []byte, op *operation.Operation) {
	switch op.Code {
	case operation.Put:
		w.entry(key, op.ID, op.Fields)
	case operation.Remove:
		w.add([]any{"XDEL", key}, []any{op.ID})
	case operation.RemoveRange:
		w.trim(key, op.ID)
	case operation.ID:
		w.setID(key, op.ID, op.N, op.MaxDeleted)
	case operation.Group:
		w.group, w.newGroup = op.Text, op.New
	case operation.Delivered:
		if w.newGroup {
			w.command("XGROUP", "CREATE", key, w.group, op.ID, "ENTRIESREAD", op.N)
			w.newGroup = false
		} else {
			w.command("XGROUP", "SETID", key, w.group, op.ID, "ENTRIESREAD", op.N)
		}
	case operation.RemoveGroup:
		w.command("XGROUP", "DESTROY", key, w.group)
	case operation.Consumer:
		w.consumer = op.Text
		if op.New {
			w.command("XGROUP", "CREATECONSUMER", key, w.group, w.consumer)
		}
	case operation.RemoveConsumer:
		w.command("XGROUP", "DELCONSUMER", key, w.group, w.consumer)
	case operation.Deliver:
		w.claim(key, op.ID, op.N, op.M)
	case operation.Acknowledge:
		w.add([]any{"XACK", key, w.group}, []any{op.ID})
	case operation.Idempotence:
		w.idempotence(key, sequence.IdempotenceLimits{Seconds: op.N, Most: op.M})
	case operation.Identify:
		w.inPing("XIDMPRECORD", key, op.Text, op.Value, op.ID)
	case operation.Outdate, operation.Identified: // each server has its own clock, and counts for itself
	}
}

// idempotence writes for how long identifiers of entries are kept, and how many. Redis before
// 8.6 and Valkey do not know the command.
func (w *writer) idempotence(key []byte, l sequence.IdempotenceLimits) {
	w.inPing("XCFGSET", key, "IDMP-DURATION", l.Seconds, "IDMP-MAXSIZE", l.Most)
}

// entry writes the addition of an entry, whose fields alternate with values.
func (w *writer) entry(key []byte, id sequence.StreamID, fields [][]byte) {
	w.endBatch()
	w.begin(3 + len(fields))
	w.buf = appendArgs(w.buf, "XADD", key, id)
	for _, b := range fields {
		w.buf = appendBulk(w.buf, b)
	}
}

// setID writes the last ID, the number of entries added and the highest deleted ID. XSETID
// may set the first below the last, but not in one command.
func (w *writer) setID(key []byte, last sequence.StreamID, added int64, maxDeleted sequence.StreamID) {
	if last.Less(maxDeleted) {
		w.command("XSETID", key, maxDeleted, "MAXDELETEDID", maxDeleted)
		w.command("XSETID", key, last, "ENTRIESADDED", added)
		return
	}
	w.command("XSETID", key, last, "ENTRIESADDED", added, "MAXDELETEDID", maxDeleted)
}

// trim writes the removal of all entries before an ID, or of all if it is 0-0.
func (w *writer) trim(key []byte, first sequence.StreamID) {
	if first.IsZero() {
		w.command("XTRIM", key, "MAXLEN", "0")
	} else {
		w.command("XTRIM", key, "MINID", first)
	}
}

// claim writes that an entry, which must exist, is pending with the consumer.
func (w *writer) claim(key []byte, id sequence.StreamID, time, count int64) {
	w.add([]any{"XCLAIM", key, w.group, w.consumer, "0"}, []any{id}, "TIME", time, "RETRYCOUNT", count, "FORCE", "JUSTID")
}

// wholeStream writes commands that create a stream, and returns its deadline.
//
// XCLAIM makes only entries pending that exist. So entries that are pending but no
// longer in the stream are added, and removed again at the end: those before the first
// entry of the stream by trimming, which does not change the highest deleted ID.
func (w *writer) wholeStream(x *keyspace.Effect) (deadline int64) {
	s, deadline := x.Stream()
	gone := missing(s)
	if s.Len() == 0 && len(gone) == 0 {
		w.emptyStream(x.Key, s)
	}
	added := int64(s.Len() + len(gone))
	last := sequence.StreamID{}
	rest := gone
	placeholder := [][]byte{{}, {}}
	var fields [][]byte
	for e := range s.Ascend(sequence.StreamID{}, sequence.MaxStreamID()) {
		for ; len(rest) > 0 && rest[0].Less(e.ID); rest = rest[1:] {
			w.entry(x.Key, rest[0], placeholder)
		}
		fields = fields[:0]
		for field, value := range e.Pairs {
			fields = append(fields, field, value)
		}
		w.entry(x.Key, e.ID, fields)
		last = e.ID
		if w.stopped {
			return 0
		}
	}
	for _, id := range rest {
		w.entry(x.Key, id, placeholder)
		last = id
	}
	for i, g := range s.Groups() {
		w.wholeGroup(x.Key, g, i == 0 && s.Len() == 0 && len(gone) == 0)
		if w.stopped {
			return 0
		}
	}
	maxDeleted := w.removeMissing(x.Key, s, gone)
	if last != s.LastID() || added != s.Added() || maxDeleted != s.MaxDeletedID() {
		w.setID(x.Key, s.LastID(), s.Added(), s.MaxDeletedID())
	}
	if l := s.IdempotenceLimits(); l != sequence.DefaultIdempotenceLimits() {
		w.idempotence(x.Key, l)
	}
	for id := range s.Identifiers {
		w.inPing("XIDMPRECORD", x.Key, id.Producer, id.Name, id.ID)
		if w.stopped {
			return 0
		}
	}
	return deadline
}

// missing returns the IDs of pending entries that are not in the stream, sorted.
func missing(s *sequence.Stream) (ids []sequence.StreamID) {
	for _, g := range s.Groups() {
		for p := range g.Ascend(sequence.StreamID{}) {
			if !s.Has(p.ID) {
				ids = append(ids, p.ID)
			}
		}
	}
	slices.SortFunc(ids, sequence.StreamID.Compare)
	return slices.Compact(ids)
}

// emptyStream creates a stream that has never had an entry if it has no groups: the
// first group creates it otherwise.
func (w *writer) emptyStream(key []byte, s *sequence.Stream) {
	if len(s.Groups()) == 0 {
		w.command("XGROUP", "CREATE", key, "", sequence.StreamID{}, "MKSTREAM")
		w.command("XGROUP", "DESTROY", key, "")
	}
}

// wholeGroup creates a group with its consumers and pending entries.
func (w *writer) wholeGroup(key []byte, g *sequence.Group, create bool) {
	w.group = []byte(g.Name())
	args := []any{"XGROUP", "CREATE", key, w.group, g.LastID()}
	if create {
		args = append(args, "MKSTREAM")
	}
	w.command(append(args, "ENTRIESREAD", g.Read())...)
	for _, c := range g.Consumers() {
		w.consumer = []byte(c.Name())
		w.command("XGROUP", "CREATECONSUMER", key, w.group, w.consumer)
		for p := range g.AscendOf(c, sequence.StreamID{}) {
			w.claim(key, p.ID, p.Time, p.Count)
			if w.stopped {
				return
			}
		}
	}
}

// removeMissing removes entries that were added because they are pending, and returns
// the highest deleted ID of the stream then.
func (w *writer) removeMissing(key []byte, s *sequence.Stream, gone []sequence.StreamID) (maxDeleted sequence.StreamID) {
	first := s.FirstID()
	if len(gone) > 0 && (s.Len() == 0 || gone[0].Less(first)) {
		w.trim(key, first)
	}
	for _, id := range gone {
		if s.Len() > 0 && first.Less(id) {
			w.add([]any{"XDEL", key}, []any{id})
			maxDeleted = id
		}
	}
	return maxDeleted
}
