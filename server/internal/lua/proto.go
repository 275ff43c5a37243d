package lua

import "sort"

// Proto is a compiled function. Instructions of functions that it creates refer to Protos, and
// those functions find captured variables as Upvalues says.
type Proto struct {
	Source    string // the name of the chunk in messages
	Params    int
	Vararg    bool // it has "..."
	NeedsArg  bool // its register after the parameters has the table arg, as in Lua 5.0
	Registers int
	Code      []Instruction
	Constants []Value
	Protos    []*Proto
	Upvalues  []Capture
	Lines     []Line   // in ascending order of instructions
	Names     []Name   // in ascending order of instructions
	Texts     []string // of Names
}

// Capture is a variable that a function captures when it is created: a register of the function
// around it, or one of the upvalues of that.
type Capture struct {
	Outer bool
	Index uint8
}

// Line is the line of the instructions from one on, up to those of the next Line.
type Line struct{ PC, Line int32 }

// Name is what errors call a register that is an operand of an instruction:
//
//	index of Texts 30 bits | origin 3 | register 8 | instruction 23
type Name uint64

// MakeName returns the name of a register.
func MakeName(pc, register int, o Origin, text int) Name {
	return Name(pc)<<41 | Name(uint8(register))<<33 | Name(o)<<30 | Name(text)
}

// PC returns the instruction.
func (n Name) PC() int { return int(n >> 41) }

// Origin is where an operand comes from.
type Origin uint8

// Origins.
const (
	Unnamed Origin = iota
	Local
	Upvalue
	Global
	Field
	Method
)

// String returns the word in messages.
func (o Origin) String() string {
	return [...]string{"", "local", "upvalue", "global", "field", "method"}[o]
}

// NameOf returns what errors call a register that is an operand of an instruction.
func (p *Proto) NameOf(pc, register int) (what Origin, name string) {
	i := sort.Search(len(p.Names), func(i int) bool { return p.Names[i].PC() >= pc })
	for ; i < len(p.Names) && p.Names[i].PC() == pc; i++ {
		if n := p.Names[i]; int(uint8(n>>33)) == register {
			return Origin(n >> 30 & 7), p.Texts[n&(1<<30-1)]
		}
	}
	return Unnamed, ""
}

// line returns the line of the instruction before one.
func (p *Proto) line(next int32) int {
	i := sort.Search(len(p.Lines), func(i int) bool { return p.Lines[i].PC > max(next-1, 0) })
	return int(p.Lines[i-1].Line)
}

// Instruction is an instruction of the machine:
//
//	opcode 8 bits | A 8 | B 16 | C 16, or D 32
//
// A is a register. B and C are registers, indexes of constants, or numbers, as the opcode says. D
// is an index, or the distance of a jump from the next instruction.
type Instruction uint64

// Make returns an instruction with A, B and C.
func Make(op Op, a, b, c int) Instruction {
	return Instruction(op) | Instruction(uint8(a))<<8 | Instruction(uint16(b))<<16 | Instruction(uint16(c))<<32
}

// MakeD returns an instruction with A, B and D.
func MakeD(op Op, a, b, d int) Instruction {
	return Instruction(op) | Instruction(uint8(a))<<8 | Instruction(uint16(b))<<16 | Instruction(uint32(int32(d)))<<32
}

// Op returns the opcode.
func (i Instruction) Op() Op { return Op(i) }

// A returns the operand A.
func (i Instruction) A() int { return int(uint8(i >> 8)) }

// B returns the operand B.
func (i Instruction) B() int { return int(uint16(i >> 16)) }

// C returns the operand C.
func (i Instruction) C() int { return int(uint16(i >> 32)) }

// D returns the operand D.
func (i Instruction) D() int { return int(int32(i >> 32)) }

// FirstConstant is the operand that is the first constant, where registers are less.
const FirstConstant = 256

// Many is a number of arguments or results that is known when the instruction runs.
const Many = 0xffff

// Op is an opcode.
type Op uint8

// Opcodes. R is a register, K a constant, V either: see [FirstConstant].
const (
	OpMove       Op = iota // R[A] = R[B]
	OpConstant             // R[A] = K[D]
	OpNil                  // R[A] … R[B] = nil
	OpBool                 // R[A] = B ~= 0
	OpGetUpval             // R[A] = upvalue B
	OpSetUpval             // upvalue B = R[A]
	OpGetGlobal            // R[A] = globals[K[D]]
	OpSetGlobal            // globals[K[D]] = R[A]
	OpGetField             // R[A] = R[B][K[C]], a string
	OpGetElement           // R[A] = R[B][C]
	OpGet                  // R[A] = R[B][V[C]]
	OpSetField             // R[A][K[B]] = V[C], K[B] is a string
	OpSet                  // R[A][V[B]] = V[C]
	OpSelf                 // R[A+1] = R[B]; R[A] = R[B][V[C]]
	OpNewTable             // R[A] = {} for B elements and C other fields: the lower 4 bits, times 2^(those above)
	OpSetList              // R[A][D+i] = R[A+i] for i = 1 … B
	OpAdd                  // R[A] = R[B] + R[C]
	OpSub
	OpMul
	OpDiv
	OpMod
	OpPow
	OpAddK // R[A] = R[B] + K[C], a number
	OpSubK
	OpMulK
	OpDivK
	OpModK
	OpPowK
	OpMinus   // R[A] = -R[B]
	OpNot     // R[A] = not R[B]
	OpLength  // R[A] = #R[B]
	OpConcat  // R[A] = R[B] .. … .. R[C]
	OpJump    // jump D
	OpTrue    // if R[A] then jump D
	OpFalse   // if not R[A] then jump D
	OpAnd     // if not R[B] then R[A] = R[B]; jump D
	OpOr      // if R[B] then R[A] = R[B]; jump D
	OpEqual   // if R[A] == V[B] then jump D
	OpUnequal // if not the same then jump D; so the others with Not
	OpLess    // if R[A] < R[B] then jump D
	OpNotLess
	OpLessEqual // if R[A] <= R[B] then jump D
	OpNotLessEqual
	OpLessK // if R[A] < K[B] then jump D; K[B] is a number
	OpNotLessK
	OpLessEqualK
	OpNotLessEqualK
	OpGreaterK // if R[A] > K[B] then jump D
	OpNotGreaterK
	OpGreaterEqualK
	OpNotGreaterEqualK
	OpForPrep  // R[A], R[A+1], R[A+2] are start, limit, step; jump D, to OpFor
	OpFor      // R[A] += R[A+2]; if it is within the limit then R[A+3] = R[A]; jump D
	OpForIn    // R[A+3] … R[A+2+B] = R[A](R[A+1], R[A+2]); if R[A+3] ~= nil then R[A+2] = R[A+3]; jump D
	OpCall     // R[A] … R[A+C-1] = R[A](R[A+1] … R[A+B])
	OpTailCall // return R[A](R[A+1] … R[A+B])
	OpReturn   // return R[A] … R[A+B-1]
	OpVararg   // R[A] … R[A+B-1] = ...
	OpClosure  // R[A] = a function of Protos[D]
	OpClose    // close the upvalues of R[A] and above
)
