package judge

import (
	"slices"
	"strings"
)

// Difference is something in which zsetd differs from Redis on purpose.
type Difference struct {
	Name   string
	Judge  string // the version of Redis that replies so, or "redis": all versions of it; "valkey"; "newer": 8.6 and Valkey; "": all
	Reason string
	After  []string // commands, whose replies do not matter
	Try    string   // the command that is answered differently
	Redis  string   // the reply of Redis, encoded
	Ours   string

	// Covers recognizes the difference among random commands; nil if they
	// do not cause it, or if other code recognizes it.
	Covers func(argv []string, redis, ours string) bool
}

// Applies reports whether a server that zsetd is compared with has the other reply.
func (d *Difference) Applies(to string) bool {
	return d.Judge == "" || d.Judge == to || d.Judge == "redis" && to != "valkey" || d.Judge == "newer" && to != Version
}

// lowest is the lowest of 64-bit integers.
const lowest = "-9223372036854775808"

// Differences are all of them that the differential test meets. Those in what
// it does not compare stand in the transcripts, marked @zsetd.
func Differences() []Difference {
	return append(valkeyDifferences(), []Difference{
		{
			Name:   "ties of SORT with LIMIT",
			Reason: "elements of equal weight keep their order, so that pages neither overlap nor leave gaps; Redis sorts unstably here",
			After:  []string{"RPUSH k e d c b a f g h"},
			Try:    "SORT k BY none_* ALPHA LIMIT 0 2",
			Redis:  "*2\r\n$1\r\nh\r\n$1\r\nd\r\n",
			Ours:   "*2\r\n$1\r\ne\r\n$1\r\nd\r\n",
		},
		{
			Name:   "channels of live queries",
			Reason: "a channel whose name begins with `__query@` is a live query: only the server sends messages to it",
			Try:    "PUBLISH __query@0__:x m",
			Redis:  ":0\r\n",
			Ours:   "-ERR only the server sends messages to the channel of a live query\r\n",
		},
		{
			Name:   "ties of GEOSEARCH with COUNT",
			Reason: "places at the same distance keep the order that they have without COUNT; Redis sorts unstably here",
			After:  []string{"GEOADD k 1 1 a 1 1 b 1 1 c 1 1 d 1 1 e 1 1 f 1 1 g 1 1 h"},
			Try:    "GEOSEARCH k FROMLONLAT 1 1 BYRADIUS 1 km ASC COUNT 2",
			Redis:  "*2\r\n$1\r\nh\r\n$1\r\nb\r\n",
			Ours:   "*2\r\n$1\r\na\r\n$1\r\nb\r\n",
		},
		{
			Name:   "SORT of small sorted sets with tiny scores",
			Judge:  "7.0",
			Reason: "Redis reads errno without clearing it first, and reports an older error as one of the elements",
			After:  []string{"ZADD k 1e-310 7"},
			Try:    "SORT k",
			Redis:  "-ERR One or more scores can't be converted into double\r\n",
			Ours:   "*1\r\n$1\r\n7\r\n",
		},
		{
			Name:   "SET that compares",
			Judge:  "7.0",
			Reason: "IFEQ, IFNE, IFDEQ and IFDNE are options since Redis 8.4",
			Try:    "SET k v IFEQ x",
			Redis:  "-ERR syntax error\r\n",
			Ours:   "$-1\r\n",
		},
		{
			Name:   "the keys of GEORADIUS with several STORE",
			Judge:  "redis",
			Reason: "permissions are checked for the key that it writes to, which is the last, as in Valkey 9; Redis checks the keys of the first STORE and the first STOREDIST",
			Try:    "COMMAND GETKEYS GEORADIUS k 0 0 1 m STORE a STORE b",
			Redis:  "*2\r\n$1\r\nk\r\n$1\r\na\r\n",
			Ours:   "*2\r\n$1\r\nk\r\n$1\r\nb\r\n",
			Covers: func(argv []string, redis, ours string) bool {
				stores := 0
				for _, a := range argv {
					if strings.EqualFold(a, "STORE") || strings.EqualFold(a, "STOREDIST") {
						stores++
					}
				}
				return stores > 1 && slices.ContainsFunc(argv[1:], func(a string) bool {
					return strings.EqualFold(a, "GEORADIUS") || strings.EqualFold(a, "GEORADIUSBYMEMBER")
				})
			},
		},
		{
			Name:   "references of small integers",
			Judge:  "7.0",
			Reason: "Redis 8.6 shares no value",
			After:  []string{"SET k 1"},
			Try:    "OBJECT REFCOUNT k",
			Redis:  ":2147483647\r\n",
			Ours:   ":1\r\n",
			Covers: func(argv []string, redis, _ string) bool { return strings.Contains(redis, ":2147483647\r\n") },
		},
		{
			Name:   "small lists",
			Judge:  "7.0",
			Reason: "since Redis 7.2 the encoding of a list that fits in one listpack is listpack",
			After:  []string{"RPUSH k a"},
			Try:    "OBJECT ENCODING k",
			Redis:  "$9\r\nquicklist\r\n",
			Ours:   "$8\r\nlistpack\r\n",
		},
		{
			Name:   "small sets",
			Judge:  "7.0",
			Reason: "since Redis 7.2 the encoding of a small set with other members than integers is listpack",
			After:  []string{"SADD k a"},
			Try:    "OBJECT ENCODING k",
			Redis:  "$9\r\nhashtable\r\n",
			Ours:   "$8\r\nlistpack\r\n",
		},
		{
			Name:   "encoding of short strings",
			Judge:  "8.6",
			Reason: "a string of at most 44 bytes is embstr, as in Redis 7.0; since 8.2 the length of the key counts, too",
			After:  []string{"SET a-key-of-many-letters-which-with-the-string-has-more-than-64-bytes v"},
			Try:    "OBJECT ENCODING a-key-of-many-letters-which-with-the-string-has-more-than-64-bytes",
			Redis:  "$3\r\nraw\r\n",
			Ours:   "$6\r\nembstr\r\n",
		},
		{
			Name:   "saturation of low numbers in BITFIELD",
			Judge:  "8.6",
			Reason: "they become the lowest number of the field; a difference overflows in Redis, which takes them for high ones",
			After:  []string{"BITFIELD k OVERFLOW SAT SET i62 0 -9223372036854775807"},
			Try:    "BITFIELD k GET i62 0",
			Redis:  "*1\r\n:2305843009213693951\r\n",
			Ours:   "*1\r\n:-2305843009213693952\r\n",
		},
		{
			Name:   "indexes of LSET beyond 32 bits",
			Judge:  "8.6",
			Reason: "they are out of range; Redis 8.6 takes the lowest 32 bits of them",
			After:  []string{"RPUSH k a"},
			Try:    "LSET k " + lowest + " b",
			Redis:  "+OK\r\n",
			Ours:   "-ERR index out of range\r\n",
		},
		{
			Name:   "the lowest count of LREM",
			Judge:  "7.0",
			Reason: "since Redis 8.4 it is out of range",
			Try:    "LREM k " + lowest + " a",
			Redis:  ":0\r\n",
			Ours:   "-ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807\r\n",
			Covers: func(argv []string, _, ours string) bool {
				return strings.EqualFold(argv[0], "LREM") && strings.Contains(ours, "value must between -9223372036854775807")
			},
		},
		{
			Name:   "the lowest rank of LPOS",
			Judge:  "7.0",
			Reason: "Redis 7.0 negates it and overflows; since 7.2 it is out of range",
			After:  []string{"RPUSH k a"},
			Try:    "LPOS k a RANK " + lowest,
			Redis:  ":0\r\n",
			Ours:   "-ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807\r\n",
		},
		{
			Name:   "timeouts beyond the end of time",
			Judge:  "7.0",
			Reason: "Redis 7.0 overflows and calls some of them negative; since 7.2 they are out of range",
			Try:    "BZPOPMIN k 1e30",
			Redis:  "-ERR timeout is negative\r\n",
			Ours:   "-ERR timeout is out of range\r\n",
			Covers: func(argv []string, redis, ours string) bool {
				return strings.Contains(redis, "ERR timeout is negative") && strings.Contains(ours, "out of range")
			},
		},
		{
			Name:   "ZRANK WITHSCORE",
			Judge:  "7.0",
			Reason: "this option exists since Redis 7.2, so the errors for wrong arguments differ",
			Try:    "ZRANK k m x",
			Redis:  "-ERR wrong number of arguments for 'zrank' command\r\n",
			Ours:   "-ERR syntax error\r\n",
		},
		{
			Name:   "XREAD from the last entry",
			Judge:  "7.0",
			Reason: "since Redis 7.4 the ID + stands for the last entry",
			After:  []string{"XADD k 1-1 f v"},
			Try:    "XREAD STREAMS k +",
			Redis:  "-ERR Invalid stream ID specified as stream command argument\r\n",
			Ours:   "*1\r\n*2\r\n$1\r\nk\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n",
		},
		{
			Name:   "consumers without entries",
			Judge:  "7.0",
			Reason: "since Redis 7.2 XREADGROUP, XCLAIM and XAUTOCLAIM create the consumer even if they return no entry",
			After:  []string{"XGROUP CREATE k g $ MKSTREAM", "XREADGROUP GROUP g c STREAMS k >", "XCLAIM k g d 0 1-1", "XAUTOCLAIM k g e 0 0"},
			Try:    "XGROUP CREATECONSUMER k g c",
			Redis:  ":1\r\n",
			Ours:   ":0\r\n",
		},
		{
			Name:   "activity of consumers",
			Judge:  "7.0",
			Reason: "since Redis 7.2 XINFO CONSUMERS also has the time at which a consumer last received an entry",
			After:  []string{"XGROUP CREATE k g $ MKSTREAM", "XGROUP CREATECONSUMER k g c"},
			Try:    "XINFO CONSUMERS k g",
			Redis:  "*1\r\n*6\r\n$4\r\nname\r\n$1\r\nc\r\n$7\r\npending\r\n:0\r\n$4\r\nidle\r\n:0\r\n",
			Ours: "*1\r\n*8\r\n$4\r\nname\r\n$1\r\nc\r\n$7\r\npending\r\n:0\r\n$4\r\nidle\r\n:0\r\n" +
				"$8\r\ninactive\r\n:-1\r\n",
		},
		{
			Name:  "rules of users",
			Judge: "7.0",
			Reason: "shown as they were given, as since Redis 7.2; 7.0 shows equivalent rules, which " +
				"might allow commands that a later version brings",
			After: []string{"ACL SETUSER of-rules +@read +@write"},
			Try:   "ACL GETUSER of-rules",
			Redis: "*12\r\n$5\r\nflags\r\n*1\r\n$3\r\noff\r\n$9\r\npasswords\r\n*0\r\n$8\r\ncommands\r\n" +
				"$20\r\n-@all +@write +@read\r\n$4\r\nkeys\r\n$0\r\n\r\n$8\r\nchannels\r\n$0\r\n\r\n$9\r\nselectors\r\n*0\r\n",
			Ours: "*12\r\n$5\r\nflags\r\n*2\r\n$3\r\noff\r\n$16\r\nsanitize-payload\r\n$9\r\npasswords\r\n*0\r\n$8\r\ncommands\r\n" +
				"$20\r\n-@all +@read +@write\r\n$4\r\nkeys\r\n$0\r\n\r\n$8\r\nchannels\r\n$0\r\n\r\n$9\r\nselectors\r\n*0\r\n",
		},
		{
			Name:   "flags of users",
			Judge:  "7.0",
			Reason: "since Redis 7.2 each user has sanitize-payload or skip-sanitize-payload",
			After:  []string{"ACL SETUSER of-flags"},
			Try:    "ACL GETUSER of-flags",
			Redis: "*12\r\n$5\r\nflags\r\n*1\r\n$3\r\noff\r\n$9\r\npasswords\r\n*0\r\n$8\r\ncommands\r\n" +
				"$5\r\n-@all\r\n$4\r\nkeys\r\n$0\r\n\r\n$8\r\nchannels\r\n$0\r\n\r\n$9\r\nselectors\r\n*0\r\n",
			Ours: "*12\r\n$5\r\nflags\r\n*2\r\n$3\r\noff\r\n$16\r\nsanitize-payload\r\n$9\r\npasswords\r\n*0\r\n$8\r\ncommands\r\n" +
				"$5\r\n-@all\r\n$4\r\nkeys\r\n$0\r\n\r\n$8\r\nchannels\r\n$0\r\n\r\n$9\r\nselectors\r\n*0\r\n",
			Covers: func(argv []string, _, ours string) bool {
				return strings.EqualFold(argv[0], "ACL") && strings.Contains(ours, "sanitize-payload")
			},
		},
		{
			Name:   "order of a client's own messages",
			Judge:  "7.0",
			Reason: "since Redis 7.2 messages of a command to its own client come after the reply",
			After:  []string{"HELLO 3", "SUBSCRIBE c"},
			Try:    "PUBLISH c m",
			Redis:  ">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n",
			Ours:   ":1\r\n",
		},
		{
			Name:   "the keys of a command without arguments",
			Judge:  "7.0",
			Reason: "since Redis 7.2 COMMAND GETKEYS takes the name of a command alone",
			Try:    "COMMAND GETKEYS PING",
			Redis:  "-ERR wrong number of arguments for 'command|getkeys' command\r\n",
			Ours:   "-ERR The command has no key arguments\r\n",
		},
		{
			Name:   "unknown commands without arguments",
			Judge:  "7.0",
			Reason: "since Redis 7.2 the error of an unknown command mentions no arguments where there are none",
			Try:    "NOSUCH",
			Redis:  "-ERR unknown command 'NOSUCH', with args beginning with: \r\n",
			Ours:   "-ERR unknown command 'NOSUCH'\r\n",
			Covers: func(_ []string, redis, ours string) bool {
				return strings.Contains(redis, "ERR unknown command ") &&
					strings.ReplaceAll(redis, ", with args beginning with: \r\n", "\r\n") == ours
			},
		},
		{
			Name:   "digits of doubles",
			Judge:  "7.0",
			Reason: "since Redis 7.2 a double has about as few digits as identify it, instead of 17",
			After:  []string{"ZADD k 0.1 m"},
			Try:    "ZSCORE k m",
			Redis:  "$19\r\n0.10000000000000001\r\n",
			Ours:   "$3\r\n0.1\r\n",
			Covers: func(_ []string, redis, ours string) bool { return SameNumbers(redis, ours, 0) },
		},
		{
			Name:   "denied commands",
			Judge:  "7.0",
			Reason: "since Redis 7.2 the error NOPERM names the user",
			After:  []string{"ACL SETUSER denied on nopass", "AUTH denied x"},
			Try:    "PING",
			Redis:  "-NOPERM this user has no permissions to run the 'ping' command\r\n",
			Ours:   "-NOPERM User denied has no permissions to run the 'ping' command\r\n",
			Covers: func(_ []string, redis, ours string) bool {
				return strings.Contains(redis, "NOPERM") && strings.Contains(ours, "NOPERM") || strings.HasPrefix(ours, "$") && strings.Contains(ours, "has no permissions")
			},
		},
		{
			Name:   "bits of missing keys",
			Judge:  "7.0",
			Reason: "since Redis 7.2 BITCOUNT and BITPOS check their arguments before the key",
			Try:    "BITCOUNT k 0 x",
			Redis:  ":0\r\n",
			Ours:   "-ERR value is not an integer or out of range\r\n",
			Covers: func(argv []string, _, ours string) bool {
				return strings.HasPrefix(strings.ToLower(argv[0]), "bit") && strings.Contains(ours, "-ERR ")
			},
		},
		{
			Name:   "cursors",
			Judge:  "7.0",
			Reason: "since Redis 7.4 a cursor is no negative number, and not empty",
			Try:    "SCAN -1",
			Redis:  "*2\r\n$1\r\n0\r\n*0\r\n",
			Ours:   "-ERR invalid cursor\r\n",
			Covers: func(_ []string, _, ours string) bool { return strings.Contains(ours, "-ERR invalid cursor") },
		},
		{
			Name:   "hexadecimal bounds",
			Judge:  "7.0",
			Reason: "since Redis 8.6 bounds of scores are decimal and do not begin with spaces",
			Try:    "ZCOUNT k 0x10 20",
			Redis:  ":0\r\n",
			Ours:   "-ERR min or max is not a float\r\n",
			Covers: func(_ []string, _, ours string) bool { return strings.Contains(ours, "-ERR min or max is not a float") },
		},
		{
			Name:   "weights of SORT",
			Judge:  "7.0",
			Reason: "since Redis 8.6 the numbers by which SORT sorts are decimal, do not begin with spaces, and are rounded to 0 or infinity if they are out of range",
			After:  []string{"RPUSH k 0x10"},
			Try:    "SORT k",
			Redis:  "*1\r\n$4\r\n0x10\r\n",
			Ours:   "-ERR One or more scores can't be converted into double\r\n",
			Covers: func(_ []string, redis, ours string) bool {
				return strings.Contains(redis+ours, "-ERR One or more scores can't be converted into double")
			},
		},
		{
			Name:   "blocking commands of scripts",
			Judge:  "7.0",
			Reason: "since Redis 7.2 scripts may call commands that block, which reply as at their timeout",
			Try:    "EVAL \"return redis.pcall('BLPOP', 'k', 0)\" 0",
			Redis:  "-ERR This Redis command is not allowed from script\r\n",
			Ours:   "$-1\r\n",
			Covers: func(_ []string, redis, _ string) bool {
				return strings.Contains(redis, "not allowed from script") || strings.Contains(redis, "BLOCK option from scripts")
			},
		},
		{
			Name:   "BITCOUNT with a start only",
			Judge:  "redis",
			Reason: "as in Valkey 9 the end may be left out",
			After:  []string{"SET k a"},
			Try:    "BITCOUNT k 0",
			Redis:  "-ERR syntax error\r\n",
			Ours:   ":3\r\n",
			Covers: func(argv []string, redis, _ string) bool {
				return strings.EqualFold(argv[0], "BITCOUNT") && len(argv) == 3 && strings.Contains(redis, "-ERR syntax error")
			},
		},
		{
			Name:   "the keys of comparing commands",
			Judge:  "8.6",
			Reason: "SET and DELEX with IFEQ and the like need permission to read the key, because their outcome reveals the value",
			After:  []string{"ACL SETUSER of-keys on nopass %W~* +@all"},
			Try:    "ACL DRYRUN of-keys SET k v IFEQ x",
			Redis:  "+OK\r\n",
			Ours:   "$53\r\nUser of-keys has no permissions to access the 'k' key\r\n",
			Covers: func(argv []string, redis, ours string) bool {
				return slices.ContainsFunc(argv, func(a string) bool { return len(a) > 3 && strings.EqualFold(a[:2], "if") }) &&
					(strings.Contains(ours, "no permissions to access") || strings.Contains(ours, "NOPERM"))
			},
		},
		{
			Name:   "HSETEX NX",
			Judge:  "8.6",
			Reason: "NX and XX are options of Valkey's",
			After:  []string{"DEL k"},
			Try:    "HSETEX k NX FIELDS 1 f v",
			Redis:  "-ERR unknown argument: NX\r\n",
			Ours:   ":1\r\n",
			Covers: func(_ []string, redis, _ string) bool {
				redis = strings.ToLower(redis)
				return strings.Contains(redis, "unknown argument: nx") || strings.Contains(redis, "unknown argument: xx")
			},
		},
		{
			Name:   "ZSCAN NOSCORES",
			Judge:  "redis",
			Reason: "this option is Valkey's",
			After:  []string{"ZADD k 1 a"},
			Try:    "ZSCAN k 0 NOSCORES",
			Redis:  "-ERR syntax error\r\n",
			Ours:   "*2\r\n$1\r\n0\r\n*1\r\n$1\r\na\r\n",
			Covers: func(argv []string, redis, _ string) bool {
				return strings.EqualFold(argv[0], "ZSCAN") && strings.Contains(redis, "-ERR syntax error")
			},
		},
		{
			Name:   "filters of clients",
			Judge:  "redis",
			Reason: "CLIENT LIST and CLIENT KILL have the filters of Valkey, too",
			Try:    "CLIENT LIST NAME nosuch",
			Redis:  "-ERR syntax error\r\n",
			Ours:   "$0\r\n\r\n",
			Covers: func(argv []string, _, ours string) bool {
				return strings.EqualFold(argv[0], "CLIENT") && len(argv) > 1 && (strings.EqualFold(argv[1], "LIST") || strings.EqualFold(argv[1], "KILL"))
			},
		},
		{
			Name:   "AGGREGATE COUNT",
			Reason: "the scores of ZUNION and ZINTER may be the sum of the weights, as in Redis 8.8",
			After:  []string{"ZADD k 5 m"},
			Try:    "ZUNION 1 k AGGREGATE COUNT",
			Redis:  "-ERR syntax error\r\n",
			Ours:   "*1\r\n$1\r\nm\r\n",
		},
		{
			Name:   "EXPIRETIME of the last deadline",
			Judge:  "newer",
			Reason: "it is rounded to the next second; Redis overflows",
			After:  []string{"SET k v", "PEXPIREAT k 9223372036854775807"},
			Try:    "EXPIRETIME k",
			Redis:  ":-9223372036854775\r\n",
			Ours:   ":9223372036854776\r\n",
			Covers: func(argv []string, redis, ours string) bool {
				return strings.Contains(redis, ":-9223372036854775\r\n") && strings.Contains(ours, ":9223372036854776\r\n")
			},
		},
		{
			Name:   "hashes that have lost their deadlines",
			Judge:  "8.6",
			Reason: "INFO does not count them in subexpiry, as in Valkey; Redis counts them until their last deadline would have come",
			After:  []string{"HSET k f v", "HEXPIRE k 100 FIELDS 1 f", "HPERSIST k FIELDS 1 f"},
			Try:    "INFO keyspace",
			Redis:  "$56\r\n# Keyspace\r\ndb0:keys=1,expires=0,avg_ttl=0,subexpiry=1\r\n\r\n",
			Ours:   "$56\r\n# Keyspace\r\ndb0:keys=1,expires=0,avg_ttl=0,subexpiry=0\r\n\r\n",
		},
		{
			Name:   "keys that are past their deadlines from the start",
			Judge:  "redis",
			Reason: "they do not exist; Redis counts them until it notices that",
			After:  []string{"SET k v EXAT 1"},
			Try:    "DBSIZE",
			Redis:  ":1\r\n",
			Ours:   ":0\r\n",
		},
		{
			Name:   "HELLO with an error",
			Judge:  "7.0",
			Reason: "a command with an error changes nothing; in Redis the client is logged in",
			After:  []string{"ACL SETUSER of-hello on nopass +@all", "HELLO 2 AUTH of-hello x NOSUCH"},
			Try:    "ACL WHOAMI",
			Redis:  "$8\r\nof-hello\r\n",
			Ours:   "$7\r\ndefault\r\n",
		},
	}...)
}
