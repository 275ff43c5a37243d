package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/protocol"
)

// BenchmarkTurn is a pipeline of 16 commands, from the bytes that have arrived to
// those that are to be written: no socket, no other clients.
func BenchmarkTurn(b *testing.B) {
	const members = 100_000
	srv, err := New(Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer srv.Close()
	s := srv.newSession(peer{fd: -1, wake: func() {}})
	defer s.close()
	c := &conn{input: input{srv: srv, sess: s}}
	feed := func(in []byte) {
		c.reader.Filled(copy(c.reader.Space(), in))
		if err := c.parse(); err != nil {
			b.Fatal(err)
		}
		_, out, _ := s.turn(c.batch, c.spare)
		s.written()
		c.spare = out[:0]
	}
	for i := range members {
		feed(fmt.Appendf(nil, "ZADD big %d member:%d\r\n", i*7919%members, i))
	}
	feed([]byte("SET k value\r\n"))
	for _, command := range []string{"PING", "GET k", "SET k value", "ZADD big %d.5 member:%d", "ZSCORE big member:%d",
		"ZRANK big member:%d", "ZRANGEBYSCORE big %d +inf LIMIT 0 10"} {
		b.Run(command, func(b *testing.B) {
			var pipelines [64][]byte
			for i := range pipelines {
				for j := range 16 {
					n := (i*16 + j) * 7919 % members
					line := command
					switch {
					case command == "ZADD big %d.5 member:%d":
						line = fmt.Sprintf(command, n, n*31%members)
					case strings.Contains(command, "%"):
						line = fmt.Sprintf(command, n)
					}
					args, _ := protocol.SplitArgs(nil, []byte(line))
					pipelines[i] = fmt.Appendf(pipelines[i], "*%d\r\n", len(args))
					for _, a := range args {
						pipelines[i] = fmt.Appendf(pipelines[i], "$%d\r\n%s\r\n", len(a), a)
					}
				}
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				feed(pipelines[i%len(pipelines)])
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*16), "ns/command")
		})
	}
}
