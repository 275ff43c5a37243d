package compiler

import (
	"math"
	"reflect"
	"slices"

	lua "github.com/yuin/gopher-lua"
)

// Instruction is an instruction of gopher-lua's machine:
//
//	opcode 6 bits | A 8 | C 9 | B 9, or Bx 18
//
// A, and B and C without bitRK, are registers; B and C with bitRK are constants. A
// jump has its distance from the next instruction, plus maxJump, in Bx.
type Instruction uint32

func instruction(op, a, b, c int) Instruction {
	return Instruction(uint32(op)<<26 | uint32(a&0xff)<<18 | uint32(c&0x1ff)<<9 | uint32(b&0x1ff))
}

// Op returns the opcode.
func (i Instruction) Op() int { return int(i >> 26) }

// A returns the first operand: usually the register of the result.
func (i Instruction) A() int { return int(i>>18) & 0xff }

// B returns the second operand; see [Constant].
func (i Instruction) B() int { return int(i) & 0x1ff }

// C returns the third operand; see [Constant].
func (i Instruction) C() int { return int(i>>9) & 0x1ff }

func (i Instruction) bx() int { return int(i) & maxBx }

// Constant returns the index of the constant that an operand B or C is; false if the
// operand is a register.
func Constant(operand int) (index int, ok bool) { return operand &^ bitRK, operand&bitRK != 0 }

// Position returns the line and the index of an instruction, from the number that the
// prototype has as its line.
func Position(encoded int) (line, pc int) { return encoded >> positionBits, encoded & maxCode }

const (
	maxBx    = 1<<18 - 1
	maxJump  = maxBx >> 1
	maxC     = 1<<9 - 1
	bitRK    = 1 << 8
	maxRK    = bitRK - 1
	maxStack = 250 // registers of a function; gopher-lua counts them in a byte
	perFlush = 50  // elements of a constructor stored at a time
	multiple = -1  // results, as many as there are

	// A position is kept for each instruction: its line, and its index, so that an
	// error identifies the instruction that raised it.
	positionBits = 20
	maxCode      = 1<<positionBits - 1
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
	fixed lua.LValue
}

// Kinds of constants.
const (
	constNil byte = iota
	constFalse
	constTrue
	constNumber
	constText
	constJoin
	constLoop
	constMod
	constFixed
)

// manyConstants is a number of constants from which an index is faster than a search.
const manyConstants = 12

// assembler collects the instructions of a function. Jumps lead to labels until finish
// replaces them by distances.
type assembler struct {
	*unit
	code      []Instruction
	positions []int // for gopher-lua: see positionBits
	labels    []binding
	bound     []label // at the next instruction
	jumps     []jump
	barrier   int // the last position of a label
	stopped   int // the last position that is not reached from the instruction before
	moves     int // the first of the moves at the end
	constants []constant
	values    []lua.LValue
	index     map[constant]int // of constants, if there are many
	protos    []*lua.FunctionProto
	names     []lua.DbgCall // of operands: see name.go
	used      int           // registers
}

// reset empties the buffers and drops what they refer to.
func (a *assembler) reset() {
	clear(a.constants)
	clear(a.values)
	clear(a.protos)
	clear(a.names)
	*a = assembler{
		stopped: -1, moves: -1, used: 2, code: a.code[:0], positions: a.positions[:0], labels: a.labels[:0], bound: a.bound[:0], jumps: a.jumps[:0],
		constants: a.constants[:0], values: a.values[:0], protos: a.protos[:0], names: a.names[:0],
	}
}

func (a *assembler) pc() int { return len(a.code) }

func (a *assembler) emit(op, x, b, c int, at point) int {
	return a.word(instruction(op, x, b, c), at)
}

func (a *assembler) emitX(op, x, bx int, at point) int {
	return a.word(Instruction(uint32(op)<<26|uint32(x&0xff)<<18|uint32(bx&maxBx)), at)
}

// word adds an instruction.
func (a *assembler) word(i Instruction, at point) int {
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
	a.positions = append(a.positions, int(at.line)<<positionBits|pc)
	return pc
}

// move copies a register. Gopher-lua executes moves in a row together.
func (a *assembler) move(to, from int, at point) {
	if to == from {
		return
	}
	pc := a.emit(lua.OP_MOVE, to, from, 0, at)
	head := a.moves
	if head >= 0 && pc-head <= maxC && a.code[head].Op() == lua.OP_MOVEN && pc == head+1+a.code[head].C() ||
		head >= 0 && pc == head+1 && a.code[head].Op() == lua.OP_MOVE {
		in := a.code[head]
		a.code[head] = instruction(lua.OP_MOVEN, in.A(), in.B(), pc-head)
		return
	}
	a.moves = pc
}

