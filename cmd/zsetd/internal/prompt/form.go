package prompt

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/zsetd/zsetd/cmd/zsetd/internal/client"
	"github.com/zsetd/zsetd/protocol"
)

// Form is how replies are printed: the forms of redis-cli.
type Form int

// The forms.
const (
	Typed Form = iota // with types, quotes and numbers, for people
	Raw               // the bytes alone, elements in lines
	JSON              // one line of JSON
	CSV               // values with commas between them
)

// appendReply appends a reply, with the end of its last line. delimiter separates the
// elements in the form Raw, end follows the reply there.
func appendReply(b []byte, r *client.Reply, form Form, delimiter, end string) []byte {
	switch form {
	case Raw:
		return append(appendRaw(b, r, delimiter), end...)
	case JSON:
		return append(appendJSON(b, r), '\n')
	case CSV:
		return append(appendCSV(b, r), '\n')
	}
	return appendTyped(b, r, "")
}

// appendTyped appends a reply in lines. prefix is the indentation of its lines but the
// first.
func appendTyped(b []byte, r *client.Reply, prefix string) []byte {
	switch r.Kind {
	case client.Error:
		b = append(append(b, "(error) "...), r.Text...)
	case client.Integer:
		b = append(append(b, "(integer) "...), r.Text...)
	case client.Double:
		b = append(append(b, "(double) "...), r.Text...)
	case client.Number:
		b = append(append(b, "(big number) "...), r.Text...)
	case client.String:
		b = protocol.AppendQuoted(b, r.Text)
	case client.Null:
		b = append(b, "(nil)"...)
	case client.Boolean:
		b = append(append(append(b, '('), boolean(r)...), ')')
	case client.Array, client.Map, client.Set, client.Push:
		return appendElements(b, r, prefix)
	default:
		b = append(b, r.Text...)
	}
	return append(b, '\n')
}

// appendElements appends an aggregate: each element with its number.
func appendElements(b []byte, r *client.Reply, prefix string) []byte {
	name, mark, step := "array", ')', 1
	switch r.Kind {
	case client.Map:
		name, mark, step = "hash", '#', 2
	case client.Set:
		name, mark = "set", '~'
	case client.Push:
		name = "push"
	}
	if len(r.Elements) == 0 {
		return fmt.Appendf(b, "(empty %s)\n", name)
	}
	width := len(strconv.Itoa(len(r.Elements) / step))
	inner := prefix + strings.Repeat(" ", width+2)
	for i := 0; i < len(r.Elements); i += step {
		if i > 0 {
			b = append(b, prefix...)
		}
		b = fmt.Appendf(b, "%*d%c ", width, i/step+1, mark)
		b = appendTyped(b, &r.Elements[i], inner)
		if step == 1 {
			continue
		}
		b = append(b[:len(b)-1], " => "...)
		value := appendTyped(nil, &r.Elements[i+1], inner)
		if r.Elements[i+1].IsAggregate() && bytes.Count(value, []byte("\n")) > 1 {
			b = append(append(b, '\n'), inner...)
		}
		b = append(b, value...)
	}
	return b
}

func boolean(r *client.Reply) string {
	if r.Text == "t" {
		return "true"
	}
	return "false"
}

func appendRaw(b []byte, r *client.Reply, delimiter string) []byte {
	switch r.Kind {
	case client.Null:
		return b
	case client.Boolean:
		return append(append(append(b, '('), boolean(r)...), ')')
	case client.Error:
		return append(append(b, r.Text...), '\n')
	case client.Array, client.Set, client.Push:
		for i := range r.Elements {
			if i > 0 {
				b = append(b, delimiter...)
			}
			b = appendRaw(b, &r.Elements[i], delimiter)
		}
		return b
	case client.Map:
		for i := 0; i < len(r.Elements); i += 2 {
			if i > 0 {
				b = append(b, delimiter...)
			}
			b = append(appendRaw(b, &r.Elements[i], delimiter), ' ')
			b = appendRaw(b, &r.Elements[i+1], delimiter)
		}
		return b
	}
	return append(b, r.Text...)
}

func appendJSON(b []byte, r *client.Reply) []byte {
	switch r.Kind {
	case client.Integer:
		return append(b, r.Text...)
	case client.Double:
		switch r.Text {
		case "inf", "-inf", "nan": // JSON has no numbers for them
			return appendJSONString(b, r.Text)
		}
		return append(b, r.Text...)
	case client.Null:
		return append(b, "null"...)
	case client.Boolean:
		return append(b, boolean(r)...)
	case client.Error:
		return appendJSONString(append(b, "error:"...), r.Text)
	case client.Array, client.Set, client.Push:
		b = append(b, '[')
		for i := range r.Elements {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, &r.Elements[i])
		}
		return append(b, ']')
	case client.Map:
		b = append(b, '{')
		for i := 0; i < len(r.Elements); i += 2 {
			if i > 0 {
				b = append(b, ',')
			}
			key := &r.Elements[i]
			text := appendJSON(nil, key)
			if len(text) == 0 || text[0] != '"' { // only strings are keys in JSON
				text = appendJSONString(nil, string(text))
			}
			b = append(append(b, text...), ':')
			b = appendJSON(b, &r.Elements[i+1])
		}
		return append(b, '}')
	}
	return appendJSONString(b, r.Text)
}

// appendJSONString appends a string of JSON. Bytes that are not UTF-8 stay as they are.
func appendJSONString(b []byte, s string) []byte {
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, `\n`...)
		case c == '\r':
			b = append(b, `\r`...)
		case c == '\t':
			b = append(b, `\t`...)
		case c == '\b':
			b = append(b, `\b`...)
		case c == '\f':
			b = append(b, `\f`...)
		case c < ' ':
			b = fmt.Appendf(b, `\u%04x`, c)
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

func appendCSV(b []byte, r *client.Reply) []byte {
	switch r.Kind {
	case client.Integer, client.Double:
		return append(b, r.Text...)
	case client.Null:
		return append(b, "NULL"...)
	case client.Boolean:
		return append(b, boolean(r)...)
	case client.Error:
		return protocol.AppendQuoted(append(b, "ERROR,"...), r.Text)
	case client.Array, client.Map, client.Set, client.Push:
		for i := range r.Elements {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendCSV(b, &r.Elements[i])
		}
		return b
	}
	return protocol.AppendQuoted(b, r.Text)
}
