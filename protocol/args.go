package protocol

import (
	"math"
	"strconv"
	"unsafe"
)

// Args is a cursor over the arguments of one command, without its name. Its methods
// read the next argument and latch the first error, in Redis's words; after an
// error every method returns a zero value. So a command reads all its arguments,
// checks [Args.Err] once, and only then accesses data.
//
// The arguments are slices of the transport's buffer and valid during the call
// only.
type Args struct {
	argv [][]byte
	pos  int
	err  string
}

// NewArgs returns a cursor over argv, which excludes the command's name.
func NewArgs(argv [][]byte) Args { return Args{argv: argv} }

// Errors of arguments, identical to those of Redis.
const (
	ErrSyntax     = "ERR syntax error"
	ErrNotInteger = "ERR value is not an integer or out of range"
	ErrNotFloat   = "ERR value is not a valid float"
)

// Err returns the first error, or "".
func (a *Args) Err() string { return a.err }

// Fail sets the error to msg, a complete error line ("ERR …"), unless there is an
// earlier error.
func (a *Args) Fail(msg string) {
	if a.err == "" {
		a.err = msg
	}
}

// Len returns the number of remaining arguments.
func (a *Args) Len() int { return len(a.argv) - a.pos }

// More reports whether arguments remain and there is no error. It is the condition
// of loops over options.
func (a *Args) More() bool { return a.err == "" && a.pos < len(a.argv) }

// Rest returns the remaining arguments and moves the cursor to the end.
func (a *Args) Rest() [][]byte {
	r := a.argv[a.pos:]
	a.pos = len(a.argv)
	return r
}

// Peek returns the argument i positions after the cursor, or nil, and does not move
// the cursor.
func (a *Args) Peek(i int) []byte {
	if a.pos+i >= len(a.argv) {
		return nil
	}
	return a.argv[a.pos+i]
}

// All returns all arguments.
func (a *Args) All() [][]byte { return a.argv }

// Pos returns the index of the next argument in [Args.All].
func (a *Args) Pos() int { return a.pos }

// Bytes returns the next argument, valid during the call. A missing argument is a
// syntax error.
func (a *Args) Bytes() []byte {
	if a.err != "" {
		return nil
	}
	if a.pos >= len(a.argv) {
		a.Fail(ErrSyntax)
		return nil
	}
	b := a.argv[a.pos]
	a.pos++
	return b
}

// String returns a copy of the next argument.
func (a *Args) String() string { return string(a.Bytes()) }

// NextN returns the next n arguments, valid during the call. If fewer remain, it is
// a syntax error.
func (a *Args) NextN(n int) [][]byte {
	if a.err != "" {
		return nil
	}
	if n < 0 || n > a.Len() {
		a.Fail(ErrSyntax)
		return nil
	}
	t := a.argv[a.pos : a.pos+n]
	a.pos += n
	return t
}

// Skip moves the cursor by n arguments, at most to the end.
func (a *Args) Skip(n int) { a.pos = min(a.pos+n, len(a.argv)) }

// Is compares the next argument with word, in upper case, and ignores the case of
// ASCII letters. On a match it moves the cursor and returns true.
func (a *Args) Is(word string) bool {
	if a.err == "" && a.pos < len(a.argv) && EqualFold(a.argv[a.pos], word) {
		a.pos++
		return true
	}
	return false
}

// Int returns the next argument as a 64-bit integer. It is as strict as Redis: no
// spaces, no plus sign, no leading zeros.
func (a *Args) Int() int64 { return a.IntOr(ErrNotInteger) }

// IntOr is Int with msg as error.
func (a *Args) IntOr(msg string) int64 {
	b := a.Bytes()
	if a.err != "" {
		return 0
	}
	n, ok := ParseInt(b)
	if !ok {
		a.Fail(msg)
	}
	return n
}

// IntIn is Int for values from lo to hi. Outside of the range the error is msg, and
// so it is for an argument that is not an integer unless msg is "".
func (a *Args) IntIn(lo, hi int64, msg string) int64 {
	b := a.Bytes()
	if a.err != "" {
		return 0
	}
	if msg == "" {
		msg = ErrNotInteger
	}
	n, ok := ParseInt(b)
	if !ok || n < lo || n > hi {
		a.Fail(msg)
		return 0
	}
	return n
}

// Float returns the next argument as a float64: decimal, hexadecimal, or inf or
// infinity with an optional sign, but not NaN.
func (a *Args) Float() float64 { return a.FloatOr(ErrNotFloat) }

// FloatOr is Float with msg as error.
func (a *Args) FloatOr(msg string) float64 {
	b := a.Bytes()
	if a.err != "" {
		return 0
	}
	f, ok := ParseFloat(b)
	if !ok {
		a.Fail(msg)
	}
	return f
}

