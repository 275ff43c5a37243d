package compiler

import (
	"slices"

	"github.com/zsetd/zsetd/server/internal/lua"
	"github.com/zsetd/zsetd/server/internal/lua/conv"
)

// naming is what errors call an operand: by its origin, such as a local variable, and
// its name. The zero value is an operand without a name.
type naming struct {
	origin lua.Origin
	name   string
}

// note records the name of a register that is an operand of an instruction.
func (a *assembler) note(pc, reg int, n naming) {
	if n.origin != lua.Unnamed && reg < lua.FirstConstant {
		a.names = append(a.names, lua.MakeName(pc, reg, n.origin, a.textIndex(conv.CString(n.name))))
	}
}

// recentTexts is the number of names that are compared with a new one.
const recentTexts = 32

// textIndex returns the index of a name in texts. It is added unless it is one of the last.
func (a *assembler) textIndex(name string) int {
	first := max(len(a.texts)-recentTexts, 0)
	if i := slices.Index(a.texts[first:], name); i >= 0 {
		return first + i
	}
	a.texts = append(a.texts, name)
	return len(a.texts) - 1
}

// nameOf returns what errors call the value of an expression.
func (g *generator) nameOf(e *expr) naming {
	switch e.kind {
	case exprName:
		return naming{[...]lua.Origin{global: lua.Global, register: lua.Local, upvalue: lua.Upvalue}[e.variable], e.text}
	case exprParen:
		return g.nameOf(e.first)
	case exprSuffix:
		if e.last.kind == exprIndex {
			return g.fieldName(e.last.first)
		}
	case exprAnd, exprOr:
		return g.chosen(e)
	}
	return naming{}
}

// fieldName returns the name of a field with a key.
func (g *generator) fieldName(key *expr) naming {
	if key.kind == exprString && g.text(key.text, key.use) <= lastConstant {
		return naming{lua.Field, key.text}
	}
	return naming{lua.Field, "?"}
}

// chosen returns the name of the value of and, or.
//
// It is the name that Lua gives it: of the last operand, if the code leads there when
// each operand before jumps that is not a constant. So an error may name a variable
// which has another value, or none.
func (g *generator) chosen(e *expr) naming {
	for {
		switch {
		case e.kind == exprParen && g.isLogical(e):
			e = e.first
			continue
		case e.kind != exprAnd && e.kind != exprOr:
			return g.nameOf(e)
		}
		and := e.kind == exprAnd
		for operand := e.list; operand != e.last; operand = operand.next {
			if g.jumps(operand, and) != and {
				return naming{} // the value is that of the operand
			}
		}
		e = e.last
	}
}

// jumps returns to which of its outcomes a condition leads if each operand jumps that
// is not a constant. next is the outcome that follows it.
func (g *generator) jumps(e *expr, next bool) bool {
	if truth, ok := e.constant(); ok {
		return truth
	}
	switch {
	case e.kind == exprParen && g.isLogical(e):
		return g.jumps(e.first, next)
	case e.kind == exprNot:
		return !g.jumps(e.first, !next)
	case e.kind == exprAnd || e.kind == exprOr:
		and := e.kind == exprAnd
		for operand := e.list; operand != e.last; operand = operand.next {
			if g.jumps(operand, and) != and {
				return !and
			}
		}
		return g.jumps(e.last, next)
	}
	return !next
}
