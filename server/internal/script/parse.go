package script

import (
	"strconv"

	lua "github.com/yuin/gopher-lua"
)

// Gopher-lua's flags of functions with variable arguments.
const (
	hasArg   = lua.VarArgHasArg
	isVararg = lua.VarArgIsVarArg
	needsArg = lua.VarArgNeedsArg
)

// parser compiles a source in one pass: Lua's lparser.c.
type parser struct {
	*lexer
	fs *function
	intrinsics
	depth int
}

// compile compiles a source. An error is the message that Lua gives.
func compile(src, chunk string, in intrinsics, spend func()) (proto *lua.FunctionProto, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case syntaxError:
			proto, err = nil, r
		case *Interrupted:
			proto, err = nil, r
		default:
			panic(r)
		}
	}()
	p := &parser{lexer: newLexer(src, chunk), intrinsics: in}
	p.lexer.spend = spend
	p.open(0)
	p.fs.vararg = isVararg
	p.advance()
	p.chunkOf()
	p.check(tokenEnd0)
	return p.close(), nil
}

// Error returns the message.
func (e syntaxError) Error() string { return string(e) }

func (p *parser) open(line int) {
	p.fs = &function{
		x: p.lexer, outer: p.fs, intrinsics: p.intrinsics, indexes: map[constKey]int{},
		target: -1, pending: noJump, stack: 2, line: line,
	}
}

func (p *parser) close() *lua.FunctionProto {
	fs := p.fs
	fs.removeVars(0)
	fs.ret(0, 0)
	fs.last = p.line
	p.fs = fs.outer
	return fs.proto(p.lexer.chunk)
}

func (p *parser) expected(t token) { p.syntax("'" + tokenString0(t) + "' expected") }

func (p *parser) limit(n, most int, what string) {
	if n <= most {
		return
	}
	where := "main function"
	if p.fs.line != 0 {
		where = "function at line " + strconv.Itoa(p.fs.line)
	}
	p.fail(where+" has more than "+strconv.Itoa(most)+" "+what, 0)
}

func (p *parser) test(t token) bool {
	if p.now.token != t {
		return false
	}
	p.advance()
	return true
}

func (p *parser) check(t token) {
	if p.now.token != t {
		p.expected(t)
	}
}

func (p *parser) need(t token) {
	p.check(t)
	p.advance()
}

func (p *parser) match(what, who token, line int) {
	if p.test(what) {
		return
	}
	if line == p.line {
		p.expected(what)
	}
	p.syntax("'" + tokenString0(what) + "' expected (to close '" + tokenString0(who) + "' at line " + strconv.Itoa(line) + ")")
}

func (p *parser) name() string {
	p.check(tokenName)
	s := p.now.text
	p.advance()
	return s
}

func (p *parser) stringExpr(s string) expr { return newExpr(kConst, p.fs.stringConst(s)) }

func (p *parser) newLocal(name string, n int) {
	fs := p.fs
	p.limit(len(fs.active)+n+1, maxVars, "local variables")
	fs.locals = append(fs.locals, local{name: name})
}

// activate brings the last n new locals into scope.
func (fs *function) activate(n int) {
	for i := len(fs.locals) - n; i < len(fs.locals); i++ {
		fs.locals[i].start = fs.pc()
		fs.active = append(fs.active, i)
	}
}

// activateAt brings the n locals from the given one into scope, when later ones are
// not declared yet.
func (fs *function) activateAt(from, n int) {
	for i := from; i < from+n; i++ {
		fs.locals[i].start = fs.pc()
		fs.active = append(fs.active, i)
	}
}

func (fs *function) removeVars(level int) {
	for len(fs.active) > level {
		last := len(fs.active) - 1
		fs.locals[fs.active[last]].end = fs.pc()
		fs.active = fs.active[:last]
	}
}

func (p *parser) upvalueOf(fs *function, name string, e *expr) int {
	for i, u := range fs.ups {
		if u.local == (e.kind == kLocal) && u.info == e.info {
			return i
		}
	}
	if len(fs.ups)+1 > maxUpvalues {
		p.fs = fs
		p.limit(len(fs.ups)+1, maxUpvalues, "upvalues")
	}
	fs.ups = append(fs.ups, upvalue{name, e.kind == kLocal, e.info})
	return len(fs.ups) - 1
}

