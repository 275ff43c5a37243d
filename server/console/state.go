package console

import (
	"bufio"
	"fmt"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/base/replyjson"
)

// maxState is the largest number of elements of a value, or bytes of a string, that a stream
// begins with.
const maxState = 10000

// stateCommands returns the commands that read the length and the whole value of a key.
func stateCommands(kind, key string) (length, value []string) {
	switch kind {
	case "string":
		return []string{"STRLEN", key}, []string{"GET", key}
	case "list":
		return []string{"LLEN", key}, []string{"LRANGE", key, "0", "-1"}
	case "set":
		return []string{"SCARD", key}, []string{"SMEMBERS", key}
	case "hash":
		return []string{"HLEN", key}, []string{"HGETALL", key}
	case "zset":
		return []string{"ZCARD", key}, []string{"ZRANGE", key, "0", "-1", "WITHSCORES"}
	case "stream":
		return []string{"XLEN", key}, []string{"XRANGE", key, "-", "+"}
	}
	return nil, nil
}

// state writes the present value of a key as an event named state. Its memory is that of the
// largest element. After an error of the reply the stream is at the beginning of an event.
func (c *conn) state(s *stream, key feedKey) error {
	if err := c.selectDB(key.db); err != nil {
		return err
	}
	reply, err := c.must("TYPE", key.name)
	if err != nil {
		return err
	}
	kind := fmt.Sprint(reply)
	event := fmt.Appendf(nil, `event: state`+"\n"+`data: {"key":%s,"type":%s,"length":`, replyjson.String(key.name), replyjson.String(kind))
	length, value := stateCommands(kind, key.name)
	if length == nil {
		return s.write(append(event, "0,\"value\":null}\n\n"...))
	}
	if reply, err = c.must(length...); err != nil {
		return err
	}
	event = fmt.Appendf(event, `%v,"value":`, reply)
	if n, _ := reply.(int64); n > maxState {
		return s.write(append(event, "null}\n\n"...))
	}
	if err := c.send(value...); err != nil {
		return err
	}
	out := bufio.NewWriter(writerFunc(s.write))
	t := &replyjson.Transcoder{R: c.r, W: out}
	failed, err := t.IsError()
	if failed && err == nil {
		reply, err = protocol.DecodeFrom(c.r)
		if refused, is := reply.(protocol.ReplyError); is && err == nil {
			err = refused
		}
	}
	if err != nil {
		return err
	}
	out.Write(event)
	if err := t.Value(0); err != nil {
		return err
	}
	out.WriteString("}\n\n")
	return out.Flush()
}

// writerFunc is a function that writes all bytes, as an io.Writer.
type writerFunc func([]byte) error

// Write implements io.Writer.
func (f writerFunc) Write(b []byte) (int, error) {
	if err := f(b); err != nil {
		return 0, err
	}
	return len(b), nil
}
