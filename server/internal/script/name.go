package script

import (
	"sort"

	lua "github.com/yuin/gopher-lua"
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

// nameOf returns the origin of the value of a register at an instruction, and its
// name. Both are empty if it has no name. It takes O(log n) for n instructions.
func nameOf(p *lua.FunctionProto, pc, reg int) (what, name string) {
	names := p.DbgCalls
	i := sort.Search(len(names), func(i int) bool { return names[i].Pc>>(registerBits+originBits) >= pc })
	for ; i < len(names) && names[i].Pc>>(registerBits+originBits) == pc; i++ {
		if names[i].Pc>>originBits&(1<<registerBits-1) == reg {
			return origin(names[i].Pc & (1<<originBits - 1)).String(), cString(names[i].Name)
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

// A value of and, or has the name that Lua gives it: of the operand which decides if
// each operand jumps, though the value may be that of another one. So an error may
// name a variable which has another value. An operand that is a local variable has no
// name then, nor has one that is true or false itself.

// chosen returns the name of the value of e, which is not an operand of and, or.
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
			if way, n := g.way(operand, !and, and, and); way == wayOut {
				return n
			}
		}
		e = e.last
	}
}

// A way is where an operand leads to if it jumps.
type way uint8

const (
	wayNo way = iota
	wayYes
	wayOut // its value is that of the whole
)

func wayOf(truth bool) way {
	if truth {
		return wayYes
	}
	return wayNo
}

// way returns where e leads to if each operand jumps that is not a constant, and the
// name of the value if that is wayOut. out tells for both outcomes whether the value
// is that of the whole then; next is the outcome that follows.
func (g *generator) way(e *expr, outYes, outNo, next bool) (way, naming) {
	if truth, ok := e.constant(); ok && truth == next {
		return wayOf(next), naming{}
	}
	out := outYes
	if next {
		out = outNo
	}
	switch e.kind {
	case exprParen:
		if g.isLogical(e) {
			return g.way(e.first, outYes, outNo, next)
		}
	case exprNot:
		to, _ := g.way(e.first, false, false, !next)
		if to == wayYes && outNo || to == wayNo && outYes {
			return wayOut, naming{}
		}
		return wayOf(to == wayNo), naming{}
	case exprAnd, exprOr:
		and := e.kind == exprAnd
		for operand := e.list; operand != e.last; operand = operand.next {
			to, n := g.way(operand, outYes && !and, outNo && and, and)
			if to != wayOf(and) {
				return to, n
			}
		}
		return g.way(e.last, outYes, outNo, next)
	}
	switch {
	case !out:
		return wayOf(!next), naming{}
	case e.kind == exprCompare, g.localOf(e) >= 0:
		return wayOut, naming{}
	}
	return wayOut, g.nameOf(e)
}
