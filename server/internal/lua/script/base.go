package script

import (
	"errors"
	"math"
	"runtime/metrics"
	"strconv"
	"strings"

	"github.com/zsetd/zsetd/server/internal/lua"
	"github.com/zsetd/zsetd/server/internal/lua/compiler"
	"github.com/zsetd/zsetd/server/internal/lua/conv"
)

// openBase fills the globals: section 5.1 of the manual of Lua 5.1, as far as Redis has it. pairs
// visits them in the order of Redis, which depends on the order here, and on the names that Redis takes away:
// these are nil.
func (st *State) openBase() {
	for k := range st.kinds {
		st.kinds[k] = lua.Text(lua.Kind(k).String())
	}
	iterator := func(step, first lua.Value) lua.Value {
		return st.function(func(c *call) {
			c.table(1)
			c.push(step)
			c.push(c.at(1))
			c.push(first)
		})
	}
	next, indexes := lua.NewNext(st.wrap(next)).Value(), lua.NewIndexes(st.wrap(ipairsStep)).Value()
	absent := func(names ...string) (list []Entry) {
		for _, name := range names {
			list = append(list, Entry{Name: name})
		}
		return list
	}
	for _, list := range [][]Entry{
		{{"_G", st.globals.Value()}},
		st.entries(entry{"assert", assert}, entry{"collectgarbage", collectgarbage}), absent("dofile"),
		st.entries(entry{"error", baseError}, entry{"gcinfo", func(c *call) { c.push(lua.Number(math.Floor(heapKilobytes()))) }}), absent("getfenv"),
		st.entries(entry{"getmetatable", getmetatable}), absent("loadfile"),
		st.entries(entry{"load", load}, entry{"loadstring", loadstring}), {{"next", next}}, st.entries(entry{"pcall", pcall}), absent("print"),
		st.entries(entry{"rawequal", func(c *call) { c.push(lua.Bool(lua.Equal(c.any(1), c.any(2)))) }}, entry{"rawget", rawget},
			entry{"rawset", rawset}, entry{"select", selectArgs}), absent("setfenv"),
		st.entries(entry{"setmetatable", setmetatable}, entry{"tonumber", tonumber}, entry{"tostring", tostring},
			entry{"type", func(c *call) { c.push(c.kinds[c.any(1).Kind()]) }}, entry{"unpack", unpack}, entry{"xpcall", xpcall}),
		{{"_VERSION", lua.Text("Lua 5.1")}, {"ipairs", iterator(indexes, lua.Number(0))}, {"pairs", iterator(next, lua.Nil)}}, absent("newproxy"),
		{{"coroutine", st.coroutineLibrary().Value()}, {"table", st.tableLibrary().Value()}, {"string", st.stringLibrary().Value()},
			{"math", st.mathLibrary().Value()}, {"debug", lua.False}, {"os", st.osLibrary().Value()}, {"cjson", st.newJSON().Value()},
			{"struct", st.structLibrary().Value()}, {"cmsgpack", st.msgpackLibrary().Value()}, {"bit", st.bitLibrary().Value()}},
	} {
		for _, e := range list {
			st.globals.SetText(nil, e.Name, e.Value)
		}
	}
	st.vm.StringMeta = lua.NewTable(0, 1)
	st.vm.StringMeta.SetText(nil, "__index", st.globals.GetText("string"))
	st.vm.StringMeta.ReadOnly = true
}

// errorHandler is the function through which Redis runs scripts, a global of them, too: it returns an error as a
// table, with the position of its caller, or the caller of that if it is of Go.
func errorHandler(c *call) {
	v := c.at(1)
	if v.Table() == nil {
		v = Library(Entry{"err", lua.Text("ERR " + lua.Display(v))}).Value()
	}
	source, line, ok := c.vm.Position(1)
	if source == "=[C]" {
		source, line, ok = c.vm.Position(2)
	}
	if ok {
		for _, e := range []Entry{{"source", lua.Text(sourceName(source))}, {"line", lua.Number(float64(line))}} {
			if c.err == nil {
				c.err = c.vm.SetIndex(v, lua.Text(e.Name), e.Value)
			}
		}
	}
	c.push(v)
}

// sourceName returns the name of a chunk as debug.getinfo has it: with "@" before that of a file.
func sourceName(source string) string {
	if strings.HasPrefix(source, "=") || strings.HasPrefix(source, "[string ") {
		return source
	}
	return "@" + source
}

func assert(c *call) {
	if !c.any(1).Truth() {
		msg := "assertion failed!"
		if c.given(2) {
			msg = conv.CString(c.text(2))
		}
		c.raise(msg)
		return
	}
	c.results = append(c.results, c.args.Slice(1)...)
}

