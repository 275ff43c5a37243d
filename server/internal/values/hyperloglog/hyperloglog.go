package hyperloglog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"slices"
	"strconv"
)

const (
	// Registers is the number of registers.
	Registers = 1 << indexBits
	// HeaderSize is the number of bytes before the registers.
	HeaderSize = 16
	// DenseSize is the number of bytes of a dense string.
	DenseSize = HeaderSize + Registers*registerBits/8

	indexBits    = 14
	hashBits     = 64 - indexBits // bits of the hash in which zeros are counted
	registerBits = 6

	// OutOfDate is the bit of the byte at CardinalityEnd that marks the cached
	// cardinality as out of date.
	OutOfDate = 0x80
	// CardinalityEnd is the offset of the last byte of the cardinality.
	CardinalityEnd = HeaderSize - 1

	cardinalityOffset = 8 // offset of the cardinality
	dense             = 0
	sparse            = 1
)

// ErrCorrupted is the error for a sparse string that does not have exactly
// Registers registers.
var ErrCorrupted = errors.New("corrupted HyperLogLog")

// New returns an empty HyperLogLog in the sparse encoding.
func New() []byte {
	b := make([]byte, HeaderSize+2)
	copy(b, "HYLL")
	b[4] = sparse
	appendZeros(b[HeaderSize:HeaderSize], Registers)
	return b
}

// Valid reports whether b has a correct header and, if it is dense, the correct
// length. The registers of a sparse string are not checked.
func Valid(b []byte) bool {
	return len(b) >= HeaderSize && bytes.HasPrefix(b, []byte("HYLL")) &&
		(b[4] == sparse || b[4] == dense && len(b) == DenseSize)
}

// IsDense reports whether a valid string is dense.
func IsDense(b []byte) bool { return b[4] == dense }

// Cardinality returns the cached estimate of the header, and whether it is up to
// date.
func Cardinality(b []byte) (n uint64, ok bool) {
	return binary.LittleEndian.Uint64(b[cardinalityOffset:]), b[CardinalityEnd]&OutOfDate == 0
}

// AppendCardinality appends n in the format of the header.
func AppendCardinality(dst []byte, n uint64) []byte { return binary.LittleEndian.AppendUint64(dst, n) }

// RegisterOf returns the register of an element, and the minimum value of the register
// once it contains the element. O(len(element)).
func RegisterOf(element []byte) (register int, count uint8) {
	h := murmur(element, 0xadc83b19)
	return int(h & (Registers - 1)), uint8(1 + bits.TrailingZeros64(h>>indexBits|1<<hashBits))
}

// murmur is MurmurHash64A.
func murmur(b []byte, seed uint64) uint64 {
	const m, r = 0xc6a4a7935bd1e995, 47
	h := seed ^ uint64(len(b))*m
	for ; len(b) >= 8; b = b[8:] {
		k := binary.LittleEndian.Uint64(b) * m
		k ^= k >> r
		h = (h ^ k*m) * m
	}
	if len(b) > 0 {
		for i, x := range b {
			h ^= uint64(x) << (8 * i)
		}
		h *= m
	}
	h ^= h >> r
	h *= m
	return h ^ h>>r
}

// DenseRegister returns the value of a register of a dense string. O(1).
func DenseRegister(b []byte, register int) uint8 {
	at, shift := denseAt(register)
	return uint8(load16(b, at)>>shift) & 63
}

func denseAt(register int) (at int, shift uint) {
	bit := register * registerBits
	return HeaderSize + bit/8, uint(bit % 8)
}

// load16 returns the bytes at and at+1, little endian, with 0 beyond the end.
func load16(b []byte, at int) uint16 {
	x := uint16(b[at])
	if at+1 < len(b) {
		x |= uint16(b[at+1]) << 8
	}
	return x
}

// DenseChange returns the change of a dense string that sets a register to count:
// the first n bytes of change at offset at. n is 2, or 1 at the end of the string.
// O(1).
func DenseChange(b []byte, register int, count uint8) (at int, change [2]byte, n int) {
	at, shift := denseAt(register)
	x := load16(b, at)&^(63<<shift) | uint16(count)<<shift
	return at, [2]byte{byte(x), byte(x >> 8)}, min(2, len(b)-at)
}

func setDense(b []byte, register int, count uint8) {
	at, change, n := DenseChange(b, register, count)
	copy(b[at:], change[:n])
}

// run is one code of a sparse string: consecutive registers with the same value.
type run struct {
	value uint8
	n     int
	size  int // bytes of the code
}

const (
	maxZeros    = 64 // of the short code for zeros
	maxValue    = 32
	maxValueRun = 4
)

