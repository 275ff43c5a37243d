package script

import (
	"strings"

	"github.com/zsetd/zsetd/server/internal/lua"
	"github.com/zsetd/zsetd/server/internal/lua/conv"
)

// Patterns, from section 5.4.1 of the manual of Lua 5.1. A pattern has no alternatives
// but the number of repetitions: so it is compiled to a list of items that match one
// after the other, and each item has at most one choice at a time. A choice is on a
// stack, with the position up to which its item has matched; when a later item does not
// match, the topmost choice moves by a byte, or is removed.

const maxCaptures = 32

type itemKind byte

const (
	itemByte     itemKind = iota // the byte a
	itemAny                      // any byte
	itemSet                      // a byte of sets[n]
	itemText                     // the bytes of the pattern from n to m
	itemOpen                     // begins capture n
	itemClose                    // ends capture n
	itemPosition                 // captures the position as n
	itemAgain                    // the text of capture n
	itemBalance                  // from a to b, with others between in pairs
	itemFrontier                 // between a byte outside of sets[n] and one in it
	itemEnd                      // the end of the subject
	itemFault                    // an error: a pattern is wrong only if this is reached
)

type patternItem struct {
	kind   itemKind
	repeat byte // of a kind for one byte: * + - ? or 0, once
	a, b   byte
	n, m   int32
}

// choice is a repeated item that may match less, or if it is lazy more.
type choice struct {
	item int // index
	at   int // end of its match
	low  int // least end
}

type capture struct{ start, end int }

// matcher matches a pattern against a subject.
type matcher struct {
	*call // that matches
	src   string

	pat        string // up to a NUL, which ends patterns in Lua 5.1
	items      []patternItem
	sets       []byteSet
	fault      string
	level      int    // captures
	unfinished uint32 // by capture, whether it has no end
	positions  uint32 // by capture, whether it is a position

	captures [maxCaptures]capture
	choices  []choice
}

// compile compiles a pattern without its anchor. O(len(pattern)).
func (m *matcher) compile(pattern string) {
	pattern = conv.CString(pattern)
	if m.items != nil && m.pat == pattern {
		return
	}
	m.pat, m.items, m.sets = pattern, m.items[:0], m.sets[:0]
	m.fault, m.level, m.unfinished, m.positions = "", 0, 0, 0
	for p := 0; p < len(pattern) && m.fault == "" && m.tick(1); {
		p += m.item(p)
	}
	if m.fault != "" {
		m.add(patternItem{kind: itemFault})
	}
}

func (m *matcher) add(it patternItem) { m.items = append(m.items, it) }

// item compiles the item at p, and returns its length.
func (m *matcher) item(p int) int {
	rest := m.pat[p:]
	switch {
	case strings.HasPrefix(rest, "("):
		return m.capturing(rest)
	case rest[0] == ')':
		open := 31
		for open >= 0 && m.unfinished>>open&1 == 0 {
			open--
		}
		if open < 0 {
			m.fault = "invalid pattern capture"
			return 0
		}
		m.unfinished &^= 1 << open
		m.add(patternItem{kind: itemClose, n: int32(open)})
		return 1
	case rest == "$":
		m.add(patternItem{kind: itemEnd})
		return 1
	case strings.HasPrefix(rest, "%b"):
		if len(rest) < 4 {
			m.fault = "unbalanced pattern"
			return 0
		}
		m.add(patternItem{kind: itemBalance, a: rest[2], b: rest[3]})
		return 4
	case strings.HasPrefix(rest, "%f"):
		if len(rest) < 3 || rest[2] != '[' {
			m.fault = "missing '[' after '%f' in pattern"
			return 0
		}
		n := m.set(rest[2:])
		if m.fault == "" {
			m.add(patternItem{kind: itemFrontier, n: int32(len(m.sets) - 1)})
		}
		return 2 + n
	case len(rest) > 1 && rest[0] == '%' && conv.IsDigit(int(rest[1])):
		n := int(rest[1]) - '1'
		if n < 0 || n >= m.level || m.unfinished>>n&1 != 0 {
			m.fault = "invalid capture index"
			return 0
		}
		m.add(patternItem{kind: itemAgain, n: int32(n)})
		return 2
	}
	if n := plainBytes(rest); n > 1 {
		m.add(patternItem{kind: itemText, n: int32(p), m: int32(p + n)})
		m.tick(n / 16)
		return n
	}
	return m.single(rest)
}

