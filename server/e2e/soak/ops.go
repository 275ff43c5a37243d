//go:build linux

package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

const keysOfKind = 6 // that an owner has of each type

// kinds returns the types that owners have keys of.
func kinds() []string { return []string{"string", "hash", "set", "list", "zset", "stream"} }

// most is how many elements a collection may have before it is made smaller.
func most(key string) int {
	if strings.HasSuffix(key, ":0") {
		return 600
	}
	return 40
}

func (o *owner) int(n int) int       { return o.rng.IntN(n) }
func (o *owner) one(n int) bool      { return o.rng.IntN(n) == 0 }
func (o *owner) key(k string) string { return o.name + ":" + k + ":" + strconv.Itoa(o.int(keysOfKind)) }

// members draws up to n different names.
func (o *owner) members(key string, n int) (list []string) {
	for range 1 + o.int(n) {
		if m := o.member(key); !slices.Contains(list, m) {
			list = append(list, m)
		}
	}
	return list
}

func (o *owner) member(key string) string {
	n := o.int(most(key) * 3 / 2)
	if strings.Contains(key, ":set:1") {
		return strconv.Itoa(n) // an intset
	}
	return "m" + strconv.Itoa(n)
}

// held draws a member that is there, if there is one.
func (o *owner) held(key string) string {
	if v := o.model[key]; v != nil && !o.one(5) {
		switch v.kind {
		case "zset":
			if len(v.scores) < 60 {
				return slices.Sorted(maps.Keys(v.scores))[o.int(len(v.scores))]
			}
		case "hash", "set":
			if len(v.fields) < 60 {
				return slices.Sorted(maps.Keys(v.fields))[o.int(len(v.fields))]
			}
		}
	}
	return o.member(key)
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

// of returns the value of a key, which is made if there is none.
func (o *owner) of(key, kind string) *value {
	v := o.model[key]
	if v == nil {
		v = newValue(kind)
		o.model[key] = v
	}
	return v
}

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
			l = append(l, fmt.Sprint(a))
		}
	}
	return l
}

// step draws what is done next, and does it.
func (o *owner) step() error {
	way, n := "alone", 1
	switch d := o.int(100); {
	case d < 20:
		way, n = "pipeline", 2+o.int(10)
	case d < 30:
		way, n = "multi", 1+o.int(6)
	case d < 36:
		way = "eval"
	case d < 40:
		way = "fcall"
	case d < 41:
		return o.watched()
	}
	var ops []*op
	for range n {
		// Each op is drawn after those before it were done to the model.
		ops = append(ops, nil)
	}
	return o.performDrawn(way, ops)
}

// performDrawn draws ops one after the other, for each depends on what those before
// it have done.
func (o *owner) performDrawn(way string, ops []*op) error {
	s := o.begin(way)
	for i := range ops {
		for ops[i] == nil {
			p := o.draw()
			if p == nil || p.see != nil && way != "alone" || p.args[0] == "EVAL" && (way == "eval" || way == "fcall") || !o.allUsable(p) {
				continue
			}
			ops[i] = p
		}
		s.add(ops[i])
	}
	return s.end()
}

func (o *owner) allUsable(p *op) bool {
	for _, key := range p.keys {
		if !o.usable(key) {
			return false
		}
	}
	for i := 1; i < len(p.args); i++ { // keys that are read
		if strings.HasPrefix(p.args[i], o.name+":") && !o.usable(p.args[i]) {
			return false
		}
	}
	return true
}

// kind draws a type.
func (o *owner) kind() string {
	if only := o.st.o.only; only != "" {
		return only
	}
	return kinds()[o.int(6)]
}

func (o *owner) draw() *op {
	if o.one(8) {
		return o.generic()
	}
	kind := o.kind()
	key := o.key(kind)
	if !o.usable(key) {
		return nil
	}
	switch kind {
	case "string":
		return o.stringOp(key)
	case "hash":
		return o.hashOp(key)
	case "set":
		return o.setOp(key)
	case "list":
		return o.listOp(key)
	case "zset":
		return o.zsetOp(key)
	}
	return o.streamOp(key)
}

// watched changes a watched key from another connection, or does not.
func (o *owner) watched() error {
	key := o.key("string")
	if !o.usable(key) {
		return nil
	}
	if r, err := o.c.do("WATCH", key); err != nil || isError(r) {
		return err
	}
	if o.one(2) {
		p := o.stringOp(key)
		if p == nil || p.see != nil {
			return o.drain("UNWATCH")
		}
		return o.perform("multi", p)
	}
	other, life, err := o.st.dial()
	if err != nil {
		return err
	}
	defer other.close()
	if life != o.life {
		return fmt.Errorf("another server")
	}
	now := strconv.FormatInt(nowMs(), 10)
	mine := o.c
	o.c = other
	err = o.perform("alone", &op{args: words("SET", key, now), keys: []string{key}, run: func() any {
		o.model[key] = &value{kind: "string", str: now}
		return okay
	}})
	o.c = mine
	if err != nil {
		return err
	}
	if o.model[key] == nil || o.model[key].str != now { // it was refused
		return o.drain("UNWATCH")
	}
	if err := o.c.send(words("MULTI"), words("SET", key, "never"), words("EXEC")); err != nil {
		return err
	}
	var r any
	for range 3 {
		if r, err = o.c.read(); err != nil {
			return err
		}
	}
	if e, bad := r.(errorReply); bad && refused(e) {
		return nil
	}
	if r != nil {
		return &mismatch{key, "a watched key was changed, and EXEC has replied " + show(r)}
	}
	o.stats.steps.add(1)
	return nil
}

