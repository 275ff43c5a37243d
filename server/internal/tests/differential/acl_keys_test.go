package differential

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/servertest/rerun"

	"github.com/zsetd/zsetd/server/servertest/judge"
)

// oddLines are command lines whose keys are hard to find: repeated options, options in
// the position of another argument, key names that read as options.
var oddLines = []string{
	"GEORADIUS g0 10 10 900 km STORE z0 STORE z1", "GEORADIUS g0 10 10 900 km STORE z0 STOREDIST z1",
	"GEORADIUS g0 10 10 900 km STOREDIST z0 STORE z1 STOREDIST z2", "GEORADIUS g0 10 10 900 km ASC STORE STOREDIST STOREDIST z1",
	"GEORADIUS g0 10 10 900 km COUNT 1 STORE STORE STORE z1", "GEORADIUS nosuchkey 10 10 900 km STORE z0 STORE z1",
	"GEORADIUSBYMEMBER g0 a 900 km STORE z0 STORE z1", "GEORADIUSBYMEMBER g0 a 900 km STORE STOREDIST STOREDIST z1 STORE z2",
	"GEOSEARCHSTORE z0 g0 FROMMEMBER a BYRADIUS 900 km STOREDIST STOREDIST", "GEOSEARCHSTORE z0 g0 FROMMEMBER STOREDIST BYRADIUS 9 km",
	"SORT l2 STORE l0 STORE l1", "SORT l2 BY STORE STORE l1", "SORT l2 GET STORE GET l0 STORE l1", "SORT l2 LIMIT 0 2 STORE l0 DESC STORE l1",
	"SORT l2 STORE STORE STORE l1", "SORT l2 LIMIT STORE l0 STORE l1", "SORT_RO l2 BY STORE GET l0",
	"MIGRATE 127.0.0.1 1 z0 0 10 COPY KEYS z1", "MIGRATE 127.0.0.1 1 KEYS 0 10 COPY", "MIGRATE 127.0.0.1 1  0 10 KEYS z0 KEYS z1",
	"MIGRATE 127.0.0.1 1  0 10 AUTH KEYS KEYS z0 z1", "MIGRATE 127.0.0.1 1  0 10 AUTH2 a KEYS COPY KEYS z0", "MIGRATE 127.0.0.1 1 z0 0 10 AUTH KEYS",
	"XREAD STREAMS x0 x1 0 0", "XREAD COUNT 1 STREAMS STREAMS x0 0 0", "XREAD STREAMS STREAMS x0 0 0", "XREAD COUNT STREAMS STREAMS x0 0",
	"XREADGROUP GROUP g STREAMS STREAMS x0 0", "XREADGROUP GROUP STREAMS c STREAMS x0 0", "XREADGROUP GROUP g c STREAMS STREAMS x0 > >",
	"XREADGROUP GROUP STREAMS STREAMS STREAMS x0 >", "XREADGROUP COUNT 1 GROUP g c NOACK STREAMS x0 >",
	"XREADGROUP STREAMS x0 x1 0 0 GROUP g STREAMS x0 0",
	"ZUNIONSTORE z0 2 z1 z2 WEIGHTS 1 2 WEIGHTS 2 3", "ZUNIONSTORE z0 1 z1 z2", "ZUNIONSTORE z0 3 z1 z2 AGGREGATE", "ZINTERSTORE z0 2 z0 z0",
	"ZDIFFSTORE z0 2 z1 z2", "ZRANGESTORE z0 z1 0 -1 REV REV", "ZUNION 2 z0 z1 WITHSCORES", "ZINTERCARD 2 z0 z1 LIMIT 1 LIMIT 2",
	"ZMPOP 2 z0 z1 MIN COUNT 1", "BZMPOP 0 2 z0 z1 MIN COUNT 1", "LMPOP 2 l0 l1 LEFT COUNT 1", "BLMPOP 0 2 l0 l1 LEFT COUNT 2",
	"BZCLAIM 0 2 z0 z1 0 9 5 COUNT 1 LEASE", "BZPOPBYSCORE 0 2 z0 z1 0 9 MAX", "ZADDEX z0 NX CH MEMBERS 1 3 a", "ZADDEX z0 EX 9 EX 8 MEMBERS 1 3 z1",
	"BITOP AND v0 v1 v2", "BITOP NOT v0 v1 v2", "BITOP DIFF v0 v1 v2", "COPY z0 z1 REPLACE REPLACE", "COPY z0 z1 DB 0 DB 1 REPLACE",
	"BITFIELD v0 GET u8 0 SET u8 0 1 OVERFLOW WRAP OVERFLOW SAT", "SET v0 x GET GET", "SET v0 v1 EX 10 EX 10", "MSETEX 2 v0 1 v1 2 EX 9 EX 9",
	"MSET v0 v1 v2 v3", "LCS v0 v1 LEN LEN", "OBJECT ENCODING v0", "PFMERGE p0 p1 p0", "RENAME z0 z1", "SMOVE s0 s1 a", "LMOVE l0 l1 LEFT RIGHT",
	"RPOPLPUSH l0 l1", "SINTERCARD 2 s0 s1 LIMIT 1", "SUNIONSTORE s0 s1 s2", "HSETEX h0 FNX FNX FIELDS 1 a b",
}

