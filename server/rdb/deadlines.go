package rdb

import (
	"encoding/binary"

	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/internal/values/sequence"
	"github.com/zsetd/zsetd/zset"
)

// deadlinesAux is the name of the AUX fields that have the deadlines of members, or
// fields, of the key that follows: pairs of a string, as in a value, and 8 bytes in
// little endian, milliseconds since 1970. A key with many has several fields.
const deadlinesAux = "zsetd-deadlines"

// producersAux is the name of the AUX field that has the state of the producers of the stream
// that follows, as appendProducers writes it.
const producersAux = "zsetd-producers"

// producersOf returns the value of that field.
func (c *Codec) producersOf(s *sequence.Stream) []byte {
	alone := Codec{Limits: c.Limits}
	return alone.appendProducers(nil, s)
}

// auxBytes is the size in bytes at which an AUX field with deadlines ends.
const auxBytes = 64 << 10

// AppendDeadlines appends what the target does not support of a value: the deadlines of members or
// fields, and the identifiers that producers of a stream have used. Servers of Redis and Valkey skip them; [Codec.ReadFile] sets them.
// It is called just before AppendKey.
func (w *Writer) AppendDeadlines(dst []byte, value any) []byte {
	start := len(dst)
	return w.add(w.appendDeadlines(dst, value), start)
}

func (w *Writer) appendDeadlines(dst []byte, value any) []byte {
	if s, ok := value.(*sequence.Stream); ok {
		if w.target != Redis8 && idempotent(s) {
			dst = w.codec.appendText(w.codec.appendText(append(dst, opAux), []byte(producersAux)), w.codec.producersOf(s))
		}
		return dst
	}
	d := memberDeadlines(value)
	h, hash := value.(*keyspace.Hash)
	if d == nil || hash && w.target.FieldDeadlines() {
		return dst
	}
	var pairs []byte
	end := func() {
		if len(pairs) > 0 {
			dst = w.codec.appendText(w.codec.appendText(append(dst, opAux), []byte(deadlinesAux)), pairs)
			pairs = pairs[:0]
		}
	}
	all := d.All()
	if hash {
		all = h.Timed
	}
	for member, at := range all {
		pairs = binary.LittleEndian.AppendUint64(w.codec.appendText(pairs, []byte(member)), uint64(at))
		if len(pairs) >= auxBytes {
			end()
			more := false
			if dst, more = w.codec.spilled(dst); !more {
				return dst
			}
		}
	}
	end()
	return dst
}

// deadlines are those of the members of one key.
type deadlines []struct {
	member []byte
	at     int64
}

// read adds those of an AUX field. It reports whether the field is valid.
func (d *deadlines) read(pairs []byte) bool {
	for in := (&input{rest: pairs}); len(in.rest) > 0; {
		member, at := in.text(), in.uint64()
		if in.bad || at == 0 || at > zset.MaxDeadline {
			return false
		}
		*d = append(*d, struct {
			member []byte
			at     int64
		}{member, int64(at)})
	}
	return true
}

// apply sets the deadlines of the members that a value has.
func (d deadlines) apply(value any) {
	v, ok := value.(interface {
		SetDeadlineBytes(member []byte, at int64) (had int64, ok bool)
	})
	if !ok {
		return
	}
	for _, m := range d {
		v.SetDeadlineBytes(m.member, m.at)
	}
}
