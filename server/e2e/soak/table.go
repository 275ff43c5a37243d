//go:build linux

package main

import (
	"maps"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// An operation is a row of a table: a command, and what it does to the model.
type operation struct {
	weight int // how often it is drawn; 0: only when the value is too large, which it makes smaller
	effect effect
	form   string            // the command: draw.word describes the words
	apply  func(c *call) any // does the command to the model, and returns the reply that must come: matches describes it
}

type effect int

const (
	reads effect = iota
	writes
	picks // the server chooses what changes, so the command is sent alone, and the check of the reply changes the model
)

// A call is a command with the model's values of its keys, in the order of the
// arguments. A missing key has an empty value, and an empty value becomes a missing key.
type call struct {
	name            string
	args            []string // without the name
	v, other, third *value
}

func (c *call) int(i int) int        { n, _ := strconv.Atoi(c.args[i]); return n }
func (c *call) float(i int) float64  { f, _ := strconv.ParseFloat(c.args[i], 64); return f }
func (c *call) has(word string) bool { return slices.Contains(c.args, word) }

// tables returns the operations on keys of each type. Those of "any" are for all types.
func tables() map[string][]operation {
	return map[string][]operation{
		"any": anyTable(), "string": stringTable(), "hash": hashTable(), "set": setTable(),
		"list": listTable(), "zset": zsetTable(), "stream": streamTable(),
	}
}

func anyTable() []operation {
	return []operation{
		{1, writes, "DEL|UNLINK key", func(c *call) any {
			n := c.v.exists()
			c.v.clear()
			return n
		}},
		{3, writes, "RENAME key target", func(c *call) any {
			if c.v.exists() == 0 {
				return errorLike("ERR no such key")
			}
			*c.other = *c.v
			c.v.clear()
			return okay
		}},
		{3, writes, "COPY key target REPLACE", func(c *call) any {
			if c.v.exists() == 0 {
				return 0
			}
			*c.other = *c.v.clone()
			return 1
		}},
		{3, writes, "EVAL restore 2 key target", func(c *call) any {
			if c.v.exists() == 0 {
				return errorLike("ERR ")
			}
			*c.other = *c.v.clone()
			c.other.at = 0
			return okay
		}},
		{6, writes, "PEXPIREAT key expiry", func(c *call) any {
			if c.v.exists() == 0 {
				return 0
			}
			c.v.at = int64(c.int(1))
			return 1
		}},
		{3, writes, "PERSIST key", func(c *call) any {
			if c.v.at == 0 {
				return 0
			}
			c.v.at = 0
			return 1
		}},
		{3, reads, "PEXPIRETIME key", func(c *call) any {
			switch {
			case c.v.exists() == 0:
				return -2
			case c.v.at == 0:
				return -1
			}
			return c.v.at
		}},
		{3, reads, "EXISTS key key", func(c *call) any { return 2 * c.v.exists() }},
		{3, reads, "TOUCH key other", func(c *call) any { return c.v.exists() + c.other.exists() }},
		{3, reads, "TYPE key", func(c *call) any {
			if c.v.exists() == 0 {
				return "none"
			}
			return c.v.kind
		}},
		{3, reads, "OBJECT ENCODING key", func(c *call) any {
			if c.v.exists() == 0 {
				return nil
			}
			kind := c.v.kind
			return judged{"an encoding of a " + kind, func(r any) bool { return slices.Contains(encodings(kind), text(r)) }}
		}},
		{3, reads, "MEMORY USAGE key", func(c *call) any {
			if c.v.exists() == 0 {
				return nil
			}
			return judged{"a size", func(r any) bool { return number(r) > 0 }}
		}},
		{3, reads, "LLEN|ZCARD key", func(c *call) any {
			if c.v.exists() == 1 && c.v.kind != map[string]string{"LLEN": "list", "ZCARD": "zset"}[c.name] {
				return errorLike("WRONGTYPE ")
			}
			return c.v.length()
		}},
		{1, reads, "MOVE key 0", func(c *call) any { return errorLike("ERR source and destination objects are the same") }},
	}
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

func stringTable() []operation {
	set := func(c *call) any {
		old, at := c.v.get(), c.v.at
		if c.has("NX") && old != nil {
			return old
		}
		c.v.clear()
		c.v.put(c.args[1])
		switch {
		case c.has("NX"):
			return nil
		case c.has("KEEPTTL"):
			c.v.at = at
		case c.has("PXAT"):
			c.v.at = int64(c.int(3))
		}
		return okay
	}
	// extended returns a string with zeros behind it up to a length.
	extended := func(s string, n int) []byte { return []byte(s + strings.Repeat("\x00", max(0, n-len(s)))) }
	return []operation{
		{2, writes, "SET key text", set},
		{1, writes, "SET key text PXAT expiry", set},
		{1, writes, "SET key 0..99999 KEEPTTL", set},
		{1, writes, "SET key text NX GET", set},
		{1, writes, "MSET key text other text", func(c *call) any {
			c.v.clear()
			c.v.put(c.args[1])
			c.other.clear()
			c.other.put(c.args[3])
			return okay
		}},
		{2, writes, "INCRBY key -400..599", func(c *call) any {
			n, ok := integer(c.v.str, c.v.there)
			if !ok {
				return errorLike("ERR value is not an integer or out of range")
			}
			c.v.put(strconv.Itoa(n + c.int(1)))
			return n + c.int(1)
		}},
		{1, writes, "APPEND key text", func(c *call) any {
			c.v.put(c.v.str + c.args[1])
			return len(c.v.str)
		}},
		{1, writes, "SETRANGE key 0..199 text", func(c *call) any {
			if at, s := c.int(1), c.args[2]; s != "" {
				b := extended(c.v.str, at+len(s))
				copy(b[at:], s)
				c.v.put(string(b))
			}
			return len(c.v.str)
		}},
		{1, writes, "SETBIT key 0..1999 0|1", func(c *call) any {
			at, mask := c.int(1)/8, byte(128)>>(c.int(1)%8)
			b := extended(c.v.str, at+1)
			old := min(1, int(b[at]&mask))
			if b[at] &^= mask; c.args[2] == "1" {
				b[at] |= mask
			}
			c.v.put(string(b))
			return old
		}},
		{1, writes, "GETDEL key", func(c *call) any {
			defer c.v.clear()
			return c.v.get()
		}},
		{2, reads, "GET key", func(c *call) any { return c.v.get() }},
		{1, reads, "GETRANGE key 0..299 0..599", func(c *call) any {
			return string(cut([]byte(c.v.str), c.int(1), c.int(2)))
		}},
		{1, reads, "STRLEN key", func(c *call) any { return len(c.v.str) }},
		{1, reads, "BITCOUNT key", func(c *call) any {
			n := 0
			for _, b := range []byte(c.v.str) {
				n += bits.OnesCount8(b)
			}
			return n
		}},
	}
}

// integer reads a string as INCRBY does. What is not there is 0.
func integer(s string, there bool) (n int, ok bool) {
	if !there {
		return 0, true
	}
	n, err := strconv.Atoi(s)
	return n, err == nil && strconv.Itoa(n) == s
}

// cut returns the elements from an index to another.
func cut[T any](l []T, from, to int) []T {
	from = min(from, len(l))
	return l[from:max(from, min(to+1, len(l)))]
}

// These are for members of sets and sorted sets, and fields of hashes.

func removeMembers(c *call) any {
	n := c.v.length()
	for _, m := range c.args[1:] {
		c.v.drop(m)
	}
	return n - c.v.length()
}

func expireMember(c *call) any { // HPEXPIREAT key deadline FIELDS 1 field
	if !c.v.has(c.args[4]) {
		return row{-2}
	}
	c.v.setDue(c.args[4], int64(c.int(1)))
	return row{1}
}

func persistMember(c *call) any { // HPERSIST key FIELDS 1 field
	if at := expireTime(c)[0]; at == -1 || at == -2 {
		return row{at}
	}
	delete(c.v.due, c.args[3])
	return row{1}
}

func memberExpireTime(c *call) any { return expireTime(c) }

func expireTime(c *call) row { // HPEXPIRETIME key FIELDS 1 field
	m := c.args[3]
	if !c.v.has(m) {
		return row{-2}
	}
	if at, ok := c.v.due[m]; ok {
		return row{at}
	}
	return row{-1}
}

func hashTable() []operation {
	get := func(v *value, f string) any {
		if s, ok := v.fields[f]; ok {
			return s
		}
		return nil
	}
	return []operation{
		{0, writes, "HDEL key many", removeMembers},
		{1, writes, "HDEL key held members", removeMembers},
		{3, writes, "HSET key fields", func(c *call) any {
			n := len(c.v.fields)
			for i := 1; i < len(c.args); i += 2 {
				c.v.fields[c.args[i]] = c.args[i+1]
				delete(c.v.due, c.args[i])
			}
			return len(c.v.fields) - n
		}},
		{1, writes, "HSETNX key held text", func(c *call) any {
			if c.v.has(c.args[1]) {
				return 0
			}
			c.v.fields[c.args[1]] = c.args[2]
			return 1
		}},
		{1, writes, "HINCRBY key held -40..59", func(c *call) any {
			f := c.args[1]
			n, ok := integer(c.v.fields[f], c.v.has(f))
			if !ok {
				return errorLike("ERR hash value is not an integer")
			}
			c.v.fields[f] = strconv.Itoa(n + c.int(2))
			return n + c.int(2)
		}},
		{1, writes, "HPEXPIREAT key deadline FIELDS 1 held", expireMember},
		{1, writes, "HPERSIST key FIELDS 1 held", persistMember},
		{1, reads, "HPEXPIRETIME key FIELDS 1 held", memberExpireTime},
		{1, reads, "HGET key held", func(c *call) any { return get(c.v, c.args[1]) }},
		{1, reads, "HMGET key members", func(c *call) any {
			return rowOf(c.args[1:], func(f string) any { return get(c.v, f) })
		}},
		{1, reads, "HGETALL key", func(c *call) any { return hashed(maps.Clone(c.v.fields)) }},
		{1, reads, "HKEYS key", func(c *call) any { return bag(slices.Collect(maps.Keys(c.v.fields))) }},
		{1, reads, "HLEN key", func(c *call) any { return len(c.v.fields) }},
	}
}

func setTable() []operation {
	member := func(v *value, m string) any {
		if v.has(m) {
			return 1
		}
		return 0
	}
	return []operation{
		{0, writes, "SREM key many", removeMembers},
		{1, writes, "SREM key held members", removeMembers},
		{3, writes, "SADD key members", func(c *call) any {
			n := len(c.v.fields)
			for _, m := range c.args[1:] {
				c.v.fields[m] = ""
			}
			return len(c.v.fields) - n
		}},
		{1, picks, "SPOP key", func(c *call) any {
			if c.v.exists() == 0 {
				return nil
			}
			return judged{"a member", func(r any) bool {
				defer c.v.drop(text(r))
				return c.v.has(text(r))
			}}
		}},
		{1, writes, "SMOVE key other held", func(c *call) any {
			if m := c.args[2]; c.v.has(m) {
				c.v.drop(m)
				c.other.fields[m] = ""
				return 1
			}
			return 0
		}},
		{2, writes, "SUNIONSTORE|SINTERSTORE|SDIFFSTORE key source source", func(c *call) any {
			a, b := c.other.fields, c.third.fields
			c.v.clear()
			for m := range a {
				if _, both := b[m]; c.name == "SUNIONSTORE" || both == (c.name == "SINTERSTORE") {
					c.v.fields[m] = ""
				}
			}
			if c.name == "SUNIONSTORE" {
				maps.Copy(c.v.fields, b)
			}
			return len(c.v.fields)
		}},
		{1, reads, "SMEMBERS key", func(c *call) any { return bag(slices.Collect(maps.Keys(c.v.fields))) }},
		{1, reads, "SORT key ALPHA", func(c *call) any { return rowOf(slices.Sorted(maps.Keys(c.v.fields)), asIs) }},
		{1, reads, "SCARD key", func(c *call) any { return len(c.v.fields) }},
		{1, reads, "SISMEMBER key held", func(c *call) any { return member(c.v, c.args[1]) }},
		{1, reads, "SMISMEMBER key members", func(c *call) any {
			return rowOf(c.args[1:], func(m string) any { return member(c.v, m) })
		}},
		{1, reads, "SRANDMEMBER key 3", func(c *call) any {
			set := maps.Clone(c.v.fields)
			return judged{"members", func(r any) bool {
				l := list(r)
				return len(l) == min(3, len(set)) && !slices.ContainsFunc(l, func(m any) bool { _, ok := set[text(m)]; return !ok })
			}}
		}},
	}
}

func listTable() []operation {
	push := func(c *call) any {
		add := slices.Clone(c.args[1:])
		if c.name == "LPUSH" {
			slices.Reverse(add)
			c.v.list = append(add, c.v.list...)
		} else {
			c.v.list = append(c.v.list, add...)
		}
		return len(c.v.list)
	}
	pop := func(v *value, left bool) any {
		n := len(v.list)
		if n == 0 {
			return nil
		}
		i := n - 1
		if left {
			i = 0
		}
		e := v.list[i]
		v.list = slices.Delete(v.list, i, i+1)
		return e
	}
	// at returns the index of an element; those of the end are negative.
	at := func(c *call) (i int, ok bool) {
		if i = c.int(1); i < 0 {
			i += len(c.v.list)
		}
		return i, i >= 0 && i < len(c.v.list)
	}
	trim := func(c *call) any {
		c.v.list = slices.Clone(cut(c.v.list, c.int(1), c.int(2)))
		return okay
	}
	return []operation{
		{0, writes, "LTRIM key 0 half", trim},
		{1, writes, "LTRIM key 0..4 most", trim},
		{4, writes, "LPUSH|RPUSH key texts", push},
		{2, writes, "LPOP|RPOP key", func(c *call) any { return pop(c.v, c.name == "LPOP") }},
		{1, writes, "LMOVE key other LEFT RIGHT", func(c *call) any {
			e := pop(c.v, true)
			if e != nil {
				c.other.list = append(c.other.list, e.(string))
			}
			return e
		}},
		{1, writes, "LREM key -2..2 element", func(c *call) any {
			n, before := c.int(1), len(c.v.list)
			left := n
			if n == 0 {
				left = math.MaxInt
			} else if n < 0 {
				left = -n
				slices.Reverse(c.v.list)
			}
			c.v.list = slices.DeleteFunc(c.v.list, func(e string) bool {
				found := e == c.args[2] && left > 0
				if found {
					left--
				}
				return found
			})
			if n < 0 {
				slices.Reverse(c.v.list)
			}
			return before - len(c.v.list)
		}},
		{1, writes, "LINSERT key BEFORE|AFTER element text", func(c *call) any {
			i := slices.Index(c.v.list, c.args[2])
			switch {
			case len(c.v.list) == 0:
				return 0
			case i < 0:
				return -1
			case c.args[1] == "AFTER":
				i++
			}
			c.v.list = slices.Insert(c.v.list, i, c.args[3])
			return len(c.v.list)
		}},
		{1, writes, "LSET key -10..9 text", func(c *call) any {
			i, ok := at(c)
			switch {
			case len(c.v.list) == 0:
				return errorLike("ERR no such key")
			case !ok:
				return errorLike("ERR index out of range")
			}
			c.v.list[i] = c.args[2]
			return okay
		}},
		{1, reads, "LINDEX key -10..9", func(c *call) any {
			if i, ok := at(c); ok {
				return c.v.list[i]
			}
			return nil
		}},
		{1, reads, "LPOS key element", func(c *call) any {
			if i := slices.Index(c.v.list, c.args[1]); i >= 0 {
				return i
			}
			return nil
		}},
		{1, reads, "LRANGE key 0..9 0..38", func(c *call) any { return rowOf(cut(c.v.list, c.int(1), c.int(2)), asIs) }},
		// Elements may have the byte 0, at which the comparison of SORT ends.
		{1, reads, "SORT key ALPHA", func(c *call) any { return bag(slices.Clone(c.v.list)) }},
		{1, reads, "LLEN key", func(c *call) any { return len(c.v.list) }},
	}
}

func zsetTable() []operation {
	// within returns the members with scores between two arguments.
	within := func(c *call, v *value, i int) []scored {
		return slices.DeleteFunc(v.sorted(), func(e scored) bool { return e.score < c.float(i) || e.score > c.float(i+1) })
	}
	names := func(l []scored) row { return rowOf(l, func(e scored) any { return e.member }) }
	remove := func(v *value, l []scored) []scored {
		for _, e := range l {
			v.drop(e.member)
		}
		return l
	}
	pop := func(v *value, l []scored, n int, highest bool) any {
		if highest {
			slices.Reverse(l)
		}
		return ranked(remove(v, l[:min(n, len(l))]))
	}
	byRank := func(c *call) any { return len(remove(c.v, cut(c.v.sorted(), c.int(1), c.int(2)))) }
	return []operation{
		{0, writes, "ZREMRANGEBYRANK key 0 half", byRank},
		{2, writes, "ZREMRANGEBYRANK key 0..3 0..7", byRank},
		{4, writes, "ZADD key ||||NX|XX|GT|LT ||CH scores", zadd},
		{3, writes, "ZADDEX key |||NX|XX PXAT deadline MEMBERS #scores", zaddex},
		{1, writes, "ZADDEX key |||NX|XX KEEPTTL MEMBERS #scores", zaddex},
		{2, writes, "ZINCRBY key score held", func(c *call) any {
			c.v.scores[c.args[2]] += c.float(1)
			return num(c.v.scores[c.args[2]])
		}},
		{2, writes, "ZREM key held members", removeMembers},
		{1, writes, "ZREMIFEQ key scored", func(c *call) any {
			if s, ok := c.v.scores[c.args[2]]; ok && s == c.float(1) {
				c.v.drop(c.args[2])
				return 1
			}
			return 0
		}},
		{1, writes, "ZREMRANGEBYSCORE key span", func(c *call) any { return len(remove(c.v, within(c, c.v, 1))) }},
		{1, writes, "ZPOPMIN|ZPOPMAX key 0..3", func(c *call) any { return pop(c.v, c.v.sorted(), c.int(1), c.name == "ZPOPMAX") }},
		{1, writes, "ZPOPBYSCORE key span |MAX COUNT 1..3", func(c *call) any {
			return pop(c.v, within(c, c.v, 1), c.int(len(c.args)-1), c.has("MAX"))
		}},
		{1, writes, "ZCLAIM key span score COUNT 1..4 |LEASE", func(c *call) any {
			l := within(c, c.v, 1)
			l = l[:min(c.int(5), len(l))]
			for i := range l {
				if c.v.scores[l[i].member] = c.float(3); c.has("LEASE") {
					l[i].score = c.float(3)
				}
			}
			return ranked(l)
		}},
		{2, writes, "ZUNIONSTORE|ZINTERSTORE|ZDIFFSTORE key 2 source source", func(c *call) any {
			a, b := c.other.scores, c.third.scores
			c.v.clear()
			for m, s := range a {
				t, both := b[m]
				if c.name == "ZUNIONSTORE" || both == (c.name == "ZINTERSTORE") {
					c.v.scores[m] = s + t
				}
			}
			for m, s := range b {
				if _, both := a[m]; !both && c.name == "ZUNIONSTORE" {
					c.v.scores[m] = s
				}
			}
			return len(c.v.scores)
		}},
		{1, writes, "ZRANGESTORE key source span BYSCORE", func(c *call) any {
			l := within(c, c.other, 2)
			c.v.clear()
			for _, e := range l {
				c.v.scores[e.member] = e.score
			}
			return len(l)
		}},
		{1, writes, "ZPEXPIREAT key deadline MEMBERS 1 held", expireMember},
		{1, writes, "ZPERSIST key MEMBERS 1 held", persistMember},
		{1, reads, "ZPEXPIRETIME key MEMBERS 1 held", memberExpireTime},
		{1, reads, "ZRANGE key 0 -1 WITHSCORES", func(c *call) any { return ranked(c.v.sorted()) }},
		{1, reads, "ZRANGEBYSCORE key span", func(c *call) any { return names(within(c, c.v, 1)) }},
		{1, reads, "ZCOUNT key span", func(c *call) any { return len(within(c, c.v, 1)) }},
		{1, reads, "ZREVRANGE key 0..7 0..16", func(c *call) any {
			l := c.v.sorted()
			slices.Reverse(l)
			return names(cut(l, c.int(1), c.int(2)))
		}},
		{1, reads, "ZRANK key held", func(c *call) any {
			if i := slices.IndexFunc(c.v.sorted(), func(e scored) bool { return e.member == c.args[1] }); i >= 0 {
				return i
			}
			return nil
		}},
		{1, reads, "ZMSCORE key members", func(c *call) any {
			return rowOf(c.args[1:], func(m string) any {
				if s, ok := c.v.scores[m]; ok {
					return num(s)
				}
				return nil
			})
		}},
		{1, reads, "ZCARD key", func(c *call) any { return len(c.v.scores) }},
	}
}

func zadd(c *call) any {
	added, updated := 0, 0
	i := 1
	for ; !strings.ContainsAny(c.args[i], "0123456789"); i++ { // options
	}
	for ; i < len(c.args); i += 2 {
		m, to := c.args[i+1], c.float(i)
		s, there := c.v.scores[m]
		switch {
		case there && (c.has("NX") || c.has("GT") && to <= s || c.has("LT") && to >= s), !there && c.has("XX"):
			continue
		case !there:
			added++
		case s != to:
			updated++
		}
		c.v.scores[m] = to
		delete(c.v.due, m)
	}
	if c.has("CH") {
		return added + updated
	}
	return added
}

func zaddex(c *call) any {
	added := 0
	for i := slices.Index(c.args, "MEMBERS") + 2; i < len(c.args); i += 2 {
		m := c.args[i+1]
		there := c.v.has(m)
		if c.has("NX") && there || c.has("XX") && !there {
			continue
		}
		c.v.scores[m] = c.float(i)
		if at := slices.Index(c.args, "PXAT"); at >= 0 {
			c.v.setDue(m, int64(c.int(at+1)))
		}
		if !there {
			added++
		}
	}
	return added
}

func streamTable() []operation {
	reply := func(e entry) any { return row{idOf(e.id), rowOf(strings.Fields(e.fields), asIs)} }
	trim := func(c *call) any {
		s := c.v.stream
		removed := max(0, len(s.entries)-c.int(2))
		s.entries = slices.Clone(s.entries[removed:])
		return removed
	}
	noKey := errorLike("ERR The XGROUP subcommand requires the key to exist")
	return []operation{
		{0, writes, "XTRIM key MAXLEN half", trim},
		{4, writes, "XTRIM key MAXLEN most", trim},
		{12, writes, "XADD key next f 0..999 g word", func(c *call) any {
			s := c.v.stream
			s.last = streamID(c.args[1])
			s.entries = append(s.entries, entry{s.last, strings.Join(c.args[2:], " ")})
			s.added++
			c.v.there = true
			return c.args[1]
		}},
		{4, writes, "XDEL key entry beyond", func(c *call) any {
			s := c.v.stream
			n := len(s.entries)
			s.entries = slices.DeleteFunc(s.entries, func(e entry) bool { return e.id == streamID(c.args[1]) })
			return n - len(s.entries)
		}},
		{4, writes, "XGROUP CREATE key g 0", func(c *call) any {
			switch {
			case c.v.exists() == 0:
				return noKey
			case c.v.stream.groups["g"] != nil:
				return errorLike("BUSYGROUP ")
			}
			c.v.stream.groups["g"] = &group{pending: map[int64]string{}}
			return okay
		}},
		{1, writes, "XGROUP DESTROY key g", func(c *call) any {
			if c.v.exists() == 0 {
				return noKey
			}
			n := len(c.v.stream.groups)
			clear(c.v.stream.groups)
			return n
		}},
		{8, writes, "XREADGROUP GROUP g c0|c1|c2 COUNT 1..4 STREAMS key >", func(c *call) any {
			g, key := c.v.stream.groups["g"], c.args[6]
			if g == nil {
				return errorLike("NOGROUP ")
			}
			r := row{}
			for _, e := range c.v.stream.entries {
				if e.id > g.last && len(r) < c.int(4) {
					r = append(r, reply(e))
					g.last = e.id
					g.pending[e.id] = c.args[2]
				}
			}
			if len(r) == 0 {
				return nil
			}
			return judged{"of one stream " + r.String(), func(reply any) bool {
				p := pairsOf(reply)
				return len(p) == 1 && text(p[0][0]) == key && matches(r, p[0][1])
			}}
		}},
		{4, writes, "XACK key g pending beyond", func(c *call) any {
			g, id := c.v.stream.groups["g"], streamID(c.args[2])
			if g == nil || g.pending[id] == "" {
				return 0
			}
			delete(g.pending, id)
			return 1
		}},
		{4, reads, "XRANGE key - + COUNT 5", func(c *call) any {
			return rowOf(cut(c.v.stream.entries, 0, 4), reply)
		}},
		{4, reads, "XLEN key", func(c *call) any { return len(c.v.stream.entries) }},
	}
}
