package lua

import (
	"math"
	"unsafe"
)

// registers are those that instructions can name: more than a frame has, see slack, so that an index
// needs no check.
type registers = [256]Value

// constant returns one of the constants of a function. The compiler names only those that exist.
func constant(k unsafe.Pointer, i int) *Value {
	return (*Value)(unsafe.Add(k, i*valueBytes))
}

// The operands as they are, for the loop: those that are registers have 8 bits.
func (i Instruction) ra() uint8  { return uint8(i >> 8) }
func (i Instruction) rb() uint8  { return uint8(i >> 16) }
func (i Instruction) rc() uint8  { return uint8(i >> 32) }
func (i Instruction) ub() uint16 { return uint16(i >> 16) }
func (i Instruction) uc() uint16 { return uint16(i >> 32) }

// set assigns a number. A register that has one needs no write barrier.
func (v *Value) set(f float64) {
	if v.ref == unsafe.Pointer(&numberHeader) {
		v.bits = math.Float64bits(f)
	} else {
		*v = Number(f)
	}
}

// operand returns an operand that is a register or a constant.
func operand(r *registers, k unsafe.Pointer, i uint16) Value {
	if i < FirstConstant {
		return r[uint8(i)]
	}
	return *constant(k, int(i-FirstConstant))
}