func (p *parser) variable(fs *function, name string, e *expr, base bool) kind {
	if fs == nil {
		*e = newExpr(kGlobal, noReg)
		return kGlobal
	}
	for i := len(fs.active) - 1; i >= 0; i-- {
		if fs.locals[fs.active[i]].name == name {
			*e = newExpr(kLocal, i)
			if !base {
				b := fs.block
				for b != nil && b.active > i {
					b = b.outer
				}
				if b != nil {
					b.upvalue = true
				}
			}
			return kLocal
		}
	}
	if p.variable(fs.outer, name, e, false) == kGlobal {
		return kGlobal
	}
	e.info = p.upvalueOf(fs, name, e)
	e.kind = kUpvalue
	return kUpvalue
}

func (p *parser) singleVar() expr {
	name := p.name()
	var e expr
	if p.variable(p.fs, name, &e, true) == kGlobal {
		e.info = p.fs.stringConst(name)
	}
	return e
}

func (p *parser) adjust(vars, exprs int, e *expr) {
	fs := p.fs
	extra := vars - exprs
	if e.multiple() {
		extra = max(extra+1, 0)
		fs.setReturns(e, extra)
		if extra > 1 {
			fs.reserve(extra - 1)
		}
		return
	}
	if e.kind != kVoid {
		fs.nextReg(e)
	}
	if extra > 0 {
		reg := fs.free
		fs.reserve(extra)
		fs.loadNil(reg, extra)
	}
}

func (p *parser) enter() {
	if p.depth++; p.depth > maxLevels {
		p.fail("chunk has too many syntax levels", 0)
	}
}

func (fs *function) enterBlock(breakable bool) {
	fs.block = &block{outer: fs.block, breaks: noJump, active: len(fs.active), breakable: breakable}
}

func (fs *function) leaveBlock() {
	b := fs.block
	fs.block = b.outer
	fs.removeVars(b.active)
	if b.upvalue {
		fs.abc(lua.OP_CLOSE, b.active, 0, 0)
	}
	fs.free = len(fs.active)
	fs.patchHere(b.breaks)
}

func (p *parser) closure(inner *function, proto *lua.FunctionProto) expr {
	fs := p.fs
	fs.protos = append(fs.protos, proto)
	e := newExpr(kRelocable, fs.abx(lua.OP_CLOSURE, 0, len(fs.protos)-1))
	for _, u := range inner.ups {
		op := lua.OP_GETUPVAL
		if u.local {
			op = lua.OP_MOVE
		}
		fs.abc(op, 0, u.info, 0)
	}
	return e
}

func (p *parser) field(e *expr) {
	p.fs.anyReg(e)
	p.advance()
	key := p.stringExpr(p.name())
	p.fs.indexed(e, &key)
}

func (p *parser) index() expr {
	p.advance()
	e := p.expr()
	p.fs.value(&e)
	p.need(']')
	return e
}

func (p *parser) constructor() expr {
	fs := p.fs
	line := p.line
	pc := fs.abc(lua.OP_NEWTABLE, 0, 0, 0)
	t := newExpr(kRelocable, pc)
	fs.nextReg(&t)
	item := newExpr(kVoid, 0)
	elements, records, store := 0, 0, 0
	p.need('{')
	for p.now.token != '}' {
		if item.kind != kVoid {
			fs.nextReg(&item)
			item.kind = kVoid
			if store == perFlush {
				fs.setList(t.info, elements, store)
				store = 0
			}
		}
		if p.now.token == '[' || p.now.token == tokenName && p.peek() == '=' {
			reg := fs.free
			var key expr
			if p.now.token == tokenName {
				key = p.stringExpr(p.name())
			} else {
				key = p.index()
			}
			records++
			p.need('=')
			k := fs.rk(&key)
			v := p.expr()
			fs.setTable(t.info, k, fs.rk(&v))
			fs.free = reg
		} else {
			item = p.expr()
			elements++
			store++
		}
		if !p.test(',') && !p.test(';') {
			break
		}
	}
	p.match('}', '{', line)
	if store > 0 {
		if item.multiple() {
			fs.setReturns(&item, multiple)
			fs.setList(t.info, elements, multiple)
			elements--
		} else {
			if item.kind != kVoid {
				fs.nextReg(&item)
			}
			fs.setList(t.info, elements, store)
		}
	}
	// gopher-lua takes the sizes literally; they are only hints.
	fs.setB(pc, min(elements, maxC))
	fs.setC(pc, min(records, maxC))
	return t
}

