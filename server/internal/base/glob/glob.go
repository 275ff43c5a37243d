package glob

import (
	"bytes"
	"math"
)

// Match reports whether s matches a glob pattern of Redis: * and ?, [abc], [a-z],
// [^a], and \ before a literal character. With nocase, ASCII letters match in
// either case.
//
// Redis tries every split of s between several stars, which takes exponential time.
// Here only the last star is ever moved: an earlier star whose following text has
// matched at its first occurrence need not be moved. So the time is O(len(pattern)
// × len(s)) at worst, and no limit such as Redis's 1000 stars is needed. For long
// patterns glob takes over, which needs a 64th: 32 KB of a behind a star, followed
// by b, against 64 KB of a take it 20 ms, and Redis 13 s.
//
// Only the empty pattern matches the empty string; a star does not.
func Match(pattern, s []byte, nocase bool) bool {
	if len(s) == 0 {
		return len(pattern) == 0
	}
	if len(pattern) > longGlob {
		return CompileGlob(pattern, nocase).Match(s)
	}
	p, i := 0, 0
	star, from := -1, 0 // the last star, and the end of the text that it covers
	work := 0
	for i < len(s) {
		if p < len(pattern) {
			if pattern[p] == '*' {
				star, from = p, i
				p++
				continue
			}
			if next, ok := matchOne(pattern, p, s[i], nocase); ok {
				p = next
				i++
				continue
			}
		}
		if star < 0 {
			return false
		}
		if work += p - star; work > globSteps {
			return CompileGlob(pattern, nocase).Match(s)
		}
		from++
		p, i = star+1, from
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// Pattern is a pattern that is matched with many strings.
type Pattern struct {
	Text   []byte // nil: everything matches
	nocase bool
	glob   *glob // if it is long
}

// Compile prepares a pattern for many matches.
func Compile(text []byte, nocase bool) Pattern {
	if text == nil {
		text = []byte{}
	}
	p := Pattern{Text: text, nocase: nocase}
	if len(text) > longGlob {
		p.glob = CompileGlob(text, nocase)
	}
	return p
}

// Match reports whether s matches a pattern.
func (p *Pattern) Match(s []byte) bool {
	switch {
	case p.Text == nil:
		return true
	case p.glob != nil && len(s) > 0:
		return p.glob.Match(s)
	}
	return Match(p.Text, s, p.nocase)
}

const (
	longGlob          = 1 << 10 // patterns longer than that are compiled: a [ ] may be as long
	globSteps         = 1 << 16 // steps for trying one position after the other
	globParallelSteps = 1 << 27 // then words for all positions at once: a tenth of a second
)

// glob is a compiled pattern with bounded matching time: a list of elements, each
// one character wide except the stars. The parts between stars are searched for
// from left to right. If trying one position after the other takes too long (many
// positions nearly match), all positions are tried at once, with a bit for each
// element (the shift-and algorithm of Baeza-Yates and Gonnet). If that also takes
// too long, for patterns and strings of hundreds of kilobytes each, s does not
// match.
type glob struct {
	parts  [][]element // between the stars
	sets   [][4]uint64 // of characters; some elements are their indexes
	width  int         // of all parts
	nocase bool
}

// element is the condition on one character: the character itself, in lower case if
// case is ignored, or one of a set, whose index is the value from elementSets on.
type element int

const elementSets = 256

// CompileGlob splits a pattern into segments.
func CompileGlob(pattern []byte, nocase bool) *glob {
	g := &glob{nocase: nocase, sets: [][4]uint64{{}}}
	for i := range g.sets[0] {
		g.sets[0][i] = math.MaxUint64 // of ?
	}
	var part []element
	for p := 0; p < len(pattern); p++ {
		c := pattern[p]
		switch c {
		case '*':
			for p+1 < len(pattern) && pattern[p+1] == '*' {
				p++
			}
			g.parts = append(g.parts, part)
			part = nil
			continue
		case '?':
			part = append(part, elementSets)
			continue
		case '[':
			set, next := globSet(pattern, p, nocase)
			part = append(part, element(elementSets+len(g.sets)))
			g.sets = append(g.sets, set)
			p = next - 1
			continue
		case '\\':
			if p+1 < len(pattern) {
				p++
				c = pattern[p]
			}
		}
		if nocase {
			c = Lower(c)
		}
		part = append(part, element(c))
	}
	g.parts = append(g.parts, part)
	for _, part := range g.parts {
		g.width += len(part)
	}
	return g
}

// globSet returns the characters that the [ at p stands for, and the position after
// it. It parses as matchOne does.
func globSet(pattern []byte, p int, nocase bool) (set [4]uint64, next int) {
	add := func(c byte) { set[c>>6] |= 1 << (c & 63) }
	same := func(c byte) {
		if nocase {
			c = Lower(c)
		}
		add(c)
	}
	p++
	not := p < len(pattern) && pattern[p] == '^'
	if not {
		p++
	}
loop:
	for ; p < len(pattern); p++ {
		switch {
		case pattern[p] == '\\' && p+1 < len(pattern):
			p++
			same(pattern[p])
		case pattern[p] == ']':
			p++
			break loop
		case p+2 < len(pattern) && pattern[p+1] == '-':
			lo, hi := int8(pattern[p]), int8(pattern[p+2])
			if lo > hi {
				lo, hi = hi, lo
			}
			if nocase {
				lo, hi = int8(Lower(byte(lo))), int8(Lower(byte(hi)))
			}
			for c := int(lo); c <= int(hi); c++ {
				add(byte(c))
			}
			p += 2
		default:
			same(pattern[p])
		}
	}
	if not {
		for i := range set {
			set[i] = ^set[i]
		}
	}
	return set, p
}

func (g *glob) matches(e element, c byte) bool {
	if e < elementSets {
		return byte(e) == c
	}
	return g.sets[e-elementSets][c>>6]>>(c&63)&1 != 0
}

// Match reports whether s, which is not empty, matches.
func (g *glob) Match(s []byte) bool {
	if g.width > len(s) || len(g.parts) == 1 && g.width < len(s) {
		return false
	}
	if g.nocase {
		s = bytes.Clone(s)
		for i, c := range s {
			s[i] = Lower(c)
		}
	}
	first, last := g.parts[0], g.parts[len(g.parts)-1]
	if !g.at(first, s) {
		return false
	}
	if len(g.parts) == 1 {
		return true
	}
	if !g.at(last, s[len(s)-len(last):]) {
		return false
	}
	s = s[len(first) : len(s)-len(last)]
	steps, words := globSteps, globParallelSteps
	for _, part := range g.parts[1 : len(g.parts)-1] {
		end := g.find(part, s, &steps, &words)
		if end < 0 {
			return false
		}
		s = s[end:]
	}
	return true
}

// at reports whether s begins with part.
func (g *glob) at(part []element, s []byte) bool {
	for i, e := range part {
		if !g.matches(e, s[i]) {
			return false
		}
	}
	return true
}

// find returns the end of the first occurrence of part in s, or -1.
func (g *glob) find(part []element, s []byte, steps, words *int) int {
	for from := 0; from+len(part) <= len(s); from++ {
		i := 0
		for i < len(part) && g.matches(part[i], s[from+i]) {
			i++
		}
		if i == len(part) {
			return from + i
		}
		if *steps -= i; *steps < 0 {
			end := g.findAll(part, s[from+1:], words)
			if end >= 0 {
				end += from + 1
			}
			return end
		}
	}
	return -1
}

// findAll is find for all positions at once: bit i of the state is set if the text
// up to here ends with the first i+1 elements.
func (g *glob) findAll(part []element, s []byte, words *int) int {
	n := (len(part) + 63) / 64
	var masks [256][]uint64 // of each character that occurs: the elements that it matches
	state := make([]uint64, n)
	for at, c := range s {
		if *words -= n; *words < 0 {
			return -1
		}
		if masks[c] == nil {
			if *words -= 64 * n; *words < 0 {
				return -1
			}
			masks[c] = make([]uint64, n)
			for i, e := range part {
				if g.matches(e, c) {
					masks[c][i/64] |= 1 << (i % 64)
				}
			}
		}
		carry := uint64(1)
		for i, m := range masks[c] {
			x := state[i]
			state[i] = (x<<1 | carry) & m
			carry = x >> 63
		}
		if state[n-1]>>((len(part)-1)%64)&1 != 0 {
			return at + 1
		}
	}
	return -1
}

// matchOne matches c with the part of the pattern that starts at p and is not a
// star. It returns the start of the next part.
func matchOne(pattern []byte, p int, c byte, nocase bool) (next int, ok bool) {
	if nocase {
		c = Lower(c)
	}
	same := func(b byte) bool {
		if nocase {
			b = Lower(b)
		}
		return b == c
	}
	switch pattern[p] {
	case '?':
		return p + 1, true
	case '\\':
		if p+1 < len(pattern) {
			p++
		}
		return p + 1, same(pattern[p])
	case '[':
		p++
		not := p < len(pattern) && pattern[p] == '^'
		if not {
			p++
		}
		for ; ; p++ {
			switch {
			case p >= len(pattern): // unclosed: it ends with the pattern
				return p, ok != not
			case pattern[p] == '\\' && p+1 < len(pattern):
				p++
				ok = ok || same(pattern[p])
			case pattern[p] == ']':
				return p + 1, ok != not
			case p+2 < len(pattern) && pattern[p+1] == '-':
				// C's char is signed: bytes from 128 on come before the others.
				lo, hi := int8(pattern[p]), int8(pattern[p+2])
				if lo > hi {
					lo, hi = hi, lo
				}
				if nocase {
					lo, hi = int8(Lower(byte(lo))), int8(Lower(byte(hi)))
				}
				ok = ok || lo <= int8(c) && int8(c) <= hi
				p += 2
			default:
				ok = ok || same(pattern[p])
			}
		}
	}
	return p + 1, same(pattern[p])
}

// Lower returns the lower-case form of an ASCII letter.
func Lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
