package server

// match reports whether s matches a glob pattern as Redis understands it:
// * and ?, [abc], [a-z], [^a], and \ before a character that is meant itself.
// With nocase, ASCII letters match in either case.
//
// Where Redis tries every way to split s between several stars, which takes
// exponential time, only the last star is ever reconsidered: a star that could
// be placed with what follows it matching at its first chance need not be
// moved. So the time is O(len(pattern) × len(s)) at worst, and there is no need
// to give up after 1000 stars as Redis does.
//
// Nothing but the empty pattern matches the empty string, not even a star.
func match(pattern, s []byte, nocase bool) bool {
	if len(s) == 0 {
		return len(pattern) == 0
	}
	p, i := 0, 0
	star, from := -1, 0 // the last star, and where what it swallows ends
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
		from++
		p, i = star+1, from
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// matchOne matches c with the part of the pattern that starts at p and is no
// star. It returns where the next part starts.
func matchOne(pattern []byte, p int, c byte, nocase bool) (next int, ok bool) {
	if nocase {
		c = lower(c)
	}
	same := func(b byte) bool {
		if nocase {
			b = lower(b)
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
			case p >= len(pattern): // never closed: it ends with the pattern
				return p, ok != not
			case pattern[p] == '\\' && p+1 < len(pattern):
				p++
				ok = ok || same(pattern[p])
			case pattern[p] == ']':
				return p + 1, ok != not
			case p+2 < len(pattern) && pattern[p+1] == '-':
				// C's char has a sign: bytes from 128 on come before the others.
				lo, hi := int8(pattern[p]), int8(pattern[p+2])
				if lo > hi {
					lo, hi = hi, lo
				}
				if nocase {
					lo, hi = int8(lower(byte(lo))), int8(lower(byte(hi)))
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

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