// capturing compiles the beginning of a capture, or a capture of a position.
func (m *matcher) capturing(rest string) int {
	if m.level == maxCaptures {
		m.fault = "too many captures"
		return 0
	}
	n := m.level
	m.level++
	if strings.HasPrefix(rest, "()") {
		m.positions |= 1 << n
		m.add(patternItem{kind: itemPosition, n: int32(n)})
		return 2
	}
	m.unfinished |= 1 << n
	m.add(patternItem{kind: itemOpen, n: int32(n)})
	return 1
}

// plainBytes returns how many bytes of a pattern stand for themselves, once each.
func plainBytes(pattern string) int {
	n := strings.IndexAny(pattern, "^$*+?.([%-)")
	if n < 0 {
		return len(pattern)
	}
	if n > 0 && strings.IndexByte("*+?-", pattern[n]) >= 0 {
		n--
	}
	return n
}

// single compiles an item that matches one byte, and its repetition.
func (m *matcher) single(rest string) int {
	it, n := patternItem{kind: itemByte, a: rest[0]}, 1
	switch rest[0] {
	case '.':
		it.kind = itemAny
	case '[':
		n = m.set(rest)
		it.kind, it.n = itemSet, int32(len(m.sets)-1)
	case '%':
		if len(rest) < 2 {
			m.fault = "malformed pattern (ends with '%')"
			return 0
		}
		n, it.a = 2, rest[1]
		if set, ok := classSet(rest[1]); ok {
			it.kind, it.n = itemSet, int32(len(m.sets))
			m.sets = append(m.sets, set)
		}
	}
	if m.fault != "" {
		return 0
	}
	if n < len(rest) && strings.IndexByte("*+?-", rest[n]) >= 0 {
		it.repeat = rest[n]
		n++
	}
	m.add(it)
	return n
}

// set adds the set in brackets with which rest begins, and returns its length.
func (m *matcher) set(rest string) int {
	var set byteSet
	p := 1
	complement := strings.HasPrefix(rest[p:], "^")
	if complement {
		p++
	}
	// A closing bracket in the first place, or escaped, is in the set.
	end := p
	for first := true; first || end < len(rest) && rest[end] != ']'; first = false {
		if end < len(rest)-1 && rest[end] == '%' {
			end++
		}
		end++
		if end%1024 == 0 {
			if !m.tick(1024 / 16) {
				return 0
			}
		}
	}
	if end >= len(rest) {
		m.fault = "malformed pattern (missing ']')"
		return 0
	}
	for inner := rest[p : end+1]; len(inner) > 1; { // with the bracket
		switch {
		case inner[0] == '%':
			if class, ok := classSet(inner[1]); ok {
				set.include(class)
			} else {
				set.insert(inner[1], inner[1])
			}
			inner = inner[2:]
		case len(inner) > 3 && inner[1] == '-':
			set.insert(inner[0], inner[2])
			inner = inner[3:]
		default:
			set.insert(inner[0], inner[0])
			inner = inner[1:]
		}
		if len(inner)%64 == 0 {
			if !m.tick(64 / 8) {
				return 0
			}
		}
	}
	if complement {
		set = set.complement()
	}
	m.sets = append(m.sets, set)
	return end + 1
}

// one reports whether an item for one byte matches c.
func (m *matcher) one(it *patternItem, c byte) bool {
	switch it.kind {
	case itemByte:
		return c == it.a
	case itemAny:
		return true
	}
	return m.sets[it.n].has(c)
}

// run returns the end of the longest repetition of an item from at on.
func (m *matcher) run(it *patternItem, at int) int {
	start := at
	switch src := m.src; it.kind {
	case itemAny:
		at = len(src)
	case itemByte:
		for at < len(src) && src[at] == it.a {
			if at++; (at-start)%1024 == 0 {
				if !m.tick(1024 / 16) {
					return -1
				}
			}
		}
	default:
		set := &m.sets[it.n]
		for at < len(src) && set.has(src[at]) {
			if at++; (at-start)%1024 == 0 {
				if !m.tick(1024 / 16) {
					return -1
				}
			}
		}
	}
	return at
}

