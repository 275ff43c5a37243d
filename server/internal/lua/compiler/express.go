package compiler

import "github.com/zsetd/zsetd/server/internal/lua"

// precedence is how tightly a binary operator binds the operands on its two sides;
// section 2.5.6 of the manual. The right side of a right-associative operator is
// looser.
func precedence(k kind) (left, right int) {
	switch k {
	case tokOr:
		return 1, 1
	case tokAnd:
		return 2, 2
	case tokLess, tokGreater, tokLessEqual, tokGreaterEqual, tokNotEqual, tokEqual:
		return 3, 3
	case tokJoin:
		return 5, 4
	case tokPlus, tokMinus:
		return 6, 6
	case tokTimes, tokDivide, tokModulo:
		return 7, 7
	case tokPower:
		return 10, 9
	}
	return 0, 0
}

const unaryPrecedence = 8

// expressions parses a list of one expression or more. All have their use.
func (p *parser) expressions() (first, last *expr) {
	first = p.expression()
	for last = first; p.accept(tokComma); last = last.next {
		last.use = p.here()
		last.next = p.expression()
	}
	last.use = p.here()
	return first, last
}

func (p *parser) expression() *expr { return p.operation(0) }

// operation parses an expression of operators that bind more tightly than a limit.
func (p *parser) operation(limit int) *expr {
	p.enter()
	e := p.climb(limit)
	p.depth--
	return e
}

func (p *parser) climb(limit int) *expr {
	var e *expr
	switch op := p.token.kind; op {
	case tokNot, tokMinus, tokLength:
		p.advance()
		operand := p.operation(unaryPrecedence)
		operand.use = p.here()
		e = p.unary(op, operand)
	default:
		e = p.simple()
	}
	for {
		op := p.token.kind
		left, right := precedence(op)
		if left <= limit {
			return e
		}
		p.advance()
		e.use = p.here()
		if op == tokJoin {
			e = p.joined(e, left)
			continue
		}
		operand := p.operation(right)
		operand.use = p.here()
		e = p.binary(op, e, operand)
	}
}

// joined parses the operands of ".." after the first. The operator is
// right-associative, so each operand is a level deeper than the one before.
func (p *parser) joined(first *expr, level int) *expr {
	e := p.newExpr(exprJoin)
	e.add(first)
	depth := p.depth
	for more := true; more; {
		p.enter()
		operand := p.climb(level)
		more = p.accept(tokJoin)
		operand.use = p.here()
		e.add(operand)
	}
	p.depth = depth
	return e
}

// unary returns the node of a unary operator.
func (p *parser) unary(op kind, operand *expr) *expr {
	k := exprLength
	switch op {
	case tokNot:
		if truth, ok := operand.constant(); ok {
			k = exprTrue
			if truth {
				k = exprFalse
			}
			return p.newExpr(k)
		}
		k = exprNot
	case tokMinus:
		if operand.kind == exprNumber {
			if f, ok := fold(lua.OpMinus, operand.number, 0); ok {
				return p.number(f)
			}
		}
		k = exprMinus
	}
	e := p.newExpr(k)
	e.first = operand
	return e
}

// binary returns the node of a binary operator other than "..". An operator of the
// kind of a chain extends it.
func (p *parser) binary(op kind, left, right *expr) *expr {
	k := exprCompare
	switch op {
	case tokAnd, tokOr:
		k = exprAnd
		if op == tokOr {
			k = exprOr
		}
		if truth, ok := left.constant(); ok && truth == (k == exprAnd) {
			// The value is that of the right operand: one value.
			if _, ok := right.constant(); ok {
				return right
			}
			e := p.newExpr(exprParen)
			e.first = right
			return e
		}
		if left.kind != k {
			e := p.newExpr(k)
			e.add(left)
			left = e
		}
		left.add(right)
		return left
	case tokPower, tokPlus, tokMinus, tokTimes, tokDivide, tokModulo:
		if left.kind == exprNumber && right.kind == exprNumber {
			if f, ok := fold(arithmetic(op), left.number, right.number); ok {
				return p.number(f)
			}
		}
		k = exprArith
		if op == tokPower {
			e := p.newExpr(exprPower)
			e.first, e.second = left, right
			return e
		}
	}
	if left.kind != k {
		e := p.newExpr(k)
		e.first = left
		left = e
	}
	step := p.newExpr(exprStep)
	step.op, step.first = op, right
	left.add(step)
	return left
}

func (p *parser) number(f float64) *expr {
	e := p.newExpr(exprNumber)
	e.number = f
	return e
}

// arithmetic returns the instruction of an arithmetic operator.
func arithmetic(op kind) lua.Op {
	switch op {
	case tokPlus:
		return lua.OpAdd
	case tokMinus:
		return lua.OpSub
	case tokTimes:
		return lua.OpMul
	case tokDivide:
		return lua.OpDiv
	case tokModulo:
		return lua.OpMod
	}
	return lua.OpPow
}

// fold computes a constant, if the result can be written as a constant: neither a
// division by zero nor NaN.
func fold(op lua.Op, a, b float64) (float64, bool) {
	if b == 0 && (op == lua.OpDiv || op == lua.OpMod) {
		return 0, false
	}
	r := lua.Calculate(op, a, b)
	return r, r == r
}

// simple parses an expression without operators.
func (p *parser) simple() *expr {
	var e *expr
	switch p.token.kind {
	case tokNumber:
		e = p.number(p.token.number)
	case tokString:
		e = p.text(p.token.text)
	case tokNil:
		e = p.newExpr(exprNil)
	case tokTrue:
		e = p.newExpr(exprTrue)
	case tokFalse:
		e = p.newExpr(exprFalse)
	case tokDots:
		if p.function.vararg == 0 {
			p.failHere("cannot use '...' outside a vararg function")
		}
		p.function.vararg &^= needsArg
		e = p.newExpr(exprDots)
	case tokOpenBrace:
		return p.table()
	case tokFunction:
		p.advance()
		return p.body(false, p.line)
	default:
		return p.primary()
	}
	p.advance()
	return e
}