func (p *parser) parameters() {
	fs := p.fs
	n := 0
	if p.now.token != ')' {
		for {
			switch p.now.token {
			case tokenName:
				p.newLocal(p.name(), n)
				n++
			case tokenDots:
				p.advance()
				p.newLocal("arg", n)
				n++
				fs.vararg = hasArg | needsArg | isVararg
			default:
				p.syntax("<name> or '...' expected")
			}
			if fs.vararg != 0 || !p.test(',') {
				break
			}
		}
	}
	fs.activate(n)
	fs.params = len(fs.active)
	if fs.vararg != 0 {
		fs.params--
	}
	fs.reserve(len(fs.active))
}

func (p *parser) body(method bool, line int) expr {
	p.open(line)
	p.need('(')
	if method {
		p.newLocal("self", 0)
		p.fs.activate(1)
	}
	p.parameters()
	p.need(')')
	p.chunkOf()
	p.match(tokenEnd, tokenFunction, line)
	inner := p.fs
	return p.closure(inner, p.close())
}

func (p *parser) exprList() (n int, e expr) {
	n = 1
	e = p.expr()
	for p.test(',') {
		p.fs.nextReg(&e)
		e = p.expr()
		n++
	}
	return n, e
}

func (p *parser) arguments(f *expr) {
	fs := p.fs
	line := p.line
	args := newExpr(kVoid, 0)
	switch p.now.token {
	case '(':
		if line != p.lastLine {
			p.syntax("ambiguous syntax (function call x new statement)")
		}
		p.advance()
		if p.now.token != ')' {
			_, args = p.exprList()
			fs.setReturns(&args, multiple)
		}
		p.match(')', '(', line)
	case '{':
		args = p.constructor()
	case tokenString:
		args = p.stringExpr(p.now.text)
		p.advance()
	default:
		p.syntax("function arguments expected")
	}
	base := f.info
	n := multiple
	if !args.multiple() {
		if args.kind != kVoid {
			fs.nextReg(&args)
		}
		n = fs.free - (base + 1)
	}
	*f = newExpr(kCall, fs.abc(lua.OP_CALL, base, n+1, 2))
	fs.fixLine(line)
	fs.free = base + 1
}

func (p *parser) primary() expr {
	fs := p.fs
	var e expr
	switch p.now.token {
	case '(':
		line := p.line
		p.advance()
		e = p.expr()
		p.match(')', '(', line)
		fs.dischargeVars(&e)
	case tokenName:
		e = p.singleVar()
	default:
		p.syntax("unexpected symbol")
	}
	for {
		switch p.now.token {
		case '.':
			p.field(&e)
		case '[':
			fs.anyReg(&e)
			key := p.index()
			fs.indexed(&e, &key)
		case ':':
			p.advance()
			key := p.stringExpr(p.name())
			fs.self(&e, &key)
			p.arguments(&e)
		case '(', tokenString, '{':
			fs.nextReg(&e)
			p.arguments(&e)
		default:
			return e
		}
	}
}

func (p *parser) simple() expr {
	var e expr
	switch p.now.token {
	case tokenNumber:
		e = newExpr(kNumber, 0)
		e.number = p.now.number
	case tokenString:
		e = p.stringExpr(p.now.text)
	case tokenNil:
		e = newExpr(kNil, 0)
	case tokenTrue:
		e = newExpr(kTrue, 0)
	case tokenFalse:
		e = newExpr(kFalse, 0)
	case tokenDots:
		if p.fs.vararg == 0 {
			p.syntax("cannot use '...' outside a vararg function")
		}
		p.fs.vararg &^= needsArg
		e = newExpr(kVararg, p.fs.abc(lua.OP_VARARG, 0, 1, 0))
	case '{':
		return p.constructor()
	case tokenFunction:
		p.advance()
		return p.body(false, p.line)
	default:
		return p.primary()
	}
	p.advance()
	return e
}

