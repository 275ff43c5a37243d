package transcript

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/zsetd/zsetd/protocol"
)

// Matches reports whether a reply is as the item demands: the same bytes, unless its directives
// allow others. If meaning is set the replies may be in different dialects of RESP.
func (it *Item) Matches(got, want string, meaning bool) bool {
	switch {
	case got == want || it.Any:
		return true
	case got == Closed || want == Closed:
		return false
	case !meaning:
		return it.sameDialect(got, want)
	}
	g, w, ok := decodeBoth(got, want)
	if !ok {
		return false
	}
	if it.Near != 0 {
		return near(g, w, it.Near)
	}
	// RESP3 nests some replies that RESP2 leaves flat: the leaves, in order, must mean the same.
	gl, wl := Leaves(nil, g), Leaves(nil, w)
	if it.Unordered {
		slices.Sort(gl)
		slices.Sort(wl)
	}
	return slices.Equal(gl, wl)
}

// MatchesServer reports whether two servers give the same reply in the same dialect of RESP:
// unlike Matches, it demands replies of the same type where any reply is right.
func (it *Item) MatchesServer(got, want string) bool {
	switch {
	case it.Zsetd || got == want:
		return true
	case got == Closed || want == Closed || got[0] != want[0]:
		return false
	}
	return it.Any || it.sameDialect(got, want)
}

// sameDialect compares replies that differ, by the directives.
func (it *Item) sameDialect(got, want string) bool {
	if it.Near == 0 && (!it.Unordered || got[0] != want[0]) {
		return false
	}
	g, w, ok := decodeBoth(got, want)
	if !ok {
		return false
	}
	if it.Near != 0 {
		return near(g, w, it.Near)
	}
	return slices.Equal(Elements(g, it.Group), Elements(w, it.Group))
}

func decodeBoth(got, want string) (g, w any, ok bool) {
	g, _, err1 := protocol.Decode([]byte(got))
	w, _, err2 := protocol.Decode([]byte(want))
	return g, w, err1 == nil && err2 == nil
}

// near reports whether two integers, or those in two lists, differ by at most by, and all
// else is equal.
func near(got, want any, by int64) bool {
	switch g := got.(type) {
	case int64:
		w, ok := want.(int64)
		return ok && max(g-w, w-g) <= by
	case []any:
		w, ok := want.([]any)
		return ok && slices.EqualFunc(g, w, func(g, w any) bool { return near(g, w, by) })
	}
	return reflect.DeepEqual(got, want)
}

// Elements returns the elements of a decoded reply as text, in a canonical order. Groups of
// elements stay together.
func Elements(v any, group int) []string {
	var out []string
	add := func(list []any) {
		for ; len(list) > 0; list = list[min(group, len(list)):] {
			out = append(out, fmt.Sprintf("%#v", list[:min(group, len(list))]))
		}
	}
	switch v := v.(type) {
	case []any:
		add(v)
	case protocol.Set:
		add(v)
	case protocol.Push:
		add(v)
	case protocol.Map:
		for _, p := range v {
			out = append(out, fmt.Sprintf("%#v", p))
		}
	default:
		out = append(out, fmt.Sprintf("%#v", v))
	}
	slices.Sort(out)
	return out
}

// Leaves appends the values of a decoded reply without its structure, as texts that do not depend
// on the dialect of RESP.
func Leaves(out []string, v any) []string {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			out = Leaves(out, e)
		}
	case protocol.Set:
		return Leaves(out, []any(v))
	case protocol.Push:
		return Leaves(out, []any(v))
	case protocol.Map:
		for _, p := range v {
			out = Leaves(Leaves(out, p.Key), p.Value)
		}
	case nil:
		return append(out, "null")
	case bool:
		if v {
			return append(out, "1")
		}
		return append(out, "0")
	case int64:
		return append(out, strconv.FormatInt(v, 10))
	case float64:
		return append(out, string(protocol.AppendFloat(nil, v)))
	case string:
		if f, err := strconv.ParseFloat(v, 64); err == nil && strings.Trim(v, "+-0123456789.einfaINFA") == "" {
			return append(out, string(protocol.AppendFloat(nil, f)))
		}
		return append(out, "$"+v)
	case protocol.ReplyError:
		return append(out, "-"+string(v))
	case protocol.Status:
		return append(out, "+"+string(v))
	default:
		return append(out, fmt.Sprint(v))
	}
	return out
}
