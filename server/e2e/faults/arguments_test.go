//go:build linux

package faults

import (
	"bytes"
	"cmp"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/servertest/wait"
)

// An argument is one of those that COMMAND DOCS lists.
type argument struct {
	name, kind, token                 string
	optional, multiple, repeatedToken bool
	parts                             []*argument
}

// fieldsOf returns the fields of a map, which RESP2 has as an array.
func fieldsOf(v any) map[string]any {
	list, _ := v.([]any)
	m := map[string]any{}
	for i := 0; i+1 < len(list); i += 2 {
		m[list[i].(string)] = list[i+1]
	}
	return m
}

func argumentsOf(v any) (args []*argument) {
	list, _ := v.([]any)
	for _, v := range list {
		m := fieldsOf(v)
		a := &argument{parts: argumentsOf(m["arguments"])}
		a.name, _ = m["name"].(string)
		a.kind, _ = m["type"].(string)
		a.token, _ = m["token"].(string)
		flags, _ := m["flags"].([]any)
		a.optional = slices.Contains(flags, any("optional"))
		a.multiple = slices.Contains(flags, any("multiple"))
		a.repeatedToken = slices.Contains(flags, any("multiple_token"))
		args = append(args, a)
	}
	return args
}

// contains reports whether b is a or a part of it.
func (a *argument) contains(b *argument) bool {
	return a == b || slices.ContainsFunc(a.parts, func(p *argument) bool { return p.contains(b) })
}

// all calls f for an argument and its parts.
func (a *argument) all(f func(*argument)) {
	f(a)
	for _, p := range a.parts {
		p.all(f)
	}
}

// A shape is a way of giving a command very many arguments.
type shape struct {
	name  string
	group string // of the command, as COMMAND DOCS has it
	words []string
	once  bool // it need not be tried with a large value
}

// drawing writes the words of a shape: n of the argument target, one of each other one
// that the command needs.
type drawing struct {
	target *argument
	n      int
	equal  bool // all of them are the same
	words  []string
}

func (d *drawing) sequence(args []*argument) {
	count, counted := -1, 0
	for _, a := range args {
		has := a.contains(d.target)
		if a.optional && !has {
			continue
		}
		if strings.HasPrefix(a.name, "num") && a.kind == "integer" && a != d.target {
			if a.token != "" {
				d.words = append(d.words, a.token)
			}
			count = len(d.words)
			d.words = append(d.words, "0")
			continue
		}
		n := 1
		if a == d.target || a.multiple && slices.Contains(args, d.target) {
			n = d.n
		}
		if a.multiple && count >= 0 && counted == 0 {
			counted = n
		}
		for i := range n {
			if a.token != "" && (i == 0 || a.repeatedToken || !a.multiple) {
				d.words = append(d.words, a.token)
			}
			d.value(a, i)
		}
	}
	if count >= 0 {
		d.words[count] = strconv.Itoa(counted)
	}
}

func (d *drawing) value(a *argument, i int) {
	if d.equal {
		i = 0
	}
	switch a.kind {
	case "pure-token":
		return
	case "block":
		d.sequence(a.parts)
		return
	case "oneof":
		chosen := a.parts[0]
		for _, p := range a.parts {
			if p.contains(d.target) {
				chosen = p
			}
		}
		d.sequence([]*argument{chosen})
		return
	}
	d.words = append(d.words, wordFor(a, i))
}

// scriptHash is the name of the script "return 1".
const scriptHash = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"

// wordFor returns a value for an argument.
func wordFor(a *argument, i int) string {
	switch a.name {
	case "timeout", "seconds", "milliseconds", "min-idle-time":
		if a.kind == "double" {
			return "0.2"
		}
		return "200"
	case "encoding":
		return "u8"
	case "username":
		return "default"
	case "cursor":
		return "0"
	case "host":
		return "127.0.0.1"
	case "port", "db", "destination-db":
		return "1"
	case "id", "ID", "start":
		return fmt.Sprintf("%d-1", i+1)
	case "min", "max":
		return strconv.Itoa(i)
	case "sha1":
		return scriptHash
	case "function":
		return "f"
	case "group":
		return "g"
	case "script":
		return "return 1"
	case "command":
		return "get"
	}
	switch a.kind {
	case "key":
		return "k" + strconv.Itoa(i)
	case "integer", "double":
		return strconv.Itoa(1 + i%80)
	case "unix-time":
		return "4000000000"
	case "pattern":
		return "k" + strconv.Itoa(i) + "*"
	}
	return "m" + strconv.Itoa(i)
}

