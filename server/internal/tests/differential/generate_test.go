package differential

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zsetd/zsetd/protocol"

	"github.com/zsetd/zsetd/server/servertest/judge"
)

// generator draws random command lines from the facts of the command table:
// mostly plausible, often not.
type generator struct {
	r        *rand.Rand
	commands []*protocol.Command
	weights  []int // running sums
	now      time.Time
	id       int                     // about where the IDs of streams are
	knows    func(since string) bool // whether what came with a version of Redis is drawn

	payloads  []string // of DUMP
	libraries []string // of FUNCTION DUMP
}

// drawn is the weight of a command, 10 by default. Commands that create values have
// higher weights than commands that remove them.
func drawn(name string) int {
	switch name {
	case "zadd", "hset", "sadd", "rpush", "lpush", "set":
		return 60
	case "xadd", "xreadgroup":
		return 60
	case "xgroup|create", "zincrby", "hmset", "append", "mset", "zunionstore", "lpushx", "rpushx", "linsert":
		return 20
	case "del", "unlink", "rename", "move", "getdel", "zdiffstore", "zinterstore", "sinterstore", "zrangestore", "ltrim", "xgroup|destroy", "xsetid":
		return 4
	case "swapdb", "select", "ping", "echo", "dbsize":
		return 2
	case "flushdb", "flushall":
		return 1
	}
	return 10
}

// notCompared are commands that the differential test leaves out, each with
// the reason.
func notCompared(name string) (reason string) {
	switch name {
	case "migrate":
		return "needs a server to go to: TestMigrate has it"
	case "pfselftest":
		return "takes seconds, and says nothing"
	case "pfdebug":
		return "tells of Redis's insides"
	case "shutdown":
		return "ends the process"
	case "replicaof", "slaveof":
		return "makes redis-server a replica that refuses writes: the transcripts have it"
	case "psync", "sync", "replconf":
		return "makes the connection that of a replica: TestReplicaOfRedis and a transcript have it"
	case "monitor":
		return "shows times and addresses: the transcripts have it"
	case "save", "bgsave", "bgrewriteaof", "config|rewrite", "acl|load", "acl|save":
		return "is about files: the transcripts have it"
	case "debug":
		return "is refused by servers that are not told to allow it"
	case "script|debug":
		return "holds a conversation with redis-cli"
	case "hotkeys", "hotkeys|start", "hotkeys|stop", "hotkeys|get", "hotkeys|reset":
		return "measures bytes and times from one moment to another: the transcripts have it"
	case "latency|graph":
		return "draws times"
	}
	return ""
}

// aboutData reports whether a command is about keys and their values, rather
// than about the server or the connection.
func aboutData(c *protocol.Command) bool {
	switch c.Name {
	case "echo", "ping", "select", "dbsize", "flushall", "flushdb", "swapdb", "publish", "spublish", "restore-asking":
		return true
	}
	switch c.Group {
	case "generic", "string", "hash", "list", "set", "sorted-set", "bitmap", "hyperloglog", "geo", "stream":
		return true
	}
	return false
}

func newGenerator(r *rand.Rand, commands []*protocol.Command) *generator {
	g := &generator{r: r, now: time.Now(), payloads: []string{""}, libraries: []string{""}, knows: opponentKnows}
	sum := 0
	for _, c := range commands {
		if notCompared(c.Name) != "" {
			continue
		}
		n := drawn(c.Name)
		switch {
		case strings.HasPrefix(c.Name, "command|getkeys"), c.Name == "command|info": // of all commands
		case !aboutData(c):
			n = 2 // each comes with others
		}
		sum += n
		g.commands = append(g.commands, c)
		g.weights = append(g.weights, sum)
	}
	return g
}

