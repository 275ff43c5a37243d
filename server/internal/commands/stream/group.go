package stream

import (
	"math"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/values/sequence"
)

// GroupCommands returns the rows of the commands on consumer groups.
func GroupCommands() []engine.Command {
	return []engine.Command{
		{Facts: protocol.Facts{
			Name: "xgroup", Arity: -2,
			Group: "stream", Since: "5.0.0", Complexity: "That of the subcommand",
			Summary: "Consumer groups of a stream",
		}, Subcommands: []engine.Command{
			{Facts: protocol.Facts{
				Name: "xgroup|create", Arity: -5, Flags: "write denyoom", Keys: "2 RW insert",
				Group: "stream", Since: "5.0.0", Complexity: "O(G), G groups of the stream",
				Summary: "Add a group to a stream",
				Syntax:  "key group id-selector:(id | new-id:$) [MKSTREAM] [ENTRIESREAD entriesread=entries-read:integer]",
				History: []string{"7.0.0 `ENTRIESREAD`"},
			}, Run: xgroupCreate},
			{Facts: protocol.Facts{
				Name: "xgroup|createconsumer", Arity: 5, Flags: "write denyoom", Keys: "2 RW insert",
				Group: "stream", Since: "6.2.0", Complexity: "O(C), C consumers of the group",
				Summary: "Add a consumer to a group",
				Syntax:  "key group consumer",
			}, Run: xgroupCreateconsumer},
			{Facts: protocol.Facts{
				Name: "xgroup|delconsumer", Arity: 5, Flags: "write", Keys: "2 RW delete",
				Group: "stream", Since: "5.0.0", Complexity: "O(P log N), P pending entries of the consumer, N of the group",
				Summary: "Remove a consumer from a group, with its pending entries",
				Syntax:  "key group consumer",
			}, Run: xgroupDelconsumer},
			{Facts: protocol.Facts{
				Name: "xgroup|destroy", Arity: 4, Flags: "write", Keys: "2 RW delete",
				Group: "stream", Since: "5.0.0",
				Complexity: "O(G), G groups of the stream",
				Summary:    "Remove a group from a stream",
				Syntax:     "key group",
			}, Run: xgroupDestroy},
			engine.HelpRow(protocol.Facts{Name: "xgroup|help", Group: "stream", Since: "5.0.0"},
				"CREATE <key> <groupname> <id|$> [option]",
				"    Add a group that reads after an ID, or after the last one ($):",
				"    * MKSTREAM: create the stream if it is absent",
				"    * ENTRIESREAD <n>: the number of entries up to the ID",
				"CREATECONSUMER <key> <groupname> <consumer>",
				"    Add a consumer to a group.",
				"DELCONSUMER <key> <groupname> <consumer>",
				"    Remove a consumer with its pending entries.",
				"DESTROY <key> <groupname>",
				"    Remove a group with its consumers.",
				"SETID <key> <groupname> <id|$> [ENTRIESREAD entries_read]",
				"    Let a group continue after an ID."),
			{Facts: protocol.Facts{
				Name: "xgroup|setid", Arity: -5, Flags: "write", Keys: "2 RW update",
				Group: "stream", Since: "5.0.0", Complexity: "O(1)",
				Summary: "Set the last ID that a group has delivered",
				Syntax:  "key group id-selector:(id | new-id:$) [ENTRIESREAD entriesread=entries-read:integer]",
				History: []string{"7.0.0 `ENTRIESREAD`"},
			}, Run: xgroupSetid},
		}},
		{Facts: protocol.Facts{
			Name: "xack", Arity: -4, Flags: "write fast", Keys: "1 RW update",
			Group: "stream", Since: "5.0.0", Complexity: "O(M log N), M IDs given, N pending entries of the group",
			Summary: "Acknowledge entries: they are no longer pending in the group",
			Syntax:  "key group id [id ...]",
		}, Run: xack},
		{Facts: protocol.Facts{
			Name: "xackdel", Arity: -6, Flags: "write fast", Keys: "1 RW update delete",
			Group: "stream", Since: "8.2.0", Complexity: "O(M log N), M IDs given, N entries of the stream",
			Summary: "Acknowledge entries and delete them from the stream",
			Syntax:  "key group condition:[KEEPREF | DELREF | ACKED] IDS ids:(numids:integer id...)",
		}, Run: xackdel},
		{Facts: protocol.Facts{
			Name: "xpending", Arity: -3, Flags: "readonly", Keys: "1 RO access",
			Group: "stream", Since: "5.0.0", Tips: "nondeterministic_output",
			Complexity: "O(C) for the summary, C consumers; else O(log N + M), N pending entries, M examined",
			Summary:    "Summary or list of the pending entries of a group",
			Syntax:     "key group filters:[[IDLE min-idle-time:integer@6.2.0] start:string end:string count [consumer]]",
			History:    []string{"6.2.0 `IDLE`; bounds that are excluded"},
		}, Run: xpending},
		{Facts: protocol.Facts{
			Name: "xclaim", Arity: -6, Flags: "write fast", Keys: "1 RW update",
			Group: "stream", Since: "5.0.0", Tips: "nondeterministic_output",
			Complexity: "O(M log N), M IDs given, N pending entries of the group",
			Summary:    "Make a consumer the owner of the given pending entries",
			Syntax:     "key group consumer min-idle-time id [id ...] [IDLE ms] [TIME unix-time-milliseconds] [RETRYCOUNT count] [FORCE] [JUSTID] [LASTID lastid:string]",
		}, Run: xclaim},
		{Facts: protocol.Facts{
			Name: "xautoclaim", Arity: -6, Flags: "write fast", Keys: "1 RW delete",
			Group: "stream", Since: "6.2.0", Tips: "nondeterministic_output", Complexity: "O(M log N), M entries examined, at most ten times COUNT, N pending entries of the group",
			Summary: "Make a consumer the owner of pending entries that have been idle for some time",
			Syntax:  "key group consumer min-idle-time start:string [COUNT count] [JUSTID]",
			History: []string{"7.0.0 The reply lists the IDs of deleted entries"},
		}, Run: xautoclaim},
	}
}

