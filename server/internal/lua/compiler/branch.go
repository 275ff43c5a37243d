package compiler

import lua "github.com/yuin/gopher-lua"

// outcome is one of the two outcomes of a condition: where the code continues, and
// whether the value of the operand that decided is the value of the whole.
type outcome struct {
	to    label
	value bool
}

// decision is an expression of and, or, not, and comparisons that is evaluated into a
// register.
type decision struct {
	dst         int
	yes, no     label // load true, and false
	isYes, isNo bool  // the label is used
	done        label
}

// isLogical reports whether e is evaluated by jumps.
func (g *generator) isLogical(e *expr) bool {
	switch e.kind {
	case exprParen, exprNot:
		return g.isLogical(e.first)
	case exprAnd, exprOr, exprCompare:
		return true
	}
	return false
}

// branch continues at one of two labels. next is the outcome whose label follows.
func (g *generator) branch(e *expr, yes, no label, next bool) {
	g.decide(e, outcome{to: yes}, outcome{to: no}, next, nil)
}

// logical evaluates e into a register.
func (g *generator) logical(e *expr, dst int) {
	d := &decision{dst: dst, yes: g.newLabel(), no: g.newLabel(), done: g.newLabel()}
	if g.lastOperand(e, d) && (d.isYes || d.isNo) {
		g.leave(d.done, e.use)
	}
	if d.isNo {
		g.bind(d.no, e.use)
		skip := 0
		if d.isYes {
			skip = 1
		}
		g.emit(lua.OP_LOADBOOL, dst, 0, skip, e.use)
	}
	if d.isYes {
		g.bind(d.yes, e.use)
		g.emit(lua.OP_LOADBOOL, dst, 1, 0, e.use)
	}
	g.bind(d.done, e.use)
}

// lastOperand evaluates e as the last operand of a decision. It reports whether the
// register has its value then; otherwise one of the labels for true and false follows.
func (g *generator) lastOperand(e *expr, d *decision) bool {
	keep := outcome{d.done, true}
	base := g.free
	switch {
	case e.kind == exprParen && g.isLogical(e):
		return g.lastOperand(e.first, d)
	case e.kind == exprAnd || e.kind == exprOr:
		for operand := e.list; operand != e.last; operand = operand.next {
			next := outcome{to: g.newLabel()}
			if e.kind == exprAnd {
				g.decide(operand, next, keep, true, d)
			} else {
				g.decide(operand, keep, next, false, d)
			}
			g.bind(next.to, operand.use)
			g.free = base
		}
		return g.lastOperand(e.last, d)
	case e.kind == exprCompare, e.kind == exprNot && g.isLogical(e):
		d.isYes, d.isNo = true, true
		g.decide(e, outcome{to: d.yes}, outcome{to: d.no}, false, d)
		return false
	}
	g.into(e, d.dst)
	return true
}

// decide evaluates a condition and continues at one of two outcomes. next is the
// outcome that follows, which does not ask for a value.
func (g *generator) decide(e *expr, yes, no outcome, next bool, d *decision) {
	base := g.free
	if truth, ok := e.constant(); ok {
		if truth != next {
			o := no
			if truth {
				o = yes
			}
			if o.value {
				g.into(e, d.dst)
			}
			g.leave(o.to, e.use)
		}
		return
	}
	switch e.kind {
	case exprParen:
		if g.isLogical(e) {
			g.decide(e.first, yes, no, next, d)
			return
		}
	case exprNot:
		yes, no = d.boolean(yes, true), d.boolean(no, false)
		g.decide(e.first, no, yes, !next, d)
		return
	case exprAnd, exprOr:
		for operand := e.list; operand != e.last; operand = operand.next {
			middle := outcome{to: g.newLabel()}
			if e.kind == exprAnd {
				g.decide(operand, middle, no, true, d)
			} else {
				g.decide(operand, yes, middle, false, d)
			}
			g.bind(middle.to, operand.use)
			g.free = base
		}
		g.decide(e.last, yes, no, next, d)
		return
	case exprCompare:
		yes, no = d.boolean(yes, true), d.boolean(no, false)
		to := yes.to
		if next {
			to = no.to
		}
		g.compare(e, !next, to)
		return
	}
	// A jump if the value is not the outcome that follows.
	o, when := no, 0
	if !next {
		o, when = yes, 1
	}
	switch {
	case !o.value:
		reg := g.register(e)
		g.emit(lua.OP_TEST, reg, 0, when, e.use)
	case d.dst == base:
		if reg := g.localOf(e); reg >= 0 {
			g.emit(lua.OP_TESTSET, base, reg, when, e.use)
			break
		}
		g.emit(lua.OP_TEST, g.push(e), 0, when, e.use)
	default:
		reg := g.register(e)
		if reg == d.dst {
			g.emit(lua.OP_TEST, reg, 0, when, e.use)
		} else {
			g.emit(lua.OP_TESTSET, d.dst, reg, when, e.use)
		}
	}
	g.free = base
	g.jump(lua.OP_JMP, 0, o.to, e.use)
}

// boolean returns an outcome of an operand whose value is true or false itself: it is
// loaded if it is wanted.
func (d *decision) boolean(o outcome, value bool) outcome {
	switch {
	case !o.value:
	case value:
		d.isYes, o = true, outcome{to: d.yes}
	default:
		d.isNo, o = true, outcome{to: d.no}
	}
	return o
}

// localOf returns the register of a local variable, or -1.
func (g *generator) localOf(e *expr) int {
	for e.kind == exprParen {
		e = e.first
	}
	if e.kind == exprName && e.variable == register {
		return int(e.slot)
	}
	return -1
}

// compare jumps if a comparison has a result. All comparisons of a chain but the last
// have their results in a register.
func (g *generator) compare(e *expr, when bool, to label) {
	base := g.free
	left := g.operand(e.first)
	for step := e.list; step != nil; step = step.next {
		right := g.operand(step.first)
		g.free = base
		if step.next == nil {
			g.test(step, left, right, when, to)
			return
		}
		yes, at := g.newLabel(), step.first.use
		g.test(step, left, right, true, yes)
		g.emit(lua.OP_LOADBOOL, base, 0, 1, at)
		g.bind(yes, at)
		g.emit(lua.OP_LOADBOOL, base, 1, 0, at)
		left = base
		g.reserve(1, at)
	}
}

// test jumps if a comparison of two operands has a result.
func (g *generator) test(step *expr, left, right int, when bool, to label) {
	op := lua.OP_EQ
	switch step.op {
	case tokNotEqual:
		when = !when
	case tokLess:
		op = lua.OP_LT
	case tokLessEqual:
		op = lua.OP_LE
	case tokGreater:
		op, left, right = lua.OP_LT, right, left
	case tokGreaterEqual:
		op, left, right = lua.OP_LE, right, left
	}
	result := 0
	if when {
		result = 1
	}
	g.emit(op, result, left, right, step.first.use)
	g.jump(lua.OP_JMP, 0, to, step.first.use)
}
