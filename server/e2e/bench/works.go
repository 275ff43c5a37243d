//go:build linux

package main

import (
	"fmt"
	"strconv"
	"strings"
)

// A work is a workload: the commands that clients repeat.
type work struct {
	name        string
	pipeline    int    // copies of the template in a request
	command     string // a template
	data        dataset
	large       bool   // uses the large set
	consumes    bool   // ends when three tenths of the large set are consumed
	subscribers int    // number of subscribers to the published messages
	halfLoadOf  string // runs at half of the reference's throughput for that workload
}

func (w work) title() string {
	if w.halfLoadOf != "" || w.subscribers > 0 {
		return w.name
	}
	return fmt.Sprintf("%s, P%d", w.name, w.pipeline)
}

// script reports whether the workload runs scripts.
func (w work) script() bool { return strings.HasPrefix(w.command, "EVAL") }

// works returns all workloads in the order of execution. The scores of the large
// set are from 0 to the number of its members; a ZRANGE reads from the middle.
func works(l limits) []work {
	hundred := fmt.Sprintf("ZRANGE big %d %d", l.members/2, l.members/2+99)
	const byScore = "ZRANGEBYSCORE big {r} +inf LIMIT 0 10"
	// A page keeps its newest events: each addition removes old ones.
	const live = "ZADD page:{key} {now} event:{now}\nZREMRANGEBYSCORE page:{key} -inf {old}\nZCARD page:{key}"
	const message = "PUBLISH news {16}{16}"
	list := []work{
		{name: "PING", pipeline: 1, command: "PING"},
		{name: "PING", pipeline: 16, command: "PING"},
		zadd(1),
		zadd(16),
		{name: "ZADD over many sets", pipeline: 16, command: "ZADD set:{key} {r} member:{r/100}", data: smallSets},
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
	}
	list = append(list, scriptWorks()...)
	return append(list, []work{
		{name: "PUBLISH", pipeline: 16, command: message},
		{name: "PUBLISH to 1", pipeline: 16, command: message, subscribers: 1},
		{name: "PUBLISH to 100", pipeline: 16, command: message, subscribers: 100},
		{name: "PUBLISH to 1 000", pipeline: 16, command: message, subscribers: 1000},
		{name: "live events", pipeline: 1, command: live, data: pages},
		{name: "live events", pipeline: 16, command: live, data: pages},
		{name: "ZADD at half load", pipeline: 1, command: "ZADD big {r}.5 member:{r}", data: large, large: true, halfLoadOf: "ZADD, P1"},
		{name: "ZRANGEBYSCORE at half load", pipeline: 1, command: byScore, data: large, large: true, halfLoadOf: "ZRANGEBYSCORE LIMIT 0 10, P1"},
		{name: "live events at half load", pipeline: 1, command: live, data: pages, halfLoadOf: "live events, P1"},
	}...)
}

// zadd gives random members of the large set random scores.
func zadd(pipeline int) work {
	return work{name: "ZADD", pipeline: pipeline, command: "ZADD big {r}.5 member:{r}", data: large, large: true}
}

// A dataset prepares the data for a workload. It adds only data that does not
// exist.
type dataset func(c *conn, l limits) error

// large creates one sorted set. Members are not added in score order.
func large(c *conn, l limits) error {
	if n, err := c.integer("ZCARD", "big"); err != nil || n == l.members {
		return err
	}
	return c.fill(0, l.members, func(b *batch, i int64) {
		b.command("ZADD", "big", strconv.FormatInt(i*387421%l.members, 10), padded("member:", i))
	})
}

// smallSets creates the sets of a hundred members each.
func smallSets(c *conn, l limits) error {
	if n, err := c.integer("ZCARD", padded("set:", l.sets-1)); err != nil || n == 100 {
		return err
	}
	return c.fill(0, l.sets*100, func(b *batch, i int64) {
		b.command("ZADD", padded("set:", i/100), strconv.FormatInt(i*387421%l.members, 10), padded("member:", i%100))
	})
}

// values creates the strings for reads and writes.
func values(c *conn, _ limits) error {
	const n = 100000
	if there, err := c.integer("EXISTS", padded("key:", n-1)); err != nil || there == 1 {
		return err
	}
	return c.fill(0, n, func(b *batch, i int64) { b.command("SET", padded("key:", i), "0123456789abcdef") })
}

// pages creates the steady-state number of events. The events of an earlier round
// are newer than the limit of a later one, so the data set is created again for
// each round.
func pages(c *conn, l limits) error {
	if err := c.fill(0, l.sets, func(b *batch, i int64) { b.command("DEL", padded("page:", i)) }); err != nil {
		return err
	}
	return c.fill(0, l.alive, func(b *batch, i int64) {
		b.command("ZADD", padded("page:", i*387421%l.sets), strconv.FormatInt(i+1, 10), padded("event:", i+1))
	})
}

// noList deletes the list, which then grows.
func noList(c *conn, _ limits) error { return c.do("DEL", "list") }

// shape is a data set for the measurement of memory. It is created in steps of one
// command, and then churned: in each round the steps replace all data by data of
// the same size, in an order different from that of creation.
type shape struct {
	name       string
	steps      int64
	fill       func(b *batch, i int64)
	churnSteps int64 // steps of a round
	churn      func(b *batch, round, i int64)
}

// shapes returns all data sets, each with 1/part of its full size.
func shapes(part int64) []shape {
	named := func(n int64, what string) string { return grouped(n/part) + what }
	return []shape{
		setsOf(named(1000000, " members in one set"), 1, 1000000/part, 1),
		setsOf(named(300000, " sets of 5 members"), 300000/part, 5, 5),
		setsOf(named(10000, " sets of 100 members"), 10000/part, 100, 10),
		stringsOf(500000 / part),
		keysOf(named(100000, " hashes of 5 fields"), 100000/part, func(b *batch, i int64) {
			b.command("HSET", padded("hash:", i), "field:1", "value:1", "field:2", "value:2", "field:3", "value:3",
				"field:4", "value:4", "field:5", "value:5")
		}, "hash:"),
		scriptsOf(1000 / part),
	}
}

// setsOf returns sorted sets whose members are replaced in groups: new members are
// added before old ones are removed.
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

// keysOf returns keys that are replaced by others.
func keysOf(name string, n int64, fill func(b *batch, i int64), kind string) shape {
	return shape{name: name, steps: n, fill: fill, churnSteps: n, churn: func(b *batch, round, i int64) {
		i = shuffled(i, n)
		fill(b, i+(round+1)*n)
		b.command("DEL", padded(kind, i+round*n))
	}}
}

// shuffled permutes the numbers below n without a pattern. n must not be a multiple
// of the prime.
func shuffled(i, n int64) int64 { return i * 387421 % n }

// padded returns name i of a kind in the format of templates.
func padded(kind string, i int64) string {
	name := append(make([]byte, 0, 32), kind...)
	name = append(name, "000000000000"...)
	putDigits(name[len(kind):], i)
	return string(name)
}
