package journal

import (
	"encoding/binary"
	"math"

	"github.com/zsetd/zsetd/zset"
)

// Operands decodes the operands of operations. After an error, Failed is true and all
// results are zero.
type Operands struct {
	Rest   []byte // not decoded yet
	Failed bool
}

// Fail reports an error.
func (o *Operands) Fail() { o.Failed, o.Rest = true, nil }

// Number decodes a uvarint.
func (o *Operands) Number() uint64 {
	n, w := binary.Uvarint(o.Rest)
	if w <= 0 {
		o.Fail()
		return 0
	}
	o.Rest = o.Rest[w:]
	return n
}

// Position decodes a position in a list of n elements, or a number of elements.
func (o *Operands) Position(n int) int {
	i := o.Number()
	if i > uint64(n) {
		o.Fail()
		return 0
	}
	return int(i)
}

// Signed decodes a varint.
func (o *Operands) Signed() int64 {
	n, w := binary.Varint(o.Rest)
	if w <= 0 {
		o.Fail()
		return 0
	}
	o.Rest = o.Rest[w:]
	return n
}

// Text decodes a text, which aliases the operations.
func (o *Operands) Text() []byte {
	n := o.Number()
	if n > uint64(len(o.Rest)) {
		o.Fail()
		return nil
	}
	b := o.Rest[:n:n]
	o.Rest = o.Rest[n:]
	return b
}

// Deadline decodes the deadline of a member.
func (o *Operands) Deadline() int64 {
	at := o.Number()
	if at > zset.MaxDeadline {
		o.Fail()
		return 0
	}
	return int64(at)
}

// Score decodes a score.
func (o *Operands) Score() float64 {
	if len(o.Rest) < 8 {
		o.Fail()
		return 0
	}
	f := math.Float64frombits(binary.LittleEndian.Uint64(o.Rest))
	o.Rest = o.Rest[8:]
	if math.IsNaN(f) {
		o.Fail()
	}
	return f
}

// Byte decodes a byte.
func (o *Operands) Byte() byte {
	if len(o.Rest) == 0 {
		o.Fail()
		return 0
	}
	b := o.Rest[0]
	o.Rest = o.Rest[1:]
	return b
}
