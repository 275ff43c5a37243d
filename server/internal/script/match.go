package script

import lua "github.com/yuin/gopher-lua"

// Lua's patterns: lstrlib.c.

const (
	maxCaptures   = 32
	captureOpen   = -1
	capturePlace  = -2
	patternEscape = '%'
)

type capture struct{ start, length int }

// matcher matches a pattern against a string.
type matcher struct {
	st       *State
	L        *lua.LState
	src, pat string
	level    int
	captures [maxCaptures]capture
}

func (m *matcher) fail(msg string) { m.st.Raise(m.L, msg) }

func (m *matcher) checkCapture(c byte) int {
	l := int(c) - '1'
	if l < 0 || l >= m.level || m.captures[l].length == captureOpen {
		m.fail("invalid capture index")
	}
	return l
}

func (m *matcher) captureToClose() int {
	for level := m.level - 1; level >= 0; level-- {
		if m.captures[level].length == captureOpen {
			return level
		}
	}
	m.fail("invalid pattern capture")
	return 0
}

// classEnd returns the end of the single class that begins at p.
func (m *matcher) classEnd(p int) int {
	c := m.pat[p]
	p++
	switch c {
	case patternEscape:
		if p >= len(m.pat) {
			m.fail("malformed pattern (ends with '%')")
		}
		return p + 1
	case '[':
		if p < len(m.pat) && m.pat[p] == '^' {
			p++
		}
		for first := true; first || p >= len(m.pat) || m.pat[p] != ']'; first = false {
			if p >= len(m.pat) {
				m.fail("malformed pattern (missing ']')")
			}
			c := m.pat[p]
			p++
			if c == patternEscape && p < len(m.pat) {
				p++
			}
		}
		return p + 1
	}
	return p
}

func matchClass(c byte, class byte) bool {
	var in bool
	alpha := 'a' <= c|32 && c|32 <= 'z'
	digit := '0' <= c && c <= '9'
	switch class | 32 {
	case 'a':
		in = alpha
	case 'c':
		in = c < 32 || c == 127
	case 'd':
		in = digit
	case 'l':
		in = 'a' <= c && c <= 'z'
	case 'p':
		in = c > 32 && c < 127 && !alpha && !digit
	case 's':
		in = isSpace(int(c))
	case 'u':
		in = 'A' <= c && c <= 'Z'
	case 'w':
		in = alpha || digit
	case 'x':
		in = digit || 'a' <= c|32 && c|32 <= 'f'
	case 'z':
		in = c == 0
	default:
		return class == c
	}
	if 'A' <= class && class <= 'Z' {
		return !in
	}
	return in
}

// matchSet matches the set from p, its opening bracket, to end, the closing one.
func (m *matcher) matchSet(c byte, p, end int) bool {
	positive := true
	if m.pat[p+1] == '^' {
		positive = false
		p++
	}
	for p++; p < end; p++ {
		switch {
		case m.pat[p] == patternEscape:
			p++
			if matchClass(c, m.pat[p]) {
				return positive
			}
		case p+2 < end && m.pat[p+1] == '-':
			p += 2
			if m.pat[p-2] <= c && c <= m.pat[p] {
				return positive
			}
		case m.pat[p] == c:
			return positive
		}
	}
	return !positive
}

func (m *matcher) single(s, p, end int) bool {
	if s >= len(m.src) {
		return false
	}
	c := m.src[s]
	switch m.pat[p] {
	case '.':
		return true
	case patternEscape:
		return matchClass(c, m.pat[p+1])
	case '[':
		return m.matchSet(c, p, end-1)
	}
	return m.pat[p] == c
}

func (m *matcher) balance(s, p int) int {
	if p+1 >= len(m.pat) {
		m.fail("unbalanced pattern")
	}
	if s >= len(m.src) || m.src[s] != m.pat[p] {
		return -1
	}
	open, closing, depth := m.pat[p], m.pat[p+1], 1
	for s++; s < len(m.src); s++ {
		if s%1024 == 0 {
			m.st.Spend(m.L, 1024/16)
		}
		switch m.src[s] {
		case closing:
			if depth--; depth == 0 {
				return s + 1
			}
		case open:
			depth++
		}
	}
	return -1
}

func (m *matcher) maxExpand(s, p, end int) int {
	i, unspent := 0, 0
	for m.single(s+i, p, end) {
		i++
		if unspent += end - p + 15; unspent > 1<<14 {
			m.st.Spend(m.L, unspent/16)
			unspent = 0
		}
	}
	m.st.Spend(m.L, unspent/16)
	for ; i >= 0; i-- {
		if r := m.match(s+i, end+1); r >= 0 {
			return r
		}
	}
	return -1
}

