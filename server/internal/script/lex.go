package script

import (
	"fmt"
	"strconv"
	"strings"
)

// token is a character, or one of the constants below.
type token int

const (
	tokenAnd token = iota + 257
	tokenBreak
	tokenDo
	tokenElse
	tokenElseif
	tokenEnd
	tokenFalse
	tokenFor
	tokenFunction
	tokenIf
	tokenIn
	tokenLocal
	tokenNil
	tokenNot
	tokenOr
	tokenRepeat
	tokenReturn
	tokenThen
	tokenTrue
	tokenUntil
	tokenWhile
	tokenConcat
	tokenDots
	tokenEq
	tokenGe
	tokenLe
	tokenNe
	tokenNumber
	tokenName
	tokenString
	tokenEnd0 // of the source
)

func tokenNames() []string {
	return []string{
		"and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local", "nil", "not",
		"or", "repeat", "return", "then", "true", "until", "while", "..", "...", "==", ">=", "<=", "~=", "<number>",
		"<name>", "<string>", "<eof>",
	}
}

// lexeme is a token with its text or value.
type lexeme struct {
	token  token
	text   string
	number float64
}

// lexer splits a source into tokens as Lua 5.1 does.
type lexer struct {
	chunk    string // the name of the source in messages
	src      string
	at       int
	line     int
	lastLine int // of the token before
	now      lexeme
	next     lexeme
	peeked   bool
	buf      []byte // the text of the token that is being read
	reserved map[string]token
	spend    func() // called for each token
	jumps    int    // jumps that were followed so far, for tests
}

// syntaxError is the panic value of a source that cannot be compiled.
type syntaxError string

func newLexer(src, chunk string) *lexer {
	x := &lexer{chunk: chunk, src: src, line: 1, lastLine: 1, reserved: map[string]token{}}
	for i, name := range tokenNames()[:tokenWhile-tokenAnd+1] {
		x.reserved[name] = tokenAnd + token(i)
	}
	return x
}

func tokenString0(t token) string {
	switch {
	case t >= tokenAnd:
		return tokenNames()[t-tokenAnd]
	case t < ' ' || t == 127:
		return fmt.Sprintf("char(%d)", int(t))
	}
	return string([]byte{byte(t)})
}

// fail panics with a message that names the last token; near 0 omits it.
func (x *lexer) fail(msg string, near token) {
	msg = x.chunk + ":" + strconv.Itoa(x.line) + ": " + msg
	if near != 0 {
		text := tokenString0(near)
		if near == tokenName || near == tokenString || near == tokenNumber {
			text = string(x.buf)
			if i := strings.IndexByte(text, 0); i >= 0 {
				text = text[:i]
			}
		}
		msg += " near '" + text + "'"
	}
	panic(syntaxError(msg))
}

func (x *lexer) syntax(msg string) { x.fail(msg, x.now.token) }

// current returns the next character, -1 at the end.
func (x *lexer) current() int {
	if x.at >= len(x.src) {
		return -1
	}
	return int(x.src[x.at])
}

func (x *lexer) save() {
	x.buf = append(x.buf, x.src[x.at])
	x.at++
}

func (x *lexer) saveIf(set string) bool {
	if c := x.current(); c < 0 || strings.IndexByte(set, byte(c)) < 0 {
		return false
	}
	x.save()
	return true
}

func (x *lexer) newline() {
	first := x.current()
	x.at++
	if c := x.current(); (c == '\n' || c == '\r') && c != first {
		x.at++
	}
	x.line++
}

func isDigit(c int) bool { return '0' <= c && c <= '9' }
func isAlpha(c int) bool { return 'a' <= c|32 && c|32 <= 'z' && c < 128 || c == '_' }

// advance reads the next token.
func (x *lexer) advance() {
	x.spend()
	x.lastLine = x.line
	if x.peeked {
		x.now, x.peeked = x.next, false
		return
	}
	x.now = x.read()
}

// peek returns the token after the current one.
func (x *lexer) peek() token {
	x.next, x.peeked = x.read(), true
	return x.next.token
}

