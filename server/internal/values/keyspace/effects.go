package keyspace

import (
	"github.com/zsetd/zsetd/server/internal/values/journal"
	"github.com/zsetd/zsetd/server/internal/values/operation"
	"github.com/zsetd/zsetd/server/internal/values/packed"
	"github.com/zsetd/zsetd/server/internal/values/sequence"
)

// Effects are changes of a keyspace in order, which were taken out of it. They are
// immutable. Reading them needs no lock: values that were pinned are encoded then.
type Effects struct {
	parts     []effectPart
	size      int
	databases int
	replaced  bool
}

// Bytes returns the size of the effects in bytes, with pinned values estimated.
func (e *Effects) Bytes() int { return e.size }

// Databases returns the number of databases of the keyspace.
func (e *Effects) Databases() int { return e.databases }

// Replaced reports whether the contents of the keyspace were replaced, by Adopt, before
// the first of these effects: they do not lead from the earlier contents to the current
// ones, and a reader must begin with a copy of the whole keyspace.
func (e *Effects) Replaced() bool { return e.replaced }

// Change is what an effect changes.
type Change uint8

// The changes.
const (
	ChangeKey     Change = iota // a key
	ChangeFlush                 // a database, which has no keys now
	ChangeSwap                  // two databases, which have exchanged their contents
	ChangeMessage               // nothing: a message was published
	ChangeMove                  // two lists, or one: the effects that follow, one for each, move an element
)

// Effect is one change of a keyspace. The fields from Key on are those of ChangeKey.
type Effect struct {
	Change   Change
	DB       int    // the database, or InternalDB
	Other    int    // ChangeSwap: the other database
	Key      []byte // ChangeMessage: the channel; ChangeMove: the source
	Message  []byte // ChangeMessage: the message; ChangeMove: the destination
	How      byte   // ChangeMessage: 1 for a shard channel; ChangeMove: of the caller of Note
	Kind     Kind   // of the value; undefined if the only operation is OpDelete or OpDeadline
	Existed  bool   // the key may have existed before; false if it did not
	Volatile bool   // the key has a deadline, before the change if that sets a string

	ops, hints []byte
	pinned     *Pinned
}

// All yields the effects in order. It is an iterator: range over e.All. The effect is
// valid until the next one.
func (e *Effects) All(yield func(*Effect) bool) {
	for i := range e.parts {
		if p := &e.parts[i]; p.pinned != nil {
			x := effectOf(p.about, p.db)
			x.Key, x.pinned = packed.Bytes(p.pinned.key), p.pinned
			if !yield(&x) {
				return
			}
			continue
		}
		for o := (journal.Operands{Rest: e.parts[i].effects}); len(o.Rest) > 0; {
			x := nextEffect(&o)
			if o.Failed {
				panic("BUG: an effect is not readable")
			}
			if !yield(&x) {
				return
			}
		}
	}
}

func effectOf(a about, db int) Effect {
	return Effect{DB: db, Kind: Kind(a & aboutKind), Existed: a&aboutExisted != 0, Volatile: a&aboutVolatile != 0}
}

func nextEffect(o *journal.Operands) Effect {
	a := about(o.Rest[0])
	o.Rest = o.Rest[1:]
	x := effectOf(a, int(o.Number())-1)
	switch {
	case a&aboutFlush != 0:
		x.Change = ChangeFlush
	case a&aboutMessage != 0:
		x.Change, x.Key, x.Message, x.How = ChangeMessage, o.Text(), o.Text(), o.Byte()
		if a&aboutSwap != 0 {
			x.Change = ChangeMove
		}
	case a&aboutSwap != 0:
		x.Change, x.Other = ChangeSwap, int(o.Number())-1
	default:
		x.Key, x.ops, x.hints = o.Text(), o.Text(), o.Text()
	}
	return x
}

// Whole reports whether the operations construct the whole value from nothing: the
// first is OpNew.
func (x *Effect) Whole() bool { return x.pinned != nil || len(x.ops) > 0 && x.ops[0] == journal.OpNew }

// Stream returns the value and deadline of an effect that is Whole and of KindStream.
// The stream must not be modified. O(n).
func (x *Effect) Stream() (s *sequence.Stream, deadline int64) {
	if x.pinned != nil {
		return x.pinned.value.(*sequence.Stream), x.pinned.deadline
	}
	limits := DefaultLimits()
	b := Builder{Limits: &limits}
	err := b.Apply(x.ops)
	if err == nil {
		var value any
		if value, deadline, err = b.Value(); err == nil {
			return value.(*sequence.Stream), deadline
		}
	}
	panic("BUG: a stream is not readable: " + err.Error())
}

// Operations yields the operations in order, except those of an effect with a whole stream
// (see Stream). It is an iterator: range over x.Operations. The operation is valid until
// the next one.
//
// Setting the value of a field, or the score of a member, keeps its deadline. As HSET and
// ZADD do not, OpExpire with the same deadline follows then.
func (x *Effect) Operations(yield func(*operation.Operation) bool) {
	if x.Whole() && x.Kind == KindStream {
		return
	}
	if x.pinned == nil {
		x.operations(x.ops, yield)
		return
	}
	for ops := range x.pinned.Chunks {
		if !x.operations(ops, yield) {
			return
		}
	}
}

func (x *Effect) operations(ops []byte, yield func(*operation.Operation) bool) bool {
	o, hints := journal.Operands{Rest: ops}, journal.Operands{Rest: x.hints}
	var op operation.Operation
	for len(o.Rest) > 0 {
		shown := op.Decode(kindCodes[x.Kind], &o, &hints)
		if o.Failed || hints.Failed {
			panic("BUG: an operation of an effect is not readable")
		}
		if shown && !yield(&op) {
			return false
		}
	}
	return true
}