// consumersOf returns the commands that make the consumers that a command names. They
// come first, for since Redis 7.2 such a command makes a consumer even if it has
// nothing for it.
func consumersOf(name string, argv []string) (lines [][]string) {
	var keys []string
	switch {
	case (name == "xclaim" || name == "xautoclaim") && len(argv) > 3:
		keys = argv[1:2]
	case name == "xreadgroup" && len(argv) > 3:
		i := slices.IndexFunc(argv, func(w string) bool { return strings.EqualFold(w, "streams") })
		if i < 0 {
			return nil
		}
		keys = argv[i+1:]
		keys = keys[:len(keys)/2]
	}
	for _, key := range keys {
		lines = append(lines, []string{"XGROUP", "CREATECONSUMER", key, argv[2], argv[3]})
	}
	return lines
}

// next draws a command line.
func (g *generator) next() (c *protocol.Command, argv []string) {
	n := g.r.IntN(g.weights[len(g.weights)-1])
	i := 0
	for g.weights[i] <= n {
		i++
	}
	c = g.commands[i]
	return c, g.line(c)
}

// line draws a line of a command.
func (g *generator) line(c *protocol.Command) (argv []string) {
	for {
		if argv = g.anyLine(c); !differsOnlyInValkey(argv) && (g.knows("8.8.0") || !follows(argv, "AGGREGATE", "COUNT")) {
			return argv
		}
	}
}

// follows reports whether a line has a word after another.
func follows(argv []string, word, next string) bool {
	for i := 1; i < len(argv); i++ {
		if strings.EqualFold(argv[i-1], word) && strings.EqualFold(argv[i], next) {
			return true
		}
	}
	return false
}

// anyLine draws a line of a command, for any judge.
func (g *generator) anyLine(c *protocol.Command) (argv []string) {
	if argv = g.special(c); argv != nil {
		if strings.HasPrefix(c.Name, "command|getkeys") && len(argv) == 3 && opponent() == judge.Version {
			argv = append(argv, "k") // Redis 7.0 refuses a name alone
		}
		return argv
	}
	argv = strings.Split(c.Name, "|")
	many := 0
	if g.one(25) {
		many = 20 + g.r.IntN(150) // so that small shapes are outgrown
	}
	d := draft{generator: g, command: c, many: many}
	d.sequence(c.Arguments())
	argv = append(argv, d.words...)
	if g.one(8) {
		argv = g.spoil(argv, len(strings.Split(c.Name, "|")))
	}
	if (c.Name == "zrank" || c.Name == "zrevrank") && len(argv) > 3 && opponent() == judge.Version {
		argv = argv[:3] // the other arguments are newer than the judge
	}
	if c.Name == "bitcount" && len(argv) == 3 && opponent() != "valkey" {
		argv = argv[:2] // see differences
	}
	if g.one(10) {
		argv[0] = strings.ToUpper(argv[0])
	}
	g.tame(c, argv)
	if prefixes := 0; c.Name == "client|tracking" {
		// Of three that overlap, Redis 7.0 complains and then says OK.
		for i, w := range argv {
			if strings.EqualFold(w, "prefix") {
				if prefixes++; prefixes == 3 {
					return argv[:i]
				}
			}
		}
	}
	return argv
}

func (g *generator) one(in int) bool { return g.r.IntN(in) == 0 }

func (g *generator) pick(from ...string) string { return from[g.r.IntN(len(from))] }

// draft is a command line that is being made.
type draft struct {
	*generator
	command *protocol.Command
	words   []string
	many    int // how often the first argument that may be repeated is
	numkeys int // place of a numkeys that is to be filled in; 0 = none
	lex     int // 1: ranges are of members, 2: of scores, 0: not decided
}

func (d *draft) sequence(args []protocol.Argument) {
	order := make([]int, len(args))
	for i := range order {
		order[i] = i
	}
	if d.one(4) { // options may come in any order
		first := len(args)
		for first > 0 && args[first-1].Optional {
			first--
		}
		tail := order[first:]
		d.r.Shuffle(len(tail), func(i, j int) { tail[i], tail[j] = tail[j], tail[i] })
	}
	for _, i := range order {
		a := &args[i]
		if a.Optional && (!d.one(3) || !d.knows(a.Since)) {
			continue // the judge lacks what is newer
		}
		d.argument(a)
		if a.Optional && d.one(30) {
			d.argument(a) // twice
		}
	}
}

