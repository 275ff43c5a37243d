package journal

import (
	"errors"
	"fmt"
)

// ErrOperations is the error for invalid operations. Records have checksums, so
// invalid operations were written by a newer version or because of a bug.
var ErrOperations = errors.New("invalid operations")

// Record is a record of a journal: the changes of one key.
type Record struct {
	Space      uint64
	Key        []byte
	Operations []byte
}

// NextRecord splits the first record from a chunk of a journal. The record aliases
// the chunk.
func NextRecord(chunk []byte) (r Record, rest []byte, err error) {
	o := Operands{Rest: chunk}
	r.Space, r.Key, r.Operations = o.Number(), o.Text(), o.Text()
	if o.Failed {
		return Record{}, nil, fmt.Errorf("%w: no record", ErrOperations)
	}
	return r, o.Rest, nil
}

// ReplacesValue reports whether the operations of a record are independent of the
// previous value of the key.
func ReplacesValue(ops []byte) bool {
	return len(ops) > 0 && (ops[0] == OpNew || ops[0] == OpDeleteKey)
}