// groupOptions are the options of XGROUP CREATE and SETID.
type groupOptions struct {
	mkstream bool
	read     int64
}

// parseGroupOptions reads the options. If ok is false the error has been replied.
func parseGroupOptions(c *engine.Call, create bool) (o groupOptions, ok bool) {
	o.read = sequence.UnknownRead
	for c.More() {
		switch {
		case create && c.Is("MKSTREAM"):
			o.mkstream = true
		case c.Len() >= 2 && c.Is("ENTRIESREAD"):
			if o.read = c.Int(); o.read < 0 && o.read != sequence.UnknownRead {
				c.Fail("ERR value for ENTRIESREAD must be positive or -1")
			}
		default:
			c.UnknownSubcommand()
			return o, false
		}
	}
	return o, c.OK()
}

// entriesRead returns the number of entries that a group has read where a client says so. In
// Redis it is at most the number of entries added.
func entriesRead(c *engine.Call, s *sequence.Stream, read int64) int64 {
	if c.Config().Valkey() {
		return read
	}
	return min(read, s.Added())
}

// streamOfGroup opens the stream of an XGROUP command for changing. If ok is false
// the error has been replied, also that the stream does not exist, unless create is
// true.
func streamOfGroup(c *engine.Call, key []byte, create bool) (*sequence.Stream, bool) {
	s, ok := engine.Edit[sequence.Stream](c, key)
	if ok && s == nil && !create {
		c.Reply.Error("ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the " +
			"MKSTREAM option to create an empty stream automatically.")
		return nil, false
	}
	return s, ok
}

func noGroup(key, group []byte) string {
	return "NOGROUP No such consumer group '" + engine.UntilNUL(group) + "' for key name '" + engine.UntilNUL(key) + "'"
}

// groupToEdit opens a group for changing; if there is none it replies the error.
func groupToEdit(c *engine.Call, key, group []byte) *sequence.Group {
	s, ok := streamOfGroup(c, key, false)
	if !ok {
		return nil
	}
	g := s.EditGroup(group)
	if g == nil {
		c.Reply.Error(noGroup(key, group))
	}
	return g
}

