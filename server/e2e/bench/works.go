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
	consumes    bool   // ends when nine tenths of the large set are gone
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
		{name: "ZADD", pipeline: 1, command: "ZADD big {r}.5 member:{r}", data: large},
		{name: "ZADD", pipeline: 16, command: "ZADD big {r}.5 member:{r}", data: large},
		{name: "ZADD over many sets", pipeline: 16, command: "ZADD set:{key} {r} member:{r/100}", data: many},
		{name: "ZSCORE", pipeline: 16, command: "ZSCORE big member:{r}", data: large},
		{name: "ZRANK", pipeline: 16, command: "ZRANK big member:{r}", data: large},
		{name: "ZRANGEBYSCORE LIMIT 0 10", pipeline: 1, command: byScore, data: large},
		{name: "ZRANGEBYSCORE LIMIT 0 10", pipeline: 16, command: byScore, data: large},
		{name: "ZRANGE of 100", pipeline: 16, command: hundred, data: large},
		{name: "ZRANGE of 100 WITHSCORES", pipeline: 16, command: hundred + " WITHSCORES", data: large},
		{name: "ZREMRANGEBYSCORE", pipeline: 16, command: "ZREMRANGEBYSCORE big {x} {x}.9", data: large, consumes: true},
		{name: "ZPOPMIN", pipeline: 16, command: "ZPOPMIN big", data: large, consumes: true},
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
		{name: "ZADD at half load", pipeline: 1, command: "ZADD big {r}.5 member:{r}", data: large, halfLoadOf: "ZADD, P1"},
		{name: "ZRANGEBYSCORE at half load", pipeline: 1, command: byScore, data: large, halfLoadOf: "ZRANGEBYSCORE LIMIT 0 10, P1"},
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
	return c.fill(l.members, func(b *batch, i int64) {
		b.command("ZADD", "big", strconv.FormatInt(i*387421%l.members, 10), padded("member:", i))
	})
}

// many are the sets of a hundred members each.
func many(c *conn, l limits) error {
	if n, err := c.integer("ZCARD", padded("set:", l.sets-1)); err != nil || n == 100 {
		return err
	}
	return c.fill(l.sets*100, func(b *batch, i int64) {
		b.command("ZADD", padded("set:", i/100), strconv.FormatInt(i*387421%l.members, 10), padded("member:", i%100))
	})
}

// values are the strings that are read and written.
func values(c *conn, _ limits) error {
	const n = 100000
	if there, err := c.integer("EXISTS", padded("key:", n-1)); err != nil || there == 1 {
		return err
	}
	return c.fill(n, func(b *batch, i int64) { b.command("SET", padded("key:", i), "0123456789abcdef") })
}

// pages has as many events as there will always be. A later round finds those of
// an earlier one, which are newer than any that is too old for it, and so it
// begins anew.
func pages(c *conn, l limits) error {
	if err := c.fill(l.sets, func(b *batch, i int64) { b.command("DEL", padded("page:", i)) }); err != nil {
		return err
	}
	return c.fill(l.alive, func(b *batch, i int64) {
		b.command("ZADD", padded("page:", i*387421%l.sets), strconv.FormatInt(i+1, 10), padded("event:", i+1))
	})
}

// noList is that the list begins empty: it only grows.
func noList(c *conn, _ limits) error { return c.do("DEL", "list") }

// shape is a data set of which the memory is measured.
type shape struct {
	name string
	n    int64 // commands
	fill func(b *batch, i int64)
}

// shapes are all of them, each 1/part of its full size.
func shapes(part int64) []shape {
	members := 1000000 / part
	sets := func(perSet int64) func(b *batch, i int64) {
		return func(b *batch, i int64) {
			b.command("ZADD", padded("set:", i/perSet), strconv.FormatInt(i*387421%members, 10), padded("member:", i))
		}
	}
	named := func(n int64, what string) string { return grouped(n/part) + what }
	return []shape{
		{named(1000000, " members in one set"), members, sets(members)},
		{named(300000, " sets of 5 members"), 5 * 300000 / part, sets(5)},
		{named(10000, " sets of 100 members"), 100 * 10000 / part, sets(100)},
		{named(500000, " strings of 16 bytes"), 500000 / part, func(b *batch, i int64) {
			b.command("SET", padded("key:", i), "0123456789abcdef")
		}},
		{named(100000, " hashes of 5 fields"), 100000 / part, func(b *batch, i int64) {
			b.command("HSET", padded("hash:", i), "field:1", "value:1", "field:2", "value:2", "field:3", "value:3",
				"field:4", "value:4", "field:5", "value:5")
		}},
	}
}

// padded is the name of the ith of its kind, as templates write it.
func padded(kind string, i int64) string { return fmt.Sprintf("%s%0*d", kind, digits, i) }
