package archive

import (
	"strconv"
	"strings"

	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/internal/values/sequence"
	"github.com/zsetd/zsetd/server/rdb"
)

// entries yields all entries of a stream.
func entries(s *sequence.Stream, yield func(sequence.StreamEntry) bool) {
	s.Ascend(sequence.StreamID{}, sequence.MaxStreamID())(yield)
}

// streamSize returns the number of bytes in the entries; an ID counts as 16.
func streamSize(s *sequence.Stream) (bytes int64) {
	entries(s, func(e sequence.StreamEntry) bool {
		bytes += 16
		for field, value := range e.Pairs {
			bytes += int64(len(field) + len(value))
		}
		return true
	})
	return bytes
}

// stream writes the commands that make a stream. XSETID sets the counters, which
// include deleted entries. A stream without entries is made by an XADD that trims
// its own entry.
func (c *commands) stream(key string, s *sequence.Stream) error {
	var err error
	entries(s, func(e sequence.StreamEntry) bool {
		args := append(make([]string, 0, 3+2*e.Len()), "XADD", key, e.ID.String())
		for field, value := range e.Pairs {
			args = append(args, string(field), string(value))
		}
		c.command(args...)
		err = c.full()
		return err == nil
	})
	if err != nil {
		return err
	}
	if s.Len() == 0 {
		c.command("XADD", key, "MAXLEN", "0", "0-1", "f", "v")
	}
	if c.target == rdb.Redis5 {
		return c.oldStream(key, s)
	}
	args := []string{"XSETID", key, s.LastID().String(), "ENTRIESADDED", strconv.FormatInt(s.Added(), 10)}
	if deleted := s.MaxDeletedID(); !deleted.IsZero() && !s.LastID().Less(deleted) {
		args = append(args, "MAXDELETEDID", deleted.String())
	}
	c.command(args...)
	for _, g := range s.Groups() {
		c.command("XGROUP", "CREATE", key, g.Name(), g.LastID().String(), "ENTRIESREAD", strconv.FormatInt(g.Read(), 10))
		for _, consumer := range g.Consumers() {
			c.command("XGROUP", "CREATECONSUMER", key, g.Name(), consumer.Name())
		}
		if err := c.pending(key, g); err != nil {
			return err
		}
	}
	return nil
}

// pending writes the pending entries of a group.
func (c *commands) pending(key string, g *sequence.Group) error {
	for p := range g.Ascend(sequence.StreamID{}) {
		c.command("XCLAIM", key, g.Name(), g.Owner(p).Name(), "0", p.ID.String(), "TIME", strconv.FormatInt(p.Time, 10),
			"RETRYCOUNT", strconv.FormatInt(p.Count, 10), "FORCE", "JUSTID")
		if err := c.full(); err != nil {
			return err
		}
	}
	return nil
}

// oldStream writes the properties of a stream that Redis 5 supports besides
// entries: no counters, and only consumers with pending entries.
func (c *commands) oldStream(key string, s *sequence.Stream) error {
	c.command("XSETID", key, s.LastID().String())
	for _, g := range s.Groups() {
		c.command("XGROUP", "CREATE", key, g.Name(), g.LastID().String())
		if err := c.pending(key, g); err != nil {
			return err
		}
	}
	return nil
}

// streamJSON writes a stream.
func (p *buffer) streamJSON(s *sequence.Stream) error {
	id := func(before string, id sequence.StreamID, behind string) {
		p.b = append(id.Append(append(p.b, before...)), behind...)
	}
	number := func(before string, n int64) { p.b = strconv.AppendInt(append(p.b, before...), n, 10) }
	var err error
	p.b = append(p.b, `{"entries":[`...)
	separator := ""
	entries(s, func(e sequence.StreamEntry) bool {
		id(separator+`["`, e.ID, `",[`)
		separator = ""
		for field, value := range e.Pairs {
			p.b = appendJSONText(append(p.b, separator...), string(field))
			p.b = appendJSONText(append(p.b, ','), string(value))
			separator = ","
		}
		p.b = append(p.b, "]]"...)
		err = p.full()
		return err == nil
	})
	if err != nil {
		return err
	}
	id(`],"last":"`, s.LastID(), `"`)
	number(`,"added":`, s.Added())
	id(`,"deleted":"`, s.MaxDeletedID(), `","groups":[`)
	for i, g := range s.Groups() {
		if i > 0 {
			p.b = append(p.b, ',')
		}
		p.b = appendJSONText(append(p.b, `{"name":`...), g.Name())
		id(`,"last":"`, g.LastID(), `"`)
		number(`,"read":`, g.Read())
		p.b = append(p.b, `,"consumers":[`...)
		for j, c := range g.Consumers() {
			if j > 0 {
				p.b = append(p.b, ',')
			}
			p.b = appendJSONText(append(p.b, '['), c.Name())
			number(",", c.Seen())
			number(",", c.Active())
			p.b = append(p.b, ']')
		}
		p.b = append(p.b, `],"pending":[`...)
		separator = ""
		for pending := range g.Ascend(sequence.StreamID{}) {
			id(separator+`["`, pending.ID, `",`)
			p.b = appendJSONText(p.b, g.Owner(pending).Name())
			number(",", pending.Time)
			number(",", pending.Count)
			p.b = append(p.b, ']')
			separator = ","
			if err := p.full(); err != nil {
				return err
			}
		}
		p.b = append(p.b, "]}"...)
	}
	p.b = append(p.b, "]}"...)
	return nil
}