// heapKilobytes is the memory of the process: that of a machine is not known.
func heapKilobytes() float64 {
	samples := [...]metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(samples[:])
	return float64(samples[0].Value.Uint64()) / 1024
}

func collectgarbage(c *call) {
	switch c.option(1, "collect", "stop", "restart", "collect", "count", "step", "setpause", "setstepmul") {
	case "count":
		c.push(lua.Number(heapKilobytes()))
	case "step":
		c.push(lua.True)
	default:
		c.push(lua.Number(0))
	}
}

func baseError(c *call) {
	level := c.optInt32(2, 1)
	v := c.at(1)
	if text, ok := lua.ToText(v); ok && level > 0 {
		v = lua.Text(c.vm.Where(level) + text)
	}
	c.fail(c.vm.Throw(v))
}

func (st *State) metatable(v lua.Value) *lua.Table {
	if t := v.Table(); t != nil {
		return t.Meta
	}
	if v.Kind() == lua.KindString {
		return st.vm.StringMeta
	}
	return nil
}

func getmetatable(c *call) {
	meta := c.metatable(c.any(1))
	if meta == nil {
		c.push(lua.Nil)
		return
	}
	v := meta.GetText("__metatable")
	if v.IsNil() {
		v = meta.Value()
	}
	c.push(v)
}

func setmetatable(c *call) {
	t := c.table(1)
	meta := c.at(2).Table()
	if meta == nil && (c.len() < 2 || c.given(2)) {
		c.argError(2, "nil or table expected")
	}
	if t.Meta != nil && !t.Meta.GetText("__metatable").IsNil() {
		c.raise("cannot change a protected metatable")
	}
	if c.open(t) {
		t.Meta = meta
	}
	c.push(t.Value())
}

func next(c *call) {
	k, v, ok := c.table(1).Next(c.at(2))
	if !ok {
		c.raisePlain("invalid key to 'next'")
		return
	}
	if c.push(k); !k.IsNil() {
		c.push(v)
	}
}

func ipairsStep(c *call) {
	i := c.int32(2) + 1
	if v := c.table(1).GetInt(i); !v.IsNil() {
		c.push(lua.Number(float64(i)))
		c.push(v)
	}
}

func load(c *call) {
	chunk := "=(load)"
	if c.given(2) {
		chunk = c.text(2)
	}
	f := c.function(1)
	var src strings.Builder
	for c.err == nil {
		results, err := c.vm.Try(f.Value(), lua.Nil)
		if err != nil {
			if err.Fatal {
				c.fail(err)
				return
			}
			c.push(lua.Nil)
			c.push(err.Value)
			return
		}
		piece := lua.Nil
		if len(results) > 0 {
			piece = results[0]
		}
		text, ok := lua.ToText(piece)
		if !ok && !piece.IsNil() {
			c.push(lua.Nil)
			c.push(lua.Text(c.vm.Where(1) + "reader function must return a string"))
			return
		}
		if text == "" {
			break
		}
		if src.Len()+len(text) > c.vm.MaxString {
			c.push(lua.Nil)
			c.push(lua.Text("not enough memory"))
			return
		}
		c.makes(len(text))
		src.WriteString(text)
	}
	c.loaded(src.String(), chunk)
}

func loadstring(c *call) {
	src := c.text(1)
	chunk := src
	if c.given(2) {
		chunk = c.text(2)
	}
	c.loaded(src, chunk)
}

func (c *call) loaded(src, chunk string) {
	if c.err != nil {
		return
	}
	id := chunkID(chunk, idSize)
	f, err := c.compile(src, id)
	if err == compiler.ErrStopped {
		c.fail(c.end)
		return
	}
	if err != nil {
		msg := err.Error()
		if rest, found := strings.CutPrefix(msg, id); found {
			msg = chunkID(chunk, syntaxIDSize) + rest
		}
		c.push(lua.Nil)
		c.push(lua.Text(msg))
		return
	}
	c.push(f.Value())
}

// The bytes of a chunk's name in messages of Lua 5.1, with the NUL that ends it in C: of code that
// runs (LUA_IDSIZE of luaconf.h), and of the compiler (MAXSRC of llex.c).
const (
	idSize       = 60
	syntaxIDSize = 80
)

// chunkID returns the name of a chunk in messages, of less than most bytes.
func chunkID(name string, most int) string {
	switch {
	case strings.HasPrefix(name, "="):
		return conv.CString(name[1:min(len(name), most)])
	case strings.HasPrefix(name, "@"):
		name = conv.CString(name[1:])
		if n := most - len(" '...' ") - 1; len(name) > n {
			return "..." + name[len(name)-n:]
		}
		return name
	}
	name = conv.CString(name)
	line, _, more := strings.Cut(name, "\n")
	if i := strings.IndexByte(line, '\r'); i >= 0 {
		line, more = line[:i], true
	}
	room := most - len(` [string "..."] `) - 1
	if len(line) > room {
		line, more = line[:room], true
	}
	if more {
		line += "..."
	}
	return `[string "` + line + `"]`
}

