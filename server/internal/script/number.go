package script

import (
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// parseNumber parses a number as Lua does, with C's strtod: decimal, hexadecimal,
// "inf" and "nan", spaces around it, up to a NUL. gopher-lua's own parser reads "010"
// as 8.
func parseNumber(s string) (float64, bool) {
	s = strings.Trim(cString(s), " \t\n\v\f\r")
	digits := strings.TrimPrefix(s, "-")
	if digits == s {
		digits = strings.TrimPrefix(s, "+")
	}
	if digits == "" || strings.ContainsRune(digits, '_') || digits[0] == '+' || digits[0] == '-' {
		return 0, false
	}
	if len(digits) > 1 && digits[0] == '0' && digits[1]|32 == 'x' {
		if strings.ContainsAny(digits, "pP") {
			f, err := strconv.ParseFloat(s, 64)
			return f, err == nil || isRange(err)
		}
		f, err := strconv.ParseFloat(s+"p0", 64)
		return f, err == nil || isRange(err)
	}
	switch lower := strings.ToLower(digits); {
	case lower == "inf" || lower == "infinity":
		if s[0] == '-' {
			return math.Inf(-1), true
		}
		return math.Inf(1), true
	case lower == "nan" || strings.HasPrefix(lower, "nan(") && strings.HasSuffix(lower, ")"):
		if s[0] == '-' {
			return negativeNaN(), true
		}
		return math.NaN(), true
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil || isRange(err)
}

func isRange(err error) bool {
	e, ok := err.(*strconv.NumError)
	return ok && e.Err == strconv.ErrRange
}

func negativeNaN() float64 { return math.Float64frombits(math.Float64bits(math.NaN()) | 1<<63) }

// AppendNumber appends f as Lua writes numbers: %.14g.
func AppendNumber(dst []byte, f float64) []byte {
	if f == math.Trunc(f) && math.Abs(f) < 1e14 && (f != 0 || !math.Signbit(f)) {
		return strconv.AppendInt(dst, int64(f), 10)
	}
	return appendG(dst, f, 14)
}

// appendG is C's %.<precision>g.
func appendG(dst []byte, f float64, precision int) []byte {
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

func numberString(f float64) string {
	var b [32]byte
	return string(AppendNumber(b[:0], f))
}

// ToString returns a string or a number as a string.
func ToString(v lua.LValue) (string, bool) {
	switch v := v.(type) {
	case lua.LString:
		return string(v), true
	case lua.LNumber:
		return numberString(float64(v)), true
	}
	return "", false
}

// ToNumber returns a number, or the number that a string contains.
func ToNumber(v lua.LValue) (float64, bool) {
	switch v := v.(type) {
	case lua.LNumber:
		return float64(v), true
	case lua.LString:
		return parseNumber(string(v))
	}
	return 0, false
}

// toInt converts as C does on amd64: a value out of range becomes the smallest
// integer.
func toInt(f float64) int64 {
	if f >= -(1<<63) && f < 1<<63 {
		return int64(f)
	}
	return math.MinInt64
}

// toInt32 converts to C's int through a long.
func toInt32(f float64) int { return int(int32(toInt(f))) }

// toUint converts to an unsigned integer as C does on amd64.
func toUint(f float64) uint64 {
	if f >= 1<<63 {
		return uint64(toInt(f-1<<63)) ^ 1<<63
	}
	return uint64(toInt(f))
}