// run executes the innermost frame and those that it adds, until a frame that is fresh returns. The
// results are then in its slot. An error drops these frames, unless it is yielded.
func (vm *Machine) run(co *Coroutine) (err *Error) {
	var (
		f    *frame
		code unsafe.Pointer // the first instruction
		k    unsafe.Pointer // the first constant
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
	code, pc = unsafe.Pointer(unsafe.SliceData(f.fn.Proto.Code)), int(f.pc)
	k = unsafe.Pointer(unsafe.SliceData(f.fn.Proto.Constants))
	r = (*registers)(unsafe.Pointer(&co.stack[f.base]))

	for {
		i := *(*Instruction)(unsafe.Add(code, pc*int(unsafe.Sizeof(Instruction(0)))))
		pc++
		switch i.Op() {
		case OpMove:
			r[i.ra()] = r[i.rb()]
		case OpConstant:
			r[i.ra()] = *constant(k, i.D())
		case OpNil:
			for at := int(i.ra()); at <= int(i.ub()); at++ {
				r[uint8(at)] = Value{}
			}
		case OpBool:
			r[i.ra()] = Bool(i.ub() != 0)
		case OpGetUpval:
			r[i.ra()] = *f.fn.upvalues[i.ub()].value
		case OpSetUpval:
			*f.fn.upvalues[i.ub()].value = r[i.ra()]
		case OpGetGlobal:
			if v = vm.Globals.getString((*String)(constant(k, i.D()).ref)); v.ref != nil || vm.Globals.Meta == nil {
				r[i.ra()] = v
				continue
			}
			f.pc = int32(pc)
			v, err = vm.index(vm.Globals.Value(), *constant(k, i.D()), -1)
			goto result
		case OpSetGlobal:
			f.pc = int32(pc)
			err = vm.setIndex(vm.Globals.Value(), *constant(k, i.D()), r[i.ra()], -1)
			goto assigned
		case OpGetField:
			if t := r[i.rb()].Table(); t != nil {
				if v = t.getString((*String)(constant(k, int(i.uc())).ref)); v.ref != nil || t.Meta == nil {
					r[i.ra()] = v
					continue
				}
			}
			f.pc = int32(pc)
			v, err = vm.index(r[i.rb()], *constant(k, int(i.uc())), int(i.ub()))
			goto result
		case OpGetElement:
			if t := r[i.rb()].Table(); t != nil {
				if v = t.GetInt(int(i.uc())); v.ref != nil || t.Meta == nil {
					r[i.ra()] = v
					continue
				}
			}
			f.pc = int32(pc)
			v, err = vm.index(r[i.rb()], Number(float64(i.uc())), int(i.ub()))
			goto result
		case OpGet:
			key := operand(r, k, i.uc())
			if t := r[i.rb()].Table(); t != nil {
				if key.isNumber() {
					if x := int(key.float()); uint(x-1) < uint(len(t.array)) && float64(x) == key.float() {
						if v = t.array[x-1]; v.ref != nil {
							r[i.ra()] = v
							continue
						}
					}
				}
				if v = t.Get(key); v.ref != nil || t.Meta == nil {
					r[i.ra()] = v
					continue
				}
			}
			f.pc = int32(pc)
			v, err = vm.index(r[i.rb()], key, int(i.ub()))
			goto result
		case OpSetField:
			v = operand(r, k, i.uc())
			if t := r[i.ra()].Table(); t != nil && !t.ReadOnly {
				n := t.findString((*String)(constant(k, int(i.ub())).ref))
				if n != nil && (n.value.ref != nil || t.Meta == nil) {
					t.absent, n.value = 0, v
					continue
				}
			}
			f.pc = int32(pc)
			err = vm.setIndex(r[i.ra()], *constant(k, int(i.ub())), v, int(i.ra()))
			goto assigned
		case OpSet:
			key := operand(r, k, i.ub())
			v = operand(r, k, i.uc())
			if t := r[i.ra()].Table(); t != nil && key.isNumber() && !t.ReadOnly {
				if x := int(key.float()); uint(x-1) < uint(len(t.array)) && float64(x) == key.float() &&
					(t.Meta == nil || t.array[x-1].ref != nil) {
					t.array[x-1] = v
					continue
				}
			}
			f.pc = int32(pc)
			err = vm.setIndex(r[i.ra()], key, v, int(i.ra()))
			goto assigned
		case OpSelf:
			key := operand(r, k, i.uc())
			object := r[i.rb()]
			if t := object.Table(); t != nil {
				if v = t.Get(key); v.ref != nil || t.Meta == nil {
					r[i.ra()+1], r[i.ra()] = object, v
					continue
				}
			}
			f.pc = int32(pc)
			if v, err = vm.index(object, key, int(i.ub())); err != nil {
				goto fail
			}
			f, r = co.here()
			r[i.ra()+1], r[i.ra()] = object, v
		case OpNewTable:
			array, hash := int(i.ub()&15)<<(i.ub()>>4), int(i.uc()&15)<<(i.uc()>>4)
			vm.Spend(tableBytes + array*valueBytes + hash*nodeBytes)
			r[i.ra()] = NewTable(array, hash).Value()
		case OpSetList:
			t := r[i.ra()].Table()
			n, first := int(i.ub()), i.D()
			at := int(f.base) + int(i.ra()) + 1
			if i.ub() == Many {
				n = top - at
			}
			t.growArray(vm, first+n)
			for j, v := range co.stack[at : at+n] {
				t.SetInt(vm, first+j+1, v)
			}
		case OpAdd:
			if x, y := &r[i.rb()], &r[i.rc()]; x.isNumber() && y.isNumber() {
				r[i.ra()].set(x.float() + y.float())
				continue
			}
			goto arithmetic
		case OpSub:
			if x, y := &r[i.rb()], &r[i.rc()]; x.isNumber() && y.isNumber() {
				r[i.ra()].set(x.float() - y.float())
				continue
			}
			goto arithmetic
		case OpMul:
			if x, y := &r[i.rb()], &r[i.rc()]; x.isNumber() && y.isNumber() {
				r[i.ra()].set(x.float() * y.float())
				continue
			}
			goto arithmetic
		case OpDiv:
			if x, y := &r[i.rb()], &r[i.rc()]; x.isNumber() && y.isNumber() {
				r[i.ra()].set(x.float() / y.float())
				continue
			}
			goto arithmetic
		case OpMod:
			if x, y := &r[i.rb()], &r[i.rc()]; x.isNumber() && y.isNumber() {
				r[i.ra()].set(remainder(x.float(), y.float()))
				continue
			}
			goto arithmetic
		case OpPow:
			goto arithmetic
		case OpAddK:
			if x := &r[i.rb()]; x.isNumber() {
				r[i.ra()].set(x.float() + constant(k, int(i.uc())).float())
				continue
			}
			goto constant
		case OpSubK:
			if x := &r[i.rb()]; x.isNumber() {
				r[i.ra()].set(x.float() - constant(k, int(i.uc())).float())
				continue
			}
			goto constant
		case OpMulK:
			if x := &r[i.rb()]; x.isNumber() {
				r[i.ra()].set(x.float() * constant(k, int(i.uc())).float())
				continue
			}
			goto constant
		case OpDivK:
			if x := &r[i.rb()]; x.isNumber() {
				r[i.ra()].set(x.float() / constant(k, int(i.uc())).float())
				continue
			}
			goto constant
		case OpModK:
			if x := &r[i.rb()]; x.isNumber() {
				r[i.ra()].set(remainder(x.float(), constant(k, int(i.uc())).float()))
				continue
			}
			goto constant
		case OpPowK:
			goto constant
		case OpMinus:
			if x := &r[i.rb()]; x.isNumber() {
				r[i.ra()].set(-x.float())
				continue
			}
			f.pc = int32(pc)
			v, err = vm.arithmetic(OpMinus, r[i.rb()], r[i.rb()], int(i.ub()), int(i.ub()))
			goto result
		case OpNot:
			r[i.ra()] = Bool(!r[i.rb()].Truth())
		case OpLength:
			x := r[i.rb()]
			if t := x.Table(); t != nil {
				r[i.ra()].set(float64(t.Len()))
			} else if s := x.str(); s != nil {
				r[i.ra()].set(float64(len(s.s)))
			} else {
				f.pc = int32(pc)
				err = vm.operandError("get length of", x, int(i.ub()))
				goto fail
			}
		case OpConcat:
			f.pc = int32(pc)
			v, err = vm.concat(r[i.rb():int(i.uc())+1], int(i.ub()))
			goto result
		case OpJump:
			if pc += i.D(); i.D() < 0 {
				goto tick
			}
		case OpTrue:
			if x := &r[i.ra()]; x.ref != nil && (x.ref != unsafe.Pointer(&boolHeader) || x.bits != 0) {
				if pc += i.D(); i.D() < 0 {
					goto tick
				}
			}
		case OpFalse:
			if x := &r[i.ra()]; x.ref == nil || x.ref == unsafe.Pointer(&boolHeader) && x.bits == 0 {
				if pc += i.D(); i.D() < 0 {
					goto tick
				}
			}
		case OpAnd:
			if x := r[i.rb()]; !x.Truth() {
				r[i.ra()] = x
				pc += i.D()
			}
		case OpOr:
			if x := r[i.rb()]; x.Truth() {
				r[i.ra()] = x
				pc += i.D()
			}
		case OpEqual, OpUnequal:
			x, y := r[i.ra()], operand(r, k, i.ub())
			if x.isNumber() && y.isNumber() {
				yes = x.float() == y.float()
			} else if yes = x == y; !yes && x.ref != nil && x.Kind() == y.Kind() {
				if x.Kind() == KindString {
					yes = (*String)(x.ref).s == (*String)(y.ref).s
				} else if x.Kind() == KindTable {
					f.pc = int32(pc)
					yes, err = vm.equal(x, y)
					goto compared
				}
			}
			if yes == (i.Op() == OpEqual) {
				goto jump
			}
		case OpLess, OpNotLess:
			if x, y := &r[i.ra()], &r[i.rb()]; x.isNumber() && y.isNumber() {
				if (x.float() < y.float()) == (i.Op() == OpLess) {
					goto jump
				}
				continue
			}
			f.pc = int32(pc)
			yes, err = vm.Less(r[i.ra()], r[i.rb()])
			goto compared
		case OpLessEqual, OpNotLessEqual:
			if x, y := &r[i.ra()], &r[i.rb()]; x.isNumber() && y.isNumber() {
				if (x.float() <= y.float()) == (i.Op() == OpLessEqual) {
					goto jump
				}
				continue
			}
			f.pc = int32(pc)
			yes, err = vm.lessEqual(r[i.ra()], r[i.rb()])
			goto compared
		case OpLessK, OpNotLessK:
			if x := &r[i.ra()]; !x.isNumber() {
				goto order
			} else if (x.float() < constant(k, int(i.ub())).float()) == (i.Op() == OpLessK) {
				goto jump
			}
		case OpLessEqualK, OpNotLessEqualK:
			if x := &r[i.ra()]; !x.isNumber() {
				goto order
			} else if (x.float() <= constant(k, int(i.ub())).float()) == (i.Op() == OpLessEqualK) {
				goto jump
			}
		case OpGreaterK, OpNotGreaterK:
			if x := &r[i.ra()]; !x.isNumber() {
				goto order
			} else if (x.float() > constant(k, int(i.ub())).float()) == (i.Op() == OpGreaterK) {
				goto jump
			}
		case OpGreaterEqualK, OpNotGreaterEqualK:
			if x := &r[i.ra()]; !x.isNumber() {
				goto order
			} else if (x.float() >= constant(k, int(i.ub())).float()) == (i.Op() == OpGreaterEqualK) {
				goto jump
			}
		case OpForPrep:
			f.pc = int32(pc)
			if err = vm.prepareLoop((*[3]Value)(r[i.ra():])); err != nil {
				goto fail
			}
			pc += i.D()
		case OpFor:
			loop := (*[4]Value)(unsafe.Pointer(&r[i.ra()]))
			x, limit, step := loop[0].float(), loop[1].float(), loop[2].float()
			x += step
			if step > 0 && x <= limit || step <= 0 && limit <= x {
				loop[0].bits = math.Float64bits(x)
				loop[3].set(x)
				pc += i.D()
				goto tick
			}
		case OpForIn:
			loop := (*[6]Value)(unsafe.Pointer(&r[i.ra()]))
			fn = loop[0].Function()
			if t := loop[1].Table(); t != nil && fn != nil && fn.iterator != 0 && i.ub() <= 2 {
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
				if i.ub() == 2 {
					loop[4] = v
				}
				pc += i.D()
				goto tick
			}
		iterate:
			f.pc = int32(pc)
			loop[3], loop[4], loop[5] = loop[0], loop[1], loop[2]
			if n, err = vm.call(co, int(f.base)+int(i.ra())+3, 2); err != nil {
				goto fail
			}
			f, r = co.here()
			for ; n < int(i.ub()); n++ {
				r[int(i.ra())+3+n] = Value{}
			}
			if r[i.ra()+3].ref != nil {
				r[i.ra()+2] = r[i.ra()+3]
				pc += i.D()
				goto tick
			}
		case OpCall:
			f.pc = int32(pc)
			at := int(f.base) + int(i.ra())
			if n = int(i.ub()); i.ub() == Many {
				n = top - at - 1
			}
			if vm.left--; vm.left <= 0 {
				if err = vm.ask(); err != nil {
					goto fail
				}
			}
			if r[i.ra()].ref != nil && (*header)(r[i.ra()].ref).kind == KindFunction {
				fn = (*Function)(r[i.ra()].ref)
			} else if fn, n, err = vm.callable(co, at, n, int(i.ra())); err != nil {
				goto fail
			}
			if fn.Go == nil {
				if err = vm.push(co, fn, at, n, int(i.uc()), false); err != nil {
					goto fail
				}
				goto enter
			}
			if n, err = vm.callGo(co, fn, at, n); err != nil {
				goto fail
			}
			f, r = co.here()
			if i.uc() == Many {
				top = at + n
				continue
			}
			for ; n < int(i.uc()); n++ {
				r[int(i.ra())+n] = Value{}
			}
		case OpTailCall:
			f.pc = int32(pc)
			at := int(f.base) + int(i.ra())
			if n = int(i.ub()); i.ub() == Many {
				n = top - at - 1
			}
			if err = vm.Tick(1); err != nil {
				goto fail
			}
			if fn = r[i.ra()].Function(); fn == nil {
				if fn, n, err = vm.callable(co, at, n, int(i.ra())); err != nil {
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
			at, to := int(f.base)+int(i.ra()), int(f.ret)
			if n = int(i.ub()); i.ub() == Many {
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
			first := min(int(f.ret)+1+f.fn.Proto.Params, int(f.base)) // those that are more than the parameters
			n = int(f.base) - first
			at := int(f.base) + int(i.ra())
			want := int(i.ub())
			if i.ub() == Many {
				want = n
				co.need(at + n)
				f, r = co.here()
				top = at + n
			}
			n = copy(co.stack[at:at+want], co.stack[first:int(f.base)])
			clear(co.stack[at+n : at+want])
		case OpClosure:
			r[i.ra()] = vm.closure(co, f, f.fn.Proto.Protos[i.D()]).Value()
		case OpClose:
			co.close(int(f.base) + int(i.ra()))
		}
		continue

	jump:
		if pc += i.D(); i.D() >= 0 {
			continue
		}
	tick: // of a jump back
		if vm.left--; vm.left > 0 {
			continue
		}
		f.pc = int32(pc)
		if err = vm.ask(); err != nil {
			goto fail
		}
		continue

	arithmetic: // of registers
		f.pc = int32(pc)
		v, err = vm.arithmetic(i.Op(), r[i.rb()], r[i.rc()], int(i.ub()), int(i.uc()))
		goto result

	constant: // of a register and a constant
		f.pc = int32(pc)
		v, err = vm.arithmetic(i.Op()-OpAddK+OpAdd, r[i.rb()], *constant(k, int(i.uc())), int(i.ub()), -1)

	result: // of a call that may have moved the stack
		if err != nil {
			goto fail
		}
		f, r = co.here()
		r[i.ra()] = v
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
		if err = vm.orderError(r[i.ra()], *constant(k, int(i.ub()))); i.Op() >= OpGreaterK {
			err = vm.orderError(*constant(k, int(i.ub())), r[i.ra()])
		}
		goto fail
	}

fail:
	if err == &vm.yielded {
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
