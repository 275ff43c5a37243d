package lua

import (
	"math"
	"unsafe"
)

// registers are those that instructions of a frame can name: more than it has, see slack.
type registers = [256]Value

// set assigns a number. A register that has one needs no write barrier.
func (v *Value) set(f float64) {
	if v.ref == unsafe.Pointer(&numberHeader) {
		v.bits = math.Float64bits(f)
	} else {
		*v = Number(f)
	}
}

// value returns an operand that is a register or a constant.
func operand(r *registers, k []Value, i uint16) Value {
	if i < FirstConstant {
		return r[uint8(i)]
	}
	return k[i-FirstConstant]
}

// registerOf returns the register that an operand is, or -1.
func registerOf(i uint16) int {
	if i < FirstConstant {
		return int(i)
	}
	return -1
}

// run executes the innermost frame and those that it adds, until a frame that is fresh returns. The
// results are then in its slot. An error drops these frames, unless it is yielded.
func (vm *Machine) run(co *Coroutine) (err *Error) {
	var (
		f    *frame
		p    *Proto
		code []Instruction
		k    []Value
		r    *registers
		pc   int
		top  int // the end of many values
		fn   *Function
		n    int
		v    Value
		yes  bool
	)
	depth := len(co.frames)
	for !co.frames[depth-1].fresh {
		depth--
	}
	depth--
	top = co.many

enter: // the innermost frame is another one
	f = co.frame()
	p = f.fn.Proto
	code, k, pc = p.Code, p.Constants, int(f.pc)
	r = (*registers)(unsafe.Pointer(&co.stack[f.base]))

	for {
		i := code[pc]
		pc++
		a, b, c := uint8(i>>8), uint16(i>>16), uint16(i>>32)
		switch i.Op() {
		case OpMove:
			r[a] = r[uint8(b)]
		case OpConstant:
			r[a] = k[i.D()]
		case OpNil:
			for at := int(a); at <= int(b); at++ {
				r[uint8(at)] = Value{}
			}
		case OpBool:
			r[a] = Bool(b != 0)
		case OpGetUpval:
			r[a] = *f.fn.upvalues[b].value
		case OpSetUpval:
			*f.fn.upvalues[b].value = r[a]
		case OpGetGlobal:
			if v = vm.Globals.getString((*String)(k[i.D()].ref)); v.ref != nil || vm.Globals.Meta == nil {
				r[a] = v
				continue
			}
			f.pc = int32(pc)
			v, err = vm.index(vm.Globals.Value(), k[i.D()], -1)
			goto result
		case OpSetGlobal:
			f.pc = int32(pc)
			err = vm.setIndex(vm.Globals.Value(), k[i.D()], r[a], -1)
			goto assigned
		case OpGetField:
			if t := r[uint8(b)].Table(); t != nil {
				if v = t.getString((*String)(k[c].ref)); v.ref != nil || t.Meta == nil {
					r[a] = v
					continue
				}
			}
			f.pc = int32(pc)
			v, err = vm.index(r[uint8(b)], k[c], int(b))
			goto result
		case OpGetElement:
			if t := r[uint8(b)].Table(); t != nil {
				if v = t.GetInt(int(c)); v.ref != nil || t.Meta == nil {
					r[a] = v
					continue
				}
			}
			f.pc = int32(pc)
			v, err = vm.index(r[uint8(b)], Number(float64(c)), int(b))
			goto result
		case OpGet:
			key := operand(r, k, c)
			if t := r[uint8(b)].Table(); t != nil {
				if key.isNumber() {
					if x := int(key.float()); uint(x-1) < uint(len(t.array)) && float64(x) == key.float() {
						if v = t.array[x-1]; v.ref != nil {
							r[a] = v
							continue
						}
					}
				}
				if v = t.Get(key); v.ref != nil || t.Meta == nil {
					r[a] = v
					continue
				}
			}
			f.pc = int32(pc)
			v, err = vm.index(r[uint8(b)], key, int(b))
			goto result
		case OpSetField:
			v = operand(r, k, c)
			if t := r[a].Table(); t != nil && t.Meta == nil && !t.ReadOnly {
				t.setString(vm, (*String)(k[b].ref), v)
				continue
			}
			f.pc = int32(pc)
			err = vm.setIndex(r[a], k[b], v, int(a))
			goto assigned
		case OpSet:
			key := operand(r, k, b)
			v = operand(r, k, c)
			if t := r[a].Table(); t != nil && key.isNumber() && !t.ReadOnly {
				if x := int(key.float()); uint(x-1) < uint(len(t.array)) && float64(x) == key.float() &&
					(t.Meta == nil || t.array[x-1].ref != nil) {
					t.array[x-1] = v
					continue
				}
			}
			f.pc = int32(pc)
			err = vm.setIndex(r[a], key, v, int(a))
			goto assigned
		case OpSelf:
			key := operand(r, k, c)
			object := r[uint8(b)]
			if t := object.Table(); t != nil {
				if v = t.Get(key); v.ref != nil || t.Meta == nil {
					r[a+1], r[a] = object, v
					continue
				}
			}
			f.pc = int32(pc)
			if v, err = vm.index(object, key, int(b)); err != nil {
				goto fail
			}
			f, r = co.here()
			r[a+1], r[a] = object, v
		case OpNewTable:
			array, hash := int(b&15)<<(b>>4), int(c&15)<<(c>>4)
			vm.Spend(tableBytes + array*valueBytes + hash*nodeBytes)
			r[a] = NewTable(array, hash).Value()
		case OpSetList:
			t := r[a].Table()
			n, first := int(b), i.D()
			at := int(f.base) + int(a) + 1
			if b == Many {
				n = top - at
			}
			t.growArray(vm, first+n)
			for j, v := range co.stack[at : at+n] {
				t.SetInt(vm, first+j+1, v)
			}
		case OpAdd:
			if x, y := &r[uint8(b)], &r[uint8(c)]; x.isNumber() && y.isNumber() {
				r[a].set(x.float() + y.float())
				continue
			}
			goto arithmetic
		case OpSub:
			if x, y := &r[uint8(b)], &r[uint8(c)]; x.isNumber() && y.isNumber() {
				r[a].set(x.float() - y.float())
				continue
			}
			goto arithmetic
		case OpMul:
			if x, y := &r[uint8(b)], &r[uint8(c)]; x.isNumber() && y.isNumber() {
				r[a].set(x.float() * y.float())
				continue
			}
			goto arithmetic
		case OpDiv:
			if x, y := &r[uint8(b)], &r[uint8(c)]; x.isNumber() && y.isNumber() {
				r[a].set(x.float() / y.float())
				continue
			}
			goto arithmetic
		case OpMod:
			if x, y := &r[uint8(b)], &r[uint8(c)]; x.isNumber() && y.isNumber() {
				r[a].set(remainder(x.float(), y.float()))
				continue
			}
			goto arithmetic
		case OpPow:
			goto arithmetic
		case OpAddK:
			if x := &r[uint8(b)]; x.isNumber() {
				r[a].set(x.float() + k[c].float())
				continue
			}
			goto constant
		case OpSubK:
			if x := &r[uint8(b)]; x.isNumber() {
				r[a].set(x.float() - k[c].float())
				continue
			}
			goto constant
		case OpMulK:
			if x := &r[uint8(b)]; x.isNumber() {
				r[a].set(x.float() * k[c].float())
				continue
			}
			goto constant
		case OpDivK:
			if x := &r[uint8(b)]; x.isNumber() {
				r[a].set(x.float() / k[c].float())
				continue
			}
			goto constant
		case OpModK:
			if x := &r[uint8(b)]; x.isNumber() {
				r[a].set(remainder(x.float(), k[c].float()))
				continue
			}
			goto constant
		case OpPowK:
			goto constant
		case OpMinus:
			if x := &r[uint8(b)]; x.isNumber() {
				r[a].set(-x.float())
				continue
			}
			f.pc = int32(pc)
			v, err = vm.arithmetic(OpMinus, r[uint8(b)], r[uint8(b)], int(b), int(b))
			goto result
		case OpNot:
			r[a] = Bool(!r[uint8(b)].Truth())
		case OpLength:
			x := r[uint8(b)]
			if t := x.Table(); t != nil {
				r[a].set(float64(t.Len()))
			} else if s := x.str(); s != nil {
				r[a].set(float64(len(s.s)))
			} else {
				f.pc = int32(pc)
				err = vm.operandError("get length of", x, int(b))
				goto fail
			}
		case OpConcat:
			f.pc = int32(pc)
			v, err = vm.concat(r[uint8(b):int(c)+1], int(b))
			goto result
		case OpJump:
			if pc += i.D(); i.D() < 0 {
				goto tick
			}
		case OpTrue:
			if x := &r[a]; x.ref != nil && (x.ref != unsafe.Pointer(&boolHeader) || x.bits != 0) {
				if pc += i.D(); i.D() < 0 {
					goto tick
				}
			}
		case OpFalse:
			if x := &r[a]; x.ref == nil || x.ref == unsafe.Pointer(&boolHeader) && x.bits == 0 {
				if pc += i.D(); i.D() < 0 {
					goto tick
				}
			}
		case OpAnd:
			if x := r[uint8(b)]; !x.Truth() {
				r[a] = x
				pc += i.D()
			}
		case OpOr:
			if x := r[uint8(b)]; x.Truth() {
				r[a] = x
				pc += i.D()
			}
		case OpEqual, OpUnequal:
			x, y := r[a], operand(r, k, b)
			if x.isNumber() && y.isNumber() {
				yes = x.float() == y.float()
			} else if yes = x == y; !yes && x.Kind() == y.Kind() {
				f.pc = int32(pc)
				yes, err = vm.equal(x, y)
				goto compared
			}
			if yes == (i.Op() == OpEqual) {
				goto jump
			}
		case OpLess, OpNotLess:
			if x, y := &r[a], &r[uint8(b)]; x.isNumber() && y.isNumber() {
				if (x.float() < y.float()) == (i.Op() == OpLess) {
					goto jump
				}
				continue
			}
			f.pc = int32(pc)
			yes, err = vm.Less(r[a], r[uint8(b)])
			goto compared
		case OpLessEqual, OpNotLessEqual:
			if x, y := &r[a], &r[uint8(b)]; x.isNumber() && y.isNumber() {
				if (x.float() <= y.float()) == (i.Op() == OpLessEqual) {
					goto jump
				}
				continue
			}
			f.pc = int32(pc)
			yes, err = vm.lessEqual(r[a], r[uint8(b)])
			goto compared
		case OpLessK, OpNotLessK:
			if x := &r[a]; !x.isNumber() {
				goto order
			} else if (x.float() < k[b].float()) == (i.Op() == OpLessK) {
				goto jump
			}
		case OpLessEqualK, OpNotLessEqualK:
			if x := &r[a]; !x.isNumber() {
				goto order
			} else if (x.float() <= k[b].float()) == (i.Op() == OpLessEqualK) {
				goto jump
			}
		case OpGreaterK, OpNotGreaterK:
			if x := &r[a]; !x.isNumber() {
				goto order
			} else if (x.float() > k[b].float()) == (i.Op() == OpGreaterK) {
				goto jump
			}
		case OpGreaterEqualK, OpNotGreaterEqualK:
			if x := &r[a]; !x.isNumber() {
				goto order
			} else if (x.float() >= k[b].float()) == (i.Op() == OpGreaterEqualK) {
				goto jump
			}
		case OpForPrep:
			f.pc = int32(pc)
			if err = vm.prepareLoop((*[3]Value)(r[a:])); err != nil {
				goto fail
			}
			pc += i.D()
		case OpFor:
			loop := (*[4]Value)(unsafe.Pointer(&r[a]))
			x, limit, step := loop[0].float(), loop[1].float(), loop[2].float()
			x += step
			if step > 0 && x <= limit || step <= 0 && limit <= x {
				loop[0].bits = math.Float64bits(x)
				loop[3].set(x)
				pc += i.D()
				goto tick
			}
		case OpForIn:
			loop := (*[6]Value)(unsafe.Pointer(&r[a]))
			fn = loop[0].Function()
			if t := loop[1].Table(); t != nil && fn != nil && fn.iterator != 0 && b <= 2 {
				key := Value{}
				if fn.iterator == iterateNext {
					var ok bool
					if key, v, ok = t.Next(loop[2]); !ok {
						f.pc = int32(pc)
						goto iterate
					}
				} else if !loop[2].isNumber() { // not ours
					goto iterate
				} else if v = t.GetInt(int(loop[2].float()) + 1); v.ref != nil {
					key = Number(float64(int(loop[2].float()) + 1))
				}
				if key.ref == nil {
					continue
				}
				loop[2], loop[3] = key, key
				if b == 2 {
					loop[4] = v
				}
				pc += i.D()
				goto tick
			}
		iterate:
			f.pc = int32(pc)
			loop[3], loop[4], loop[5] = loop[0], loop[1], loop[2]
			if n, err = vm.call(co, int(f.base)+int(a)+3, 2); err != nil {
				goto fail
			}
			f, r = co.here()
			for ; n < int(b); n++ {
				r[int(a)+3+n] = Value{}
			}
			if r[a+3].ref != nil {
				r[a+2] = r[a+3]
				pc += i.D()
				goto tick
			}
		case OpCall:
			f.pc = int32(pc)
			at := int(f.base) + int(a)
			if n = int(b); b == Many {
				n = top - at - 1
			}
			if vm.left--; vm.left <= 0 || vm.hurry.Load() {
				if err = vm.ask(); err != nil {
					goto fail
				}
			}
			if r[a].ref != nil && (*header)(r[a].ref).kind == KindFunction {
				fn = (*Function)(r[a].ref)
			} else if fn, n, err = vm.callable(co, at, n, int(a)); err != nil {
				goto fail
			}
			if fn.Go == nil {
				if err = vm.push(co, fn, at, n, int(c), false); err != nil {
					goto fail
				}
				goto enter
			}
			if n, err = vm.callGo(co, fn, at, n); err != nil {
				goto fail
			}
			f, r = co.here()
			if c == Many {
				top = at + n
				continue
			}
			for ; n < int(c); n++ {
				r[int(a)+n] = Value{}
			}
		case OpTailCall:
			f.pc = int32(pc)
			at := int(f.base) + int(a)
			if n = int(b); b == Many {
				n = top - at - 1
			}
			if err = vm.Tick(1); err != nil {
				goto fail
			}
			if fn = r[a].Function(); fn == nil {
				if fn, n, err = vm.callable(co, at, n, int(a)); err != nil {
					goto fail
				}
			}
			if fn.Go == nil {
				if err = vm.replace(co, fn, at, n); err != nil {
					goto fail
				}
				goto enter
			}
			if n, err = vm.callGo(co, fn, at, n); err != nil {
				goto fail
			}
			f, r = co.here()
			top = at + n
		case OpReturn:
			if co.open != nil {
				co.close(int(f.base))
			}
			at, to := int(f.base)+int(a), int(f.ret)
			if n = int(b); b == Many {
				n = top - at
			}
			want, fresh := int(f.want), f.fresh
			if n == 1 {
				co.stack[to] = co.stack[at]
			} else {
				copy(co.stack[to:to+n], co.stack[at:at+n])
			}
			co.frames = co.frames[:len(co.frames)-1]
			if fresh {
				co.results = n
				return nil
			}
			if want == Many {
				top = to + n
			} else {
				for ; n < want; n++ {
					co.stack[to+n] = Value{}
				}
			}
			goto enter
		case OpVararg:
			first := min(int(f.ret)+1+p.Params, int(f.base)) // those that are more than the parameters
			n = int(f.base) - first
			at := int(f.base) + int(a)
			want := int(b)
			if b == Many {
				want = n
				co.need(at + n)
				f, r = co.here()
				top = at + n
			}
			n = copy(co.stack[at:at+want], co.stack[first:int(f.base)])
			clear(co.stack[at+n : at+want])
		case OpClosure:
			r[a] = vm.closure(co, f, p.Protos[i.D()]).Value()
		case OpClose:
			co.close(int(f.base) + int(a))
		}
		continue

	jump:
		if pc += i.D(); i.D() >= 0 {
			continue
		}
	tick: // of a jump back
		if vm.left--; vm.left > 0 && !vm.hurry.Load() {
			continue
		}
		f.pc = int32(pc)
		if err = vm.ask(); err != nil {
			goto fail
		}
		continue

	arithmetic: // of registers
		f.pc = int32(pc)
		v, err = vm.arithmetic(i.Op(), r[uint8(b)], r[uint8(c)], int(b), int(c))
		goto result

	constant: // of a register and a constant
		f.pc = int32(pc)
		v, err = vm.arithmetic(i.Op()-OpAddK+OpAdd, r[uint8(b)], k[c], int(b), -1)

	result: // of a call that may have moved the stack
		if err != nil {
			goto fail
		}
		f, r = co.here()
		r[a] = v
		continue

	assigned:
		if err != nil {
			goto fail
		}
		f, r = co.here()
		continue

	compared:
		if err != nil {
			goto fail
		}
		if f, r = co.here(); yes == ((i.Op()-OpEqual)%2 == 0) {
			goto jump
		}
		continue

	order: // a comparison of a value with a number
		f.pc = int32(pc)
		if err = vm.orderError(r[a], k[b]); i.Op() >= OpGreaterK {
			err = vm.orderError(k[b], r[a])
		}
		goto fail
	}

fail:
	if err == yielded {
		co.frames = co.frames[:len(co.frames)-1]
		return err
	}
	vm.raised(err)
	co.unwind(depth)
	return err
}

