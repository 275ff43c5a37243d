package compiler

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/zsetd/zsetd/server/internal/lua/conv"
)

// kind is the kind of a token.
type kind uint8

const (
	tokEnd kind = iota // of the source
	tokName
	tokNumber
	tokString
	tokOther // a byte that begins no token

	tokAnd
	tokBreak
	tokDo
	tokElse
	tokElseif
	tokEndBlock // end
	tokFalse
	tokFor
	tokFunction
	tokIf
	tokIn
	tokLocal
	tokNil
	tokNot
	tokOr
	tokRepeat
	tokReturn
	tokThen
	tokTrue
	tokUntil
	tokWhile

	tokPlus
	tokMinus
	tokTimes
	tokDivide
	tokModulo
	tokPower
	tokLength
	tokEqual
	tokNotEqual
	tokLessEqual
	tokGreaterEqual
	tokLess
	tokGreater
	tokAssign
	tokOpen         // (
	tokClose        // )
	tokOpenBrace    // {
	tokCloseBrace   // }
	tokOpenBracket  // [
	tokCloseBracket // ]
	tokSemicolon
	tokColon
	tokComma
	tokDot
	tokJoin // ..
	tokDots // ...
	kinds
)

// spelling returns the tokens as messages name them.
func (k kind) spelling() string {
	return [kinds]string{
		"<eof>", "<name>", "<number>", "<string>", "",
		"and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local", "nil", "not",
		"or", "repeat", "return", "then", "true", "until", "while",
		"+", "-", "*", "/", "%", "^", "#", "==", "~=", "<=", ">=", "<", ">", "=", "(", ")", "{", "}", "[", "]", ";", ":",
		",", ".", "..", "...",
	}[k]
}

// keyword returns the kind of a word.
func keyword(word string) kind {
	switch word {
	case "and":
		return tokAnd
	case "break":
		return tokBreak
	case "do":
		return tokDo
	case "else":
		return tokElse
	case "elseif":
		return tokElseif
	case "end":
		return tokEndBlock
	case "false":
		return tokFalse
	case "for":
		return tokFor
	case "function":
		return tokFunction
	case "if":
		return tokIf
	case "in":
		return tokIn
	case "local":
		return tokLocal
	case "nil":
		return tokNil
	case "not":
		return tokNot
	case "or":
		return tokOr
	case "repeat":
		return tokRepeat
	case "return":
		return tokReturn
	case "then":
		return tokThen
	case "true":
		return tokTrue
	case "until":
		return tokUntil
	case "while":
		return tokWhile
	}
	return tokName
}

// token is a token of a source.
type token struct {
	kind       kind
	start, end int     // offsets in the source
	text       string  // of a name, the value of a string
	number     float64 // the value of a number
}

// scanner splits a source into tokens, as section 2.1 of the reference manual of Lua
// 5.1 defines them. It reads the source once.
type scanner struct {
	chunk string // the name of the source in messages
	src   string
	at    int // offset of the next byte
	line  int // of the next byte, from 1
}

// syntaxError is the error of a source that cannot be compiled, and the panic value
// within the compiler.
type syntaxError string

// Error returns the message.
func (e syntaxError) Error() string { return string(e) }

// fail panics with a message at the current line.
func (s *scanner) fail(msg string) {
	panic(syntaxError(s.chunk + ":" + strconv.Itoa(s.line) + ": " + msg))
}

// failNear ends the scan with an error and the text at which it was found, up to its first NUL.
func (s *scanner) failNear(msg, text string) { s.fail(msg + " near '" + conv.CString(text) + "'") }

// failAt ends the scan with an error at a token. The byte NUL, which begins no token, is not shown.
func (s *scanner) failAt(msg string, t token) {
	switch text := s.src[t.start:t.end]; {
	case text == "\x00":
		s.fail(msg)
	case t.kind == tokEnd:
		s.failNear(msg, t.kind.spelling())
	case t.kind == tokOther && (text[0] < ' ' || text[0] == 127):
		s.failNear(msg, fmt.Sprintf("char(%d)", text[0]))
	case t.kind == tokString:
		// The value between the delimiters, so without escapes.
		n := 1
		if text[0] == '[' {
			n = strings.IndexByte(text[1:], '[') + 2
		}
		s.failNear(msg, text[:n]+t.text+text[len(text)-n:])
	default:
		s.failNear(msg, text)
	}
}

