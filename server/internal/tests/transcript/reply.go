package transcript

import (
	"fmt"
	"strconv"
	"strings"
)

const (
	width    = 120 // of a line, beyond which a reply is broken
	maxDepth = 200 // of nested replies
)

// Closed stands for a reply where the server closes the connection.
const Closed = "(closed)"

// value is a decoded reply. A null has no elements and no text.
type value struct {
	kind     byte
	text     string // of a simple value or a string
	null     bool
	elements []value // of an attribute: its keys and values, and then the reply
}

// isLine reports whether a type of RESP is written as its first byte and a text.
func isLine(kind byte) bool { return strings.IndexByte("+-:_,(#", kind) >= 0 }

// isString reports whether a type of RESP has a length and bytes.
func isString(kind byte) bool { return strings.IndexByte("$=!", kind) >= 0 }

// isAggregate reports whether a type of RESP has elements.
func isAggregate(kind byte) bool { return strings.IndexByte("*~>%|", kind) >= 0 }

// decode returns the reply at the beginning of encoded, and the bytes behind it. A length that
// Notation could not reproduce, as in "$01", is an error.
func decode(encoded string, depth int) (v value, rest string, err error) {
	head, rest, ok := strings.Cut(encoded, "\r\n")
	if !ok || head == "" || depth > maxDepth {
		return v, "", fmt.Errorf("%.100q is no reply", encoded)
	}
	v.kind, v.text = head[0], head[1:]
	if isLine(v.kind) {
		return v, rest, checkLine(v.kind, v.text)
	}
	if !isString(v.kind) && !isAggregate(v.kind) {
		return v, "", fmt.Errorf("%.100q is no reply", encoded)
	}
	n, err := strconv.Atoi(v.text)
	if err != nil || n < -1 || n > len(rest) || strconv.Itoa(n) != v.text || n == -1 && v.kind == '|' {
		return v, "", fmt.Errorf("%q is no length of a reply", head)
	}
	v.text = ""
	if n == -1 {
		v.null = true
		return v, rest, nil
	}
	if isString(v.kind) {
		if !strings.HasPrefix(rest[n:], "\r\n") {
			return v, "", fmt.Errorf("%q is not followed by so many bytes and CR LF", head)
		}
		v.text = rest[:n]
		return v, rest[n+2:], nil
	}
	for range elements(v.kind, n) {
		var e value
		if e, rest, err = decode(rest, depth+1); err != nil {
			return v, "", err
		}
		v.elements = append(v.elements, e)
	}
	return v, rest, nil
}

// elements returns the number of replies in an aggregate of length n.
func elements(kind byte, n int) int {
	switch kind {
	case '%':
		return 2 * n
	case '|':
		return 2*n + 1
	}
	return n
}

// checkLine reports an error for a text that cannot be that of a simple value.
func checkLine(kind byte, text string) error {
	if strings.ContainsAny(text, "\r\n") || kind == '_' && text != "" || kind == '#' && text != "t" && text != "f" {
		return fmt.Errorf("%q is no reply", string(kind)+text)
	}
	return nil
}

// Notation returns the text of an encoded reply, of several lines if it is long. It is an error
// if encoded is not one whole reply.
func Notation(encoded string) (string, error) {
	v, rest, err := decode(encoded, 0)
	if err != nil {
		return "", err
	}
	if rest != "" {
		return "", fmt.Errorf("%.100q follows a reply", rest)
	}
	if isLine(v.kind) {
		return string(v.kind) + escape(v.text), nil
	}
	return v.broken(0, 0), nil
}

// Lines returns the lines of the text of a reply for a message. Bytes that are no reply are quoted.
func Lines(encoded string) []string {
	if encoded == Closed {
		return []string{Closed}
	}
	text, err := Notation(encoded)
	if err != nil {
		return []string{strconv.Quote(encoded)}
	}
	return strings.Split(text, "\n")
}

// Indented returns the text of a reply for a message, each line after a tab.
func Indented(encoded string) string { return "\t" + strings.Join(Lines(encoded), "\n\t") }

