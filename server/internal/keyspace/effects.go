package keyspace

import (
	"github.com/zsetd/zsetd/server/internal/journal"
	"github.com/zsetd/zsetd/server/internal/packed"
	"github.com/zsetd/zsetd/server/internal/sequence"
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
)

// Effect is one change of a keyspace. The fields from Key on are those of ChangeKey.
type Effect struct {
	Change   Change
	DB       int    // the database, or InternalDB
	Other    int    // ChangeSwap: the other database
	Key      []byte // ChangeMessage: the channel
	Message  []byte // ChangeMessage: the message
	Shard    bool   // ChangeMessage: the channel is a shard channel
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
	case a&aboutSwap != 0:
		x.Change, x.Other = ChangeSwap, int(o.Number())-1
	case a&aboutMessage != 0:
		x.Change, x.Key, x.Message = ChangeMessage, o.Text(), o.Text()
		x.Shard = len(o.Rest) > 0 && o.Rest[0] == 1
		o.Rest = o.Rest[min(1, len(o.Rest)):]
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

// OpCode names an operation: the letter that it has in a journal.
type OpCode byte

// The operations of an effect. In parentheses are the fields of Operation that they
// have.
const (
	OpNew      OpCode = journal.OpNew       // an empty value of the effect's kind
	OpDelete   OpCode = journal.OpDeleteKey // the key is deleted
	OpDeadline OpCode = journal.OpDeadline  // (N) the key expires at N, in milliseconds since 1970, or never if N is 0
	OpString   OpCode = journal.OpString    // (Text) the string is this
	OpWrite    OpCode = journal.OpWrite     // (N, Text) the string has this from offset N on

	OpPut    OpCode = journal.OpPut    // (Text; hash: Value; sorted set: Score; stream: ID, Fields) a member, field or entry is added or changed
	OpRemove OpCode = journal.OpRemove // (Text; stream: ID) a member, field or entry is removed
	OpExpire OpCode = journal.OpMember // (Text, N) the member of a sorted set, or field of a hash, expires at N, in milliseconds since 1970, or never if N is 0

	OpFront       OpCode = journal.OpFront       // (Text) an element in front of a list
	OpBack        OpCode = journal.OpBack        // (Text) an element at its end
	OpPopFront    OpCode = journal.OpPopFront    // the first element is removed
	OpPopBack     OpCode = journal.OpPopBack     // the last element is removed
	OpIndex       OpCode = journal.OpIndex       // (N, Text) element N is this
	OpInsert      OpCode = journal.OpInsert      // (N, Text, Pivot, Before, AtEnd) this is inserted at N: see Operation
	OpRemoveRange OpCode = journal.OpRemoveRange // (N, M) M elements from N on are removed, all before or all after the rest; of a stream: (ID) all entries before ID, or all if it is 0-0
	OpMatching    OpCode = journal.OpMatching    // (N, Text) elements equal to this are removed: all if N is 0, the first N, or the last -N

	OpID             OpCode = journal.OpID             // (ID, N, MaxDeleted) last ID, entries added, highest deleted ID
	OpGroup          OpCode = journal.OpGroup          // (Text, New) the following operations apply to this group
	OpDelivered      OpCode = journal.OpDelivered      // (ID, N) it has delivered the entries up to ID, which are N
	OpRemoveGroup    OpCode = journal.OpRemoveGroup    // it is deleted
	OpConsumer       OpCode = journal.OpConsumer       // (Text, N, M, New) the following operations apply to this consumer, which was seen at N and active at M
	OpRemoveConsumer OpCode = journal.OpRemoveConsumer // it is deleted
	OpDeliver        OpCode = journal.OpDeliver        // (ID, N, M) an entry is pending with it since N, and was delivered M times
	OpAcknowledge    OpCode = journal.OpAcknowledge    // (ID) an entry is not pending in the group
	OpIdempotence    OpCode = journal.OpIdempotence    // (N, M) identifiers of entries are kept for N seconds, M of each producer; none are kept so far
	OpIdentify       OpCode = journal.OpIdentify       // (Text, Value, ID) the producer Text has used the identifier Value for an entry
	OpOutdate        OpCode = journal.OpOutdate        // (N) some of the identifiers whose time is over at N, in milliseconds since 1970, are removed
	OpIdentified     OpCode = journal.OpIdentified     // (N, M) N identifiers were used, and M used again
)

// Operation is one operation of an effect. Its fields alias the effect.
//
// An insertion at the front (N is 0) or, with AtEnd, at the end of a list has no pivot.
// Any other is before, or after, the first element that equals Pivot. New says that the
// group or consumer did not exist.
type Operation struct {
	Code       OpCode
	Text       []byte
	Value      []byte
	Pivot      []byte
	Fields     [][]byte // fields alternate with values
	Score      float64
	N, M       int64
	ID         sequence.StreamID
	MaxDeleted sequence.StreamID
	Before     bool
	AtEnd      bool
	New        bool
}

// Operations yields the operations in order, except those of an effect with a whole stream
// (see Stream). It is an iterator: range over x.Operations. The operation is valid until
// the next one.
//
// Setting the value of a field, or the score of a member, keeps its deadline. As HSET and
// ZADD do not, OpExpire with the same deadline follows then.
func (x *Effect) Operations(yield func(*Operation) bool) {
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

func (x *Effect) operations(ops []byte, yield func(*Operation) bool) bool {
	o, hints := journal.Operands{Rest: ops}, journal.Operands{Rest: x.hints}
	var op Operation
	for len(o.Rest) > 0 {
		op = Operation{Code: OpCode(o.Rest[0]), Fields: op.Fields[:0]}
		o.Rest = o.Rest[1:]
		shown := op.decode(x.Kind, &o, &hints)
		if o.Failed || hints.Failed {
			panic("BUG: an operation of an effect is not readable")
		}
		if shown && !yield(&op) {
			return false
		}
	}
	return true
}

// decode reads the operands, and reports whether the operation is one of the exported.
func (op *Operation) decode(kind Kind, o, hints *journal.Operands) bool {
	switch op.Code {
	case OpNew:
		o.Rest = o.Rest[1:]
	case OpDelete:
	case OpDeadline, OpOutdate:
		op.N = int64(o.Number())
	case OpString:
		op.Text = o.Text()
	case OpWrite:
		op.N, op.Text = int64(o.Number()), o.Text()
	default:
		if kind == KindStream {
			return op.decodeStream(o, hints)
		}
		return op.decodeCollection(kind, o, hints)
	}
	return true
}

func (op *Operation) decodeCollection(kind Kind, o, hints *journal.Operands) bool {
	switch op.Code {
	case OpPut:
		op.Text = o.Text()
		switch kind {
		case KindHash:
			op.Value = o.Text()
		case KindZset:
			op.Score = o.Score()
		}
	case OpRemove, OpFront, OpBack:
		op.Text = o.Text()
	case OpPopFront, OpPopBack:
	case OpIndex:
		op.N, op.Text = int64(o.Number()), o.Text()
	case OpInsert:
		op.N, op.Text = int64(o.Number()), o.Text()
		if side := hints.Byte(); side == journal.AtEnd {
			op.AtEnd = op.N > 0
		} else {
			op.Before, op.Pivot = side == journal.BeforePivot, hints.Text()
		}
	case OpRemoveRange:
		op.N, op.M = int64(o.Number()), int64(o.Number())
	case OpMatching:
		op.N, op.Text = o.Signed(), o.Text()
	case OpExpire:
		op.Text, op.N = o.Text(), int64(o.Number())
	case journal.OpOrdered:
		return false
	default:
		o.Fail()
	}
	return true
}

func (op *Operation) decodeStream(o, hints *journal.Operands) bool {
	switch op.Code {
	case OpPut, journal.OpPutNewBlock:
		op.Code, op.ID = OpPut, sequence.ReadID(o)
		for n := 2 * o.Number(); n > 0 && !o.Failed; n-- {
			op.Fields = append(op.Fields, o.Text())
		}
	case OpRemove, OpAcknowledge:
		op.ID = sequence.ReadID(o)
	case OpRemoveRange:
		o.Number()
		o.Number()
		op.ID = sequence.ReadID(hints)
	case OpID:
		op.ID, op.N, op.MaxDeleted = sequence.ReadID(o), int64(o.Number()), sequence.ReadID(o)
	case OpGroup:
		op.Text, op.New = o.Text(), hints.Byte() != 0
	case OpConsumer:
		op.Text, op.N, op.M, op.New = o.Text(), o.Signed(), o.Signed(), hints.Byte() != 0
	case OpDelivered:
		op.ID, op.N = sequence.ReadID(o), o.Signed()
	case OpDeliver:
		op.ID, op.N, op.M = sequence.ReadID(o), o.Signed(), o.Signed()
	case OpRemoveGroup, OpRemoveConsumer:
	case OpIdempotence, OpIdentified:
		op.N, op.M = int64(o.Number()), int64(o.Number())
	case OpIdentify:
		op.Text, op.Value, op.ID = o.Text(), o.Text(), sequence.ReadID(o)
	default:
		o.Fail()
	}
	return true
}
