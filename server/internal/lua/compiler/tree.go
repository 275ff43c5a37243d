package compiler

import "github.com/zsetd/zsetd/server/internal/lua"

// point is a position between two tokens of a source: the line of the token before it,
// and the offset at which the search for the next token begins.
//
// Lua gives an instruction the line of the last token that it has read when it emits
// the instruction, and names the token after it in errors. For a variable or a field
// this is not where the variable stands but where its value is first needed: a field
// on the left of an operator is read after the operator. So an expression has the
// point of its use.
type point struct{ line, next int32 }

// exprKind is the kind of an expression, or of a step of one.
type exprKind uint8

const (
	exprNil exprKind = iota
	exprFalse
	exprTrue
	exprNumber   // number
	exprString   // text
	exprDots     // ...
	exprFunction // function
	exprName     // text; the resolver sets variable and slot
	exprParen    // first: one value of it
	exprTable    // list of values and exprEntry
	exprEntry    // first is the key, second the value
	exprNot      // first
	exprMinus    // first
	exprLength   // first
	exprPower    // first ^ second
	exprJoin     // list: operands of ..

	// Chains have any number of operands, and compiling one does not recurse for
	// each.
	exprAnd     // list: operands
	exprOr      // list: operands
	exprArith   // first, then list of exprStep, left-associative
	exprCompare // first, then list of exprStep, left-associative
	exprStep    // op, first: the right operand
	exprSuffix  // first, then list of exprIndex, exprCall, exprMethod
	exprIndex   // first: the key
	exprCall    // list: arguments
	exprMethod  // first: the name, list: arguments
)

// variable tells where the value of a name is.
type variable uint8

const (
	global   variable = iota
	register          // slot is a register
	upvalue           // slot is an index
)

// expr is an expression.
type expr struct {
	kind     exprKind
	op       kind // of exprStep
	variable variable
	local    *local // that exprName names, or nil
	slot     int32
	line     int32 // of the beginning of the arguments of a call
	at       point // after the name of exprName, at the beginning of exprTable
	use      point // where the value is needed
	number   float64
	text     string
	first    *expr
	second   *expr
	list     *expr
	last     *expr // of list
	next     *expr // in the list that contains this expression
	function *function
}

// add appends to the list.
func (e *expr) add(item *expr) {
	if e.last == nil {
		e.list = item
	} else {
		e.last.next = item
	}
	e.last = item
}

// multiple reports whether e has any number of values: a call or "...".
func (e *expr) multiple() bool { return e.kind == exprDots || e.call() != nil }

// call returns the last step of e if it is a call.
func (e *expr) call() *expr {
	if e.kind == exprSuffix && e.last.kind != exprIndex {
		return e.last
	}
	return nil
}

// assignable reports whether e is a variable.
func (e *expr) assignable() bool {
	return e.kind == exprName || e.kind == exprSuffix && e.last.kind == exprIndex
}

// constant returns the truth of a constant.
func (e *expr) constant() (truth, ok bool) {
	switch e.kind {
	case exprNil, exprFalse:
		return false, true
	case exprTrue, exprNumber, exprString:
		return true, true
	}
	return false, false
}

// stmtKind is the kind of a statement.
type stmtKind uint8

const (
	stmtCall          stmtKind = iota // values: one call
	stmtAssign                        // targets = values
	stmtLocal                         // locals = values
	stmtDo                            // body
	stmtWhile                         // while values do body
	stmtRepeat                        // repeat body until values
	stmtIf                            // clauses
	stmtFor                           // for locals = values do body
	stmtForIn                         // for locals in values do body
	stmtFunction                      // function targets values
	stmtLocalFunction                 // local function locals values
	stmtReturn                        // values
	stmtBreak
)

// stmt is a statement.
type stmt struct {
	kind    stmtKind
	line    int32
	at      point // after the statement
	enter   point // of a for loop: after "do"
	targets *expr
	values  *expr
	locals  *local
	body    *block
	clauses *clause
	next    *stmt
}

// clause is a condition with its block. The block after "else" has no condition.
type clause struct {
	condition *expr
	body      *block
	next      *clause
}

// block is a sequence of statements with a scope.
type block struct {
	first    *stmt
	end      point
	base     int32 // the register of its first local variable
	captured bool  // by a function: a variable of this block, not of one within
}

// local is a local variable. Those of one declaration are a list.
type local struct {
	name  string
	owner *function
	scope *block
	slot  int32 // its register
	next  *local

	assigned bool      // after its declaration
	value    lua.Value // that it always has, if that is a fixed value
}

// captured is an upvalue of a function.
type captured struct {
	local *local
	outer bool  // it is an upvalue of the enclosing function, too, with the index slot;
	slot  int32 // otherwise its register
}

// function is a function, or the chunk.
type function struct {
	outer    *function
	line     int32 // 0 for the chunk
	end      point
	params   *local
	fixed    int // parameters without "..."
	vararg   varargs
	body     *block
	captures []captured
}

// varargs are flags of functions with variable arguments.
type varargs uint8

const (
	isVararg varargs = 1 << iota
	needsArg         // it has the variable arg, as in Lua 5.0, which is set, unless "..." occurs
)

// slab allocates values of one type together. It keeps a part of them for the next
// source.
type slab[T any] struct {
	kept  []T
	taken int // of kept
	free  []T // others
}

const (
	slabKept = 256
	slabMore = 128
)

func (s *slab[T]) get() *T {
	if s.kept == nil {
		s.kept = make([]T, slabKept)
	}
	if s.taken < slabKept {
		s.taken++
		return &s.kept[s.taken-1]
	}
	if len(s.free) == 0 {
		s.free = make([]T, slabMore)
	}
	v := &s.free[0]
	s.free = s.free[1:]
	return v
}

// reset frees all values.
func (s *slab[T]) reset() {
	clear(s.kept[:s.taken])
	s.taken, s.free = 0, nil
}
