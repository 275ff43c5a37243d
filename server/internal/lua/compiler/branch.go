package compiler

import "github.com/zsetd/zsetd/server/internal/lua"

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
		g.emit(lua.OpBool, dst, 0, 0, e.use)
		if d.isYes {
			g.leave(d.done, e.use)
		}
	}
	if d.isYes {
		g.bind(d.yes, e.use)
		g.emit(lua.OpBool, dst, 1, 0, e.use)
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
	o, test, choose := no, lua.OpFalse, lua.OpAnd
	if !next {
		o, test, choose = yes, lua.OpTrue, lua.OpOr
	}
	reg := g.register(e)
	g.free = base
	if o.value && reg != d.dst {
		g.jump(choose, d.dst, reg, o.to, e.use)
	} else {
		g.jump(test, reg, 0, o.to, e.use)
	}
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

// compare jumps if a comparison has a result. All comparisons of a chain but the last
// have their results in a register.
func (g *generator) compare(e *expr, when bool, to label) {
	base := g.free
	left, first := -1, e.first // first is nil when left has its value
	for step := e.list; step != nil; step = step.next {
		c := g.comparison(step.op, left, first, step.first, when || step.next != nil)
		g.free = base
		at := step.first.use
		if step.next == nil {
			g.jump(c.op, c.left, c.right, to, at)
			return
		}
		yes, done := g.newLabel(), g.newLabel()
		g.jump(c.op, c.left, c.right, yes, at)
		g.emit(lua.OpBool, base, 0, 0, at)
		g.leave(done, at)
		g.bind(yes, at)
		g.emit(lua.OpBool, base, 1, 0, at)
		g.bind(done, at)
		left, first = base, nil
		g.reserve(1, at)
	}
}

// comparison is an instruction that compares two operands.
type comparison struct {
	op          lua.Op
	left, right int
}

// comparison evaluates the operands of a comparison. The left one is first, if that is not nil, or in
// a register.
func (g *generator) comparison(op kind, left int, first, second *expr, when bool) (c comparison) {
	negate := !when
	switch op {
	case tokEqual, tokNotEqual:
		c.op = lua.OpEqual
		if negate == (op == tokEqual) {
			c.op = lua.OpUnequal
		}
		if first == nil {
			c.left, c.right = left, g.operand(second)
			return c
		}
		if _, constant := constantOf(first); constant {
			if _, constant = constantOf(second); !constant { // either may be first
				right := g.operand(first)
				if right < lua.FirstConstant {
					return comparison{c.op, right, g.operand(second)}
				}
				return comparison{c.op, g.register(second), right}
			}
		}
		c.left = g.register(first)
		c.right = g.operand(second)
		return c
	}
	swap := op == tokGreater || op == tokGreaterEqual
	c.op = lua.OpLess
	if op == tokLessEqual || op == tokGreaterEqual {
		c.op = lua.OpLessEqual
	}
	number := false // one operand is a constant
	switch {
	case second.kind == exprNumber:
		if first != nil {
			left = g.register(first)
		}
		if k := g.constant(numeral(second.number), second.use); k <= maxOperand {
			c.left, c.right, number = left, k, true
		} else {
			c.left, c.right = left, g.push(second)
		}
	case first != nil && first.kind == exprNumber:
		if k := g.constant(numeral(first.number), first.use); k <= maxOperand {
			c.left, c.right, number, swap = g.register(second), k, true, !swap
			break
		}
		fallthrough
	default:
		if first != nil {
			left = g.register(first)
		}
		c.left, c.right = left, g.register(second)
	}
	switch {
	case number:
		c.op += lua.OpLessK - lua.OpLess
		if swap {
			c.op += lua.OpGreaterK - lua.OpLessK
		}
	case swap:
		c.left, c.right = c.right, c.left
	}
	if negate {
		c.op++
	}
	return c
}
