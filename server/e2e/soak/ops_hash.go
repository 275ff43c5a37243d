//go:build linux

package main

import (
	"maps"
	"slices"
	"strconv"
)

func (o *owner) hashOp(key string) *op {
	v := o.model[key]
	fields := map[string]string{}
	if v != nil {
		fields = v.fields
	}
	writes := []string{key}
	at := func(f string) any {
		if s, ok := fields[f]; ok {
			return s
		}
		return nil
	}
	kind := o.int(14)
	if len(fields) > most(key) {
		kind = 4
	}
	switch kind {
	case 0, 1, 2:
		args := words("HSET", key)
		for _, f := range o.members(key, 8) {
			args = append(args, f, o.text())
		}
		return &op{args, writes, func() any {
			v := o.of(key, "hash")
			n := len(v.fields)
			for i := 2; i < len(args); i += 2 {
				v.fields[args[i]] = args[i+1]
				delete(v.due, args[i])
			}
			return len(v.fields) - n
		}, nil}
	case 3:
		f, d := o.held(key), int64(o.int(100)-40)
		n, err := strconv.ParseInt(fields[f], 10, 64)
		if _, ok := fields[f]; ok && (err != nil || strconv.FormatInt(n, 10) != fields[f]) {
			return nil
		}
		return &op{words("HINCRBY", key, f, d), writes, func() any {
			o.of(key, "hash").fields[f] = strconv.FormatInt(n+d, 10)
			return n + d
		}, nil}
	case 4:
		return o.remove("HDEL", key, fields)
	case 5:
		names := o.members(key, 8)
		return &op{words("HMGET", key, names), nil, func() any {
			r := row{}
			for _, f := range names {
				r = append(r, at(f))
			}
			return r
		}, nil}
	case 6:
		return &op{words("HGETALL", key), nil, func() any { return hashed(maps.Clone(fields)) }, nil}
	case 7:
		return &op{words("HLEN", key), nil, func() any { return len(fields) }, nil}
	case 8:
		return &op{words("HKEYS", key), nil, func() any { return bag(slices.Collect(maps.Keys(fields))) }, nil}
	case 9:
		f, s := o.held(key), o.text()
		return &op{words("HSETNX", key, f, s), writes, func() any {
			if _, ok := fields[f]; ok {
				return 0
			}
			o.of(key, "hash").fields[f] = s
			return 1
		}, nil}
	case 10:
		names, at := []string{o.held(key)}, o.deadline()
		return &op{words("HPEXPIREAT", key, at, "FIELDS", len(names), names), writes, func() any {
			r := row{}
			for _, f := range names {
				if _, ok := fields[f]; !ok {
					r = append(r, -2)
					continue
				}
				v.setDue(f, at)
				r = append(r, 1)
			}
			return r
		}, nil}
	case 11:
		f := o.held(key)
		return &op{words("HPERSIST", key, "FIELDS", "1", f), writes, func() any {
			if _, ok := fields[f]; !ok {
				return row{-2}
			}
			if _, ok := v.due[f]; !ok {
				return row{-1}
			}
			delete(v.due, f)
			return row{1}
		}, nil}
	case 12:
		f := o.held(key)
		return &op{words("HPEXPIRETIME", key, "FIELDS", "1", f), nil, func() any {
			if _, ok := fields[f]; !ok {
				return row{-2}
			}
			if at, ok := v.due[f]; ok {
				return row{at}
			}
			return row{-1}
		}, nil}
	}
	f := o.held(key)
	return &op{words("HGET", key, f), nil, func() any { return at(f) }, nil}
}