func (d *draft) argument(a *protocol.Argument) {
	times := 1
	if a.Multiple {
		times = 1 + d.r.IntN(3)
		if d.many > 0 && a.Type != "key" {
			times, d.many = d.many, 0
		}
	}
	token := func() {
		if a.Token != "" && a.Type != "pure-token" {
			d.words = append(d.words, d.anyCase(a.Token))
		}
	}
	first := len(d.words)
	token()
	for i := range times {
		if i > 0 && a.MultipleToken {
			token()
		}
		d.once(a)
	}
	if a.Type == "key" && a.Multiple && d.numkeys > 0 {
		n := len(d.words) - first
		if d.one(30) {
			n += d.r.IntN(3) - 1
		}
		d.words[d.numkeys-1] = strconv.Itoa(n)
		d.numkeys = 0
	}
}

func (d *draft) anyCase(word string) string {
	if d.one(5) {
		return strings.ToLower(word)
	}
	return word
}

func (d *draft) once(a *protocol.Argument) {
	switch a.Type {
	case "pure-token":
		d.words = append(d.words, d.anyCase(a.Token))
	case "oneof":
		choice := &a.Arguments[d.r.IntN(len(a.Arguments))]
		for !d.knows(choice.Since) {
			choice = &a.Arguments[d.r.IntN(len(a.Arguments))]
		}
		d.argument(choice)
	case "block":
		d.sequence(a.Arguments)
	default:
		if a.Name == "numkeys" {
			d.words = append(d.words, "1")
			d.numkeys = len(d.words)
			return
		}
		d.words = append(d.words, d.value(a))
	}
}

// value draws a value for an argument, by its name and type.
func (d *draft) value(a *protocol.Argument) string {
	if d.one(60) {
		return d.anything()
	}
	switch a.Type {
	case "key":
		return d.key()
	case "unix-time":
		return d.instant(a.Name)
	case "pattern":
		return d.pick("*", "a*", "*1*", "?", "[a-c]*", "h?", "[^a]", "nosort", "w_*", "h*->f", "#", "zzz", "", "\\a", "*\\")
	}
	if !aboutData(d.command) {
		if v := d.serverValue(a.Name); v != "" {
			return v
		}
	}
	if d.command.Group == "stream" {
		if v, ok := d.streamValue(a.Name); ok {
			return v
		}
	}
	if d.command.Group == "geo" {
		if v := d.geo(a.Name); v != "" {
			return v
		}
	}
	switch a.Name {
	case "min", "max":
		if d.lex == 0 {
			d.lex = 2
			if strings.Contains(d.command.Name, "lex") || strings.Contains(strings.ToLower(strings.Join(d.words, " ")), "bylex") {
				d.lex = 1
			}
		}
		return d.bound()
	case "start", "stop":
		if d.command.Name == "zrange" || d.command.Name == "zrangestore" {
			switch d.r.IntN(4) {
			case 0:
				d.lex = 1
				return d.bound()
			case 1:
				d.lex = 2
				return d.bound()
			}
		}
		return d.integer()
	case "score", "increment", "weight":
		if a.Type == "integer" && a.Name != "weight" {
			return d.integer()
		}
		return d.float()
	case "seconds":
		return strconv.Itoa(100_000 + d.r.IntN(1e6)*10)
	case "milliseconds":
		return strconv.Itoa(1e9 + d.r.IntN(1e9)*10)
	case "timeout":
		return d.pick("0", "0", "0.01", "1", "-1", "nan", "abc", "1e400")
	case "cursor":
		return d.pick("0", "0", "0", "0", "abc", "-1", "18446744073709551616", "")
	case "db", "destination-db", "index1", "index2":
		return d.pick("0", "0", "1", "2", "2", "0", "1", "16", "-1", "abc")
	case "index":
		if d.command.Name == "select" {
			return d.pick("0", "0", "0", "1", "2", "16", "-1", "abc")
		}
	case "member", "field", "element", "pivot":
		return d.member()
	case "serialized-value":
		return d.payloads[d.r.IntN(len(d.payloads))]
	case "type":
		return d.pick("zset", "hash", "list", "set", "string", "ZSET", "stream", "nothing")
	case "channel", "shardchannel":
		return d.pick("a", "b", "")
	case "bit":
		return d.pick("0", "1", "0", "1", "2", "-1", "a")
	case "encoding":
		if d.one(20) {
			return d.pick("u64", "i65", "u0", "i0", "i", "", "x8", "u-1", "u08", "i64\x00", "U8")
		}
		return d.pick("u", "i") + d.pick("1", "2", "5", "7", "8", "9", "16", "31", "32", "33", "62", "63", "64")
	case "offset":
		if d.command.Group == "bitmap" {
			return d.bitOffset()
		}
	case "value":
		if d.command.Name == "setbit" {
			return d.pick("0", "1", "0", "1", "1", "1", "0", "2", "-1", "a")
		}
	}
	switch a.Type {
	case "integer":
		return d.integer()
	case "double":
		return d.float()
	}
	switch d.r.IntN(6) {
	case 0, 1:
		return d.integer()
	case 2:
		return d.float()
	}
	return d.member()
}

