package server

import (
	"bytes"
	"math"
	"math/big"
	"strings"

	"github.com/zsetd/zsetd/protocol"
)

// INCRBYFLOAT and HINCRBYFLOAT compute with C's long double, which on Redis's
// usual platforms is the 80-bit format: 64 bits of mantissa, 15 of exponent. A
// big.Float of 64 bits does the same sums.

// maxExponent is the exponent, as big.Float counts it, of the largest long
// double.
const maxExponent, minExponent = 16384, -16445

// parseLongDouble reads a number as strtold does for Redis: all of b, no
// spaces, no NaN, nothing that overflows or vanishes.
func parseLongDouble(b []byte) (*big.Float, bool) {
	f, ok := protocol.ParseFloat(b)
	switch {
	case !ok && !maybeLong(b):
		return nil, false
	case math.IsInf(f, 0):
		return new(big.Float).SetInf(f < 0), true
	}
	text, base := string(b), 10
	if i := bytes.IndexAny(b, "xX"); i >= 0 {
		base = 0
	}
	x, _, err := big.ParseFloat(text, base, 64, big.ToNearestEven)
	if err != nil || !x.IsInf() && x.Sign() != 0 && (x.MantExp(nil) > maxExponent || x.MantExp(nil) < minExponent) {
		return nil, false
	}
	return x, true
}

// maybeLong reports whether b could be a decimal number that is too large or
// small for 64 bits.
func maybeLong(b []byte) bool {
	digits := false
	for _, c := range b {
		switch {
		case '0' <= c && c <= '9':
			digits = true
		case c != '+' && c != '-' && c != '.' && c != 'e' && c != 'E':
			return false
		}
	}
	return digits && len(b) < 5000
}

// addLongDouble returns x+y, or false if that is no finite number.
func addLongDouble(x, y *big.Float) (*big.Float, bool) {
	if x.IsInf() || y.IsInf() {
		return nil, false
	}
	sum := new(big.Float).SetPrec(64).Add(x, y)
	if sum.Sign() != 0 && sum.MantExp(nil) > maxExponent {
		return nil, false
	}
	return sum, true
}

// formatLongDouble writes x for people: 17 decimals, without the zeros at the
// end.
func formatLongDouble(x *big.Float) []byte {
	s := x.Text('f', 17)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	if s == "-0" {
		s = "0"
	}
	return []byte(s)
}
