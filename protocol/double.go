package protocol

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// The decimal form of a double is computed by Grisu2 of Florian Loitsch, "Printing
// Floating-Point Numbers Quickly and Accurately with Integers", PLDI 2010. Its digits
// always identify the number. They are the fewest in 99.9 % of all cases; in the others
// Grisu2 writes one more, or a last digit that is not the nearest. Redis since 7.2 uses
// the same algorithm, so replies are equal to the byte; the arithmetic below decides which
// digits those cases have:
//
//   - the scaled number has an exponent from -60 to about -34: the smallest power of
//     grisuPowers is taken that brings it there,
//   - products are rounded to the nearest of 64 bits,
//   - the bounds between which the result must lie are narrowed by one unit each.

// AppendFloat appends f as Redis 8.6 formats scores and doubles: integers up to 2^62
// plainly, other numbers with the digits that identify them, inf, -inf, nan. An exponent is
// written for numbers with 7 decimals or more that are not from 0.001 to 10 000, and for
// those with more than 7 zeros before the point. It appends at most 25 bytes.
func AppendFloat(dst []byte, f float64) []byte {
	if a := math.Abs(f); a <= 1<<62 && f == math.Trunc(f) {
		if f == 0 && math.Signbit(f) {
			return append(dst, "-0"...)
		}
		return AppendInt(dst, int64(f))
	} else if !(a <= math.MaxFloat64) {
		switch {
		case f > 0:
			return append(dst, "inf"...)
		case f < 0:
			return append(dst, "-inf"...)
		}
		return append(dst, "nan"...)
	} else if parts := uint64(a * 64); a < 1e9 && float64(parts) == a*64 {
		// At most 15 digits are exact, so they are the fewest.
		if f < 0 {
			dst = append(dst, '-')
		}
		zeros := bits.TrailingZeros64(parts)
		whole, fraction := parts>>6, parts&63>>zeros
		dst = append(appendDigits(dst, whole, countDigits(whole)), '.')
		return appendDigits(dst, fraction*[...]uint64{15625, 3125, 625, 125, 25, 5}[zeros], 6-zeros)
	}
	b := math.Float64bits(f)
	if b>>63 != 0 {
		dst = append(dst, '-')
	}
	digits, place := grisu(b &^ (1 << 63))
	return appendPlaced(dst, digits, place)
}

// appendPlaced appends digits * 10^place.
func appendPlaced(dst []byte, digits uint64, place int) []byte {
	n := countDigits(digits)
	exponent := place + n - 1
	switch {
	case place >= 0 && exponent < n+7:
		dst = appendDigits(dst, digits, n)
		return append(dst, "0000000"[:place]...)
	case place < 0 && (place > -7 || -4 < exponent && exponent < 4):
		if exponent < 0 {
			dst = append(append(dst, '0', '.'), "000000"[:-exponent-1]...)
			return appendDigits(dst, digits, n)
		}
		return appendPoint(dst, digits, n, exponent+1)
	case n == 1:
		dst = append(dst, '0'+byte(digits))
	default:
		dst = appendPoint(dst, digits, n, 1)
	}
	dst = append(dst, 'e')
	if exponent >= 0 {
		dst = append(dst, '+')
	}
	return AppendInt(dst, int64(exponent))
}

// appendPoint appends the n digits with a point behind the first whole of them.
func appendPoint(dst []byte, digits uint64, n, whole int) []byte {
	at := len(dst)
	dst = appendDigits(append(dst, '.'), digits, n)
	copy(dst[at:], dst[at+1:at+1+whole])
	dst[at+whole] = '.'
	return dst
}

