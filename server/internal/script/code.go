package script

import (
	"math"
	"reflect"

	lua "github.com/yuin/gopher-lua"
)

// The instructions of gopher-lua's machine: those of Lua 5.1 with the fields in
// other positions, and variants for keys that are constant strings.
//
//	opcode 6 bits | A 8 | C 9 | B 9, or Bx 18
func instruction(op, a, b, c int) uint32 {
	return uint32(op)<<26 | uint32(a&0xff)<<18 | uint32(c&0x1ff)<<9 | uint32(b&0x1ff)
}

func instructionX(op, a, bx int) uint32 {
	return uint32(op)<<26 | uint32(a&0xff)<<18 | uint32(bx&0x3ffff)
}

func opOf(i uint32) int { return int(i >> 26) }
func aOf(i uint32) int  { return int(i>>18) & 0xff }
func bOf(i uint32) int  { return int(i) & 0x1ff }
func cOf(i uint32) int  { return int(i>>9) & 0x1ff }
func bxOf(i uint32) int { return int(i) & 0x3ffff }

const (
	maxBx       = 1<<18 - 1
	maxSbx      = maxBx >> 1
	maxC        = 1<<9 - 1
	bitRK       = 1 << 8
	maxRK       = bitRK - 1
	noJump      = -1
	noReg       = 255
	maxStack    = 250 // registers of a function; gopher-lua counts them in a byte
	maxVars     = 200
	maxUpvalues = 60
	maxLevels   = 200 // of nested syntax
	perFlush    = 50  // elements of a constructor stored at a time
	multiple    = -1  // results, as many as there are

	// A position is kept for each instruction: its line, and its index, so that an
	// error identifies the instruction that raised it.
	positionBits = 20
	maxCode      = 1<<positionBits - 1
)

type kind uint8

const (
	kVoid kind = iota
	kNil
	kTrue
	kFalse
	kConst     // info: index of a constant
	kNumber    // number
	kLocal     // info: register
	kUpvalue   // info: index
	kGlobal    // info: index of a constant
	kIndexed   // info: register of the table, aux: RK of the key
	kJump      // info: pc
	kRelocable // info: pc
	kNonReloc  // info: register
	kCall      // info: pc
	kVararg    // info: pc
)

// expr is an expression that may not be in a register yet.
type expr struct {
	kind      kind
	info, aux int
	number    float64
	t, f      int // jumps out when true, and when false
}

func newExpr(k kind, info int) expr { return expr{kind: k, info: info, t: noJump, f: noJump} }

func (e *expr) hasJumps() bool  { return e.t != e.f }
func (e *expr) isNumeral() bool { return e.kind == kNumber && e.t == noJump && e.f == noJump }
func (e *expr) multiple() bool  { return e.kind == kCall || e.kind == kVararg }

type constKey struct {
	kind byte
	text string
	bits uint64
}

type local struct {
	name       string
	start, end int
}

type upvalue struct {
	name  string
	local bool // of the enclosing function; else an upvalue of it
	info  int
}

type block struct {
	outer     *block
	breaks    int
	active    int
	upvalue   bool
	breakable bool
}

// intrinsics are functions that compiled code calls where gopher-lua's instructions
// differ from Lua's.
type intrinsics struct {
	join *lua.LFunction // concatenates its arguments
	loop *lua.LFunction // converts the three values of a for statement to numbers
	mod  *lua.LFunction // the remainder
}

// function is a function during its compilation: Lua's lcode.c.
type function struct {
	x     *lexer
	outer *function
	intrinsics
	protos  []*lua.FunctionProto
	code    []uint32
	lines   []int
	consts  []lua.LValue
	indexes map[constKey]int
	locals  []local
	active  []int // indexes of locals
	ups     []upvalue
	block   *block
	target  int // last position that is a jump target
	pending int // jumps to the next instruction
	free    int // first free register
	stack   int // registers in use
	params  int
	vararg  uint8
	line    int // where it begins
	last    int // where it ends
}

func (fs *function) pc() int { return len(fs.code) }

func (fs *function) emit(i uint32) int { return fs.emitAt(i, fs.x.lastLine) }