// flat returns the text of a value on one line.
func (v value) flat() string {
	switch {
	case v.kind == '_':
		return "_"
	case isLine(v.kind):
		return string(v.kind) + word(v.text)
	case v.null:
		return prefix(v.kind) + "null"
	case isString(v.kind):
		return prefix(v.kind) + quoted(v.text)
	}
	own, reply := v.split()
	texts := make([]string, len(own))
	for i, e := range own {
		texts[i] = e.flat()
	}
	begin, end := v.brackets()
	text := begin + strings.Join(texts, " ") + end
	if reply != nil {
		text += " " + reply.flat()
	}
	return text
}

// broken returns the text of a value that begins at a column of a line with a margin, on several
// lines if it is too long for one. Elements fill lines; an aggregate behind another one, as in a list of pairs, begins a
// line, and so does each key of a map.
func (v value) broken(margin, column int) string {
	flat := v.flat()
	own, reply := v.split()
	if column+len(flat) <= width || len(own) == 0 {
		return flat
	}
	inner := margin + 2
	spaces := strings.Repeat(" ", inner)
	begin, end := v.brackets()
	lines := []string{begin}
	pairs := v.kind == '%' || v.kind == '|'
	for i := 0; i < len(own); i++ {
		fills := i > 0 && !pairs && (len(own[i].elements) == 0 || len(own[i-1].elements) == 0)
		text := own[i].broken(inner, inner)
		if pairs {
			i++
			text += " " + own[i].broken(inner, inner+len(text)+1)
		}
		if last := &lines[len(lines)-1]; fills && len(*last)+1+len(text) <= width && !strings.Contains(*last+text, "\n") {
			*last += " " + text
			continue
		}
		lines = append(lines, spaces+text)
	}
	text := strings.Join(lines, "\n") + "\n" + spaces[2:] + end
	if reply != nil {
		text += " " + reply.broken(margin, margin+len(end)+1)
	}
	return text
}

// split separates the reply behind attributes from them.
func (v value) split() (own []value, reply *value) {
	if v.kind != '|' {
		return v.elements, nil
	}
	last := len(v.elements) - 1
	return v.elements[:last], &v.elements[last]
}

func (v value) brackets() (begin, end string) {
	if v.kind == '%' || v.kind == '|' {
		return string(v.kind) + "{", "}"
	}
	return string(v.kind) + "[", "]"
}

// prefix is written before a string or a null: the type, except that of bulk strings.
func prefix(kind byte) string {
	if kind == '$' {
		return ""
	}
	return string(kind)
}

// ParseReply returns the reply, encoded, whose text begins with the first of lines, and how many
// lines it takes.
func ParseReply(lines []string) (encoded string, n int, err error) {
	if len(lines) == 0 || lines[0] == "" {
		return "", 0, fmt.Errorf("a reply is missing")
	}
	if kind := lines[0][0]; isLine(kind) {
		text, err := unescape(lines[0][1:])
		if err != nil {
			return "", 0, err
		}
		return string(kind) + text + "\r\n", 1, checkLine(kind, text)
	}
	p := parser{lines: lines, rest: lines[0]}
	b, err := p.value(nil, 0)
	if err != nil {
		return "", 0, err
	}
	if p.rest != "" {
		return "", 0, fmt.Errorf("%q follows a reply", p.rest)
	}
	return string(b), p.at + 1, nil
}

// beginsReply reports whether a line is the first of a reply. The signs of a push and of a boolean
// begin commands and comments, too.
func beginsReply(line string) bool {
	switch {
	case line == "" || strings.HasPrefix(line, "---"):
		return false
	case line[0] == '>':
		return strings.HasPrefix(line, ">[") || line == ">null"
	case line[0] == '#':
		return line == "#t" || line == "#f"
	}
	return isLine(line[0]) || isString(line[0]) || isAggregate(line[0]) || line[0] == '"' || line == "null" || line == Closed
}

// parser reads the text of a reply.
type parser struct {
	lines []string
	at    int    // of the current line
	rest  string // of the current line
}

