package scripting

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/lua/script"
)

// spend counts a value of so many bytes, and reports whether the script may
// continue. A table that holds another one twice, and so on, makes the reply
// exponentially long.
func (w *luaReply) spend(bytes int) bool {
	w.work++
	w.bytes += bytes
	if w.ended == nil && (w.work >= 10_000 || w.bytes >= 16<<20) {
		w.work, w.bytes = 0, 0
		if w.c.Reply.Over() {
			w.ended = engine.ErrorTable(w.run.State, "ERR the reply of the script is too large", false)
		} else {
			// During interrupt other sessions may send something to this client: it
			// precedes the reply.
			r := w.c.Reply
			reply := r.Swap(nil)
			w.ended = w.run.Interrupt()
			if sent := r.Swap(nil); len(sent) > 0 {
				reply = slices.Insert(reply, w.start, sent...)
				w.start += len(sent)
			}
			r.Swap(reply)
			r.Raw(reply) // onto itself: Swap has only emptied it
		}
	}
	return w.ended == nil
}

// luaStack is the number of values that Lua has space for in a call; a reply that
// is nested more deeply is an error there.
const luaStack = 8000

// value writes a value. used is the number of values on Lua's stack in Redis by
// then.
func (w *luaReply) value(v lua.LValue, used int) {
	r := w.c.Reply
	if used+4 > luaStack {
		r.Error("ERR reached lua stack limit")
		return
	}
	if !w.spend(0) {
		return
	}
	switch v := v.(type) {
	case lua.LString:
		if w.spend(len(v)) {
			r.BulkString(string(v))
		}
	case lua.LBool:
		switch {
		case w.resp3:
			r.Bool(bool(v))
		case bool(v):
			r.Int(1)
		default:
			r.Null()
		}
	case lua.LNumber:
		r.Int(truncate(float64(v)))
	case *lua.LTable:
		w.table(v, used)
	default:
		r.Null()
	}
}

// truncate converts a number to an integer, as C does on amd64.
func truncate(f float64) int64 {
	if f >= -(1<<63) && f < 1<<63 {
		return int64(f)
	}
	return math.MinInt64
}

func (w *luaReply) table(t *lua.LTable, used int) {
	r := w.c.Reply
	if _, ok := t.RawGetString("err").(lua.LString); ok {
		msg, counted := errorOf(t)
		w.c.Counted, w.c.Invented = counted, true
		r.Error(cText(msg))
		return
	}
	if s, ok := t.RawGetString("ok").(lua.LString); ok {
		text := string(s)
		if i := strings.IndexByte(text, 0); i >= 0 {
			text = text[:i]
		}
		r.Status(text)
		return
	}
	if f, ok := t.RawGetString("double").(lua.LNumber); ok {
		r.Double(float64(f))
		return
	}
	if s, ok := t.RawGetString("big_number").(lua.LString); ok {
		r.BigNumber(strings.NewReplacer("\r", " ", "\n", " ").Replace(string(s)))
		return
	}
	if v, ok := t.RawGetString("verbatim_string").(*lua.LTable); ok {
		format, ok1 := v.RawGetString("format").(lua.LString)
		text, ok2 := v.RawGetString("string").(lua.LString)
		if ok1 && ok2 {
			r.Verbatim((string(format) + "   ")[:3], string(text))
			return
		}
	}
	if m, ok := t.RawGetString("map").(*lua.LTable); ok {
		n := 0
		for k, _ := m.Next(lua.LNil); k != lua.LNil; k, _ = m.Next(k) {
			n++
		}
		r.Map(n)
		for k, v := m.Next(lua.LNil); k != lua.LNil; k, v = m.Next(k) {
			w.value(k, used+4)
			w.value(v, used+3)
		}
		return
	}
	if s, ok := t.RawGetString("set").(*lua.LTable); ok {
		n := 0
		for k, _ := s.Next(lua.LNil); k != lua.LNil; k, _ = s.Next(k) {
			n++
		}
		r.Set(n)
		for k, _ := s.Next(lua.LNil); k != lua.LNil; k, _ = s.Next(k) {
			w.value(k, used+3)
		}
		return
	}
	n := 0
	for t.RawGetInt(n+1) != lua.LNil {
		n++
	}
	r.Array(n)
	for i := 1; i <= n; i++ {
		w.value(t.RawGetInt(i), used+1)
	}
}

