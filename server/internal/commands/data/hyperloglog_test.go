package data_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/internal/values/hyperloglog"
	"github.com/zsetd/zsetd/server/servertest/rerun"

	"github.com/zsetd/zsetd/server/servertest/judge"
)

// The same PFADDs and PFMERGEs give the same bytes here and in Redis, through
// all sizes and both encodings.
func TestHyperLogLogAsRedis(t *testing.T) {
	rerun.Skip(t)
	dial := judge.Start(t)
	real := judge.NewPeer(dial(), dial())
	ours := judge.Own(t, server.Options{})
	r := rand.New(rand.NewPCG(7, 7))
	var lines [][]string
	for _, limit := range []string{"3000", "0", "100", "100000"} {
		lines = append(lines, []string{"FLUSHALL"}, []string{"CONFIG", "SET", "hll-sparse-max-bytes", limit})
		for range 50 {
			key := "h" + strconv.Itoa(r.IntN(6))
			argv := []string{"PFADD", key}
			for range r.IntN(4 << r.IntN(8)) {
				b := make([]byte, r.IntN(20))
				for i := range b {
					b[i] = byte(r.IntN(256))
				}
				argv = append(argv, string(b))
			}
			if r.IntN(10) == 0 {
				argv = []string{"PFMERGE", key, "h" + strconv.Itoa(r.IntN(6)), "none", "h" + strconv.Itoa(r.IntN(6))}
			}
			lines = append(lines, argv, []string{"GET", key}, []string{"PFCOUNT", key}, []string{"GET", key},
				[]string{"PFCOUNT", "h0", "h1", "h2"}, []string{"PFDEBUG", "ENCODING", key})
			if r.IntN(50) == 0 {
				lines = append(lines, []string{"DEL", key})
			}
		}
	}
	var want, got []string
	for part := range slices.Chunk(lines, 50) { // each has its own deadline
		for _, p := range []struct {
			peer    *judge.Peer
			replies *[]string
		}{{real, &want}, {ours, &got}} {
			replies, err := p.peer.Pipeline(part)
			if err != nil {
				t.Fatalf("%.300s", err)
			}
			*p.replies = append(*p.replies, replies...)
		}
	}
	for i, line := range lines {
		if got[i] != want[i] {
			t.Fatalf("%.100q (line %d)\nredis: %.2000q\nzsetd: %.2000q", line, i, want[i], got[i])
		}
	}
}

// The estimates of random registers are those of Redis: of few elements, of many, and of
// more than any client has.
func TestEstimatesAsRedis(t *testing.T) {
	rerun.Skip(t)
	dial := judge.Start(t)
	real := judge.NewPeer(dial(), dial())
	ours := judge.Own(t, server.Options{})
	r := rand.New(rand.NewPCG(8, 3))
	for range 500 {
		b, err := hyperloglog.Dense(hyperloglog.New())
		if err != nil {
			t.Fatal(err)
		}
		b[hyperloglog.CardinalityEnd] |= hyperloglog.OutOfDate
		middle, width := r.NormFloat64()*20+10, r.Float64()*5
		for register := range hyperloglog.Registers {
			count := min(max(middle+r.NormFloat64()*width, 0), 51)
			at, change, n := hyperloglog.DenseChange(b, register, uint8(count))
			copy(b[at:], change[:n])
		}
		lines := [][]string{{"SET", "k", string(b)}, {"PFCOUNT", "k"}}
		want, err := real.Pipeline(lines)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ours.Pipeline(lines)
		if err != nil {
			t.Fatal(err)
		}
		if got[1] != want[1] {
			t.Fatalf("values about %g: redis estimates %q, zsetd %q", middle, want[1], got[1])
		}
	}
}

// TestRegisters checks PFSELFTEST, and the registers that PFDEBUG GETREG replies.
func TestRegisters(t *testing.T) {
	rerun.Skip(t)
	p := judge.Own(t, server.Options{})
	if got := p.Do("PFSELFTEST"); got != "+OK\r\n" {
		t.Error(got)
	}
	p.Do("PFADD", "k", "a")
	const register = 12711 // of a, which makes it 2
	want := "*16384\r\n" + strings.Repeat(":0\r\n", register) + ":2\r\n" + strings.Repeat(":0\r\n", 16384-register-1)
	if got := p.Do("PFDEBUG", "GETREG", "k"); got != want {
		t.Errorf("GETREG: %.100q", got)
	}
	if got := p.Do("PFDEBUG", "ENCODING", "k"); got != "+dense\r\n" {
		t.Errorf("after GETREG: %q", got)
	}
}

// TestRandomRepliesAreBounded checks that a reply of elements with repetitions that is longer
// than proto-max-bulk-len becomes an error.
func TestRandomRepliesAreBounded(t *testing.T) {
	p := judge.Own(t, server.Options{Config: map[string]string{"proto-max-bulk-len": "1mb"}})
	text := strings.Repeat("x", 1<<18)
	p.Do("HSET", "h", "f", text)
	p.Do("SADD", "s", text)
	p.Do("ZADD", "z", "1", text)
	for _, line := range []string{"HRANDFIELD h -COUNT WITHVALUES", "SRANDMEMBER s -COUNT", "ZRANDMEMBER z -COUNT", "ZRANDMEMBER z -COUNT WITHSCORES"} {
		for count, short := range map[string]bool{"3": true, "20": false} {
			const want = "-ERR value is out of range\r\n"
			if got := p.Do(strings.Fields(strings.Replace(line, "COUNT", count, 1))...); short && (got[0] != '*' || len(got) < 3<<18) || !short && got != want {
				t.Errorf("%s, %s elements: %d bytes, %.50q", line, count, len(got), got)
			}
		}
	}
	if got := p.Do("PING"); got != "+PONG\r\n" {
		t.Error(got)
	}
}
