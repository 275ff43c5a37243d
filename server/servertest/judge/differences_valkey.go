package judge

import "strings"

// Dialect is the dialect of the server that zsetd is compared with.
func Dialect(opponent string) string {
	if opponent == "valkey" {
		return "valkey"
	}
	return "redis"
}

// InWordsOf returns a reply of zsetd, which has the words of Redis 8.6, as the server that
// it is compared with writes it.
func InWordsOf(opponent, reply string) string {
	if opponent != "valkey" {
		return reply
	}
	return strings.NewReplacer("volatile-lrm, ", "", "allkeys-lrm, ", "").Replace(reply) // policies that Valkey lacks
}

// calls reports whether a line is a command whose name begins so, or may call one.
func calls(argv []string, name string) bool {
	first := strings.ToUpper(argv[0])
	return strings.HasPrefix(first, name) || first == "EXEC" || strings.HasPrefix(first, "EVAL")
}

// valkeyDifferences are those from Valkey 9 with its dialect.
func valkeyDifferences() []Difference {
	return []Difference{
		{
			Name:   "hexadecimal numbers",
			Judge:  "valkey",
			Reason: "scores, weights and places may have hexadecimal digits, as in Redis",
			Try:    "ZADD k 0x10 m",
			Redis:  "-ERR value is not a valid float\r\n",
			Ours:   ":1\r\n",
		},
		{
			Name:   "encoding of long strings",
			Judge:  "valkey",
			Reason: "a string of more than 44 bytes is raw, as in Redis; in Valkey those of up to 128 bytes are embstr, less the length of the key",
			After:  []string{"SET k 12345678901234567890123456789012345678901234567890"},
			Try:    "OBJECT ENCODING k",
			Redis:  "$6\r\nembstr\r\n",
			Ours:   "$3\r\nraw\r\n",
		},
		{
			Name:   "encoding of integers that a script sets",
			Judge:  "valkey",
			Reason: "it is int, as in Redis",
			After:  []string{"EVAL \"return redis.call('GETSET', KEYS[1], '2')\" 1 k"},
			Try:    "OBJECT ENCODING k",
			Redis:  "$6\r\nembstr\r\n",
			Ours:   "$3\r\nint\r\n",
		},
		{
			Name:   "digits of coordinates",
			Judge:  "valkey",
			Reason: "they have as few digits as identify them, as in Redis 8.6, instead of 17 after the point",
			After:  []string{"GEOADD k 12.12 11.8 m"},
			Try:    "GEOPOS k m",
			Redis:  "*1\r\n*2\r\n$20\r\n12.11999863386154175\r\n$20\r\n11.80000020816220996\r\n",
			Ours:   "*1\r\n*2\r\n$18\r\n12.119998633861542\r\n$17\r\n11.80000020816221\r\n",
			Covers: func(argv []string, redis, ours string) bool {
				return calls(argv, "GEO") && SameNumbers(redis, ours, 1e-6)
			},
		},
		{
			Name:   "a NUL after the type of BITFIELD",
			Judge:  "valkey",
			Reason: "it is ignored, as in Redis",
			Try:    "BITFIELD_RO k GET \"i8\\x00\" 0",
			Redis:  "-ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.\r\n",
			Ours:   "*1\r\n:0\r\n",
		},
		{
			Name:   "CLIENT LIST ID without IDs",
			Judge:  "valkey",
			Reason: "it is an error, as in Redis",
			Try:    "CLIENT LIST TYPE PUBSUB ID",
			Redis:  "$0\r\n\r\n",
			Ours:   "-ERR syntax error\r\n",
			Covers: func(argv []string, _, ours string) bool {
				return FullName(argv) == "client|list" && strings.EqualFold(argv[len(argv)-1], "ID") && strings.Contains(ours, "-ERR syntax error")
			},
		},
		{
			Name:   "the first of several errors of BITCOUNT",
			Judge:  "valkey",
			Reason: "the numbers are read before the unit, as in Redis",
			Try:    "BITCOUNT k 0 x y",
			Redis:  "-ERR syntax error\r\n",
			Ours:   "-ERR value is not an integer or out of range\r\n",
			Covers: func(argv []string, redis, ours string) bool {
				return strings.EqualFold(argv[0], "BITCOUNT") && strings.Contains(redis, "-ERR ") && strings.Contains(ours, "-ERR ")
			},
		},
		{
			Name:   "the sign of zero",
			Judge:  "valkey",
			Reason: "the score -0 is shown as 0, as in Redis; Valkey shows the sign if the sorted set is large, or has a long member",
			After:  []string{"ZADD k -0 m 1 12345678901234567890123456789012345678901234567890123456789012345"},
			Try:    "ZSCORE k m",
			Redis:  "$2\r\n-0\r\n",
			Ours:   "$1\r\n0\r\n",
			Covers: func(argv []string, redis, ours string) bool { return calls(argv, "Z") && SameNumbers(redis, ours, 0) },
		},
		{
			Name:   "negative offsets of ranges by member",
			Judge:  "valkey",
			Reason: "the range is empty, as in Redis; Valkey counts from the end if the sorted set is large, or has a long member",
			After:  []string{"ZADD k 0 m 0 12345678901234567890123456789012345678901234567890123456789012345"},
			Try:    "ZRANGEBYLEX k - + LIMIT -1 5",
			Redis:  "*1\r\n$1\r\nm\r\n",
			Ours:   "*0\r\n",
		},
		{
			Name:   "deadlines of fields after the year 287396",
			Judge:  "valkey",
			Reason: "a deadline is a float64, which has every millisecond until then",
			After:  []string{"HSET k f v"},
			Try:    "HPEXPIREAT k 9223372036854775807 FIELDS 1 f",
			Redis:  "*1\r\n:1\r\n",
			Ours:   "-ERR invalid expire time in 'hpexpireat' command\r\n",
			Covers: func(argv []string, _, ours string) bool {
				return calls(argv, "H") && strings.Contains(ours, "-ERR invalid expire time in 'h")
			},
		},
		{
			Name:   "arguments that are too many",
			Judge:  "valkey",
			Reason: "CLIENT PAUSE and CLIENT UNBLOCK refuse them; Valkey ignores them",
			Try:    "CLIENT UNBLOCK 99999999 ERROR x",
			Redis:  ":0\r\n",
			Ours:   "-ERR unknown subcommand or wrong number of arguments for 'UNBLOCK'. Try CLIENT HELP.\r\n",
		},
	}
}
