package engine

import (
	"bytes"
	"errors"
	"math"
	"strconv"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/zset"
)

// Times as scores. Wherever a command takes a score, or a bound of scores, it also
// takes a time of the server's clock:
//
//	@now      seconds since 1970, with microseconds as the fraction
//	@nowms    milliseconds since 1970, whole
//	@now-24h  less or more a duration: ms, s, m, h, d, or several (1h30m); a
//	          bare number counts in the unit of the base
//
// The stored score is the number. All commands of a turn, and so of a pipeline that
// runs in one turn, see the same instant. Increments are not scores: ZINCRBY takes
// no time.
//
// Where a command takes a time since 1970 (EXPIREAT, SET with EXAT, RESTORE with
// ABSTTL, XCLAIM with TIME, and similar), these words denote that instant, to the
// millisecond, whether the command counts in seconds or milliseconds.

// Hints that are appended to an error of Redis if the argument resembles a time or
// a ticket. The error for any other argument is Redis's, byte for byte.
const (
	timeForms    = ": times are @now and @nowms, perhaps with + or - and a duration, as in @now+1h30m or @nowms-500ms"
	noTicket     = ": * is a ticket, which only ZADDEX draws"
	NoIncrement  = ": an increment is a number, not a time or a ticket"
	absoluteOnly = ": a duration is a number; EXPIREAT, EXAT and the like take times such as @now+1h"
)

// NotFloat returns the error for an invalid score.
func NotFloat(b []byte) string {
	switch {
	case len(b) > 0 && b[0] == '@':
		return protocol.ErrNotFloat + timeForms
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
		if _, _, ok := scoreBound(b); !ok && bytes.HasPrefix(bytes.TrimPrefix(b, []byte("(")), []byte("@")) {
			return errNotRange + timeForms
		}
	}
	return errNotRange
}

// A ScoreAt is a score that is a number or depends on the clock.
type ScoreAt struct {
	Base   clockBase
	Number float64 // if there is no base
	Offset int64   // otherwise: microseconds that are added to the clock
}

type clockBase uint8

// ClockSeconds is a unit of scores that are times.
const (
	noClock clockBase = iota
	ClockSeconds
	ClockMillis
)

// at returns the score at an instant, in microseconds since 1970.
func (x ScoreAt) at(now int64) float64 {
	switch x.Base {
	case ClockSeconds:
		return float64(now+x.Offset) / 1e6
	case ClockMillis:
		return math.Floor(float64(now+x.Offset) / 1e3)
	}
	return x.Number
}

// MaxInstant is the limit of instants, ±MaxInstant microseconds. A float64
// represents every one of them exactly.
const MaxInstant = 1 << 53

// Reaches returns the first instant after now at which x is at least score, or
// above it if beyond; MaxInstant if there is none.
func (x ScoreAt) Reaches(score float64, beyond bool, now int64) int64 {
	unit := 1e6
	if x.Base == ClockMillis {
		unit = 1e3
	}
	if x.Base == noClock || score*unit >= MaxInstant {
		return MaxInstant
	}
	enough := func(t int64) bool { return x.at(t) > score || !beyond && x.at(t) == score }
	t := max(now+1, int64(score*unit)-x.Offset-2) // rounding moves it by less
	for !enough(t) {
		t++
		if x.Base == ClockMillis && beyond { // by whole milliseconds
			t = max(t, int64(score+1)*1000-x.Offset)
		}
	}
	return t
}

// parseNow parses a time relative to the clock.
func parseNow(b []byte) (x ScoreAt, ok bool) {
	const word = "@NOW"
	if len(b) < len(word) || !protocol.EqualFold(b[:len(word)], word) {
		return x, false
	}
	x.Base, b = ClockSeconds, b[len(word):]
	if len(b) >= 2 && protocol.EqualFold(b[:2], "MS") {
		x.Base, b = ClockMillis, b[2:]
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
	if x.Base == ClockMillis {
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

// ReadTime parses a time of the given unit: a number or, if the unit is absolute, a
// time of the server's clock. It returns the unit of the result: that of the
// command, or milliseconds since 1970. bad is the error for any other argument.
func (c *Call) ReadTime(b []byte, unit TimeUnit, bad string) (n int64, of TimeUnit) {
	if c.Err() != "" {
		return 0, unit
	}
	if n, ok := protocol.ParseInt(b); ok {
		return n, unit
	}
	if len(b) == 0 || b[0] != '@' {
		c.Fail(bad)
		return 0, unit
	}
	if unit&Absolute == 0 {
		c.Fail(bad + absoluteOnly)
		return 0, unit
	}
	x, ok := parseNow(b)
	if !ok {
		c.Fail(bad + timeForms)
		return 0, unit
	}
	us := c.Engine.Instant + x.Offset
	if n = us / 1000; us < 0 && us%1000 != 0 {
		n-- // the millisecond that contains us
	}
	return n, Absolute
}

// Score parses a score to store or to compare with.
func (c *Call) Score(b []byte) (float64, bool) {
	if score, ok := protocol.ParseFloat(b); ok {
		return score, true
	}
	x, ok := parseNow(b)
	return x.at(c.Engine.Instant), ok
}

// Numbers parses the first of each of pairs with number into list, which is empty.
// It fails with the error that not returns for an invalid one.
func (c *Call) Numbers(list []float64, pairs [][]byte, number func([]byte) (float64, bool), not func([]byte) string) []float64 {
	for i := 0; i < len(pairs) && c.Err() == ""; i += 2 {
		x, ok := number(pairs[i])
		if !ok {
			c.Fail(not(pairs[i]))
		}
		list = append(list, x)
	}
	return list
}

// A RangeAt is a range of scores whose bounds may depend on the clock.
type RangeAt struct {
	Min, Max                   ScoreAt
	minExclusive, MaxExclusive bool
}

// At returns the range at an instant.
func (r *RangeAt) At(now int64) zset.ScoreRange {
	return zset.ScoreRange{
		Min: r.Min.at(now), MinExclusive: r.minExclusive,
		Max: r.Max.at(now), MaxExclusive: r.MaxExclusive,
	}
}

// ParseRange parses two bounds.
func ParseRange(lo, hi []byte) (r RangeAt, ok bool) {
	var ok2 bool
	r.Min, r.minExclusive, ok = scoreBound(lo)
	r.Max, r.MaxExclusive, ok2 = scoreBound(hi)
	return r, ok && ok2
}

// scoreBound parses a score, exclusive after a parenthesis. As in Redis it accepts
// more than a score to be stored: everything that C's strtod accepts, up to the
// first NUL. So an empty string is 0, leading spaces are allowed, and a number out
// of range is infinite or zero.
func scoreBound(b []byte) (x ScoreAt, exclusive, ok bool) {
	if len(b) > 0 && b[0] == '(' {
		b, exclusive = b[1:], true
	}
	if x.Number, ok = protocol.ParseFloat(b); ok {
		return x, exclusive, true
	}
	if x, ok = parseNow(b); ok {
		return x, exclusive, true
	}
	x = ScoreAt{}
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	if len(b) == 0 {
		return x, exclusive, true
	}
	b = bytes.TrimLeft(b, " \t\n\v\f\r")
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

// Ticket is the score that stands for the next free number; a member that has one
// keeps it.
const Ticket = "*"

const errNotRange = "ERR min or max is not a float"
