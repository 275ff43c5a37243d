//go:build linux

package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// value is what the model knows of a key. It is nil if there is no such key.
type value struct {
	kind   string             // as TYPE says
	str    string             // of a string
	list   []string           // of a list
	fields map[string]string  // of a hash; of a set with empty values
	scores map[string]float64 // of a sorted set
	stream *stream
	due    map[string]int64 // deadlines of members, in milliseconds since 1970
	at     int64            // of the key; 0 is none
}

// stream is what the model knows of a stream.
type stream struct {
	entries []entry
	last    int64 // IDs are n-0
	added   int64
	groups  map[string]*group
}

type entry struct {
	id     int64
	fields string // as they were given, with spaces between them
}

// group is a group of consumers.
type group struct {
	last    int64
	pending map[int64]string // consumers
}

func newValue(kind string) *value {
	v := &value{kind: kind}
	switch kind {
	case "hash", "set":
		v.fields = map[string]string{}
	case "zset":
		v.scores = map[string]float64{}
	case "stream":
		v.stream = &stream{groups: map[string]*group{}}
	}
	return v
}

func (v *value) clone() *value {
	if v == nil {
		return nil
	}
	c := *v
	c.list = slices.Clone(v.list)
	c.fields, c.scores, c.due = maps.Clone(v.fields), maps.Clone(v.scores), maps.Clone(v.due)
	if v.stream != nil {
		s := *v.stream
		s.entries = slices.Clone(s.entries)
		s.groups = map[string]*group{}
		for name, g := range v.stream.groups {
			s.groups[name] = &group{g.last, maps.Clone(g.pending)}
		}
		c.stream = &s
	}
	return &c
}

// size returns the number of elements; 0 means that the key is gone.
func (v *value) size() int {
	switch v.kind {
	case "string", "stream":
		return 1
	case "list":
		return len(v.list)
	case "zset":
		return len(v.scores)
	}
	return len(v.fields)
}

// next returns the next deadline of the key or one of its members.
func (v *value) next() int64 {
	next := int64(math.MaxInt64)
	if v == nil {
		return next
	}
	if v.at != 0 {
		next = v.at
	}
	for _, at := range v.due {
		next = min(next, at)
	}
	return next
}

// purge returns the value as it is once all deadlines up to now have passed.
func (v *value) purge(now int64) *value {
	if v == nil || v.at != 0 && v.at <= now {
		return nil
	}
	for m, at := range v.due {
		if at <= now {
			v.drop(m)
		}
	}
	if v.size() == 0 {
		return nil
	}
	return v
}

// drop removes a member.
func (v *value) drop(m string) {
	if v == nil {
		return
	}
	delete(v.fields, m)
	delete(v.scores, m)
	delete(v.due, m)
}

// has reports whether there is a member.
func (v *value) has(m string) bool {
	if v.kind == "zset" {
		_, ok := v.scores[m]
		return ok
	}
	_, ok := v.fields[m]
	return ok
}

// setDue gives a member a deadline.
func (v *value) setDue(m string, at int64) {
	if v.due == nil {
		v.due = map[string]int64{}
	}
	v.due[m] = at
}

// scored is a member of a sorted set.
type scored struct {
	member string
	score  float64
}

// sorted returns the members of a sorted set in order.
func (v *value) sorted() []scored {
	if v == nil {
		return nil
	}
	l := make([]scored, 0, len(v.scores))
	for m, s := range v.scores {
		l = append(l, scored{m, s})
	}
	slices.SortFunc(l, func(a, b scored) int {
		return cmp.Or(cmp.Compare(a.score, b.score), strings.Compare(a.member, b.member))
	})
	return l
}

