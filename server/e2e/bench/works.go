//go:build linux

package main

import (
	"fmt"
	"strconv"
)

// A work is what the clients do all the time.
type work struct {
	name        string
	pipeline    int    // how often the template is in a request
	command     string // a template
	data        dataset
	large       bool   // is about the large set
	consumes    bool   // ends when three tenths of the large set are gone
	subscribers int    // who get what is published
	halfLoadOf  string // runs at half of the throughput of redis-server in that work
}

func (w work) title() string {
	if w.halfLoadOf != "" || w.subscribers > 0 {
		return w.name
	}
	return fmt.Sprintf("%s, P%d", w.name, w.pipeline)
}

// works are all works, in the order in which they run. The scores of the large
// set go from 0 to the number of its members; a ZRANGE reads from its middle.
func works(l limits) []work {
	hundred := fmt.Sprintf("ZRANGE big %d %d", l.members/2, l.members/2+99)
	const byScore = "ZRANGEBYSCORE big {r} +inf LIMIT 0 10"
	// A page has its newest events: what is too old goes whenever one comes.
	const live = "ZADD page:{key} {now} event:{now}\nZREMRANGEBYSCORE page:{key} -inf {old}\nZCARD page:{key}"
	const message = "PUBLISH news {16}{16}"
	return []work{
		{name: "PING", pipeline: 1, command: "PING"},
		{name: "PING", pipeline: 16, command: "PING"},
		{name: "ZADD", pipeline: 1, command: "ZADD big {r}.5 member:{r}", data: large, large: true},
		{name: "ZADD", pipeline: 16, command: "ZADD big {r}.5 member:{r}", data: large, large: true},
		{name: "ZADD over many sets", pipeline: 16, command: "ZADD set:{key} {r} member:{r/100}", data: many},
		{name: "ZSCORE", pipeline: 16, command: "ZSCORE big member:{r}", data: large, large: true},
		{name: "ZRANK", pipeline: 16, command: "ZRANK big member:{r}", data: large, large: true},
		{name: "ZRANGEBYSCORE LIMIT 0 10", pipeline: 1, command: byScore, data: large, large: true},
		{name: "ZRANGEBYSCORE LIMIT 0 10", pipeline: 16, command: byScore, data: large, large: true},
		{name: "ZRANGE of 100", pipeline: 16, command: hundred, data: large, large: true},
		{name: "ZRANGE of 100 WITHSCORES", pipeline: 16, command: hundred + " WITHSCORES", data: large, large: true},
		{name: "ZREMRANGEBYSCORE", pipeline: 16, command: "ZREMRANGEBYSCORE big {x} {x}.9", data: large, large: true, consumes: true},
		{name: "ZPOPMIN", pipeline: 16, command: "ZPOPMIN big", data: large, large: true, consumes: true},
		{name: "SET", pipeline: 1, command: "SET key:{r/100000} {16}", data: values},
		{name: "SET", pipeline: 16, command: "SET key:{r/100000} {16}", data: values},
		{name: "GET", pipeline: 16, command: "GET key:{r/100000}", data: values},
		{name: "HSET", pipeline: 16, command: "HSET hash field:{r/100000} {16}"},
		{name: "INCR", pipeline: 16, command: "INCR counter:{r/100000}"},
		{name: "LPUSH", pipeline: 16, command: "LPUSH list {16}", data: noList},
		{name: "SADD", pipeline: 16, command: "SADD members member:{r/100000}"},
		{name: "PUBLISH", pipeline: 16, command: message},
		{name: "PUBLISH to 1", pipeline: 16, command: message, subscribers: 1},
		{name: "PUBLISH to 100", pipeline: 16, command: message, subscribers: 100},
		{name: "PUBLISH to 1 000", pipeline: 16, command: message, subscribers: 1000},
		{name: "live events", pipeline: 1, command: live, data: pages},
		{name: "live events", pipeline: 16, command: live, data: pages},
		{name: "ZADD at half load", pipeline: 1, command: "ZADD big {r}.5 member:{r}", data: large, large: true, halfLoadOf: "ZADD, P1"},
		{name: "ZRANGEBYSCORE at half load", pipeline: 1, command: byScore, data: large, large: true, halfLoadOf: "ZRANGEBYSCORE LIMIT 0 10, P1"},
		{name: "live events at half load", pipeline: 1, command: live, data: pages, halfLoadOf: "live events, P1"},
	}
}

// A dataset is what a server must have before a work begins. It looks what is
// there, and adds what is missing.
type dataset func(c *conn, l limits) error

// large is one sorted set. Its members do not come in the order of their scores.
func large(c *conn, l limits) error {
	if n, err := c.integer("ZCARD", "big"); err != nil || n == l.members {
		return err
	}
	return c.fill(0, l.members, func(b *batch, i int64) {
		b.command("ZADD", "big", strconv.FormatInt(i*387421%l.members, 10), padded("member:", i))
	})
}