// loadNil sets n registers to nil.
func (a *assembler) loadNil(from, n int, at point) {
	if pc := a.pc(); pc > 0 && a.barrier < pc && a.code[pc-1].Op() == lua.OP_LOADNIL {
		in := a.code[pc-1]
		if first, last := in.A(), in.B(); first <= from && from == last+1 {
			a.code[pc-1] = instruction(lua.OP_LOADNIL, first, from+n-1, 0)
			return
		}
	}
	a.emit(lua.OP_LOADNIL, from, from+n-1, 0, at)
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

// jump emits an instruction that leads to a label.
func (a *assembler) jump(op, x int, to label, at point) {
	a.jumps = append(a.jumps, jump{int32(a.emitX(op, x, maxJump, at)), to, at})
}

// jumpAt emits a jump whose instruction has a line of its own.
func (a *assembler) jumpAt(line int32, op, x int, to label, at point) {
	a.jump(op, x, to, point{line, at.next})
	a.jumps[len(a.jumps)-1].at = at
}

// leave continues at a label.
func (a *assembler) leave(to label, at point) {
	if a.reachable() {
		a.jump(lua.OP_JMP, 0, to, at)
		a.stopped = a.pc()
	}
}

// finish replaces labels by distances. A jump to an unconditional jump leads to its
// destination: later jumps are complete when earlier ones are looked at.
func (a *assembler) finish() {
	var far *point // where the first jump that is too far was complete
	for i := len(a.jumps) - 1; i >= 0; i-- {
		j := a.jumps[i]
		to := a.labels[j.to]
		pc, dest := int(j.pc), int(to.pc)
		if dest > pc && dest < len(a.code) && a.code[dest].Op() == lua.OP_JMP && a.code[pc].Op() == lua.OP_JMP {
			dest += 1 + a.code[dest].bx() - maxJump
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
		a.code[pc] = a.code[pc]&^maxBx | Instruction(distance+maxJump)&maxBx
	}
	if far != nil {
		a.failAt(*far, "control structure too long", true)
	}
}

// constant returns the index of a constant.
func (a *assembler) constant(c constant, at point) int {
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
	if n > maxBx {
		a.failAt(at, "constant table overflow", false)
	}
	a.constants = append(a.constants, c)
	a.values = append(a.values, a.value(c))
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

func (a *assembler) value(c constant) lua.LValue {
	switch c.kind {
	case constFalse:
		return lua.LFalse
	case constTrue:
		return lua.LTrue
	case constNumber:
		return lua.LNumber(math.Float64frombits(c.bits))
	case constText:
		return lua.LString(c.text)
	case constJoin:
		return a.Join
	case constLoop:
		return a.Loop
	case constMod:
		return a.Mod
	case constFixed:
		return c.fixed
	}
	return lua.LNil
}

func (a *assembler) text(s string, at point) int {
	return a.constant(constant{kind: constText, text: s}, at)
}

// proto returns gopher-lua's form of the function. The texts of its string constants
// are also kept in an unexported field, which is set by reflection: gopher-lua's own
// compiler fills it by comparing each constant with all others.
func (a *assembler) proto(f *function) *lua.FunctionProto {
	texts := make([]string, len(a.constants))
	for i := range a.constants {
		texts[i] = a.constants[i].text
	}
	code := make([]uint32, len(a.code))
	for i, in := range a.code {
		code[i] = uint32(in)
	}
	p := &lua.FunctionProto{
		SourceName: a.chunk, LineDefined: int(f.line), LastLineDefined: int(f.lastLine),
		NumUpvalues: uint8(len(f.captures)), NumParameters: uint8(f.fixed), IsVarArg: f.vararg, NumUsedRegisters: uint8(a.used),
		Code: code, Constants: slices.Clone(a.values), FunctionPrototypes: slices.Clone(a.protos),
		DbgSourcePositions: slices.Clone(a.positions), DbgCalls: slices.Clone(a.names),
	}
	field := reflect.ValueOf(p).Elem().FieldByName("stringConstants")
	*(*[]string)(field.Addr().UnsafePointer()) = texts
	return p
}