// xgroupCreate is XGROUP CREATE key group id|$ [MKSTREAM] [ENTRIESREAD entries-read].
func xgroupCreate(c *engine.Call) {
	const maxArgs = 8
	key, group, id := c.Bytes(), c.Bytes(), c.Bytes()
	o, ok := parseGroupOptions(c, true)
	if !ok {
		return
	}
	s, ok := streamOfGroup(c, key, o.mkstream)
	if !ok {
		return
	}
	if len(c.Argv) > maxArgs {
		c.UnknownSubcommand()
		return
	}
	var last sequence.StreamID
	if string(id) != "$" {
		if last, ok = parseStreamID(id, 0); !ok {
			c.Reply.Error(errStreamID)
			return
		}
	} else if s != nil {
		last = s.LastID()
	}
	switch {
	case s != nil && s.Group(group) != nil:
		c.Reply.Error("BUSYGROUP Consumer Group name already exists")
		return
	case s == nil:
		s = create(c, key)
		s.AddGroup(group, last, entriesRead(c, s, o.read))
		c.Changed(key, engine.ClassStream, "xgroup-create")
	default:
		s.AddGroup(group, last, entriesRead(c, s, o.read))
		c.ChangedUnwatched(key, engine.ClassStream, "xgroup-create")
	}
	c.Reply.OK()
}

func xgroupCreateconsumer(c *engine.Call) {
	key, group, name := c.Bytes(), c.Bytes(), c.Bytes()
	if !c.OK() {
		return
	}
	g := groupToEdit(c, key, group)
	switch {
	case g == nil:
	case g.Consumer(name) != nil:
		c.Reply.Int(0)
	default:
		g.AddConsumer(name, c.Now())
		c.ChangedUnwatched(key, engine.ClassStream, "xgroup-createconsumer")
		c.Reply.Int(1)
	}
}

func xgroupDelconsumer(c *engine.Call) {
	key, group, name := c.Bytes(), c.Bytes(), c.Bytes()
	if !c.OK() {
		return
	}
	g := groupToEdit(c, key, group)
	if g == nil {
		return
	}
	n := 0
	if consumer := g.Consumer(name); consumer != nil {
		n = consumer.Len()
		g.RemoveConsumer(consumer)
		c.ChangedUnwatched(key, engine.ClassStream, "xgroup-delconsumer")
	}
	c.Reply.Int(int64(n))
}

func xgroupDestroy(c *engine.Call) {
	key, group := c.Bytes(), c.Bytes()
	if !c.OK() {
		return
	}
	s, ok := streamOfGroup(c, key, false)
	switch {
	case !ok:
	case s.RemoveGroup(group):
		c.Changed(key, engine.ClassStream, "xgroup-destroy")
		c.Reply.Int(1)
	default:
		c.Reply.Int(0)
	}
}

// xgroupSetid is XGROUP SETID key group id|$ [ENTRIESREAD entries-read].
func xgroupSetid(c *engine.Call) {
	const maxArgs = 7
	key, group, id := c.Bytes(), c.Bytes(), c.Bytes()
	o, ok := parseGroupOptions(c, false)
	if !ok {
		return
	}
	s, ok := streamOfGroup(c, key, false)
	if !ok {
		return
	}
	g := s.EditGroup(group)
	if g == nil {
		c.Reply.Error(noGroup(key, group))
		return
	}
	if len(c.Argv) > maxArgs {
		c.UnknownSubcommand()
		return
	}
	last := s.LastID()
	if string(id) != "$" {
		if last, _, ok = parseBound(id, 0); !ok || id[0] == '(' {
			c.Reply.Error(errStreamID)
			return
		}
	}
	g.SetID(last, entriesRead(c, s, o.read))
	c.ChangedUnwatched(key, engine.ClassStream, "xgroup-setid")
	c.Reply.OK()
}

// groupToRead opens a group; it is nil if there is none. If ok is false the error
// has been replied.
func groupToRead(c *engine.Call, key, group []byte) (s *sequence.Stream, g *sequence.Group, ok bool) {
	if s, ok = engine.Read[sequence.Stream](c, key); s != nil {
		g = s.Group(group)
	}
	return s, g, ok
}