func (x *lexer) read() lexeme {
	x.buf = x.buf[:0]
	for {
		switch c := x.current(); {
		case c < 0:
			return lexeme{token: tokenEnd0}
		case c == '\n' || c == '\r':
			x.newline()
		case c == '-':
			x.at++
			if x.current() != '-' {
				return lexeme{token: '-'}
			}
			x.at++
			if x.current() == '[' {
				level := x.separator()
				x.buf = x.buf[:0]
				if level >= 0 {
					x.longString(level, true)
					x.buf = x.buf[:0]
					continue
				}
			}
			for c := x.current(); c >= 0 && c != '\n' && c != '\r'; c = x.current() {
				x.at++
			}
		case c == '[':
			switch level := x.separator(); {
			case level >= 0:
				return lexeme{token: tokenString, text: x.longString(level, false)}
			case level == -1:
				return lexeme{token: '['}
			}
			x.fail("invalid long string delimiter", tokenString)
		case c == '=':
			return x.pair('=', tokenEq)
		case c == '<':
			return x.pair('<', tokenLe)
		case c == '>':
			return x.pair('>', tokenGe)
		case c == '~':
			return x.pair('~', tokenNe)
		case c == '"' || c == '\'':
			return lexeme{token: tokenString, text: x.quoted(c)}
		case c == '.':
			x.save()
			switch {
			case x.saveIf("."):
				if x.saveIf(".") {
					return lexeme{token: tokenDots}
				}
				return lexeme{token: tokenConcat}
			case !isDigit(x.current()):
				return lexeme{token: '.'}
			}
			return x.numeral()
		case isSpace(c):
			x.at++
		case isDigit(c):
			return x.numeral()
		case isAlpha(c):
			for c := x.current(); c >= 0 && (isAlpha(c) || isDigit(c)); c = x.current() {
				x.save()
			}
			if t, ok := x.reserved[string(x.buf)]; ok {
				return lexeme{token: t}
			}
			return lexeme{token: tokenName, text: string(x.buf)}
		default:
			x.at++
			return lexeme{token: token(c)}
		}
	}
}

func (x *lexer) pair(first token, both token) lexeme {
	x.at++
	if x.current() != '=' {
		return lexeme{token: first}
	}
	x.at++
	return lexeme{token: both}
}

func (x *lexer) numeral() lexeme {
	for c := x.current(); isDigit(c) || c == '.'; c = x.current() {
		x.save()
	}
	if x.saveIf("Ee") {
		x.saveIf("+-")
	}
	for c := x.current(); c >= 0 && (isAlpha(c) || isDigit(c)); c = x.current() {
		x.save()
	}
	f, ok := parseNumber(string(x.buf))
	if !ok {
		x.fail("malformed number", tokenNumber)
	}
	return lexeme{token: tokenNumber, number: f}
}

// separator reads [==[ or ]==] up to the second bracket, exclusively, and returns
// the number of equals signs; if the second bracket is missing, minus that, minus
// 1.
func (x *lexer) separator() int {
	s := x.current()
	x.save()
	n := 0
	for x.current() == '=' {
		x.save()
		n++
	}
	if x.current() == s {
		return n
	}
	return -n - 1
}

func (x *lexer) longString(level int, comment bool) string {
	x.save()
	if c := x.current(); c == '\n' || c == '\r' {
		x.newline()
	}
	for {
		switch c := x.current(); c {
		case -1:
			if comment {
				x.fail("unfinished long comment", tokenEnd0)
			}
			x.fail("unfinished long string", tokenEnd0)
		case '[':
			if x.separator() == level {
				x.save()
				if level == 0 {
					x.fail("nesting of [[...]] is deprecated", '[')
				}
			}
		case ']':
			if x.separator() == level {
				x.save()
				if comment {
					return ""
				}
				return string(x.buf[2+level : len(x.buf)-2-level])
			}
		case '\n', '\r':
			x.buf = append(x.buf, '\n')
			x.newline()
			if comment {
				x.buf = x.buf[:0]
			}
		default:
			if comment {
				x.at++
			} else {
				x.save()
			}
		}
	}
}

func (x *lexer) quoted(end int) string {
	x.save()
	for x.current() != end {
		switch x.current() {
		case -1:
			x.fail("unfinished string", tokenEnd0)
		case '\n', '\r':
			x.fail("unfinished string", tokenString)
		case '\\':
			x.at++
			x.escape()
		default:
			x.save()
		}
	}
	x.save()
	return string(x.buf[1 : len(x.buf)-1])
}

func (x *lexer) escape() {
	c := x.current()
	if i := strings.IndexByte("abfnrtv", byte(c)); c >= 0 && i >= 0 {
		x.buf = append(x.buf, "\a\b\f\n\r\t\v"[i])
		x.at++
		return
	}
	switch {
	case c < 0: // the caller reports it
	case c == '\n' || c == '\r':
		x.buf = append(x.buf, '\n')
		x.newline()
	case !isDigit(c):
		x.save()
	default:
		n := 0
		for i := 0; i < 3 && isDigit(x.current()); i++ {
			n = 10*n + x.current() - '0'
			x.at++
		}
		if n > 255 {
			x.fail("escape sequence too large", tokenString)
		}
		x.buf = append(x.buf, byte(n))
	}
}