// peek returns the byte at a distance from the next one, -1 after the end.
func (s *scanner) peek(distance int) int {
	if i := s.at + distance; i < len(s.src) {
		return int(s.src[i])
	}
	return -1
}

// newline passes the end of a line: one or both of \n and \r.
func (s *scanner) newline() {
	first := s.src[s.at]
	s.at++
	if c := s.peek(0); (c == '\n' || c == '\r') && byte(c) != first {
		s.at++
	}
	s.line++
}

// skip passes spaces and comments.
func (s *scanner) skip() {
	for s.at < len(s.src) {
		switch c := s.src[s.at]; c {
		case '\n', '\r':
			s.newline()
		case ' ', '\t', '\v', '\f':
			s.at++
		case '-':
			if s.peek(1) != '-' {
				return
			}
			s.at += 2
			if level, ok := s.bracket('['); ok {
				s.long(level, "unfinished long comment")
				continue
			}
			for s.at < len(s.src) && s.src[s.at] != '\n' && s.src[s.at] != '\r' {
				s.at++
			}
		default:
			return
		}
	}
}

// next reads a token.
func (s *scanner) next() token {
	s.skip()
	t := token{kind: tokEnd, start: s.at}
	if s.at < len(s.src) {
		switch c := int(s.src[s.at]); {
		case conv.IsAlpha(c):
			for s.at++; s.at < len(s.src) && (conv.IsAlpha(int(s.src[s.at])) || conv.IsDigit(int(s.src[s.at]))); s.at++ {
			}
			t.text = s.src[t.start:s.at]
			t.kind = keyword(t.text)
		case conv.IsDigit(c), c == '.' && conv.IsDigit(s.peek(1)):
			t.kind, t.number = tokNumber, s.numeral()
		case c == '"' || c == '\'':
			t.kind, t.text = tokString, s.quoted()
		case c == '[' && (s.peek(1) == '[' || s.peek(1) == '='):
			level, ok := s.bracket('[')
			if !ok {
				for s.at++; s.peek(0) == '='; s.at++ {
				}
				s.failNear("invalid long string delimiter", s.src[t.start:s.at])
			}
			t.kind, t.text = tokString, s.long(level, "unfinished long string")
		default:
			var n int
			t.kind, n = s.operator(c)
			s.at += n
		}
	}
	t.end = s.at
	return t
}

// operator returns the kind and the length of a token of other bytes than letters and
// digits.
func (s *scanner) operator(c int) (kind, int) {
	either := func(with, without kind) (kind, int) {
		if s.peek(1) == '=' {
			return with, 2
		}
		return without, 1
	}
	switch c {
	case '+':
		return tokPlus, 1
	case '-':
		return tokMinus, 1
	case '*':
		return tokTimes, 1
	case '/':
		return tokDivide, 1
	case '%':
		return tokModulo, 1
	case '^':
		return tokPower, 1
	case '#':
		return tokLength, 1
	case '=':
		return either(tokEqual, tokAssign)
	case '~':
		return either(tokNotEqual, tokOther)
	case '<':
		return either(tokLessEqual, tokLess)
	case '>':
		return either(tokGreaterEqual, tokGreater)
	case '(':
		return tokOpen, 1
	case ')':
		return tokClose, 1
	case '{':
		return tokOpenBrace, 1
	case '}':
		return tokCloseBrace, 1
	case '[':
		return tokOpenBracket, 1
	case ']':
		return tokCloseBracket, 1
	case ';':
		return tokSemicolon, 1
	case ':':
		return tokColon, 1
	case ',':
		return tokComma, 1
	case '.':
		switch {
		case s.peek(1) != '.':
			return tokDot, 1
		case s.peek(2) != '.':
			return tokJoin, 2
		}
		return tokDots, 3
	}
	return tokOther, 1
}