// xack is XACK key group id [id ...].
func xack(c *engine.Call) {
	key, group := c.Bytes(), c.Bytes()
	_, g, ok := groupToRead(c, key, group) // Redis checks the key before the IDs
	if !ok {
		return
	}
	if g == nil {
		c.Reply.Int(0)
		return
	}
	ids := streamIDs(c)
	if !c.OK() {
		return
	}
	g = editGroup(c, key, group)
	n := int64(0)
	for _, id := range ids {
		if g.Acknowledge(id) {
			n++
		}
	}
	if n > 0 {
		c.ChangedUnwatched(key, engine.ClassStream, "")
	}
	c.Reply.Int(n)
}

// xackdel is XACKDEL key group [KEEPREF|DELREF|ACKED] IDS numids id [id ...].
func xackdel(c *engine.Call) {
	key, group := c.Bytes(), c.Bytes()
	_, g, ok := groupToRead(c, key, group) // Redis checks the type of the key before the other arguments
	if !ok {
		return
	}
	o := parseDelexOptions(c)
	if !c.OK() {
		return
	}
	if g == nil {
		replyNoEntries(c, o.ids)
		return
	}
	ids, ok := parsedIDs(c, o.ids)
	if !ok {
		return
	}
	s, _ := engine.Edit[sequence.Stream](c, key)
	g = s.EditGroup(group)
	deleted, acknowledged := false, false
	c.Reply.Array(len(ids))
	for _, id := range ids {
		if !g.Acknowledge(id) {
			c.Reply.Int(noEntry)
			continue
		}
		acknowledged = true
		if o.refs == sequence.OnlyAcked && s.Referenced(id) {
			c.Reply.Int(entryReferenced)
			continue
		}
		if o.refs == sequence.DropRefs {
			s.Forget(id)
		}
		if s.Delete(id) {
			deleted = true
		}
		c.Reply.Int(entryDeleted) // even if the entry was deleted earlier
	}
	changedEntries(c, key, deleted, acknowledged)
}

// xpendingOptions are the arguments of XPENDING after the key and the group.
type xpendingOptions struct {
	idle     int64
	lo, hi   sequence.StreamID
	count    int64
	consumer []byte // nil for all
}

func parseXpendingOptions(c *engine.Call) (o xpendingOptions) {
	if n := c.Len(); n < 3 || n > 6 {
		c.Fail(protocol.ErrSyntax)
		return o
	}
	if c.Is("IDLE") {
		o.idle = c.Int()
		if c.Len() < 3 {
			c.Fail(protocol.ErrSyntax)
		}
	}
	lo, hi := c.Bytes(), c.Bytes()
	o.count = max(0, c.Int())
	if c.Err() != "" {
		return o
	}
	o.lo, o.hi = lowest(c, lo), highest(c, hi)
	if c.Len() > 0 {
		o.consumer = c.Bytes()
	}
	return o
}

// xpending is XPENDING key group [[IDLE min-idle-time] start end count [consumer]].
func xpending(c *engine.Call) {
	key, group := c.Bytes(), c.Bytes()
	summary := c.Len() == 0
	var o xpendingOptions
	if !summary {
		o = parseXpendingOptions(c)
	}
	if !c.OK() {
		return
	}
	_, g, ok := groupToRead(c, key, group)
	switch {
	case !ok:
	case g == nil:
		c.Reply.Error(noKeyOrGroup(key, group))
	case summary:
		pendingSummary(c, g)
	default:
		pendingRange(c, g, &o)
	}
}

func noKeyOrGroup(key, group []byte) string {
	return "NOGROUP No such key '" + engine.UntilNUL(key) + "' or consumer group '" + engine.UntilNUL(group) + "'"
}

func pendingSummary(c *engine.Call, g *sequence.Group) {
	c.Reply.Array(4)
	c.Reply.Int(int64(g.Len()))
	if g.Len() == 0 {
		c.Reply.Null()
		c.Reply.Null()
		c.Reply.NullArray()
		return
	}
	first, last := g.Ends()
	replyStreamID(c, first.ID)
	replyStreamID(c, last.ID)
	n := 0
	for _, consumer := range g.Consumers() {
		if consumer.Len() > 0 {
			n++
		}
	}
	c.Reply.Array(n)
	for _, consumer := range g.Consumers() {
		if consumer.Len() > 0 {
			c.Reply.Array(2)
			c.Reply.BulkString(consumer.Name())
			c.Reply.BulkInt(int64(consumer.Len()))
		}
	}
}

