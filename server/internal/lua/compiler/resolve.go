package compiler

// unit is a source that is being compiled.
type unit struct {
	chunk string
	src   string
	meter
	*Compiler
}

// failAt panics with a message about what is at a point of the source. If near, it
// names the token there.
func (u *unit) failAt(at point, msg string, near bool) {
	s := scanner{chunk: u.chunk, src: u.src, at: int(at.next), line: int(at.line)}
	t := s.next()
	if near {
		s.failAt(msg, t)
	}
	s.fail(msg)
}

// resolver binds the names of a function to variables. A local variable is in scope
// from the statement after its declaration on, or, of a function with a name, within
// that function; section 2.6 of the manual.
type resolver struct {
	*unit
	outer    *resolver
	function *function
	active   []*local // the variables in scope
	slots    int32    // the registers that they take, with those that loops keep
}

// resolve binds all names of a chunk.
func (u *unit) resolve(f *function) { u.within(nil, f) }

func (u *unit) within(outer *resolver, f *function) {
	r := &resolver{unit: u, outer: outer, function: f}
	r.enter(f.body)
	r.declare(f.params, f.body)
	r.statements(f.body)
}

func (r *resolver) enter(b *block) { b.base = r.slots }

func (r *resolver) leave(b *block) {
	for n := len(r.active); n > 0 && r.active[n-1].slot >= b.base; n-- {
		r.active = r.active[:n-1]
	}
	r.slots = b.base
}

func (r *resolver) declare(list *local, scope *block) {
	for l := list; l != nil; l = l.next {
		l.owner, l.scope, l.slot = r.function, scope, r.slots
		r.slots++
		r.active = append(r.active, l)
	}
}

func (r *resolver) block(b *block, locals *local) {
	r.enter(b)
	r.declare(locals, b)
	r.statements(b)
	r.leave(b)
}

func (r *resolver) statements(b *block) {
	for s := b.first; s != nil; s = s.next {
		r.spend()
		r.statement(s, b)
	}
}

func (r *resolver) statement(s *stmt, b *block) {
	switch s.kind {
	case stmtLocal:
		r.list(s.values)
		r.declare(s.locals, b)
	case stmtLocalFunction:
		r.declare(s.locals, b)
		r.list(s.values)
	case stmtDo:
		r.block(s.body, nil)
	case stmtWhile:
		r.list(s.values)
		r.block(s.body, nil)
	case stmtRepeat:
		r.enter(s.body)
		r.statements(s.body)
		r.list(s.values) // in the scope of the body
		r.leave(s.body)
	case stmtIf:
		for c := s.clauses; c != nil; c = c.next {
			r.spend()
			if c.condition != nil {
				r.expression(c.condition)
			}
			r.block(c.body, nil)
		}
	case stmtFor, stmtForIn:
		r.list(s.values)
		r.slots += hiddenSlots
		r.block(s.body, s.locals)
		r.slots -= hiddenSlots
	default:
		r.list(s.targets)
		r.list(s.values)
		for t := s.targets; t != nil; t = t.next {
			if t.kind == exprName && t.local != nil {
				t.local.assigned = true
			}
		}
	}
}

// hiddenSlots is the number of registers that a loop keeps below its variables.
const hiddenSlots = 3

func (r *resolver) list(e *expr) {
	for ; e != nil; e = e.next {
		r.expression(e)
	}
}

func (r *resolver) expression(e *expr) {
	switch e.kind {
	case exprName:
		r.spend()
		if l := r.find(e.text); l != nil {
			e.local = l
			e.variable, e.slot = r.bind(l, e.at)
		}
	case exprFunction:
		r.within(r, e.function)
	case exprNil, exprFalse, exprTrue, exprNumber, exprString, exprDots:
	default:
		if e.first != nil {
			r.expression(e.first)
		}
		if e.second != nil {
			r.expression(e.second)
		}
		r.list(e.list)
	}
}

// find returns the local variable with a name, of the function or of one around it.
func (r *resolver) find(name string) *local {
	for ; r != nil; r = r.outer {
		for i := len(r.active) - 1; i >= 0; i-- {
			if r.active[i].name == name {
				return r.active[i]
			}
		}
	}
	return nil
}

// bind returns where the function finds a local variable, which becomes an upvalue if
// it is that of another function.
func (r *resolver) bind(l *local, at point) (variable, int32) {
	if l.owner == r.function {
		return register, l.slot
	}
	for i, c := range r.function.captures {
		if c.local == l {
			return upvalue, int32(i)
		}
	}
	where, slot := r.outer.bind(l, at)
	l.scope.captured = true
	f := r.function
	if len(f.captures) == maxUpvalues {
		r.failAt(at, f.exceeded(maxUpvalues, "upvalues"), false)
	}
	f.captures = append(f.captures, captured{local: l, outer: where == upvalue, slot: slot})
	return upvalue, int32(len(f.captures) - 1)
}
