package score

import (
	"bytes"
	"errors"
	"math"
	"strconv"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/zset"
)

// Hints that are appended to an error of Redis if the argument resembles a time or
// a ticket. The error for any other argument is Redis's, byte for byte.
const (
	TimeForms    = ": times are @now and @nowms, perhaps with + or - and a duration, as in @now+1h30m or @nowms-500ms"
	AbsoluteOnly = ": a duration is a number; EXPIREAT, EXAT and the like take times such as @now+1h"
	NoIncrement  = ": an increment is a number, not a time or a ticket"
	noTicket     = ": * is a ticket, which only ZADDEX draws"
)

// Ticket is the score that stands for the next free number; a member that has one
// keeps it.
const Ticket = "*"

const errNotRange = "ERR min or max is not a float"

// NotFloat returns the error for an invalid score.
func NotFloat(b []byte) string {
	switch {
	case len(b) > 0 && b[0] == '@':
		return protocol.ErrNotFloat + TimeForms
	case string(b) == Ticket:
		return protocol.ErrNotFloat + noTicket
	}
	return protocol.ErrNotFloat
}

// NotIncrement returns the error for an invalid increment.
func NotIncrement(b []byte) string {
	if len(b) > 0 && b[0] == '@' || string(b) == Ticket {
		return protocol.ErrNotFloat + NoIncrement
	}
	return protocol.ErrNotFloat
}

// NotRange returns the error for two bounds, at least one of which is invalid.
func NotRange(lo, hi []byte) string {
	for _, b := range [][]byte{lo, hi} {
		if _, _, ok := parseBound(b); !ok && bytes.HasPrefix(bytes.TrimPrefix(b, []byte("(")), []byte("@")) {
			return errNotRange + TimeForms
		}
	}
	return errNotRange
}

// Score is a score that is a number or depends on the clock.
type Score struct {
	Base   Base
	Number float64 // if there is no base
	Offset int64   // otherwise: microseconds that are added to the clock
}

// Base is what a score is relative to.
type Base uint8

// The bases.
const (
	None    Base = iota // the score is a number
	Seconds             // the clock, in seconds since 1970
	Millis              // the clock, in milliseconds since 1970, rounded down
)

// Moves reports whether the score depends on the clock.
func (x Score) Moves() bool { return x.Base != None }

// At returns the score at an instant, in microseconds since 1970.
func (x Score) At(now int64) float64 {
	switch x.Base {
	case Seconds:
		return float64(now+x.Offset) / 1e6
	case Millis:
		return math.Floor(float64(now+x.Offset) / 1e3)
	}
	return x.Number
}

// MaxInstant is the limit of instants, ±MaxInstant microseconds. A float64
// represents every one of them exactly.
const MaxInstant = 1 << 53

// Reaches returns the first instant after now, in microseconds since 1970, at which x is
// at least score, or above it if beyond; MaxInstant if there is none.
func (x Score) Reaches(score float64, beyond bool, now int64) int64 {
	unit := 1e6
	if x.Base == Millis {
		unit = 1e3
	}
	if x.Base == None || score*unit >= MaxInstant {
		return MaxInstant
	}
	enough := func(t int64) bool { return x.At(t) > score || !beyond && x.At(t) == score }
	t := max(now+1, int64(score*unit)-x.Offset-2) // rounding moves it by less
	for !enough(t) {
		t++
		if x.Base == Millis && beyond { // by whole milliseconds
			t = max(t, int64(score+1)*1000-x.Offset)
		}
	}
	return t
}

// ParseTime parses a time relative to the clock; ok is false for any other argument.
func ParseTime(b []byte) (x Score, ok bool) {
	const word = "@NOW"
	if len(b) < len(word) || !protocol.EqualFold(b[:len(word)], word) {
		return x, false
	}
	x.Base, b = Seconds, b[len(word):]
	if len(b) >= 2 && protocol.EqualFold(b[:2], "MS") {
		x.Base, b = Millis, b[2:]
	}
	if len(b) == 0 {
		return x, true
	}
	sign := int64(1)
	switch b[0] {
	case '-':
		sign = -1
	case '+':
	default:
		return x, false
	}
	unit := int64(1e6)
	if x.Base == Millis {
		unit = 1e3
	}
	d, ok := parseDuration(b[1:], unit)
	x.Offset = sign * d
	return x, ok
}

