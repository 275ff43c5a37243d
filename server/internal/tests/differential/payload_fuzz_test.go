package differential

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/servertest/rerun"

	"github.com/zsetd/zsetd/server/servertest/judge"
)

// fuzzServer returns a server that takes payloads whatever their checksums, and a session.
func fuzzServer(t testing.TB) (srv *subject, d *Direct, say func(args ...string) []byte) {
	rerun.Skip(t)
	srv, err := newSubject(fuzzOptions())
	if err != nil {
		t.Fatal(err)
	}
	srv.SkipChecksums()
	srv.LimitScripts(64 << 20)
	d = srv.Direct()
	return srv, d, func(args ...string) []byte {
		argv := make([][]byte, len(args))
		for i, a := range args {
			argv[i] = []byte(a)
		}
		return d.Do(argv)
	}
}

// bulkOf returns what a bulk string holds.
func bulkOf(t testing.TB, reply []byte) string {
	v, _, err := protocol.Decode(reply)
	if err != nil {
		t.Fatal(err)
	}
	s, ok := v.(string)
	if !ok {
		t.Fatalf("%.100q is no string", reply)
	}
	return s
}

// restoredLines are commands on a value of any type.
const restoredLines = `
TYPE k
OBJECT ENCODING k
MEMORY USAGE k SAMPLES 0
APPEND k x
INCR k
SETRANGE k 3 x
BITCOUNT k
PFCOUNT k
PFADD k a
PFMERGE k k
LRANGE k 0 -1
LINSERT k BEFORE a b
LPUSH k a
LREM k 0 a
LSET k 0 x
LPOS k a COUNT 0
RPOPLPUSH k k
LTRIM k 1 -2
SMEMBERS k
SADD k x 5
SREM k a 1
SPOP k
SRANDMEMBER k -5
SSCAN k 0
SINTER k k
ZRANGE k 0 -1 WITHSCORES
ZADD k 5 x 6 y
ZINCRBY k 1 a
ZRANK k a
ZRANGEBYLEX k - + LIMIT 0 5
ZREMRANGEBYRANK k 0 0
ZPOPMAX k
ZUNION 2 k k
ZSCAN k 0
ZEXPIRE k 1000 MEMBERS 1 a
GEOSEARCH k FROMLONLAT 0 0 BYRADIUS 20000 km
HGETALL k
HSET k a b c d
HINCRBY k a 1
HDEL k a
HRANDFIELD k -5 WITHVALUES
HEXPIRE k 1000 FIELDS 1 c
HSCAN k 0
XRANGE k - +
XADD k * a b
XINFO STREAM k FULL
XREADGROUP GROUP g c STREAMS k >
XREADGROUP GROUP g c STREAMS k 0
XAUTOCLAIM k g d 0 0
XPENDING k g - + 10
XDEL k 0-1 1-1 5-1
XTRIM k MAXLEN 2
XGROUP CREATECONSUMER k g new
XGROUP DELCONSUMER k g c
XGROUP DESTROY k g
SORT k ALPHA
COPY k l REPLACE
DUMP k`

// FuzzRestore checks that values that RESTORE accepts are consistent, that every command
// can run on them, and that RESTORE of their DUMP gives an equal value.
func FuzzRestore(f *testing.F) {
	rerun.Skip(f)
	srv, d, say := fuzzServer(f)
	for _, lines := range transcriptLines(f) {
		say("FLUSHALL")
		for line := range strings.Lines(lines) {
			argv, ok := protocol.SplitArgs(nil, []byte(strings.TrimRight(line, "\r\n")))
			if ok && len(argv) > 0 && mayBeFuzzed(argv) && !outlasts(argv) && !bytes.EqualFold(argv[0], []byte("multi")) {
				d.Do(argv)
			}
		}
		d.Renew()
		keys, _, err := protocol.Decode(say("KEYS", "*"))
		if err != nil {
			f.Fatal(err)
		}
		for i, key := range keys.([]any) {
			if payload := bulkOf(f, say("DUMP", key.(string))); i < 3 && len(payload) < 1000 {
				f.Add([]byte(payload))
			}
		}
	}
	for _, n := range judge.NewerServers() {
		_, values := readJudged(f, n.Name)
		for _, key := range slices.Sorted(maps.Keys(values)) {
			if payload := values[key].payload; len(payload) < 1000 {
				f.Add([]byte(payload))
			}
		}
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		say("FLUSHALL")
		before, _ := srv.Digest()
		direct(t, srv, d, [][]byte{[]byte("RESTORE"), []byte("k"), []byte("0"), payload}, before)
		if again := bulkOrNil(say("DUMP", "k")); again != nil {
			if r := say("RESTORE", "again", "0", string(again)); string(r) != "+OK\r\n" {
				t.Fatalf("what DUMP makes of it is refused: %q", r)
			}
			say("DEL", "again")
			was, _ := srv.Digest()
			say("RESTORE", "k", "0", string(again), "REPLACE")
			if is, _ := srv.Digest(); is != was {
				t.Fatalf("it has changed on the way: %q", again)
			}
		}
		for line := range strings.Lines(restoredLines[1:]) {
			if bytes.HasPrefix(say("EXISTS", "k"), []byte(":0")) {
				say("RESTORE", "k", "0", string(payload))
			}
			argv, _ := protocol.SplitArgs(nil, []byte(strings.TrimSpace(line)))
			direct(t, srv, d, argv, "")
		}
	})
}

