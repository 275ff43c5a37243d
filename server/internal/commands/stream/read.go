package stream

import (
	"math"
	"slices"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/internal/values/sequence"
)

// ReadCommands returns the rows of XREAD and XREADGROUP.
func ReadCommands() []engine.Command {
	return []engine.Command{
		{Facts: protocol.Facts{
			Name: "xread", Arity: -4, Flags: "readonly blocking", Keys: "STREAMS@1..-1%2 RO access",
			KeysBy: protocol.KeysOfStreams,
			Group:  "stream", Since: "5.0.0",
			Complexity: "O(K log N + M), K streams, N entries of the longest one, M returned",
			Summary:    "Entries of streams after the given IDs; with BLOCK, wait for some",
			Syntax:     "[COUNT count] [BLOCK milliseconds] streams:(STREAMS key [key ...] id [id ...])",
		}, Run: xread},
		{Facts: protocol.Facts{
			Name: "xreadgroup", Arity: -7, Flags: "write blocking", Keys: "STREAMS@4..-1%2 RO access",
			KeysBy: protocol.KeysOfStreams,
			Group:  "stream", Since: "5.0.0",
			Complexity: "O((K + M) log N), K streams, N entries of the longest one, M returned",
			Summary:    "New entries for a consumer of a group, or those that it has not acknowledged; with BLOCK, wait for some",
			Syntax:     "group-block:(GROUP group consumer) [COUNT count] [BLOCK milliseconds] [CLAIM min-idle-time:integer] [NOACK] streams:(STREAMS key [key ...] id [id ...])",
		}, Run: xreadgroup},
	}
}

// xreadOptions are the arguments of XREAD and XREADGROUP.
type xreadOptions struct {
	group, consumer []byte // nil for XREAD
	count           int64  // 0 for all
	blocks          bool
	deadline        int64 // 0 for never
	noack           bool
	claims          bool
	minIdle         int64 // milliseconds
	keys, ids       [][]byte
}

func parseXreadOptions(c *engine.Call, withGroup bool) xreadOptions {
	var o xreadOptions
	for c.More() && o.keys == nil {
		switch {
		case c.Len() >= 2 && c.Is("BLOCK"):
			o.blocks = true
			o.deadline = deadlineMilliseconds(c)
		case c.Len() >= 2 && c.Is("COUNT"):
			o.count = max(0, c.Int())
		case c.Len() >= 2 && c.Is("STREAMS"):
			n := c.Len()
			if n%2 == 1 {
				c.Fail(unbalanced(c, withGroup))
				break
			}
			o.keys, o.ids = c.NextN(n/2), c.NextN(n/2)
		case c.Len() >= 3 && c.Is("GROUP"):
			if !withGroup {
				c.Fail("ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.")
			}
			o.group, o.consumer = c.Bytes(), c.Bytes()
		case c.Len() >= 2 && c.Is("CLAIM"):
			if !withGroup {
				c.Fail("ERR The CLAIM option is only supported by XREADGROUP. You called XREAD instead.")
			}
			o.claims = true
			if o.minIdle = c.IntOr("ERR min-idle-time is not an integer or out of range"); o.minIdle < 0 {
				c.Fail("ERR min-idle-time must be a positive integer")
			}
		case c.Is("NOACK"):
			if !withGroup {
				c.Fail("ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.")
			}
			o.noack = true
		default:
			c.Fail(protocol.ErrSyntax)
		}
	}
	switch {
	case c.Err() != "":
	case o.keys == nil:
		c.Fail(protocol.ErrSyntax)
	case withGroup && o.group == nil:
		c.Fail("ERR Missing GROUP option for XREADGROUP")
	}
	return o
}

// unbalanced returns the error of the command with more keys than IDs, or fewer.
func unbalanced(c *engine.Call, withGroup bool) string {
	name, ids := c.Command.Name, c.Config().Words("ID, '+', or '$'", "ID or '$'")
	if withGroup {
		ids = "ID or '>'"
	}
	return "ERR Unbalanced '" + name + "' list of streams: for each stream key an " + ids + " must be specified."
}

// deadlineMilliseconds is deadline where the timeout is given in milliseconds.
func deadlineMilliseconds(c *engine.Call) int64 {
	ms := c.IntOr("ERR timeout is not an integer or out of range")
	switch {
	case c.Err() != "":
	case ms < 0:
		c.Fail("ERR timeout is negative")
	case ms > math.MaxInt64-c.Now():
		c.Fail("ERR timeout is out of range")
	case ms > 0:
		return c.EndOfWait(ms)
	}
	return 0
}

// defaultBlockedCount is the maximum of entries for a client that was blocked and gave no
// COUNT.
const defaultBlockedCount = 1000

// limit returns the maximum of entries to reply of each stream.
func (o *xreadOptions) limit(again bool) int {
	switch {
	case o.count > 0:
		return int(o.count)
	case again:
		return defaultBlockedCount
	}
	return math.MaxInt
}