// parseDuration parses a duration and returns microseconds; bare is the unit of a
// bare number.
func parseDuration(b []byte, bare int64) (sum int64, ok bool) {
	for first := true; first || len(b) > 0; first = false {
		n := 0
		for n < len(b) && (b[n] == '.' || '0' <= b[n] && b[n] <= '9') {
			n++
		}
		number, err := strconv.ParseFloat(protocol.View(b[:n]), 64)
		if err != nil {
			return 0, false
		}
		unit, letters := bare, 0
		if b = b[n:]; len(b) > 0 || !first {
			if unit, letters = durationUnit(b); letters == 0 {
				return 0, false
			}
		}
		b = b[letters:]
		d := math.Round(number * float64(unit))
		if d > MaxInstant-float64(sum) {
			return 0, false
		}
		sum += int64(d)
	}
	return sum, true
}

// durationUnit parses a unit of time. It returns its microseconds and its number of
// letters.
func durationUnit(b []byte) (unit int64, letters int) {
	const second = int64(1e6)
	switch {
	case len(b) >= 2 && b[0] == 'm' && b[1] == 's':
		return second / 1000, 2
	case len(b) == 0:
		return 0, 0
	case b[0] == 's':
		return second, 1
	case b[0] == 'm':
		return 60 * second, 1
	case b[0] == 'h':
		return 3600 * second, 1
	case b[0] == 'd':
		return 24 * 3600 * second, 1
	}
	return 0, 0
}

// Range is a range of scores whose bounds may depend on the clock.
type Range struct {
	Min, Max                   Score
	MinExclusive, MaxExclusive bool
}

// At returns the range at an instant.
func (r *Range) At(now int64) zset.ScoreRange {
	return zset.ScoreRange{
		Min: r.Min.At(now), MinExclusive: r.MinExclusive,
		Max: r.Max.At(now), MaxExclusive: r.MaxExclusive,
	}
}

// ParseRange parses two bounds: scores, exclusive after a parenthesis.
func ParseRange(lo, hi []byte) (r Range, ok bool) {
	var ok2 bool
	r.Min, r.MinExclusive, ok = parseBound(lo)
	r.Max, r.MaxExclusive, ok2 = parseBound(hi)
	return r, ok && ok2
}

// parseBound parses a bound. As in Redis it accepts
// more than a score to be stored: everything that C's strtod accepts, up to the
// first NUL. So an empty string is 0, leading spaces are allowed, and a number out
// of range is infinite or zero.
func parseBound(b []byte) (x Score, exclusive, ok bool) {
	if len(b) > 0 && b[0] == '(' {
		b, exclusive = b[1:], true
	}
	if Hexadecimal(b) { // other than scores, bounds are decimal
		return x, exclusive, false
	}
	if x.Number, ok = protocol.ParseFloat(b); ok {
		return x, exclusive, true
	}
	if x, ok = ParseTime(b); ok {
		return x, exclusive, true
	}
	x = Score{}
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	if len(b) == 0 {
		return x, exclusive, true
	}
	if x.Number, ok = protocol.ParseFloat(b); ok {
		return x, exclusive, true
	}
	if bytes.IndexByte(b, '_') >= 0 {
		return x, false, false
	}
	var err error
	x.Number, err = strconv.ParseFloat(protocol.View(b), 64)
	return x, exclusive, !math.IsNaN(x.Number) && (err == nil || errors.Is(err, strconv.ErrRange))
}

// Hexadecimal reports whether b begins as a hexadecimal number, perhaps with a sign.
func Hexadecimal(b []byte) bool {
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		b = b[1:]
	}
	return len(b) > 1 && b[0] == '0' && b[1]|0x20 == 'x'
}