// shapesOf derives the shapes of all commands from what COMMAND DOCS says of them:
// each argument that may be repeated, and each option, n times.
func shapesOf(docs any, n int) (shapes []shape) {
	for name, v := range fieldsOf(docs) {
		doc := fieldsOf(v)
		group, _ := doc["group"].(string)
		if subcommands, ok := doc["subcommands"]; ok {
			shapes = append(shapes, shapesOf(subcommands, n)...)
		}
		args := argumentsOf(doc["arguments"])
		var targets []*argument
		for _, a := range args {
			a.all(func(a *argument) {
				if a.multiple || a.optional {
					targets = append(targets, a)
				}
			})
		}
		for _, target := range targets {
			for _, equal := range []bool{false, true} {
				if equal && !target.multiple {
					continue
				}
				d := drawing{target: target, n: n, equal: equal, words: strings.Split(name, "|")}
				d.sequence(args)
				title := fmt.Sprintf("%s with many %s", name, target.name)
				if equal {
					title += ", all the same"
				}
				shapes = append(shapes, shape{title, group, d.words, equal || !target.multiple})
			}
		}
		words := strings.Split(name, "|")
		for i := range n {
			words = append(words, "k"+strconv.Itoa(i))
		}
		shapes = append(shapes, shape{name + " with many words", group, words, true})
	}
	slices.SortFunc(shapes, func(a, b shape) int { return cmp.Compare(a.name, b.name) })
	return shapes
}

// repeat returns words, with n words that f makes of a number behind them.
func repeat(n int, f func(i int) []string, words ...string) []string {
	for i := range n {
		if f != nil {
			words = append(words, f(i)...)
		}
	}
	return words
}

// byHand are shapes that COMMAND DOCS does not tell of.
func byHand(n int) (shapes []shape) {
	add := func(name string, f func(i int) []string, words ...string) {
		shapes = append(shapes, shape{name, "", repeat(n, f, words...), true})
	}
	rule := func(format string) func(int) []string {
		return func(i int) []string { return []string{strings.ReplaceAll(format, "#", strconv.Itoa(i))} }
	}
	for _, r := range []string{"~k#", "%R~k#", "&c#", ">password#", "<password#", "+get|s#", "-get|s#", "+select|#", "+config|get",
		"(~k#)", "(+get|s# ~k#)", "allkeys", "resetkeys", "+@all", "-@all", "on", "nopass", "resetpass", "+get", "-get"} {
		add("ACL SETUSER "+r, rule(r), "ACL", "SETUSER", "u")
	}
	add("ACL SETUSER, a selector with many keys", nil, "ACL", "SETUSER", "u")
	shapes[len(shapes)-1].words = append([]string{"ACL", "SETUSER", "u"}, "("+strings.Join(repeat(n, rule("~k#")), " ")+")")
	add("ACL SETUSER +@read -@read", func(i int) []string { return []string{"+@read", "-@read"} }, "ACL", "SETUSER", "u")
	add("ACL SETUSER +get -get", func(i int) []string { return []string{"+get", "-get"} }, "ACL", "SETUSER", "u")
	add("CLIENT KILL ID", func(i int) []string { return []string{"ID", strconv.Itoa(1e6 + i)} }, "CLIENT", "KILL")
	add("CLIENT LIST ID", func(i int) []string { return []string{strconv.Itoa(1 + i)} }, "CLIENT", "LIST", "ID")
	add("CLIENT TRACKING PREFIX", func(i int) []string { return []string{"PREFIX", fmt.Sprintf("p%06d", i)} }, "CLIENT", "TRACKING", "ON", "BCAST")
	add("CLIENT TRACKING PREFIX, each the beginning of the next", func(i int) []string { return []string{"PREFIX", "p" + strings.Repeat("x", i%1000)} }, "CLIENT", "TRACKING", "ON", "BCAST")
	add("CONFIG GET", func(i int) []string { return []string{"maxmemory"} }, "CONFIG", "GET")
	add("CONFIG GET *", func(i int) []string { return []string{"*a*"} }, "CONFIG", "GET")
	add("CONFIG SET", func(i int) []string { return []string{"maxmemory", "0"} }, "CONFIG", "SET")
	add("COMMAND INFO", func(i int) []string { return []string{"get"} }, "COMMAND", "INFO")
	add("COMMAND GETKEYS", func(i int) []string { return []string{"k" + strconv.Itoa(i), "v"} }, "COMMAND", "GETKEYS", "MSET")
	add("COMMAND GETKEYS of SORT", func(i int) []string { return []string{"STORE", "k" + strconv.Itoa(i)} }, "COMMAND", "GETKEYS", "SORT", "k")
	add("HELLO", func(i int) []string { return []string{"SETNAME", "n" + strconv.Itoa(i)} }, "HELLO", "2")
	add("SORT GET", func(i int) []string { return []string{"GET", "w_*" + strconv.Itoa(i)} }, "SORT", "k0")
	add("SORT BY", func(i int) []string { return []string{"BY", "w_*" + strconv.Itoa(i)} }, "SORT", "k0")
	add("BITFIELD", func(i int) []string { return []string{"SET", "u8", "#" + strconv.Itoa(i), "1"} }, "BITFIELD", "k")
	add("EVAL that reads all its keys", func(i int) []string { return []string{"k" + strconv.Itoa(i)} }, "EVAL",
		"for i = 1, #KEYS do redis.call('GET', KEYS[i]) end return #KEYS", strconv.Itoa(n))
	add("MIGRATE KEYS", rule("k#"), "MIGRATE", "127.0.0.1", "1", "", "0", "200", "KEYS")
	add("XREADGROUP", nil, "XREADGROUP", "GROUP", "g", "c", "BLOCK", "200", "STREAMS")
	last := &shapes[len(shapes)-1]
	last.words = append(last.words, slices.Concat(repeat(n/2, rule("k0")), repeat(n/2, rule(">")))...)
	last.group, last.once = "stream", false
	add("XREAD BLOCK", nil, "XREAD", "BLOCK", "200", "STREAMS")
	last = &shapes[len(shapes)-1]
	last.words = append(last.words, slices.Concat(repeat(n/2, rule("k#")), repeat(n/2, rule("$")))...)
	add("BZMPOP", rule("k#"), "BZMPOP", "0.2", strconv.Itoa(n))
	last = &shapes[len(shapes)-1]
	last.words = append(last.words, "MIN")
	add("BLMPOP", rule("k#"), "BLMPOP", "0.2", strconv.Itoa(n))
	last = &shapes[len(shapes)-1]
	last.words = append(last.words, "LEFT")
	return shapes
}

