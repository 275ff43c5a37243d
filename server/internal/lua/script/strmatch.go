package script

import (
	"strings"

	"github.com/zsetd/zsetd/server/internal/lua"
	"github.com/zsetd/zsetd/server/internal/lua/conv"
)

// patternFunctions are the functions of string that match patterns. They use matchers
// again, with the pattern that these have compiled.
type patternFunctions struct{ spare []*matcher }

// matcher returns a matcher of s with a pattern, and whether it is anchored if it may be.
func (f *patternFunctions) matcher(c *call, s, pattern string, mayAnchor bool) (m *matcher, anchored bool) {
	if n := len(f.spare); n > 0 {
		m, f.spare = f.spare[n-1], f.spare[:n-1]
	} else {
		m = &matcher{}
	}
	if mayAnchor {
		pattern, anchored = strings.CutPrefix(pattern, "^")
	}
	m.call, m.src = c, s
	m.compile(pattern)
	return m, anchored
}

// release makes a matcher available, if it is small. After an error it is not released.
func (f *patternFunctions) release(m *matcher) {
	const most = 256
	if m.err == nil && len(m.pat) <= most && cap(m.items) <= most && len(f.spare) < 4 {
		m.src, m.call = "", nil
		f.spare = append(f.spare, m)
	}
}

func (f *patternFunctions) find(c *call) {
	s, pattern, from := c.searched()
	if !c.at(4).Truth() && strings.ContainsAny(conv.CString(pattern), "^$*+?.([%-") {
		m, anchored := f.matcher(c, s, pattern, true)
		if start, end := m.search(from, anchored); start >= 0 {
			c.push(lua.Number(float64(start + 1)))
			c.push(lua.Number(float64(end)))
			m.pushCaptures(start, end, false)
		} else {
			c.push(lua.Nil)
		}
		f.release(m)
		return
	}
	at := c.index(s[from:], pattern)
	if at < 0 {
		c.push(lua.Nil)
		return
	}
	c.push(lua.Number(float64(from + at + 1)))
	c.push(lua.Number(float64(from + at + len(pattern))))
}

// index returns where a text is in s, -1 if it is not there or there was an error.
func (c *call) index(s, text string) int {
	const step = 1 << 18
	for from := 0; ; from += step {
		end := min(len(s), from+step+len(text)-1)
		if text == "" {
			end = len(s)
		}
		if !c.tick((end - from) >> 6) {
			return -1
		}
		if at := strings.Index(s[from:end], text); at >= 0 {
			return from + at
		}
		if end == len(s) {
			return -1
		}
	}
}

// searched returns a subject, a pattern, and the index at which the search begins.
func (c *call) searched() (s, pattern string, from int) {
	s, pattern = c.text(1), c.text(2)
	return s, pattern, min(max(offset(s, c.optInt(3, 1)), 0), len(s))
}

func (f *patternFunctions) match(c *call) {
	s, pattern, from := c.searched()
	m, anchored := f.matcher(c, s, pattern, true)
	if start, end := m.search(from, anchored); start >= 0 {
		m.pushCaptures(start, end, true)
	} else {
		c.push(lua.Nil)
	}
	f.release(m)
}

func (f *patternFunctions) gmatch(c *call) {
	s, pattern := c.text(1), c.text(2)
	from := 0
	c.push(c.State.function(func(c *call) {
		if from > len(s) {
			return
		}
		m, _ := f.matcher(c, s, pattern, false)
		if start, end := m.search(from, false); start < 0 {
			from = len(s) + 1
		} else {
			if from = end; start == end { // an empty match is not found again
				from++
			}
			m.pushCaptures(start, end, true)
		}
		f.release(m)
	}))
}

func (f *patternFunctions) gsub(c *call) {
	s, pattern, by := c.text(1), c.text(2), c.at(3)
	limit := c.optInt32(4, len(s)+1)
	switch by.Kind() {
	case lua.KindNumber, lua.KindString, lua.KindFunction, lua.KindTable:
	default:
		c.argError(3, "string/function/table expected")
	}
	if c.err != nil {
		return
	}
	m, anchored := f.matcher(c, s, pattern, true)
	var b []byte
	copied, n := 0, 0 // b replaces s[:copied]
	for from := 0; n < limit && from <= len(s); {
		start, end := m.search(from, anchored)
		if start < 0 {
			break
		}
		n++
		b = m.replace(append(b, s[copied:start]...), start, end, by)
		if c.err != nil {
			return
		}
		copied = end
		if from = end; start == end {
			from++
		}
		if anchored {
			break
		}
	}
	f.release(m)
	if n == 0 {
		c.push(lua.Text(s))
	} else {
		c.pushBytes(append(b, s[copied:]...))
	}
	c.push(lua.Number(float64(n)))
}

// replace appends the replacement of a match.
func (m *matcher) replace(b []byte, start, end int, by lua.Value) []byte {
	var v lua.Value
	switch by.Kind() {
	case lua.KindFunction:
		var few [4]lua.Value
		v = m.invoke(by, m.appendCaptures(few[:0], start, end, true)...)
	case lua.KindTable:
		if k := m.capture(0, start, end); m.err == nil {
			v, m.err = m.vm.Index(by, k)
		}
	default:
		text, _ := lua.ToText(by)
		return m.expand(b, text, start, end)
	}
	if !v.Truth() {
		return append(b, m.src[start:end]...)
	}
	text, ok := lua.ToText(v)
	if !ok {
		m.raise("invalid replacement value (a " + v.Kind().String() + ")")
	}
	if !m.fits(len(b) + len(text)) {
		return b
	}
	return append(b, text...)
}

// expand appends a text in which %0 stands for the match, %1 to %9 for captures, and %
// before any other byte for that byte.
func (m *matcher) expand(b []byte, text string, start, end int) []byte {
	for {
		plain, escaped, found := strings.Cut(text, "%")
		if !m.tick(1+len(plain)/16) || !m.fits(len(b)+len(plain)) {
			return b
		}
		b = append(b, plain...)
		if !found {
			return b
		}
		c := byte(0) // beyond the end, as in Redis
		if escaped != "" {
			c, escaped = escaped[0], escaped[1:]
		}
		switch {
		case c == '0':
			b = append(b, m.src[start:end]...)
		case conv.IsDigit(int(c)):
			captured, _ := lua.ToText(m.capture(int(c-'1'), start, end))
			b = append(b, captured...)
		default:
			b = append(b, c)
		}
		text = escaped
	}
}
