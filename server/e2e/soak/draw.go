//go:build linux

package main

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

const keysOfKind = 6 // that an owner has of each type

// kinds returns the types that owners have keys of.
func kinds() []string { return []string{"string", "hash", "set", "list", "zset", "stream"} }

// An op is an operation with its words drawn.
type op struct {
	*operation
	words []string
	keys  []string // in the words, in their order, each once
}

// A drawing is what the words of a command are drawn for.
type drawing struct {
	o         *owner
	kind, key string
	v         *value // of the key, empty if there is none
}

// draw draws a command, or returns nil if it cannot be sent now.
func (o *owner) draw() *op {
	d := o.drawing(o.kind())
	if o.one(8) {
		return d.from("any")
	}
	return d.from(d.kind)
}

// kind draws a type.
func (o *owner) kind() string {
	if only := o.st.o.only; only != "" {
		return only
	}
	return kinds()[o.int(len(kinds()))]
}

func (o *owner) drawing(kind string) *drawing {
	d := &drawing{o: o, kind: kind, key: o.key(kind)}
	if o.usable(d.key) {
		d.v = o.at(d.key)
	}
	return d
}

// from draws a command of a table.
func (d *drawing) from(table string) *op {
	if d.v == nil {
		return nil // its deadline is near
	}
	rows := d.o.tables[table]
	total := 0
	for i := range rows {
		total += rows[i].weight
		if rows[i].weight == 0 && d.v.length() > most(d.key) {
			return d.op(&rows[i])
		}
	}
	n := d.o.int(total)
	for i := range rows {
		if n -= rows[i].weight; n < 0 {
			return d.op(&rows[i])
		}
	}
	return nil
}

// op draws the words of an operation.
func (d *drawing) op(p *operation) *op {
	var words []string
	for w := range strings.FieldsSeq(p.form) {
		list, ok := d.word(w)
		if !ok {
			return nil
		}
		words = append(words, list...)
	}
	q := d.o.op(p, words)
	for _, key := range q.keys {
		if !d.o.usable(key) {
			return nil
		}
	}
	return q
}

// op returns an operation with given words.
func (o *owner) op(p *operation, words []string) *op {
	q := &op{operation: p, words: words}
	for _, w := range words {
		if strings.HasPrefix(w, o.name+":") && !slices.Contains(q.keys, w) {
			q.keys = append(q.keys, w)
		}
	}
	return q
}

// drawn draws what a word stands for: "NX|XX" is one of the words between the bars, of
// which an empty one is left out, and "2..5" is a number. Any other word is itself.
func drawn(r *rand.Rand, w string) []string {
	alternatives := strings.Split(w, "|")
	w = alternatives[r.IntN(len(alternatives))]
	if lo, hi, ok := strings.Cut(w, ".."); ok {
		from, _ := strconv.Atoi(lo)
		to, _ := strconv.Atoi(hi)
		return words(from + r.IntN(to-from+1))
	}
	if w == "" {
		return nil
	}
	return []string{w}
}

