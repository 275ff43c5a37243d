package differential

import (
	"crypto/sha1"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/servertest/judge"
)

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// users are names of users; only the last exists at first.
var users = []string{"u1", "u2", "u3", "default"}

// parameter is a parameter with values; the first is the default.
type parameter struct {
	name   string
	values []string
}

// parameter draws one of the parameters that change nothing that is compared.
func (g *generator) parameter() parameter {
	for {
		if p := harmless[g.r.IntN(len(harmless))]; !lacksInValkey(p.name) {
			return p
		}
	}
}

// harmless are the parameters that change nothing that is compared.
var harmless = []parameter{
	{"maxmemory-samples", []string{"5", "1", "64", "0", "-1"}},
	{"slowlog-max-len", []string{"128", "0", "10", "-1", "a"}},
	{"latency-monitor-threshold", []string{"0", "100000", "-1"}},
	{"timeout", []string{"0", "1000", "-1", "4294967296"}},
	{"tcp-keepalive", []string{"300", "0", "60", "-1"}},
	{"lua-time-limit", []string{"5000", "4000", "x"}},
	{"hz", []string{"10", "20", "1000", "0"}},
	{"dynamic-hz", []string{"yes", "no", "maybe"}},
	{"active-expire-effort", []string{"1", "2", "10", "11", "0"}},
	{"lazyfree-lazy-eviction", []string{"no", "yes", "1"}},
	{"lazyfree-lazy-expire", []string{"no", "yes", ""}},
	{"lazyfree-lazy-server-del", []string{"no", "yes", "YES"}},
	{"lazyfree-lazy-user-del", []string{"no", "yes"}},
	{"lazyfree-lazy-user-flush", []string{"no", "yes"}},
	{"stop-writes-on-bgsave-error", []string{"yes", "no"}},
	{"rdbcompression", []string{"yes", "yes"}},
	{"appendfsync", []string{"everysec", "no", "always", "never"}},
	{"loglevel", []string{"notice", "warning", "verbose"}},
	{"proto-max-bulk-len", []string{"536870912", "512mb", "1gb", "1k", "2x"}},
	{"client-query-buffer-limit", []string{"1073741824", "2gb", "1mb", "10"}},
	{"tracking-table-max-keys", []string{"1000000", "100", "-1"}},
	{"acllog-max-len", []string{"128", "1", "0"}},
	{"min-replicas-max-lag", []string{"10", "0", "5"}},
	{"repl-backlog-size", []string{"1048576", "1mb", "16kb", "0"}},
	{"list-compress-depth", []string{"0", "1", "-1"}},
	{"hll-sparse-max-bytes", []string{"3000", "3001", "-1"}},
	{"maxmemory-policy", []string{"noeviction", "noeviction", "NoEviction", "all"}},
	{"client-output-buffer-limit", []string{"normal 0 0 0", "normal 0 0", "normal 0 0 0 pubsub 32mb 8mb 60", "x 0 0 0", "normal a 0 0"}},
	{"oom-score-adj-values", []string{"0 200 800", "0 200", "1 2 3"}},
	{"set-max-intset-entries", []string{"512", "-1", "a"}},
	{"zset-max-listpack-entries", []string{"128", "-1", "a"}},
	{"lfu-log-factor", []string{"10", "1", "-1"}},
	{"lfu-decay-time", []string{"1", "0", "-1"}},
	{"cluster-require-full-coverage", []string{"yes", "no"}},
	{"cluster-migration-barrier", []string{"1", "2", "-1"}},
}

