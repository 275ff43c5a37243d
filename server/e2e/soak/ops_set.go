//go:build linux

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// remove removes some of the fields of a hash, or members of a set; half of them if
// there are too many.
func (o *owner) remove(command, key string, fields map[string]string) *op {
	names := o.members(key, 10)
	names[0] = o.held(key)
	if len(fields) > most(key) {
		names = slices.Sorted(maps.Keys(fields))[:most(key)/2]
	}
	v := o.model[key]
	return &op{words(command, key, names), []string{key}, func() any {
		n := len(fields)
		for _, m := range names {
			v.drop(m)
		}
		return n - len(fields)
	}, nil}
}

func (o *owner) setOp(key string) *op {
	v := o.model[key]
	set := map[string]string{}
	if v != nil {
		set = v.fields
	}
	writes := []string{key}
	kind := o.int(13)
	if len(set) > most(key) {
		kind = 3
	}
	switch kind {
	case 0, 1, 2:
		names := o.members(key, 10)
		return &op{words("SADD", key, names), writes, func() any {
			v := o.of(key, "set")
			n := len(v.fields)
			for _, m := range names {
				v.fields[m] = ""
			}
			return len(v.fields) - n
		}, nil}
	case 3:
		return o.remove("SREM", key, set)
	case 4:
		return &op{words("SPOP", key), writes, nil, func(r any) string {
			if v == nil {
				if r != nil {
					return "reply " + show(r) + " of no set"
				}
				return ""
			}
			m := text(r)
			if _, ok := set[m]; !ok || r == nil {
				return "reply " + show(r) + ", which is no member"
			}
			v.drop(m)
			return ""
		}}
	case 5, 6:
		other, third := o.key("set"), o.key("set")
		if !o.usable(other) || !o.usable(third) {
			return nil
		}
		name := []string{"SUNIONSTORE", "SINTERSTORE", "SDIFFSTORE"}[o.int(3)]
		if !strings.HasSuffix(key, ":0") && (strings.HasSuffix(other, ":0") || strings.HasSuffix(third, ":0")) {
			return nil
		}
		if name == "SUNIONSTORE" && key == other {
			return nil
		}
		return &op{words(name, key, other, third), writes, func() any {
			a, b := map[string]string{}, map[string]string{}
			if v := o.model[other]; v != nil {
				a = v.fields
			}
			if v := o.model[third]; v != nil {
				b = v.fields
			}
			r := newValue("set")
			for m := range a {
				_, both := b[m]
				if name == "SUNIONSTORE" || name == "SINTERSTORE" && both || name == "SDIFFSTORE" && !both {
					r.fields[m] = ""
				}
			}
			if name == "SUNIONSTORE" {
				maps.Copy(r.fields, b)
			}
			o.model[key] = r
			return len(r.fields)
		}, nil}
	case 7:
		other, m := o.key("set"), o.held(key)
		if other == key || !o.usable(other) {
			return nil
		}
		return &op{words("SMOVE", key, other, m), []string{key, other}, func() any {
			if _, ok := set[m]; !ok {
				return 0
			}
			v.drop(m)
			o.of(other, "set").fields[m] = ""
			return 1
		}, nil}
	case 8:
		return &op{words("SMEMBERS", key), nil, func() any { return bag(slices.Collect(maps.Keys(set))) }, nil}
	case 9:
		return &op{words("SCARD", key), nil, func() any { return len(set) }, nil}
	case 10:
		names := o.members(key, 8)
		return &op{words("SMISMEMBER", key, names), nil, func() any {
			r := row{}
			for _, m := range names {
				n := 0
				if _, ok := set[m]; ok {
					n = 1
				}
				r = append(r, n)
			}
			return r
		}, nil}
	case 11:
		return &op{words("SRANDMEMBER", key, "3"), nil, nil, func(r any) string {
			if len(list(r)) != min(3, len(set)) {
				return fmt.Sprintf("reply %s of %d members", show(r), len(set))
			}
			for _, m := range list(r) {
				if _, ok := set[text(m)]; !ok {
					return "reply " + show(r) + ", of which one is no member"
				}
			}
			return ""
		}}
	}
	m := o.held(key)
	return &op{words("SISMEMBER", key, m), nil, func() any {
		if _, ok := set[m]; ok {
			return 1
		}
		return 0
	}, nil}
}