// pcall is Redis's: in place of an error that is a table it returns the field err of
// the table if that is a string, and else both.
func pcall(c *call) {
	if c.len() == 0 { // Redis then calls its own placeholder for the result
		c.push(lua.False)
		c.push(lua.Text("attempt to call a boolean value"))
		return
	}
	results, err := c.vm.Try(c.at(1), lua.Nil, c.args.Slice(2)...)
	if c.protected(results, err) || c.err != nil {
		return
	}
	t := err.Value.Table()
	if t == nil {
		c.push(err.Value)
		return
	}
	field, failed := c.vm.Index(err.Value, lua.Text("err"))
	if failed != nil {
		c.fail(failed)
		return
	}
	if text, ok := lua.ToText(field); ok {
		c.push(lua.Text(text))
		return
	}
	c.push(err.Value)
	c.push(field)
}

// protected pushes what a protected call has returned: true and the results, or false.
func (c *call) protected(results []lua.Value, err *lua.Error) bool {
	switch {
	case err == nil:
		c.push(lua.True)
		c.results = append(c.results, results...)
	case err.Fatal:
		c.fail(err)
	default:
		c.push(lua.False)
	}
	return err == nil
}

func xpcall(c *call) {
	handler := c.any(2)
	if c.err != nil {
		return
	}
	if handler.IsNil() {
		handler = lua.False // which cannot be called either
	}
	results, err := c.vm.Try(c.at(1), handler)
	if !c.protected(results, err) && c.err == nil {
		c.push(err.Value)
	}
}

func rawget(c *call) {
	t := c.table(1)
	c.push(t.Get(c.any(2)))
}

func rawset(c *call) {
	t := c.table(1)
	c.any(2)
	c.any(3)
	c.set(t, c.at(2), c.at(3))
	c.push(c.at(1))
}

func selectArgs(c *call) {
	count := c.len() - 1
	if s, _ := c.at(1).Str(); s == "#" {
		c.push(lua.Number(float64(count)))
		return
	}
	first := c.int32(1)
	if first < 0 { // from the end
		first += count + 1
	}
	if first < 1 {
		c.argError(1, "index out of range")
	}
	if c.err == nil && first <= count {
		c.results = append(c.results, c.args.Slice(first+1)...)
	}
}

func tonumber(c *call) {
	v := lua.Nil
	if base := c.optInt32(2, 10); base == 10 {
		if f, ok := lua.ToNumber(c.any(1)); ok {
			v = lua.Number(f)
		}
	} else {
		text := c.text(1)
		if base < 2 || base > 36 {
			c.argError(2, "base out of range")
		} else if u, ok := unsignedNumber(conv.CString(text), base); ok {
			v = lua.Number(float64(u))
		}
	}
	c.push(v)
}

// unsignedNumber parses an integer of a base, with spaces around it, as strtoul in C99
// (7.20.1.4) does: modulo 2^64 if it is negative, and the greatest one if it is out of
// range.
func unsignedNumber(text string, base int) (u uint64, ok bool) {
	text = strings.Trim(text, " \t\n\v\f\r")
	digits, negative := strings.CutPrefix(text, "-")
	if !negative {
		digits = strings.TrimPrefix(text, "+")
	}
	if hex := len(digits) > 2 && strings.EqualFold(digits[:2], "0x"); hex && base == 16 {
		digits = digits[2:]
	}
	u, err := strconv.ParseUint(digits, base, 64)
	switch {
	case errors.Is(err, strconv.ErrRange): // perhaps before a byte that is no digit
		return math.MaxUint64, strings.Trim(strings.ToLower(digits), "0123456789abcdefghijklmnopqrstuvwxyz"[:base]) == ""
	case negative:
		u = -u
	}
	return u, err == nil
}

func tostring(c *call) {
	v := c.any(1)
	if v.Kind() == lua.KindString {
		c.push(v)
		return
	}
	if meta := c.metatable(v); meta != nil {
		if f := meta.GetText("__tostring"); !f.IsNil() {
			c.push(c.invoke(f, v))
			return
		}
	}
	c.push(lua.Text(lua.Display(v)))
}

// maxUnpack is the number of values that Lua puts on its stack at once.
const maxUnpack = 8000

func unpack(c *call) {
	t := c.table(1)
	first := c.optInt32(2, 1)
	last := c.optInt32(3, t.Len())
	n := max(last-first+1, 0)
	if n >= maxUnpack {
		c.raise("too many results to unpack")
		return
	}
	for i := range n {
		c.push(t.GetInt(first + i))
	}
}