func (m *matcher) minExpand(s, p, end int) int {
	for {
		if r := m.match(s, end+1); r >= 0 {
			return r
		}
		m.st.Spend(m.L, (end-p)/16)
		if !m.single(s, p, end) {
			return -1
		}
		s++
	}
}

func (m *matcher) startCapture(s, p, what int) int {
	if m.level >= maxCaptures {
		m.fail("too many captures")
	}
	m.captures[m.level] = capture{s, what}
	m.level++
	r := m.match(s, p)
	if r < 0 {
		m.level--
	}
	return r
}

func (m *matcher) endCapture(s, p int) int {
	l := m.captureToClose()
	m.captures[l].length = s - m.captures[l].start
	r := m.match(s, p)
	if r < 0 {
		m.captures[l].length = captureOpen
	}
	return r
}

func (m *matcher) matchCapture(s int, c byte) int {
	l := m.checkCapture(c)
	n := m.captures[l].length
	if n < 0 { // a position, whose length C reads as a huge number
		return -1
	}
	m.st.Spend(m.L, n/64)
	if len(m.src)-s >= n && m.src[m.captures[l].start:m.captures[l].start+n] == m.src[s:s+n] {
		return s + n
	}
	return -1
}

// match matches from s with the pattern from p, and returns the end of the match,
// or -1.
func (m *matcher) match(s, p int) int {
	for {
		m.st.Spend(m.L, 1) // some patterns take exponential time
		if p >= len(m.pat) {
			return s
		}
		switch m.pat[p] {
		case '(':
			if p+1 < len(m.pat) && m.pat[p+1] == ')' {
				return m.startCapture(s, p+2, capturePlace)
			}
			return m.startCapture(s, p+1, captureOpen)
		case ')':
			return m.endCapture(s, p+1)
		case patternEscape:
			if p+1 < len(m.pat) {
				switch c := m.pat[p+1]; {
				case c == 'b':
					if s = m.balance(s, p+2); s < 0 {
						return -1
					}
					p += 4
					continue
				case c == 'f':
					p += 2
					if p >= len(m.pat) || m.pat[p] != '[' {
						m.fail("missing '[' after '%f' in pattern")
					}
					end := m.classEnd(p)
					var before, at byte
					if s > 0 {
						before = m.src[s-1]
					}
					if s < len(m.src) {
						at = m.src[s]
					}
					if m.matchSet(before, p, end-1) || !m.matchSet(at, p, end-1) {
						return -1
					}
					p = end
					continue
				case isDigit(int(c)):
					if s = m.matchCapture(s, c); s < 0 {
						return -1
					}
					p += 2
					continue
				}
			}
		case '$':
			if p+1 == len(m.pat) {
				if s == len(m.src) {
					return s
				}
				return -1
			}
		}
		end := m.classEnd(p)
		m.st.Spend(m.L, (end-p)/8)
		one := m.single(s, p, end)
		var suffix byte
		if end < len(m.pat) {
			suffix = m.pat[end]
		}
		switch suffix {
		case '?':
			if one {
				if r := m.match(s+1, end+1); r >= 0 {
					return r
				}
			}
			p = end + 1
		case '*':
			return m.maxExpand(s, p, end)
		case '+':
			if !one {
				return -1
			}
			return m.maxExpand(s+1, p, end)
		case '-':
			return m.minExpand(s, p, end)
		default:
			if !one {
				return -1
			}
			s++
			p = end
		}
	}
}

// capture returns a capture of a match from s to e; the whole match if there are
// none.
func (m *matcher) capture(i, s, e int) lua.LValue {
	if i >= m.level {
		if i != 0 {
			m.fail("invalid capture index")
		}
		return lua.LString(m.src[s:e])
	}
	c := m.captures[i]
	switch c.length {
	case captureOpen:
		m.fail("unfinished capture")
	case capturePlace:
		return lua.LNumber(c.start + 1)
	}
	return lua.LString(m.src[c.start : c.start+c.length])
}

// pushCaptures pushes all captures; the whole match if there are none and whole.
func (m *matcher) pushCaptures(s, e int, whole bool) int {
	n := m.level
	if n == 0 && whole {
		n = 1
	}
	for i := range n {
		m.L.Push(m.capture(i, s, e))
	}
	return n
}