// difference tells in what two values differ; "" if they do not.
func difference(want, got *value) string {
	switch {
	case want == nil && got == nil:
		return ""
	case want == nil:
		return fmt.Sprintf("there must be no key, and there is %v", got)
	case got == nil:
		return fmt.Sprintf("the key is gone, there must be %v", want)
	case want.kind != got.kind:
		return fmt.Sprintf("it is a %s, must be a %s", got.kind, want.kind)
	case want.at != got.at:
		return fmt.Sprintf("the key's deadline is %d, must be %d", got.at, want.at)
	case want.str != got.str:
		return fmt.Sprintf("the string is %s, must be %s", show(got.str), show(want.str))
	case !slices.Equal(want.list, got.list):
		i := 0
		for i < len(want.list) && i < len(got.list) && want.list[i] == got.list[i] {
			i++
		}
		return fmt.Sprintf("the list has %d elements, must have %d; they differ from %d on: %.200q, must be %.200q",
			len(got.list), len(want.list), i, got.list[i:], want.list[i:])
	}
	if d := differingMaps("", want.fields, got.fields); d != "" {
		return d
	}
	if d := differingMaps("score of ", want.scores, got.scores); d != "" {
		return d
	}
	if d := differingMaps("deadline of ", want.due, got.due); d != "" {
		return d
	}
	if want.kind != "stream" {
		return ""
	}
	a, b := want.stream, got.stream
	if !slices.Equal(a.entries, b.entries) {
		return fmt.Sprintf("the stream has %d entries, must have %d: %.300v, must be %.300v", len(b.entries), len(a.entries), b.entries, a.entries)
	}
	if a.last != b.last || a.added != b.added {
		return fmt.Sprintf("the stream has the last ID %d of %d that were added, must have %d of %d", b.last, b.added, a.last, a.added)
	}
	if len(a.groups) != len(b.groups) {
		return fmt.Sprintf("the stream has %d groups, must have %d", len(b.groups), len(a.groups))
	}
	for name, g := range a.groups {
		h := b.groups[name]
		if h == nil || h.last != g.last || !maps.Equal(h.pending, g.pending) {
			return fmt.Sprintf("group %s is %+v, must be %+v", name, h, *g)
		}
	}
	return ""
}

func differingMaps[T comparable](what string, want, got map[string]T) string {
	var list []string
	for _, m := range slices.Sorted(maps.Keys(want)) {
		if x, ok := got[m]; !ok {
			list = append(list, fmt.Sprintf("%s%q is missing, must be %s", what, m, show(any(want[m]))))
		} else if x != want[m] {
			list = append(list, fmt.Sprintf("%s%q is %s, must be %s", what, m, show(any(x)), show(any(want[m]))))
		}
	}
	for _, m := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[m]; !ok {
			list = append(list, fmt.Sprintf("%s%q is too much: %s", what, m, show(any(got[m]))))
		}
	}
	if len(list) > 8 {
		list = append(list[:8], fmt.Sprintf("… (%d in all)", len(list)))
	}
	return strings.Join(list, "; ")
}

func (v *value) String() string {
	if v == nil {
		return "nothing"
	}
	s := fmt.Sprintf("a %s of %d", v.kind, v.size())
	if v.at != 0 {
		s += fmt.Sprintf(" until %d", v.at)
	}
	if v.kind == "string" {
		s += ": " + show(v.str)
	}
	return s
}

// observe reads what a server has of a key.
func observe(c *client, key string) (*value, error) {
	ask := func(commands ...[]string) ([]any, error) {
		if err := c.send(commands...); err != nil {
			return nil, err
		}
		replies := make([]any, len(commands))
		var refused error
		for i := range replies {
			r, err := c.read()
			if err != nil {
				return nil, err
			}
			if e, bad := r.(errorReply); bad {
				refused = &refusal{commands[i], e}
			}
			replies[i] = r
		}
		return replies, refused
	}
	r, err := ask([]string{"TYPE", key}, []string{"PEXPIRETIME", key})
	if err != nil {
		return nil, err
	}
	kind := text(r[0])
	if kind == "none" {
		return nil, nil
	}
	v := newValue(kind)
	v.at = max(0, number(r[1]))
	switch kind {
	case "string":
		if r, err = ask([]string{"GET", key}); err == nil {
			if r[0] == nil {
				return nil, nil
			}
			v.str = text(r[0])
		}
	case "list":
		if r, err = ask([]string{"LRANGE", key, "0", "-1"}); err == nil {
			for _, e := range list(r[0]) {
				v.list = append(v.list, text(e))
			}
		}
	case "set":
		if r, err = ask([]string{"SMEMBERS", key}); err == nil {
			for _, e := range list(r[0]) {
				v.fields[text(e)] = ""
			}
		}
	case "hash":
		if r, err = ask([]string{"HGETALL", key}); err != nil {
			return nil, err
		}
		var names []string
		for i, l := 0, list(r[0]); i+1 < len(l); i += 2 {
			v.fields[text(l[i])] = text(l[i+1])
			names = append(names, text(l[i]))
		}
		err = v.observeDue(ask, names, append([]string{"HPEXPIRETIME", key, "FIELDS", strconv.Itoa(len(names))}, names...))
	case "zset":
		if r, err = ask([]string{"ZRANGE", key, "0", "-1", "WITHSCORES"}); err != nil {
			return nil, err
		}
		var names []string
		for _, p := range pairsOf(r[0]) {
			v.scores[text(p[0])] = float(p[1])
			names = append(names, text(p[0]))
		}
		if len(v.scores) != len(names) {
			return nil, fmt.Errorf("%s: ZRANGE has a member twice: %s", key, show(r[0]))
		}
		err = v.observeDue(ask, names, append([]string{"ZPEXPIRETIME", key, "MEMBERS", strconv.Itoa(len(names))}, names...))
	case "stream":
		err = v.observeStream(ask, key)
	}
	if r := (*refusal)(nil); errors.As(err, &r) && r.reply == "ERR no such key" {
		return nil, nil // expired meanwhile
	}
	if err != nil {
		return nil, err
	}
	if v.size() == 0 {
		return nil, nil // the same
	}
	return v, nil
}

