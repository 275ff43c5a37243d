//go:build linux

package main

import (
	"slices"
	"strings"
)

func (o *owner) zsetOp(key string) *op {
	v := o.model[key]
	scores := map[string]float64{}
	if v != nil {
		scores = v.scores
	}
	writes := []string{key}
	kind := o.int(30)
	if len(scores) > most(key) {
		kind = 11
	}
	score := func(m string) any {
		if s, ok := scores[m]; ok {
			return num(s)
		}
		return nil
	}
	lo := o.score()
	hi := lo + float64(o.int(40))/4
	within := func() (l []scored) {
		for _, e := range v.sorted() {
			if e.score >= lo && e.score <= hi {
				l = append(l, e)
			}
		}
		return l
	}
	names := func(l []scored) row {
		r := row{}
		for _, e := range l {
			r = append(r, e.member)
		}
		return r
	}
	remove := func(l []scored) {
		for _, e := range l {
			v.drop(e.member)
		}
	}
	pop := func(l []scored, n int, highest bool) any {
		if highest {
			slices.Reverse(l)
		}
		l = l[:min(n, len(l))]
		remove(l)
		return ranked(l)
	}
	switch kind {
	case 0, 1, 2, 3:
		option := []string{"", "NX", "XX", "GT", "LT"}[max(0, o.int(8)-3)]
		changed := o.one(3)
		args := words("ZADD", key)
		if option != "" {
			args = append(args, option)
		}
		if changed {
			args = append(args, "CH")
		}
		members, with := o.members(key, 10), []float64{}
		for _, m := range members {
			s := o.score()
			with = append(with, s)
			args = append(args, formatScore(s), m)
		}
		return &op{args, writes, func() any {
			added, updated := 0, 0
			for i, m := range members {
				s, there := 0.0, false
				if v := o.model[key]; v != nil {
					s, there = v.scores[m]
				}
				if there {
					if option == "NX" || option == "GT" && with[i] <= s || option == "LT" && with[i] >= s {
						continue
					}
					if s != with[i] {
						updated++
					}
				} else {
					if option == "XX" {
						continue
					}
					added++
				}
				v := o.of(key, "zset")
				v.scores[m] = with[i]
				delete(v.due, m)
			}
			if changed {
				return added + updated
			}
			return added
		}, nil}
	case 4, 5:
		m, d := o.held(key), o.score()
		return &op{words("ZINCRBY", key, d, m), writes, func() any {
			v := o.of(key, "zset")
			v.scores[m] += d
			return num(v.scores[m])
		}, nil}
	case 6, 7:
		list := o.members(key, 8)
		list[0] = o.held(key)
		return &op{words("ZREM", key, list), writes, func() any {
			n := len(scores)
			for _, m := range list {
				v.drop(m)
			}
			return n - len(scores)
		}, nil}
	case 8:
		n, highest := o.int(4), o.one(2)
		name := "ZPOPMIN"
		if highest {
			name = "ZPOPMAX"
		}
		return &op{words(name, key, n), writes, func() any { return pop(v.sorted(), n, highest) }, nil}
	case 9:
		return &op{words("ZREMRANGEBYSCORE", key, lo, hi), writes, func() any { l := within(); remove(l); return len(l) }, nil}
	case 10, 11:
		from, to := o.int(4), o.int(8)
		if len(scores) > most(key) {
			to = len(scores) / 2
		}
		return &op{words("ZREMRANGEBYRANK", key, from, to), writes, func() any {
			l := v.sorted()
			l = l[min(from, len(l)):max(min(from, len(l)), min(to+1, len(l)))]
			remove(l)
			return len(l)
		}, nil}
	case 12, 13:
		other, third := o.key("zset"), o.key("zset")
		if !o.usable(other) || !o.usable(third) || !strings.HasSuffix(key, ":0") && (strings.HasSuffix(other, ":0") || strings.HasSuffix(third, ":0")) {
			return nil
		}
		name := []string{"ZUNIONSTORE", "ZINTERSTORE", "ZDIFFSTORE"}[o.int(3)]
		if name == "ZUNIONSTORE" && (key == other || key == third) {
			return nil
		}
		return &op{words(name, key, "2", other, third), writes, func() any {
			a, b := map[string]float64{}, map[string]float64{}
			if v := o.model[other]; v != nil {
				a = v.scores
			}
			if v := o.model[third]; v != nil {
				b = v.scores
			}
			r := newValue("zset")
			for m, s := range a {
				t, both := b[m]
				switch {
				case name == "ZDIFFSTORE" && !both:
					r.scores[m] = s
				case name == "ZUNIONSTORE", name == "ZINTERSTORE" && both:
					r.scores[m] = s + t
				}
			}
			if name == "ZUNIONSTORE" {
				for m, s := range b {
					if _, both := a[m]; !both {
						r.scores[m] = s
					}
				}
			}
			o.model[key] = r
			return len(r.scores)
		}, nil}
	case 14:
		other := o.key("zset")
		if other == key || !o.usable(other) || strings.HasSuffix(key, ":0") {
			return nil
		}
		return &op{words("ZRANGESTORE", other, key, lo, hi, "BYSCORE"), []string{other}, func() any {
			r := newValue("zset")
			for _, e := range within() {
				r.scores[e.member] = e.score
			}
			o.model[other] = r
			return len(r.scores)
		}, nil}
	case 15, 16:
		at, keep, condition := o.deadline(), o.one(4), []string{"", "NX", "XX"}[max(0, o.int(5)-2)]
		args := words("ZADDEX", key)
		if condition != "" {
			args = append(args, condition)
		}
		if keep {
			args = append(args, "KEEPTTL")
		} else {
			args = append(args, words("PXAT", at)...)
		}
		members, with := o.members(key, 5), []float64{}
		args = append(args, words("MEMBERS", len(members))...)
		for _, m := range members {
			with = append(with, o.score())
			args = append(args, formatScore(with[len(with)-1]), m)
		}
		return &op{args, writes, func() any {
			added := 0
			for i, m := range members {
				there := o.model[key] != nil && o.model[key].has(m)
				if condition == "NX" && there || condition == "XX" && !there {
					continue
				}
				v := o.of(key, "zset")
				v.scores[m] = with[i]
				if !keep {
					v.setDue(m, at)
				}
				if !there {
					added++
				}
			}
			return added
		}, nil}
	case 17:
		m, at := o.held(key), o.deadline()
		return &op{words("ZPEXPIREAT", key, at, "MEMBERS", "1", m), writes, func() any {
			if v == nil || !v.has(m) {
				return row{-2}
			}
			v.setDue(m, at)
			return row{1}
		}, nil}
	case 18:
		m := o.held(key)
		return &op{words("ZPERSIST", key, "MEMBERS", "1", m), writes, func() any {
			if v == nil || !v.has(m) {
				return row{-2}
			}
			if _, ok := v.due[m]; !ok {
				return row{-1}
			}
			delete(v.due, m)
			return row{1}
		}, nil}
	case 19:
		s, n, lease := o.score(), 1+o.int(4), o.one(2)
		args := words("ZCLAIM", key, lo, hi, s, "COUNT", n)
		if lease {
			args = append(args, "LEASE")
		}
		return &op{args, writes, func() any {
			l := within()
			l = slices.Clone(l[:min(n, len(l))])
			for i := range l {
				v.scores[l[i].member] = s
				if lease {
					l[i].score = s
				}
			}
			return ranked(l)
		}, nil}
	case 20:
		n := 1 + o.int(3)
		args := words("ZPOPBYSCORE", key, lo, hi)
		highest := o.one(2)
		if highest {
			args = append(args, "MAX")
		}
		args = append(args, words("COUNT", n)...)
		return &op{args, writes, func() any { return pop(within(), n, highest) }, nil}
	case 21:
		m, s := o.held(key), o.score()
		if x, ok := scores[m]; ok && o.one(2) {
			s = x
		}
		return &op{words("ZREMIFEQ", key, s, m), writes, func() any {
			if x, ok := scores[m]; ok && x == s {
				v.drop(m)
				return 1
			}
			return 0
		}, nil}
	case 22:
		return &op{words("ZRANGE", key, "0", "-1", "WITHSCORES"), nil, func() any { return ranked(v.sorted()) }, nil}
	case 23:
		return &op{words("ZRANGEBYSCORE", key, lo, hi), nil, func() any { return names(within()) }, nil}
	case 24:
		return &op{words("ZCOUNT", key, lo, hi), nil, func() any { return len(within()) }, nil}
	case 25:
		m := o.held(key)
		return &op{words("ZRANK", key, m), nil, func() any {
			for i, e := range v.sorted() {
				if e.member == m {
					return i
				}
			}
			return nil
		}, nil}
	case 26:
		list := o.members(key, 6)
		return &op{words("ZMSCORE", key, list), nil, func() any {
			r := row{}
			for _, m := range list {
				r = append(r, score(m))
			}
			return r
		}, nil}
	case 27:
		from, n := o.int(8), o.int(10)
		return &op{words("ZREVRANGE", key, from, from+n), nil, func() any {
			l := v.sorted()
			slices.Reverse(l)
			return names(l[min(from, len(l)):min(from+n+1, len(l))])
		}, nil}
	case 28:
		return &op{words("ZCARD", key), nil, func() any { return len(scores) }, nil}
	}
	m := o.held(key)
	return &op{words("ZPEXPIRETIME", key, "MEMBERS", "1", m), nil, func() any {
		if v == nil || !v.has(m) {
			return row{-2}
		}
		if at, ok := v.due[m]; ok {
			return row{at}
		}
		return row{-1}
	}, nil}
}
