//go:build linux

package main

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

func (o *owner) streamOp(key string) *op {
	v := o.model[key]
	s := &stream{groups: map[string]*group{}}
	if v != nil {
		s = v.stream
	}
	writes := []string{key}
	kind := o.int(12)
	if len(s.entries) > most(key) {
		kind = 3
	}
	const name = "g"
	g := s.groups[name]
	id := func(n int64) string { return strconv.FormatInt(n, 10) + "-0" }
	entryRow := func(e entry) row { return row{id(e.id), rowOf(strings.Fields(e.fields))} }
	switch kind {
	case 0, 1, 2:
		n := s.last + 1 + int64(o.int(5))
		fields := []string{"f", strconv.Itoa(o.int(1000)), "g", strings.Repeat("x", o.int(40)+1)}
		return &op{words("XADD", key, id(n), fields), writes, func() any {
			s := o.of(key, "stream").stream
			s.entries = append(s.entries, entry{n, strings.Join(fields, " ")})
			s.last = n
			s.added++
			return id(n)
		}, nil}
	case 3:
		n := o.int(most(key))
		return &op{words("XTRIM", key, "MAXLEN", n), writes, func() any {
			removed := max(0, len(s.entries)-n)
			s.entries = slices.Clone(s.entries[removed:])
			return removed
		}, nil}
	case 4:
		if len(s.entries) == 0 {
			return nil
		}
		i := o.int(len(s.entries))
		return &op{words("XDEL", key, id(s.entries[i].id), id(s.last+100)), writes, func() any {
			s.entries = slices.Delete(s.entries, i, i+1)
			return 1
		}, nil}
	case 5:
		if v == nil {
			return nil
		}
		return &op{words("XGROUP", "CREATE", key, name, "0"), writes, func() any {
			if g != nil {
				return errorLike("BUSYGROUP ")
			}
			s.groups[name] = &group{pending: map[int64]string{}}
			return okay
		}, nil}
	case 6, 7:
		if g == nil {
			return nil
		}
		n, consumer := 1+o.int(4), "c"+strconv.Itoa(o.int(3))
		return &op{words("XREADGROUP", "GROUP", name, consumer, "COUNT", n, "STREAMS", key, ">"), writes, func() any {
			r := row{}
			for _, e := range s.entries {
				if e.id > g.last && len(r) < n {
					r = append(r, entryRow(e))
					g.last = e.id
					g.pending[e.id] = consumer
				}
			}
			if len(r) == 0 {
				return nil
			}
			return judged{"of one stream " + r.String(), func(reply any) bool {
				p := pairsOf(reply)
				return len(p) == 1 && text(p[0][0]) == key && matches(r, p[0][1])
			}}
		}, nil}
	case 8:
		if g == nil || len(g.pending) == 0 {
			return nil
		}
		all := slices.Sorted(maps.Keys(g.pending))
		n := all[o.int(len(all))]
		return &op{words("XACK", key, name, id(n), id(s.last+7)), writes, func() any { delete(g.pending, n); return 1 }, nil}
	case 9:
		return &op{words("XRANGE", key, "-", "+", "COUNT", "5"), nil, func() any {
			r := row{}
			for _, e := range s.entries[:min(5, len(s.entries))] {
				r = append(r, entryRow(e))
			}
			return r
		}, nil}
	case 10:
		if g == nil || !o.one(4) {
			return nil
		}
		return &op{words("XGROUP", "DESTROY", key, name), writes, func() any { delete(s.groups, name); return 1 }, nil}
	}
	return &op{words("XLEN", key), nil, func() any { return len(s.entries) }, nil}
}