// grisu returns digits and place so that digits * 10^place identifies the positive
// finite number with the given bits. There are at most 17 digits, without zeros at the end.
func grisu(b uint64) (digits uint64, place int) {
	// The number is mantissa * 2^exponent.
	mantissa, exponent := b&(1<<52-1), int(b>>52)
	gap := 1 // log2 of how much nearer than the next number the previous one is, plus 1
	switch {
	case exponent == 0:
		exponent = 1
	case mantissa == 0 && exponent > 1:
		gap = 2
		fallthrough
	default:
		mantissa |= 1 << 52
	}
	exponent -= 1075
	// value, high and low are the number and the middles between it and its neighbours,
	// all with the same exponent.
	shift := bits.LeadingZeros64(mantissa)
	exponent -= shift
	value := mantissa << shift
	high := value + 1<<(shift-1)
	low := value - 1<<(shift-gap)

	// Scaled by a power of ten, they have point bits after the binary point.
	index := (6700-1233*exponent)>>15 + 36 // log10(2) / grisuStep = 1233 / 2^15
	power := grisuPower(index)
	point := -(exponent + grisuExponent(index) + 64)
	value, high, low = scale(value, power), scale(high, power)-1, scale(low, power)+1
	place = -(grisuFirst + grisuStep*index)

	// The digits are those of high, as few as are needed to be above low.
	interval, above := high-low, high-value
	digits = high >> point
	rest, unit := high&(1<<point-1), uint64(1)<<point
	if rest <= interval {
		for {
			q := digits / 10
			next := rest + (digits-10*q)*unit
			if next > interval {
				return nearest(digits, rest, interval, above, unit), place
			}
			digits, rest, unit = q, next, 10*unit
			place++
		}
	}
	// The digits end where rest is below interval. Both grow by at most ten for each digit,
	// so they do not end before a place where rest is not below: several digits at once.
	if interval < 1<<24 { // all but subnormal numbers
		if hi, lo := bits.Mul64(rest, 1e8); lo&(unit-1) >= 1e8*interval {
			digits = 1e8*digits + (hi<<(64-point) | lo>>point)
			rest, interval, above = lo&(unit-1), 1e8*interval, 1e8*above
			place -= 8
		}
		if hi, lo := bits.Mul64(rest, 1e4); lo&(unit-1) >= 1e4*interval {
			digits = 1e4*digits + (hi<<(64-point) | lo>>point)
			rest, interval, above = lo&(unit-1), 1e4*interval, 1e4*above
			place -= 4
		}
	}
	for {
		rest *= 10
		interval *= 10
		above *= 10
		digits = digits*10 + rest>>point
		rest &= unit - 1
		place--
		if rest < interval {
			return nearest(digits, rest, interval, above, unit), place
		}
	}
}

// nearest decrements digits, which are rest below the upper bound, while that brings them
// nearer to the number, which is above below it, and not below the interval. A unit is what
// a decrement changes.
func nearest(digits, rest, interval, above, unit uint64) uint64 {
	for rest < above && interval-rest >= unit && (rest+unit < above || above-rest > rest+unit-above) {
		digits--
		rest += unit
	}
	return digits
}

// scale returns a*b / 2^64, rounded.
func scale(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi + lo>>63
}

// grisuFirst is the exponent of the first of grisuPowers, grisuStep the difference between
// those of two.
const (
	grisuFirst = -300
	grisuStep  = 8
)

// grisuExponent returns the binary exponent of a power of grisuPowers: that of its value,
// rounded down, less 63.
func grisuExponent(index int) int {
	return (grisuFirst+grisuStep*index)*1741647>>19 - 63
}

// grisuPower returns the first 64 bits of a power of ten, rounded: of 10^-300, 10^-292 …
// 10^324.
func grisuPower(index int) uint64 {
	return binary.BigEndian.Uint64([]byte(grisuPowers[8*index : 8*index+8]))
}

