package transport

import "github.com/zsetd/zsetd/protocol"

// held is input that waits behind a full reader, in blocks: while the session runs no
// commands, a client may send hundreds of megabytes, and a single buffer would be copied
// whenever it grows. Its memory is released as the reader takes the input.
type held struct {
	blocks [][]byte // of the capacity heldBlock, except the first, of which the beginning is fed
	size   int      // bytes in blocks
}

const (
	// heldBlock is the size of a block, and the size from which a reader is full.
	heldBlock = 64 << 10
	// minHeldSpace is the least size of the result of space.
	minHeldSpace = 4 << 10
	// maxFed is how much of a long command the reader is fed before other clients have
	// their turns.
	maxFed = 256 << 10
)

// buffered returns how many bytes wait, and memory the size of their blocks. h may be nil.
func (h *held) buffered() int {
	if h == nil {
		return 0
	}
	return h.size
}

func (h *held) memory() int {
	if h == nil {
		return 0
	}
	return len(h.blocks) * heldBlock
}

// space returns memory to read into.
func (h *held) space() []byte {
	last := len(h.blocks) - 1
	if last < 0 || cap(h.blocks[last])-len(h.blocks[last]) < minHeldSpace {
		h.blocks = append(h.blocks, make([]byte, 0, heldBlock))
		last++
	}
	b := h.blocks[last]
	return b[len(b):cap(b)]
}

// filled notes that n bytes were read into the result of space.
func (h *held) filled(n int) {
	last := &h.blocks[len(h.blocks)-1]
	*last = (*last)[:len(*last)+n]
	h.size += n
}

// feed moves bytes to a reader, as many as it has space for, and returns how many.
func (h *held) feed(r *protocol.Reader) int {
	n := copy(r.Space(), h.blocks[0])
	r.Filled(n)
	h.size -= n
	switch {
	case h.size == 0:
		h.blocks = nil
	case n == len(h.blocks[0]):
		h.blocks[0] = nil
		h.blocks = h.blocks[1:]
	default:
		h.blocks[0] = h.blocks[0][n:]
	}
	return n
}
