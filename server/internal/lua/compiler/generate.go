package compiler

import "github.com/zsetd/zsetd/server/internal/lua"

// generator walks the tree of a function and emits its instructions. Registers are a
// stack: local variables, with those that loops keep, and above them temporary values.
type generator struct {
	assembler
	function *function
	free     int      // the first free register
	scopes   []*block // that enclose the statement
	loops    []loop
}

// loop is a loop that encloses the statement.
type loop struct {
	exit   label
	scopes int // outside of it
	base   int // its first register
}

// generate returns the code of a function.
func (u *unit) generate(f *function) *lua.Proto {
	g := u.generator()
	g.unit, g.function = u, f
	for l := f.params; l != nil; l = l.next {
		g.reserve(1, point{f.line, 0})
	}
	g.statements(f.body)
	if g.reachable() {
		g.emit(lua.OpReturn, 0, 0, 0, f.end)
	}
	g.finish()
	p := g.proto(f)
	u.release(g)
	return p
}

// generator returns a generator whose buffers are empty.
func (u *unit) generator() *generator {
	n := len(u.generators)
	if n == 0 {
		g := &generator{}
		g.reset()
		return g
	}
	g := u.generators[n-1]
	u.generators = u.generators[:n-1]
	return g
}

// keptCode is the greatest number of instructions of a function for which a generator
// is used again.
const keptCode = 1 << 10

func (u *unit) release(g *generator) {
	if g.pc() <= keptCode && len(u.generators) < 8 {
		g.reset()
		u.generators = append(u.generators, g)
	}
}

// reset empties the buffers and drops what they refer to.
func (g *generator) reset() {
	clear(g.scopes[:cap(g.scopes)])
	g.function, g.free, g.scopes, g.loops = nil, 0, g.scopes[:0], g.loops[:0]
	g.assembler.reset()
}

// reserve takes the next n registers.
func (g *generator) reserve(n int, at point) {
	g.need(n, at)
	g.free += n
}

// need makes sure that there are n free registers.
func (g *generator) need(n int, at point) {
	if g.free+n <= g.used {
		return
	}
	if g.free+n >= maxStack {
		g.failAt(at, "function or expression too complex", true)
	}
	g.used = g.free + n
}

func (g *generator) statements(b *block) {
	g.scopes = append(g.scopes, b)
	for s := b.first; s != nil; s = s.next {
		g.statement(s)
	}
	g.scopes = g.scopes[:len(g.scopes)-1]
}

// block generates a block whose n variables have their values. At its end it closes
// the upvalues that functions have of it.
func (g *generator) block(b *block, n int) {
	g.reserve(n, b.end)
	g.statements(b)
	g.close(b)
	g.free = int(b.base)
}

func (g *generator) close(b *block) {
	if b.captured && g.reachable() {
		g.emit(lua.OpClose, int(b.base), 0, 0, b.end)
	}
}

// statement generates a statement. Temporary values are dropped after it.
func (g *generator) statement(s *stmt) {
	base := g.free
	switch s.kind {
	case stmtCall:
		g.open(s.values, 0)
	case stmtAssign:
		g.assign(s)
	case stmtLocal:
		n := 0
		for l := s.locals; l != nil; l = l.next {
			n++
		}
		g.adjusted(s.values, n, s.at)
		base += n
		for l, e := s.locals, s.values; l != nil && e != nil; l, e = l.next, e.next {
			if !l.assigned {
				l.value = g.fixedWhole(e)
			}
		}
	case stmtDo:
		g.block(s.body, 0)
	case stmtWhile:
		g.whileLoop(s)
	case stmtRepeat:
		g.repeatLoop(s)
	case stmtIf:
		g.choice(s)
	case stmtFor:
		g.numericLoop(s)
	case stmtForIn:
		g.genericLoop(s)
	case stmtFunction:
		at := point{s.line, s.at.next}
		if t := g.target(s.targets); t.name.variable == register && t.name.kind == exprName {
			g.into(s.values, int(t.name.slot))
		} else {
			g.store(t, g.push(s.values), at)
		}
	case stmtLocalFunction:
		g.reserve(1, s.at)
		g.closure(s.values, base)
		base++
	case stmtReturn:
		g.returns(s)
	case stmtBreak:
		l := g.loops[len(g.loops)-1]
		for _, b := range g.scopes[l.scopes:] {
			if b.captured {
				g.emit(lua.OpClose, l.base, 0, 0, s.at)
				break
			}
		}
		g.leave(l.exit, s.at)
	}
	g.free = base
}