// streamID reads an ID.
func (j *jsonReader) streamID() sequence.StreamID {
	text := string(j.literal())
	ms, seq, _ := strings.Cut(text, "-")
	var id sequence.StreamID
	var err1, err2 error
	id.Ms, err1 = strconv.ParseUint(ms, 10, 64)
	id.Seq, err2 = strconv.ParseUint(seq, 10, 64)
	if err1 != nil || err2 != nil {
		j.failf("unexpected %.50q, want the ID of an entry", text)
	}
	return id
}

// object reads an object that must have exactly these members, each once. read is
// called in the order of names, independent of the order in the text.
func (j *jsonReader) object(names []string, read func(name string)) {
	at := map[string]int{}
	j.list('{', '}', func() {
		name := string(j.literal())
		j.expect(':')
		j.space()
		if _, twice := at[name]; twice {
			j.failf("duplicate field %q", name)
		}
		at[name] = j.at
		j.skip()
	})
	end := j.at
	for _, name := range names {
		from, ok := at[name]
		if !ok {
			j.failf("missing field %q", name)
		}
		if j.err != nil {
			return
		}
		j.at = from
		read(name)
		delete(at, name)
	}
	for name := range at {
		j.failf("unknown field %q of a stream", name)
	}
	if j.err == nil {
		j.at = end
	}
}

// stream reads a stream.
func (j *jsonReader) stream(l *keyspace.Limits) *sequence.Stream {
	s := new(sequence.Stream)
	var last sequence.StreamID
	var added int64
	j.object([]string{"entries", "last", "added", "deleted", "groups"}, func(name string) {
		switch name {
		case "entries":
			j.list('[', ']', func() { j.streamEntry(s, l) })
		case "last":
			if last = j.streamID(); last.Less(s.LastID()) {
				j.failf("the last ID %v is less than the ID of an entry", last)
			}
		case "added":
			if added = j.integer(); added < int64(s.Len()) {
				j.failf("%d entries were added, but there are %d", added, s.Len())
			}
		case "deleted":
			if deleted := j.streamID(); j.err == nil {
				s.SetID(last, added, deleted)
			}
		case "groups":
			j.list('[', ']', func() { j.group(s) })
		}
	})
	return s
}

func (j *jsonReader) streamEntry(s *sequence.Stream, l *keyspace.Limits) {
	j.expect('[')
	id := j.streamID()
	j.expect(',')
	var fields [][]byte
	j.list('[', ']', func() { fields = append(fields, j.text()) })
	j.expect(']')
	switch {
	case j.err != nil:
	case len(fields) == 0 || len(fields)%2 == 1:
		j.failf("entry %v: want alternating fields and values", id)
	case !s.LastID().Less(id):
		j.failf("entry %v follows %v: IDs must increase", id, s.LastID())
	default:
		s.Add(id, fields, l.Stream)
	}
}

func (j *jsonReader) group(s *sequence.Stream) {
	var g *sequence.Group
	var text []byte
	var last sequence.StreamID
	j.object([]string{"name", "last", "read", "consumers", "pending"}, func(name string) {
		switch name {
		case "name":
			if text = j.text(); j.err == nil && s.Group(text) != nil {
				j.failf("duplicate group %.50q", text)
			}
		case "last":
			last = j.streamID()
		case "read":
			read := j.integer()
			if read < sequence.UnknownRead {
				j.failf("invalid number of read entries: %d", read)
			}
			if j.err == nil {
				g = s.AddGroup(text, last, read)
			}
		case "consumers":
			j.list('[', ']', func() { j.consumer(g) })
		case "pending":
			j.list('[', ']', func() { j.pending(g) })
		}
	})
}

func (j *jsonReader) consumer(g *sequence.Group) {
	j.expect('[')
	name := j.text()
	j.expect(',')
	seen := j.integer()
	j.expect(',')
	active := j.integer()
	j.expect(']')
	switch {
	case j.err != nil:
	case g.Consumer(name) != nil:
		j.failf("duplicate consumer %.50q", name)
	default:
		g.SetTimes(g.AddConsumer(name, seen), seen, active)
	}
}

func (j *jsonReader) pending(g *sequence.Group) {
	j.expect('[')
	id := j.streamID()
	j.expect(',')
	name := j.text()
	j.expect(',')
	time := j.integer()
	j.expect(',')
	count := j.integer()
	j.expect(']')
	if j.err != nil {
		return
	}
	c := g.Consumer(name)
	if _, twice := g.Pending(id); twice || c == nil {
		j.failf("pending entry %v is a duplicate, or its consumer %.50q is not in the group", id, name)
		return
	}
	g.Deliver(c, id, time, count)
}
