package compiler

import (
	"math"

	"github.com/zsetd/zsetd/server/internal/lua"
)

func numeral(f float64) constant { return constant{kind: constNumber, bits: math.Float64bits(f)} }

// constantOf returns the constant that e is.
func constantOf(e *expr) (c constant, ok bool) {
	switch e.kind {
	case exprNil:
		return constant{kind: constNil}, true
	case exprFalse:
		return constant{kind: constFalse}, true
	case exprTrue:
		return constant{kind: constTrue}, true
	case exprNumber:
		return numeral(e.number), true
	case exprString:
		return constant{kind: constText, text: e.text}, true
	}
	return c, false
}

// operand returns e as an operand of an instruction: a constant, or a register.
func (g *generator) operand(e *expr) int {
	if c, ok := constantOf(e); ok {
		if i := g.constant(c, e.use); i <= maxOperand {
			return i + lua.FirstConstant
		}
	}
	return g.register(e)
}

// register returns a register that contains e: that of a local variable, or the next
// one.
func (g *generator) register(e *expr) int {
	inner := e
	for inner.kind == exprParen {
		inner = inner.first
	}
	if inner.kind == exprName && inner.variable == register {
		return int(inner.slot)
	}
	return g.push(e)
}

// push evaluates e into the next register.
func (g *generator) push(e *expr) int {
	reg := g.free
	g.into(e, reg)
	g.free = reg
	g.reserve(1, e.use)
	return reg
}

// into evaluates e into a register: the first free one, which is not reserved yet, or
// that of a local variable, which keeps its value until that of e is known.
func (g *generator) into(e *expr, dst int) {
	switch base := g.free; e.kind {
	case exprNil:
		g.loadNil(dst, 1, e.use)
	case exprFalse:
		g.emit(lua.OpBool, dst, 0, 0, e.use)
	case exprTrue:
		g.emit(lua.OpBool, dst, 1, 0, e.use)
	case exprNumber, exprString:
		c, _ := constantOf(e)
		g.emitD(lua.OpConstant, dst, 0, g.constant(c, e.use), e.use)
	case exprDots:
		g.emit(lua.OpVararg, dst, 1, 0, e.use)
	case exprFunction:
		g.closure(e, dst)
	case exprName:
		g.variableInto(e, dst)
	case exprParen:
		g.into(e.first, dst)
	case exprTable:
		g.table(e)
		g.move(dst, base, e.use)
	case exprNot:
		if g.isLogical(e.first) {
			g.logical(e, dst)
			break
		}
		g.prefixOperator(lua.OpNot, e, dst)
	case exprMinus:
		g.prefixOperator(lua.OpMinus, e, dst)
	case exprLength:
		g.prefixOperator(lua.OpLength, e, dst)
	case exprPower:
		left := g.register(e.first)
		g.arithmetic(lua.OpPow, dst, left, e.first, e.second, base)
	case exprArith:
		g.arithmeticChain(e, dst)
	case exprJoin:
		g.join(e, dst)
	case exprCompare, exprAnd, exprOr:
		g.logical(e, dst)
	case exprSuffix:
		g.suffixInto(e, dst)
	}
}

func (g *generator) variableInto(e *expr, dst int) {
	switch e.variable {
	case register:
		g.move(dst, int(e.slot), e.use)
	case upvalue:
		g.emit(lua.OpGetUpval, dst, int(e.slot), 0, e.use)
	default:
		if v := g.fixed(lua.Nil, e); !v.IsNil() {
			g.loadFixed(dst, v, e.use)
			return
		}
		g.emitD(lua.OpGetGlobal, dst, 0, g.text(e.text, e.use), e.use)
	}
}

// fixed returns the value of a variable, or of the field of the fixed value in whose name e is, if it
// never changes.
func (g *generator) fixed(in lua.Value, e *expr) lua.Value {
	switch {
	case g.Fixed == nil:
	case !in.IsNil():
		if e.kind == exprString {
			return g.Fixed(in, e.text)
		}
	case e.kind != exprName:
	case e.local != nil:
		return e.local.value
	default:
		return g.Fixed(lua.Nil, e.text)
	}
	return lua.Nil
}

// fixedWhole returns the value of an expression, if it never changes.
func (g *generator) fixedWhole(e *expr) lua.Value {
	if e.kind != exprSuffix {
		return g.fixed(lua.Nil, e)
	}
	if v, _, rest := g.fixedPrefix(e, nil); rest == nil {
		return v
	}
	return lua.Nil
}

func (g *generator) loadFixed(dst int, v lua.Value, at point) {
	g.emitD(lua.OpConstant, dst, 0, g.constant(constant{kind: constFixed, fixed: v}, at), at)
}

