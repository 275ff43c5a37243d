package server_test

import (
	"regexp"
	"slices"
	"strings"
)

// dialect is the dialect of the server that zsetd is compared with.
func dialect() string {
	if opponent() == "valkey" {
		return "valkey"
	}
	return "redis"
}

// inWordsOf returns a reply of zsetd, which has the words of Redis 8.6, as the server that
// it is compared with writes it.
func inWordsOf(opponent, reply string) string {
	if opponent != "valkey" {
		return reply
	}
	for _, d := range valkeyWords {
		reply = d.ours.ReplaceAllString(reply, d.valkey)
	}
	return reply
}

// differsInValkey reports whether a command is left out of random commands, because Valkey
// is the server that zsetd is compared with, and has another reply by design: ACL LIST and GETUSER
// without sanitize-payload and with databases, and commands of a cluster without one.
func differsInValkey(name string) bool {
	if opponent() != "valkey" {
		return false
	}
	return name == "acl|list" || name == "acl|getuser" || name == "lolwut" || strings.HasPrefix(name, "cluster")
}

// lacksInValkey reports whether Valkey is the server that zsetd is compared with, and lacks
// a parameter.
func lacksInValkey(parameter string) bool { return opponent() == "valkey" && parameter == "dynamic-hz" }

// differsOnlyInValkey reports whether a line is left out, because Valkey is the server that
// zsetd is compared with: it has a word of options that Redis has since 8.0, or
// a number in hexadecimal digits, a type of BITFIELD with a NUL, or more arguments than
// CLIENT PAUSE and UNBLOCK take, or a negative offset (see differences), or a line end that FUNCTION LIST writes into its error there.
func differsOnlyInValkey(argv []string) bool {
	if opponent() != "valkey" {
		return false
	}
	if len(argv) > 4 && strings.EqualFold(argv[0], "client") && (strings.EqualFold(argv[1], "pause") || strings.EqualFold(argv[1], "unblock")) {
		return true
	}
	if i := slices.IndexFunc(argv, func(w string) bool { return strings.EqualFold(w, "LIMIT") }); i > 0 && i+1 < len(argv) && strings.HasPrefix(argv[i+1], "-") {
		return true
	}
	if fullName(argv) == "function|list" && strings.Contains(strings.Join(argv, " "), "\r\n") {
		return true
	}
	return slices.ContainsFunc(argv, func(word string) bool {
		switch strings.ToUpper(word) {
		case "KEEPREF", "DELREF", "ACKED", "IDMP", "IDMPAUTO", "CLAIM", "DIFF", "DIFF1", "ANDOR", "ONE", "IFNE", "IFDEQ", "IFDNE", "0X1P3", "0X10", "I64\x00":
			return true
		}
		return false
	})
}

// calls reports whether a line is a command whose name begins so, or may call one.
func calls(argv []string, name string) bool {
	first := strings.ToUpper(argv[0])
	return strings.HasPrefix(first, name) || first == "EXEC" || strings.HasPrefix(first, "EVAL")
}

