package journal

import (
	"encoding/binary"
	"math"
)

// The operations; see the package comment.
const (
	OpNew         = 'N'
	OpDeleteKey   = 'D'
	OpDeadline    = 'E'
	OpString      = 'S'
	OpWrite       = 'W'
	OpPut         = 'P'
	OpOrdered     = 'O'
	OpRemove      = 'R'
	OpMember      = 'T'
	OpClear       = 'C'
	OpFront       = 'L'
	OpBack        = 'A'
	OpPopFront    = 'l'
	OpPopBack     = 'a'
	OpIndex       = '='
	OpInsert      = 'I'
	OpRemoveRange = 'X'
	OpMatching    = 'M'

	OpPutNewBlock    = 'B'
	OpID             = '#'
	OpBlock          = 'K'
	OpGroup          = 'G'
	OpDelivered      = '>'
	OpRemoveGroup    = 'g'
	OpConsumer       = 'U'
	OpRemoveConsumer = 'u'
	OpDeliver        = 'V'
	OpAcknowledge    = 'v'
	OpIdempotence    = 'Y'
	OpIdentify       = 'Q'
	OpIdentified     = 'Z'
	OpOutdate        = 'q'
)

// Log collects the operations on one value. Its methods append; the value calls them
// when it changes, before or after the change.
type Log struct {
	Ops   []byte
	Count int  // number of operations
	Whole bool // no operation describes the change: the value is to be written as a whole

	// A reader that does not have the value needs hints for some operations. They are
	// written only while there is one, in the order of the operations.
	Followed bool
	Hints    []byte
}

// Reset empties the log.
func (l *Log) Reset() { l.Ops, l.Hints, l.Count, l.Whole = l.Ops[:0], l.Hints[:0], 0, false }

// Rewrite records that the value is to be written as a whole.
func (l *Log) Rewrite() {
	l.Reset()
	l.Whole = true
}

// Op begins an operation.
func (l *Log) Op(op byte) {
	l.Ops = append(l.Ops, op)
	l.Count++
}

// Number appends a uvarint.
func (l *Log) Number(n uint64) { l.Ops = binary.AppendUvarint(l.Ops, n) }

// Signed appends a varint.
func (l *Log) Signed(n int64) { l.Ops = binary.AppendVarint(l.Ops, n) }

// Text appends a text.
func (l *Log) Text(s string) { l.Ops = AppendText(l.Ops, s) }

// Bytes is Text for bytes.
func (l *Log) Bytes(b []byte) { l.Ops = AppendText(l.Ops, b) }

// Score appends a score.
func (l *Log) Score(score float64) { l.Ops = AppendScore(l.Ops, score) }

// Put records a member of a set, or a field, whose value follows.
func (l *Log) Put(text string) {
	l.Op(OpPut)
	l.Text(text)
}

// Remove records that a member or field is removed.
func (l *Log) Remove(text string) {
	l.Op(OpRemove)
	l.Text(text)
}

// Deadline records the deadline of a member or field.
func (l *Log) Deadline(text string, at int64) {
	l.Op(OpMember)
	l.Text(text)
	l.Number(uint64(at))
}

// AppendText appends a text: its length as a uvarint, and its bytes.
func AppendText[T string | []byte](dst []byte, s T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// AppendScore appends a score.
func AppendScore(dst []byte, score float64) []byte {
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(score))
}

// How an element is inserted in a list: the first byte of the hint of OpInsert. The
// pivot follows as a text unless the element is at an end.
const (
	AtEnd byte = iota
	BeforePivot
	AfterPivot
)