// priority returns the precedence of an operator to its left and to its right; 0 if
// the token is not an operator.
func priority(t token) (left, right int) {
	switch t {
	case '+', '-':
		return 6, 6
	case '*', '/', '%':
		return 7, 7
	case '^':
		return 10, 9
	case tokenConcat:
		return 5, 4
	case tokenNe, tokenEq, '<', tokenLe, '>', tokenGe:
		return 3, 3
	case tokenAnd:
		return 2, 2
	case tokenOr:
		return 1, 1
	}
	return 0, 0
}

const unaryPriority = 8

func (p *parser) expr() expr { return p.subexpr(0) }

func (p *parser) subexpr(limit int) expr {
	p.enter()
	var e expr
	switch op := p.now.token; op {
	case tokenNot, '-', '#':
		p.advance()
		e = p.subexpr(unaryPriority)
		p.fs.prefix(op, &e)
	default:
		e = p.simple()
	}
	for {
		op := p.now.token
		left, right := priority(op)
		if left <= limit {
			break
		}
		if op == tokenConcat {
			p.concatenation(&e)
			continue
		}
		p.advance()
		if op == '%' && !p.wholeFollows() {
			reg := p.fs.openCall('m', p.intrinsics.mod, &e)
			e2 := p.subexpr(right)
			p.fs.nextReg(&e2)
			e = p.fs.closeCall(reg)
			continue
		}
		p.fs.infix(op, &e)
		e2 := p.subexpr(right)
		p.fs.postfix(op, &e, &e2)
	}
	p.depth--
	return e
}

// wholeFollows reports whether the next operand is a whole number other than 0, for
// which gopher-lua's remainder equals Lua's.
func (p *parser) wholeFollows() bool {
	f := p.now.number
	if p.now.token != tokenNumber || f == 0 || f != float64(int32(f)) {
		return false
	}
	if p.peeked {
		return p.next.token != '^'
	}
	return p.peek() != '^'
}

// concatenation compiles the whole of a .. b .. c at once.
func (p *parser) concatenation(e *expr) {
	fs := p.fs
	_, right := priority(tokenConcat)
	p.advance()
	reg, levels := fs.openCall('j', fs.intrinsics.join, e), 0
	for {
		p.enter()
		levels++
		e2 := p.subexpr(right + 1)
		fs.nextReg(&e2)
		if p.now.token != tokenConcat {
			break
		}
		p.advance()
	}
	p.depth -= levels
	*e = fs.closeCall(reg)
}

func blockEnds(t token) bool {
	switch t {
	case tokenElse, tokenElseif, tokenEnd, tokenUntil, tokenEnd0:
		return true
	}
	return false
}

func (p *parser) block() {
	p.fs.enterBlock(false)
	p.chunkOf()
	p.fs.leaveBlock()
}

// target is a variable on the left of an assignment.
type target struct {
	outer *target
	e     expr
}

func (p *parser) conflict(t *target, v *expr) {
	fs := p.fs
	extra, found := fs.free, false
	for ; t != nil; t = t.outer {
		if t.e.kind != kIndexed {
			continue
		}
		if t.e.info == v.info {
			found, t.e.info = true, extra
		}
		if t.e.aux == v.info {
			found, t.e.aux = true, extra
		}
	}
	if found {
		fs.abc(lua.OP_MOVE, fs.free, v.info, 0)
		fs.reserve(1)
	}
}

func (p *parser) assignment(t *target, vars int) {
	fs := p.fs
	if k := t.e.kind; k < kLocal || k > kIndexed {
		p.syntax("syntax error")
	}
	if p.test(',') {
		next := target{outer: t, e: p.primary()}
		if next.e.kind == kLocal {
			p.conflict(t, &next.e)
		}
		p.limit(vars, maxLevels-p.depth, "variables in assignment")
		p.assignment(&next, vars+1)
	} else {
		p.need('=')
		n, e := p.exprList()
		if n == vars {
			fs.setOneReturn(&e)
			fs.store(&t.e, &e)
			return
		}
		p.adjust(vars, n, &e)
		if n > vars {
			fs.free -= n - vars
		}
	}
	e := newExpr(kNonReloc, fs.free-1)
	fs.store(&t.e, &e)
}

func (p *parser) condition() int {
	e := p.expr()
	if e.kind == kNil {
		e.kind = kFalse
	}
	p.fs.goIfTrue(&e)
	return e.f
}

