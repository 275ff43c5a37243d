package compiler

import (
	"strconv"
)

// Limits of a source: Lua's own.
const (
	maxLocals   = 200 // in scope, of a function
	maxUpvalues = 60
	maxLevels   = 200 // of nested expressions and blocks

	// A function of as many instructions as are possible may have more nodes than
	// instructions. They take about 100 bytes each.
	maxNodes = 4 * maxCode
)

// parser builds the tree of a source: recursive descent along the grammar of section 8
// of the reference manual of Lua 5.1, with precedence climbing for binary operators.
// The depth of the recursion is bounded by maxLevels.
type parser struct {
	scanner
	meter
	token    token
	ahead    token // the token after it, if peeked
	peeked   bool
	last     int // line of the token before
	lastEnd  int // offset of its end
	depth    int // of nested expressions and blocks
	nodes    int // expressions and statements
	function *function
	active   int // local variables of the function that are in scope
	loops    int // in which the statement is, in the function
	*tree
}

// parse returns the tree of a source. It panics with a syntaxError.
func (p *parser) parse() *function {
	f := &function{vararg: isVararg}
	p.function, p.last = f, p.line
	p.advance()
	f.body = p.block()
	p.check(tokEnd)
	f.end = p.here()
	return f
}

// advance reads the next token.
func (p *parser) advance() {
	p.spend()
	p.last, p.lastEnd = p.line, p.token.end
	if p.peeked {
		p.token, p.peeked = p.ahead, false
		return
	}
	p.token = p.scanner.next()
}

// peekToken returns the kind of the token after the current one.
func (p *parser) peekToken() kind {
	p.ahead, p.peeked = p.scanner.next(), true
	return p.ahead.kind
}

// here returns the point before the current token.
func (p *parser) here() point { return point{int32(p.last), int32(p.lastEnd)} }

// failHere panics with a message that names the current token.
func (p *parser) failHere(msg string) { p.failAt(msg, p.token) }

func quote(k kind) string { return "'" + k.spelling() + "'" }

// check requires a token.
func (p *parser) check(k kind) {
	if p.token.kind != k {
		p.failHere(quote(k) + " expected")
	}
}

// accept passes a token if it is the current one.
func (p *parser) accept(k kind) bool {
	if p.token.kind != k {
		return false
	}
	p.advance()
	return true
}

// require passes a token.
func (p *parser) require(k kind) {
	p.check(k)
	p.advance()
}

// closing passes the token that closes what another one has opened at a line.
func (p *parser) closing(k, opened kind, line int) {
	switch {
	case p.accept(k):
	case line == p.line:
		p.check(k)
	default:
		p.failHere(quote(k) + " expected (to close " + quote(opened) + " at line " + strconv.Itoa(line) + ")")
	}
}

func (p *parser) name() string {
	p.check(tokName)
	name := p.token.text
	p.advance()
	return name
}

// exceeded returns the message of a limit of a function.
func (f *function) exceeded(most int, what string) string {
	where := "main function"
	if f.line != 0 {
		where = "function at line " + strconv.Itoa(int(f.line))
	}
	return where + " has more than " + strconv.Itoa(most) + " " + what
}

// newLocal returns a local variable that is not in scope yet, nor are n others that
// will be before it.
func (p *parser) newLocal(name string, n int) *local {
	if p.active+n >= maxLocals {
		p.fail(p.function.exceeded(maxLocals, "local variables"))
	}
	l := p.locals.get()
	l.name = name
	return l
}

func (p *parser) enter() {
	if p.depth++; p.depth > maxLevels {
		p.fail("chunk has too many syntax levels")
	}
}

// count counts a node.
func (p *parser) count() {
	if p.nodes++; p.nodes > maxNodes {
		p.fail("code size overflow")
	}
}

func (p *parser) newExpr(k exprKind) *expr {
	p.count()
	e := p.exprs.get()
	e.kind = k
	return e
}

// block parses statements with a scope of their own.
func (p *parser) block() *block {
	active := p.active
	b := p.statements()
	p.active = active
	return b
}

// statements parses statements up to the token that ends a block.
func (p *parser) statements() *block {
	p.enter()
	b := p.blocks.get()
	end := &b.first
	for last := false; !last && !p.blockEnds(); {
		s := p.statement()
		*end = s
		end = &s.next
		last = s.kind == stmtReturn || s.kind == stmtBreak
		p.accept(tokSemicolon)
	}
	b.end = p.here()
	p.depth--
	return b
}

func (p *parser) blockEnds() bool {
	switch p.token.kind {
	case tokElse, tokElseif, tokEndBlock, tokUntil, tokEnd:
		return true
	}
	return false
}