// returns generates a return statement.
func (g *generator) returns(s *stmt) {
	first, n := g.free, 0
	switch v := s.values; {
	case v == nil:
	case v.next == nil && v.call() != nil:
		g.call(v, multiple, true)
		n = multiple
	case v.next == nil && !v.multiple():
		first, n = g.register(v), 1
	default:
		n = g.list(v)
	}
	g.emit(lua.OpReturn, first, count(n), 0, s.at)
	g.stopped = g.pc()
}

// target is a variable on the left of an assignment: a name, or an element of the
// table in a register.
type target struct {
	name  *expr // or the whole
	table int
	key   int    // operand
	named naming // of the table
}

// target evaluates the table and the key of a variable.
func (g *generator) target(e *expr) target {
	t := target{name: e}
	if e.kind == exprSuffix {
		t.table, t.named = g.prefix(e)
		t.key = g.operand(e.last.first)
	}
	return t
}

// store assigns a register, or a constant to an element of a table.
func (g *generator) store(t target, value int, at point) {
	if t.name.kind == exprSuffix {
		g.setField(t.table, t.key, value, t.named, at)
		return
	}
	switch t.name.variable {
	case register:
		g.move(int(t.name.slot), value, at)
	case upvalue:
		g.emit(lua.OpSetUpval, value, int(t.name.slot), 0, at)
	default:
		g.emitD(lua.OpSetGlobal, value, 0, g.text(t.name.text, at), at)
	}
}

// storeValue assigns an expression.
func (g *generator) storeValue(t target, e *expr, at point) {
	switch {
	case t.name.kind == exprSuffix:
		g.store(t, g.operand(e), at)
	case t.name.variable == register:
		g.into(e, int(t.name.slot))
	default:
		g.store(t, g.register(e), at)
	}
}

// setField assigns an operand to an element of the table in a register.
func (g *generator) setField(table, key, value int, named naming, at point) {
	op := lua.OpSet
	if k := key - lua.FirstConstant; k >= 0 && g.constants[k].kind == constText {
		op, key = lua.OpSetField, k
	}
	g.note(g.emit(op, table, key, value, at), table, named)
}

// assign generates an assignment. All expressions are evaluated before any variable
// changes; the variables change from the last to the first.
func (g *generator) assign(s *stmt) {
	if s.targets.next == nil && s.values.next == nil {
		g.storeValue(g.target(s.targets), s.values, s.at)
		return
	}
	var targets []target
	for e := s.targets; e != nil; e = e.next {
		if e.kind == exprName && e.variable == register {
			g.preserve(targets, int(e.slot), e.at)
		}
		targets = append(targets, g.target(e))
	}
	values := 0
	for e := s.values; e != nil; e = e.next {
		values++
	}
	n := len(targets)
	if values == n {
		e := s.values
		for ; e.next != nil; e = e.next {
			g.push(e)
		}
		last := g.free - 1
		g.storeValue(targets[n-1], e, s.at)
		for i := n - 2; i >= 0; i-- {
			g.store(targets[i], last, s.at)
			last--
		}
		return
	}
	first := g.free
	g.adjusted(s.values, n, s.at)
	for i := n - 1; i >= 0; i-- {
		g.store(targets[i], first+i, s.at)
	}
}

// preserve copies a local variable that is a table or a key of the targets before, and
// is assigned itself.
func (g *generator) preserve(targets []target, slot int, at point) {
	copied := -1
	use := func(reg *int) {
		if *reg != slot {
			return
		}
		if copied < 0 {
			copied = g.free
			g.reserve(1, at)
			g.move(copied, slot, at)
		}
		*reg = copied
	}
	for i := range targets {
		if t := &targets[i]; t.name.kind == exprSuffix {
			use(&t.table)
			use(&t.key)
		}
	}
}