func (fs *function) emitAt(i uint32, line int) int {
	fs.patchTo(fs.pending, fs.pc(), noReg, fs.pc())
	fs.pending = noJump
	if fs.pc() >= maxCode {
		fs.x.fail("code size overflow", 0)
	}
	fs.code = append(fs.code, i)
	fs.lines = append(fs.lines, line)
	return fs.pc() - 1
}

func (fs *function) abc(op, a, b, c int) int { return fs.emit(instruction(op, a, b, c)) }
func (fs *function) abx(op, a, bx int) int   { return fs.emit(instructionX(op, a, bx)) }

func (fs *function) setA(pc, a int) { fs.code[pc] = fs.code[pc]&^(0xff<<18) | uint32(a&0xff)<<18 }
func (fs *function) setB(pc, b int) { fs.code[pc] = fs.code[pc]&^0x1ff | uint32(b&0x1ff) }
func (fs *function) setC(pc, c int) { fs.code[pc] = fs.code[pc]&^(0x1ff<<9) | uint32(c&0x1ff)<<9 }
func (fs *function) fixLine(line int) {
	fs.lines[fs.pc()-1] = line
}

func (fs *function) loadNil(from, n int) {
	if pc := fs.pc(); pc > fs.target && pc > 0 {
		prev := fs.code[pc-1]
		if opOf(prev) == lua.OP_LOADNIL {
			if a, b := aOf(prev), bOf(prev); a <= from && from <= b+1 {
				if from+n-1 > b {
					fs.setB(pc-1, from+n-1)
				}
				return
			}
		}
	}
	fs.abc(lua.OP_LOADNIL, from, from+n-1, 0)
}

func (fs *function) jump() int {
	pending := fs.pending
	fs.pending = noJump
	j := fs.abx(lua.OP_JMP, 0, noJump+maxSbx)
	fs.concat(&j, pending)
	return j
}

func (fs *function) ret(first, n int) { fs.abc(lua.OP_RETURN, first, n+1, 0) }

func (fs *function) condJump(op, a, b, c int) int {
	fs.abc(op, a, b, c)
	return fs.jump()
}

func (fs *function) fixJump(pc, dest int) {
	offset := dest - (pc + 1)
	if max(offset, -offset) > maxSbx {
		fs.x.syntax("control structure too long")
	}
	fs.code[pc] = fs.code[pc]&^maxBx | uint32(offset+maxSbx)
}

func (fs *function) label() int {
	fs.target = fs.pc()
	return fs.pc()
}

func (fs *function) nextJump(pc int) int {
	fs.x.jumps++
	offset := bxOf(fs.code[pc]) - maxSbx
	if offset == noJump {
		return noJump
	}
	return pc + 1 + offset
}

func isTest(op int) bool {
	switch op {
	case lua.OP_EQ, lua.OP_LT, lua.OP_LE, lua.OP_TEST, lua.OP_TESTSET:
		return true
	}
	return false
}

func (fs *function) jumpControl(pc int) *uint32 {
	if pc >= 1 && isTest(opOf(fs.code[pc-1])) {
		return &fs.code[pc-1]
	}
	return &fs.code[pc]
}

func (fs *function) needValue(list int) bool {
	for ; list != noJump; list = fs.nextJump(list) {
		if opOf(*fs.jumpControl(list)) != lua.OP_TESTSET {
			return true
		}
	}
	return false
}

func (fs *function) patchTest(node, reg int) bool {
	i := fs.jumpControl(node)
	if opOf(*i) != lua.OP_TESTSET {
		return false
	}
	if reg != noReg && reg != bOf(*i) {
		*i = *i&^(0xff<<18) | uint32(reg)<<18
	} else {
		*i = instruction(lua.OP_TEST, bOf(*i), 0, cOf(*i))
	}
	return true
}

func (fs *function) removeValues(list int) {
	for ; list != noJump; list = fs.nextJump(list) {
		fs.patchTest(list, noReg)
	}
}

func (fs *function) patchTo(list, values, reg, target int) {
	for list != noJump {
		next := fs.nextJump(list)
		if fs.patchTest(list, reg) {
			fs.fixJump(list, values)
		} else {
			fs.fixJump(list, target)
		}
		list = next
	}
}

func (fs *function) patch(list, target int) {
	if target == fs.pc() {
		fs.patchHere(list)
	} else {
		fs.patchTo(list, target, noReg, target)
	}
}