// value appends the next value, encoded, to b.
func (p *parser) value(b []byte, depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("line %d of the reply is nested too deeply", p.at+1)
	}
	kind := byte('$') // which is not written
	switch {
	case p.rest == "":
		return nil, fmt.Errorf("a value is missing in line %d of the reply", p.at+1)
	case p.rest[0] == '$':
		return nil, fmt.Errorf("%q begins no reply", p.rest)
	case p.rest[0] != '"' && !strings.HasPrefix(p.rest, "null"):
		kind, p.rest = p.rest[0], p.rest[1:]
	}
	switch {
	case isLine(kind):
		text, err := p.text()
		if err != nil {
			return nil, err
		}
		return append(append(append(b, kind), text...), "\r\n"...), checkLine(kind, text)
	case kind != '|' && (isString(kind) || isAggregate(kind)) && p.skip("null"):
		return append(append(b, kind), "-1\r\n"...), nil
	case isString(kind):
		text, err := p.quoted()
		if err != nil {
			return nil, err
		}
		b = append(append(b, kind), strconv.Itoa(len(text))...)
		return append(append(append(b, "\r\n"...), text...), "\r\n"...), nil
	case isAggregate(kind):
		return p.aggregate(b, kind, depth)
	}
	return nil, fmt.Errorf("%q begins no reply", string(kind)+p.rest)
}

// aggregate appends the value whose brackets come next.
func (p *parser) aggregate(b []byte, kind byte, depth int) ([]byte, error) {
	begin, end := value{kind: kind}.brackets()
	if !p.skip(begin[1:]) {
		return nil, fmt.Errorf("%q is not followed by %q", kind, begin[1:])
	}
	var own []byte
	n := 0
	for {
		if err := p.space(); err != nil {
			return nil, err
		}
		if p.skip(end) {
			break
		}
		var err error
		if own, err = p.value(own, depth+1); err != nil {
			return nil, err
		}
		if p.rest != "" && !strings.HasPrefix(p.rest, " ") && !strings.HasPrefix(p.rest, end) {
			return nil, fmt.Errorf("%q follows a value without a space", p.rest)
		}
		n++
	}
	pairs := kind == '%' || kind == '|'
	if pairs && n%2 != 0 {
		return nil, fmt.Errorf("a key has no value in the map that ends with line %d of the reply", p.at+1)
	}
	if pairs {
		n /= 2
	}
	b = append(strconv.AppendInt(append(b, kind), int64(n), 10), "\r\n"...)
	b = append(b, own...)
	if kind != '|' {
		return b, nil
	}
	if err := p.space(); err != nil {
		return nil, err
	}
	return p.value(b, depth+1)
}

// skip consumes a token if it comes next.
func (p *parser) skip(token string) (ok bool) {
	p.rest, ok = strings.CutPrefix(p.rest, token)
	return ok
}

// space consumes spaces and ends of lines.
func (p *parser) space() error {
	for {
		if p.rest = strings.TrimLeft(p.rest, " "); p.rest != "" {
			return nil
		}
		if p.at+1 == len(p.lines) {
			return fmt.Errorf("a bracket is not closed")
		}
		p.at++
		p.rest = p.lines[p.at]
	}
}

// text consumes a word or what is in quotes.
func (p *parser) text() (string, error) {
	if strings.HasPrefix(p.rest, `"`) {
		return p.quoted()
	}
	n := strings.IndexFunc(p.rest, func(r rune) bool { return !inWord(r) })
	if n < 0 {
		n = len(p.rest)
	}
	text := p.rest[:n]
	p.rest = p.rest[n:]
	return text, nil
}

// quoted consumes a text in quotes.
func (p *parser) quoted() (string, error) {
	if !p.skip(`"`) {
		return "", fmt.Errorf("%q does not begin with a quote", p.rest)
	}
	for i := 0; i < len(p.rest); i++ {
		switch p.rest[i] {
		case '\\':
			i++
		case '"':
			text, err := unescape(p.rest[:i])
			p.rest = p.rest[i+1:]
			return text, err
		}
	}
	return "", fmt.Errorf("a quote is not closed in %q", p.rest)
}