// scripts are what scripting is tried with.
var scripts = struct{ sources, libraries []string }{
	sources: []string{
		"return 1", "return {1,2,{3,'a'}}", "return redis.call('get', KEYS[1])", "return {err='E x'}", "return {ok='fine'}", "return nil",
		"return redis.call('set', KEYS[1], ARGV[1])", "return redis.pcall(unpack(ARGV))", "return redis.call(unpack(ARGV))", "return redis.call()",
		"redis.setresp(3) return redis.call(unpack(ARGV))", "return {KEYS, ARGV}", "return #KEYS", "return 3.99", "return", "retrun 1",
		"return foo", "x = 1", "local a = {} a.b.c = 1", "return redis.error_reply('MY error')", "return redis.status_reply('x')",
		"return tostring(redis.pcall('lpush', KEYS[1], 'a')['err'])", "return redis.sha1hex(ARGV[1] or '')", "return {1,nil,2}", "return true",
		"return false", "return {double=1.5}", "redis.setresp(3) return {double=1.5}", "return {map={a=1}}", "return {set={a=true}}",
		"return cjson.encode({1,2,'x'})", "return cmsgpack.pack({1,'a'})", "return bit.band(7, 12)", "return struct.pack('>I2', 258)",
		"for i=1,#KEYS do redis.call('incr', KEYS[i]) end return #KEYS", "return redis.call('lrange', KEYS[1] or 'l1', 0, -1)[99]",
		"#!lua\nreturn 1", "#!lua flags=no-writes\nreturn redis.call('set', 'v0', '1')", "#!lua flags=x\nreturn 1", "#!x\nreturn 1",
		"#!lua flags=allow-stale,no-cluster\nreturn redis.call('ping')", "#!lua name=x\nreturn 1", "return redis.call('multi')",
		"return redis.call('blpop', KEYS[1] or 'l1', 0)",
		"return redis.call('subscribe', 'a')", "return redis.acl_check_cmd('get', 'v1')",
		"return redis.acl_check_cmd('nosuch')", "error('thrown')", "error({err='ERR tabular'})", "return redis.call('select', 1)", "return math.floor(3.7)",
		"return redis.call('ping', {})", "return redis.call(1.5)", "redis.log(redis.LOG_DEBUG, 'x')", "redis.log(9, 'x')", "return redis.REDIS_VERSION_NUM > 0",
		"return redis.set_repl(redis.REPL_ALL)", "return redis.set_repl(9)", "return redis.setresp(4)", "return redis.replicate_commands()",
		"return pairs", "return string.rep('x', 3, 'y')", "return loadstring('return 5')()", "return tostring(print)", "return redis.breakpoint()",
		"return redis.call('get', nil)", "return redis.call('GET')", "return redis.pcall('nosuch', 1).err", "local t = redis.call('time') return #t",
		"return redis.call('debug', 'x')", "return {redis.call('ping'), redis.pcall('x').err}", "return redis.call('eval', 'return 1', 0)",
	},
	libraries: []string{
		"#!lua name=l1\nredis.register_function('f1', function(keys, args) return {keys, args} end)",
		"#!lua name=l1\nredis.register_function('f1', function(keys, args) return 'other' end)\nredis.register_function('f4', function() return 4 end)",
		"#!lua name=l2\nredis.register_function{function_name='f2', callback=function(keys, args) return redis.call(unpack(args)) end, " +
			"flags={'no-writes'}, description='reads'}",
		"#!lua name=l3\nlocal function g(keys) return redis.call('set', keys[1] or 'v1', 'by f3') end\nredis.register_function('f3', g)",
		"#!lua name=l4\nredis.register_function('f1', function() return 1 end)",
		"#!lua name=l5\nreturn 1", "#!lua name=l6\nredis.call('ping')", "#!lua\nreturn 1", "return 1", "#!lua name=a-b\n", "#!x name=l7\n",
		"#!lua name=l8\nredis.register_function('f-8', function() end)", "#!lua name=l9\nredis.register_function('f9')", "#!lua name=l10\nretrun 1",
		"#!lua name=l11 x=1\nredis.register_function('f11', function() end)",
		"#!lua name=l12\nredis.register_function{function_name='f12', callback=function() return redis.setresp(3) end, flags={'none'}}",
		"#!lua name=l13\nx = 1\nredis.register_function('f13', function() end)",
		"#!lua name=l14\nredis.register_function('f14', function() end)\nredis.register_function('f14', function() end)",
		"#!lua name=l15\nredis.register_function('f15', function() return y end)", "#!lua name=l16\nlocal a = KEYS", "",
	},
}

