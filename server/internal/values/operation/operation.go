package operation

import (
	"github.com/zsetd/zsetd/server/internal/values/journal"
	"github.com/zsetd/zsetd/server/internal/values/sequence"
)

// Code names an operation: the letter that it has in a journal.
type Code byte

// The operations of an effect. In parentheses are the fields of Operation that they
// have.
const (
	New      Code = journal.OpNew       // an empty value of the effect's kind
	Delete   Code = journal.OpDeleteKey // the key is deleted
	Deadline Code = journal.OpDeadline  // (N) the key expires at N, in milliseconds since 1970, or never if N is 0
	String   Code = journal.OpString    // (Text) the string is this
	Write    Code = journal.OpWrite     // (N, Text) the string has this from offset N on

	Put    Code = journal.OpPut    // (Text; hash: Value; sorted set: Score; stream: ID, Fields) a member, field or entry is added or changed
	Remove Code = journal.OpRemove // (Text; stream: ID) a member, field or entry is removed
	Expire Code = journal.OpMember // (Text, N) the member of a sorted set, or field of a hash, expires at N, in milliseconds since 1970, or never if N is 0

	Front       Code = journal.OpFront       // (Text) an element in front of a list
	Back        Code = journal.OpBack        // (Text) an element at its end
	PopFront    Code = journal.OpPopFront    // the first element is removed
	PopBack     Code = journal.OpPopBack     // the last element is removed
	Index       Code = journal.OpIndex       // (N, Text) element N is this
	Insert      Code = journal.OpInsert      // (N, Text, Pivot, Before, AtEnd) this is inserted at N: see Operation
	RemoveRange Code = journal.OpRemoveRange // (N, M) M elements from N on are removed, all before or all after the rest; of a stream: (ID) all entries before ID, or all if it is 0-0
	Matching    Code = journal.OpMatching    // (N, Text) elements equal to this are removed: all if N is 0, the first N, or the last -N

	ID             Code = journal.OpID             // (ID, N, MaxDeleted) last ID, entries added, highest deleted ID
	Group          Code = journal.OpGroup          // (Text, New) the following operations apply to this group
	Delivered      Code = journal.OpDelivered      // (ID, N) it has delivered the entries up to ID, which are N
	RemoveGroup    Code = journal.OpRemoveGroup    // it is deleted
	Consumer       Code = journal.OpConsumer       // (Text, N, M, New) the following operations apply to this consumer, which was seen at N and active at M
	RemoveConsumer Code = journal.OpRemoveConsumer // it is deleted
	Deliver        Code = journal.OpDeliver        // (ID, N, M) an entry is pending with it since N, and was delivered M times
	Acknowledge    Code = journal.OpAcknowledge    // (ID) an entry is not pending in the group
	Idempotence    Code = journal.OpIdempotence    // (N, M) identifiers of entries are kept for N seconds, M of each producer; none are kept so far
	Identify       Code = journal.OpIdentify       // (Text, Value, ID) the producer Text has used the identifier Value for an entry
	Outdate        Code = journal.OpOutdate        // (N) some of the identifiers whose time is over at N, in milliseconds since 1970, are removed
	Identified     Code = journal.OpIdentified     // (N, M) N identifiers were used, and M used again
)

// Operation is one operation of an effect. Its fields alias the effect.
//
// An insertion at the front (N is 0) or, with AtEnd, at the end of a list has no pivot.
// Any other is before, or after, the first element that equals Pivot. New says that the
// group or consumer did not exist.
type Operation struct {
	Code       Code
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

// The kinds of values whose operations differ, as journals name them.
const (
	hash   = 'h'
	sorted = 'z'
	stream = 'x'
)

// Decode reads an operation on a value of a kind, which has the name that journals give it.
// It reports whether the operation is one of this package. o or hints have failed if they do
// not begin with an operation. The memory of Fields is used again.
func (op *Operation) Decode(kind byte, o, hints *journal.Operands) bool {
	*op = Operation{Code: Code(o.Byte()), Fields: op.Fields[:0]}
	switch op.Code {
	case New:
		o.Byte()
	case Delete:
	case Deadline, Outdate:
		op.N = int64(o.Number())
	case String:
		op.Text = o.Text()
	case Write:
		op.N, op.Text = int64(o.Number()), o.Text()
	default:
		if kind == stream {
			return op.decodeStream(o, hints)
		}
		return op.decodeCollection(kind, o, hints)
	}
	return true
}

func (op *Operation) decodeCollection(kind byte, o, hints *journal.Operands) bool {
	switch op.Code {
	case Put:
		op.Text = o.Text()
		switch kind {
		case hash:
			op.Value = o.Text()
		case sorted:
			op.Score = o.Score()
		}
	case Remove, Front, Back:
		op.Text = o.Text()
	case PopFront, PopBack:
	case Index:
		op.N, op.Text = int64(o.Number()), o.Text()
	case Insert:
		op.N, op.Text = int64(o.Number()), o.Text()
		if side := hints.Byte(); side == journal.AtEnd {
			op.AtEnd = op.N > 0
		} else {
			op.Before, op.Pivot = side == journal.BeforePivot, hints.Text()
		}
	case RemoveRange:
		op.N, op.M = int64(o.Number()), int64(o.Number())
	case Matching:
		op.N, op.Text = o.Signed(), o.Text()
	case Expire:
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
	case Put, journal.OpPutNewBlock:
		op.Code, op.ID = Put, sequence.ReadID(o)
		for n := 2 * o.Number(); n > 0 && !o.Failed; n-- {
			op.Fields = append(op.Fields, o.Text())
		}
	case Remove, Acknowledge:
		op.ID = sequence.ReadID(o)
	case RemoveRange:
		o.Number()
		o.Number()
		op.ID = sequence.ReadID(hints)
	case ID:
		op.ID, op.N, op.MaxDeleted = sequence.ReadID(o), int64(o.Number()), sequence.ReadID(o)
	case Group:
		op.Text, op.New = o.Text(), hints.Byte() != 0
	case Consumer:
		op.Text, op.N, op.M, op.New = o.Text(), o.Signed(), o.Signed(), hints.Byte() != 0
	case Delivered:
		op.ID, op.N = sequence.ReadID(o), o.Signed()
	case Deliver:
		op.ID, op.N, op.M = sequence.ReadID(o), o.Signed(), o.Signed()
	case RemoveGroup, RemoveConsumer:
	case Idempotence, Identified:
		op.N, op.M = int64(o.Number()), int64(o.Number())
	case Identify:
		op.Text, op.Value, op.ID = o.Text(), o.Text(), sequence.ReadID(o)
	default:
		o.Fail()
	}
	return true
}