func (v *value) observeDue(ask func(...[]string) ([]any, error), names, command []string) error {
	if len(names) == 0 {
		return nil
	}
	r, err := ask(command)
	if err != nil {
		return err
	}
	for i, at := range list(r[0]) {
		switch n := number(at); {
		case n > 0:
			v.setDue(names[i], n)
		case n == -2:
			v.drop(names[i]) // expired meanwhile
		}
	}
	return nil
}

func (v *value) observeStream(ask func(...[]string) ([]any, error), key string) error {
	r, err := ask([]string{"XRANGE", key, "-", "+"}, []string{"XINFO", "STREAM", key}, []string{"XINFO", "GROUPS", key})
	if err != nil {
		return err
	}
	s := v.stream
	for _, e := range list(r[0]) {
		pair := list(e)
		var fields []string
		for _, f := range list(pair[1]) {
			fields = append(fields, text(f))
		}
		s.entries = append(s.entries, entry{streamID(pair[0]), strings.Join(fields, " ")})
	}
	info := list(r[1])
	for i := 0; i+1 < len(info); i += 2 {
		switch info[i] {
		case "last-generated-id":
			s.last = streamID(info[i+1])
		case "entries-added":
			s.added = number(info[i+1])
		}
	}
	for _, about := range list(r[2]) {
		g, name := &group{pending: map[int64]string{}}, ""
		about := list(about)
		for i := 0; i+1 < len(about); i += 2 {
			switch about[i] {
			case "name":
				name = text(about[i+1])
			case "last-delivered-id":
				g.last = streamID(about[i+1])
			}
		}
		p, err := ask([]string{"XPENDING", key, name, "-", "+", "100000"})
		if err != nil {
			return err
		}
		for _, e := range list(p[0]) {
			e := list(e)
			g.pending[streamID(e[0])] = text(e[1])
		}
		s.groups[name] = g
	}
	return nil
}

// pairsOf returns the pairs of a reply, in which they may be arrays of their own.
func pairsOf(r any) (pairs [][2]any) {
	l := list(r)
	if len(l) > 0 && len(list(l[0])) == 2 {
		for _, p := range l {
			if p := list(p); len(p) == 2 {
				pairs = append(pairs, [2]any{p[0], p[1]})
			}
		}
		return pairs
	}
	for i := 0; i+1 < len(l); i += 2 {
		pairs = append(pairs, [2]any{l[i], l[i+1]})
	}
	return pairs
}

// streamID reads an ID of the form n-0.
func streamID(v any) int64 {
	n, _ := strconv.ParseInt(strings.TrimSuffix(text(v), "-0"), 10, 64)
	return n
}

// refusal is an error reply to a command that must not be refused.
type refusal struct {
	args  []string
	reply errorReply
}

func (e *refusal) Error() string { return fmt.Sprintf("%.200q: %s", e.args, string(e.reply)) }