// xread is XREAD [COUNT count] [BLOCK milliseconds] STREAMS key [key ...] id [id ...].
func xread(c *engine.Call) {
	o := parseXreadOptions(c, false)
	if !c.OK() {
		return
	}
	behind := make([]sequence.StreamID, 0, 8) // normally on the stack
	for i, key := range o.keys {
		s, ok := engine.Read[sequence.Stream](c, key)
		if !ok {
			return
		}
		id, ok := readAfterID(c, s, o.ids[i])
		if !ok {
			return
		}
		behind = append(behind, id)
	}
	replyStreams(c, &o, func(i int, s *sequence.Stream) bool {
		last, ok := s.Last()
		if !ok || !behind[i].Less(last.ID) {
			return false
		}
		from, _ := behind[i].Next()
		replyStreamName(c, o.keys[i])
		replyEntries(c, s, from, sequence.MaxStreamID(), o.limit(c.Again))
		return true
	}, func() {
		// The present meaning of $ and + is saved for when the command is run
		// again.
		if !c.Again && c.MayBlock() {
			c.Argv = slices.Clone(c.Argv)
			for i, id := range behind {
				c.Argv[len(c.Argv)-len(behind)+i] = id.Append(nil)
			}
		}
		c.Wait(o.deadline, keyspace.KindStream, (*protocol.Reply).NullArray, o.keys...)
	})
}

// readAfterID reads the ID after which the entries of a stream are requested; s is nil
// for a stream that does not exist.
func readAfterID(c *engine.Call, s *sequence.Stream, b []byte) (id sequence.StreamID, ok bool) {
	switch string(b) {
	case "$":
		if s != nil {
			id = s.LastID()
		}
		return id, true
	case "+":
		if s == nil {
			return id, true
		}
		if e, ok := s.Last(); ok {
			id, _ = e.ID.Prev()
			return id, true
		}
		return s.LastID(), true
	case ">":
		c.Reply.Error("ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.")
		return id, false
	}
	if id, ok = parseStreamID(b, 0); !ok {
		c.Reply.Error(errStreamID)
	}
	return id, ok
}

// replyStreams replies those of several streams for which serve replies, by name;
// if there are none, it calls none.
func replyStreams(c *engine.Call, o *xreadOptions, serve func(i int, s *sequence.Stream) bool, none func()) {
	mark := c.Reply.Len()
	c.Reply.Pairs(len(o.keys))
	body, n := c.Reply.Len(), 0
	for i, key := range o.keys {
		if s, ok := engine.Read[sequence.Stream](c, key); ok && s != nil && serve(i, s) {
			n++
		}
	}
	switch n {
	case len(o.keys):
	case 0:
		c.Reply.Truncate(mark)
		if !o.blocks {
			c.Reply.NullArray()
			return
		}
		none()
	default:
		served := slices.Clone(c.Reply.Bytes()[body:])
		c.Reply.Truncate(mark)
		c.Reply.Pairs(n)
		c.Reply.Raw(served)
	}
}

// replyStreamName begins the part of a reply for one stream.
func replyStreamName(c *engine.Call, key []byte) {
	if c.Reply.Version() == 2 {
		c.Reply.Array(2)
	}
	c.Reply.Bulk(key)
}

// xreadgroup is XREADGROUP GROUP group consumer [COUNT count] [BLOCK milliseconds] [CLAIM min-idle-time] [NOACK] STREAMS key [key ...] id [id ...].
func xreadgroup(c *engine.Call) {
	o := parseXreadOptions(c, true)
	if !c.OK() {
		return
	}
	history := make([]sequence.StreamID, 0, 8) // normally on the stack
	for i, key := range o.keys {
		s, ok := engine.Read[sequence.Stream](c, key)
		if !ok {
			return
		}
		if s == nil || s.Group(o.group) == nil {
			c.Reply.Error("NOGROUP No such key '" + engine.UntilNUL(key) + "' or consumer group '" + engine.UntilNUL(o.group) +
				"' in XREADGROUP with GROUP option")
			return
		}
		id, ok := historyAfterID(c, o.ids[i])
		if !ok {
			return
		}
		history = append(history, id)
	}
	want := engine.Want{Kind: keyspace.KindStream, Grouped: true, Group: protocol.View(o.group), Claims: o.claims, MinIdle: o.minIdle}
	replyStreams(c, &o, func(i int, s *sequence.Stream) bool {
		key, id := o.keys[i], history[i]
		if id != sequence.MaxStreamID() {
			g := editGroup(c, key, o.group)
			replyHistory(c, s, g, consumer(c, key, g, o.consumer, false), id, o.limit(c.Again), key)
			o.claims, want.Claims = false, false // for the streams that follow, as in Redis
			return true
		}
		var claimed []sequence.Pending
		if o.claims {
			claimed = idleEntries(s, editGroup(c, key, o.group), c.Now()-o.minIdle, o.limit(c.Again))
		}
		if len(claimed) == 0 && !want.In(s, c.Instant()) {
			if !c.Again {
				consumer(c, key, editGroup(c, key, o.group), o.consumer, false)
			}
			return false
		}
		g := editGroup(c, key, o.group)
		from, _ := g.LastID().Next()
		n := s.Count(from, sequence.MaxStreamID(), o.limit(c.Again)-len(claimed))
		replyStreamName(c, key)
		c.Reply.Array(len(claimed) + n)
		reader := consumer(c, key, g, o.consumer, !o.noack || len(claimed) > 0)
		for _, p := range claimed {
			e, _ := s.Get(p.ID)
			replyDelivery(c, e, c.Now()-p.Time, p.Count)
			g.Deliver(reader, p.ID, c.Now(), p.Count+1)
		}
		g.ReadNext(reader, n, c.Now(), !o.noack, c.Config().Valkey(), func(e sequence.StreamEntry) {
			if o.claims {
				replyDelivery(c, e, 0, 0)
			} else {
				replyEntry(c, e)
			}
		})
		c.ChangedUnwatched(key, engine.ClassStream, "")
		return true
	}, func() {
		want.Group = string(o.group)
		c.WaitFor(o.deadline, want, (*protocol.Reply).NullArray, o.keys)
	})
}

