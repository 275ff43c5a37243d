package differential

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/servertest/rerun"
)

// extremes are numbers on which arithmetic overflows, or that would use all memory or
// time without a check.
var extremes = []string{
	"-9223372036854775808", "-9223372036854775807", "-4611686018427387904", "-9007199254740993", "-4294967297", "-2147483649", "-2147483648",
	"-100000000", "-1", "0", "1", "100000000", "2147483647", "2147483648", "4294967295", "4294967296", "9007199254740993",
	"4611686018427387904", "9223372036854775807", "9223372036854775808", "18446744073709551615",
	"inf", "-inf", "nan", "1e308", "-1e308", "5e-324",
}

// everyType are lines that make keys of all types, as the generator names them.
var everyType = []string{
	"FLUSHALL", "SELECT 0",
	"SET v0 hello", "SET v1 12", "SET v2 1.5", "SETRANGE v3 300 x",
	"RPUSH l0 a b c d 1 2 3", "RPUSH l1 x y z a", "RPUSH l2 3 1 2",
	"SADD s0 a b c 1 2", "SADD s1 1 2 3", "SADD s2 b c d e",
	"HSET h0 a 1 b 2 c 1.5 d text", "HSET h1 a b", "HSET h2 1 2",
	"ZADD z0 1 a 2 b 3 c 4 d", "ZADD z1 1 a 1 b", "ZADD z2 -inf x inf y 1.5 z",
	"GEOADD g0 10.5 10.5 a 11 11 b 12 12 c", "GEOADD g1 10 10 a",
	"PFADD p0 a b c", "PFADD p1 c d",
	"XADD x0 1-1 a b", "XADD x0 2-1 a b", "XADD x0 3-1 c d e f", "XADD x1 5 a b",
	"XGROUP CREATE x0 g 0", "XREADGROUP GROUP g c COUNT 2 STREAMS x0 >", "XGROUP CREATE x1 g 0",
}

// TestNumbersAreBounded puts extreme numbers in every numeric argument of every command,
// and checks that nothing panics, that time and memory are bounded, and that an error
// changes nothing.
func TestNumbersAreBounded(t *testing.T) {
	rerun.Skip(t)
	srv, err := newSubject(fuzzOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	srv.LimitScripts(64 << 20)
	d := srv.Direct()
	defer d.Close()
	say := func(line string) []byte {
		argv, _ := protocol.SplitArgs(nil, []byte(line))
		return d.Do(argv)
	}
	fresh := ""
	refill := func() {
		say("SELECT 0")
		// Not every change of bytes is a change: BITFIELD with OVERFLOW FAIL may only
		// lengthen a string, as in Redis.
		if sum, _ := srv.Digest(); sum == fresh {
			return
		}
		for _, line := range everyType {
			if r := say(line); len(r) == 0 || r[0] == '-' {
				t.Fatalf("%s: %q", line, r)
			}
		}
		fresh, _ = srv.Digest()
	}
	// Each argument position is tried that often, in different lines.
	const each, lines = 1, 40
	g := newGenerator(rand.New(rand.NewPCG(7, 7)), allCommands())
	places, tried := map[string]int{}, 0
	for _, c := range allCommands() {
		names := strings.Count(c.Name, "|") + 1
		d.Renew()
		for range lines {
			drawn := g.line(c)
			argv := make([][]byte, len(drawn))
			for i, w := range drawn {
				argv[i] = []byte(w)
			}
			if len(argv) > 20 || !mayBeFuzzed(argv) {
				continue
			}
			for i := names; i < len(argv); i++ {
				if _, err := strconv.ParseFloat(drawn[i], 64); err != nil {
					continue // no number is expected here
				}
				place := c.Name + " " + strconv.Itoa(i)
				if word := strings.ToUpper(drawn[i-1]); len(word) > 1 && strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" {
					place = c.Name + " " + word // the value of an option
				}
				if places[place]++; places[place] > each {
					continue
				}
				for _, n := range extremes {
					argv[i] = []byte(n)
					refill()
					direct(t, srv, d, argv, fresh)
					tried++
				}
				argv[i] = []byte(drawn[i])
			}
		}
	}
	t.Logf("%d lines, numbers in %d places", tried, len(places))
}