// dataGroups are the groups of commands that prepare has keys for.
var dataGroups = []string{"sorted-set", "geo", "set", "hash", "list", "stream", "string", "bitmap", "hyperloglog"}

// prepare makes a key of the type that commands of a group are for, with n elements
// whose names are those of the arguments.
func prepare(c *client, group string, n int) {
	switch group {
	case "sorted-set", "geo":
		c.do(repeat(n, func(i int) []string { return []string{strconv.Itoa(i), "m" + strconv.Itoa(i)} }, "ZADD", "k0")...)
	case "set":
		c.do(repeat(n, func(i int) []string { return []string{"m" + strconv.Itoa(i)} }, "SADD", "k0")...)
	case "hash":
		c.do(repeat(n, func(i int) []string { return []string{"m" + strconv.Itoa(i), "v"} }, "HSET", "k0")...)
	case "list":
		c.do(repeat(n, func(i int) []string { return []string{"m" + strconv.Itoa(i)} }, "RPUSH", "k0")...)
	case "stream":
		for i := range n {
			c.write(command("XADD", "k0", fmt.Sprintf("%d-1", i+1), "f", "v"))
		}
		for range n {
			c.receive()
		}
		c.do("XGROUP", "CREATE", "k0", "g", "0")
		c.do("XREADGROUP", "GROUP", "g", "c", "STREAMS", "k0", ">")
	case "hyperloglog":
		c.do(repeat(n, func(i int) []string { return []string{"m" + strconv.Itoa(i)} }, "PFADD", "k0")...)
	case "string", "bitmap":
		c.do(repeat(n, func(i int) []string { return []string{"k" + strconv.Itoa(i), "1"} }, "MSET")...)
	}
}

// watchfulness measures how long a client that sends PING all the time waits at most.
type watchfulness struct {
	worst atomic.Int64
	count atomic.Int64
	quit  chan struct{}
}

func (p *process) watchPing() *watchfulness {
	w := &watchfulness{quit: make(chan struct{})}
	c := p.dial()
	go func() {
		defer func() { c.close() }()
		for {
			select {
			case <-w.quit:
				return
			default:
			}
			begin := time.Now()
			c.Write([]byte("PING\r\n"))
			if _, err := c.tryReceive(5 * time.Minute); err != nil { // CLIENT KILL
				c.close()
				nc, err := net.Dial("tcp", p.addr)
				if err != nil {
					return
				}
				c = p.client(nc)
				continue
			}
			took := int64(time.Since(begin))
			for {
				was := w.worst.Load()
				if took <= was || w.worst.CompareAndSwap(was, took) {
					break
				}
			}
			w.count.Add(1)
		}
	}()
	return w
}

