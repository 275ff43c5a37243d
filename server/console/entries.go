package console

import (
	"fmt"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/base/replyjson"
)

// entryCount is the number of entries of a stream that are read at once.
const entryCount = "100"

// follow reads new entries of a stream into f.
func (c *conn) follow(f *feed) error {
	if err := c.selectDB(f.key.db); err != nil {
		return err
	}
	last, err := c.lastEntry(f.key.name)
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.lastID = last
	f.mu.Unlock()
	f.start()
	for {
		reply, err := c.do("XREAD", "COUNT", entryCount, "BLOCK", "0", "STREAMS", f.key.name, last)
		if err != nil {
			return err
		}
		if refused, is := reply.(protocol.ReplyError); is {
			return refused
		}
		streams, _ := reply.(protocol.Map)
		for _, one := range streams {
			for _, e := range entriesOf(one.Value) {
				last = e.id
				f.add(e.appendEvent(nil, f.key), e.id)
			}
		}
	}
}

// lastEntry returns the id of the newest entry of a stream, or an id before all.
func (c *conn) lastEntry(key string) (string, error) {
	reply, err := c.do("XREVRANGE", key, "+", "-", "COUNT", "1")
	if refused, is := reply.(protocol.ReplyError); is && err == nil {
		err = refused
	}
	if err != nil {
		return "", err
	}
	for _, e := range entriesOf(reply) {
		return e.id, nil
	}
	return "0-0", nil
}

// replay writes the entries of a stream after one id, until another.
func (c *conn) replay(s *stream, key feedKey, after, until string) error {
	if err := c.selectDB(key.db); err != nil {
		return err
	}
	for {
		reply, err := c.do("XRANGE", key.name, "("+after, until, "COUNT", entryCount)
		if refused, is := reply.(protocol.ReplyError); is && err == nil {
			err = refused
		}
		if err != nil {
			return err
		}
		entries := entriesOf(reply)
		if len(entries) == 0 {
			return nil
		}
		var b []byte
		for _, e := range entries {
			b = e.appendEvent(b, key)
		}
		if err := s.write(b); err != nil {
			return err
		}
		after = entries[len(entries)-1].id
	}
}

// entry is an entry of a stream: its fields and their values alternate.
type entry struct {
	id     string
	fields []string
}

// entriesOf converts the reply of XRANGE, or that of XREAD for one stream.
func entriesOf(reply any) (entries []entry) {
	list, _ := reply.([]any)
	for _, one := range list {
		pair, _ := one.([]any)
		if len(pair) != 2 {
			continue
		}
		e := entry{id: fmt.Sprint(pair[0])}
		fields, _ := pair[1].([]any)
		for _, field := range fields {
			e.fields = append(e.fields, fmt.Sprint(field))
		}
		entries = append(entries, e)
	}
	return entries
}

// appendEvent appends e as a Server-Sent Event with its id. The raw form is the value of the
// first field.
func (e *entry) appendEvent(b []byte, key feedKey) []byte {
	b = append(append(append(b, "id: "...), e.id...), '\n')
	if key.raw {
		text := ""
		if len(e.fields) > 1 {
			text = e.fields[1]
		}
		return appendData(b, text)
	}
	b = append(b, `data: {"stream":`...)
	b = append(b, replyjson.String(key.name)...)
	b = append(b, `,"id":`...)
	b = append(b, replyjson.String(e.id)...)
	b = append(b, `,"fields":[`...)
	for i := 0; i+1 < len(e.fields); i += 2 {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '[')
		b = append(b, replyjson.String(e.fields[i])...)
		b = append(b, ',')
		b = append(b, replyjson.String(e.fields[i+1])...)
		b = append(b, ']')
	}
	return append(b, "]}\n\n"...)
}