// serverValue draws a value of an argument that commands about the server or
// the connection have; "" for those that are as elsewhere.
func (d *draft) serverValue(name string) string {
	switch name {
	case "username":
		return d.pick(append(users, "nosuch", "u1", "u2")...)
	case "password":
		return d.pick("p1", "p2", "")
	case "channel", "shardchannel", "message":
		return d.pick("a", "b", "c", "ab")
	case "connection-name", "clientname":
		return d.pick("me", "you", "a b", "", "é", "a\nb")
	case "client-id":
		return d.pick("0", "99999999", "-1", "abc")
	case "prefix":
		return d.pick("v", "h", "z", "vv", "", "s1")
	case "categoryname", "category":
		return d.pick("read", "string", "nosuch", "dangerous", "@read", "scripting", "")
	case "bits":
		return d.pick("1", "5", "256", "4096", "4097", "0", "-1", "a")
	case "section":
		return d.pick("server", "clients", "nosuch", "all", "everything", "keyspace")
	case "event":
		return d.pick("command", "expire-cycle", "nosuch")
	case "count":
		return d.pick("0", "1", "10", "-1", "-2", "a")
	case "module-name":
		return d.pick("nosuch")
	case "version":
		return d.pick("5", "6", "0", "-1", "a")
	case "library-name":
		return d.pick("l1", "l2", "l3", "nosuch")
	case "library-name-pattern":
		return d.pick("l*", "l1", "*", "x", "[l]2")
	case "command", "command-name":
		return d.pick("get", "zadd", "config", "config|get", "nosuch", "GET", "xinfo|stream", "config|nosuch", "get|x")
	case "parameter":
		return d.pick(d.parameter().name, "nosuch", "maxmemory-*", "HZ", "lazyfree-lazy-user-*", "h?", "")
	case "sha1":
		return d.sha()
	case "slot", "start-slot", "end-slot":
		return d.pick("0", "1", "16383", "16384", "-1", "a", "866")
	case "node-id":
		return d.pick("nosuch", strings.Repeat("0", 40))
	}
	return ""
}

func (g *generator) sha() string {
	sha := fmt.Sprintf("%x", sha1.Sum([]byte(g.pick(scripts.sources...))))
	switch g.r.IntN(10) {
	case 0:
		return strings.ToUpper(sha)
	case 1:
		return g.pick("", "abc", strings.Repeat("f", 40), strings.Repeat("z", 40), sha+"0")
	}
	return sha
}

// data draws a command about data that leaves nothing to chance.
func (g *generator) data() (name string, argv []string) {
	for {
		c, argv := g.next()
		if !aboutData(c) || c.Flags().Has(protocol.Blocking) {
			continue
		}
		switch c.Name {
		case "spop", "sort", "sort_ro", "flushall", "flushdb", "swapdb", "select", "wait", "waitaof", "object|freq", "object|idletime",
			"xreadgroup", "xclaim", "xautoclaim": // see consumersOf
			continue
		}
		if u := g.alone(c, argv); len(u.steps) == 1 && u.steps[0].how == exact {
			return c.Name, argv
		}
	}
}

// callable is a line that a script may run.
func (g *generator) callable() []string {
	if g.one(3) {
		return [][]string{{"ping"}, {"get"}, {"nosuch"}, {"set", "v1", "x", "y"}, {"lpush", "v1", "a"}, {"select", "0"}, {"config", "get", "hz"}, {}}[g.r.IntN(8)]
	}
	_, argv := g.data()
	return argv
}

// called is the part of a line that gives keys and arguments to a script.
func (g *generator) called() []string {
	switch g.r.IntN(8) {
	case 0:
		return []string{g.pick("0", "1", "2", "-1", "a", "", "9223372036854775807")}
	case 1, 2:
		return []string{"2", g.pick("v0", "h1", "l1"), g.pick("v2", "z1"), g.member()}
	case 3, 4:
		return []string{"1", g.pick("v0", "v1", "h1", "l1", "s1", "z1", "x1"), g.member()}
	}
	return append([]string{"0"}, g.callable()...)
}