// key draws a key: mostly one that holds the type that the command is about.
func (d *draft) key() string {
	kind := map[string]string{"sorted-set": "z", "hash": "h", "list": "l", "set": "s", "string": "v", "bitmap": "v", "hyperloglog": "p", "geo": "g",
		"stream": "x"}[d.command.Group]
	if kind == "" || d.one(20) {
		kind = d.pick("z", "h", "l", "s", "v", "p", "g", "x")
	}
	if kind == "x" && (d.one(8) || strings.HasPrefix(d.command.Name, "xcfg") || strings.HasPrefix(d.command.Name, "xidmp")) {
		kind = "i"
	}
	if strings.HasPrefix(d.command.Name, "z") && d.one(8) {
		kind = "s" // the set operations take sets, too
	}
	if d.one(100) {
		return d.pick("", "\x00\xff\r\n", "nosuchkey", "w_a", "w_1", "{a}:b")
	}
	return kind + strconv.Itoa(d.r.IntN(4))
}

// streamValue draws a value of an argument that commands about streams have.
func (d *draft) streamValue(name string) (v string, ok bool) {
	switch name {
	case "id", "last-id", "max_deleted_entry_id", "lastid":
		if d.command.Name == "xadd" {
			return d.newStreamID(), true
		}
		if strings.HasPrefix(d.command.Name, "xread") && d.one(2) {
			return d.pick("$", ">", ">", "0", "0-0"), true
		}
		return d.streamID(), true
	case "start", "end":
		switch d.r.IntN(6) {
		case 0, 1:
			return d.pick("-", "+"), true
		case 2:
			return "(" + d.streamID(), true
		}
		return d.streamID(), true
	case "threshold":
		if slices.ContainsFunc(d.words, func(w string) bool { return strings.EqualFold(w, "minid") }) {
			return d.streamID(), true
		}
		return strconv.Itoa(d.r.IntN(30)), true
	case "group", "groupname":
		return d.pick("g", "g", "h", "i", ""), true
	case "consumer", "consumername":
		return d.pick("c", "d", "e", "c", "d", ""), true
	case "pid", "iid":
		return d.pick("p", "q", "p", "r", ""), true
	case "stream-id":
		// Of an old entry the identifier is forgotten soon.
		return d.pick(farID, "99999999999999-1", "7-77", "a-1", "0-0", ""), true
	case "min-idle-time", "milliseconds":
		return d.pick("0", "0", "0", "0", "-1", "10000000000", "abc"), true
	case "ms":
		return d.pick("0", "1000", "-1", "99999999999999"), true
	case "count":
		return strconv.Itoa(d.r.IntN(9) - 1), true
	case "entries_added", "entries_read":
		return strconv.Itoa(d.r.IntN(60) - 2), true
	}
	return "", false
}

// farID is the ID of the first entry of the streams i0 to i3, which have producers: the IDs
// that a server makes there follow it, and do not depend on time.
const farID = "99999999999999-0"