// decodeRun returns the run at the beginning of b.
func decodeRun(b []byte) run {
	switch {
	case b[0]&0x80 != 0:
		return run{b[0]>>2&31 + 1, int(b[0]&3) + 1, 1}
	case b[0]&0x40 == 0:
		return run{0, int(b[0]) + 1, 1}
	}
	n := int(b[0]&63) << 8
	if len(b) > 1 {
		n |= int(b[1])
	}
	return run{0, n + 1, 2}
}

func isValue(b byte) bool { return b&0x80 != 0 }

func valueRun(value uint8, n int) byte { return 0x80 | (value-1)<<2 | uint8(n-1) }

// appendZeros appends a run of n zeros, or nothing if n is 0.
func appendZeros(dst []byte, n int) []byte {
	switch {
	case n == 0:
		return dst
	case n <= maxZeros:
		return append(dst, byte(n-1))
	}
	return append(dst, 0x40|byte((n-1)>>8), byte(n-1))
}

// find returns the offset of the run that contains a register, the first register
// of the run, and the offset of the previous run, -1 if there is none. It returns
// false if the string has too few registers. O(len(b)).
func find(b []byte, register int) (at, begin, before int, ok bool) {
	at, before = HeaderSize, -1
	for at < len(b) {
		r := decodeRun(b[at:])
		if register < begin+r.n {
			return at, begin, before, true
		}
		before = at
		at += r.size
		begin += r.n
	}
	return 0, 0, 0, false
}

// SparseRegister returns the value of a register of a sparse string, or
// ErrCorrupted. O(len(b)).
func SparseRegister(b []byte, register int) (uint8, error) {
	at, _, _, ok := find(b, register)
	if !ok {
		return 0, ErrCorrupted
	}
	return decodeRun(b[at:]).value, nil
}

// Raise raises a register of a valid string to count, unless it is that high
// already. A sparse string becomes dense if it would exceed limit bytes. Raise
// modifies b and returns the resulting string, as append does. If changed is true,
// the string's cached cardinality is out of date. The only error is ErrCorrupted.
// O(1) for a dense string, O(len(b)) for a sparse one.
func Raise(b []byte, register int, count uint8, limit int) (_ []byte, changed bool, err error) {
	if IsDense(b) {
		if DenseRegister(b, register) >= count {
			return b, false, nil
		}
		setDense(b, register, count)
	} else {
		if b, changed, err = raiseSparse(b, register, count, limit); !changed {
			return b, false, err
		}
	}
	b[CardinalityEnd] |= OutOfDate
	return b, true, nil
}

func raiseSparse(b []byte, register int, count uint8, limit int) ([]byte, bool, error) {
	if count > maxValue {
		return promote(b, register, count)
	}
	at, begin, before, ok := find(b, register)
	if !ok {
		return b, false, ErrCorrupted
	}
	old := decodeRun(b[at:])
	if old.value >= count {
		return b, false, nil
	}
	// Split the run into the part before the register, the register, and the part
	// after it.
	var buf [5]byte
	runs := buf[:0]
	part := func(n int) {
		switch {
		case old.value == 0:
			runs = appendZeros(runs, n)
		case n > 0:
			runs = append(runs, valueRun(old.value, n))
		}
	}
	part(register - begin)
	runs = append(runs, valueRun(count, 1))
	part(begin + old.n - 1 - register)
	end := min(at+old.size, len(b))
	if grown := len(runs) - old.size; grown > 0 && len(b)+grown > limit {
		return promote(b, register, count)
	}
	b = slices.Replace(b, at, end, runs...)
	if before < 0 {
		before = HeaderSize
	}
	return mergeRuns(b, before), true, nil
}

// mergeRuns merges adjacent runs of equal values, from offset at, in at most five
// steps as Redis does.
func mergeRuns(b []byte, at int) []byte {
	for range 5 {
		if at >= len(b) {
			break
		}
		r := decodeRun(b[at:])
		if r.value > 0 && at+1 < len(b) && isValue(b[at+1]) {
			next := decodeRun(b[at+1:])
			if next.value == r.value && next.n+r.n <= maxValueRun {
				b[at+1] = valueRun(r.value, r.n+next.n)
				b = slices.Delete(b, at, at+1)
				continue
			}
		}
		at += r.size
	}
	return b
}

func promote(b []byte, register int, count uint8) ([]byte, bool, error) {
	d, err := Dense(b)
	if err != nil {
		return b, false, err
	}
	setDense(d, register, count)
	return d, true, nil
}

// Dense returns the string in the dense encoding: b itself if it is dense, else a
// new string, or ErrCorrupted.
func Dense(b []byte) ([]byte, error) {
	if IsDense(b) {
		return b, nil
	}
	d := make([]byte, DenseSize)
	copy(d, b[:HeaderSize])
	d[4] = dense
	err := eachValue(b, func(register int, value uint8) { setDense(d, register, value) })
	return d, err
}