// required returns the byte with which the item at index i begins; -1 if there are
// several.
func (m *matcher) required(i int) int {
	if i < len(m.items) {
		switch it := &m.items[i]; {
		case it.kind == itemText:
			return int(m.pat[it.n])
		case it.kind == itemByte && (it.repeat == 0 || it.repeat == '+'):
			return int(it.a)
		}
	}
	return -1
}

// match matches the pattern from at on, and returns the end of the match, or -1.
func (m *matcher) match(at int) int {
	if m.err != nil {
		return -1
	}
	m.choices = m.choices[:0]
	work := 0
	for i := 0; i < len(m.items); i++ {
		if work++; work == 16 {
			if !m.tick(work) {
				return -1
			}
			work = 0
		}
		it := &m.items[i]
		switch it.kind {
		case itemByte, itemAny, itemSet:
			if it.repeat != 0 {
				at = m.repeated(i, at)
			} else if at < len(m.src) && m.one(it, m.src[at]) {
				at++
			} else {
				at = -1
			}
		default:
			at = m.other(it, at)
		}
		if at < 0 {
			if i, at = m.another(); at < 0 {
				break
			}
		}
	}
	if !m.tick(work) {
		return -1
	}
	return at
}

// other matches an item that is not for one byte, and returns the end of the match, or
// -1.
func (m *matcher) other(it *patternItem, at int) int {
	rest := m.src[at:]
	switch it.kind {
	case itemText:
		m.tick(int(it.m-it.n) / 64)
		if strings.HasPrefix(rest, m.pat[it.n:it.m]) {
			return at + int(it.m-it.n)
		}
	case itemOpen, itemPosition:
		m.captures[it.n].start = at
		return at
	case itemClose:
		m.captures[it.n].end = at
		return at
	case itemAgain:
		c := m.captures[it.n]
		m.tick((c.end - c.start) / 64)
		if m.positions>>it.n&1 == 0 && strings.HasPrefix(rest, m.src[c.start:c.end]) {
			return at + c.end - c.start
		}
	case itemBalance:
		return m.balanced(it, at)
	case itemFrontier:
		set, before, after := &m.sets[it.n], byte(0), byte(0)
		if at > 0 {
			before = m.src[at-1]
		}
		if rest != "" {
			after = rest[0]
		}
		if !set.has(before) && set.has(after) {
			return at
		}
	case itemEnd:
		if rest == "" {
			return at
		}
	case itemFault:
		m.raise(m.fault)
	}
	return -1
}

// balanced returns the end of the text from at on in which the bytes of an item are
// balanced, or -1.
func (m *matcher) balanced(it *patternItem, at int) int {
	if at == len(m.src) || m.src[at] != it.a {
		return -1
	}
	open := 1
	for at++; at < len(m.src); at++ {
		if at%1024 == 0 {
			if !m.tick(1024 / 16) {
				return -1
			}
		}
		if c := m.src[at]; c == it.b { // first, as both may be the same
			if open--; open == 0 {
				return at + 1
			}
		} else if c == it.a {
			open++
		}
	}
	return -1
}

// repeated matches the repeated item i from at on as its repetition prefers, and
// returns the end of the match, or -1. It records the choice, if there is one.
func (m *matcher) repeated(i, at int) int {
	it := &m.items[i]
	if it.repeat == '-' {
		if at = m.advance(i, at); at >= 0 {
			m.choices = append(m.choices, choice{item: i, at: at})
		}
		return at
	}
	low, end := at, 0
	if it.repeat == '?' {
		if end = at; at < len(m.src) && m.one(it, m.src[at]) {
			end++
		}
	} else {
		end = m.run(it, at)
	}
	if it.repeat == '+' {
		low++
	}
	if at = m.retreat(i, end, low); at > low {
		m.choices = append(m.choices, choice{item: i, at: at, low: low})
	}
	return at
}

