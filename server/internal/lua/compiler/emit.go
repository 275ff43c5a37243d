package compiler

import (
	"math"
	"slices"

	"github.com/zsetd/zsetd/server/internal/lua"
)

const (
	maxStack = 250       // registers of a function
	perFlush = 50        // elements of a constructor stored at a time
	multiple = -1        // arguments or results, as many as there are
	maxCode  = 1<<20 - 1 // instructions of a function

	// Limits of Lua's instructions that programs can observe.
	maxConstants = 1 << 18
	maxJump      = 1<<17 - 1
	lastConstant = 255                           // of those that are operands in Lua: others have no name
	maxOperand   = 1<<16 - 2 - lua.FirstConstant // constants that are operands here
	maxIndex     = 1<<15 - 1                     // of an element that an instruction contains
)

// label is a position in the code that jumps lead to, known when it is bound.
type label int32

// binding is the position of a label, -1 before it is bound, and the point of the
// instruction there.
type binding struct {
	pc int32
	at point
}

// jump is an instruction that leads to a label.
type jump struct {
	pc int32
	to label
	at point
}

// constant identifies a constant: a text, the bits of a number, a fixed value, or another
// value by its kind alone.
type constant struct {
	kind  byte
	bits  uint64
	text  string
	fixed lua.Value
}

// Kinds of constants.
const (
	constNil byte = iota
	constFalse
	constTrue
	constNumber
	constText
	constFixed
)

// manyConstants is a number of constants from which an index is faster than a search.
const manyConstants = 12

// assembler collects the instructions of a function. Jumps lead to labels until finish
// replaces them by distances.
type assembler struct {
	*unit
	code      []lua.Instruction
	lines     []lua.Line
	labels    []binding
	bound     []label // at the next instruction
	jumps     []jump
	barrier   int // the last position of a label
	stopped   int // the last position that is not reached from the instruction before
	constants []constant
	values    []lua.Value
	index     map[constant]int // of constants, if there are many
	protos    []*lua.Proto
	names     []lua.Name // of operands: see name.go
	texts     []string
	used      int // registers
}

// reset empties the buffers and drops what they refer to.
func (a *assembler) reset() {
	clear(a.constants)
	clear(a.values)
	clear(a.protos)
	clear(a.texts)
	*a = assembler{
		stopped: -1, used: 2, code: a.code[:0], lines: a.lines[:0], labels: a.labels[:0], bound: a.bound[:0], jumps: a.jumps[:0],
		constants: a.constants[:0], values: a.values[:0], protos: a.protos[:0], names: a.names[:0], texts: a.texts[:0],
	}
}

func (a *assembler) pc() int { return len(a.code) }

// emit adds an instruction with the operands A, B and C. C may be multiple, as may B.
func (a *assembler) emit(op lua.Op, x, b, c int, at point) int {
	return a.add(lua.Make(op, x, b, c), at)
}

// emitD adds an instruction with the operands A, B and D.
func (a *assembler) emitD(op lua.Op, x, b, d int, at point) int {
	return a.add(lua.MakeD(op, x, b, d), at)
}

// count returns a number of arguments or results as an operand.
func count(n int) int {
	if n == multiple {
		return lua.Many
	}
	return n
}

func (a *assembler) add(i lua.Instruction, at point) int {
	a.spend()
	pc := len(a.code)
	if pc >= maxCode {
		a.failAt(at, "code size overflow", false)
	}
	for _, l := range a.bound {
		a.labels[l].at = at
	}
	a.bound = a.bound[:0]
	a.code = append(a.code, i)
	if n := len(a.lines); n == 0 || a.lines[n-1].Line != at.line {
		a.lines = append(a.lines, lua.Line{PC: int32(pc), Line: at.line})
	}
	return pc
}

// move copies a register.
func (a *assembler) move(to, from int, at point) {
	if to != from {
		a.emit(lua.OpMove, to, from, 0, at)
	}
}

// loadNil sets n registers to nil.
func (a *assembler) loadNil(from, n int, at point) {
	if pc := a.pc(); pc > 0 && a.barrier < pc && a.code[pc-1].Op() == lua.OpNil {
		in := a.code[pc-1]
		if first, last := in.A(), in.B(); first <= from && from == last+1 {
			a.code[pc-1] = lua.Make(lua.OpNil, first, from+n-1, 0)
			return
		}
	}
	a.emit(lua.OpNil, from, from+n-1, 0, at)
}

func (a *assembler) newLabel() label {
	a.labels = append(a.labels, binding{pc: -1})
	return label(len(a.labels) - 1)
}

