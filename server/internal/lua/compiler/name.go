package compiler

import (
	"sort"

	lua "github.com/yuin/gopher-lua"
	"github.com/zsetd/zsetd/server/internal/lua/conv"
)

// naming is what errors call an operand: by its origin, such as a local variable, and
// its name. The zero value is an operand without a name.
//
// The names are a table from instruction and register that the generator writes. It is
// stored in the field DbgCalls of gopher-lua's prototypes, which nothing else reads, in
// ascending order of the instructions.
type naming struct {
	origin origin
	name   string
}

type origin uint8

const (
	unnamed origin = iota
	namedLocal
	namedUpvalue
	namedGlobal
	namedField
	namedMethod
)

func (o origin) String() string {
	return [...]string{"", "local", "upvalue", "global", "field", "method"}[o]
}

const (
	originBits   = 8
	registerBits = 8
)

// note records the name of an operand of an instruction. The operand is a register; a
// constant has no name.
func (a *assembler) note(pc, reg int, n naming) {
	if n.origin != unnamed && reg&bitRK == 0 {
		a.names = append(a.names, lua.DbgCall{Name: n.name, Pc: (pc<<registerBits|reg)<<originBits | int(n.origin)})
	}
}

// NameOf returns the origin of the value of a register at an instruction, such as
// "local" or "field", and its name. Both are empty if it has no name. It takes O(log n) for n instructions.
func NameOf(p *lua.FunctionProto, pc, reg int) (what, name string) {
	names := p.DbgCalls
	i := sort.Search(len(names), func(i int) bool { return names[i].Pc>>(registerBits+originBits) >= pc })
	for ; i < len(names) && names[i].Pc>>(registerBits+originBits) == pc; i++ {
		if names[i].Pc>>originBits&(1<<registerBits-1) == reg {
			return origin(names[i].Pc & (1<<originBits - 1)).String(), conv.CString(names[i].Name)
		}
	}
	return "", ""
}

// nameOf returns what errors call the value of an expression.
func (g *generator) nameOf(e *expr) naming {
	switch e.kind {
	case exprName:
		return naming{[...]origin{global: namedGlobal, register: namedLocal, upvalue: namedUpvalue}[e.variable], e.text}
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
	if key.kind == exprString && g.text(key.text, key.use) <= maxRK {
		return naming{namedField, key.text}
	}
	return naming{namedField, "?"}
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
