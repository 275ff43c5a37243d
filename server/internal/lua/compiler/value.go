package compiler

import (
	"math"

	lua "github.com/yuin/gopher-lua"
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
		if i := g.constant(c, e.use); i <= maxRK {
			return i | bitRK
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
		g.emit(lua.OP_LOADBOOL, dst, 0, 0, e.use)
	case exprTrue:
		g.emit(lua.OP_LOADBOOL, dst, 1, 0, e.use)
	case exprNumber, exprString:
		c, _ := constantOf(e)
		g.emitX(lua.OP_LOADK, dst, g.constant(c, e.use), e.use)
	case exprDots:
		// Gopher-lua drops what is in the registers above.
		g.need(1, e.use)
		g.emit(lua.OP_VARARG, base, 2, 0, e.use)
		g.move(dst, base, e.use)
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
		g.prefixOperator(lua.OP_NOT, e, dst)
	case exprMinus:
		g.prefixOperator(lua.OP_UNM, e, dst)
	case exprLength:
		g.prefixOperator(lua.OP_LEN, e, dst)
	case exprPower:
		left := g.operand(e.first)
		g.arithmetic(lua.OP_POW, dst, left, e.first, e.second, base)
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
		g.emit(lua.OP_GETUPVAL, dst, int(e.slot), 0, e.use)
	default:
		if v := g.fixed(nil, e); v != nil {
			g.loadFixed(dst, v, e.use)
			return
		}
		g.emitX(lua.OP_GETGLOBAL, dst, g.text(e.text, e.use), e.use)
	}
}

// fixed returns the value of a global variable, or of the field of the fixed value in whose
// name e is, if it never changes.
func (g *generator) fixed(in lua.LValue, e *expr) lua.LValue {
	if g.Fixed == nil || in != nil && e.kind != exprString || in == nil && (e.kind != exprName || e.variable != global) {
		return nil
	}
	return g.Fixed(in, e.text)
}

func (g *generator) loadFixed(dst int, v lua.LValue, at point) {
	g.emitX(lua.OP_LOADK, dst, g.constant(constant{kind: constFixed, fixed: v}, at), at)
}

// fixedPrefix returns the value of a chain of suffixes as far as it is fixed, what errors call
// it, and the suffix after it; end is none of these suffixes.
func (g *generator) fixedPrefix(e, end *expr) (v lua.LValue, named naming, rest *expr) {
	v, named, rest = g.fixed(nil, e.first), g.nameOf(e.first), e.list
	for v != nil && rest != end && rest.kind == exprIndex {
		field := g.fixed(v, rest.first)
		if field == nil {
			break
		}
		v, named, rest = field, g.fieldName(rest.first), rest.next
	}
	return v, named, rest
}

func (g *generator) prefixOperator(op int, e *expr, dst int) {
	base := g.free
	reg := g.register(e.first)
	g.free = base
	pc := g.emit(op, dst, reg, 0, e.first.use)
	if op != lua.OP_NOT {
		g.note(pc, reg, g.nameOf(e.first))
	}
}

// closure creates a function. An instruction follows for each of its upvalues.
func (g *generator) closure(e *expr, dst int) {
	f := e.function
	g.protos = append(g.protos, g.unit.generate(f))
	g.emitX(lua.OP_CLOSURE, dst, len(g.protos)-1, f.end)
	for _, c := range f.captures {
		op := lua.OP_MOVE
		if c.outer {
			op = lua.OP_GETUPVAL
		}
		g.emit(op, 0, int(c.slot), 0, f.end)
	}
}

// arithmetic emits an operation on left, which is the value of the expression named if
// that is not nil, and right. The registers from base on are free then.
func (g *generator) arithmetic(op, dst, left int, named, right *expr, base int) {
	reg := g.operand(right)
	g.free = base
	pc := g.emit(op, dst, left, reg, right.use)
	if named != nil {
		g.note(pc, left, g.nameOf(named))
	}
	g.note(pc, reg, g.nameOf(right))
}

// isCall reports whether an operation is a call of a function: the remainder, unless
// the divisor is whole and not 0, for which that of gopher-lua is Lua's.
func isCall(step *expr) bool {
	if step.op != tokModulo {
		return false
	}
	f := step.first.number
	return step.first.kind != exprNumber || f == 0 || f != float64(int32(f))
}

// arithmeticChain evaluates operations from left to right. The results before the last
// are in the next register, or, if they are the first argument of a call, in the one
// after it.
func (g *generator) arithmeticChain(e *expr, dst int) {
	base := g.free
	left, first := -1, e.first // first is nil when left has its value
	for step := e.list; step != nil; step = step.next {
		at := step.first.use
		switch {
		case isCall(step):
			g.remainder(base, left, first, step.first)
			left = base
			if step.next == nil {
				g.move(dst, base, at)
			}
		default:
			if first != nil {
				left = g.operand(first)
			}
			to := dst
			if step.next != nil {
				to = base
				if isCall(step.next) {
					to = base + 1
				}
			}
			g.arithmetic(arithmetic(step.op), to, left, first, step.first, base)
			left = to
		}
		if step.next != nil {
			g.reserve(left+1-base, at)
		}
		first = nil
	}
}