// bind puts a label here.
func (a *assembler) bind(l label, at point) {
	a.labels[l] = binding{int32(a.pc()), at}
	a.bound = append(a.bound, l)
	a.barrier = a.pc()
}

// here returns a new label that is bound here.
func (a *assembler) here(at point) label {
	l := a.newLabel()
	a.bind(l, at)
	return l
}

// reachable reports whether the next instruction can be reached.
func (a *assembler) reachable() bool { return a.stopped != a.pc() || a.barrier == a.pc() }

// jump emits an instruction that leads to a label, with the operands A and B.
func (a *assembler) jump(op lua.Op, x, b int, to label, at point) int {
	pc := a.emitD(op, x, b, 0, at)
	a.jumps = append(a.jumps, jump{int32(pc), to, at})
	return pc
}

// jumpAt emits a jump whose instruction has a line of its own.
func (a *assembler) jumpAt(line int32, op lua.Op, x, b int, to label, at point) int {
	pc := a.jump(op, x, b, to, point{line, at.next})
	a.jumps[len(a.jumps)-1].at = at
	return pc
}

// leave continues at a label.
func (a *assembler) leave(to label, at point) {
	if a.reachable() {
		a.jump(lua.OpJump, 0, 0, to, at)
		a.stopped = a.pc()
	}
}

// finish replaces labels by distances. A jump to an unconditional jump leads to its
// destination: later jumps are complete when earlier ones are looked at. Those of
// "and" and "or" lead forward only, as the machine does not look there whether the script must end.
func (a *assembler) finish() {
	var far *point // where the first jump that is too far was complete
	for i := len(a.jumps) - 1; i >= 0; i-- {
		j := a.jumps[i]
		to := a.labels[j.to]
		pc, dest := int(j.pc), int(to.pc)
		in := a.code[pc]
		if dest > pc && dest < len(a.code) && a.code[dest].Op() == lua.OpJump && in.Op() != lua.OpAnd && in.Op() != lua.OpOr {
			dest += 1 + a.code[dest].D()
		}
		distance := dest - (pc + 1)
		if max(distance, -distance) > maxJump {
			at := j.at
			if to.at.next > at.next {
				at = to.at
			}
			if far == nil || at.next < far.next {
				far = &at
			}
		}
		a.code[pc] = lua.MakeD(in.Op(), in.A(), in.B(), distance)
	}
	if far != nil {
		a.failAt(*far, "control structure too long", true)
	}
}

// constant returns the index of a constant. As in Lua, 0 and -0 are the same one: the first.
func (a *assembler) constant(c constant, at point) int {
	value := c.value()
	if c.kind == constNumber && c.bits == 1<<63 {
		c.bits = 0
	}
	if a.index == nil {
		for i := range a.constants {
			if k := &a.constants[i]; k.kind == c.kind && k.bits == c.bits && k.text == c.text && k.fixed == c.fixed {
				return i
			}
		}
	} else if i, ok := a.index[c]; ok {
		return i
	}
	n := len(a.constants)
	if n >= maxConstants {
		a.failAt(at, "constant table overflow", false)
	}
	a.constants = append(a.constants, c)
	a.values = append(a.values, value)
	if a.index != nil {
		a.index[c] = n
	} else if n >= manyConstants {
		a.index = make(map[constant]int, 4*n)
		for i, c := range a.constants {
			a.index[c] = i
		}
	}
	return n
}

func (c *constant) value() lua.Value {
	switch c.kind {
	case constFalse:
		return lua.False
	case constTrue:
		return lua.True
	case constNumber:
		return lua.Number(math.Float64frombits(c.bits))
	case constText:
		return lua.Text(c.text)
	}
	return c.fixed
}

func (a *assembler) text(s string, at point) int {
	return a.constant(constant{kind: constText, text: s}, at)
}

// proto returns the function.
func (a *assembler) proto(f *function) *lua.Proto {
	p := &lua.Proto{
		Source: a.chunk, Params: f.fixed, Registers: a.used,
		Vararg: f.vararg != 0, NeedsArg: f.vararg&needsArg != 0,
		Code: slices.Clone(a.code), Constants: slices.Clone(a.values), Protos: slices.Clone(a.protos),
		Lines: slices.Clone(a.lines), Names: slices.Clone(a.names), Texts: slices.Clone(a.texts),
	}
	for _, c := range f.captures {
		p.Upvalues = append(p.Upvalues, lua.Capture{Outer: c.outer, Index: uint8(c.slot)})
	}
	return p
}