// adjusted evaluates expressions into the next registers, and takes or adds as many
// values as there are wanted.
func (g *generator) adjusted(e *expr, want int, at point) {
	n := 0
	for ; e != nil; e = e.next {
		if e.next == nil && e.multiple() {
			rest := max(want-n, 0)
			g.open(e, rest)
			g.reserve(rest, at)
			n += rest
			break
		}
		g.push(e)
		n++
	}
	if n < want {
		first := g.free
		g.reserve(want-n, at)
		g.loadNil(first, want-n, at)
	}
	g.free -= max(n-want, 0)
}

// list evaluates expressions into the next registers, and returns their number, or
// multiple.
func (g *generator) list(e *expr) int {
	n := 0
	for ; e != nil; e = e.next {
		if e.next == nil && e.multiple() {
			g.open(e, multiple)
			return multiple
		}
		g.push(e)
		n++
	}
	return n
}

func (g *generator) choice(s *stmt) {
	end := g.newLabel()
	for c := s.clauses; c != nil; c = c.next {
		next := end
		if c.next != nil {
			next = g.newLabel()
		}
		if c.condition != nil {
			then := g.newLabel()
			g.branch(c.condition, then, next, true)
			g.bind(then, c.body.end)
		}
		g.block(c.body, 0)
		if c.next != nil {
			g.leave(end, c.body.end)
			g.bind(next, c.body.end)
		}
	}
	g.bind(end, s.at)
}

// loop generates a part of a statement in which break leads to its exit.
func (g *generator) loop(exit label, body func()) {
	g.loops = append(g.loops, loop{exit, len(g.scopes), g.free})
	body()
	g.loops = g.loops[:len(g.loops)-1]
}

func (g *generator) whileLoop(s *stmt) {
	start, body, exit := g.here(s.at), g.newLabel(), g.newLabel()
	g.branch(s.values, body, exit, true)
	g.bind(body, s.body.end)
	g.loop(exit, func() { g.block(s.body, 0) })
	g.leave(start, s.body.end)
	g.bind(exit, s.at)
}

// repeatLoop generates a loop whose condition is in the scope of its body.
func (g *generator) repeatLoop(s *stmt) {
	start, exit, again := g.here(s.body.end), g.newLabel(), g.newLabel()
	g.loop(exit, func() {
		g.statements(s.body)
		if !s.body.captured {
			g.branch(s.values, exit, start, true)
			return
		}
		done := g.newLabel()
		g.branch(s.values, done, again, false)
		g.bind(again, s.at)
		g.emit(lua.OpClose, int(s.body.base), 0, 0, s.at)
		g.leave(start, s.at)
		g.bind(done, s.at)
		g.emit(lua.OpClose, int(s.body.base), 0, 0, s.at)
	})
	g.bind(exit, s.at)
}

// numericLoop generates a loop over numbers.
func (g *generator) numericLoop(s *stmt) {
	base, at := g.free, s.enter
	start, limit := s.values, s.values.next
	step := limit.next
	g.push(start)
	g.push(limit)
	if step != nil {
		g.push(step)
	} else {
		g.reserve(1, limit.use)
		g.emitD(lua.OpConstant, g.free-1, 0, g.constant(numeral(1), at), limit.use)
	}
	exit, body, next := g.newLabel(), g.newLabel(), g.newLabel()
	g.loop(exit, func() {
		g.jump(lua.OpForPrep, base, 0, next, at)
		g.bind(body, at)
		g.block(s.body, 1)
		g.bind(next, s.body.end)
		g.jumpAt(s.line, lua.OpFor, base, 0, body, s.body.end)
	})
	g.bind(exit, s.at)
}

// genericLoop generates a loop over the values of an iterator.
func (g *generator) genericLoop(s *stmt) {
	base, at := g.free, s.enter
	n := 0
	for l := s.locals; l != nil; l = l.next {
		n++
	}
	g.adjusted(s.values, hiddenSlots, s.values.use)
	g.need(hiddenSlots, at) // to call the iterator
	exit, body, next := g.newLabel(), g.newLabel(), g.newLabel()
	g.loop(exit, func() {
		g.leave(next, at)
		g.bind(body, at)
		g.block(s.body, n)
		g.bind(next, s.body.end)
		pc := g.jumpAt(s.line, lua.OpForIn, base, n, body, s.body.end)
		g.note(pc, base, naming{lua.Local, "(for generator)"})
	})
	g.bind(exit, s.at)
}