// maxPrealloc is the number of elements that the table of a reply is allocated for at
// once, so that the memory of larger ones is requested step by step.
const maxPrealloc = 1 << 20

// luaValue converts a reply to the value that scripts see. The reply is complete,
// as it comes from this server; rest is the data after it. L is the coroutine that
// has called the command: a large reply takes long, and the script may be ended
// meanwhile.
func luaValue(state *script.State, L *lua.LState, reply []byte) (v lua.LValue, rest []byte) {
	state.Spend(L, 5)
	i := bytes.IndexByte(reply, '\r')
	if i < 0 {
		panic("BUG: unterminated reply")
	}
	kind, line, rest := reply[0], reply[1:i], reply[i+2:]
	number := func() int {
		n, err := strconv.Atoi(protocol.View(line))
		if err != nil {
			panic("BUG: reply with an invalid length")
		}
		return n
	}
	field := func(name string, v lua.LValue) (lua.LValue, []byte) {
		t := state.L.CreateTable(0, 1)
		t.RawSetString(name, v)
		return t, rest
	}
	switch kind {
	case '+':
		return field("ok", lua.LString(line))
	case '-':
		return engine.ErrorTable(state, errorLine(string(line)), true), rest
	case ':':
		n, err := strconv.ParseInt(protocol.View(line), 10, 64)
		if err != nil {
			panic("BUG: reply with an invalid integer")
		}
		return lua.LNumber(n), rest
	case '$':
		n := number()
		if n < 0 {
			return lua.LFalse, rest
		}
		state.Spend(L, n>>12)
		return lua.LString(rest[:n]), rest[n+2:]
	case '*', '>':
		n := number()
		if n < 0 {
			return lua.LFalse, rest
		}
		t := state.L.CreateTable(min(n, maxPrealloc), 0)
		for i := range n {
			var e lua.LValue
			e, rest = luaValue(state, L, rest)
			t.RawSetInt(i+1, e)
		}
		return t, rest
	case '_':
		return lua.LNil, rest
	case '#':
		return lua.LBool(line[0] == 't'), rest
	case ',':
		f, _ := strconv.ParseFloat(protocol.View(line), 64)
		return field("double", lua.LNumber(f))
	case '(':
		return field("big_number", lua.LString(line))
	case '=':
		n := number()
		text := rest[:n]
		rest = rest[n+2:]
		t := state.L.CreateTable(0, 2)
		t.RawSetString("format", lua.LString(text[:3]))
		t.RawSetString("string", lua.LString(text[4:]))
		return field("verbatim_string", t)
	case '|': // scripts do not see attributes
		for range 2 * number() {
			_, rest = luaValue(state, L, rest)
		}
		return luaValue(state, L, rest)
	case '%':
		n := number()
		t := state.L.CreateTable(0, min(n, maxPrealloc))
		for range n {
			var k, e lua.LValue
			k, rest = luaValue(state, L, rest)
			e, rest = luaValue(state, L, rest)
			if k != lua.LNil {
				t.RawSet(k, e)
			}
		}
		return field("map", t)
	case '~':
		n := number()
		t := state.L.CreateTable(0, min(n, maxPrealloc))
		for range n {
			var k lua.LValue
			k, rest = luaValue(state, L, rest)
			if k != lua.LNil {
				t.RawSet(k, lua.LTrue)
			}
		}
		return field("set", t)
	}
	panic("BUG: reply of an unknown type")
}

// errorLine adds a code to an error without one.
func errorLine(line string) string {
	code, msg, ok := strings.Cut(line, " ")
	if !ok {
		return "ERR " + line
	}
	return code + " " + msg
}