// namesProducer reports whether a line of XADD has an identifier for its entry.
func namesProducer(argv []string) bool {
	return slices.ContainsFunc(argv, func(a string) bool { return strings.EqualFold(a, "idmp") || strings.EqualFold(a, "idmpauto") })
}

// newStreamID draws an ID that is mostly higher than those before.
func (g *generator) newStreamID() string {
	switch g.r.IntN(40) {
	case 0:
		if id := g.streamID(); id != "*" { // which depends on time
			return id
		}
		return "+"
	case 1:
		return strconv.Itoa(g.id) + "-*"
	}
	g.id += g.r.IntN(3)
	return strconv.Itoa(g.id) + "-" + strconv.Itoa(1+g.r.IntN(4))
}

func (g *generator) streamID() string {
	switch g.r.IntN(30) {
	case 0:
		return g.pick("-", "+", "*", "0", "1-", "-1", "18446744073709551615-18446744073709551615", "a-1", "+5-1", " 5-1", "05-01", "1- -1", "(")
	case 1, 2, 3:
		return strconv.Itoa(g.id - g.r.IntN(30))
	}
	return strconv.Itoa(max(0, g.id-g.r.IntN(30)+1)) + "-" + strconv.Itoa(g.r.IntN(5))
}

func (g *generator) member() string {
	switch n := g.r.IntN(100); {
	case n < 50:
		return string(rune('a' + g.r.IntN(10)))
	case n < 75:
		return strconv.Itoa(g.r.IntN(30))
	case n < 90:
		return "m:" + strconv.Itoa(g.r.IntN(300))
	case n < 96:
		return g.pick("", "-1", "1.5", "\x00\xff", "a b", "Z", "é", "\r\n", "99999999999", "-9223372036854775808", "007")
	case n < 98:
		return g.float()
	case n < 99:
		return strings.Repeat("long", 16) + strconv.Itoa(g.r.IntN(5)) // 65 bytes
	}
	return strings.Repeat(g.pick("x", "\x00", "ab"), g.r.IntN(200))
}

func (g *generator) integer() string {
	switch n := g.r.IntN(100); {
	case n < 70:
		return strconv.Itoa(g.r.IntN(12) - 2)
	case n < 80:
		return strconv.Itoa(g.r.IntN(400) - 200)
	case n < 85:
		return strconv.Itoa(g.r.IntN(1 << 40))
	case n < 92:
		return g.pick("9223372036854775807", "-9223372036854775808", "9223372036854775808", "4294967296", "2147483648",
			"-2147483649", "18446744073709551615", "9223372036854775806", "-9223372036854775807")
	}
	return g.pick("", "a", "1.0", "+1", " 1", "1 ", "01", "-0", "0x10", "1e3", "\x00", "--1", "1\x00")
}

func (g *generator) float() string {
	switch n := g.r.IntN(100); {
	case n < 45:
		return strconv.Itoa(g.r.IntN(12) - 2)
	case n < 55:
		return strconv.FormatFloat(float64(g.r.IntN(1000))/8, 'g', -1, 64)
	case n < 65:
		return strconv.FormatFloat(g.r.NormFloat64(), 'g', -1, 64)
	case n < 68:
		return strconv.FormatFloat(math.Float64frombits(g.r.Uint64()), 'g', -1, 64)
	case n < 72:
		return strconv.Itoa(g.r.IntN(1 << 60))
	case n < 85:
		return g.pick("inf", "-inf", "+inf", "Infinity", "-INF", "1e308", "-1e308", "3e-5", "17.999999999999996", "0.1", "-0", "-0.0",
			"123456789012345678", "1e17", "1e21", "0x1p3", "0X10", ".5", "5.", "1e-310", "4.9e-324", "9007199254740993")
	}
	return g.pick("nan", "-nan", "NaN", "1e400", "1e-400", "abc", "", " 1", "1 ", "1,5", "1_0", "0x", "e5", "1\x00", "infi", "--1")
}