// grisuPowers are the powers of grisuPower, 8 bytes each.
const grisuPowers = "" +
	"\xab\x70\xfe\x17\xc7\x9a\xc6\xca\xff\x77\xb1\xfc\xbe\xbc\xdc\x4f\xbe\x56\x91\xef\x41\x6b\xd6\x0c" +
	"\x8d\xd0\x1f\xad\x90\x7f\xfc\x3c\xd3\x51\x5c\x28\x31\x55\x9a\x83\x9d\x71\xac\x8f\xad\xa6\xc9\xb5" +
	"\xea\x9c\x22\x77\x23\xee\x8b\xcb\xae\xcc\x49\x91\x40\x78\x53\x6d\x82\x3c\x12\x79\x5d\xb6\xce\x57" +
	"\xc2\x10\x94\x36\x4d\xfb\x56\x37\x90\x96\xea\x6f\x38\x48\x98\x4f\xd7\x74\x85\xcb\x25\x82\x3a\xc7" +
	"\xa0\x86\xcf\xcd\x97\xbf\x97\xf4\xef\x34\x0a\x98\x17\x2a\xac\xe5\xb2\x38\x67\xfb\x2a\x35\xb2\x8e" +
	"\x84\xc8\xd4\xdf\xd2\xc6\x3f\x3b\xc5\xdd\x44\x27\x1a\xd3\xcd\xba\x93\x6b\x9f\xce\xbb\x25\xc9\x96" +
	"\xdb\xac\x6c\x24\x7d\x62\xa5\x84\xa3\xab\x66\x58\x0d\x5f\xda\xf6\xf3\xe2\xf8\x93\xde\xc3\xf1\x26" +
	"\xb5\xb5\xad\xa8\xaa\xff\x80\xb8\x87\x62\x5f\x05\x6c\x7c\x4a\x8b\xc9\xbc\xff\x60\x34\xc1\x30\x53" +
	"\x96\x4e\x85\x8c\x91\xba\x26\x55\xdf\xf9\x77\x24\x70\x29\x7e\xbd\xa6\xdf\xbd\x9f\xb8\xe5\xb8\x8f" +
	"\xf8\xa9\x5f\xcf\x88\x74\x7d\x94\xb9\x44\x70\x93\x8f\xa8\x9b\xcf\x8a\x08\xf0\xf8\xbf\x0f\x15\x6b" +
	"\xcd\xb0\x25\x55\x65\x31\x31\xb6\x99\x3f\xe2\xc6\xd0\x7b\x7f\xac\xe4\x5c\x10\xc4\x2a\x2b\x3b\x06" +
	"\xaa\x24\x24\x99\x69\x73\x92\xd3\xfd\x87\xb5\xf2\x83\x00\xca\x0e\xbc\xe5\x08\x64\x92\x11\x1a\xeb" +
	"\x8c\xbc\xcc\x09\x6f\x50\x88\xcc\xd1\xb7\x17\x58\xe2\x19\x65\x2c\x9c\x40\x00\x00\x00\x00\x00\x00" +
	"\xe8\xd4\xa5\x10\x00\x00\x00\x00\xad\x78\xeb\xc5\xac\x62\x00\x00\x81\x3f\x39\x78\xf8\x94\x09\x84" +
	"\xc0\x97\xce\x7b\xc9\x07\x15\xb3\x8f\x7e\x32\xce\x7b\xea\x5c\x70\xd5\xd2\x38\xa4\xab\xe9\x80\x68" +
	"\x9f\x4f\x27\x26\x17\x9a\x22\x45\xed\x63\xa2\x31\xd4\xc4\xfb\x27\xb0\xde\x65\x38\x8c\xc8\xad\xa8" +
	"\x83\xc7\x08\x8e\x1a\xab\x65\xdb\xc4\x5d\x1d\xf9\x42\x71\x1d\x9a\x92\x4d\x69\x2c\xa6\x1b\xe7\x58" +
	"\xda\x01\xee\x64\x1a\x70\x8d\xea\xa2\x6d\xa3\x99\x9a\xef\x77\x4a\xf2\x09\x78\x7b\xb4\x7d\x6b\x85" +
	"\xb4\x54\xe4\xa1\x79\xdd\x18\x77\x86\x5b\x86\x92\x5b\x9b\xc5\xc2\xc8\x35\x53\xc5\xc8\x96\x5d\x3d" +
	"\x95\x2a\xb4\x5c\xfa\x97\xa0\xb3\xde\x46\x9f\xbd\x99\xa0\x5f\xe3\xa5\x9b\xc2\x34\xdb\x39\x8c\x25" +
	"\xf6\xc6\x9a\x72\xa3\x98\x9f\x5c\xb7\xdc\xbf\x53\x54\xe9\xbe\xce\x88\xfc\xf3\x17\xf2\x22\x41\xe2" +
	"\xcc\x20\xce\x9b\xd3\x5c\x78\xa5\x98\x16\x5a\xf3\x7b\x21\x53\xdf\xe2\xa0\xb5\xdc\x97\x1f\x30\x3a" +
	"\xa8\xd9\xd1\x53\x5c\xe3\xb3\x96\xfb\x9b\x7c\xd9\xa4\xa7\x44\x3c\xbb\x76\x4c\x4c\xa7\xa4\x44\x10" +
	"\x8b\xab\x8e\xef\xb6\x40\x9c\x1a\xd0\x1f\xef\x10\xa6\x57\x84\x2c\x9b\x10\xa4\xe5\xe9\x91\x31\x29" +
	"\xe7\x10\x9b\xfb\xa1\x9c\x0c\x9d\xac\x28\x20\xd9\x62\x3b\xf4\x29\x80\x44\x4b\x5e\x7a\xa7\xcf\x85" +
	"\xbf\x21\xe4\x40\x03\xac\xdd\x2d\x8e\x67\x9c\x2f\x5e\x44\xff\x8f\xd4\x33\x17\x9d\x9c\x8c\xb8\x41" +
	"\x9e\x19\xdb\x92\xb4\xe3\x1b\xa9"
