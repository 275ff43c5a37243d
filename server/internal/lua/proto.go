package lua

// Proto is a compiled function.
type Proto struct {
	Source    string // the name of the chunk in messages
	Line      int    // 0 for a chunk
	LastLine  int
	Params    int
	Vararg    bool // has ...
	HasArg    bool // and the variable arg, as in Lua 5.0
	Registers int
	Code      []Instruction
	Constants []Value
	Protos    []*Proto
	Upvalues  []Capture
	Lines     []int32 // of each instruction
	Names     []Name  // in ascending order of instructions
}

// Capture is a variable that a function captures when it is created: a register of the function around it, or one of its upvalues.
type Capture struct {
	Outer bool
	Index uint8
}

// Name is what errors call the operand of an instruction.
type Name struct {
	PC       int32
	Register uint8
	Origin   Origin
	Text     string
}

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

// Instruction is an instruction of the machine.
type Instruction uint64