// here returns the innermost frame and its registers, which a call may have moved.
func (c *Coroutine) here() (*frame, *registers) {
	f := &c.frames[len(c.frames)-1]
	return f, (*registers)(unsafe.Pointer(&c.stack[f.base]))
}

// replace makes the frame of a function of Lua that of another one, which it calls last.
func (vm *Machine) replace(co *Coroutine, fn *Function, at, n int) *Error {
	f := co.frame()
	if co.open != nil {
		co.close(int(f.base))
	}
	to, want, fresh, tail := int(f.ret), int(f.want), f.fresh, f.tail+1
	copy(co.stack[to:to+n+1], co.stack[at:at+n+1])
	co.frames = co.frames[:len(co.frames)-1]
	err := vm.push(co, fn, to, n, want, fresh)
	co.frame().tail = tail
	return err
}

// closure returns a function of a prototype, with variables of the function of a frame.
func (vm *Machine) closure(co *Coroutine, f *frame, p *Proto) *Function {
	fn := NewClosure(p)
	if n := len(p.Upvalues); n > 0 {
		fn.upvalues = make([]*upvalue, n)
		for i, c := range p.Upvalues {
			if c.Outer {
				fn.upvalues[i] = f.fn.upvalues[c.Index]
			} else {
				fn.upvalues[i] = co.capture(int(f.base) + int(c.Index))
			}
		}
	}
	vm.Spend(int(unsafe.Sizeof(*fn)) + len(fn.upvalues)*int(unsafe.Sizeof(upvalue{})))
	return fn
}

// prepareLoop makes the values of a loop numbers, and the first one that before the start.
func (vm *Machine) prepareLoop(loop *[3]Value) *Error {
	for i, what := range [...]string{"initial value", "limit", "step"} {
		x, ok := ToNumber(loop[i])
		if !ok {
			return vm.RaisePlain("'for' " + what + " must be a number")
		}
		loop[i] = Number(x)
	}
	loop[0].set(loop[0].float() - loop[2].float())
	return nil
}

// Calculate returns the result of an operation of arithmetic.
func Calculate(op Op, a, b float64) float64 {
	switch op {
	case OpAdd:
		return a + b
	case OpSub:
		return a - b
	case OpMul:
		return a * b
	case OpDiv:
		return a / b
	case OpMod:
		return remainder(a, b)
	case OpMinus:
		return -a
	}
	return Power(a, b)
}

// remainder returns a % b as Lua 5.1 defines it, with the sign of b. The product is rounded, also
// where the processor could do without.
func remainder(a, b float64) float64 { return a - float64(math.Floor(a/b)*b) }
