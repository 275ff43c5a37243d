package rdb

import (
	"encoding/binary"

	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/internal/values/sequence"
	"github.com/zsetd/zsetd/zset"
)

// payload is the target of DUMP: the types of Redis 7.0, and those that have the deadlines of
// members and fields.
const payload Target = 255

// portable reports whether values for the target have the types of Redis 5.0.
func (t Target) portable() bool { return t == Any || t == Redis5 || t == Replica }

// kindRow is how values of one kind are written. The values that its functions get are of this
// kind. Reading depends on the type in the file: see [Codec.value].
type kindRow struct {
	// form returns the type as which a value is written for a target.
	form func(c *Codec, v any, to Target) byte

	// append appends a value in a form that form returned.
	append func(c *Codec, dst []byte, form byte, v any) []byte
}

// rowOf returns the row of a value.
func rowOf(value any) kindRow {
	switch keyspace.KindOf(value) {
	case keyspace.KindString:
		return kindRow{
			form:   func(*Codec, any, Target) byte { return typeString },
			append: func(c *Codec, dst []byte, _ byte, v any) []byte { return c.appendString(dst, v.(*keyspace.String)) },
		}
	case keyspace.KindList:
		return kindRow{listForm, appendListForm}
	case keyspace.KindSet:
		return kindRow{setForm, appendSetForm}
	case keyspace.KindHash:
		return kindRow{hashForm, appendHashForm}
	case keyspace.KindZset:
		return kindRow{zsetForm, appendZsetForm}
	case keyspace.KindStream:
		return kindRow{
			form: streamForm,
			append: func(c *Codec, dst []byte, form byte, v any) []byte {
				return c.appendStream(dst, v.(*sequence.Stream), form)
			},
		}
	}
	panic("BUG: a kind without a row")
}

func listForm(c *Codec, v any, to Target) byte {
	if to.portable() || to == Replica7 && v.(*sequence.List).Encoding(c.Limits.ListMaxListpackSize) != "listpack" {
		return typeList // it can be written in parts
	}
	return typeListQuicklist2
}

func appendListForm(c *Codec, dst []byte, form byte, v any) []byte {
	l := v.(*sequence.List)
	if form == typeListQuicklist2 {
		return c.appendList(dst, l)
	}
	dst = appendLength(dst, uint64(l.Len()))
	for b := range l.Forward(0) {
		more := false
		if dst, more = c.spilled(c.appendText(dst, b)); !more {
			break
		}
	}
	return dst
}

func setForm(c *Codec, v any, to Target) byte {
	if !to.portable() && v.(*keyspace.Set).Encoding(c.Limits) == "intset" {
		return typeSetIntset
	}
	return typeSet
}

func appendSetForm(c *Codec, dst []byte, form byte, v any) []byte {
	s := v.(*keyspace.Set)
	if form == typeSetIntset {
		return c.appendPack(dst, c.intset(s))
	}
	dst = appendLength(dst, uint64(s.Len()))
	for member := range s.All() {
		more := false
		if dst, more = c.spilled(c.appendText(dst, []byte(member))); !more {
			break
		}
	}
	return dst
}

func hashForm(c *Codec, v any, to Target) byte {
	h := v.(*keyspace.Hash)
	switch timed := h.Deadlines() != nil && to.FieldDeadlines(); {
	case timed && to == Valkey9:
		return typeHashValkey
	case timed:
		return typeHashTimed
	case !to.portable() && h.Encoding(c.Limits) == "listpack":
		return typeHashListpack
	}
	return typeHash
}

func appendHashForm(c *Codec, dst []byte, form byte, v any) []byte {
	h := v.(*keyspace.Hash)
	switch form {
	case typeHashTimed:
		return c.appendTimedHash(dst, h)
	case typeHashValkey:
		return c.appendValkeyHash(dst, h)
	case typeHashListpack:
		c.begin()
		for field, value := range h.All() {
			c.pack = appendPackedText(appendPackedText(c.pack, field), value)
		}
		return c.appendPack(dst, c.end(2*h.Len()))
	}
	dst = appendLength(dst, uint64(h.Len()))
	for field, value := range h.All() {
		more := false
		if dst, more = c.spilled(c.appendText(c.appendText(dst, []byte(field)), []byte(value))); !more {
			break
		}
	}
	return dst
}

func (c *Codec) appendTimedHash(dst []byte, h *keyspace.Hash) []byte {
	first, _ := h.Deadlines().First()
	base := int64(first.Score)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(base))
	dst = appendLength(dst, uint64(h.Len()))
	for field, value := range h.All() {
		at, _ := h.DeadlineBytes([]byte(field))
		if at != 0 {
			at += 1 - base
		}
		dst = appendLength(dst, uint64(at))
		dst = c.appendText(c.appendText(dst, []byte(field)), []byte(value))
	}
	return dst
}

// appendValkeyHash appends a hash whose fields have deadlines as Valkey 9 does:
// each pair is followed by 8 bytes, its deadline or -1.
func (c *Codec) appendValkeyHash(dst []byte, h *keyspace.Hash) []byte {
	dst = appendLength(dst, uint64(h.Len()))
	for field, value := range h.All() {
		at, _ := h.DeadlineBytes([]byte(field))
		if at == 0 {
			at = -1
		}
		dst = c.appendText(c.appendText(dst, []byte(field)), []byte(value))
		dst = binary.LittleEndian.AppendUint64(dst, uint64(at))
	}
	return dst
}

func zsetForm(c *Codec, v any, to Target) byte {
	s := v.(*zset.Set)
	switch {
	case to == payload && s.Deadlines() != nil:
		return typeZsetTimed
	case !to.portable() && c.Limits.SortedFits(s):
		return typeZsetListpack
	}
	return typeZset2
}

func appendZsetForm(c *Codec, dst []byte, form byte, v any) []byte {
	s := v.(*zset.Set)
	switch form {
	case typeZsetTimed:
		return c.appendTimedZset(dst, s)
	case typeZsetListpack:
		c.begin()
		for member, score := range s.All() {
			c.pack = appendPackedScore(appendPackedText(c.pack, member), score)
		}
		return c.appendPack(dst, c.end(2*s.Len()))
	}
	dst = appendLength(dst, uint64(s.Len()))
	for member, score := range s.Backward() { // Redis loads elements faster in descending order
		more := false
		if dst, more = c.spilled(appendDouble(c.appendText(dst, []byte(member)), score)); !more {
			break
		}
	}
	return dst
}

func (c *Codec) appendTimedZset(dst []byte, s *zset.Set) []byte {
	dst = appendLength(dst, uint64(s.Len()))
	for member, score := range s.Backward() {
		dst = appendDouble(c.appendText(dst, []byte(member)), score)
		at, _ := s.Deadline(member)
		dst = binary.LittleEndian.AppendUint64(dst, uint64(at))
	}
	return dst
}

func streamForm(_ *Codec, v any, to Target) byte {
	switch {
	case (to == Redis8 || to == payload) && idempotent(v.(*sequence.Stream)):
		return typeStream4
	case to == Redis8, to == Valkey9:
		return typeStream3
	case to == Redis7, to == Replica7, to == payload, (to == Any || to == Replica) && !PlainStream(v.(*sequence.Stream)):
		return typeStream2
	}
	return typeStream
}