func (fs *function) patchHere(list int) {
	fs.label()
	fs.concat(&fs.pending, list)
}

// concat puts the jumps of l2 into the list l1. It goes to the end of the shorter list:
// the order in a list means nothing, and a long chain of elseif, or, and adds its jumps
// one by one.
func (fs *function) concat(l1 *int, l2 int) {
	switch {
	case l2 == noJump:
	case *l1 == noJump:
		*l1 = l2
	default:
		a, b := *l1, l2
		for {
			nextA, nextB := fs.nextJump(a), fs.nextJump(b)
			if nextA == noJump {
				fs.fixJump(a, l2)
				return
			}
			if nextB == noJump {
				fs.fixJump(b, *l1)
				*l1 = l2
				return
			}
			a, b = nextA, nextB
		}
	}
}

func (fs *function) checkStack(n int) {
	if fs.free+n > fs.stack {
		if fs.free+n >= maxStack {
			fs.x.syntax("function or expression too complex")
		}
		fs.stack = fs.free + n
	}
}

func (fs *function) reserve(n int) {
	fs.checkStack(n)
	fs.free += n
}

func (fs *function) freeReg(reg int) {
	if reg&bitRK == 0 && reg >= len(fs.active) {
		fs.free--
	}
}

func (fs *function) freeExpr(e *expr) {
	if e.kind == kNonReloc {
		fs.freeReg(e.info)
	}
}

func (fs *function) constant(k constKey, v lua.LValue) int {
	if i, ok := fs.indexes[k]; ok {
		return i
	}
	if len(fs.consts) > maxBx {
		fs.x.fail("constant table overflow", 0)
	}
	fs.indexes[k] = len(fs.consts)
	fs.consts = append(fs.consts, v)
	return len(fs.consts) - 1
}

func (fs *function) stringConst(s string) int {
	return fs.constant(constKey{'s', s, 0}, lua.LString(s))
}

func (fs *function) numberConst(f float64) int {
	return fs.constant(constKey{'n', "", math.Float64bits(f)}, lua.LNumber(f))
}

func (fs *function) isString(rk int) bool {
	if rk&bitRK == 0 {
		return false
	}
	_, ok := fs.consts[rk&^bitRK].(lua.LString)
	return ok
}

func (fs *function) setReturns(e *expr, n int) {
	switch e.kind {
	case kCall:
		fs.setC(e.info, n+1)
	case kVararg:
		fs.setB(e.info, n+1)
		fs.setA(e.info, fs.free)
		fs.reserve(1)
	}
}

func (fs *function) setOneReturn(e *expr) {
	switch e.kind {
	case kCall:
		e.kind, e.info = kNonReloc, aOf(fs.code[e.info])
	case kVararg:
		fs.setB(e.info, 2)
		e.kind = kRelocable
	}
}

func (fs *function) dischargeVars(e *expr) {
	switch e.kind {
	case kLocal:
		e.kind = kNonReloc
	case kUpvalue:
		e.info, e.kind = fs.abc(lua.OP_GETUPVAL, 0, e.info, 0), kRelocable
	case kGlobal:
		e.info, e.kind = fs.abx(lua.OP_GETGLOBAL, 0, e.info), kRelocable
	case kIndexed:
		fs.freeReg(e.aux)
		fs.freeReg(e.info)
		op := lua.OP_GETTABLE
		if fs.isString(e.aux) {
			op = lua.OP_GETTABLEKS
		}
		e.info, e.kind = fs.abc(op, 0, e.info, e.aux), kRelocable
	case kVararg, kCall:
		fs.setOneReturn(e)
	}
}

func (fs *function) codeLabel(a, b, skip int) int {
	fs.label()
	return fs.abc(lua.OP_LOADBOOL, a, b, skip)
}

func (fs *function) toReg(e *expr, reg int) {
	fs.dischargeVars(e)
	switch e.kind {
	case kNil:
		fs.loadNil(reg, 1)
	case kTrue:
		fs.abc(lua.OP_LOADBOOL, reg, 1, 0)
	case kFalse:
		fs.abc(lua.OP_LOADBOOL, reg, 0, 0)
	case kConst:
		fs.abx(lua.OP_LOADK, reg, e.info)
	case kNumber:
		fs.abx(lua.OP_LOADK, reg, fs.numberConst(e.number))
	case kRelocable:
		fs.setA(e.info, reg)
	case kNonReloc:
		if reg != e.info {
			fs.abc(lua.OP_MOVE, reg, e.info, 0)
		}
	default:
		return
	}
	e.info, e.kind = reg, kNonReloc
}