// geo draws a value for an argument of a command about places; "" for those that are
// as elsewhere. Places are few, so that some are the same and many are near.
func (g *generator) geo(name string) string {
	degrees := func(limit int) string {
		switch g.r.IntN(10) {
		case 0:
			return g.float()
		case 1:
			return strconv.FormatFloat((g.r.Float64()*2-1)*float64(limit), 'f', g.r.IntN(12), 64)
		}
		return strconv.Itoa(10+g.r.IntN(3)) + "." + strconv.Itoa(g.r.IntN(20))
	}
	switch name {
	case "longitude":
		return degrees(180)
	case "latitude":
		return degrees(85)
	case "radius", "width", "height":
		if g.one(20) {
			return g.float()
		}
		return strconv.Itoa(g.r.IntN(10 << g.r.IntN(16)))
	case "count":
		return g.pick("1", "2", "3", "5", "10", "0", "-1")
	}
	return ""
}

// bitOffset draws the place of a bit.
func (g *generator) bitOffset() string {
	n := strconv.Itoa(g.r.IntN(300))
	if g.one(4) {
		n = strconv.Itoa(g.r.IntN(4000))
	}
	if g.one(4) {
		n = "#" + strconv.Itoa(g.r.IntN(40))
	}
	if g.one(30) {
		return g.pick("4294967296", "-1", "#-1", "#", "", "#a", "##1", "1.5", "99999999999999999999", "-9223372036854775808")
	}
	return n
}

// bound draws an end of a range of scores or members.
func (d *draft) bound() string {
	if d.lex == 1 {
		switch d.r.IntN(10) {
		case 0, 1:
			return d.pick("-", "+")
		case 2:
			return d.pick("a", "", "(", "[", "+a", "--")
		}
		return d.pick("[", "(") + d.member()
	}
	switch d.r.IntN(10) {
	case 0, 1, 2:
		return d.pick("-inf", "+inf", "inf")
	case 3, 4:
		return "(" + d.float()
	}
	return d.float()
}

// instant draws a time of expiry that is not near.
func (g *generator) instant(name string) string {
	unit := int64(1)
	if strings.Contains(name, "milli") {
		unit = 1000
	}
	switch g.r.IntN(10) {
	case 0:
		return g.pick("0", "1", "-1", "9223372036854775807", "-9223372036854775808", "abc", "")
	case 1:
		return strconv.FormatInt((g.now.Unix()-1e6)*unit, 10)
	}
	return strconv.FormatInt((g.now.Unix()+1e6+g.r.Int64N(1e6))*unit, 10)
}

// anything draws an implausible value.
func (g *generator) anything() string {
	switch g.r.IntN(5) {
	case 0:
		return g.integer()
	case 1:
		return g.float()
	case 2:
		return g.pick("NX", "XX", "GT", "LT", "CH", "INCR", "LIMIT", "WITHSCORES", "COUNT", "BYLEX", "BYSCORE", "REV", "WEIGHTS",
			"AGGREGATE", "SUM", "MIN", "MAX", "STORE", "KEEPTTL", "GET", "EX", "MATCH", "TYPE", "ASYNC", "LEFT", "RIGHT", "ALPHA",
			"DESC", "BY", "WITHVALUES", "REPLACE", "DB", "BEFORE", "limit", "IDX", "LEN", "PERSIST")
	}
	return g.member()
}

// spoil makes a command line implausible; the first names words are the name.
func (g *generator) spoil(argv []string, names int) []string {
	at := names + g.r.IntN(len(argv)-names+1)
	switch g.r.IntN(6) {
	case 0: // one argument less
		if at < len(argv) {
			argv = append(argv[:at:at], argv[at+1:]...)
		}
	case 1: // the end is missing
		argv = argv[:at]
	case 2: // one more
		argv = append(argv[:at:at], append([]string{g.anything()}, argv[at:]...)...)
	case 3: // one twice
		if at < len(argv) {
			argv = append(argv[:at:at], append([]string{argv[at]}, argv[at:]...)...)
		}
	case 4: // another
		if at < len(argv) {
			argv[at] = g.anything()
		}
	case 5: // two exchanged
		if other := names + g.r.IntN(len(argv)-names+1); at < len(argv) && other < len(argv) {
			argv[at], argv[other] = argv[other], argv[at]
		}
	}
	return argv
}

