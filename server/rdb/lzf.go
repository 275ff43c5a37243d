package rdb

// The format of LZF, by Marc Lehmann: a byte n below 32 is followed by n+1 literal
// bytes. In any other byte the three high bits, plus two, are the length of a match
// (7: the next byte is to be added), and the others, with the byte that follows,
// its distance, less one.

const (
	lzfBits     = 16
	lzfLiterals = 1 << 5
	lzfBack     = 1 << 13
	lzfMatch    = 1<<8 + 1<<3
)

// lzf finds matches by a hash table of the last position of each three bytes.
// Entries of earlier calls are recognized by the number with which the current one
// began.
type lzf struct {
	slots []uint32
	base  uint32
}

func lzfSlot(h uint32) uint32 { return (h>>(24-lzfBits) - h*5) & (1<<lzfBits - 1) }

// compress appends in, compressed, to dst; false if that is not at least 4 bytes
// shorter. The matches are those that lzf_c.c in Redis finds with an empty table.
func (z *lzf) compress(dst, in []byte) ([]byte, bool) {
	if len(in) <= 4 || len(in) >= 1<<31 {
		return dst, false
	}
	if z.slots == nil {
		z.slots = make([]uint32, 1<<lzfBits)
	}
	if z.base > 1<<32-1-uint32(len(in))-1 {
		clear(z.slots)
		z.base = 0
	}
	z.base++ // 0 is an empty slot
	defer func() { z.base += uint32(len(in)) }()

	start, limit := len(dst), len(dst)+len(in)-4
	out := append(dst, 0) // the length of the first run of literals
	lit := 0
	i := 0
	h := uint32(in[0])<<8 | uint32(in[1])
	for i < len(in)-2 {
		h = h<<8 | uint32(in[i+2])
		slot := &z.slots[lzfSlot(h)]
		ref := -1
		if *slot >= z.base {
			ref = int(*slot - z.base)
		}
		*slot = z.base + uint32(i)
		back := i - ref - 1
		if ref > 0 && back < lzfBack && in[ref] == in[i] && in[ref+1] == in[i+1] && in[ref+2] == in[i+2] {
			most := min(len(in)-i-2, lzfMatch)
			if len(out)+4 >= limit {
				short := 4
				if lit == 0 {
					short--
				}
				if len(out)+short >= limit {
					return dst[:start], false
				}
			}
			if lit > 0 {
				out[len(out)-lit-1] = byte(lit - 1)
			} else {
				out = out[:len(out)-1]
			}
			n := 2
			if most > 16 {
				for n < 18 {
					if n++; in[ref+n] != in[i+n] {
						break
					}
				}
			}
			if most <= 16 || n == 18 && in[ref+n] == in[i+n] {
				for n++; n < most && in[ref+n] == in[i+n]; {
					n++
				}
			}
			n -= 2
			i++
			if n < 7 {
				out = append(out, byte(back>>8)|byte(n)<<5)
			} else {
				out = append(out, byte(back>>8)|7<<5, byte(n-7))
			}
			out = append(out, byte(back), 0)
			lit = 0
			if i += n + 1; i >= len(in)-2 {
				break
			}
			i -= 2
			h = uint32(in[i])<<8 | uint32(in[i+1])
			for range 2 {
				h = h<<8 | uint32(in[i+2])
				z.slots[lzfSlot(h)] = z.base + uint32(i)
				i++
			}
			continue
		}
		if len(out) >= limit {
			return dst[:start], false
		}
		out = append(out, in[i])
		i++
		if lit++; lit == lzfLiterals {
			out[len(out)-lit-1] = byte(lit - 1)
			lit = 0
			out = append(out, 0)
		}
	}
	if len(out)+3 > limit {
		return dst[:start], false
	}
	for ; i < len(in); i++ {
		out = append(out, in[i])
		if lit++; lit == lzfLiterals {
			out[len(out)-lit-1] = byte(lit - 1)
			lit = 0
			out = append(out, 0)
		}
	}
	if lit > 0 {
		out[len(out)-lit-1] = byte(lit - 1)
	} else {
		out = out[:len(out)-1]
	}
	return out, true
}

// decompress returns the contents of in, which must be size bytes.
func decompress(in []byte, size int) ([]byte, bool) {
	if size > len(in)*lzfMatch { // more than the longest possible match per byte
		return nil, false
	}
	out := make([]byte, 0, size)
	for len(in) > 0 {
		n := int(in[0])
		if n < lzfLiterals {
			n++
			if len(in) <= n || len(out)+n > size {
				return nil, false
			}
			out, in = append(out, in[1:1+n]...), in[1+n:]
			continue
		}
		back, used := n&31<<8, 1
		if n >>= 5; n == 7 {
			if len(in) < 2 {
				return nil, false
			}
			n += int(in[1])
			used++
		}
		if len(in) <= used {
			return nil, false
		}
		back += int(in[used]) + 1
		n += 2
		in = in[used+1:]
		if back > len(out) || len(out)+n > size {
			return nil, false
		}
		for range n { // the copy may overlap itself
			out = append(out, out[len(out)-back])
		}
	}
	return out, len(out) == size
}