// rule draws a rule of a user.
func (g *generator) rule() string {
	switch g.r.IntN(4) {
	case 0:
		return g.pick("on", "off", "nopass", "resetpass", "reset", "allkeys", "resetkeys", "allchannels", "resetchannels", "allcommands", "nocommands",
			"skip-sanitize-payload", "sanitize-payload", "clearselectors", "ON", "x", "")
	case 1:
		return g.pick(">p1", "<p1", ">p2", "<nosuch", "#"+strings.Repeat("a", 64), "!"+strings.Repeat("a", 64), "#abc", "!x", "#"+strings.Repeat("G", 64), ">")
	case 2:
		return g.pick("~*", "~v*", "~h1", "%R~v*", "%W~h*", "%RW~z*", "%X~a", "%R", "~", "&*", "&a", "&a*", "&", "%~a", "%RW~*")
	}
	return g.pick("+@all", "-@all", "+@read", "-@write", "+get", "-get", "+set", "+config|get", "-config|set", "+nosuch", "+@nosuch", "+config|nosuch",
		"-@dangerous", "+@string", "+select|0", "+get|x", "+acl", "(+get ~x)", "(+@all ~v* &a)", "(+get", "(+nosuch)", "(on)", "()", "+", "-", "+acl|whoami",
		"-config", "+client|id", "+@keyspace", "-@connection", "+debug|digest", "+@", "(~*", "+eval")
}

// special draws lines that the facts do not describe well enough; nil where they do.
func (g *generator) special(c *protocol.Command) []string {
	line := func(words ...string) []string { return append(strings.Split(c.Name, "|"), words...) }
	n := g.r.IntN(10)
	switch c.Name {
	case "eval", "eval_ro":
		return line(append([]string{g.pick(scripts.sources...)}, g.called()...)...)
	case "evalsha", "evalsha_ro":
		return line(append([]string{g.sha()}, g.called()...)...)
	case "fcall", "fcall_ro":
		return line(append([]string{g.pick("f1", "f2", "f3", "f4", "f12", "f15", "nosuch", "F1")}, g.called()...)...)
	case "script|load":
		return line(g.pick(scripts.sources...))
	case "function|load":
		words := []string{g.pick(scripts.libraries...)}
		if n < 6 {
			words = []string{g.pick(scripts.libraries[:4]...)}
		}
		if g.one(2) {
			words = append([]string{g.pick("REPLACE", "replace", "REPLACE", "x")}, words...)
		}
		return line(words...)
	case "function|restore":
		words := []string{g.libraries[g.r.IntN(len(g.libraries))]}
		if g.one(2) {
			words = append(words, g.pick("FLUSH", "APPEND", "REPLACE", "x", "flush"))
		}
		return line(words...)
	case "acl|setuser":
		words := []string{g.pick(users[:len(users)-1]...)}
		if g.one(30) {
			words[0] = g.pick("", "a b", "\x00")
		}
		for range g.r.IntN(6) {
			words = append(words, g.rule())
		}
		return line(words...)
	case "acl|deluser":
		if n == 0 {
			return line("default")
		}
		return line(g.pick("u1", "u2", "nosuch"))
	case "acl|dryrun":
		return line(append([]string{g.pick(append(users, "nosuch")...)}, g.callable()...)...)
	case "command|getkeys", "command|getkeysandflags":
		for {
			inner, argv := g.next()
			if strings.HasPrefix(inner.Name, "command|") {
				continue
			}
			if n == 0 {
				argv = slices.Concat([]string{g.pick("nosuch", "ping", "config", "get", "sort", "eval", "migrate", "zunionstore")}, argv[1:])
			}
			return line(argv...)
		}
	case "config|set":
		var words []string
		for range 1 + g.r.IntN(3) {
			p := g.parameter()
			words = append(words, p.name, g.pick(p.values...))
		}
		if n == 0 {
			words = append(words, g.pick("nosuch", "hz", "port", "databases", "HZ"))
		}
		if n < 3 {
			words = append(words, "nosuch", "1")[:len(words)+g.r.IntN(3)]
		}
		return line(words...)
	case "client|kill":
		return line([][]string{{}, {"1.2.3.4:5"}, {"ID", "99999999"}, {"ID", "abc"}, {"ID", "0"}, {"ADDR", "1.2.3.4:5"}, {"LADDR", "1.2.3.4:5", "SKIPME", "no"},
			{"TYPE", "replica"}, {"TYPE", "slave"}, {"TYPE", "master"}, {"TYPE", "nosuch"}, {"USER", "nosuch"}, {"USER", "u1"}, {"ID", "99999999", "TYPE", "normal"},
			{"ID", "99999999", "TYPE", "pubsub"}, {"ID", "99999999", "SKIPME", "yes"}, {"SKIPME", "maybe"}, {"ID"}, {"ID", "1", "x"}, {"x", "y"},
			{"ID", "99999999", "USER", "default"}}[g.r.IntN(21)]...)
	case "client|pause":
		return line([][]string{{"0"}, {"1"}, {"1", "WRITE"}, {"1", "ALL"}, {"1", "x"}, {"abc"}, {"-1"}, {"1", "write", "x"}, {},
			{"9223372036854775807000"}}[g.r.IntN(10)]...)
	case "hello":
		words := []string{g.pick("2", "3", "3", "2", "4", "a", "", "-1")}
		if g.one(2) { // the invalid part comes first: Redis 7.0 would execute options before it
			words = append(words, [][]string{{"AUTH", "default", "x"}, {"AUTH", "u1", "p1"}, {"AUTH", "u2"}, {"SETNAME", "me"}, {"SETNAME", "a b"}, {"x"}, {"SETNAME"},
				{"AUTH", "u3", "p2"}, {"AUTH", "u1", "p1", "SETNAME", "me"}, {"x", "SETNAME", "me"}}[g.r.IntN(10)]...)
		}
		return line(words[min(len(words), g.r.IntN(20)/19):]...)
	case "auth":
		return line([][]string{{"p1"}, {"default", ""}, {"u1", "p1"}, {"u2", "p1"}, {"u1", "wrong"}, {"nosuch", "x"}, {}, {"a", "b", "c"}, {"u3", "p2"},
			{"default", "x"}}[n]...)
	case "wait":
		return line(g.pick("0", "0", "-1", "abc"), g.pick("0", "1", "abc", "-1"))
	case "command|docs", "command|info": // of all commands would be half a megabyte
		words := []string{"get"}
		for range g.r.IntN(3) {
			words = append(words, g.pick("zadd", "config", "config|get", "nosuch", "GET", "xinfo|stream", "config|nosuch", "get|x"))
			if name := g.commands[g.r.IntN(len(g.commands))].Name; name != "cluster" { // which has subcommands of Redis itself
				words = append(words, name)
			}
		}
		return line(words...)
	case "latency|reset", "object|freq", "object|idletime":
		return nil
	case "client|unblock":
		return line([][]string{{"99999999"}, {"abc"}, {"99999999", "ERROR"}, {"99999999", "TIMEOUT"}, {"0", "x"}, {}, {"-1"}, {"99999999", "error", "x"}}[n%8]...)
	case "info":
		return line(g.pick("server", "clients", "all", "nosuch", "everything"))
	}
	return nil
}

