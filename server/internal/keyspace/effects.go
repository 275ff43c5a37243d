package keyspace

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
			x.Key, x.pinned = bytesOf(p.pinned.key), p.pinned
			if !yield(&x) {
				return
			}
			continue
		}
		for o := (operands{rest: e.parts[i].effects}); len(o.rest) > 0; {
			x := nextEffect(&o)
			if o.failed {
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

func nextEffect(o *operands) Effect {
	a := about(o.rest[0])
	o.rest = o.rest[1:]
	x := effectOf(a, int(o.number())-1)
	switch {
	case a&aboutFlush != 0:
		x.Change = ChangeFlush
	case a&aboutSwap != 0:
		x.Change, x.Other = ChangeSwap, int(o.number())-1
	case a&aboutMessage != 0:
		x.Change, x.Key, x.Message = ChangeMessage, o.text(), o.text()
		x.Shard = len(o.rest) > 0 && o.rest[0] == 1
		o.rest = o.rest[min(1, len(o.rest)):]
	default:
		x.Key, x.ops, x.hints = o.text(), o.text(), o.text()
	}
	return x
}

// Whole reports whether the operations construct the whole value from nothing: the
// first is OpNew.
func (x *Effect) Whole() bool { return x.pinned != nil || len(x.ops) > 0 && x.ops[0] == opNew }

// Stream returns the value and deadline of an effect that is Whole and of KindStream.
// The stream must not be modified. O(n).
func (x *Effect) Stream() (s *Stream, deadline int64) {
	if x.pinned != nil {
		return x.pinned.value.(*Stream), x.pinned.deadline
	}
	limits := DefaultLimits()
	b := Builder{Limits: &limits}
	err := b.Apply(x.ops)
	if err == nil {
		var value any
		if value, deadline, err = b.Value(); err == nil {
			return value.(*Stream), deadline
		}
	}
	panic("BUG: a stream is not readable: " + err.Error())
}

// OpCode names an operation: the letter that it has in a journal.
type OpCode byte

// The operations of an effect. In parentheses are the fields of Operation that they
// have.
const (
	OpNew      OpCode = opNew       // an empty value of the effect's kind
	OpDelete   OpCode = opDeleteKey // the key is deleted
	OpDeadline OpCode = opDeadline  // (N) the key expires at N, in milliseconds since 1970, or never if N is 0
	OpString   OpCode = opString    // (Text) the string is this
	OpWrite    OpCode = opWrite     // (N, Text) the string has this from offset N on

	OpPut    OpCode = opPut    // (Text; hash: Value; sorted set: Score; stream: ID, Fields) a member, field or entry is added or changed
	OpRemove OpCode = opRemove // (Text; stream: ID) a member, field or entry is removed
	OpExpire OpCode = opMember // (Text, N) the member of a sorted set, or field of a hash, expires at N, in milliseconds since 1970, or never if N is 0

	OpFront       OpCode = opFront       // (Text) an element in front of a list
	OpBack        OpCode = opBack        // (Text) an element at its end
	OpPopFront    OpCode = opPopFront    // the first element is removed
	OpPopBack     OpCode = opPopBack     // the last element is removed
	OpIndex       OpCode = opIndex       // (N, Text) element N is this
	OpInsert      OpCode = opInsert      // (N, Text, Pivot, Before, AtEnd) this is inserted at N: see Operation
	OpRemoveRange OpCode = opRemoveRange // (N, M) M elements from N on are removed, all before or all after the rest; of a stream: (ID) all entries before ID, or all if it is 0-0
	OpMatching    OpCode = opMatching    // (N, Text) elements equal to this are removed: all if N is 0, the first N, or the last -N

	OpID             OpCode = opID             // (ID, N, MaxDeleted) last ID, entries added, highest deleted ID
	OpGroup          OpCode = opGroup          // (Text, New) the following operations apply to this group
	OpDelivered      OpCode = opDelivered      // (ID, N) it has delivered the entries up to ID, which are N
	OpRemoveGroup    OpCode = opRemoveGroup    // it is deleted
	OpConsumer       OpCode = opConsumer       // (Text, N, M, New) the following operations apply to this consumer, which was seen at N and active at M
	OpRemoveConsumer OpCode = opRemoveConsumer // it is deleted
	OpDeliver        OpCode = opDeliver        // (ID, N, M) an entry is pending with it since N, and was delivered M times
	OpAcknowledge    OpCode = opAcknowledge    // (ID) an entry is not pending in the group
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
	ID         StreamID
	MaxDeleted StreamID
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
	o, hints := operands{rest: ops}, operands{rest: x.hints}
	var op Operation
	for len(o.rest) > 0 {
		op = Operation{Code: OpCode(o.rest[0]), Fields: op.Fields[:0]}
		o.rest = o.rest[1:]
		shown := op.decode(x.Kind, &o, &hints)
		if o.failed || hints.failed {
			panic("BUG: an operation of an effect is not readable")
		}
		if shown && !yield(&op) {
			return false
		}
	}
	return true
}

// decode reads the operands, and reports whether the operation is one of the exported.
func (op *Operation) decode(kind Kind, o, hints *operands) bool {
	switch op.Code {
	case OpNew:
		o.rest = o.rest[1:]
	case OpDelete:
	case OpDeadline:
		op.N = int64(o.number())
	case OpString:
		op.Text = o.text()
	case OpWrite:
		op.N, op.Text = int64(o.number()), o.text()
	default:
		if kind == KindStream {
			return op.decodeStream(o, hints)
		}
		return op.decodeCollection(kind, o, hints)
	}
	return true
}

func (op *Operation) decodeCollection(kind Kind, o, hints *operands) bool {
	switch op.Code {
	case OpPut:
		op.Text = o.text()
		switch kind {
		case KindHash:
			op.Value = o.text()
		case KindZset:
			op.Score = o.score()
		}
	case OpRemove, OpFront, OpBack:
		op.Text = o.text()
	case OpPopFront, OpPopBack:
	case OpIndex:
		op.N, op.Text = int64(o.number()), o.text()
	case OpInsert:
		op.N, op.Text = int64(o.number()), o.text()
		if side := hints.byte(); side == noPivot {
			op.AtEnd = op.N > 0
		} else {
			op.Before, op.Pivot = side == beforePivot, hints.text()
		}
	case OpRemoveRange:
		op.N, op.M = int64(o.number()), int64(o.number())
	case OpMatching:
		op.N, op.Text = o.signed(), o.text()
	case OpExpire:
		op.Text, op.N = o.text(), int64(o.number())
	case opOrdered:
		return false
	default:
		o.fail()
	}
	return true
}

func (op *Operation) decodeStream(o, hints *operands) bool {
	switch op.Code {
	case OpPut, opPutNewBlock:
		op.Code, op.ID = OpPut, o.id()
		for n := 2 * o.number(); n > 0 && !o.failed; n-- {
			op.Fields = append(op.Fields, o.text())
		}
	case OpRemove, OpAcknowledge:
		op.ID = o.id()
	case OpRemoveRange:
		o.number()
		o.number()
		op.ID = hints.id()
	case OpID:
		op.ID, op.N, op.MaxDeleted = o.id(), int64(o.number()), o.id()
	case OpGroup:
		op.Text, op.New = o.text(), hints.byte() != 0
	case OpConsumer:
		op.Text, op.N, op.M, op.New = o.text(), o.signed(), o.signed(), hints.byte() != 0
	case OpDelivered:
		op.ID, op.N = o.id(), o.signed()
	case OpDeliver:
		op.ID, op.N, op.M = o.id(), o.signed(), o.signed()
	case OpRemoveGroup, OpRemoveConsumer:
	default:
		o.fail()
	}
	return true
}

// byte decodes a byte.
func (o *operands) byte() byte {
	if len(o.rest) == 0 {
		o.fail()
		return 0
	}
	b := o.rest[0]
	o.rest = o.rest[1:]
	return b
}