// tame changes what would take gigabytes, or depend on how fast the servers
// are.
func (g *generator) tame(c *protocol.Command, argv []string) {
	for i := 1; i < len(argv); i++ {
		switch {
		case c.Name == "xadd" && argv[i] == "*" && !namesProducer(argv): // which depends on time
			argv[i] = g.newStreamID()
		case strings.HasPrefix(c.Name, "xread") && argv[i] == "+" && opponent() == judge.Version: // newer than the judge
			argv[i] = "1-1"
		}
		if c.Name == "set" && (strings.EqualFold(argv[i], "ifdeq") || strings.EqualFold(argv[i], "ifdne")) && slices.ContainsFunc(argv, func(a string) bool {
			return strings.EqualFold(a, "get") || strings.EqualFold(a, "nx") || strings.EqualFold(a, "xx")
		}) {
			argv[i] = "IFEQ" // with these, Redis 8.6.3 replies twice where the digest is invalid
		}
		if n, err := strconv.ParseUint(argv[i], 10, 64); err == nil && strings.EqualFold(argv[i-1], "fields") && strings.HasPrefix(c.Name, "h") {
			// Redis 8.6.3 may crash where HSETEX has a field twice, and reads fields and values
			// beyond the last argument.
			width := 1
			if c.Name == "hsetex" {
				width = 2
				for at := range argv { // NX and XX are Valkey's
					if strings.EqualFold(argv[at], "NX") || strings.EqualFold(argv[at], "XX") {
						argv[at] = "F" + argv[at]
					}
				}
				for at := i + 3; at < len(argv); at += 2 {
					argv[at] = fmt.Sprintf("%.20s%d", argv[at], at)
				}
			}
			argv[i] = strconv.FormatUint(min(n, uint64((len(argv)-1-i)/width)), 10)
		}
		n, err := strconv.ParseInt(argv[i], 10, 64)
		if err != nil {
			continue
		}
		switch c.Name {
		case "waitaof":
			if n != int64(int32(n)) { // Redis takes the lowest 32 bits
				argv[i] = "99"
			}
		case "lset":
			if n != int64(int32(n)) { // see differences
				argv[i] = "99"
			}
		case "xread", "xreadgroup":
			if strings.EqualFold(argv[i-1], "block") && n > 1e15 { // out of range since Redis 7.2
				argv[i] = "99999999999999"
			}
		case "xclaim", "xautoclaim", "xpending":
			if (i == 4 || c.Name == "xpending" && strings.EqualFold(argv[i-1], "idle")) && 0 < n && n < 1e10 {
				argv[i] = "10000000000"
			}
		case "setrange", "setbit", "bitfield":
			switch {
			case n > 1<<12 && n < 1<<32:
				argv[i] = "4294967296"
			case n < -1<<62: // see differences
				argv[i] = strconv.FormatInt(-1<<62, 10)
			}
		case "srandmember", "zrandmember", "hrandfield":
			if n < -1000 && n > math.MinInt64 {
				argv[i] = "-1000"
			}
		case "expire", "pexpire", "setex", "psetex":
			if 0 < n && n < 1e7 {
				argv[i] = strconv.FormatInt(n+1e7, 10)
			}
		case "hexpire", "hpexpire":
			if i == 2 && 0 < n && n < 1e7 {
				argv[i] = strconv.FormatInt(n+1e7, 10)
			}
		case "set", "getex", "hgetex", "hsetex", "msetex":
			switch option := strings.ToUpper(argv[i-1]); {
			case n <= 0:
			case n < 1e7 && (option == "EX" || option == "PX"):
				argv[i] = strconv.FormatInt(n+1e7, 10)
			// Redis may or may not have noticed already that a key was born dead: see differences.
			case n < g.now.Unix()+1e6 && option == "EXAT":
				argv[i] = strconv.FormatInt(g.now.Unix()+1e6, 10)
			case n < g.now.UnixMilli()+1e9 && option == "PXAT":
				argv[i] = strconv.FormatInt(g.now.UnixMilli()+1e9, 10)
			}
		case "client|tracking", "client|list":
			if n > 0 { // the number may be the ID of a client
				argv[i] = "99999999"
			}
		case "lpos":
			// Where it is out of range, the key is not even looked for, which
			// shows in the events.
			if argv[i] == strconv.Itoa(math.MinInt64) {
				argv[i] = strconv.Itoa(math.MinInt64 + 1)
			}
		case "restore", "restore-asking":
			if i == 2 && 0 < n && n < 1e9 {
				argv[i] = strconv.FormatInt(n+1e9, 10)
			}
		case "pexpireat":
			if d := n - g.now.UnixMilli(); -1e7 < d && d < 1e7 {
				argv[i] = fmt.Sprint(n + 1e8)
			}
		}
	}
}