// eachValue yields the registers of a sparse string that are not 0. It returns
// ErrCorrupted if the string does not have exactly Registers registers.
func eachValue(b []byte, yield func(register int, value uint8)) error {
	n := 0
	for at := HeaderSize; at < len(b); {
		r := decodeRun(b[at:])
		if r.value > 0 {
			if n+r.n > Registers {
				return ErrCorrupted
			}
			for i := range r.n {
				yield(n+i, r.value)
			}
		}
		n += r.n
		at += r.size
	}
	if n != Registers {
		return ErrCorrupted
	}
	return nil
}

// Union is the union of several strings: the maximum of each register. The zero
// value is the empty union.
type Union [Registers]uint8

// Add raises each register to its value in the valid string b, or returns
// ErrCorrupted; registers may have changed then. O(Registers).
func (u *Union) Add(b []byte) error {
	if IsDense(b) {
		for i := range u {
			u[i] = max(u[i], DenseRegister(b, i))
		}
		return nil
	}
	return eachValue(b, func(register int, value uint8) { u[register] = max(u[register], value) })
}

// Count returns the estimated number of distinct elements. O(Registers).
func (u *Union) Count() uint64 {
	var h histogram
	for _, x := range u {
		h[x]++
	}
	return h.estimate()
}

// Count computes the estimate for a valid string and ignores the cached
// cardinality. The only error is ErrCorrupted. O(Registers).
func Count(b []byte) (uint64, error) {
	var h histogram
	if IsDense(b) {
		for r := b[HeaderSize:]; len(r) >= 3; r = r[3:] { // 4 registers
			x := uint(r[0]) | uint(r[1])<<8 | uint(r[2])<<16
			h[x&63]++
			h[x>>6&63]++
			h[x>>12&63]++
			h[x>>18]++
		}
		return h.estimate(), nil
	}
	n := 0
	for at := HeaderSize; at < len(b); {
		r := decodeRun(b[at:])
		h[r.value] += r.n
		n += r.n
		at += r.size
	}
	if n != Registers {
		return 0, ErrCorrupted
	}
	return h.estimate(), nil
}

// histogram counts the registers of each value.
type histogram [1 << registerBits]int

// estimate returns the cardinality by the improved raw estimator of Ertl's paper (see
// the package comment):
//
//	              m² / (2 ln 2)
//	--------------------------------------------
//	m σ(C[0]/m) + Σ C[k]/2^k + m τ(1-C[q+1]/m)/2^q
//
// where C[k] of the m registers have the value k, q is hashBits, and the sum is over k
// from 1 to q. Products are arguments of functions, or converted: so the compiler does
// not fuse them with an addition, and the result is the same on all machines.
func (h *histogram) estimate() uint64 {
	const m = Registers
	sum := math.Ldexp(m*saturatedShare(float64(m-h[hashBits+1])/m), -hashBits)
	for k := hashBits; k >= 1; k-- { // small numbers first
		sum += math.Ldexp(float64(h[k]), -k)
	}
	sum += float64(m * emptyShare(float64(h[0])/m))
	n := math.Round(m * m / (2 * math.Ln2) / sum)
	if n >= 1<<63 {
		return 1 << 63 // as Redis on amd64
	}
	return uint64(n)
}

// emptyShare is σ of the paper, for the registers that are 0:
// σ(x) = x + Σ x^(2^k) 2^(k-1) for k = 1, 2, …; infinite at 1.
func emptyShare(x float64) float64 {
	if x == 1 {
		return math.Inf(1)
	}
	sum, power := x, x
	for k := 1; ; k++ {
		power *= power
		longer := sum + math.Ldexp(power, k-1)
		if longer == sum {
			return sum
		}
		sum = longer
	}
}

// saturatedShare is τ of the paper, for the registers of the greatest value:
// τ(x) = (1 - x - Σ (1-x^(1/2^k))² / 2^k) / 3 for k = 1, 2, …
func saturatedShare(x float64) float64 {
	difference, root := 1-x, x
	for k := 1; ; k++ {
		root = math.Sqrt(root)
		longer := difference - math.Ldexp((1-root)*(1-root), -k)
		if longer == difference {
			return difference / 3
		}
		difference = longer
	}
}

// Describe returns the runs of a sparse string in the format of PFDEBUG DECODE.
func Describe(b []byte) string {
	var s []byte
	for at := HeaderSize; at < len(b); {
		r := decodeRun(b[at:])
		switch {
		case r.value > 0:
			s = append(strconv.AppendUint(append(s, "v:"...), uint64(r.value), 10), ',')
		case r.size == 1:
			s = append(s, "z:"...)
		default:
			s = append(s, "Z:"...)
		}
		s = append(strconv.AppendInt(s, int64(r.n), 10), ' ')
		at += r.size
	}
	return string(bytes.TrimSuffix(s, []byte(" ")))
}