func (fs *function) toAny(e *expr) {
	if e.kind != kNonReloc {
		fs.reserve(1)
		fs.toReg(e, fs.free-1)
	}
}

func (fs *function) exprToReg(e *expr, reg int) {
	fs.toReg(e, reg)
	if e.kind == kJump {
		fs.concat(&e.t, e.info)
	}
	if e.hasJumps() {
		pf, pt := noJump, noJump
		if fs.needValue(e.t) || fs.needValue(e.f) {
			fj := noJump
			if e.kind != kJump {
				fj = fs.jump()
			}
			pf = fs.codeLabel(reg, 0, 1)
			pt = fs.codeLabel(reg, 1, 0)
			fs.patchHere(fj)
		}
		final := fs.label()
		fs.patchTo(e.f, final, reg, pf)
		fs.patchTo(e.t, final, reg, pt)
	}
	e.t, e.f = noJump, noJump
	e.info, e.kind = reg, kNonReloc
}

func (fs *function) nextReg(e *expr) {
	fs.dischargeVars(e)
	fs.freeExpr(e)
	fs.reserve(1)
	fs.exprToReg(e, fs.free-1)
}

func (fs *function) anyReg(e *expr) int {
	fs.dischargeVars(e)
	if e.kind == kNonReloc {
		if !e.hasJumps() {
			return e.info
		}
		if e.info >= len(fs.active) {
			fs.exprToReg(e, e.info)
			return e.info
		}
	}
	fs.nextReg(e)
	return e.info
}

func (fs *function) value(e *expr) {
	if e.hasJumps() {
		fs.anyReg(e)
	} else {
		fs.dischargeVars(e)
	}
}

func (fs *function) rk(e *expr) int {
	fs.value(e)
	switch e.kind {
	case kNumber, kTrue, kFalse, kNil:
		if len(fs.consts) > maxRK {
			break
		}
		switch e.kind {
		case kNumber:
			e.info = fs.numberConst(e.number)
		case kTrue:
			e.info = fs.constant(constKey{kind: 't'}, lua.LTrue)
		case kFalse:
			e.info = fs.constant(constKey{kind: 'f'}, lua.LFalse)
		default:
			e.info = fs.constant(constKey{kind: '0'}, lua.LNil)
		}
		e.kind = kConst
		return e.info | bitRK
	case kConst:
		if e.info <= maxRK {
			return e.info | bitRK
		}
	}
	return fs.anyReg(e)
}

func (fs *function) store(v, e *expr) {
	switch v.kind {
	case kLocal:
		fs.dischargeVars(e)
		fs.freeExpr(e)
		fs.exprToReg(e, v.info)
		return
	case kUpvalue:
		fs.abc(lua.OP_SETUPVAL, fs.anyReg(e), v.info, 0)
	case kGlobal:
		fs.abx(lua.OP_SETGLOBAL, fs.anyReg(e), v.info)
	case kIndexed:
		fs.setTable(v.info, v.aux, fs.rk(e))
	}
	fs.freeExpr(e)
}

func (fs *function) setTable(table, key, value int) {
	op := lua.OP_SETTABLE
	if fs.isString(key) {
		op = lua.OP_SETTABLEKS
	}
	fs.abc(op, table, key, value)
}

func (fs *function) self(e, key *expr) {
	fs.anyReg(e)
	fs.freeExpr(e)
	reg := fs.free
	fs.reserve(2)
	fs.abc(lua.OP_SELF, reg, e.info, fs.rk(key))
	fs.freeExpr(key)
	e.info, e.kind = reg, kNonReloc
}

func (fs *function) invert(e *expr) {
	i := fs.jumpControl(e.info)
	*i ^= 1 << 18
}

func (fs *function) jumpOn(e *expr, cond int) int {
	if e.kind == kRelocable {
		if i := fs.code[e.info]; opOf(i) == lua.OP_NOT {
			fs.code, fs.lines = fs.code[:fs.pc()-1], fs.lines[:fs.pc()-1]
			return fs.condJump(lua.OP_TEST, bOf(i), 0, 1-cond)
		}
	}
	fs.toAny(e)
	fs.freeExpr(e)
	return fs.condJump(lua.OP_TESTSET, noReg, e.info, cond)
}