// word draws what a word of a form stands for. The cases have the words that have a
// meaning here; drawn has the meaning of any other. It reports false if there is nothing
// to draw.
func (d *drawing) word(w string) (list []string, ok bool) {
	o := d.o
	ids := func(n int64) ([]string, bool) { return []string{idOf(n)}, true }
	switch w {
	case "key":
		return []string{d.key}, true
	case "other": // any key of the type
		return []string{o.key(d.kind)}, true
	case "source": // a key that has no more elements than the key may have
		other := o.key(d.kind)
		return []string{other}, most(other) <= most(d.key)
	case "target": // another key that may have as many
		other := o.key(d.kind)
		return []string{other}, other != d.key && most(other) >= most(d.key)
	case "held":
		return []string{d.held()}, true
	case "members":
		return d.members(8), true
	case "many": // half of the members
		return slices.Sorted(maps.Keys(d.v.fields))[:d.v.length()/2], true
	case "half": // of the number of elements
		return words(d.v.length() / 2), true
	case "most": // up to the number of elements
		return words(o.int(most(d.key))), true
	case "fields":
		for _, f := range d.members(8) {
			list = append(list, f, o.text())
		}
		return list, true
	case "scores":
		for _, m := range d.members(8) {
			list = append(list, formatScore(o.score()), m)
		}
		return list, true
	case "#scores": // their number before them
		list, _ = d.word("scores")
		return append(words(len(list)/2), list...), true
	case "scored": // a member behind its score, or another one
		m, s := d.held(), o.score()
		if have, ok := d.v.scores[m]; ok && o.one(2) {
			s = have
		}
		return words(s, m), true
	case "score":
		return words(o.score()), true
	case "span": // of scores
		lo := o.score()
		return words(lo, lo+float64(o.int(40))/4), true
	case "text":
		return []string{o.text()}, true
	case "texts":
		for range 1 + o.int(6) {
			list = append(list, o.text())
		}
		return list, true
	case "word":
		return []string{strings.Repeat("x", 1+o.int(40))}, true
	case "element": // of a list, or another text
		if n := len(d.v.list); n > 0 && o.one(2) {
			return []string{d.v.list[o.int(n)]}, true
		}
		return []string{o.text()}, true
	case "deadline": // of a member
		return words(o.deadline()), true
	case "expiry": // of a key
		return words(o.deadline()), o.st.mayExpire()
	case "next": // ID of a stream
		return ids(d.v.stream.last + 1 + int64(o.int(5)))
	case "beyond": // an ID that the stream does not have
		return ids(d.v.stream.last + 100)
	case "entry":
		if l := d.v.stream.entries; len(l) > 0 {
			return ids(l[o.int(len(l))].id)
		}
		return nil, false
	case "pending":
		if g := d.v.stream.groups["g"]; g != nil && len(g.pending) > 0 {
			all := slices.Sorted(maps.Keys(g.pending))
			return ids(all[o.int(len(all))])
		}
		return nil, false
	case "restore":
		return []string{"return redis.call('RESTORE', KEYS[2], 0, redis.call('DUMP', KEYS[1]), 'REPLACE')"}, true
	}
	return drawn(o.rng, w), true
}

// most is how many elements a value may have before it is made smaller.
func most(key string) int {
	if strings.HasSuffix(key, ":0") {
		return 600
	}
	return 40
}

func (o *owner) key(k string) string { return o.name + ":" + k + ":" + strconv.Itoa(o.int(keysOfKind)) }

// members draws up to n different names.
func (d *drawing) members(n int) (list []string) {
	for range 1 + d.o.int(n) {
		if m := d.member(); !slices.Contains(list, m) {
			list = append(list, m)
		}
	}
	return list
}

func (d *drawing) member() string {
	n := d.o.int(most(d.key) * 3 / 2)
	if strings.HasSuffix(d.key, ":set:1") {
		return strconv.Itoa(n) // an intset
	}
	return "m" + strconv.Itoa(n)
}

// held draws a member that is there, if there is one, and sometimes another.
func (d *drawing) held() string {
	if n := d.v.length(); n > 0 && n < 60 && !d.o.one(5) {
		return d.v.members()[d.o.int(n)]
	}
	return d.member()
}

func (o *owner) text() string {
	n := o.int(12)
	if o.one(20) {
		n = o.int(3000)
	}
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(o.int(256))
	}
	return string(b)
}

func (o *owner) score() float64 { return float64(o.int(200)-60) / 4 }

// deadline draws one, in milliseconds since 1970.
func (o *owner) deadline() int64 { return nowMs() + 600 + int64(o.int(12_000)) }

// words returns values as the words of a command.
func words(args ...any) []string {
	l := make([]string, 0, len(args))
	for _, a := range args {
		switch a := a.(type) {
		case string:
			l = append(l, a)
		case []string:
			l = append(l, a...)
		case float64:
			l = append(l, formatScore(a))
		default:
			l = append(l, show(a))
		}
	}
	return l
}