// moreKeys fills the names that everyType leaves free.
var moreKeys = []string{
	"RPUSH l3 a", "SADD s3 a", "HSET h3 a 1", "ZADD z3 7 a", "GEOADD g2 10 10 a", "GEOADD g3 10 10 a", "PFADD p2 x", "PFADD p3 x",
	"XADD x2 5 a b", "XADD x3 5 a b", "SET STORE x", "SET STOREDIST x", "SET GET x", "SET COUNT x", "SET BY x", "XADD STREAMS 5 a b", "ZADD KEYS 1 a",
}

// TestKeysCheckedAreKeysTouched runs lines with repeated and misplaced options. It checks
// that a command accesses only keys that the ACL checks, and modifies only keys that the
// ACL checks for writing. An access removes a key whose deadline has passed, so each key
// of a line gets such a deadline once.
func TestKeysCheckedAreKeysTouched(t *testing.T) {
	rerun.Skip(t)
	srv, err := newSubject(fuzzOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	d := srv.Direct()
	defer d.Close()
	specs := map[string]*protocol.Command{}
	var commands []*protocol.Command
	for _, c := range allCommands() {
		specs[c.Name] = c
		if c.HasKeys() && c.Group != "scripting" && c.Name != "migrate" && c.Name != "watch" {
			commands = append(commands, c)
		}
	}
	say := func(line string) {
		if r := d.Do(protocolArgs(line)); len(r) == 0 || r[0] == '-' {
			t.Fatalf("%s: %q", line, r)
		}
	}
	pool := map[string]bool{}
	refill := func() {
		d.Renew()
		for _, line := range slices.Concat(everyType, moreKeys) {
			say(line)
			if name, rest, _ := strings.Cut(line, " "); name != "FLUSHALL" && name != "SELECT" && name != "XGROUP" && name != "XREADGROUP" {
				key, _, _ := strings.Cut(rest, " ")
				pool[key] = true
			}
		}
	}
	refill()
	lines, looked := 0, 0
	try := func(c *protocol.Command, argv [][]byte) {
		lines++
		checked, writable := map[string]bool{}, map[string]bool{}
		for _, k := range c.AppendKeys(nil, argv) {
			key := string(argv[k.Index])
			checked[key] = true
			writable[key] = writable[key] || k.Flags.Has(protocol.KeyInsert|protocol.KeyUpdate|protocol.KeyDelete)
		}
		if c.Name != "xreadgroup" { // Redis checks its keys for reading only
			refill()
			before := map[string]string{}
			for key := range checked {
				if !writable[key] {
					before[key] = string(d.Do([][]byte{[]byte("DUMP"), []byte(key)}))
				}
			}
			d.Do(argv)
			d.Renew()
			for key, was := range before {
				if string(d.Do([][]byte{[]byte("DUMP"), []byte(key)})) != was {
					t.Errorf("%q changes %q, which is only checked for reading", argv, key)
				}
			}
		}
		tried := map[string]bool{}
		for _, arg := range argv[1:] {
			key := string(arg)
			if !pool[key] || tried[key] || checked[key] {
				continue
			}
			tried[key] = true
			refill()
			srv.PassDeadline(key)
			looked++
			if d.Do(argv); !srv.Untouched(key) {
				t.Errorf("%q accesses %q, which is not among the keys that are checked", argv, key)
			}
		}
	}
	for _, line := range oddLines {
		argv := protocolArgs(line)
		name := strings.ToLower(string(argv[0]))
		if c := specs[name]; c != nil {
			try(c, argv)
		} else if c := specs[name+"|"+strings.ToLower(string(argv[1]))]; c != nil {
			try(c, argv)
		} else {
			t.Errorf("no command %s", name)
		}
	}
	r := rand.New(rand.NewPCG(3, 1))
	g := newGenerator(r, commands)
	names := []string{"STORE", "STOREDIST", "GET", "COUNT", "BY", "STREAMS", "KEYS", "LIMIT", "1", "2", "0"}
	for key := range pool {
		names = append(names, key)
	}
	slices.Sort(names)
	for _, c := range commands {
		for range 150 {
			drawn := g.line(c)
			first := strings.Count(c.Name, "|") + 1
			if len(drawn) > 16 || len(drawn) <= first+1 || !c.ArityOK(len(drawn)) {
				continue
			}
			for range 1 + r.IntN(2) { // repeat a few words elsewhere, or replace one by a name
				from := first + r.IntN(len(drawn)-first)
				to := min(len(drawn), from+1+r.IntN(3))
				at := first + 1 + r.IntN(len(drawn)-first)
				if r.IntN(3) == 0 {
					drawn[from] = names[r.IntN(len(names))]
				} else {
					drawn = slices.Insert(drawn, at, slices.Clone(drawn[from:to])...)
				}
			}
			argv := make([][]byte, len(drawn))
			for i, w := range drawn {
				argv[i] = []byte(w)
			}
			if mayBeFuzzed(argv) {
				try(c, argv)
			}
		}
	}
	t.Logf("%d lines, %d keys that the ACL does not check", lines, looked)
	if looked < 500 {
		t.Error("too few")
	}
}

// protocolArgs splits a line at its spaces; two spaces have an empty argument between them.
func protocolArgs(line string) (argv [][]byte) {
	for word := range strings.SplitSeq(line, " ") {
		argv = append(argv, []byte(word))
	}
	return argv
}

// TestComparingNeedsRightToRead checks that commands that compare a value need the right
// to read the key.
func TestComparingNeedsRightToRead(t *testing.T) {
	say := judge.Ours(t)
	for _, argv := range [][]string{
		{"SET", "v", "secret"}, {"ZADD", "z", "5", "m"}, {"ACL", "SETUSER", "w", "on", "nopass", "+@all", "%W~*"},
		{"ACL", "SETUSER", "rw", "on", "nopass", "+@all", "~*"},
	} {
		say(argv...)
	}
	for _, line := range []string{
		"SET v x IFEQ secret", "SET v x IFNE secret", "SET v x IFDEQ 0123456789abcdef", "set v x ifdne 0123456789abcdef", "SET v x EX 9 IFEQ secret",
		"SET v x GET", "DELIFEQ v secret", "DELEX v IFEQ secret", "DELEX v IFNE secret", "ZREMIFEQ z 5 m", "ZADDEX z INCR MEMBERS 1 0 m",
		"ZCLAIM z 0 9 5", "ZPOPBYSCORE z 0 9", "BZCLAIM 0 1 z 0 9 5", "GETDEL v", "GETEX v", "INCRBY v 0",
	} {
		argv := append([]string{"ACL", "DRYRUN", "w"}, strings.Fields(line)...)
		if got := fmt.Sprint(say(argv...)); got == "OK" {
			t.Errorf("%s is allowed without the right to read", line)
		}
		argv[2] = "rw"
		if got := fmt.Sprint(say(argv...)); got != "OK" {
			t.Errorf("%s with all rights: %v", line, got)
		}
	}
	if got := fmt.Sprint(say("ACL", "DRYRUN", "w", "SET", "v", "x", "NX", "EX", "9")); got != "OK" {
		t.Errorf("SET that compares nothing: %v", got)
	}
}