func (p *parser) breakStat() {
	fs := p.fs
	b := fs.block
	upvalue := false
	for b != nil && !b.breakable {
		upvalue = upvalue || b.upvalue
		b = b.outer
	}
	if b == nil {
		p.syntax("no loop to break")
	}
	if upvalue {
		fs.abc(lua.OP_CLOSE, b.active, 0, 0)
	}
	fs.concat(&b.breaks, fs.jump())
}

func (p *parser) whileStat(line int) {
	fs := p.fs
	p.advance()
	start := fs.label()
	exit := p.condition()
	fs.enterBlock(true)
	p.need(tokenDo)
	p.block()
	fs.patch(fs.jump(), start)
	p.match(tokenEnd, tokenWhile, line)
	fs.leaveBlock()
	fs.patchHere(exit)
}

func (p *parser) repeatStat(line int) {
	fs := p.fs
	start := fs.label()
	fs.enterBlock(true)
	fs.enterBlock(false)
	p.advance()
	p.chunkOf()
	p.match(tokenUntil, tokenRepeat, line)
	exit := p.condition()
	if !fs.block.upvalue {
		fs.leaveBlock()
		fs.patch(exit, start)
	} else {
		p.breakStat()
		fs.patchHere(exit)
		fs.leaveBlock()
		fs.patch(fs.jump(), start)
	}
	fs.leaveBlock()
}

func (p *parser) oneExpr() {
	e := p.expr()
	p.fs.nextReg(&e)
}

func (p *parser) forBody(base, line, first, vars int, numeric bool) {
	fs := p.fs
	fs.activateAt(first, 3)
	p.need(tokenDo)
	var prep int
	if numeric {
		prep = fs.abx(lua.OP_FORPREP, base, noJump+maxSbx)
	} else {
		prep = fs.jump()
	}
	fs.enterBlock(false)
	fs.activateAt(first+3, vars)
	fs.reserve(vars)
	p.block()
	fs.leaveBlock()
	fs.patchHere(prep)
	var end int
	if numeric {
		end = fs.abx(lua.OP_FORLOOP, base, noJump+maxSbx)
		fs.fixLine(line)
	} else {
		fs.abc(lua.OP_TFORLOOP, base, 0, vars)
		fs.fixLine(line)
		end = fs.jump()
	}
	fs.patch(end, prep+1)
}

func (p *parser) forStat(line int) {
	fs := p.fs
	fs.enterBlock(true)
	p.advance()
	name := p.name()
	base, first := fs.free, len(fs.locals)
	switch p.now.token {
	case '=':
		for i, n := range []string{"(for index)", "(for limit)", "(for step)", name} {
			p.newLocal(n, i)
		}
		p.advance()
		p.oneExpr()
		p.need(',')
		p.oneExpr()
		if p.test(',') {
			p.oneExpr()
		} else {
			fs.abx(lua.OP_LOADK, fs.free, fs.numberConst(1))
			fs.reserve(1)
		}
		// Strings are accepted as numbers.
		fs.forNumbers(base)
		p.forBody(base, line, first, 1, true)
	case ',', tokenIn:
		vars := 0
		for i, n := range []string{"(for generator)", "(for state)", "(for control)", name} {
			p.newLocal(n, i)
		}
		for vars = 1; p.test(','); vars++ {
			p.newLocal(p.name(), 3+vars)
		}
		p.need(tokenIn)
		line = p.line
		n, e := p.exprList()
		p.adjust(3, n, &e)
		fs.checkStack(3)
		p.forBody(base, line, first, vars, false)
	default:
		p.syntax("'=' or 'in' expected")
	}
	p.match(tokenEnd, tokenFor, line)
	fs.leaveBlock()
}

// forNumbers converts the three values of a loop to numbers, in the registers from
// base on, unless they are constants.
func (fs *function) forNumbers(base int) {
	n := fs.pc()
	if n >= 3 && fs.target < n-2 {
		constant := true
		for i := range 3 {
			in := fs.code[n-3+i]
			k, ok := lua.LValue(nil), opOf(in) == lua.OP_LOADK && aOf(in) == base+i
			if ok {
				k = fs.consts[bxOf(in)]
				_, ok = k.(lua.LNumber)
			}
			constant = constant && ok
		}
		if constant {
			return
		}
	}
	fs.checkStack(4)
	reg := fs.free
	fs.abx(lua.OP_LOADK, reg, fs.constant(constKey{kind: 'r'}, fs.intrinsics.loop))
	for i := range 3 {
		fs.abc(lua.OP_MOVE, reg+1+i, base+i, 0)
	}
	fs.abc(lua.OP_CALL, reg, 4, 4)
	for i := range 3 {
		fs.abc(lua.OP_MOVE, base+i, reg+i, 0)
	}
}

