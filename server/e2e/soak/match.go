//go:build linux

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// An expected reply: a string, an int or nil, or one of these.
type (
	num    float64           // a number, however it is written
	bag    []string          // these, in any order
	row    []any             // these
	hashed map[string]string // pairs in any order
	ranked []scored          // pairs of members and scores
	judged struct {          // a reply that a function accepts
		what string
		ok   func(any) bool
	}
	errorLike string // an error that begins so
)

func (j judged) String() string { return j.what }
func (r ranked) String() string { return fmt.Sprintf("%v", []scored(r)) }
func (h hashed) String() string { return fmt.Sprintf("%.400q", map[string]string(h)) }
func (b bag) String() string    { return fmt.Sprintf("in any order %.400q", []string(b)) }
func (r row) String() string    { return show([]any(r)) }

// okay is a reply that all is well.
const okay = "OK"

func matches(want, got any) bool {
	if e, bad := got.(errorReply); bad {
		like, ok := want.(errorLike)
		return ok && strings.HasPrefix(string(e), string(like))
	}
	switch want := want.(type) {
	case nil:
		return got == nil
	case string:
		s, ok := got.(string)
		return ok && s == want
	case int:
		n, ok := got.(int64)
		return ok && n == int64(want)
	case int64:
		n, ok := got.(int64)
		return ok && n == want
	case num:
		return float(got) == float64(want)
	case bag:
		l := list(got)
		if len(l) != len(want) {
			return false
		}
		var names []string
		for _, e := range l {
			names = append(names, text(e))
		}
		slices.Sort(names)
		return slices.Equal(names, slices.Sorted(slices.Values(want)))
	case row:
		l := list(got)
		if len(l) != len(want) {
			return false
		}
		for i := range l {
			if !matches(want[i], l[i]) {
				return false
			}
		}
		return true
	case hashed:
		pairs := pairsOf(got)
		if len(pairs) != len(want) {
			return false
		}
		for _, p := range pairs {
			if v, ok := want[text(p[0])]; !ok || v != text(p[1]) {
				return false
			}
		}
		return true
	case ranked:
		pairs := pairsOf(got)
		if len(pairs) != len(want) {
			return false
		}
		for i, p := range pairs {
			if text(p[0]) != want[i].member || float(p[1]) != want[i].score {
				return false
			}
		}
		return true
	case judged:
		return want.ok(got)
	}
	return false
}

// between tells in what a long reply differs from what it must be.
func between(want, got any) string {
	had := map[string]int{}
	switch want := want.(type) {
	case bag:
		for _, m := range want {
			had[m]++
		}
		for _, m := range list(got) {
			had[text(m)]--
		}
	case hashed:
		for m, v := range want {
			had[m+" = "+v]++
		}
		for _, p := range pairsOf(got) {
			had[text(p[0])+" = "+text(p[1])]--
		}
	case ranked:
		for _, e := range want {
			had[e.member+" = "+formatScore(e.score)]++
		}
		for _, p := range pairsOf(got) {
			had[text(p[0])+" = "+formatScore(float(p[1]))]--
		}
	}
	var parts []string
	for _, m := range slices.Sorted(maps.Keys(had)) {
		switch {
		case had[m] > 0:
			parts = append(parts, fmt.Sprintf("without %.100q", m))
		case had[m] < 0:
			parts = append(parts, fmt.Sprintf("with %.100q", m))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "replies " + strings.Join(parts, ", ")
}

// rowOf returns the row of what a function makes of each element.
func rowOf[T any](l []T, of func(T) any) row {
	r := make(row, len(l))
	for i, e := range l {
		r[i] = of(e)
	}
	return r
}

func asIs(s string) any { return s }