// statement parses a statement.
func (p *parser) statement() *stmt {
	p.count()
	s := p.stmts.get()
	line := p.line
	s.line = int32(line)
	switch p.token.kind {
	case tokIf:
		p.ifStatement(s, line)
	case tokWhile:
		s.kind = stmtWhile
		p.advance()
		s.values = p.condition()
		p.require(tokDo)
		p.loops++
		s.body = p.block()
		p.loops--
		p.closing(tokEndBlock, tokWhile, line)
	case tokDo:
		s.kind = stmtDo
		p.advance()
		s.body = p.block()
		p.closing(tokEndBlock, tokDo, line)
	case tokFor:
		p.forStatement(s, line)
	case tokRepeat:
		s.kind = stmtRepeat
		active := p.active
		p.advance()
		p.loops++
		s.body = p.statements()
		p.closing(tokUntil, tokRepeat, line)
		s.values = p.condition()
		p.loops--
		p.active = active
	case tokFunction:
		p.functionStatement(s, line)
	case tokLocal:
		p.advance()
		if p.accept(tokFunction) {
			s.kind = stmtLocalFunction
			s.locals = p.newLocal(p.name(), 0)
			p.active++
			s.values = p.body(false, p.line)
			break
		}
		p.localStatement(s)
	case tokReturn:
		s.kind = stmtReturn
		p.advance()
		if !p.blockEnds() && p.token.kind != tokSemicolon {
			s.values, _ = p.expressions()
		}
	case tokBreak:
		s.kind = stmtBreak
		p.advance()
		if p.loops == 0 {
			p.failHere("no loop to break")
		}
	default:
		p.expressionStatement(s)
	}
	s.at = p.here()
	return s
}

func (p *parser) condition() *expr {
	e := p.expression()
	e.use = p.here()
	return e
}

func (p *parser) ifStatement(s *stmt, line int) {
	s.kind = stmtIf
	end := &s.clauses
	for {
		p.advance()
		c := &clause{condition: p.condition()}
		p.require(tokThen)
		c.body = p.block()
		*end = c
		end = &c.next
		if p.token.kind != tokElseif {
			break
		}
	}
	if p.accept(tokElse) {
		*end = &clause{body: p.block()}
	}
	p.closing(tokEndBlock, tokIf, line)
}

func (p *parser) forStatement(s *stmt, line int) {
	active := p.active
	p.advance()
	name := p.name()
	switch p.token.kind {
	case tokAssign:
		s.kind = stmtFor
		s.locals = p.newLocal(name, hiddenSlots)
		p.advance()
		s.values = p.condition()
		p.require(tokComma)
		s.values.next = p.condition()
		if p.accept(tokComma) {
			s.values.next.next = p.condition()
		}
	case tokComma, tokIn:
		s.kind = stmtForIn
		s.locals = p.newLocal(name, hiddenSlots)
		n := 1
		for l := s.locals; p.accept(tokComma); l = l.next {
			l.next = p.newLocal(p.name(), hiddenSlots+n)
			n++
		}
		p.require(tokIn)
		s.line = int32(p.line)
		s.values, _ = p.expressions()
	default:
		p.failHere("'=' or 'in' expected")
	}
	p.require(tokDo)
	s.enter = p.here()
	p.active += hiddenSlots
	for l := s.locals; l != nil; l = l.next {
		p.active++
	}
	p.loops++
	s.body = p.block()
	p.loops--
	p.active = active
	p.closing(tokEndBlock, tokFor, line)
}

func (p *parser) localStatement(s *stmt) {
	s.kind = stmtLocal
	s.locals = p.newLocal(p.name(), 0)
	n := 1
	for l := s.locals; p.accept(tokComma); l = l.next {
		l.next = p.newLocal(p.name(), n)
		n++
	}
	if p.accept(tokAssign) {
		s.values, _ = p.expressions()
	}
	p.active += n
}

func (p *parser) functionStatement(s *stmt, line int) {
	s.kind = stmtFunction
	p.advance()
	s.targets = p.variable()
	method := false
	for !method && (p.token.kind == tokDot || p.token.kind == tokColon) {
		method = p.token.kind == tokColon
		p.usedHere(s.targets)
		s.targets = p.suffix(s.targets, p.field())
	}
	s.values = p.body(method, line)
}

// expressionStatement parses a call or an assignment.
func (p *parser) expressionStatement(s *stmt) {
	e := p.primary()
	if e.call() != nil {
		s.kind, s.values = stmtCall, e
		return
	}
	s.kind, s.targets = stmtAssign, e
	for n := 1; ; n++ {
		if !e.assignable() {
			p.failHere("syntax error")
		}
		if !p.accept(tokComma) {
			break
		}
		e.next = p.primary()
		e = e.next
		if most := maxLevels - p.depth; n > most {
			p.fail(p.function.exceeded(most, "variables in assignment"))
		}
	}
	p.require(tokAssign)
	s.values, _ = p.expressions()
}
