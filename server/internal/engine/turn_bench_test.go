package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/base/process"
	"github.com/zsetd/zsetd/server/internal/engine"

	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

// BenchmarkTurn is a pipeline of 16 commands, from the bytes that have arrived to
// those that are to be written: no socket, no other clients. {r} is a number below
// the members of the large set, {k} one below a thousand, {n} one that grows.
func BenchmarkTurn(b *testing.B) {
	const members = 100_000
	srv, err := enginetest.New(engine.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer srv.Close()
	s := srv.NewSession(engine.Peer{FD: -1, Wake: func() {}})
	defer s.Close()
	var reader protocol.Reader
	var spare []byte
	var arena [][]byte // the arguments of a batch, one after the other
	var batch [][][]byte
	feed := func(in []byte) {
		for len(in) > 0 {
			n := copy(reader.Space(), in)
			in = in[n:]
			reader.Filled(n)
			limit := 0
			reader.Limits, limit = s.ReaderLimits()
			clear(arena)
			arena, batch = arena[:0], batch[:0]
			for len(batch) < limit {
				args, ok, err := reader.Next(arena)
				if err != nil {
					b.Fatal(err)
				}
				if !ok {
					break
				}
				batch = append(batch, args[len(arena):len(args):len(args)])
				arena = args
			}
			if len(batch) > 0 {
				_, out, _ := s.Turn(batch, spare)
				s.Written()
				spare = out[:0]
			}
		}
	}
	for i := range members {
		feed(fmt.Appendf(nil, "ZADD big %d member:%012d\r\n", i*7919%members, i))
		feed(fmt.Appendf(nil, "SET key:%012d value:0123456789\r\n", i))
	}
	feed([]byte("SET k value\r\n"))
	for _, command := range []string{
		"PING",
		"GET k",
		"GET key:{r}",
		"SET key:{r} value:0123456789",
		"INCR counter:{r}",
		"HSET hash field:{r} value:0123456789",
		"SADD members member:{r}",
		"LPUSH list value:0123456789",
		"PUBLISH news 0123456789abcdef",
		"ZADD big {r}.5 member:{r}",
		"ZADD set:{k} {r} member:{r}",
		"ZSCORE big member:{r}",
		"ZRANK big member:{r}",
		"ZRANGEBYSCORE big {r} +inf LIMIT 0 10",
		"ZRANGE big 50000 50099",
		"ZRANGE big 50000 50099 WITHSCORES",
		"LRANGE list 0 99",
		"HGETALL h100",
		"ZADD page:{k} {n} event:{n}\nZREMRANGEBYSCORE page:{k} -inf {o}\nZCARD page:{k}",
	} {
		b.Run(strings.ReplaceAll(command, "\n", ";"), func(b *testing.B) {
			b.ReportAllocs()
			for i := range 100 {
				feed(fmt.Appendf(nil, "LPUSH list value:%d\r\nHSET h100 field:%d value:%d\r\n", i, i, i))
			}
			pipelines := make([][]byte, 1024)
			n := 0
			for i := range pipelines {
				for range 16 {
					n++
					r := n * 7919 % members
					for line := range strings.Lines(command) {
						words := strings.Fields(line)
						pipelines[i] = fmt.Appendf(pipelines[i], "*%d\r\n", len(words))
						for _, w := range words {
							if at := strings.IndexByte(w, '{'); at >= 0 {
								number := map[byte]int{'r': r, 'k': r % 1000, 'n': n, 'o': n - 10000}[w[at+1]]
								w = fmt.Sprintf("%s%012d%s", w[:at], number, w[at+3:])
							}
							pipelines[i] = fmt.Appendf(pipelines[i], "$%d\r\n%s\r\n", len(w), w)
						}
					}
				}
			}
			for _, p := range pipelines {
				feed(p)
			}
			system, user := process.CPUTime()
			for i := 0; b.Loop(); i++ {
				feed(pipelines[i%len(pipelines)])
			}
			// With the garbage collector's part, and without that of other processes.
			system2, user2 := process.CPUTime()
			b.ReportMetric(float64(system2-system+user2-user)/float64(b.N*16), "cpu-ns/command")
		})
	}
}