// many are the sets of a hundred members each.
func many(c *conn, l limits) error {
	if n, err := c.integer("ZCARD", padded("set:", l.sets-1)); err != nil || n == 100 {
		return err
	}
	return c.fill(0, l.sets*100, func(b *batch, i int64) {
		b.command("ZADD", padded("set:", i/100), strconv.FormatInt(i*387421%l.members, 10), padded("member:", i%100))
	})
}

// values are the strings that are read and written.
func values(c *conn, _ limits) error {
	const n = 100000
	if there, err := c.integer("EXISTS", padded("key:", n-1)); err != nil || there == 1 {
		return err
	}
	return c.fill(0, n, func(b *batch, i int64) { b.command("SET", padded("key:", i), "0123456789abcdef") })
}

// pages has as many events as there will always be. A later round finds those of
// an earlier one, which are newer than any that is too old for it, and so it
// begins anew.
func pages(c *conn, l limits) error {
	if err := c.fill(0, l.sets, func(b *batch, i int64) { b.command("DEL", padded("page:", i)) }); err != nil {
		return err
	}
	return c.fill(0, l.alive, func(b *batch, i int64) {
		b.command("ZADD", padded("page:", i*387421%l.sets), strconv.FormatInt(i+1, 10), padded("event:", i+1))
	})
}

// noList is that the list begins empty: it only grows.
func noList(c *conn, _ limits) error { return c.do("DEL", "list") }

// shape is a data set of which the memory is measured. It is made in steps, of a
// command each, and then churned: in every round the steps replace all that
// there is, by something else of the same size, in another order than that in
// which it came.
type shape struct {
	name       string
	steps      int64
	fill       func(b *batch, i int64)
	churnSteps int64 // of a round
	churn      func(b *batch, round, i int64)
}

// shapes are all of them, each 1/part of its full size.
func shapes(part int64) []shape {
	const value = "0123456789abcdef"
	named := func(n int64, what string) string { return grouped(n/part) + what }
	return []shape{
		setsOf(named(1000000, " members in one set"), 1, 1000000/part, 1),
		setsOf(named(300000, " sets of 5 members"), 300000/part, 5, 5),
		setsOf(named(10000, " sets of 100 members"), 10000/part, 100, 10),
		keysOf(named(500000, " strings of 16 bytes"), 500000/part, func(b *batch, i int64) {
			b.command("SET", padded("key:", i), value)
		}, "key:"),
		keysOf(named(100000, " hashes of 5 fields"), 100000/part, func(b *batch, i int64) {
			b.command("HSET", padded("hash:", i), "field:1", "value:1", "field:2", "value:2", "field:3", "value:3",
				"field:4", "value:4", "field:5", "value:5")
		}, "hash:"),
	}
}

// setsOf is sorted sets, whose members are replaced some at a time: the new ones
// come before the old go.
func setsOf(name string, sets, perSet, atATime int64) shape {
	n := sets * perSet
	groups := n / atATime
	score := func(i int64) string { return strconv.FormatInt(i*387421%1000000, 10) }
	return shape{
		name:  name,
		steps: n,
		fill: func(b *batch, i int64) {
			b.command("ZADD", padded("set:", i/perSet), score(i), padded("member:", i))
		},
		churnSteps: groups,
		churn: func(b *batch, round, i int64) {
			first := shuffled(i, groups) * atATime
			add := append(make([]string, 0, 2+2*atATime), "ZADD", padded("set:", first/perSet))
			remove := append(make([]string, 0, 2+atATime), "ZREM", add[1])
			for m := first; m < first+atATime; m++ {
				add = append(add, score(m+7*round), padded("member:", m+(round+1)*n))
				remove = append(remove, padded("member:", m+round*n))
			}
			b.command(add...)
			b.command(remove...)
		},
	}
}

// keysOf is keys, which are replaced by others.
func keysOf(name string, n int64, fill func(b *batch, i int64), kind string) shape {
	return shape{name: name, steps: n, fill: fill, churnSteps: n, churn: func(b *batch, round, i int64) {
		i = shuffled(i, n)
		fill(b, i+(round+1)*n)
		b.command("DEL", padded(kind, i+round*n))
	}}
}

// shuffled goes through the numbers below n in an order without pattern; n may
// not be divided by the prime.
func shuffled(i, n int64) int64 { return i * 387421 % n }

// padded is the name of the ith of its kind, as templates write it.
func padded(kind string, i int64) string {
	name := append(make([]byte, 0, 32), kind...)
	name = append(name, "000000000000"...)
	putDigits(name[len(kind):], i)
	return string(name)
}
