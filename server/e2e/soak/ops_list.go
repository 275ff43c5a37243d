//go:build linux

package main

import (
	"math"
	"slices"
)

func (o *owner) listOp(key string) *op {
	v := o.model[key]
	var l []string
	if v != nil {
		l = v.list
	}
	writes := []string{key}
	put := func(list []string) { o.of(key, "list").list = list }
	kind := o.int(15)
	if len(l) > most(key) {
		kind = 6
	}
	element := func() string {
		if len(l) > 0 && o.one(2) {
			return l[o.int(len(l))]
		}
		return o.text()
	}
	switch kind {
	case 0, 1:
		var add []string
		for range 1 + o.int(6) {
			add = append(add, o.text())
		}
		return &op{words("RPUSH", key, add), writes, func() any { put(append(l, add...)); return len(l) + len(add) }, nil}
	case 2, 3:
		var add []string
		for range 1 + o.int(6) {
			add = append(add, o.text())
		}
		return &op{words("LPUSH", key, add), writes, func() any {
			r := slices.Clone(add)
			slices.Reverse(r)
			put(append(r, l...))
			return len(l) + len(add)
		}, nil}
	case 4, 5:
		left := o.one(2)
		name := "RPOP"
		if left {
			name = "LPOP"
		}
		return &op{words(name, key), writes, func() any {
			if len(l) == 0 {
				return nil
			}
			if left {
				e := l[0]
				put(l[1:])
				return e
			}
			e := l[len(l)-1]
			put(l[:len(l)-1])
			return e
		}, nil}
	case 6:
		from := o.int(5)
		to := from + o.int(most(key)*2/3)
		return &op{words("LTRIM", key, from, to), writes, func() any {
			if v != nil {
				put(l[min(from, len(l)):min(to+1, len(l))])
			}
			return okay
		}, nil}
	case 7:
		e, n := element(), o.int(5)-2
		return &op{words("LREM", key, n, e), writes, func() any {
			if v == nil {
				return 0
			}
			var kept []string
			removed, limit := 0, n
			if n == 0 {
				limit = math.MaxInt
			}
			if n < 0 {
				limit = -n
				l = slices.Clone(l)
				slices.Reverse(l)
			}
			for _, x := range l {
				if x == e && removed < limit {
					removed++
					continue
				}
				kept = append(kept, x)
			}
			if n < 0 {
				slices.Reverse(kept)
			}
			put(kept)
			return removed
		}, nil}
	case 8:
		pivot, e := element(), o.text()
		where := []string{"BEFORE", "AFTER"}[o.int(2)]
		return &op{words("LINSERT", key, where, pivot, e), writes, func() any {
			if v == nil {
				return 0
			}
			i := slices.Index(l, pivot)
			if i < 0 {
				return -1
			}
			if where == "AFTER" {
				i++
			}
			put(slices.Insert(slices.Clone(l), i, e))
			return len(l) + 1
		}, nil}
	case 9:
		if len(l) == 0 {
			return nil
		}
		i, e := o.int(len(l)), o.text()
		return &op{words("LSET", key, i-len(l), e), writes, func() any { l[i] = e; return okay }, nil}
	case 10:
		other := o.key("list")
		if other == key || !o.usable(other) {
			return nil
		}
		return &op{words("LMOVE", key, other, "LEFT", "RIGHT"), []string{key, other}, func() any {
			if len(l) == 0 {
				return nil
			}
			e := l[0]
			put(l[1:])
			d := o.of(other, "list")
			d.list = append(d.list, e)
			return e
		}, nil}
	case 11:
		return &op{words("LLEN", key), nil, func() any { return len(l) }, nil}
	case 12:
		i := o.int(20) - 10
		return &op{words("LINDEX", key, i), nil, func() any {
			if i < 0 {
				i += len(l)
			}
			if i < 0 || i >= len(l) {
				return nil
			}
			return l[i]
		}, nil}
	case 13:
		e := element()
		return &op{words("LPOS", key, e), nil, func() any {
			if i := slices.Index(l, e); i >= 0 {
				return i
			}
			return nil
		}, nil}
	}
	from, n := o.int(10), o.int(30)
	return &op{words("LRANGE", key, from, from+n), nil, func() any {
		return rowOf(l[min(from, len(l)):min(from+n+1, len(l))])
	}, nil}
}
