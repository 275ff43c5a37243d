package scripting

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/lua"
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
func (w *luaReply) value(v lua.Value, used int) {
	r := w.c.Reply
	if used+4 > luaStack {
		r.Error("ERR reached lua stack limit")
		return
	}
	if !w.spend(0) {
		return
	}
	switch v.Kind() {
	case lua.KindString:
		if s, _ := v.Str(); w.spend(len(s)) {
			r.BulkString(s)
		}
	case lua.KindBool:
		switch {
		case w.resp3:
			r.Bool(v.Truth())
		case v.Truth():
			r.Int(1)
		default:
			r.Null()
		}
	case lua.KindNumber:
		f, _ := v.Number()
		r.Int(truncate(f))
	case lua.KindTable:
		w.table(v.Table(), used)
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

func (w *luaReply) table(t *lua.Table, used int) {
	r := w.c.Reply
	if _, ok := t.GetText("err").Str(); ok {
		msg, counted := errorOf(t)
		w.c.Counted, w.c.Invented = counted, true
		r.Error(cText(msg))
		return
	}
	if text, ok := t.GetText("ok").Str(); ok {
		text, _, _ = strings.Cut(text, "\x00")
		r.Status(text)
		return
	}
	if f, ok := t.GetText("double").Number(); ok {
		r.Double(f)
		return
	}
	if s, ok := t.GetText("big_number").Str(); ok {
		r.BigNumber(strings.NewReplacer("\r", " ", "\n", " ").Replace(s))
		return
	}
	if v := t.GetText("verbatim_string").Table(); v != nil {
		format, ok1 := v.GetText("format").Str()
		text, ok2 := v.GetText("string").Str()
		if ok1 && ok2 {
			r.Verbatim((format + "   ")[:3], text)
			return
		}
	}
	if m := t.GetText("map").Table(); m != nil {
		r.Map(fields(m))
		for k, v, at := m.Entry(0); !k.IsNil(); k, v, at = m.Entry(at) {
			w.value(k, used+4)
			w.value(v, used+3)
		}
		return
	}
	if s := t.GetText("set").Table(); s != nil {
		r.Set(fields(s))
		for k, _, at := s.Entry(0); !k.IsNil(); k, _, at = s.Entry(at) {
			w.value(k, used+3)
		}
		return
	}
	n := 0
	for !t.GetInt(n + 1).IsNil() {
		n++
	}
	r.Array(n)
	for i := 1; i <= n; i++ {
		w.value(t.GetInt(i), used+1)
	}
}

// fields returns the number of fields of a table.
func fields(t *lua.Table) (n int) {
	for k, _, at := t.Entry(0); !k.IsNil(); k, _, at = t.Entry(at) {
		n++
	}
	return n
}

// decoder converts a reply to the value that scripts see, in one pass. The reply is complete,
// as it comes from this server. A large reply takes long, and the script may be ended meanwhile.
type decoder struct {
	vm   *lua.Machine
	rest []byte     // follows what is decoded
	err  *lua.Error // ends the script
}

// line takes the rest of the line after the kind of the next element.
func (d *decoder) line() []byte {
	i := bytes.IndexByte(d.rest, '\r')
	if i < 0 {
		panic("BUG: unterminated reply")
	}
	line := d.rest[1:i]
	d.rest = d.rest[i+2:]
	return line
}

// integer is line for a line with an integer.
func (d *decoder) integer() (n int64) {
	b := d.rest[1:]
	negative := b[0] == '-'
	if negative {
		b = b[1:]
	}
	i := 0
	for ; b[i] != '\r'; i++ {
		digit := b[i] - '0'
		if digit > 9 {
			panic("BUG: reply with an invalid integer")
		}
		n = n*10 + int64(digit) // the least integer is its own negative
	}
	d.rest = b[i+2:]
	if negative {
		return -n
	}
	return n
}

// take returns the next n bytes, and skips the end of their line.
func (d *decoder) take(n int64) []byte {
	b := d.rest[:n]
	d.rest = d.rest[n+2:]
	return b
}

// field returns a table with one field.
func (d *decoder) field(name string, v lua.Value) lua.Value {
	t := lua.NewTable(0, 1)
	t.SetText(d.vm, name, v)
	return t.Value()
}

// value decodes a value.
func (d *decoder) value() lua.Value {
	if d.err != nil {
		return lua.Nil
	}
	if d.err = d.vm.Tick(5); d.err != nil {
		return lua.Nil
	}
	kind := d.rest[0]
	switch kind {
	case ':':
		return lua.Number(float64(d.integer()))
	case '$':
		n := d.integer()
		if n < 0 {
			return lua.False
		}
		d.vm.Spend(int(n))
		return lua.Bytes(d.take(n))
	case '+':
		return d.field("ok", lua.Bytes(d.line()))
	case '-':
		t := lua.NewTable(0, 2)
		t.SetText(d.vm, "err", lua.Text(errorLine(string(d.line()))))
		t.SetText(d.vm, "ignore_error_stats_update", lua.True)
		return t.Value()
	case '*', '>':
		n := int(d.integer())
		if n < 0 {
			return lua.False
		}
		t := lua.NewTable(0, 0)
		for i := 1; i <= n && d.err == nil; i++ {
			t.SetInt(d.vm, i, d.value())
		}
		return t.Value()
	case '_':
		d.line()
		return lua.Nil
	case '#':
		return lua.Bool(d.line()[0] == 't')
	case ',':
		f, _ := strconv.ParseFloat(protocol.View(d.line()), 64)
		return d.field("double", lua.Number(f))
	case '(':
		return d.field("big_number", lua.Bytes(d.line()))
	case '=':
		text := d.take(d.integer())
		t := lua.NewTable(0, 2)
		t.SetText(d.vm, "format", lua.Bytes(text[:3]))
		t.SetText(d.vm, "string", lua.Bytes(text[4:]))
		return d.field("verbatim_string", t.Value())
	case '|': // scripts do not see attributes
		for range 2 * d.integer() {
			d.value()
		}
		return d.value()
	case '%', '~':
		name := "map"
		if kind == '~' {
			name = "set"
		}
		t := lua.NewTable(0, 0)
		for range d.integer() {
			k, v := d.value(), lua.True
			if kind == '%' {
				v = d.value()
			}
			if !k.IsNil() && d.err == nil {
				d.err = t.Set(d.vm, k, v)
			}
		}
		return d.field(name, t.Value())
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
