package protocol

import "math/bits"

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
