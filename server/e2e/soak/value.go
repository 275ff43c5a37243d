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
	there  bool               // the string or the stream, which may be empty
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
	return &value{kind: kind, fields: map[string]string{}, scores: map[string]float64{}, due: map[string]int64{}, stream: &stream{groups: map[string]*group{}}}
}

// clear makes a value that of a missing key.
func (v *value) clear() { *v = *newValue(v.kind) }

// put sets a string, and leaves its deadline.
func (v *value) put(s string) { v.str, v.there = s, true }

// get returns a string as GET replies it.
func (v *value) get() any {
	if !v.there {
		return nil
	}
	return v.str
}

func (v *value) clone() *value {
	if v == nil {
		return nil
	}
	c, s := *v, *v.stream
	c.list = slices.Clone(v.list)
	c.fields, c.scores, c.due = maps.Clone(v.fields), maps.Clone(v.scores), maps.Clone(v.due)
	s.entries = slices.Clone(s.entries)
	s.groups = map[string]*group{}
	for name, g := range v.stream.groups {
		s.groups[name] = &group{g.last, maps.Clone(g.pending)}
	}
	c.stream = &s
	return &c
}

// length returns the number of elements.
func (v *value) length() int {
	return len(v.list) + len(v.fields) + len(v.scores) + len(v.stream.entries) // all but one are 0
}

// exists returns 1, or 0 if a key with this value is a missing key.
func (v *value) exists() int {
	if v.there || v.length() > 0 {
		return 1
	}
	return 0
}

// members returns the members, or fields, in cmp.
func (v *value) members() []string {
	if v.kind == "zset" {
		return slices.Sorted(maps.Keys(v.scores))
	}
	return slices.Sorted(maps.Keys(v.fields))
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
	if v.exists() == 0 {
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
	_, field := v.fields[m]
	_, scored := v.scores[m]
	return field || scored
}

// setDue gives a member a deadline.
func (v *value) setDue(m string, at int64) { v.due[m] = at }

// scored is a member of a sorted set.
type scored struct {
	member string
	score  float64
}

// sorted returns the members of a sorted set in cmp.
func (v *value) sorted() []scored {
	l := make([]scored, 0, len(v.scores))
	for m, s := range v.scores {
		l = append(l, scored{m, s})
	}
	slices.SortFunc(l, func(a, b scored) int {
		return cmp.Or(cmp.Compare(a.score, b.score), strings.Compare(a.member, b.member))
	})
	return l
}

func (v *value) String() string {
	if v == nil {
		return "nothing"
	}
	s := fmt.Sprintf("a %s of %d", v.kind, v.length())
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
	v, err := read(c, key)
	if r := (*refusal)(nil); errors.As(err, &r) && r.reply == "ERR no such key" {
		return nil, nil // expired meanwhile
	}
	if err != nil || v.exists() == 0 {
		return nil, err
	}
	return v, nil
}

func read(c *client, key string) (*value, error) {
	r, err := c.ask(words("TYPE", key), words("PEXPIRETIME", key))
	if err != nil {
		return nil, err
	}
	v := newValue(text(r[0]))
	v.at = max(0, number(r[1]))
	command := map[string][]string{
		"string": words("GET", key), "list": words("LRANGE", key, 0, -1), "set": words("SMEMBERS", key), "hash": words("HGETALL", key),
		"zset": words("ZRANGE", key, 0, -1, "WITHSCORES"), "stream": words("XRANGE", key, "-", "+"),
	}[v.kind]
	if command == nil {
		return v, nil // there is none
	}
	if r, err = c.ask(command); err != nil {
		return nil, err
	}
	switch v.kind {
	case "string":
		if r[0] != nil {
			v.put(text(r[0]))
		}
	case "list":
		v.list = texts(r[0])
	case "set":
		for _, m := range texts(r[0]) {
			v.fields[m] = ""
		}
	case "hash":
		for _, p := range pairsOf(r[0]) {
			v.fields[text(p[0])] = text(p[1])
		}
		err = v.readDue(c, "HPEXPIRETIME", key, "FIELDS")
	case "zset":
		pairs := pairsOf(r[0])
		for _, p := range pairs {
			v.scores[text(p[0])] = float(p[1])
		}
		if len(v.scores) != len(pairs) {
			return nil, fmt.Errorf("%s: ZRANGE has a member twice: %s", key, show(r[0]))
		}
		err = v.readDue(c, "ZPEXPIRETIME", key, "MEMBERS")
	case "stream":
		for _, e := range list(r[0]) {
			pair := list(e)
			v.stream.entries = append(v.stream.entries, entry{streamID(pair[0]), strings.Join(texts(pair[1]), " ")})
		}
		err = v.readStream(c, key)
	}
	return v, err
}

// readDue reads the deadlines of the members.
func (v *value) readDue(c *client, name, key, before string) error {
	names := v.members()
	if len(names) == 0 {
		return nil
	}
	r, err := c.ask(words(name, key, before, len(names), names))
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

// readStream reads all of a stream but its entries.
func (v *value) readStream(c *client, key string) error {
	r, err := c.ask(words("XINFO", "STREAM", key), words("XINFO", "GROUPS", key))
	if err != nil {
		return err
	}
	info, s := fieldsOf(r[0]), v.stream
	v.there, s.last, s.added = true, streamID(info["last-generated-id"]), number(info["entries-added"])
	for _, about := range list(r[1]) {
		about := fieldsOf(about)
		g, name := &group{streamID(about["last-delivered-id"]), map[int64]string{}}, text(about["name"])
		p, err := c.ask(words("XPENDING", key, name, "-", "+", 100_000))
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

// fieldsOf returns a reply of names and values.
func fieldsOf(r any) map[string]any {
	m := map[string]any{}
	for i, l := 0, list(r); i+1 < len(l); i += 2 {
		m[text(l[i])] = l[i+1]
	}
	return m
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

// idOf writes the ID n-0, and streamID reads it.
func idOf(n int64) string { return strconv.FormatInt(n, 10) + "-0" }

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