// idleEntries returns at most limit pending entries of a group that were delivered last at
// the given time or earlier, in milliseconds since 1970, and are in the stream; the earliest
// first.
func idleEntries(s *sequence.Stream, g *sequence.Group, until int64, limit int) (idle []sequence.Pending) {
	for p := range g.ByTime {
		if p.Time > until || len(idle) == limit {
			break
		}
		if s.Has(p.ID) {
			idle = append(idle, p)
		}
	}
	return idle
}

// replyDelivery replies an entry with the milliseconds since its last delivery, and the
// number of its deliveries before this one.
func replyDelivery(c *engine.Call, e sequence.StreamEntry, idle, count int64) {
	c.Reply.Array(4)
	replyStreamID(c, e.ID)
	replyPairs(c, e)
	c.Reply.Int(idle)
	c.Reply.Int(count)
}

// historyAfterID reads the ID after which a consumer requests its pending entries again;
// the highest of all IDs stands for >, new entries.
func historyAfterID(c *engine.Call, b []byte) (id sequence.StreamID, ok bool) {
	switch string(b) {
	case "$", "+":
		c.Reply.Error("ERR The " + string(b) + " ID is meaningless in the context of XREADGROUP: you want to read the history of " +
			"this consumer by specifying a proper ID, or use the > ID to get new messages. The " + string(b) +
			" ID would just return an empty result set.")
		return id, false
	case ">":
		return sequence.MaxStreamID(), true
	}
	if id, ok = parseStreamID(b, 0); !ok {
		c.Reply.Error(errStreamID)
	}
	return id, ok
}

// editGroup opens a group, which must exist, for changing.
func editGroup(c *engine.Call, key, group []byte) *sequence.Group {
	return c.DB.Edit(key).Value().(*sequence.Stream).EditGroup(group)
}

// consumer returns the consumer of that name, and creates it if there is none. It
// sets the times when it was last seen, and, if got is true, last active.
func consumer(c *engine.Call, key []byte, g *sequence.Group, name []byte, got bool) *sequence.Consumer {
	consumer := g.Consumer(name)
	if consumer == nil {
		consumer = g.AddConsumer(name, c.Now())
		c.ChangedUnwatched(key, engine.ClassStream, "xgroup-createconsumer")
	}
	g.RecordRead(consumer, c.Now(), got)
	return consumer
}

// replyHistory replies the pending entries of a consumer after id, and records
// another delivery of each. Entries that are no longer in the stream are replied as
// null.
func replyHistory(c *engine.Call, s *sequence.Stream, g *sequence.Group, consumer *sequence.Consumer, id sequence.StreamID, count int, key []byte) {
	id, _ = id.Next()
	var again []sequence.Pending
	for p := range g.AscendOf(consumer, id) {
		if len(again) == count {
			break
		}
		again = append(again, p)
	}
	replyStreamName(c, key)
	c.Reply.Array(len(again))
	for _, p := range again {
		e, ok := s.Get(p.ID)
		if !ok {
			c.Reply.Array(2)
			replyStreamID(c, p.ID)
			c.Reply.NullArray()
			continue
		}
		replyEntry(c, e)
		g.Deliver(consumer, p.ID, c.Now(), p.Count+1)
	}
	c.ChangedUnwatched(key, engine.ClassStream, "")
	if !c.Config().Valkey() { // Redis counts no time and no number of a delivery
		c.Uncounted()
	}
}
