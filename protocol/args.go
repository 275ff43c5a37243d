package protocol

import (
	"math"
	"strconv"
	"unsafe"
)

// Args is a cursor over the arguments of one command, the name left out. Its
// reading methods move on by one argument and keep the first error in Redis's
// own words; after an error every further read returns a zero value. So a
// command reads all its arguments, then asks [Args.Err] once, and only then
// touches data.
//
// The arguments are borrowed from the transport's buffer: what is kept beyond
// the call must be copied.
type Args struct {
	argv [][]byte
	at   int
	err  string
}

// NewArgs returns a cursor over argv, which does not contain the command name.
func NewArgs(argv [][]byte) Args { return Args{argv: argv} }

// Errors that arguments give, byte for byte Redis's.
const (
	ErrSyntax     = "ERR syntax error"
	ErrNotInteger = "ERR value is not an integer or out of range"
	ErrNotFloat   = "ERR value is not a valid float"
)

// Err returns the first error, or "".
func (a *Args) Err() string { return a.err }

// Fail records msg, the whole error line ("ERR …"), unless there is an
// earlier error.
func (a *Args) Fail(msg string) {
	if a.err == "" {
		a.err = msg
	}
}

// Len returns how many arguments are left.
func (a *Args) Len() int { return len(a.argv) - a.at }

// More reports whether arguments are left and no error has been met. It is
// the condition of loops over options.
func (a *Args) More() bool { return a.err == "" && a.at < len(a.argv) }

// Rest returns the arguments that are left and moves behind them.
func (a *Args) Rest() [][]byte {
	r := a.argv[a.at:]
	a.at = len(a.argv)
	return r
}

// Peek returns the argument that is i places ahead without moving, or nil.
func (a *Args) Peek(i int) []byte {
	if a.at+i >= len(a.argv) {
		return nil
	}
	return a.argv[a.at+i]
}

// All returns every argument, read or not.
func (a *Args) All() [][]byte { return a.argv }

// Pos returns the index of the next argument, as [Args.All] counts.
func (a *Args) Pos() int { return a.at }

// Bytes returns the next argument, borrowed. A missing one is a syntax error.
func (a *Args) Bytes() []byte {
	if a.err != "" {
		return nil
	}
	if a.at >= len(a.argv) {
		a.Fail(ErrSyntax)
		return nil
	}
	b := a.argv[a.at]
	a.at++
	return b
}

// String returns a copy of the next argument.
func (a *Args) String() string { return string(a.Bytes()) }

// Take returns the next n arguments, borrowed. Too few is a syntax error.
func (a *Args) Take(n int) [][]byte {
	if a.err != "" {
		return nil
	}
	if n < 0 || n > a.Len() {
		a.Fail(ErrSyntax)
		return nil
	}
	t := a.argv[a.at : a.at+n]
	a.at += n
	return t
}

// Skip moves on by n arguments, at most to the end.
func (a *Args) Skip(n int) { a.at = min(a.at+n, len(a.argv)) }

// Is moves past the next argument and returns true if that is word, which is
// given in upper case, in any case of letters.
func (a *Args) Is(word string) bool {
	if a.err == "" && a.at < len(a.argv) && EqualFold(a.argv[a.at], word) {
		a.at++
		return true
	}
	return false
}

// Int returns the next argument as a 64-bit integer, read as strictly as
// Redis reads it: no spaces, no plus sign, no leading zeros.
func (a *Args) Int() int64 { return a.IntOr(ErrNotInteger) }

// IntOr is Int with another error line.
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

// IntIn is Int within lo and hi, both allowed; outside them the error is msg,
// as it is for what is no integer when msg is not "".
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

// Float returns the next argument as a float64: decimal, hexadecimal, inf or
// infinity with a sign, but not NaN.
func (a *Args) Float() float64 { return a.FloatOr(ErrNotFloat) }

// FloatOr is Float with another error line.
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

// EqualFold reports whether b is word, which is in upper case, in any case of
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

// ParseInt reads a decimal 64-bit integer as Redis's string2ll does: an
// optional minus, no leading zeros, nothing else.
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
	if len(d) < 19 { // too few digits to overflow
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

// ParseFloat reads a float64 as C's strtod does for Redis: the whole of b, no
// leading space, NaN and what overflows refused.
func ParseFloat(b []byte) (float64, bool) {
	// Scores are mostly numbers of few digits: whole ones are exact in this loop, and
	// decimals are the quotient of two numbers that are, so rounded once.
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
	if len(b) == 0 {
		return 0, false
	}
	for _, c := range b {
		if c == '_' { // Go's digit separator, which C does not know
			return 0, false
		}
	}
	f, err := strconv.ParseFloat(View(b), 64)
	if err != nil {
		// A hexadecimal number without exponent is C's, not Go's.
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

// underflowed reports whether b, which was read as zero, is not written as
// zero. C's strtod calls that out of range, and so does Redis.
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

// View returns b as a string without copying it. The string is good only as
// long as nobody writes to b: use it to look things up, never to keep them.
func View(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