// during returns the longest wait while f runs.
func (w *watchfulness) during(f func()) time.Duration {
	waitForTwoReplies := func() {
		n := w.count.Load() + 2
		wait.Holds(func() bool { return w.count.Load() >= n })
	}
	waitForTwoReplies()
	w.worst.Store(0)
	f()
	waitForTwoReplies()
	return time.Duration(w.worst.Load())
}

// TestManyArguments measures that a command takes time in proportion to its arguments,
// whichever it is: other clients wait for at most 50 ms for each 10 000 of them. The
// release of what the command leaves behind (waiters, watched keys, subscriptions) when
// its client disconnects counts, too. The commands are those of COMMAND DOCS.
//
// ARGUMENTS=n sets how many arguments there are, ARGUMENTS_OF=text restricts the test to
// the shapes whose name contains it, and ARGUMENTS_LOG=1 logs all figures.
func TestManyArguments(t *testing.T) {
	n := 20_000
	if s := os.Getenv("ARGUMENTS"); s != "" {
		n, _ = strconv.Atoi(s)
	}
	only := os.Getenv("ARGUMENTS_OF")
	servers := []kind{zsetdEpoll}
	if os.Getenv("ARGUMENTS") != "" {
		servers = append(servers, redisServer)
	}
	ours := zsetdEpoll.start(t)
	c := ours.dial()
	docs := c.do("COMMAND", "DOCS")
	c.close()
	ours.stop()
	shapes := append(shapesOf(docs, n), byHand(n)...)
	limit := time.Duration(n) * 50 * time.Millisecond / 10_000
	run(t, servers, func(t *testing.T, k kind) {
		p := k.start(t)
		w := p.watchPing()
		defer close(w.quit)
		type result struct {
			name string
			wait time.Duration
		}
		var results []result
		for _, s := range shapes {
			switch word := strings.ToLower(s.words[0]); {
			case word == "shutdown" || word == "debug" || word == "replicaof" || word == "slaveof" || word == "psync" || word == "sync":
				continue
			case only != "" && !strings.Contains(s.name, only):
				continue
			}
			line := command(s.words...)
			try := func(full bool) (wait time.Duration, reply any) {
				owner := p.dial()
				owner.do("FLUSHALL")
				owner.do("ACL", "DELUSER", "u")
				owner.do("SCRIPT", "LOAD", "return 1")
				owner.do("FUNCTION", "LOAD", "REPLACE", "#!lua name=l\nredis.register_function{function_name='f', callback=function() return 1 end, flags={'no-writes'}}")
				if full {
					prepare(owner, s.group, n)
				}
				wait = w.during(func() {
					c := p.dial()
					sent := make(chan struct{})
					go func() { c.Write(line); close(sent) }()
					reply, _ = c.tryReceive(2 * time.Minute)
					c.close()
					<-sent
				})
				owner.close()
				return wait, reply
			}
			for _, full := range []bool{false, true} {
				if full && (s.once || !slices.Contains(dataGroups, s.group)) {
					continue
				}
				name := s.name
				if full {
					name += ", and there is one of as many elements"
				}
				var best time.Duration
				var reply any
				late := time.Duration(0)
				for i := range 3 {
					wait, r := try(full)
					reply = r
					if i == 0 || wait < best {
						best = wait
					}
					if best <= limit || !k.ours() {
						break
					}
					late = lateness(t)
				}
				results = append(results, result{name, best})
				text := fmt.Sprint(reply)
				if os.Getenv("ARGUMENTS_LOG") != "" {
					t.Logf("%s: %v: %.80s", name, best, text)
				}
				if k.ours() && best > limit+late {
					t.Errorf("%s: others wait %v, more than %v: %.100s", name, best, limit+late, text)
				}
			}
		}
		slices.SortFunc(results, func(a, b result) int { return cmp.Compare(b.wait, a.wait) })
		var b bytes.Buffer
		for _, r := range results[:min(len(results), 15)] {
			fmt.Fprintf(&b, "\n\t%v: %s", r.wait.Round(100*time.Microsecond), r.name)
		}
		t.Logf("%s: %d shapes with %d arguments; others wait at most:%s", p.name, len(results), n, b.String())
		p.alive()
	})
}
