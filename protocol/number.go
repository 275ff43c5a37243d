package protocol

import (
	"math"
	"math/bits"
	"strconv"
)

// Formatting of numbers. Scores are formatted for each element of a range reply, so
// this is as hot as the copying of members.

// maxIntDigits is the maximum number of bytes of a 64-bit integer in decimal.
const maxIntDigits = 20

// digitPairs has the two digits of each number from 00 to 99.
const digitPairs = "0001020304050607080910111213141516171819" +
	"2021222324252627282930313233343536373839" +
	"4041424344454647484950515253545556575859" +
	"6061626364656667686970717273747576777879" +
	"8081828384858687888990919293949596979899"

// AppendInt appends n in decimal. It takes 6 ns for seven digits, where strconv,
// which supports other bases, takes 11 ns.
func AppendInt(dst []byte, n int64) []byte {
	u := uint64(n)
	if n < 0 {
		dst = append(dst, '-')
		u = -u
	}
	return appendDigits(dst, u, countDigits(u))
}

// appendDigits appends n with the given number of digits, which must suffice.
func appendDigits(dst []byte, n uint64, width int) []byte {
	at := len(dst) + width
	if at <= cap(dst) {
		dst = dst[:at]
	} else {
		dst = append(dst, digitPairs[:width]...) // overwritten below
	}
	d := dst[at-width:]
	for i := len(d); ; {
		if i < 2 {
			if i == 1 {
				d[0] = '0' + byte(n%10)
			}
			return dst
		}
		i -= 2
		q := n / 100
		two := 2 * (n - 100*q)
		d[i], d[i+1] = digitPairs[two], digitPairs[two+1]
		n = q
	}
}

// countDigits returns the number of decimal digits of n, at least one.
func countDigits(n uint64) int {
	guess := bits.Len64(n|1) * 1233 >> 12 // log10(2) = 0.30103
	if n >= powerOfTen(guess) {
		guess++
	}
	return max(guess, 1)
}

func powerOfTen(n int) uint64 {
	return [...]uint64{
		1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
	}[n]
}

// AppendFloat appends f as Redis 7.0 formats scores and doubles: C's %.17g, which
// preserves every value, and inf, -inf, nan.
func AppendFloat(dst []byte, f float64) []byte {
	a := math.Abs(f)
	switch {
	case f == math.Trunc(f) && a < 1e15 && (f != 0 || !math.Signbit(f)):
		return AppendInt(dst, int64(f))
	case 0.01 <= a && a < 1e15:
		return appendFraction(dst, f)
	case math.IsInf(f, 1):
		return append(dst, "inf"...)
	case math.IsInf(f, -1):
		return append(dst, "-inf"...)
	case math.IsNaN(f):
		return append(dst, "nan"...)
	}
	return strconv.AppendFloat(dst, f, 'g', 17, 64)
}

// appendFraction is AppendFloat for numbers that are not integers and whose
// absolute value is from 0.01 to 1e15. Their fraction times a power of ten fits
// into 128 bits, so one multiplication yields the digits, and the remainder
// determines the rounding. strconv takes three times as long.
func appendFraction(dst []byte, f float64) []byte {
	b := math.Float64bits(f)
	if b>>63 != 0 {
		dst = append(dst, '-')
	}
	shift := 1075 - b>>52&0x7ff // f is mantissa >> shift; from 2 to 59
	mantissa := b&(1<<52-1) | 1<<52
	whole := mantissa >> shift
	places := 17 // digits after the point
	switch {
	case whole != 0:
		places -= countDigits(whole)
	case math.Abs(f) < 0.1:
		places++
	}
	fraction := mantissa & (1<<shift - 1)
	if n := int(shift) - bits.TrailingZeros64(fraction); n <= places { // a multiple of 2^-n: exactly n digits, without trailing zeros
		q := fraction >> bits.TrailingZeros64(fraction) * (powerOfTen(n) >> n)
		dst = appendDigits(dst, whole, countDigits(whole))
		return appendDigits(append(dst, '.'), q, n)
	}
	hi, lo := bits.Mul64(fraction, powerOfTen(places))
	q := hi<<(64-shift) | lo>>shift
	rest, half := lo&(1<<shift-1), uint64(1)<<(shift-1)
	if rest > half || rest == half && q&1 != 0 {
		if q++; q == powerOfTen(places) {
			q = 0
			whole++
		}
	}
	dst = appendDigits(dst, whole, countDigits(whole))
	if q == 0 {
		return dst
	}
	q, places = trimZeros(q, places)
	return appendDigits(append(dst, '.'), q, places)
}

// trimZeros removes trailing zeros from q, which is not 0 and has the given number
// of digits. Division by a constant compiles to a multiplication.
func trimZeros(q uint64, digits int) (uint64, int) {
	if q&1 != 0 {
		return q, digits
	}
	if d := q / 1e16; d*1e16 == q {
		q, digits = d, digits-16
	}
	if d := q / 1e8; d*1e8 == q {
		q, digits = d, digits-8
	}
	if d := q / 1e4; d*1e4 == q {
		q, digits = d, digits-4
	}
	if d := q / 1e2; d*1e2 == q {
		q, digits = d, digits-2
	}
	if d := q / 10; d*10 == q {
		q, digits = d, digits-1
	}
	return q, digits
}
