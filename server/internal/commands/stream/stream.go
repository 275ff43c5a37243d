package stream

import (
	"bytes"
	"math"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/values/sequence"
)

// Commands returns the rows of the commands on the entries of a stream.
func Commands() []engine.Command {
	return []engine.Command{
		{Facts: protocol.Facts{
			Name: "xadd", Arity: -5, Flags: "write denyoom fast",
			Keys:  "1 RW update (not only inserts: it may trim)",
			Group: "stream", Since: "5.0.0", Tips: "nondeterministic_output",
			Complexity: "O(1) amortized, plus O(T), T entries trimmed",
			Summary:    "Append an entry to a stream, and trim it if asked to",
			Syntax:     "key [NOMKSTREAM@6.2.0] condition:[KEEPREF | DELREF | ACKED] idmp:[idmpauto-with-pid:(idmpauto-token:IDMPAUTO pid:string) | idmp-with-pid-iid:(idmp-token:IDMP pid:string iid:string)] trim:[strategy:MAXLEN|MINID@6.2.0 operator:[equal:= | approximately:~] threshold [LIMIT count@6.2.0]] id-selector:(auto-id:* | id) data:(field value)...",
			History: []string{
				"6.2.0 `NOMKSTREAM`, `MINID`, `LIMIT`",
				"7.0.0 IDs of the form `<ms>-*`",
				"8.2.0 `KEEPREF`, `DELREF`, `ACKED`",
				"8.6.0 `IDMP`, `IDMPAUTO`",
			},
		}, Run: xadd},
		{Facts: protocol.Facts{
			Name: "xlen", Arity: 2, Flags: "readonly fast", Keys: "1 RO",
			Group: "stream", Since: "5.0.0", Complexity: "O(1)",
			Summary: "Number of entries of a stream",
			Syntax:  "key",
		}, Run: xlen},
		{Facts: protocol.Facts{
			Name: "xrange", Arity: -4, Flags: "readonly", Keys: "1 RO access",
			Group: "stream", Since: "5.0.0",
			Complexity: "O(log N + M), N entries of the stream, M returned",
			Summary:    "Entries with an ID from start to end",
			Syntax:     "key start:string end:string [COUNT count]",
			History:    []string{"6.2.0 Bounds that are excluded"},
		}, Run: xrange},
		{Facts: protocol.Facts{
			Name: "xrevrange", Arity: -4, Flags: "readonly", Keys: "1 RO access",
			Group: "stream", Since: "5.0.0",
			Complexity: "O(log N + M), N entries of the stream, M returned",
			Summary:    "Entries with an ID from end down to start",
			Syntax:     "key end:string start:string [COUNT count]",
			History:    []string{"6.2.0 Bounds that are excluded"},
		}, Run: xrevrange},
		{Facts: protocol.Facts{
			Name: "xdel", Arity: -3, Flags: "write fast", Keys: "1 RW delete",
			Group: "stream", Since: "5.0.0",
			Complexity: "O(M log N), M IDs given, N entries of the stream",
			Summary:    "Delete entries, and reply how many there were",
			Syntax:     "key id [id ...]",
		}, Run: xdel},
		{Facts: protocol.Facts{
			Name: "xdelex", Arity: -5, Flags: "write fast", Keys: "1 RW delete",
			Group: "stream", Since: "8.2.0",
			Complexity: "O(M log N), M IDs given, N entries of the stream",
			Summary:    "Delete entries and, if asked to, the references of groups to them",
			Syntax:     "key condition:[KEEPREF | DELREF | ACKED] IDS ids:(numids:integer id...)",
		}, Run: xdelex},
		{Facts: protocol.Facts{
			Name: "xtrim", Arity: -4, Flags: "write", Keys: "1 RW delete",
			Group: "stream", Since: "5.0.0", Tips: "nondeterministic_output",
			Complexity: "O(T), T entries deleted",
			Summary:    "Delete the oldest entries, down to a number of entries or up to an ID",
			Syntax:     "key trim:(strategy:MAXLEN|MINID@6.2.0 operator:[equal:= | approximately:~] threshold [LIMIT count@6.2.0] condition:[KEEPREF | DELREF | ACKED])",
			History: []string{
				"6.2.0 `MINID`, `LIMIT`",
				"8.2.0 `KEEPREF`, `DELREF`, `ACKED`",
			},
		}, Run: xtrim},
		{Facts: protocol.Facts{
			Name: "xsetid", Arity: -3, Flags: "write denyoom fast", Keys: "1 RW update",
			Group: "stream", Since: "5.0.0", Complexity: "O(1)",
			Summary: "Set the last ID of a stream, and its counters",
			Syntax:  "key last-id [ENTRIESADDED entries-added:integer@7.0.0] [MAXDELETEDID max-deleted-id:string@7.0.0]",
			History: []string{"7.0.0 `ENTRIESADDED`, `MAXDELETEDID`"},
		}, Run: xsetid},
		{Facts: protocol.Facts{
			Name: "xcfgset", Arity: -2, Flags: "write fast", Keys: "1 RW update",
			Group: "stream", Since: "8.6.0", Complexity: "O(1)",
			Summary: "Set for how long a stream keeps the identifiers that producers give to entries, and how many",
			Syntax:  "key idmp-duration-block:[idmp-duration-token:IDMP-DURATION duration:integer] idmp-maxsize-block:[idmp-maxsize-token:IDMP-MAXSIZE maxsize:integer]",
		}, Run: xcfgset},
		{Facts: protocol.Facts{
			Name: "xidmprecord", Arity: 5, Flags: "write denyoom fast", Keys: "1 RW update",
			Group: "stream", Since: "8.6.2", Complexity: "O(log N), N identifiers of the stream",
			Summary: "Record that a producer has used an identifier for an entry",
			Syntax:  "key pid:string iid:string stream-id:string",
		}, Run: xidmprecord},
	}
}

