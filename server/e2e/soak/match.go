//go:build linux

package main

import (
	"reflect"
	"slices"
	"strings"

	diff "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
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
func (r row) String() string    { return show([]any(r)) }

// okay is a reply that all is well.
const okay = "OK"

// matches reports whether a reply is the one that must come.
func matches(want, got any) bool {
	if e, bad := got.(errorReply); bad {
		like, ok := want.(errorLike)
		return ok && strings.HasPrefix(string(e), string(like))
	}
	switch want := want.(type) {
	case judged:
		return want.ok(got)
	case row:
		return slices.EqualFunc(want, list(got), matches)
	}
	return unlike(want, got) == ""
}

// unlike tells in what a reply differs from what must come.
func unlike(want, got any) string {
	switch w := want.(type) {
	case int:
		want = int64(w)
	case num:
		got = num(float(got))
	case bag:
		l := texts(got)
		slices.Sort(l)
		slices.Sort(w)
		got = bag(l)
	case hashed:
		m := hashed{}
		for _, p := range pairsOf(got) {
			m[text(p[0])] = text(p[1])
		}
		got = m
	case ranked:
		l := ranked{}
		for _, p := range pairsOf(got) {
			l = append(l, scored{text(p[0]), float(p[1])})
		}
		got = l
	}
	return difference(want, got)
}

// difference tells in what two values differ: lines with - must be there, and those with
// + are. It is "" if they do not differ.
func difference(want, got any) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return diff.Diff(want, got, parts()...)
}

// same reports whether two values do not differ, in less time.
func same(want, got any) bool {
	return reflect.DeepEqual(want, got) || diff.Equal(want, got, parts()...)
}

func parts() []diff.Option {
	return []diff.Option{diff.AllowUnexported(value{}, stream{}, entry{}, group{}, scored{}), cmpopts.EquateEmpty()}
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