// fixedPrefix returns the value of a chain of suffixes as far as it is fixed, what errors call
// it, and the suffix after it; end is none of these suffixes.
func (g *generator) fixedPrefix(e, end *expr) (v lua.Value, named naming, rest *expr) {
	v, named, rest = g.fixed(lua.Nil, e.first), g.nameOf(e.first), e.list
	for !v.IsNil() && rest != end && rest.kind == exprIndex {
		field := g.fixed(v, rest.first)
		if field.IsNil() {
			break
		}
		v, named, rest = field, g.fieldName(rest.first), rest.next
	}
	return v, named, rest
}

func (g *generator) prefixOperator(op lua.Op, e *expr, dst int) {
	base := g.free
	reg := g.register(e.first)
	g.free = base
	pc := g.emit(op, dst, reg, 0, e.first.use)
	if op != lua.OpNot {
		g.note(pc, reg, g.nameOf(e.first))
	}
}

// closure creates a function.
func (g *generator) closure(e *expr, dst int) {
	f := e.function
	g.protos = append(g.protos, g.unit.generate(f))
	g.emitD(lua.OpClosure, dst, 0, len(g.protos)-1, f.end)
}

// arithmetic emits an operation on the register left, which has the value of the expression named if
// that is not nil, and right. The registers from base on are free then.
func (g *generator) arithmetic(op lua.Op, dst, left int, named, right *expr, base int) {
	var pc, reg int
	k := maxOperand + 1
	if right.kind == exprNumber {
		k = g.constant(numeral(right.number), right.use)
	}
	if k <= maxOperand {
		g.free = base
		pc, reg = g.emit(op+lua.OpAddK-lua.OpAdd, dst, left, k, right.use), lua.FirstConstant
	} else {
		reg = g.register(right)
		g.free = base
		pc = g.emit(op, dst, left, reg, right.use)
	}
	if named != nil {
		g.note(pc, left, g.nameOf(named))
	}
	g.note(pc, reg, g.nameOf(right))
}

// arithmeticChain evaluates operations from left to right. The results before the last
// are in the next register.
func (g *generator) arithmeticChain(e *expr, dst int) {
	base := g.free
	left, first := g.register(e.first), e.first
	for step := e.list; step != nil; step = step.next {
		to := dst
		if step.next != nil {
			to = base
		}
		g.arithmetic(arithmetic(step.op), to, left, first, step.first, base)
		left, first = to, nil
		if step.next != nil {
			g.reserve(1, step.first.use)
		}
	}
}

// join concatenates operands.
func (g *generator) join(e *expr, dst int) {
	base := g.free
	n := g.pushAll(e.list)
	g.free = base
	pc := g.emit(lua.OpConcat, dst, base, base+n-1, e.last.use)
	reg := base
	for operand := e.list; operand != nil; operand = operand.next {
		g.note(pc, reg, g.nameOf(operand))
		reg++
	}
}

// pushAll evaluates expressions, each to one value, into the next registers.
func (g *generator) pushAll(e *expr) (n int) {
	for ; e != nil; e = e.next {
		g.push(e)
		n++
	}
	return n
}

// table creates a table in the next register, which is not reserved after it.
func (g *generator) table(e *expr) {
	base := g.free
	g.reserve(1, e.at)
	values, entries := 0, 0
	for item := e.list; item != nil; item = item.next {
		switch {
		case item.kind == exprEntry:
			entries++
		case item.next != nil || !item.multiple():
			values++
		}
	}
	at := e.use
	if e.list != nil {
		at = e.list.use
	}
	g.emit(lua.OpNewTable, base, sizeHint(values), sizeHint(entries), at)
	stored, pending := 0, 0
	for item := e.list; item != nil; item = item.next {
		if item.kind == exprEntry {
			free := g.free
			key := g.operand(item.first)
			value := g.operand(item.second)
			g.free = free
			g.setField(base, key, value, naming{}, item.second.use)
			continue
		}
		at = item.use
		if item == e.last && item.multiple() {
			g.open(item, multiple)
			g.flush(base, stored, multiple, at)
			pending = 0
			break
		}
		g.push(item)
		if pending++; pending == perFlush {
			g.flush(base, stored, pending, at)
			stored, pending = stored+pending, 0
			g.free = base + 1
		}
	}
	if pending > 0 {
		g.flush(base, stored, pending, at)
	}
	g.free = base
}

// sizeHint returns a number of elements for OpNewTable: rounded up, as Lua does, to 16 << e or less.
func sizeHint(n int) int {
	e := 0
	for ; n >= 16; e++ {
		n = (n + 1) >> 1
	}
	return e<<4 | n
}

