package journal

import (
	"encoding/binary"
	"iter"
)

// ChunkSize is the number of bytes from which on a [Writer] yields its operations.
const ChunkSize = 32 << 10

// Writer collects the operations that construct a value in Buf. With Yield it passes them
// on in chunks; a chunk is valid until Yield returns.
type Writer struct {
	Buf   []byte
	Yield func([]byte) bool // or nil
	done  bool              // Yield has returned false
}

// Full yields the operations if they have at least limit bytes, and reports whether to
// continue.
func (w *Writer) Full(limit int) bool {
	if w.Yield != nil && len(w.Buf) >= limit && !w.done {
		w.done = !w.Yield(w.Buf)
		w.Buf = w.Buf[:0]
	}
	return !w.done
}

// Deadlines writes the deadlines of members or fields.
func (w *Writer) Deadlines(of iter.Seq2[string, float64]) {
	for member, at := range of {
		w.Buf = AppendText(append(w.Buf, OpMember), member)
		w.Buf = binary.AppendUvarint(w.Buf, uint64(at))
		if !w.Full(ChunkSize) {
			return
		}
	}
}