const errStreamID = "ERR Invalid stream ID specified as stream command argument"

// parseStreamID reads an ID: two numbers with a minus between them, or one number,
// which missing completes.
func parseStreamID(b []byte, missing uint64) (id sequence.StreamID, ok bool) {
	if len(b) > 127 {
		return id, false
	}
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i] // as in C, a NUL ends the string
	}
	ms, seq, both := bytes.Cut(b, []byte{'-'})
	id.Ms, ok = parseUint(ms)
	if id.Seq = missing; ok && both {
		id.Seq, ok = parseUint(seq)
	}
	return id, ok
}

// parseUint reads a number as C's strtoull does: spaces and a sign before it are
// allowed, and a minus counts from the end of the numbers; but a text that is also
// an integer of 64 bits may not be negative.
func parseUint(b []byte) (n uint64, ok bool) {
	if i, ok := protocol.ParseInt(b); ok {
		return uint64(i), i >= 0
	}
	b = bytes.TrimLeft(b, " \t\n\v\f\r")
	negative := len(b) > 0 && b[0] == '-'
	if negative || len(b) > 0 && b[0] == '+' {
		b = b[1:]
	}
	for _, c := range b {
		d := uint64(c - '0')
		if d > 9 || n > (math.MaxUint64-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	if negative {
		n = -n
	}
	return n, len(b) > 0
}

// streamID reads an ID; - and + are not accepted.
func streamID(c *engine.Call) sequence.StreamID {
	b := c.Bytes()
	if c.Err() != "" {
		return sequence.StreamID{}
	}
	id, ok := parseStreamID(b, 0)
	if !ok {
		c.Fail(errStreamID)
	}
	return id
}

// streamIDs reads all remaining IDs.
func streamIDs(c *engine.Call) []sequence.StreamID {
	ids := make([]sequence.StreamID, 0, 8) // normally on the stack
	for c.More() {
		ids = append(ids, streamID(c))
	}
	return ids
}

// parseBound reads an end of a range: an ID, -, +, or an exclusive ID, which begins
// with a parenthesis.
func parseBound(b []byte, missing uint64) (id sequence.StreamID, exclusive, ok bool) {
	switch {
	case string(b) == "-":
		return sequence.StreamID{}, false, true
	case string(b) == "+":
		return sequence.MaxStreamID(), false, true
	case len(b) > 1 && b[0] == '(':
		exclusive, b = true, b[1:]
	}
	id, ok = parseStreamID(b, missing)
	return id, exclusive, ok
}

// lowest reads the lower end of a range.
func lowest(c *engine.Call, b []byte) sequence.StreamID {
	id, exclusive, ok := parseBound(b, 0)
	if !ok {
		c.Fail(errStreamID)
	}
	if exclusive {
		if id, ok = id.Next(); !ok {
			c.Fail("ERR invalid start ID for the interval")
		}
	}
	return id
}

// highest reads the upper end of a range.
func highest(c *engine.Call, b []byte) sequence.StreamID {
	id, exclusive, ok := parseBound(b, math.MaxUint64)
	if !ok {
		c.Fail(errStreamID)
	}
	if exclusive {
		if id, ok = id.Prev(); !ok {
			c.Fail("ERR invalid end ID for the interval")
		}
	}
	return id
}

// replyStreamID replies an ID.
func replyStreamID(c *engine.Call, id sequence.StreamID) {
	var b [2*20 + 1]byte
	c.Reply.Bulk(id.Append(b[:0]))
}

// replyEntry replies an entry.
func replyEntry(c *engine.Call, e sequence.StreamEntry) {
	c.Reply.Array(2)
	replyStreamID(c, e.ID)
	replyPairs(c, e)
}

// replyPairs replies the fields and values of an entry.
func replyPairs(c *engine.Call, e sequence.StreamEntry) {
	c.Reply.Array(2 * e.Len())
	for field, value := range e.Pairs {
		c.Reply.Bulk(field)
		c.Reply.Bulk(value)
	}
}

// replyEntries replies the entries from lo to hi, at most count.
func replyEntries(c *engine.Call, s *sequence.Stream, lo, hi sequence.StreamID, count int) {
	n := s.Count(lo, hi, count)
	c.Reply.Array(n)
	for e := range s.Ascend(lo, hi) {
		if n--; n < 0 {
			break
		}
		replyEntry(c, e)
	}
}

// streamOptions are the options that XADD and XTRIM share, and the ID of XADD.
type streamOptions struct {
	nomkstream bool
	auto       bool // the ID is generated
	autoSeq    bool // its second number is generated
	id         sequence.StreamID
	trims      bool
	trim       sequence.StreamTrim

	producer   []byte // of an entry that is added idempotently, or nil
	identifier []byte // nil: the fields and values are
}

func parseStreamOptions(c *engine.Call, xadd bool) streamOptions {
	var o streamOptions
	limited, chosen, done := false, false, false
	for c.More() && !done {
		switch {
		case !chosen && refsOption(c, &o.trim.Refs):
			chosen = true
		case xadd && string(c.Peek(0)) == "*":
			c.Skip(1)
			o.auto, done = true, true
		case c.Len() >= 2 && c.Is("MAXLEN"):
			trimStrategy(c, &o)
			if o.trim.MaxLen = c.Int(); o.trim.MaxLen < 0 {
				c.Fail("ERR The MAXLEN argument must be >= 0.")
			}
		case c.Len() >= 2 && c.Is("MINID"):
			trimStrategy(c, &o)
			o.trim.ByID, o.trim.MinID = true, streamID(c)
		case c.Len() >= 2 && c.Is("LIMIT"):
			limited = true
			if o.trim.Limit = c.Int(); o.trim.Limit < 0 {
				c.Fail("ERR The LIMIT argument must be >= 0.")
			}
		case xadd && c.Is("NOMKSTREAM"):
			o.nomkstream = true
		case xadd && c.Len() >= 3 && c.Is("IDMP"):
			o.once(c, "IDMP")
			if o.identifier = c.Bytes(); len(o.identifier) == 0 {
				c.Fail("ERR syntax error, IDMP requires a non-empty idempotent ID")
			}
		case xadd && c.Len() >= 2 && c.Is("IDMPAUTO"):
			o.once(c, "IDMPAUTO")
		case xadd:
			newStreamID(c, &o)
			done = true
		default:
			c.Fail(protocol.ErrSyntax)
		}
	}
	switch {
	case done && o.producer != nil && !o.auto && !c.Keys().Revealed():
		c.Fail("ERR syntax error, IDMP/IDMPAUTO can be used only with auto-generated IDs")
	case o.trim.Limit != 0 && !o.trims:
		c.Fail("ERR syntax error, LIMIT cannot be used without specifying a trimming strategy")
	case !xadd && !o.trims:
		c.Fail("ERR syntax error, XTRIM must be called with a trimming strategy")
	case limited && !o.trim.Approx:
		c.Fail("ERR syntax error, LIMIT cannot be used without the special ~ option")
	case !limited && o.trim.Approx:
		o.trim.Limit = streamTrimLimit(c.Limits().Stream.MaxEntries)
	}
	return o
}

// once reads the producer of an entry that is added idempotently.
func (o *streamOptions) once(c *engine.Call, option string) {
	if o.producer != nil {
		c.Fail("ERR syntax error, IDMP/IDMPAUTO specified multiple times")
	}
	if o.producer = c.Bytes(); len(o.producer) == 0 {
		c.Fail("ERR syntax error, " + option + " requires a non-empty producer ID")
	}
}

// refsOption reads the option for references of groups to entries that are removed,
// if that is next.
func refsOption(c *engine.Call, refs *sequence.Refs) bool {
	switch {
	case c.Is("KEEPREF"):
		*refs = sequence.KeepRefs
	case c.Is("DELREF"):
		*refs = sequence.DropRefs
	case c.Is("ACKED"):
		*refs = sequence.OnlyAcked
	default:
		return false
	}
	return true
}

// trimStrategy reads an = or ~ between MAXLEN or MINID and the threshold.
func trimStrategy(c *engine.Call, o *streamOptions) {
	if o.trims {
		c.Fail("ERR syntax error, MAXLEN and MINID options at the same time are not compatible")
	}
	o.trims, o.trim.Approx = true, false
	if c.Len() >= 2 {
		if o.trim.Approx = c.Is("~"); !o.trim.Approx {
			c.Is("=")
		}
	}
}

// streamTrimLimit is the default limit of entries that are removed at once: those
// of a hundred blocks.
func streamTrimLimit(blockEntries int) int64 {
	switch n := int64(blockEntries); {
	case n <= 0:
		return 10_000
	case n > 10_000:
		return 1_000_000
	default:
		return 100 * n
	}
}

// newStreamID reads the ID of a new entry, whose second number may be *.
func newStreamID(c *engine.Call, o *streamOptions) {
	b := c.Bytes()
	if ms, ok := bytes.CutSuffix(b, []byte("-*")); ok && len(b) <= 127 && bytes.IndexByte(ms, '-') < 0 {
		o.autoSeq = true
		o.id.Ms, ok = parseUint(ms)
		if !ok {
			c.Fail(errStreamID)
		}
		return
	}
	var ok bool
	if o.id, ok = parseStreamID(b, 0); !ok {
		c.Fail(errStreamID)
	}
}

// next returns the ID of a new entry behind last; it is not higher than last if no
// higher one is possible.
func (o *streamOptions) next(last sequence.StreamID, now int64) sequence.StreamID {
	switch {
	case o.auto && uint64(now) > last.Ms:
		return sequence.StreamID{Ms: uint64(now)}
	case o.autoSeq && o.id.Ms == last.Ms && last.Seq == math.MaxUint64:
		return last
	case o.auto, o.autoSeq && o.id.Ms == last.Ms:
		next, _ := last.Next()
		return next
	}
	return o.id
}

// maxEntry is the maximum of bytes in the fields and values of an entry.
const maxEntry = 1 << 30

// xadd is XADD key [NOMKSTREAM] [KEEPREF|DELREF|ACKED] [IDMPAUTO producer | IDMP producer identifier] [MAXLEN|MINID [=|~] threshold [LIMIT count]] *|id field value [field value ...].
func xadd(c *engine.Call) {
	key := c.Bytes()
	o := parseStreamOptions(c, true)
	fields := c.Rest()
	switch {
	case len(fields) < 2 || len(fields)%2 == 1:
		c.Fail(engine.WrongArity("xadd"))
	case !o.auto && !o.autoSeq && o.id.IsZero():
		c.Fail("ERR The ID specified in XADD must be greater than 0-0")
	}
	if !c.OK() {
		return
	}
	s, ok := engine.Edit[sequence.Stream](c, key)
	if !ok {
		return
	}
	var last sequence.StreamID
	if s != nil {
		last = s.LastID()
	} else if o.nomkstream {
		c.Reply.Null()
		return
	}
	if o.producer != nil && o.identifier == nil {
		o.identifier = identify(fields)
	}
	if o.producer != nil && o.auto && known(c, key, s, &o) {
		return
	}
	if last == sequence.MaxStreamID() {
		c.Reply.Error("ERR The stream has exhausted the last possible ID, unable to add more items")
		return
	}
	id := o.next(last, c.Now())
	if !last.Less(id) {
		c.Reply.Error("ERR The ID specified in XADD is equal or smaller than the target stream top item")
		return
	}
	size := 0
	for _, b := range fields {
		size += len(b)
	}
	if size > maxEntry {
		c.Reply.Error("ERR Elements are too large to be stored")
		return
	}
	if s == nil {
		s = create(c, key)
	}
	s.Add(id, fields, c.Limits().Stream)
	if o.producer != nil {
		s.Identify(o.producer, o.identifier, id, c.Now())
	}
	c.Changed(key, engine.ClassStream, "xadd")
	if o.trims && s.Trim(o.trim) > 0 {
		c.Changed(key, engine.ClassStream, "xtrim")
	}
	replyStreamID(c, id)
}

func xlen(c *engine.Call) {
	key := c.Bytes()
	if !c.OK() {
		return
	}
	s, ok := engine.Read[sequence.Stream](c, key)
	switch {
	case !ok:
	case s == nil:
		c.Reply.Int(0)
	default:
		c.Reply.Int(int64(s.Len()))
	}
}

// xrange is XRANGE key start end [COUNT count].
func xrange(c *engine.Call) { streamRange(c, false) }

// xrevrange is XREVRANGE key end start [COUNT count].
func xrevrange(c *engine.Call) { streamRange(c, true) }

func streamRange(c *engine.Call, reverse bool) {
	key, from, to := c.Bytes(), c.Bytes(), c.Bytes()
	if reverse {
		from, to = to, from
	}
	lo, hi := lowest(c, from), highest(c, to)
	count := int64(math.MaxInt)
	for c.More() {
		if c.Len() < 2 || !c.Is("COUNT") {
			c.Fail(protocol.ErrSyntax)
			break
		}
		count = c.Int()
	}
	if !c.OK() {
		return
	}
	s, ok := engine.Read[sequence.Stream](c, key)
	switch {
	case !ok:
	case s == nil:
		c.Reply.Array(0)
	case count <= 0:
		c.Reply.NullArray()
	case !reverse:
		replyEntries(c, s, lo, hi, int(count))
	default:
		n := s.Count(lo, hi, int(count))
		c.Reply.Array(n)
		for e := range s.Descend(lo, hi) {
			if n--; n < 0 {
				break
			}
			replyEntry(c, e)
		}
	}
}

// xdel is XDEL key id [id ...].
func xdel(c *engine.Call) {
	key := c.Bytes()
	e := c.DB.Edit(key) // Redis checks the key before the IDs
	if e == nil {
		c.Reply.Int(0)
		return
	}
	s, ok := engine.As[sequence.Stream](c, e)
	if !ok {
		return
	}
	ids := streamIDs(c)
	if !c.OK() {
		return
	}
	n := int64(0)
	for _, id := range ids {
		if s.Delete(id) {
			n++
		}
	}
	if n > 0 {
		c.Changed(key, engine.ClassStream, "xdel")
	}
	c.Reply.Int(n)
}

// delexOptions are the options of XDELEX and XACKDEL.
type delexOptions struct {
	refs sequence.Refs
	ids  [][]byte // not checked until the key exists
}

func parseDelexOptions(c *engine.Call) (o delexOptions) {
	chosen := false
	for c.More() {
		switch {
		case !chosen && refsOption(c, &o.refs):
			chosen = true
		case c.Len() >= 2 && c.Is("IDS"):
			n := c.IntIn(1, math.MaxInt64, "ERR Number of IDs must be a positive integer")
			if c.Err() == "" && n > int64(c.Len()) {
				c.Fail("ERR The `numids` parameter must match the number of arguments")
			}
			if c.Err() == "" {
				o.ids = c.NextN(int(n))
			}
		default:
			c.Fail(protocol.ErrSyntax)
		}
	}
	if o.ids == nil {
		c.Fail("ERR IDS option is required")
	}
	return o
}

// replyNoEntries replies that none of these entries exists.
func replyNoEntries(c *engine.Call, ids [][]byte) {
	c.Reply.Array(len(ids))
	for range ids {
		c.Reply.Int(noEntry)
	}
}

// The replies of XDELEX and XACKDEL for an entry.
const (
	noEntry         = -1
	entryDeleted    = 1
	entryReferenced = 2
)

// parsedIDs reads IDs; an invalid one replies the error.
func parsedIDs(c *engine.Call, texts [][]byte) (ids []sequence.StreamID, ok bool) {
	for _, text := range texts {
		id, ok := parseStreamID(text, 0)
		if !ok {
			c.Reply.Error(errStreamID)
			return nil, false
		}
		ids = append(ids, id)
	}
	return ids, true
}

// xdelex is XDELEX key [KEEPREF|DELREF|ACKED] IDS numids id [id ...].
func xdelex(c *engine.Call) {
	key := c.Bytes()
	var s *sequence.Stream
	e := c.DB.Edit(key) // Redis checks the type of the key before the other arguments
	if e != nil {
		var ok bool
		if s, ok = engine.As[sequence.Stream](c, e); !ok {
			return
		}
	}
	o := parseDelexOptions(c)
	if !c.OK() {
		return
	}
	if s == nil {
		replyNoEntries(c, o.ids)
		return
	}
	ids, ok := parsedIDs(c, o.ids)
	if !ok {
		return
	}
	deleted, forgotten := false, false
	c.Reply.Array(len(ids))
	for _, id := range ids {
		switch {
		case o.refs == sequence.OnlyAcked && s.Referenced(id):
			c.Reply.Int(entryReferenced)
			continue
		case o.refs == sequence.DropRefs && s.Forget(id):
			forgotten = true
		}
		if s.Delete(id) {
			deleted = true
			c.Reply.Int(entryDeleted)
		} else {
			c.Reply.Int(noEntry)
		}
	}
	changedEntries(c, key, deleted, forgotten)
}

// changedEntries calls Changed: entries were deleted, or at least references of a
// group have changed.
func changedEntries(c *engine.Call, key []byte, deleted, groups bool) {
	switch {
	case deleted:
		c.Changed(key, engine.ClassStream, "xdel")
	case groups:
		c.ChangedUnwatched(key, engine.ClassStream, "")
	}
}

// xtrim is XTRIM key MAXLEN|MINID [=|~] threshold [LIMIT count] [KEEPREF|DELREF|ACKED].
func xtrim(c *engine.Call) {
	key := c.Bytes()
	o := parseStreamOptions(c, false)
	if !c.OK() {
		return
	}
	s, ok := engine.Edit[sequence.Stream](c, key)
	if !ok {
		return
	}
	n := 0
	if s != nil {
		if n = s.Trim(o.trim); n > 0 {
			c.Changed(key, engine.ClassStream, "xtrim")
		}
	}
	c.Reply.Int(int64(n))
}

// xsetid is XSETID key last-id [ENTRIESADDED entries-added] [MAXDELETEDID max-deleted-id].
func xsetid(c *engine.Call) {
	key, id := c.Bytes(), streamID(c)
	added, maxDeleted := int64(-1), sequence.StreamID{}
	for c.More() {
		switch {
		case c.Len() >= 2 && c.Is("ENTRIESADDED"):
			if added = c.Int(); added < 0 {
				c.Fail("ERR entries_added must be positive")
			}
		case c.Len() >= 2 && c.Is("MAXDELETEDID"):
			if maxDeleted = streamID(c); id.Less(maxDeleted) {
				c.Fail("ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id")
			}
		default:
			c.Fail(protocol.ErrSyntax)
		}
	}
	if !c.OK() {
		return
	}
	s, ok := engine.Edit[sequence.Stream](c, key)
	if !ok {
		return
	}
	if s == nil {
		c.Reply.Error(engine.ErrNoSuchKey)
		return
	}
	e, some := s.Last()
	switch {
	case id.Less(s.MaxDeletedID()):
		c.Reply.Error("ERR The ID specified in XSETID is smaller than current max_deleted_entry_id")
		return
	case some && id.Less(e.ID):
		c.Reply.Error("ERR The ID specified in XSETID is smaller than the target stream top item")
		return
	case some && added != -1 && int64(s.Len()) > added:
		c.Reply.Error("ERR The entries_added specified in XSETID is smaller than the target stream length")
		return
	}
	if added == -1 {
		added = s.Added()
	}
	if maxDeleted.IsZero() {
		maxDeleted = s.MaxDeletedID()
	}
	s.SetID(id, added, maxDeleted)
	c.ChangedUnwatched(key, engine.ClassStream, "xsetid")
	c.Reply.OK()
}