func bulkOrNil(reply []byte) []byte {
	v, _, err := protocol.Decode(reply)
	if s, ok := v.(string); ok && err == nil {
		return []byte(s)
	}
	return nil
}

// FuzzFunctions checks that FUNCTION RESTORE applies a payload completely or not at all,
// that its functions can be called, and that FUNCTION DUMP can be restored.
func FuzzFunctions(f *testing.F) {
	rerun.Skip(f)
	srv, d, say := fuzzServer(f)
	for _, codes := range [][]string{
		{"#!lua name=one\nredis.register_function('f1', function(keys, args) return #keys + 1 end)"},
		{"#!lua name=two\nlocal function g(k, a) return redis.call('SET', k[1], a[1] or 'x') end\n" +
			"redis.register_function{function_name='f2', callback=g, flags={'allow-stale'}, description='d'}"},
		{"#!lua name=a\nredis.register_function('fa', redis.call)", "#!lua name=b\nlocal t = {} redis.register_function('fb', function() t[#t+1] = 1 return t end)"},
		{"#!lua name=bad\nreturn 1 +", "#!lua name=loop\nwhile true do end"},
	} {
		say("FUNCTION", "FLUSH")
		for _, code := range codes {
			say("FUNCTION", "LOAD", code)
			f.Add(fmt.Appendf(nil, "\xf5%c%s", len(code), code)) // 64 bytes at most: longer ones are damaged
		}
		f.Add([]byte(bulkOf(f, say("FUNCTION", "DUMP"))))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		say("FLUSHALL")
		say("FUNCTION", "FLUSH")
		if direct(t, srv, d, [][]byte{[]byte("FUNCTION"), []byte("RESTORE"), payload}, ""); bytes.Equal(say("FUNCTION", "LIST"), []byte("*0\r\n")) {
			return
		}
		dump := bulkOf(t, say("FUNCTION", "DUMP"))
		if r := say("FUNCTION", "RESTORE", dump, "FLUSH"); string(r) != "+OK\r\n" {
			t.Fatalf("what FUNCTION DUMP makes of it is refused: %q", r)
		}
		if again := bulkOf(t, say("FUNCTION", "DUMP")); again != dump {
			t.Fatalf("it has changed on the way: %q, %q", dump, again)
		}
		for _, name := range []string{"f1", "f2", "fa", "fb"} {
			direct(t, srv, d, [][]byte{[]byte("FCALL"), []byte(name), []byte("1"), []byte("k"), []byte("a")}, "")
		}
	})
}

// FuzzScripts checks that every script ends when it is killed, stays within its memory
// limit, and leaves the data consistent.
func FuzzScripts(f *testing.F) {
	rerun.Skip(f)
	for _, lines := range transcriptLines(f) {
		for line := range strings.Lines(lines) {
			if argv, ok := protocol.SplitArgs(nil, []byte(strings.TrimRight(line, "\r\n"))); ok && len(argv) > 2 && protocol.EqualFold(argv[0], "EVAL") {
				f.Add(string(argv[1]))
			}
		}
	}
	srv, d, say := fuzzServer(f)
	n := 0
	f.Fuzz(func(t *testing.T, source string) {
		if n++; n%1000 == 0 { // drop the cached scripts
			say("SCRIPT", "FLUSH")
		}
		say("FLUSHALL")
		direct(t, srv, d, [][]byte{[]byte("EVAL"), []byte(source), []byte("2"), []byte("k1"), []byte("k2"), []byte("a1"), []byte("2")}, "")
		if r := say("EVAL", "return redis.call('PING')", "0"); string(r) != "+PONG\r\n" {
			t.Fatalf("after %.300q a valid script replies %q", source, r)
		}
	})
}
