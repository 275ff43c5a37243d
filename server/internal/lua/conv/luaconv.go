package conv

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// ParseNumber parses a number as Lua does, with C's strtod: decimal, hexadecimal,
// "inf" and "nan", spaces around it, up to a NUL. "010" is 10.
func ParseNumber(s string) (float64, bool) {
	s = strings.Trim(CString(s), " \t\n\v\f\r")
	digits := strings.TrimPrefix(s, "-")
	if digits == s {
		digits = strings.TrimPrefix(s, "+")
	}
	if digits == "" || digits[0] == '+' || digits[0] == '-' {
		return 0, false
	}
	if len(digits) > 1 && digits[0] == '0' && digits[1]|32 == 'x' && !strings.ContainsRune(digits, '_') {
		if strings.ContainsAny(digits, "pP") {
			f, err := strconv.ParseFloat(s, 64)
			return f, err == nil || errors.Is(err, strconv.ErrRange)
		}
		f, err := strconv.ParseFloat(s+"p0", 64)
		return f, err == nil || errors.Is(err, strconv.ErrRange)
	}
	switch lower := strings.ToLower(digits); {
	case lower == "inf" || lower == "infinity":
		if s[0] == '-' {
			return math.Inf(-1), true
		}
		return math.Inf(1), true
	case lower == "nan" || strings.HasPrefix(lower, "nan(") && strings.HasSuffix(lower, ")") && strings.Trim(lower[4:len(lower)-1], "_0123456789abcdefghijklmnopqrstuvwxyz") == "":
		if s[0] == '-' {
			return math.Copysign(NaN(), -1), true
		}
		return NaN(), true
	case strings.ContainsRune(digits, '_'): // which Go takes for a separator
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil || errors.Is(err, strconv.ErrRange)
}

// NaN returns the value that is not a number of C on amd64, without a sign. Programs see its bits.
func NaN() float64 { return math.Float64frombits(0x7ff8 << 48) }

// AppendNumber appends f as Lua writes numbers: %.14g.
func AppendNumber(dst []byte, f float64) []byte {
	if f == math.Trunc(f) && math.Abs(f) < 1e14 && (f != 0 || !math.Signbit(f)) {
		return strconv.AppendInt(dst, int64(f), 10)
	}
	return AppendG(dst, f, 14)
}

// AppendG appends f as C's %.<precision>g does.
func AppendG(dst []byte, f float64, precision int) []byte {
	switch {
	case math.IsInf(f, 1):
		return append(dst, "inf"...)
	case math.IsInf(f, -1):
		return append(dst, "-inf"...)
	case f != f:
		if math.Signbit(f) {
			return append(dst, "-nan"...)
		}
		return append(dst, "nan"...)
	}
	return strconv.AppendFloat(dst, f, 'g', precision, 64)
}

// NumberString returns f as Lua writes numbers.
func NumberString(f float64) string {
	var b [32]byte
	return string(AppendNumber(b[:0], f))
}

// ToInt converts as C does on amd64: a value out of range becomes the smallest
// integer.
func ToInt(f float64) int64 {
	if f >= -(1<<63) && f < 1<<63 {
		return int64(f)
	}
	return math.MinInt64
}

// ToInt32 converts to C's int through a long.
func ToInt32(f float64) int { return int(int32(ToInt(f))) }

// ToUint converts to an unsigned integer as C does on amd64.
func ToUint(f float64) uint64 {
	if f >= 1<<63 {
		return uint64(ToInt(f-1<<63)) ^ 1<<63
	}
	return uint64(ToInt(f))
}

// CString returns s up to its first NUL, as C reads a string.
func CString(s string) string {
	before, _, _ := strings.Cut(s, "\x00")
	return before
}

// IsDigit reports whether c is a decimal digit in the locale of C.
func IsDigit(c int) bool { return '0' <= c && c <= '9' }

// IsAlpha reports whether c is a letter in the locale of C, or an underscore.
func IsAlpha(c int) bool { return 'a' <= c|32 && c|32 <= 'z' && c < 128 || c == '_' }