// InScript returns a line that has a script run argv.
func inScript(g *generator, argv []string) []string {
	source := g.pick("return redis.call(unpack(ARGV))", "return redis.pcall(unpack(ARGV))")
	return append([]string{"EVAL", source, "0"}, argv...)
}

// session draws lines for a client of its own, around one.
func (g *generator) session(c *protocol.Command, argv []string) scenario {
	u := scenario{name: c.Name, argv: argv, alone: true}
	add := func(name string, argv []string) {
		u.steps = append(u.steps, step{argv: argv, how: comparisonOf(name, argv)})
	}
	near := func() {
		for range 200 {
			other := g.commands[g.r.IntN(len(g.commands))]
			if other.Group == c.Group && !aboutData(other) && other.Name != "quit" {
				add(other.Name, g.line(other))
				return
			}
		}
	}
	if g.one(3) {
		switch c.Group {
		case "connection":
			for _, words := range g.opening() {
				add(judge.FullName(words), words)
			}
		case "server":
			user := g.pick(users[:3]...)
			words := []string{"ACL", "SETUSER", user, "on", ">p1"}
			for range g.r.IntN(6) {
				words = append(words, g.rule())
			}
			add("acl|setuser", words)
			add("auth", []string{"AUTH", user, "p1"})
		case "pubsub":
			add("subscribe", []string{g.pick("SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE"), g.pick("a", "b", "a*", "*")})
		}
	}
	multi := g.one(5) && c.Group != "transactions"
	if multi || c.Name == "exec" && !g.one(5) || c.Name == "discard" && !g.one(5) {
		if g.one(3) {
			add("watch", []string{"WATCH", g.pick("v0", "v1", "h1", "z1", "nosuch")})
		}
		if g.one(4) {
			name, argv := g.data()
			add(name, argv)
		}
		add("multi", []string{"MULTI"})
	}
	for range g.r.IntN(4) {
		if g.one(2) {
			near()
			continue
		}
		name, argv := g.data()
		add(name, argv)
	}
	add(c.Name, argv)
	for range g.r.IntN(4) {
		if g.one(2) {
			near()
			continue
		}
		name, argv := g.data()
		add(name, argv)
	}
	if multi || c.Name == "multi" {
		add("exec", []string{"EXEC"})
	}
	// In a transaction, they would not come as EXEC says.
	if slices.ContainsFunc(u.steps, func(s step) bool { return strings.EqualFold(s.argv[0], "multi") }) {
		u.steps = slices.DeleteFunc(u.steps, func(s step) bool { return severalReplies(s.argv) })
	}
	// Redis 7.0 sends a client the events of its own commands in the middle of their replies.
	if slices.ContainsFunc(u.steps, func(s step) bool { return strings.HasSuffix(strings.ToLower(s.argv[0]), "subscribe") }) {
		u.steps = slices.DeleteFunc(u.steps, func(s step) bool {
			return !severalReplies(s.argv) && !slices.Contains([]string{"publish", "spublish", "ping", "pubsub", "reset"}, strings.ToLower(s.argv[0]))
		})
	}
	// With suppressed replies the end of QUIT is not observed.
	if slices.ContainsFunc(u.steps, func(s step) bool { return strings.EqualFold(s.argv[0], "quit") }) {
		u.steps = slices.DeleteFunc(u.steps, func(s step) bool { return judge.FullName(s.argv) == "client|reply" })
	}
	// Where lines may have no reply, or several, it is not known which reply is whose.
	if slices.ContainsFunc(u.steps, func(s step) bool { return severalReplies(s.argv) }) {
		u.steps = slices.DeleteFunc(u.steps, func(s step) bool { return s.how != exact })
	}
	return u
}