func pendingRange(c *engine.Call, g *sequence.Group, o *xpendingOptions) {
	all := g.Ascend(o.lo)
	if o.consumer != nil {
		consumer := g.Consumer(o.consumer)
		if consumer == nil {
			c.Reply.Array(0)
			return
		}
		all = g.AscendOf(consumer, o.lo)
	}
	var found []sequence.Pending
	for p := range all {
		if int64(len(found)) == o.count || o.hi.Less(p.ID) {
			break
		}
		if o.idle == 0 || c.Now()-p.Time >= o.idle {
			found = append(found, p)
		}
	}
	c.Reply.Array(len(found))
	for _, p := range found {
		c.Reply.Array(4)
		replyStreamID(c, p.ID)
		c.Reply.BulkString(g.Owner(p).Name())
		c.Reply.Int(max(0, c.Now()-p.Time))
		c.Reply.Int(p.Count)
	}
}

// xclaimOptions are the options of XCLAIM.
type xclaimOptions struct {
	minIdle       int64
	ids           []sequence.StreamID
	time          int64 // time of the delivery
	count         int64 // number of deliveries; -1 to increment
	force, justid bool
	last          sequence.StreamID
}

func parseXclaimOptions(c *engine.Call) xclaimOptions {
	o := xclaimOptions{minIdle: max(0, c.IntOr("ERR Invalid min-idle-time argument for XCLAIM")), count: -1, time: -1}
	for c.More() {
		id, ok := parseStreamID(c.Peek(0), 0)
		if !ok {
			break
		}
		c.Skip(1)
		o.ids = append(o.ids, id)
	}
	for c.More() {
		switch {
		case c.Is("FORCE"):
			o.force = true
		case c.Is("JUSTID"):
			o.justid = true
		case c.Len() >= 2 && c.Is("IDLE"):
			o.time = c.Now() - c.IntOr("ERR Invalid IDLE option argument for XCLAIM")
		case c.Len() >= 2 && c.Is("TIME"):
			o.time, _ = c.ReadTime(c.Bytes(), engine.Absolute, "ERR Invalid TIME option argument for XCLAIM")
		case c.Len() >= 2 && c.Is("RETRYCOUNT"):
			o.count = c.IntOr("ERR Invalid RETRYCOUNT option argument for XCLAIM")
		case c.Len() >= 2 && c.Is("LASTID"):
			o.last = streamID(c)
		default:
			c.Fail("ERR Unrecognized XCLAIM option '" + engine.UntilNUL(c.Bytes()) + "'")
		}
	}
	if o.time < 0 || o.time > c.Now() {
		o.time = c.Now()
	}
	return o
}

// xclaim is XCLAIM key group consumer min-idle-time id [id ...] [IDLE ms] [TIME unix-time-milliseconds] [RETRYCOUNT count] [FORCE] [JUSTID] [LASTID id].
func xclaim(c *engine.Call) {
	key, group, name := c.Bytes(), c.Bytes(), c.Bytes()
	s, g, ok := groupToRead(c, key, group) // Redis checks the key before the options
	if !ok {
		return
	}
	if g == nil {
		c.Reply.Error(noKeyOrGroup(key, group))
		return
	}
	o := parseXclaimOptions(c)
	if !c.OK() {
		return
	}
	g = editGroup(c, key, group)
	if g.LastID().Less(o.last) {
		g.SetID(o.last, g.Read())
		c.ChangedUnwatched(key, engine.ClassStream, "")
	}
	consumer := consumer(c, key, g, name, false) // even if it gets no entry, as since Redis 7.2
	var claimed []sequence.StreamID
	for _, id := range o.ids {
		p, pending := g.Pending(id)
		switch {
		case !s.Has(id):
			if g.Acknowledge(id) {
				c.ChangedUnwatched(key, engine.ClassStream, "")
			}
			continue
		case pending && o.minIdle != 0 && c.Now()-p.Time < o.minIdle, !pending && !o.force:
			continue
		case !pending:
			p.Count = 1
		}
		g.RecordRead(consumer, c.Now(), true)
		claim(c, key, g, consumer, p.Count, &o, id)
		claimed = append(claimed, id)
	}
	replyClaimed(c, s, claimed, o.justid)
}