// ofGroups draws a command about one of two streams with few entries, and their groups.
func (g *generator) ofGroups() scenario {
	key, group := g.pick("t", "u"), g.pick("g", "h")
	id := func() string { return strconv.Itoa(max(0, g.id-g.r.IntN(8))) + "-0" }
	read := func(argv []string) []string {
		if g.one(3) {
			return append(argv, "ENTRIESREAD", strconv.Itoa(g.r.IntN(12)-1))
		}
		return argv
	}
	var argv []string
	switch g.r.IntN(30) {
	case 0:
		argv = []string{"DEL", key}
	case 1:
		argv = read([]string{"XGROUP", "SETID", key, group, g.pick("$", "0", id())})
	case 2, 3:
		argv = read([]string{"XGROUP", "CREATE", key, group, g.pick("$", "0", id())})
	case 4:
		argv = read([]string{"XGROUP", "CREATE", key, group, g.pick("$", "0"), "MKSTREAM"})
	case 5:
		argv = []string{"XGROUP", "DESTROY", key, group}
	case 6:
		argv = []string{"XTRIM", key, "MAXLEN", "=", strconv.Itoa(g.r.IntN(5))}
	case 7:
		argv = []string{"XTRIM", key, "MINID", "=", id()}
	case 8:
		argv = []string{"XSETID", key, id()}
		if g.one(2) {
			argv = append(argv, "ENTRIESADDED", strconv.Itoa(g.r.IntN(20)), "MAXDELETEDID", id())
		}
	case 9, 10:
		argv = []string{"XDEL", key, id()}
	case 11:
		argv = []string{"XDELEX", key, g.pick("KEEPREF", "DELREF", "ACKED"), "IDS", "1", id()}
	case 12:
		argv = []string{"XACKDEL", key, group, g.pick("KEEPREF", "DELREF", "ACKED"), "IDS", "1", id()}
	case 13:
		argv = []string{"XACK", key, group, id(), id()}
	case 14, 15, 16, 17, 18:
		argv = []string{"XREADGROUP", "GROUP", group, "c", "COUNT", strconv.Itoa(1 + g.r.IntN(3)), "STREAMS", key, ">"}
		if g.one(4) {
			argv = slices.Insert(argv, 4, "NOACK")
		}
	case 19:
		argv = []string{"XINFO", "STREAM", key, "FULL"}
	case 20:
		argv = []string{"XINFO", "STREAM", key}
	case 21, 22, 23, 24:
		argv = []string{"XINFO", "GROUPS", key}
	default:
		g.id++
		argv = []string{"XADD", key}
		if g.one(6) {
			argv = append(argv, "MAXLEN", "=", strconv.Itoa(g.r.IntN(6)))
		}
		argv = append(argv, strconv.Itoa(g.id)+"-0", "f", "v")
	}
	name := judge.FullName(argv)
	if (name == "xdelex" || name == "xackdel") && !g.knows("8.2.0") {
		return g.ofGroups()
	}
	return scenario{name: name, argv: argv, steps: []step{{argv: argv, how: comparisonOf(name, argv)}}}
}