// remainder calls the function for it, with the result in the register base. The left
// operand is first, if it is not nil, or in a register.
func (g *generator) remainder(base, left int, first, right *expr) {
	at := right.use
	if first != nil {
		at = first.use
	}
	if left == base {
		g.move(base+1, base, at)
	}
	g.free = base
	g.reserve(1, at)
	g.emitX(lua.OP_LOADK, base, g.constant(constant{kind: constMod}, at), at)
	if first != nil {
		g.push(first)
	} else {
		g.reserve(1, at)
	}
	g.push(right)
	pc := g.emit(lua.OP_CALL, base, 3, 2, right.use)
	if first != nil {
		g.note(pc, base+1, g.nameOf(first))
	}
	g.note(pc, base+2, g.nameOf(right))
	g.free = base
}

// join concatenates operands by a call of a function with all of them.
func (g *generator) join(e *expr, dst int) {
	base := g.free
	g.reserve(1, e.list.use)
	g.emitX(lua.OP_LOADK, base, g.constant(constant{kind: constJoin}, e.list.use), e.list.use)
	n := g.pushAll(e.list)
	pc := g.emit(lua.OP_CALL, base, n+1, 2, e.last.use)
	reg := base + 1
	for operand := e.list; operand != nil; operand = operand.next {
		g.note(pc, reg, g.nameOf(operand))
		reg++
	}
	g.free = base
	g.move(dst, base, e.last.use)
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
	// Gopher-lua takes the sizes literally; they are only hints.
	at := e.use
	if e.list != nil {
		at = e.list.use
	}
	g.emit(lua.OP_NEWTABLE, base, min(values, maxC), min(entries, maxC), at)
	stored, pending := 0, 0
	for item := e.list; item != nil; item = item.next {
		if item.kind == exprEntry {
			free := g.free
			key := g.operand(item.first)
			value := g.operand(item.second)
			g.free = free
			g.emit(g.keyed(lua.OP_SETTABLE, key), base, key, value, item.second.use)
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

// flush stores the n values after a table as elements after those that are stored.
func (g *generator) flush(table, stored, n int, at point) {
	batch := stored/perFlush + 1
	if batch <= maxC {
		g.emit(lua.OP_SETLIST, table, max(n, 0), batch, at)
		return
	}
	g.emit(lua.OP_SETLIST, table, max(n, 0), 0, at)
	g.word(Instruction(batch), at)
}

// prefix evaluates a chain of suffixes but the last into a register: that of a local
// variable, or the next one if the last is a call. It returns what errors call it.
func (g *generator) prefix(e *expr) (reg int, named naming) {
	base := g.free
	v, named, step := g.fixedPrefix(e, e.last)
	switch {
	case v != nil:
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
			g.invoke(reg, named, step, base, 1, false)
			named = naming{}
		}
		g.free, reg = base, base
		g.reserve(1, step.use)
	}
	return reg, named
}

// index reads an element of the table in a register, and returns what errors call it.
func (g *generator) index(dst, table int, named naming, step *expr, base int, at point) naming {
	key := g.operand(step.first)
	g.free = base
	pc := g.emit(g.keyed(lua.OP_GETTABLE, key), dst, table, key, at)
	g.note(pc, table, named)
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
	if v, _, rest := g.fixedPrefix(e, nil); v != nil && rest == nil {
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
		g.emit(lua.OP_VARARG, base, want+1, 0, e.use)
		return
	}
	g.call(e, want, false)
	g.free = base
}

// call generates the call that ends a chain of suffixes.
func (g *generator) call(e *expr, want int, tail bool) {
	base := g.free
	reg, named := g.prefix(e)
	g.invoke(reg, named, e.last, base, want, tail)
}

// invoke calls the function in a register, or a method of the object in it, with
// the results from the register base on.
func (g *generator) invoke(reg int, named naming, step *expr, base, want int, tail bool) {
	if step.kind == exprMethod {
		g.free = base
		g.reserve(2, step.first.use)
		name := step.first
		key := g.operand(name)
		g.free = base + 2
		pc := g.emit(lua.OP_SELF, base, reg, key, name.use)
		g.note(pc, reg, named)
		named = naming{namedMethod, g.fieldName(name).name}
	}
	n := g.list(step.list)
	if n != multiple {
		n = g.free - base - 1
	}
	op := lua.OP_CALL
	if tail {
		op = lua.OP_TAILCALL
	}
	pc := g.emit(op, base, n+1, want+1, point{step.line, step.use.next})
	g.note(pc, base, named)
}