// another takes the next possibility of the topmost choice that has one, and returns its
// item and the end of its match; -1 if there is none.
func (m *matcher) another() (item, at int) {
	for len(m.choices) > 0 && m.err == nil {
		c := &m.choices[len(m.choices)-1]
		it := &m.items[c.item]
		if it.repeat != '-' {
			at = m.retreat(c.item, c.at-1, c.low)
		} else if c.at < len(m.src) && m.one(it, m.src[c.at]) {
			at = m.advance(c.item, c.at+1)
		} else {
			at = -1
		}
		item, c.at = c.item, at
		if at < 0 || it.repeat != '-' && at == c.low {
			m.choices = m.choices[:len(m.choices)-1]
		}
		if at >= 0 {
			return item, at
		}
	}
	return 0, -1
}

// retreat returns the last position from at down to low where the item after i may
// match, or -1.
func (m *matcher) retreat(i, at, low int) int {
	required := m.required(i + 1)
	if required < 0 && at >= low {
		return at
	}
	for ; at >= low; at-- {
		if at < len(m.src) && int(m.src[at]) == required {
			return at
		}
		if at%1024 == 0 {
			if !m.tick(1024 / 16) {
				return -1
			}
		}
	}
	return -1
}

// advance returns the first position from at on where the item after i may match, and
// up to which the item i matches; -1 if there is none.
func (m *matcher) advance(i, at int) int {
	required := m.required(i + 1)
	if required < 0 {
		return at
	}
	for it := &m.items[i]; at < len(m.src); at++ {
		if c := m.src[at]; int(c) == required {
			return at
		} else if !m.one(it, c) {
			break
		}
		if at%1024 == 0 {
			if !m.tick(1024 / 16) {
				return -1
			}
		}
	}
	return -1
}

// search returns the first match that begins at from or later, or if anchored there;
// -1 if there is none.
func (m *matcher) search(from int, anchored bool) (start, end int) {
	for at := from; ; at++ {
		if !anchored {
			if at = m.candidate(at); at < 0 {
				break
			}
		}
		if end := m.match(at); end >= 0 {
			return at, end
		}
		if anchored || at == len(m.src) || m.err != nil {
			break
		}
	}
	return -1, -1
}

// candidate returns the first position from at on where the first item that is no
// beginning of a capture may match, or -1.
func (m *matcher) candidate(at int) int {
	first := 0
	for first < len(m.items) && (m.items[first].kind == itemOpen || m.items[first].kind == itemPosition) {
		first++
	}
	if first == len(m.items) {
		return at
	}
	from, rest := at, m.src[at:]
	it := &m.items[first]
	switch {
	case it.kind == itemText:
		at = m.index(rest, m.pat[it.n:it.m])
	case it.kind == itemBalance || m.required(first) >= 0:
		at = m.index(rest, string([]byte{it.a}))
	case it.kind == itemSet && (it.repeat == 0 || it.repeat == '+'):
		for set := &m.sets[it.n]; at < len(m.src); at++ {
			if set.has(m.src[at]) {
				return at
			}
			if at%1024 == 0 {
				if !m.tick(1024 / 16) {
					return -1
				}
			}
		}
		return -1
	default:
		return at
	}
	if at < 0 {
		return -1
	}
	return from + at
}

// capture returns a capture of a match from start to end; the whole match if there are
// none.
func (m *matcher) capture(i, start, end int) lua.Value {
	switch {
	case i >= m.level && i > 0:
		m.raise("invalid capture index")
		return lua.Nil
	case i >= m.level:
		return lua.Text(m.src[start:end])
	case m.unfinished>>i&1 != 0:
		m.raise("unfinished capture")
		return lua.Nil
	case m.positions>>i&1 != 0:
		return lua.Number(float64(m.captures[i].start + 1))
	}
	c := m.captures[i]
	return lua.Text(m.src[c.start:c.end])
}

// appendCaptures appends all captures; the whole match if there are none and whole.
func (m *matcher) appendCaptures(list []lua.Value, start, end int, whole bool) []lua.Value {
	n := m.level
	if n == 0 && whole {
		n = 1
	}
	for i := range n {
		list = append(list, m.capture(i, start, end))
	}
	return list
}

// pushCaptures makes the captures results.
func (m *matcher) pushCaptures(start, end int, whole bool) {
	m.results = m.appendCaptures(m.results, start, end, whole)
}