func (fs *function) goIfTrue(e *expr) {
	fs.dischargeVars(e)
	pc := noJump
	switch e.kind {
	case kConst, kNumber, kTrue:
	case kJump:
		fs.invert(e)
		pc = e.info
	default:
		pc = fs.jumpOn(e, 0)
	}
	fs.concat(&e.f, pc)
	fs.patchHere(e.t)
	e.t = noJump
}

func (fs *function) goIfFalse(e *expr) {
	fs.dischargeVars(e)
	pc := noJump
	switch e.kind {
	case kNil, kFalse:
	case kJump:
		pc = e.info
	default:
		pc = fs.jumpOn(e, 1)
	}
	fs.concat(&e.t, pc)
	fs.patchHere(e.f)
	e.f = noJump
}

func (fs *function) not(e *expr) {
	fs.dischargeVars(e)
	switch e.kind {
	case kNil, kFalse:
		e.kind = kTrue
	case kConst, kNumber, kTrue:
		e.kind = kFalse
	case kJump:
		fs.invert(e)
	default:
		fs.toAny(e)
		fs.freeExpr(e)
		e.info, e.kind = fs.abc(lua.OP_NOT, 0, e.info, 0), kRelocable
	}
	e.t, e.f = e.f, e.t
	fs.removeValues(e.f)
	fs.removeValues(e.t)
}

func (fs *function) indexed(t, key *expr) {
	t.aux, t.kind = fs.rk(key), kIndexed
}

// fold computes a constant, if the result can be written as a constant: neither a
// division by zero nor NaN.
func fold(op int, a, b float64) (float64, bool) {
	if b == 0 && (op == lua.OP_DIV || op == lua.OP_MOD) {
		return 0, false
	}
	r, known := calculate(op, a, b)
	return r, known && r == r
}

func (fs *function) arith(op int, e1, e2 *expr) {
	if e1.isNumeral() && e2.isNumeral() {
		if r, ok := fold(op, e1.number, e2.number); ok {
			e1.number = r
			return
		}
	}
	o2 := 0
	if op != lua.OP_UNM && op != lua.OP_LEN {
		o2 = fs.rk(e2)
	}
	o1 := fs.rk(e1)
	if o1 > o2 {
		fs.freeExpr(e1)
		fs.freeExpr(e2)
	} else {
		fs.freeExpr(e2)
		fs.freeExpr(e1)
	}
	e1.info, e1.kind = fs.abc(op, 0, o1, o2), kRelocable
}

func (fs *function) compare(op, cond int, e1, e2 *expr) {
	o1, o2 := fs.rk(e1), fs.rk(e2)
	fs.freeExpr(e2)
	fs.freeExpr(e1)
	if cond == 0 && op != lua.OP_EQ {
		o1, o2, cond = o2, o1, 1
	}
	e1.info, e1.kind = fs.condJump(op, cond, o1, o2), kJump
}

func (fs *function) prefix(op token, e *expr) {
	zero := expr{kind: kNumber, t: noJump, f: noJump}
	switch op {
	case '-':
		if !e.isNumeral() {
			fs.anyReg(e)
		}
		fs.arith(lua.OP_UNM, e, &zero)
	case tokenNot:
		fs.not(e)
	case '#':
		fs.anyReg(e)
		fs.arith(lua.OP_LEN, e, &zero)
	}
}

func (fs *function) infix(op token, e *expr) {
	switch op {
	case tokenAnd:
		fs.goIfTrue(e)
	case tokenOr:
		fs.goIfFalse(e)
	case '+', '-', '*', '/', '%', '^':
		if !e.isNumeral() {
			fs.rk(e)
		}
	default:
		fs.rk(e)
	}
}