// severalReplies reports whether a line may be answered by other than one reply.
func severalReplies(argv []string) bool {
	name := strings.ToLower(argv[0])
	return strings.HasSuffix(name, "subscribe") || name == "quit" || name == "client" && len(argv) > 1 && strings.EqualFold(argv[1], "reply")
}

// opening is how a client may begin.
func (g *generator) opening() [][]string {
	switch g.r.IntN(4) {
	case 0:
		line := []string{"CLIENT", "TRACKING", "on"}
		for range g.r.IntN(4) {
			line = append(line, [][]string{{"BCAST"}, {"OPTIN"}, {"OPTOUT"}, {"NOLOOP"}, {"PREFIX", g.pick("v", "h", "")}, {"PREFIX", "s"}}[g.r.IntN(6)]...)
		}
		return [][]string{line, {"GET", g.pick("v1", "v0")}, {"SET", g.pick("v1", "v0"), "x"}, {"CLIENT", "TRACKINGINFO"}}
	case 1:
		return [][]string{{"CLIENT", "SETNAME", g.pick("me", "you")}, {"CLIENT", "GETNAME"}}
	case 2:
		return [][]string{{"HELLO", g.pick("2", "3")}}
	}
	return [][]string{{"SELECT", strconv.Itoa(g.r.IntN(3))}}
}

