package script

import (
	"slices"
	"strconv"

	"github.com/zsetd/zsetd/server/internal/lua"
	"github.com/zsetd/zsetd/server/internal/lua/conv"
)

// call is the call of a library function. Its methods read arguments as Lua's auxiliary
// library does. They latch the first error, which ends the call in place of its results: a
// function returns when it likes, but changes nothing after one.
type call struct {
	*State
	args    lua.Args
	results []lua.Value
	err     *lua.Error
	padded  bool // a nil follows the arguments
}

// keptResults is the number of results that a call has space for when it is used again.
const keptResults = 16

// function returns a library function as a value. The calls that run are a stack, and each is
// used again.
func (st *State) function(run func(c *call)) lua.Value {
	return lua.NewFunction(st.wrap(run)).Value()
}

// wrap returns a library function as one of the machine.
func (st *State) wrap(run func(c *call)) lua.GoFunction {
	return func(_ *lua.Machine, a lua.Args) (int, *lua.Error) {
		if st.depth == len(st.calls) {
			st.calls = append(st.calls, &call{State: st})
		}
		c := st.calls[st.depth]
		st.depth++
		c.args, c.results, c.err, c.padded = a, c.results[:0], nil, false
		run(c)
		st.depth--
		if c.err != nil {
			return 0, c.err
		}
		n := len(c.results)
		copy(a.Room(n), c.results)
		if n > keptResults {
			c.results = nil
		}
		return n, nil
	}
}

func (c *call) len() int { return c.args.Len() }

// at returns an argument, nil if there are fewer.
func (c *call) at(n int) lua.Value { return c.args.At(n) }

// push adds a result.
func (c *call) push(v lua.Value) { c.results = append(c.results, v) }

// pushBytes adds a string, which shares b, as a result. It fails if that is too long.
func (c *call) pushBytes(b []byte) {
	if c.makes(len(b)) {
		c.push(lua.Text(view(b)))
	}
}

// fail latches an error.
func (c *call) fail(err *lua.Error) {
	if c.err == nil {
		c.err = err
	}
}

// raise latches an error whose message has a position.
func (c *call) raise(msg string) {
	if c.err == nil {
		c.err = c.vm.Raise(msg)
	}
}

// raisePlain is raise without the position, as Lua itself raises errors in C functions.
func (c *call) raisePlain(msg string) {
	if c.err == nil {
		c.err = c.vm.RaisePlain(msg)
	}
}

// tick counts work of as much as n instructions, and reports whether the call may continue.
func (c *call) tick(n int) bool {
	if err := c.vm.Tick(n); err != nil {
		c.fail(err)
	}
	return c.err == nil
}

// fits refuses strings that exceed the limit.
func (c *call) fits(n int) bool {
	if n > c.vm.MaxString && c.err == nil {
		c.err = c.vm.Throw(lua.Text("not enough memory"))
	}
	return c.err == nil
}

// makes counts a string that is about to be made, and reports whether it may be.
func (c *call) makes(n int) bool {
	if !c.fits(n) {
		return false
	}
	if err := c.vm.Reserve(n); err != nil {
		c.fail(err)
		return false
	}
	return c.tick(n >> 8)
}

// argError latches the error of a bad argument.
func (c *call) argError(n int, msg string) {
	if c.err != nil {
		return
	}
	what, name := c.vm.CalledAs()
	if what == "method" {
		if n--; n == 0 {
			c.raise("calling '" + name + "' on bad self (" + msg + ")")
			return
		}
	}
	c.raise("bad argument #" + strconv.Itoa(n) + " to '" + name + "' (" + msg + ")")
}

func (c *call) typeError(n int, want string) {
	got := "no value"
	if n <= c.len() || c.padded && n == c.len()+1 {
		got = c.at(n).Kind().String()
	}
	c.argError(n, want+" expected, got "+got)
}

// given reports whether an argument is there and not nil.
func (c *call) given(n int) bool { return !c.at(n).IsNil() }

// any reads an argument that must be there.
func (c *call) any(n int) lua.Value {
	if n > c.len() {
		c.argError(n, "value expected")
	}
	return c.at(n)
}

func (c *call) text(n int) string {
	v := c.at(n)
	if s, ok := v.Str(); ok {
		return s
	}
	s, ok := lua.ToText(v)
	if !ok {
		c.typeError(n, "string")
	}
	return s
}

func (c *call) number(n int) float64 {
	v := c.at(n)
	if f, ok := v.Number(); ok {
		return f
	}
	f, ok := lua.ToNumber(v)
	if !ok {
		c.typeError(n, "number")
	}
	return f
}

// int reads an argument as Lua reads a ptrdiff_t, int32 as an int.
func (c *call) int(n int) int { return int(conv.ToInt(c.number(n))) }

func (c *call) int32(n int) int { return conv.ToInt32(c.number(n)) }

func (c *call) optInt(n, missing int) int {
	if !c.given(n) {
		return missing
	}
	return c.int(n)
}

func (c *call) optInt32(n, missing int) int {
	if !c.given(n) {
		return missing
	}
	return c.int32(n)
}

// table reads a table; after an error it returns an empty one.
func (c *call) table(n int) *lua.Table {
	t := c.at(n).Table()
	if t == nil {
		c.typeError(n, "table")
		t = lua.NewTable(0, 0)
	}
	return t
}

// open refuses a read-only table.
func (c *call) open(t *lua.Table) bool {
	if t.ReadOnly {
		c.raisePlain("Attempt to modify a readonly table")
	}
	return c.err == nil
}

func (c *call) function(n int) *lua.Function {
	f := c.at(n).Function()
	if f == nil {
		c.typeError(n, "function")
	}
	return f
}

func (c *call) option(n int, missing string, options ...string) string {
	s := missing
	if c.given(n) || missing == "" {
		s = c.text(n)
	}
	if !slices.Contains(options, s) {
		c.argError(n, "invalid option '"+s+"'")
	}
	return s
}

// invoke calls a value and returns its first result.
func (c *call) invoke(f lua.Value, args ...lua.Value) lua.Value {
	if c.err != nil {
		return lua.Nil
	}
	v, err := c.vm.Call1(f, args...)
	c.err = err
	return v
}

// set sets a field, unless there was an error.
func (c *call) set(t *lua.Table, k, v lua.Value) {
	if c.err == nil && c.open(t) {
		c.err = t.Set(c.vm, k, v)
	}
}

// setInt is set for a whole number.
func (c *call) setInt(t *lua.Table, i int, v lua.Value) {
	if c.err == nil && c.open(t) {
		t.SetInt(c.vm, i, v)
	}
}

// buffer returns an empty buffer for a string that the call makes.
func (c *call) buffer() []byte { return c.bytes[:0] }

// keptBuffer is the size of the largest buffer that is kept for the next string.
const keptBuffer = 4096

// pushBuffer adds the string in a buffer as a result. Short strings are copied, and the buffer is used
// again.
func (c *call) pushBuffer(b []byte) {
	if cap(b) > keptBuffer {
		c.pushBytes(b)
		return
	}
	c.bytes = b
	c.vm.Spend(len(b))
	c.push(lua.Bytes(b))
}