// claim makes an entry pending with a consumer; before is the previous number of
// deliveries.
func claim(c *engine.Call, key []byte, g *sequence.Group, consumer *sequence.Consumer, before int64, o *xclaimOptions, id sequence.StreamID) {
	switch {
	case o.count >= 0:
		before = o.count
	case !o.justid:
		before++
	}
	g.Deliver(consumer, id, o.time, before)
	c.ChangedUnwatched(key, engine.ClassStream, "")
}

// replyClaimed replies entries, or only their IDs.
func replyClaimed(c *engine.Call, s *sequence.Stream, ids []sequence.StreamID, justid bool) {
	c.Reply.Array(len(ids))
	for _, id := range ids {
		if justid {
			replyStreamID(c, id)
			continue
		}
		e, _ := s.Get(id)
		replyEntry(c, e)
	}
}

// xautoclaim is XAUTOCLAIM key group consumer min-idle-time start [COUNT count] [JUSTID].
func xautoclaim(c *engine.Call) {
	const (
		tries    = 10 // entries to examine for each one to claim
		maxCount = math.MaxInt64 / 16
		room     = 1 << 43 // Redis allocates 16 bytes for each, and has 47 bits to address them
	)
	key, group, name := c.Bytes(), c.Bytes(), c.Bytes()
	entry := c.DB.Get(key) // Redis looks up the key before it reads the options, and checks its type after them
	o := xclaimOptions{count: -1, time: c.Now()}
	o.minIdle = max(0, c.IntOr("ERR Invalid min-idle-time argument for XAUTOCLAIM"))
	var from sequence.StreamID
	if b := c.Bytes(); c.Err() == "" {
		from = lowest(c, b)
	}
	count := int64(100)
	for c.More() {
		switch {
		case c.Len() >= 2 && c.Is("COUNT"):
			count = c.IntIn(1, maxCount, "ERR COUNT must be > 0")
		case c.Is("JUSTID"):
			o.justid = true
		default:
			c.Fail(protocol.ErrSyntax)
		}
	}
	if !c.OK() {
		return
	}
	var s *sequence.Stream
	var g *sequence.Group
	if entry != nil {
		var ok bool
		if s, ok = engine.As[sequence.Stream](c, entry); !ok {
			return
		}
		g = s.Group(group)
	}
	if g == nil {
		c.Reply.Error(noKeyOrGroup(key, group))
		return
	}
	if count >= room {
		c.Reply.Error("ERR Insufficient memory, failed allocating transient memory, COUNT too high.")
		return
	}
	// The entries are collected before any change.
	var seen int64
	var gone, claimed []sequence.StreamID
	var next sequence.StreamID // the next entry to examine; 0-0 at the end
	for p := range g.Ascend(from) {
		if seen == count*tries || int64(len(gone)+len(claimed)) == count {
			next = p.ID
			break
		}
		seen++
		switch {
		case !s.Has(p.ID):
			gone = append(gone, p.ID)
		case o.minIdle == 0 || c.Now()-p.Time >= o.minIdle:
			claimed = append(claimed, p.ID)
		}
	}
	g = editGroup(c, key, group)
	for _, id := range gone {
		g.Acknowledge(id)
		c.ChangedUnwatched(key, engine.ClassStream, "")
	}
	consumer := consumer(c, key, g, name, len(claimed) > 0) // even if it gets no entry, as since Redis 7.2
	for _, id := range claimed {
		p, _ := g.Pending(id)
		claim(c, key, g, consumer, p.Count, &o, id)
	}
	c.Reply.Array(3)
	replyStreamID(c, next)
	replyClaimed(c, s, claimed, o.justid)
	c.Reply.Array(len(gone))
	for _, id := range gone {
		replyStreamID(c, id)
	}
}