// watched draws a transaction that watches keys that other clients change.
func (g *generator) watched() scenario {
	u := scenario{name: "watch"}
	_, first := g.data()
	keys := []string{g.pick("v0", "v1", "h1", "z1", "s1", "l1", "x1")}
	if len(first) > 1 {
		keys = append(keys, first[1])
	}
	u.argv = append([]string{"WATCH"}, keys...)
	on := func(client int, argv []string) { u.steps = append(u.steps, step{argv: argv, client: client}) }
	on(1, u.argv)
	if g.one(5) {
		on(1, []string{"UNWATCH"})
	}
	between := func() {
		switch g.r.IntN(5) {
		case 0:
			on(g.pick0(), first)
		case 1:
			_, argv := g.data()
			on(g.pick0(), argv)
		case 2:
			on(g.pick0(), [][]string{{"FLUSHDB"}, {"FLUSHALL"}, {"SWAPDB", "0", "1"}, {"DEL", keys[0]}, {"EXPIRE", keys[0], "-1"}, {"SWAPDB", "1", "2"}}[g.r.IntN(6)])
		}
	}
	between()
	on(1, []string{"MULTI"})
	for range g.r.IntN(4) {
		_, argv := g.data()
		on(1, argv)
		between()
	}
	if g.one(20) {
		on(1, [][]string{{"WATCH", "a"}, {"MULTI"}, {"NOSUCH"}, {"GET"}}[g.r.IntN(4)])
	}
	on(1, []string{g.pick("EXEC", "EXEC", "EXEC", "EXEC", "DISCARD")})
	return u
}

// pick0 draws a client other than that of the transaction.
func (g *generator) pick0() int { return 2 * g.r.IntN(2) }

// awaited draws commands that block, and others that may unblock them.
func (g *generator) awaited(c *protocol.Command, argv []string) scenario {
	u := scenario{name: c.Name, argv: argv}
	patient := func(argv []string) []string {
		argv = slices.Clone(argv)
		last := func(i int) {
			if f, err := strconv.ParseFloat(argv[i], 64); err == nil && 0 < f && f < 1e6 {
				argv[i] = "0"
			}
		}
		for i := range argv {
			name := strings.ToLower(argv[0])
			if i > 0 && (i == 1 && strings.HasSuffix(name, "mpop") || i == len(argv)-1 && !strings.HasPrefix(name, "x") || strings.EqualFold(argv[i-1], "block")) {
				last(i)
			}
		}
		return argv
	}
	on := func(client int, argv []string, waits bool) {
		u.steps = append(u.steps, step{argv: argv, client: client, waits: waits, how: exact})
	}
	// Nothing there, mostly, so that it waits.
	keys := g.pick("l", "z", "x", "l", "z")
	switch {
	case strings.HasPrefix(c.Name, "bz"):
		keys = "z"
	case strings.HasPrefix(c.Name, "x"):
		keys = "x"
	case strings.HasPrefix(c.Name, "b"):
		keys = "l"
	}
	if keys != "x" && !g.one(4) {
		on(0, []string{"DEL", keys + "0", keys + "1", keys + "2", keys + "3"}, false)
	}
	u.argv = patient(argv)
	on(1, u.argv, true)
	if g.one(3) {
		on(2, patient(g.line(c)), true)
	}
	swap := []string{"SWAPDB", "0", "1"}
	if len(u.steps) > 1 && u.steps[len(u.steps)-1].client == 2 {
		swap = []string{"PING"} // the order in which two clients are served would depend on a hash table
	}
	for range 1 + g.r.IntN(4) {
		key := keys + strconv.Itoa(g.r.IntN(4))
		switch n := g.r.IntN(8); {
		case n < 2 && keys == "l":
			on(0, []string{g.pick("RPUSH", "LPUSH"), key, g.member(), g.member()}, false)
		case n < 2 && keys == "z":
			on(0, []string{"ZADD", key, "1", g.member(), "2", g.member()}, false)
		case n < 2:
			on(0, []string{"XADD", key, g.newStreamID(), "f", "v"}, false)
		case n == 2:
			on(0, [][]string{{"DEL", key}, {"SET", key, "x"}, {"RENAME", keys + "1", key}, swap, {"COPY", keys + "2", key, "REPLACE"},
				{"FLUSHALL"}}[g.r.IntN(6)], false)
		case n == 3:
			on(0, []string{"MULTI"}, false)
			for range 1 + g.r.IntN(3) {
				_, argv := g.data()
				on(0, argv, false)
			}
			on(0, []string{"EXEC"}, false)
		default:
			_, argv := g.data()
			on(0, argv, false)
		}
	}
	return u
}

// block is lines that a client sends at once. In a line, # and a digit stand for the ID of a
// client.
type block struct {
	client int
	lines  [][]string
}

// audience are the clients of a transaction: the first runs it, the others listen.
const audience = 5

