package journal

import "encoding/binary"

// StringChunk is the number of bytes of a part of a long string.
const StringChunk = 256 << 10

// String writes a string, in parts if it is long.
func (w *Writer) String(b []byte) {
	w.Buf = AppendText(append(w.Buf, OpString), b[:min(len(b), StringChunk)])
	for at := StringChunk; at < len(b) && w.Full(1); at += StringChunk {
		w.Buf = binary.AppendUvarint(append(w.Buf, OpWrite), uint64(at))
		w.Buf = AppendText(w.Buf, b[at:min(len(b), at+StringChunk)])
	}
}

// EditString executes an operation on a string, which it may overwrite. It reports whether
// the operation is valid: on strings, and inserting at most maxGap zero bytes.
func (o *Operands) EditString(op byte, text []byte, maxGap int) (edited []byte, ok bool) {
	switch op {
	case OpString:
		return append(text[:0], o.Text()...), true
	case OpWrite:
		offset, part := o.Number(), o.Text()
		if o.Failed || offset > uint64(len(text)+maxGap) {
			return text, false
		}
		if more := int(offset) + len(part) - len(text); more > 0 {
			text = append(text, make([]byte, more)...)
		}
		copy(text[offset:], part)
		return text, true
	}
	return text, false
}