// openCall puts an intrinsic, followed by e, into the next registers, and returns
// the first.
func (fs *function) openCall(kind byte, intrinsic *lua.LFunction, e *expr) int {
	join := fs.constant(constKey{kind: kind}, intrinsic)
	fs.value(e)
	switch {
	case e.kind == kNonReloc && e.info >= len(fs.active): // a temporary, so the last register
		reg := e.info
		fs.reserve(1)
		fs.abc(lua.OP_MOVE, reg+1, reg, 0)
		fs.abx(lua.OP_LOADK, reg, join)
		return reg
	case e.kind == kRelocable || e.kind == kJump: // its instruction exists, and takes no register
		fs.reserve(2)
		reg := fs.free - 2
		fs.exprToReg(e, reg+1)
		fs.abx(lua.OP_LOADK, reg, join)
		return reg
	}
	fs.reserve(1)
	reg := fs.free - 1
	fs.abx(lua.OP_LOADK, reg, join)
	fs.nextReg(e)
	return reg
}

// closeCall calls the intrinsic in a register with the operands after it.
func (fs *function) closeCall(reg int) expr {
	fs.abc(lua.OP_CALL, reg, fs.free-reg, 2)
	fs.free = reg + 1
	return newExpr(kNonReloc, reg)
}

func (fs *function) postfix(op token, e1, e2 *expr) {
	switch op {
	case tokenAnd:
		fs.dischargeVars(e2)
		fs.concat(&e2.f, e1.f)
		*e1 = *e2
	case tokenOr:
		fs.dischargeVars(e2)
		fs.concat(&e2.t, e1.t)
		*e1 = *e2
	case '+':
		fs.arith(lua.OP_ADD, e1, e2)
	case '-':
		fs.arith(lua.OP_SUB, e1, e2)
	case '*':
		fs.arith(lua.OP_MUL, e1, e2)
	case '/':
		fs.arith(lua.OP_DIV, e1, e2)
	case '%':
		fs.arith(lua.OP_MOD, e1, e2)
	case '^':
		fs.arith(lua.OP_POW, e1, e2)
	case tokenEq:
		fs.compare(lua.OP_EQ, 1, e1, e2)
	case tokenNe:
		fs.compare(lua.OP_EQ, 0, e1, e2)
	case '<':
		fs.compare(lua.OP_LT, 1, e1, e2)
	case tokenLe:
		fs.compare(lua.OP_LE, 1, e1, e2)
	case '>':
		fs.compare(lua.OP_LT, 0, e1, e2)
	case tokenGe:
		fs.compare(lua.OP_LE, 0, e1, e2)
	}
}

func (fs *function) setList(base, elements, store int) {
	c := (elements-1)/perFlush + 1
	b := store
	if store == multiple {
		b = 0
	}
	if c <= maxC {
		fs.abc(lua.OP_SETLIST, base, b, c)
	} else {
		fs.abc(lua.OP_SETLIST, base, b, 0)
		fs.emit(uint32(c))
	}
	fs.free = base + 1
}

// proto returns gopher-lua's form of the function. The texts of its string
// constants are also kept in an unexported field. gopher-lua's compiler fills it by
// comparing each constant with all others; here it is set by reflection.
func (fs *function) proto(chunk string) *lua.FunctionProto {
	p := &lua.FunctionProto{SourceName: chunk}
	texts := make([]string, len(fs.consts))
	for i, c := range fs.consts {
		if s, ok := c.(lua.LString); ok {
			texts[i] = string(s)
		}
	}
	field := reflect.ValueOf(p).Elem().FieldByName("stringConstants")
	*(*[]string)(field.Addr().UnsafePointer()) = texts
	p.Constants, p.Code, p.FunctionPrototypes = fs.consts, fs.code, fs.protos
	p.LineDefined, p.LastLineDefined = fs.line, fs.last
	p.NumParameters, p.NumUpvalues = uint8(fs.params), uint8(len(fs.ups))
	p.IsVarArg, p.NumUsedRegisters = fs.vararg, uint8(fs.stack)
	p.DbgSourcePositions = make([]int, len(fs.lines))
	for i, line := range fs.lines {
		p.DbgSourcePositions[i] = line<<positionBits | i
	}
	p.DbgCalls, p.DbgLocals, p.DbgUpvalues = nil, nil, nil
	for _, l := range fs.locals {
		p.DbgLocals = append(p.DbgLocals, &lua.DbgLocalInfo{Name: l.name, StartPc: l.start, EndPc: l.end})
	}
	for _, u := range fs.ups {
		p.DbgUpvalues = append(p.DbgUpvalues, u.name)
	}
	return p
}