func (o *owner) drain(command string) error { _, err := o.c.do(command); return err }

// generic draws a command that is for keys of all types.
func (o *owner) generic() *op {
	kind := o.kind()
	key, other := o.key(kind), o.key(kind)
	if !o.usable(key) || !o.usable(other) {
		return nil
	}
	v := o.model[key]
	there := 0
	if v != nil {
		there = 1
	}
	switch o.int(18) {
	case 0:
		if !o.one(3) {
			return nil
		}
		name := "DEL"
		if o.one(2) {
			name = "UNLINK"
		}
		return &op{words(name, key), []string{key}, func() any { delete(o.model, key); return there }, nil}
	case 1:
		if key == other || strings.HasSuffix(key, ":0") != strings.HasSuffix(other, ":0") {
			return nil
		}
		return &op{words("RENAME", key, other), []string{key, other}, func() any {
			if v == nil {
				return errorLike("ERR no such key")
			}
			delete(o.model, key)
			o.model[other] = v
			return okay
		}, nil}
	case 2:
		if key == other || strings.HasSuffix(key, ":0") != strings.HasSuffix(other, ":0") {
			return nil
		}
		return &op{words("COPY", key, other, "REPLACE"), []string{other}, func() any {
			if v == nil {
				return 0
			}
			o.model[other] = v.clone()
			return 1
		}, nil}
	case 3, 4:
		at := o.deadline()
		if !o.st.mayExpire() {
			return nil
		}
		return &op{words("PEXPIREAT", key, at), []string{key}, func() any {
			if v == nil {
				return 0
			}
			v.at = at
			return 1
		}, nil}
	case 5:
		return &op{words("PERSIST", key), []string{key}, func() any {
			if v == nil || v.at == 0 {
				return 0
			}
			v.at = 0
			return 1
		}, nil}
	case 6:
		return &op{words("EXISTS", key, key), nil, func() any { return 2 * there }, nil}
	case 7:
		return &op{words("TYPE", key), nil, func() any {
			if v == nil {
				return "none"
			}
			return kind
		}, nil}
	case 8:
		return &op{words("PEXPIRETIME", key), nil, func() any {
			switch {
			case v == nil:
				return -2
			case v.at == 0:
				return -1
			}
			return v.at
		}, nil}
	case 9:
		return &op{words("OBJECT", "ENCODING", key), nil, func() any {
			if v == nil {
				return nil
			}
			return judged{"an encoding of a " + kind, func(r any) bool { return slices.Contains(encodings(kind), text(r)) }}
		}, nil}
	case 10: // a command for another type
		command := words("LLEN", key)
		if kind == "list" {
			command = words("ZCARD", key)
		}
		if v == nil {
			return nil
		}
		return &op{command, nil, func() any { return errorLike("WRONGTYPE ") }, nil}
	case 11:
		return &op{words("MEMORY", "USAGE", key), nil, func() any {
			if v == nil {
				return nil
			}
			return judged{"a size", func(r any) bool { n, ok := r.(int64); return ok && n > 0 }}
		}, nil}
	case 12: // away and back
		if v == nil || key == other || strings.HasSuffix(key, ":0") != strings.HasSuffix(other, ":0") {
			return nil
		}
		return &op{words("EVAL", "return redis.call('RESTORE', KEYS[2], 0, redis.call('DUMP', KEYS[1]), 'REPLACE')", "2", key, other), []string{other}, func() any {
			c := v.clone()
			c.at = 0
			o.model[other] = c
			return okay
		}, nil}
	case 13:
		if kind != "list" && kind != "set" {
			return nil
		}
		return &op{words("SORT", key, "ALPHA"), nil, func() any {
			if v == nil {
				return row{}
			}
			if kind == "list" { // of which elements may have the byte 0, at which the order of texts ends
				return bag(slices.Clone(v.list))
			}
			return rowOf(slices.Sorted(maps.Keys(v.fields)))
		}, nil}
	case 14:
		return &op{words("TOUCH", key, other), nil, func() any {
			n := there
			if o.model[other] != nil {
				n++
			}
			return n
		}, nil}
	case 15:
		if !o.one(3) {
			return nil
		}
		return &op{words("MOVE", key, "0"), nil, func() any { return errorLike("ERR source and destination objects are the same") }, nil}
	}
	return nil
}

// encodings returns those that a type can have.
func encodings(kind string) []string {
	return map[string][]string{
		"string": {"int", "embstr", "raw"},
		"list":   {"listpack", "quicklist"},
		"set":    {"intset", "listpack", "hashtable"},
		"hash":   {"listpack", "listpackex", "hashtable"},
		"zset":   {"listpack", "skiplist"},
		"stream": {"stream"},
	}[kind]
}
