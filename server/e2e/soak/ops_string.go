//go:build linux

package main

import "strconv"

func (o *owner) stringOp(key string) *op {
	v := o.model[key]
	str := ""
	if v != nil {
		str = v.str
	}
	writes := []string{key}
	put := func(s string) {
		if s == "" && v == nil {
			return
		}
		o.of(key, "string").str = s
	}
	integer := func() (int64, bool) {
		if v == nil {
			return 0, true
		}
		n, err := strconv.ParseInt(str, 10, 64)
		return n, err == nil && strconv.FormatInt(n, 10) == str && n < 1<<62 && n > -1<<62
	}
	switch o.int(17) {
	case 0, 1:
		s := o.text()
		return &op{words("SET", key, s), writes, func() any { o.model[key] = &value{kind: "string", str: s}; return okay }, nil}
	case 2:
		if !o.st.mayExpire() {
			return nil
		}
		s, at := o.text(), o.deadline()
		return &op{words("SET", key, s, "PXAT", at), writes, func() any { o.model[key] = &value{kind: "string", str: s, at: at}; return okay }, nil}
	case 3:
		s := strconv.Itoa(o.int(100000))
		return &op{words("SET", key, s, "KEEPTTL"), writes, func() any { o.of(key, "string").str = s; return okay }, nil}
	case 4, 5:
		n, ok := integer()
		if !ok {
			return nil
		}
		d := int64(o.int(1000) - 400)
		return &op{words("INCRBY", key, d), writes, func() any { o.of(key, "string").str = strconv.FormatInt(n+d, 10); return n + d }, nil}
	case 6:
		s := o.text()
		if len(str)+len(s) > 10_000 {
			return nil
		}
		return &op{words("APPEND", key, s), writes, func() any {
			if v != nil || s != "" {
				put(str + s)
			} else {
				o.of(key, "string")
			}
			return len(str) + len(s)
		}, nil}
	case 7:
		at, s := o.int(200), o.text()
		return &op{words("SETRANGE", key, at, s), writes, func() any {
			if s == "" {
				return len(str)
			}
			b := []byte(str)
			for len(b) < at+len(s) {
				b = append(b, 0)
			}
			copy(b[at:], s)
			put(string(b))
			return len(b)
		}, nil}
	case 8:
		a, b := o.int(300), o.int(300)
		return &op{words("GETRANGE", key, a, a+b), nil, func() any {
			if a >= len(str) {
				return ""
			}
			return str[a:min(len(str), a+b+1)]
		}, nil}
	case 9:
		return &op{words("STRLEN", key), nil, func() any { return len(str) }, nil}
	case 10:
		return &op{words("GETDEL", key), writes, func() any {
			delete(o.model, key)
			if v == nil {
				return nil
			}
			return str
		}, nil}
	case 11:
		at, bit := o.int(2000), o.int(2)
		return &op{words("SETBIT", key, at, bit), writes, func() any {
			b := []byte(str)
			for len(b) <= at/8 {
				b = append(b, 0)
			}
			old := int(b[at/8]>>(7-at%8)) & 1
			b[at/8] = b[at/8]&^(1<<(7-at%8)) | byte(bit)<<(7-at%8)
			o.of(key, "string").str = string(b)
			return old
		}, nil}
	case 12:
		return &op{words("BITCOUNT", key), nil, func() any {
			n := 0
			for i := range len(str) {
				for b := str[i]; b != 0; b &= b - 1 {
					n++
				}
			}
			return n
		}, nil}
	case 13:
		s := o.text()
		return &op{words("SET", key, s, "NX", "GET"), writes, func() any {
			if v == nil {
				o.model[key] = &value{kind: "string", str: s}
				return nil
			}
			return str
		}, nil}
	case 14:
		other := o.key("string")
		if other == key || !o.usable(other) {
			return nil
		}
		s, t := o.text(), o.text()
		return &op{words("MSET", key, s, other, t), []string{key, other}, func() any {
			o.model[key], o.model[other] = &value{kind: "string", str: s}, &value{kind: "string", str: t}
			return okay
		}, nil}
	}
	return &op{words("GET", key), nil, func() any {
		if v == nil {
			return nil
		}
		return str
	}, nil}
}