// transacted draws transactions and scripts that send messages, change keys, and change who
// listens; and the clients beside them.
func (g *generator) transacted() (blocks []block) {
	key := func() string { return g.pick("k", "l") }
	channel := func() string {
		return g.pick("a", "b", "__keyspace@0__:k", "__keyevent@0__:set", "__keyevent@0__:del", "__redis__:invalidate")
	}
	pattern := func() string { return g.pick("__key*", "a*") } // they do not overlap: the order of patterns is a hash table's
	track := func() []string {
		line := []string{"CLIENT", "TRACKING", g.pick("on", "on", "off")}
		for range g.r.IntN(3) {
			line = append(line, [][]string{{"BCAST"}, {"NOLOOP"}, {"OPTIN"}, {"OPTOUT"}, {"REDIRECT", "#" + strconv.Itoa(g.r.IntN(audience))}}[g.r.IntN(5)]...)
		}
		return line
	}
	listen := func() []string {
		switch g.r.IntN(8) {
		case 0, 1:
			return []string{"SUBSCRIBE", channel()}
		case 2:
			return []string{"PSUBSCRIBE", pattern()}
		case 3:
			return []string{"SSUBSCRIBE", g.pick("a", "b")}
		case 4:
			return []string{g.pick("UNSUBSCRIBE", "SUNSUBSCRIBE"), channel()}
		case 5:
			return []string{"PUNSUBSCRIBE", pattern()}
		case 6:
			return []string{"GET", key()}
		}
		return track()
	}
	act := func() []string {
		switch g.r.IntN(20) {
		case 0, 1, 2:
			return listen()
		case 3, 4, 5:
			return []string{"PUBLISH", channel(), g.member()}
		case 6:
			return []string{"SPUBLISH", g.pick("a", "b"), g.member()}
		case 7, 8, 9, 10:
			return []string{"SET", key(), g.member()}
		case 11:
			return []string{"DEL", key()}
		case 12, 13:
			return []string{"GET", key()}
		case 14:
			return []string{"CONFIG", "SET", "notify-keyspace-events", g.pick("", "KA", "EA", "KEA", "Kg$", "KEA")}
		case 15:
			return []string{"CLIENT", "KILL", "ID", "#" + strconv.Itoa(g.r.IntN(audience))}
		case 16:
			return []string{g.pick("FLUSHDB", "FLUSHALL"), "ASYNC"} // otherwise the reply of Redis 8.6 waits for a thread
		case 17:
			return []string{"CLIENT", "CACHING", g.pick("yes", "no")}
		case 18:
			return []string{"HELLO", g.pick("2", "3")}
		}
		return []string{"NOSUCH"}
	}
	script := func() []string {
		line := []string{"EVAL", "for _, l in ipairs(KEYS) do local w = {} for x in l:gmatch('[^ ]+') do w[#w+1] = x end redis.pcall(unpack(w)) end return #KEYS"}
		var calls []string
		for range 1 + g.r.IntN(5) {
			calls = append(calls, g.pick("set k 1", "set l 1", "del k", "publish a m", "publish b n", "spublish a o", "get k", "flushdb async",
				"config set notify-keyspace-events KEA", "client kill id #2", "incr n"))
		}
		return append(append(line, strconv.Itoa(len(calls))), calls...)
	}
	for i := range audience {
		b := block{client: i}
		if g.one(2) || i == 0 {
			b.lines = append(b.lines, []string{"HELLO", g.pick("2", "3", "3")})
		}
		for range g.r.IntN(4) {
			b.lines = append(b.lines, listen())
		}
		blocks = append(blocks, b)
	}
	for range 1 + g.r.IntN(3) {
		var lines [][]string
		switch g.r.IntN(4) {
		case 0:
			lines = append(lines, script())
		case 1:
			lines = append(lines, act(), act())
		default:
			lines = append(lines, []string{"MULTI"})
			for range 2 + g.r.IntN(6) {
				if g.one(8) {
					lines = append(lines, script())
				} else {
					lines = append(lines, act())
				}
			}
			lines = append(lines, []string{"EXEC"})
		}
		blocks = append(blocks, block{0, lines})
		if g.one(3) {
			blocks = append(blocks, block{1 + g.r.IntN(audience-1), [][]string{listen(), act()}})
		}
	}
	return blocks
}