func (p *parser) thenBlock() int {
	p.advance()
	exit := p.condition()
	p.need(tokenThen)
	p.block()
	return exit
}

func (p *parser) ifStat(line int) {
	fs := p.fs
	escapes := noJump
	exit := p.thenBlock()
	for p.now.token == tokenElseif {
		fs.concat(&escapes, fs.jump())
		fs.patchHere(exit)
		exit = p.thenBlock()
	}
	if p.now.token == tokenElse {
		fs.concat(&escapes, fs.jump())
		fs.patchHere(exit)
		p.advance()
		p.block()
	} else {
		fs.concat(&escapes, exit)
	}
	fs.patchHere(escapes)
	p.match(tokenEnd, tokenIf, line)
}

func (p *parser) localFunction() {
	fs := p.fs
	p.newLocal(p.name(), 0)
	v := newExpr(kLocal, fs.free)
	fs.reserve(1)
	fs.activate(1)
	b := p.body(false, p.line)
	fs.store(&v, &b)
	fs.locals[fs.active[len(fs.active)-1]].start = fs.pc()
}

func (p *parser) localStat() {
	first := len(p.fs.locals)
	vars := 0
	for {
		p.newLocal(p.name(), vars)
		vars++
		if !p.test(',') {
			break
		}
	}
	n, e := 0, newExpr(kVoid, 0)
	if p.test('=') {
		n, e = p.exprList()
	}
	p.adjust(vars, n, &e)
	p.fs.activateAt(first, vars)
}

func (p *parser) functionStat(line int) {
	fs := p.fs
	p.advance()
	v := p.singleVar()
	for p.now.token == '.' {
		p.field(&v)
	}
	method := p.now.token == ':'
	if method {
		p.field(&v)
	}
	b := p.body(method, line)
	fs.store(&v, &b)
	fs.fixLine(line)
}

func (p *parser) exprStat() {
	t := target{e: p.primary()}
	if t.e.kind == kCall {
		p.fs.setC(t.e.info, 1)
		return
	}
	p.assignment(&t, 1)
}

func (p *parser) returnStat() {
	fs := p.fs
	p.advance()
	first, n := 0, 0
	if !blockEnds(p.now.token) && p.now.token != ';' {
		var e expr
		n, e = p.exprList()
		switch {
		case e.multiple():
			fs.setReturns(&e, multiple)
			if e.kind == kCall && n == 1 {
				fs.code[e.info] = fs.code[e.info]&^(0x3f<<26) | uint32(lua.OP_TAILCALL)<<26
			}
			first, n = len(fs.active), multiple
		case n == 1:
			first = fs.anyReg(&e)
		default:
			fs.nextReg(&e)
			first = len(fs.active)
		}
	}
	fs.ret(first, n)
}

// statement compiles one statement, and reports whether it must be the last.
func (p *parser) statement() bool {
	line := p.line
	switch p.now.token {
	case tokenIf:
		p.ifStat(line)
	case tokenWhile:
		p.whileStat(line)
	case tokenDo:
		p.advance()
		p.block()
		p.match(tokenEnd, tokenDo, line)
	case tokenFor:
		p.forStat(line)
	case tokenRepeat:
		p.repeatStat(line)
	case tokenFunction:
		p.functionStat(line)
	case tokenLocal:
		p.advance()
		if p.test(tokenFunction) {
			p.localFunction()
		} else {
			p.localStat()
		}
	case tokenReturn:
		p.returnStat()
		return true
	case tokenBreak:
		p.advance()
		p.breakStat()
		return true
	default:
		p.exprStat()
	}
	return false
}

func (p *parser) chunkOf() {
	p.enter()
	for last := false; !last && !blockEnds(p.now.token); {
		last = p.statement()
		p.test(';')
		p.fs.free = len(p.fs.active)
	}
	p.depth--
}