func (p *parser) text(s string) *expr {
	e := p.newExpr(exprString)
	e.text = s
	return e
}

// variable parses a name that is a variable.
func (p *parser) variable() *expr {
	e := p.newExpr(exprName)
	e.text = p.name()
	e.at = p.here()
	return e
}

// suffix returns e with a step after it, which was parsed from a place on.
func (p *parser) suffix(e, step *expr) *expr {
	if e.kind != exprSuffix {
		whole := p.newExpr(exprSuffix)
		whole.first = e
		e = whole
	}
	e.add(step)
	return e
}

// usedHere sets the use of what the next step is applied to.
func (p *parser) usedHere(e *expr) {
	if e.kind == exprSuffix {
		e = e.last
	}
	e.use = p.here()
}

// field parses ".name"; ":name" in the name of a function.
func (p *parser) field() *expr {
	step := p.newExpr(exprIndex)
	p.advance()
	step.first = p.text(p.name())
	step.first.use = p.here()
	return step
}

// primary parses a variable or an expression in parentheses, and the steps after it.
func (p *parser) primary() *expr {
	var e *expr
	switch p.token.kind {
	case tokOpen:
		line := p.line
		p.advance()
		inner := p.expression()
		p.closing(tokClose, tokOpen, line)
		inner.use = p.here()
		if e = inner; inner.kind > exprString {
			e = p.newExpr(exprParen)
			e.first = inner
		}
	case tokName:
		e = p.variable()
	default:
		p.failHere("unexpected symbol")
	}
	for {
		switch p.token.kind {
		case tokDot:
			p.usedHere(e)
			e = p.suffix(e, p.field())
		case tokOpenBracket:
			p.usedHere(e)
			step := p.newExpr(exprIndex)
			step.first = p.key()
			e = p.suffix(e, step)
		case tokColon:
			step := p.newExpr(exprMethod)
			p.advance()
			step.first = p.text(p.name())
			step.first.use = p.here()
			p.usedHere(e)
			p.arguments(step)
			e = p.suffix(e, step)
		case tokOpen, tokString, tokOpenBrace:
			p.usedHere(e)
			step := p.newExpr(exprCall)
			p.arguments(step)
			e = p.suffix(e, step)
		default:
			return e
		}
	}
}

// key parses an expression in brackets.
func (p *parser) key() *expr {
	p.advance()
	e := p.condition()
	p.require(tokCloseBracket)
	return e
}

func (p *parser) arguments(step *expr) {
	line := p.line
	step.line = int32(line)
	switch p.token.kind {
	case tokOpen:
		if line != p.last {
			p.failHere("ambiguous syntax (function call x new statement)")
		}
		p.advance()
		if p.token.kind != tokClose {
			step.list, step.last = p.expressions()
		}
		p.closing(tokClose, tokOpen, line)
	case tokOpenBrace:
		step.add(p.table())
	case tokString:
		step.add(p.text(p.token.text))
		p.advance()
	default:
		p.failHere("function arguments expected")
	}
	if step.last != nil {
		step.last.use = p.here()
	}
}

// table parses a table constructor.
func (p *parser) table() *expr {
	e := p.newExpr(exprTable)
	line := p.line
	var value *expr // the last one without a key
	e.at = p.here()
	p.require(tokOpenBrace)
	for p.token.kind != tokCloseBrace {
		if value != nil {
			value.use, value = p.here(), nil
		}
		switch {
		case p.token.kind == tokOpenBracket, p.token.kind == tokName && p.peekToken() == tokAssign:
			entry := p.newExpr(exprEntry)
			if p.token.kind == tokName {
				entry.first = p.text(p.name())
			} else {
				entry.first = p.key()
			}
			p.require(tokAssign)
			entry.second = p.condition()
			e.add(entry)
		default:
			value = p.expression()
			e.add(value)
		}
		if !p.accept(tokComma) && !p.accept(tokSemicolon) {
			break
		}
	}
	p.closing(tokCloseBrace, tokOpenBrace, line)
	if value != nil {
		value.use = p.here()
	}
	return e
}

// body parses the parameters and the statements of a function.
func (p *parser) body(method bool, line int) *expr {
	f := &function{outer: p.function, line: int32(line)}
	active, loops := p.active, p.loops
	p.function, p.active, p.loops = f, 0, 0
	p.require(tokOpen)
	end := &f.params
	param := func(name string, n int) {
		l := p.newLocal(name, n)
		*end = l
		end = &l.next
	}
	if method {
		param("self", 0)
		p.active++
		f.fixed++
	}
	p.parameters(f, param)
	p.require(tokClose)
	f.body = p.block()
	p.closing(tokEndBlock, tokFunction, line)
	f.end = p.here()
	p.function, p.active, p.loops = f.outer, active, loops
	e := p.newExpr(exprFunction)
	e.function = f
	e.use = f.end
	return e
}

func (p *parser) parameters(f *function, param func(string, int)) {
	if p.token.kind == tokClose {
		return
	}
	for n := 0; ; n++ {
		switch p.token.kind {
		case tokName:
			param(p.name(), n)
			f.fixed++
		case tokDots:
			p.advance()
			param("arg", n)
			f.vararg = needsArg | isVararg
		default:
			p.failHere("<name> or '...' expected")
		}
		if f.vararg != 0 || !p.accept(tokComma) {
			p.active += n + 1
			return
		}
	}
}