// numeral reads a number: the longest text that may be one, which then must be one.
func (s *scanner) numeral() float64 {
	start, whole := s.at, 0
	for ; conv.IsDigit(s.peek(0)); s.at++ {
		whole = 10*whole + s.peek(0) - '0'
	}
	if c := s.peek(0); c != '.' && !conv.IsAlpha(c) && s.at-start < 16 {
		return float64(whole)
	}
	for conv.IsDigit(s.peek(0)) || s.peek(0) == '.' {
		s.at++
	}
	if c := s.peek(0); c == 'E' || c == 'e' {
		s.at++
		if c := s.peek(0); c == '+' || c == '-' {
			s.at++
		}
	}
	for conv.IsAlpha(s.peek(0)) || conv.IsDigit(s.peek(0)) {
		s.at++
	}
	f, ok := conv.ParseNumber(s.src[start:s.at])
	if !ok {
		s.failNear("malformed number", s.src[start:s.at])
	}
	return f
}

// bracket passes a long bracket, such as [==[ or ]==], and returns its level, the
// number of equals signs. It passes nothing if there is no long bracket.
func (s *scanner) bracket(c int) (level int, ok bool) {
	if s.peek(0) != c {
		return 0, false
	}
	for s.peek(1+level) == '=' {
		level++
	}
	if s.peek(1+level) != c {
		return 0, false
	}
	s.at += level + 2
	return level, true
}

// long reads what follows an opening long bracket up to the closing one. All ends of
// lines become \n.
func (s *scanner) long(level int, unfinished string) string {
	if c := s.peek(0); c == '\n' || c == '\r' {
		s.newline()
	}
	var b []byte // the text up to start, if it differs from the source
	start := s.at
	for s.at < len(s.src) {
		switch s.src[s.at] {
		case '\n':
			if s.peek(1) != '\r' {
				s.newline()
				continue
			}
			fallthrough
		case '\r':
			b = append(append(b, s.src[start:s.at]...), '\n')
			s.newline()
			start = s.at
		case ']':
			end := s.at
			n, ok := s.bracket(']')
			switch {
			case ok && n == level && b == nil:
				return s.src[start:end]
			case ok && n == level:
				return string(append(b, s.src[start:end]...))
			case ok:
				s.at-- // the second bracket may begin another one
			default:
				s.at++
			}
		default:
			s.at++
		}
	}
	s.failNear(unfinished, tokEnd.spelling())
	return ""
}

// quoted reads a string in quotes.
func (s *scanner) quoted() string {
	quote := s.src[s.at]
	s.at++
	var b []byte // the text up to start, if it differs from the source
	start, escaped := s.at, false
	text := func() string { return string(append(b, s.src[start:s.at]...)) }
	for s.at < len(s.src) {
		switch c := s.src[s.at]; c {
		case quote:
			s.at++
			if !escaped {
				return s.src[start : s.at-1]
			}
			return string(append(b, s.src[start:s.at-1]...))
		case '\n', '\r':
			s.failNear("unfinished string", string(quote)+text())
		case '\\':
			b, escaped = append(b, s.src[start:s.at]...), true
			s.at++
			c, ok := s.escape()
			if !ok {
				s.failNear("escape sequence too large", string(quote)+string(b))
			}
			if s.at <= len(s.src) {
				b = append(b, c)
			}
			start = min(s.at, len(s.src))
		default:
			s.at++
		}
	}
	s.at = len(s.src)
	s.failNear("unfinished string", tokEnd.spelling())
	return ""
}

// escape reads what follows a backslash, and returns the byte that it stands for; ok
// is false if it is greater than 255.
func (s *scanner) escape() (c byte, ok bool) {
	switch c := s.peek(0); {
	case c < 0:
		s.at++
		return 0, true
	case c == '\n' || c == '\r':
		s.newline()
		return '\n', true
	case conv.IsDigit(c):
		n := 0
		for i := 0; i < 3 && conv.IsDigit(s.peek(0)); i++ {
			n = 10*n + s.peek(0) - '0'
			s.at++
		}
		return byte(n), n <= 255
	default:
		s.at++
		if i := strings.IndexByte("abfnrtv", byte(c)); i >= 0 {
			c = int("\a\b\f\n\r\t\v"[i])
		}
		return byte(c), true
	}
}
