package longdouble

import (
	"bytes"
	"math/big"
	"strings"

	"github.com/zsetd/zsetd/protocol"
)

// INCRBYFLOAT and HINCRBYFLOAT compute with C's long double, which on Redis's usual
// platforms is the 80-bit format: 64 bits of mantissa, 15 of exponent. A big.Float
// of 64 bits gives the same sums.

const (
	longDoubleBits = 64

	// The exponents of the largest and the smallest long double, as big.Float
	// counts them. A value above half the smallest is rounded up to it.
	maxExponent = 16384
	minExponent = -16445

	// longDoubleText is the length of the longest text that Redis parses as a
	// number.
	longDoubleText = 5*1024 - 1

	// big.Float computes powers of ten with 64 bits more than the requested
	// precision. That decides every tie of a short number. For a long number, which
	// may lie closer to the middle between two long doubles, longPrecision is
	// enough.
	longPrecision = 40_000
	shortText     = 40
)

// Parse parses a number as strtold does for Redis: all of b, no spaces,
// no NaN, no overflow or underflow.
func Parse(b []byte) (*big.Float, bool) {
	if len(b) == 0 || len(b) > longDoubleText {
		return nil, false
	}
	digits, sign := b, false
	if b[0] == '+' || b[0] == '-' {
		digits, sign = b[1:], b[0] == '-'
	}
	if protocol.EqualFold(digits, "INF") || protocol.EqualFold(digits, "INFINITY") {
		return new(big.Float).SetInf(sign), true
	}
	base, zero, ok := scanNumber(digits)
	if !ok {
		return nil, false
	}
	if zero { // with any exponent
		return new(big.Float).SetPrec(longDoubleBits), true
	}
	precision := uint(longDoubleBits)
	if len(b) > shortText {
		precision = longPrecision
	}
	x, _, err := big.ParseFloat(string(b), base, precision, big.ToNearestEven)
	if err != nil {
		return nil, false // an absurd exponent
	}
	x.SetPrec(longDoubleBits)
	exp := x.MantExp(nil)
	vanishes := exp < minExponent || exp == minExponent && x.MinPrec() == 1
	return x, !x.IsInf() && x.Sign() != 0 && exp <= maxExponent && !vanishes
}

// scanNumber reports whether b, without its sign, is a complete number in C's
// syntax, the base with which big.ParseFloat must parse it, and whether it is zero.
func scanNumber(b []byte) (base int, zero, ok bool) {
	base, digits, exponent := 10, "0123456789", byte('e')
	if len(b) >= 2 && b[0] == '0' && b[1]|0x20 == 'x' {
		base, digits, exponent = 0, "0123456789abcdefABCDEF", 'p'
		b = b[2:]
	}
	whole := leading(b, digits)
	fraction := 0
	n := whole
	if n < len(b) && b[n] == '.' {
		n++
		fraction = leading(b[n:], digits)
		n += fraction
	}
	if whole+fraction == 0 {
		return 0, false, false
	}
	zero = leading(b[:n], "0.") == n
	if n == len(b) {
		return base, zero, true
	}
	if b[n]|0x20 != exponent {
		return 0, false, false
	}
	b = b[n+1:]
	if len(b) > 0 && (b[0] == '+' || b[0] == '-') {
		b = b[1:]
	}
	return base, zero, len(b) > 0 && leading(b, "0123456789") == len(b)
}

// leading returns how many of the first bytes of b are in set.
func leading(b []byte, set string) int {
	return len(b) - len(bytes.TrimLeft(b, set))
}

// Add returns x+y, or false if the sum is not finite.
func Add(x, y *big.Float) (*big.Float, bool) {
	if x.IsInf() || y.IsInf() {
		return nil, false
	}
	sum := new(big.Float).SetPrec(longDoubleBits).Add(x, y)
	if sum.Sign() != 0 && sum.MantExp(nil) > maxExponent {
		return nil, false
	}
	return sum, true
}

// Format formats x as text: 17 decimals, without trailing zeros.
func Format(x *big.Float) []byte {
	s := x.Text('f', 17)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	if s == "-0" {
		s = "0"
	}
	return []byte(s)
}

// Largest returns the finite long double that is farthest from zero.
func Largest(negative bool) *big.Float {
	x := new(big.Float).SetPrec(longDoubleBits).SetInt(new(big.Int).SetUint64(1<<longDoubleBits - 1))
	x.SetMantExp(x, maxExponent-longDoubleBits)
	if negative {
		x.Neg(x)
	}
	return x
}