// EqualFold reports whether b equals word, in upper case, regardless of the case of
// ASCII letters.
func EqualFold(b []byte, word string) bool {
	if len(b) != len(word) {
		return false
	}
	for i, c := range b {
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		if c != word[i] {
			return false
		}
	}
	return true
}

// ParseInt parses a decimal 64-bit integer as Redis's string2ll does: an optional
// minus sign, no leading zeros, nothing else.
func ParseInt(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > 20 {
		return 0, false
	}
	neg := b[0] == '-'
	d := b
	if neg {
		d = b[1:]
	}
	if len(d) == 0 {
		return 0, false
	}
	if d[0] == '0' {
		return 0, len(b) == 1 // "0" alone: "-0" and "01" are strings
	}
	var n uint64
	if len(d) < 19 { // too few digits for an overflow
		for _, c := range d {
			c -= '0'
			if c > 9 {
				return 0, false
			}
			n = n*10 + uint64(c)
		}
		if neg {
			return -int64(n), true
		}
		return int64(n), true
	}
	for _, c := range d {
		c -= '0'
		if c > 9 {
			return 0, false
		}
		if n > (math.MaxUint64-uint64(c))/10 {
			return 0, false
		}
		n = n*10 + uint64(c)
	}
	if neg {
		if n > 1<<63 {
			return 0, false
		}
		return -int64(n), true
	}
	if n > math.MaxInt64 {
		return 0, false
	}
	return int64(n), true
}

// ParseFloat parses a float64 as strtod does in Redis: all of b, no leading space.
// NaN and values that overflow or underflow are rejected.
func ParseFloat(b []byte) (float64, bool) {
	// Fast path for scores, which mostly have few digits: integers are exact in
	// this loop, and decimals are the correctly rounded quotient of two exact
	// numbers.
	if n := len(b); n > 0 && n <= 16 {
		i := 0
		if b[0] == '-' && n > 1 && b[1] != '0' {
			i = 1
		}
		var u int64
		digits, point := i, 0
		for ; i < n; i++ {
			c := b[i] - '0'
			if c > 9 {
				if b[i] != '.' || point != 0 || i == digits || i == n-1 {
					break
				}
				point = i + 1
				continue
			}
			u = u*10 + int64(c)
		}
		if i == n && (n < 16 || u < 1<<53) {
			if b[0] == '-' {
				u = -u
			}
			if point != 0 {
				return float64(u) / float64(powerOfTen(n-point)), true
			}
			return float64(u), true
		}
	}
	switch string(b) {
	case "":
		return 0, false
	case "-inf":
		return math.Inf(-1), true
	case "+inf":
		return math.Inf(1), true
	}
	for _, c := range b {
		if c == '_' { // digit separator of Go, unknown to C
			return 0, false
		}
	}
	f, err := strconv.ParseFloat(View(b), 64)
	if err != nil {
		// C accepts a hexadecimal number without an exponent, Go does not.
		if len(b) > 2 && (b[1] == 'x' || b[1] == 'X' || (len(b) > 3 && (b[2] == 'x' || b[2] == 'X'))) {
			f, err = strconv.ParseFloat(string(b)+"p0", 64)
		}
		if err != nil {
			return 0, false
		}
	}
	if math.IsNaN(f) || f == 0 && underflowed(b) {
		return 0, false
	}
	return f, true
}

// underflowed reports whether b, whose value is zero, has a nonzero digit. strtod
// reports that as out of range, and Redis rejects it.
func underflowed(b []byte) bool {
	for _, c := range b {
		switch {
		case c == 'e' || c == 'E' || c == 'p' || c == 'P':
			return false
		case '1' <= c && c <= '9':
			return true
		}
	}
	return false
}

// View returns b as a string without copying. The string is valid until b changes:
// use it for lookups, and never retain it.
func View(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// BytesOf returns the bytes of s without copying; they must not be written to. The
// result is never nil, since a nil argument means an absent one.
func BytesOf(s string) []byte {
	if s == "" {
		return []byte{}
	}
	return unsafe.Slice(unsafe.StringData(s), len(s))
}

// CopyArgs returns a copy of argv that shares no memory with it, in one allocation.
func CopyArgs(argv [][]byte) [][]byte {
	n := 0
	for _, a := range argv {
		n += len(a)
	}
	buf := make([]byte, 0, n)
	out := make([][]byte, len(argv))
	for i, a := range argv {
		buf = append(buf, a...)
		out[i] = buf[len(buf)-len(a) : len(buf) : len(buf)]
	}
	return out
}
