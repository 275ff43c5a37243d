package stream

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/values/sequence"
)

// create creates a stream, which keeps identifiers as the parameters say.
func create(c *engine.Call, key []byte) *sequence.Stream {
	s, _ := engine.Create[sequence.Stream](c, key)
	s.SetIdempotenceLimits(c.Limits().Stream.Idempotence)
	return s
}

// identify returns the identifier of an entry with IDMPAUTO: a digest of its fields and
// values, in any order.
func identify(fields [][]byte) []byte {
	const size = 16
	type pair struct{ field, value []byte }
	pairs := make([]pair, 0, len(fields)/2)
	for i := 0; i < len(fields); i += 2 {
		pairs = append(pairs, pair{fields[i], fields[i+1]})
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		return cmp.Or(bytes.Compare(a.field, b.field), bytes.Compare(a.value, b.value))
	})
	h := sha256.New()
	var length [8]byte
	for _, p := range pairs {
		for _, b := range [][]byte{p.field, p.value} {
			binary.LittleEndian.PutUint64(length[:], uint64(len(b)))
			h.Write(length[:])
			h.Write(b)
		}
	}
	return h.Sum(nil)[:size]
}

// timeOf returns the time at which identifiers are looked up, in milliseconds since 1970. It is
// before all times for the commands of a primary: the primary knows which are over.
func timeOf(c *engine.Call) int64 {
	if c.Keys().Revealed() {
		return -1
	}
	return c.Now()
}

// known reports whether the entry of an XADD was added before. Then it has replied its ID.
//
// A primary sends an entry that it has added with its ID, and one that was added before with
// a star: a replica adds nothing for that, even if the identifier's time is over here.
func known(c *engine.Call, key []byte, s *sequence.Stream, o *streamOptions) bool {
	var id sequence.StreamID
	found := false
	if s != nil {
		id, found = s.AddedBy(o.producer, o.identifier, timeOf(c))
	}
	if !found && !c.Keys().Revealed() {
		return false
	}
	if found {
		s.CountDuplicate()
		c.ChangedUnwatched(key, engine.ClassStream, "")
	}
	replyStreamID(c, id)
	return true
}

// xcfgset is XCFGSET key [IDMP-DURATION seconds] [IDMP-MAXSIZE count].
func xcfgset(c *engine.Call) {
	key := c.Bytes()
	s, ok := engine.Edit[sequence.Stream](c, key) // Redis checks the key before the options
	if !ok {
		return
	}
	if s == nil {
		c.Reply.Error(engine.ErrNoSuchKey)
		return
	}
	limits := s.IdempotenceLimits()
	duration, most := false, false
	if !c.More() {
		c.Fail("ERR At least one parameter must be specified")
	}
	for c.More() {
		switch {
		case c.Len() >= 2 && c.Is("IDMP-DURATION"):
			limits.Seconds = limit(c, &duration, "IDMP-DURATION", sequence.MaxIdempotenceSeconds, "seconds")
		case c.Len() >= 2 && c.Is("IDMP-MAXSIZE"):
			limits.Most = limit(c, &most, "IDMP-MAXSIZE", sequence.MaxIdempotenceMost, "entries")
		default:
			c.Fail(protocol.ErrSyntax)
		}
	}
	if !c.OK() {
		return
	}
	if s.SetIdempotenceLimits(limits) {
		c.ChangedUnwatched(key, engine.ClassStream, "")
	}
	c.Reply.OK()
}

// limit reads a value of XCFGSET, which may be given once.
func limit(c *engine.Call, given *bool, option string, highest int64, unit string) int64 {
	if *given {
		c.Fail("ERR " + option + " specified multiple times")
	}
	*given = true
	n := c.Int()
	if c.Err() == "" && (n < 1 || n > highest) {
		c.Fail("ERR " + option + " must be between 1 and " + strconv.FormatInt(highest, 10) + " " + unit)
	}
	return n
}

// xidmprecord is XIDMPRECORD key producer identifier id.
func xidmprecord(c *engine.Call) {
	key, producer, identifier := c.Bytes(), c.Bytes(), c.Bytes()
	id := streamID(c)
	switch {
	case len(producer) == 0:
		c.Fail("ERR producer ID must be non-empty")
	case len(identifier) == 0:
		c.Fail("ERR idempotent ID must be non-empty")
	}
	if !c.OK() {
		return
	}
	s, ok := engine.Edit[sequence.Stream](c, key)
	if !ok {
		return
	}
	follows := c.Keys().Revealed()
	switch {
	case s == nil:
		c.Reply.Error(engine.ErrNoSuchKey)
		return
	case !follows && !s.Has(id):
		c.Reply.Error("ERR No such message in stream")
		return
	}
	if before, ok := s.AddedBy(producer, identifier, timeOf(c)); ok {
		switch {
		case before == id:
			c.Reply.OK()
			return
		case !follows:
			c.Reply.Error("ERR IID already exists for this producer with a different stream ID")
			return
		}
	}
	s.Identify(producer, identifier, id, c.Now())
	c.ChangedUnwatched(key, engine.ClassStream, "")
	c.Reply.OK()
}