// flush stores the n values after a table as elements after those that are stored.
func (g *generator) flush(table, stored, n int, at point) {
	g.emitD(lua.OpSetList, table, count(n), stored, at)
}

// prefix evaluates a chain of suffixes but the last into a register: that of a local
// variable, or the next one if the last is a call. It returns what errors call it.
func (g *generator) prefix(e *expr) (reg int, named naming) {
	base := g.free
	v, named, step := g.fixedPrefix(e, e.last)
	switch {
	case !v.IsNil():
		g.loadFixed(base, v, e.first.use)
		g.reserve(1, e.first.use)
		reg = base
	case e.list.kind == exprCall:
		reg = g.push(e.first)
	default:
		reg = g.register(e.first)
	}
	for ; step != e.last; step = step.next {
		if step.kind == exprIndex {
			named = g.index(base, reg, named, step, base, step.use)
		} else {
			g.invoke(reg, named, step, step.list, base, 1, false)
			named = naming{}
		}
		g.free, reg = base, base
		g.reserve(1, step.use)
	}
	return reg, named
}

// index reads an element of the table in a register, and returns what errors call it.
func (g *generator) index(dst, table int, named naming, step *expr, base int, at point) naming {
	op, key := lua.OpGet, 0
	if n := step.first.number; step.first.kind == exprNumber && n >= 1 && n <= maxIndex && n == float64(int(n)) {
		op, key = lua.OpGetElement, int(n)
	} else if key = g.operand(step.first); key >= lua.FirstConstant && step.first.kind == exprString {
		op, key = lua.OpGetField, key-lua.FirstConstant
	}
	g.free = base
	g.note(g.emit(op, dst, table, key, at), table, named)
	return g.fieldName(step.first)
}

func (g *generator) suffixInto(e *expr, dst int) {
	base := g.free
	if e.last.kind != exprIndex {
		g.call(e, 1, false)
		g.free = base
		g.move(dst, base, e.use)
		return
	}
	if v := g.fixedWhole(e); !v.IsNil() {
		g.loadFixed(dst, v, e.use)
		return
	}
	reg, named := g.prefix(e)
	g.index(dst, reg, named, e.last, base, e.use)
}

// open evaluates a call or "..." to the wanted number of values from the next register
// on. These are not reserved.
func (g *generator) open(e *expr, want int) {
	base := g.free
	if e.kind == exprDots {
		g.need(1, e.use)
		g.emit(lua.OpVararg, base, count(want), 0, e.use)
		return
	}
	g.call(e, want, false)
	g.free = base
}

// call generates the call that ends a chain of suffixes.
func (g *generator) call(e *expr, want int, tail bool) {
	base := g.free
	if v := g.bound(e); !v.IsNil() {
		g.loadFixed(base, v, e.first.use)
		g.reserve(1, e.first.use)
		g.invoke(base, naming{}, e.last, e.last.list.next, base, want, tail)
		return
	}
	reg, named := g.prefix(e)
	g.invoke(reg, named, e.last, e.last.list, base, want, tail)
}

// bound returns the function that stands for the called one with its first argument, if that is a
// string and [Compiler.Bound] has one.
func (g *generator) bound(e *expr) lua.Value {
	if g.Bound == nil || e.last.kind != exprCall || e.last.list == nil || e.last.list.kind != exprString {
		return lua.Nil
	}
	v := g.fixed(lua.Nil, e.first)
	for step := e.list; step != e.last; step = step.next {
		if v.IsNil() || step.kind != exprIndex {
			return lua.Nil
		}
		v = g.fixed(v, step.first)
	}
	if v.IsNil() {
		return lua.Nil
	}
	return g.Bound(v, e.last.list.text)
}

// invoke calls the function in a register, or a method of the object in it, with
// the results from the register base on.
func (g *generator) invoke(reg int, named naming, step, args *expr, base, want int, tail bool) {
	if step.kind == exprMethod {
		g.free = base
		g.reserve(2, step.first.use)
		name := step.first
		key := g.operand(name)
		g.free = base + 2
		pc := g.emit(lua.OpSelf, base, reg, key, name.use)
		g.note(pc, reg, named)
		named = naming{lua.Method, g.fieldName(name).name}
	}
	n := g.list(args)
	if n != multiple {
		n = g.free - base - 1
	}
	op := lua.OpCall
	if tail {
		op = lua.OpTailCall
	}
	pc := g.emit(op, base, count(n), count(want), point{step.line, step.use.next})
	g.note(pc, base, named)
}