// valkeyDifferences are those from Valkey 9 with its dialect.
func valkeyDifferences() []difference {
	return []difference{
		{
			name:   "hexadecimal numbers",
			judge:  "valkey",
			reason: "scores, weights and places may have hexadecimal digits, as in Redis",
			try:    "ZADD k 0x10 m",
			redis:  "-ERR value is not a valid float\r\n",
			ours:   ":1\r\n",
		},
		{
			name:   "encoding of long strings",
			judge:  "valkey",
			reason: "a string of more than 44 bytes is raw, as in Redis; in Valkey those of up to 128 bytes are embstr, less the length of the key",
			after:  []string{"SET k 12345678901234567890123456789012345678901234567890"},
			try:    "OBJECT ENCODING k",
			redis:  "$6\r\nembstr\r\n",
			ours:   "$3\r\nraw\r\n",
		},
		{
			name:   "encoding of integers that a script sets",
			judge:  "valkey",
			reason: "it is int, as in Redis",
			after:  []string{"EVAL \"return redis.call('GETSET', KEYS[1], '2')\" 1 k"},
			try:    "OBJECT ENCODING k",
			redis:  "$6\r\nembstr\r\n",
			ours:   "$3\r\nint\r\n",
		},
		{
			name:   "digits of coordinates",
			judge:  "valkey",
			reason: "they have as few digits as identify them, as in Redis 8.6, instead of 17 after the point",
			after:  []string{"GEOADD k 12.12 11.8 m"},
			try:    "GEOPOS k m",
			redis:  "*1\r\n*2\r\n$20\r\n12.11999863386154175\r\n$20\r\n11.80000020816220996\r\n",
			ours:   "*1\r\n*2\r\n$18\r\n12.119998633861542\r\n$17\r\n11.80000020816221\r\n",
			covers: func(argv []string, redis, ours string) bool {
				return calls(argv, "GEO") && sameNumbers(redis, ours, 1e-6)
			},
		},
		{
			name:   "a NUL after the type of BITFIELD",
			judge:  "valkey",
			reason: "it is ignored, as in Redis",
			try:    "BITFIELD_RO k GET \"i8\\x00\" 0",
			redis:  "-ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.\r\n",
			ours:   "*1\r\n:0\r\n",
		},
		{
			name:   "CLIENT LIST ID without IDs",
			judge:  "valkey",
			reason: "it is an error, as in Redis",
			try:    "CLIENT LIST TYPE PUBSUB ID",
			redis:  "$0\r\n\r\n",
			ours:   "-ERR syntax error\r\n",
			covers: func(argv []string, _, ours string) bool {
				return fullName(argv) == "client|list" && strings.EqualFold(argv[len(argv)-1], "ID") && strings.Contains(ours, "-ERR syntax error")
			},
		},
		{
			name:   "the first of several errors of BITCOUNT",
			judge:  "valkey",
			reason: "the numbers are read before the unit, as in Redis",
			try:    "BITCOUNT k 0 x y",
			redis:  "-ERR syntax error\r\n",
			ours:   "-ERR value is not an integer or out of range\r\n",
			covers: func(argv []string, redis, ours string) bool {
				return strings.EqualFold(argv[0], "BITCOUNT") && strings.Contains(redis, "-ERR ") && strings.Contains(ours, "-ERR ")
			},
		},
		{
			name:   "the sign of zero",
			judge:  "valkey",
			reason: "the score -0 is shown as 0, as in Redis; Valkey shows the sign if the sorted set is large, or has a long member",
			after:  []string{"ZADD k -0 m 1 12345678901234567890123456789012345678901234567890123456789012345"},
			try:    "ZSCORE k m",
			redis:  "$2\r\n-0\r\n",
			ours:   "$1\r\n0\r\n",
			covers: func(argv []string, redis, ours string) bool { return calls(argv, "Z") && sameNumbers(redis, ours, 0) },
		},
		{
			name:   "negative offsets of ranges by member",
			judge:  "valkey",
			reason: "the range is empty, as in Redis; Valkey counts from the end if the sorted set is large, or has a long member",
			after:  []string{"ZADD k 0 m 0 12345678901234567890123456789012345678901234567890123456789012345"},
			try:    "ZRANGEBYLEX k - + LIMIT -1 5",
			redis:  "*1\r\n$1\r\nm\r\n",
			ours:   "*0\r\n",
		},
		{
			name:   "deadlines of fields after the year 287396",
			judge:  "valkey",
			reason: "a deadline is a float64, which has every millisecond until then",
			after:  []string{"HSET k f v"},
			try:    "HPEXPIREAT k 9223372036854775807 FIELDS 1 f",
			redis:  "*1\r\n:1\r\n",
			ours:   "-ERR invalid expire time in 'hpexpireat' command\r\n",
			covers: func(argv []string, _, ours string) bool {
				return calls(argv, "H") && strings.Contains(ours, "-ERR invalid expire time in 'h")
			},
		},
		{
			name:   "arguments that are too many",
			judge:  "valkey",
			reason: "CLIENT PAUSE and CLIENT UNBLOCK refuse them; Valkey ignores them",
			try:    "CLIENT UNBLOCK 99999999 ERROR x",
			redis:  ":0\r\n",
			ours:   "-ERR unknown subcommand or wrong number of arguments for 'UNBLOCK'. Try CLIENT HELP.\r\n",
		},
	}
}

// valkeyWords are the replies that Valkey 9.1 words in another way than Redis 8.6.
var valkeyWords = []struct {
	ours   *regexp.Regexp
	valkey string
}{
	{regexp.MustCompile(`(volatile|allkeys)-lrm, `), ""}, // policies that Valkey lacks
}
