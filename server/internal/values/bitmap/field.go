package bitmap

import "math"

// Field is an integer in a bitmap, highest bit first.
type Field struct {
	Offset int64 // in bits
	Width  int64 // in bits: 1 to 64, without a sign 1 to 63
	Signed bool  // two's complement
}

// Window is the bytes that contain a field: at most 9.
type Window [9]byte

// Window returns a copy of the bytes that contain f, zeros beyond the end of b.
func (f Field) Window(b []byte) (w Window) {
	if at := f.Offset >> 3; at < int64(len(b)) {
		copy(w[:f.Bytes()], b[at:])
	}
	return w
}

// Bytes returns the number of bytes that contain f.
func (f Field) Bytes() int64 { return (f.Offset&7 + f.Width + 7) / 8 }

// Last returns the index of the byte with the last bit of f.
func (f Field) Last() int64 { return (f.Offset + f.Width - 1) >> 3 }

// Get returns the value of the field.
func (f Field) Get(w *Window) int64 {
	var x uint64
	for i := f.Offset & 7; i < f.Offset&7+f.Width; i++ {
		x = x<<1 | uint64(w[i>>3]>>(7-i&7)&1)
	}
	return f.truncate(x)
}

// Set writes x, truncated to the width of the field.
func (f Field) Set(w *Window, x int64) {
	for i := f.Offset&7 + f.Width - 1; i >= f.Offset&7; i-- {
		shift := 7 - i&7
		w[i>>3] = w[i>>3]&^(1<<shift) | byte(x&1)<<shift
		x >>= 1
	}
}

// truncate returns x truncated to the width of f: the value of the field after x is
// written to it.
func (f Field) truncate(x uint64) int64 {
	unused := 64 - f.Width
	if f.Signed {
		return int64(x<<unused) >> unused
	}
	return int64(x << unused >> unused)
}

// limits returns the lowest and the highest value of f.
func (f Field) limits() (lo, hi int64) {
	if f.Signed {
		hi = math.MaxInt64 >> (64 - f.Width)
		return -hi - 1, hi
	}
	return 0, math.MaxInt64 >> (63 - f.Width)
}

// Overflow is what happens to a value that a field cannot hold.
type Overflow uint8

// The reactions to an overflow.
const (
	Wrap     Overflow = iota // the lowest bits are kept
	Saturate                 // the nearest value is taken
	Fail                     // nothing is written
)

// Assign returns the value of the field after x is assigned to it, and whether it is to be
// written.
func (f Field) Assign(x int64, o Overflow) (value int64, write bool) {
	lo, hi := f.limits()
	over, under := x > hi, x < lo
	if !f.Signed && under { // as in Redis, the value is read as an unsigned number
		over, under = true, false
	}
	return f.fit(uint64(x), over, under, o)
}

// Add returns the value of the field after an increment, and whether it is to be written.
func (f Field) Add(old, increment int64, o Overflow) (value int64, write bool) {
	lo, hi := f.limits()
	over := increment > 0 && uint64(hi-old) < uint64(increment)
	under := increment < 0 && uint64(old-lo) < -uint64(increment)
	return f.fit(uint64(old)+uint64(increment), over, under, o)
}

// fit returns the value for a sum, which may be above or below the limits.
func (f Field) fit(sum uint64, over, under bool, o Overflow) (value int64, write bool) {
	lo, hi := f.limits()
	switch {
	case !over && !under:
		return int64(sum), true
	case o == Fail:
		return 0, false
	case o == Wrap:
		return f.truncate(sum), true
	case over:
		return hi, true
	}
	return lo, true
}
