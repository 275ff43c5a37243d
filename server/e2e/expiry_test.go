package e2e

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/server/servertest"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

var expiry = flag.Duration("expiry", 0, "measure the delay of expiry events for this `time`, with a million pending deadlines, and the cost of a million deadlines at one instant")

// expiryServer returns a server and how many deadlines a test uses. With -expiry the
// server is a process, otherwise it runs in this process.
func expiryServer(t *testing.T) (s *peerServer, size int) {
	if *expiry == 0 {
		addr := servertest.Run(t).Addr()
		_, port, _ := net.SplitHostPort(addr)
		s = &peerServer{t: t}
		s.port, _ = strconv.Atoi(port)
		s.rdb = redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
		t.Cleanup(func() { s.rdb.Close() })
		return s, 5_000
	}
	bin := binary.Path(t)
	s = &peerServer{t: t, name: "zsetd", bin: bin, args: []string{"--save", ""}, dir: t.TempDir(), port: 7623}
	s.start()
	return s, 1_000_000
}

func (s *peerServer) do(args ...any) any {
	s.t.Helper()
	v, err := s.rdb.Do(context.Background(), args...).Result()
	if err != nil && err != redis.Nil {
		s.t.Fatalf("%v: %v", args, err)
	}
	return v
}

// arrival is the message of an expiry event, and the time when a subscriber received it.
type arrival struct {
	message string
	at      time.Time
}

// subscribed subscribes to channels and returns a Go channel that receives the messages.
func (s *peerServer) subscribed(channels ...string) chan arrival {
	s.t.Helper()
	nc, err := net.Dial("tcp", s.addr())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { nc.Close() })
	fmt.Fprintf(nc, "SUBSCRIBE %s\r\n", strings.Join(channels, " "))
	r := bufio.NewReaderSize(nc, 1<<16)
	next := func() (lines []string, err error) {
		head, err := r.ReadString('\n')
		if err != nil {
			return nil, err
		}
		n, _ := strconv.Atoi(strings.TrimSpace(head[1:]))
		for range n {
			line, err := r.ReadString('\n')
			if err == nil && line[0] == '$' {
				line, err = r.ReadString('\n')
			}
			if err != nil {
				return nil, err
			}
			lines = append(lines, strings.TrimSpace(line))
		}
		return lines, nil
	}
	for range channels {
		if _, err := next(); err != nil {
			s.t.Fatal(err)
		}
	}
	out := make(chan arrival, 1<<21)
	go func() {
		defer close(out)
		for {
			lines, err := next()
			if err != nil {
				return
			}
			out <- arrival{lines[2], time.Now()}
		}
	}()
	return out
}

// load sends commands until stop is closed: rate per second, in a batch every 5 ms.
// sent waits for the end and returns their number.
func (s *peerServer) load(rate int, stop chan struct{}) (sent func() int) {
	nc, err := net.Dial("tcp", s.addr())
	if err != nil {
		s.t.Fatal(err)
	}
	n, done := 0, make(chan struct{})
	go io.Copy(io.Discard, nc)
	go func() {
		defer close(done)
		defer nc.Close()
		r := rand.New(rand.NewPCG(1, 2))
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		var b []byte
		for begin := time.Now(); ; {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			b = b[:0]
			for due := int(time.Since(begin).Seconds() * float64(rate)); n < due; n++ {
				b = zadd(b, fmt.Sprintf("load:%03d", r.IntN(1000)), r.IntN(1e6), r.IntN(1000))
			}
			if _, err := nc.Write(b); err != nil {
				return
			}
		}
	}()
	return func() int { <-done; return n }
}

// stalls are the intervals in which this process was ready but not scheduled. Delays
// in them do not measure the server.
type stalls struct {
	stop, done chan struct{}
	from, to   []time.Time
}

// watchStalls records stalls until end.
func watchStalls() *stalls {
	s := &stalls{stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		for {
			select {
			case <-s.stop:
				return
			default:
			}
			due := time.Now().Add(500 * time.Microsecond)
			wait.Elapse(500 * time.Microsecond)
			if now := time.Now(); now.Sub(due) > time.Millisecond {
				s.from, s.to = append(s.from, due), append(s.to, now)
			}
		}
	}()
	return s
}

func (s *stalls) end() { close(s.stop); <-s.done }

// hit reports whether a stall overlaps the interval between two times.
func (s *stalls) hit(from, to time.Time) bool {
	i, _ := slices.BinarySearchFunc(s.to, from, time.Time.Compare)
	return i < len(s.from) && s.from[i].Before(to)
}

func percentiles(times []time.Duration) string {
	if len(times) == 0 {
		return "of none"
	}
	slices.Sort(times)
	at := func(p float64) time.Duration {
		return times[min(len(times)-1, int(p*float64(len(times))))].Round(time.Microsecond)
	}
	return fmt.Sprintf("p50 %v p99 %v p99.9 %v max %v of %d", at(.5), at(.99), at(.999), at(1), len(times))
}

// TestExpiryLag checks that each member, field and key has one expiry event, and not
// before its deadline, while many other deadlines are pending and another client sends
// commands. It logs the delays.
func TestExpiryLag(t *testing.T) {
	s, pending := expiryServer(t)
	d, rate := *expiry, 20_000
	if d == 0 {
		d, rate = 300*time.Millisecond, 2_000
	}
	s.do("CONFIG", "SET", "notify-keyspace-events", "ETxzh")
	far := time.Now().Add(24 * time.Hour).UnixMilli()
	for i := range pending / 10 { // sets of ten members
		if i%1000 != 0 {
			continue
		}
		s.pipe(min(1000, pending/10-i), func(j int, b []byte) []byte {
			b = fmt.Appendf(b, "ZADDEX pending:%d PXAT %d MEMBERS 10", i+j, far+int64(i+j)%1e6)
			for m := range 10 {
				b = fmt.Appendf(b, " %d m:%d", m, m)
			}
			return append(b, "\r\n"...)
		})
	}
	s.do("CONFIG", "RESETSTAT")
	for _, kind := range []string{"members", "fields", "keys"} {
		channel, add := "__subkeyevent@0__:zexpired", "ZADDEX due:%d PXAT %d MEMBERS 1 1 m:%d\r\n"
		switch kind {
		case "fields":
			channel, add = "__subkeyevent@0__:hexpired", "HSETEX dueh:%d PXAT %d FIELDS 1 m:%d v\r\n"
		case "keys":
			channel, add = "__keyevent@0__:expired", "SET due:%d:x v PXAT %d\r\n"
		}
		events := s.subscribed(channel)
		stop := make(chan struct{})
		sent := s.load(rate, stop)
		idle := watchStalls()
		nc, err := net.Dial("tcp", s.addr())
		if err != nil {
			t.Fatal(err)
		}
		go io.Copy(io.Discard, nc)
		r := rand.New(rand.NewPCG(3, 4))
		deadlines := map[string]int64{}
		begin := time.Now()
		for i := 0; time.Since(begin) < d; i++ {
			at := time.Now().UnixMilli() + 500 + r.Int64N(200)
			switch kind {
			case "keys":
				name := fmt.Sprintf("due:%d:x", i)
				deadlines[name] = at
				fmt.Fprintf(nc, add, i, at)
			default:
				member := fmt.Sprintf("m:%d", i)
				deadlines[member] = at
				fmt.Fprintf(nc, add, i%100, at, i)
			}
			wait.Pace(time.Millisecond)
		}
		var lags, quiet []time.Duration
		var came []arrival
		received := func(name string, at time.Time) {
			deadline, ok := deadlines[name]
			if !ok {
				t.Fatalf("%s: an unexpected or a second event of %q", kind, name)
			}
			delete(deadlines, name)
			lag := at.Sub(time.UnixMilli(deadline))
			if lag <= 0 {
				t.Errorf("%s: the event of %q is %v early", kind, name, -lag)
			}
			lags = append(lags, lag)
			came = append(came, arrival{at: at, message: name})
		}
		for timeout := time.After(time.Minute); len(deadlines) > 0; {
			select {
			case e := <-events:
				if kind == "keys" {
					received(e.message, e.at)
					continue
				}
				_, members, _ := strings.Cut(e.message, "|")
				for _, m := range strings.Split(members, ",") {
					_, m, _ = strings.Cut(m, ":")
					received(m, e.at)
				}
			case <-timeout:
				t.Fatalf("%s: %d events are missing", kind, len(deadlines))
			}
		}
		close(stop)
		n := sent()
		idle.end()
		nc.Close()
		for i, a := range came {
			if !idle.hit(a.at.Add(-lags[i]), a.at) {
				quiet = append(quiet, lags[i])
			}
		}
		t.Logf("%s, %d deadlines pending, %.0f commands a second: from the deadline to the subscriber %s; without stalls of this process: %s",
			kind, pending, float64(n)/time.Since(begin).Seconds(), percentiles(lags), percentiles(quiet))
	}
	t.Logf("INFO: expire_lag_percentiles_usec:%s", s.info("expire_lag_percentiles_usec"))
}

// TestMassExpiry checks many members, fields or keys that expire at one instant: reads
// do not find any of them from then on, and the server removes all. It logs the latency
// of other commands meanwhile.
func TestMassExpiry(t *testing.T) {
	for _, c := range []struct {
		name  string
		keys  func(size int) int
		fill  string // the command that sets a key and the deadline
		read  []string
		empty []string
	}{
		{"members of one set", func(int) int { return 1 }, "ZADDEX",
			[]string{"ZCARD k:0", "ZRANGE k:0 0 -1", "ZSCORE k:0 m:17", "EXISTS k:0", "SORT k:0 LIMIT 0 5", "ZUNION 2 k:0 other", "ZCOUNT k:0 -inf +inf"},
			[]string{":0", "*0", "$-1", ":0", "*0", "*1", ":0"}},
		{"members of many sets", func(size int) int { return size / 100 }, "ZADDEX",
			[]string{"ZCARD k:7", "ZRANGE k:8 0 -1", "ZSCORE k:9 m:17", "EXISTS k:10 k:11", "ZUNION 3 k:12 k:13 k:14"},
			[]string{":0", "*0", "$-1", ":0", "*0"}},
		{"fields of one hash", func(int) int { return 1 }, "HSETEX",
			[]string{"HLEN k:0", "HGETALL k:0", "HGET k:0 m:17", "EXISTS k:0", "HSCAN k:0 0", "SORT other BY nosort GET k:0->m:17"},
			[]string{":0", "*0", "$-1", ":0", "*2", "*1"}},
		{"keys", func(size int) int { return size }, "SET",
			[]string{"EXISTS k:0 k:1 k:2", "GET k:4", "TTL k:5", "TYPE k:6", "MGET k:7"},
			[]string{":0", "$-1", ":-2", "+none", "*1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, size := expiryServer(t)
			defer s.stopIfOwn()
			s.do("ZADD", "other", 1, "x")
			s.do("CONFIG", "SET", "notify-keyspace-events", "Tzhx")
			s.do("CONFIG", "SET", "latency-monitor-threshold", 1)
			keys := c.keys(size)
			in := time.Duration(size) * 12 * time.Microsecond
			at := time.Now().Add(time.Second/2 + in).UnixMilli()
			per := size / keys
			batch := min(per, 100)
			s.pipe(size/batch, func(i int, b []byte) []byte {
				if c.fill == "SET" {
					return fmt.Appendf(b, "SET k:%d v PXAT %d\r\n", i, at)
				}
				word := "MEMBERS"
				if c.fill == "HSETEX" {
					word = "FIELDS"
				}
				b = fmt.Appendf(b, "%s k:%d PXAT %d %s %d", c.fill, i%keys, at, word, batch)
				for m := range batch {
					name, score := fmt.Sprintf("m:%d", i/keys*batch+m), strconv.Itoa(m)
					if c.fill == "HSETEX" {
						b = fmt.Appendf(b, " %s %s", name, score)
						continue
					}
					b = fmt.Appendf(b, " %s %s", score, name)
				}
				return append(b, "\r\n"...)
			})
			if late := time.Since(time.UnixMilli(at)); late > -50*time.Millisecond {
				t.Skipf("filling took too long: it ended %v after the deadline", late)
			}
			var probing sync.WaitGroup
			stop := make(chan struct{})
			var pings, others []time.Duration
			probe := func(times *[]time.Duration, command string) {
				probing.Add(1)
				nc, err := net.Dial("tcp", s.addr())
				if err != nil {
					t.Fatal(err)
				}
				go func() {
					defer probing.Done()
					defer nc.Close()
					buf := make([]byte, 256)
					for {
						select {
						case <-stop:
							return
						default:
						}
						sent := time.Now()
						fmt.Fprintf(nc, "%s\r\n", command)
						if _, err := nc.Read(buf); err != nil {
							return
						}
						if sent.UnixMilli() >= at-20 {
							*times = append(*times, time.Since(sent))
						}
						wait.Pace(100 * time.Microsecond)
					}
				}()
			}
			probe(&pings, "PING")
			probe(&others, "ZADD other 1 x")
			wait.Elapse(time.Until(time.UnixMilli(at)) + 2*time.Millisecond)
			reader, err := net.Dial("tcp", s.addr())
			if err != nil {
				t.Fatal(err)
			}
			defer reader.Close()
			r := bufio.NewReader(reader)
			var first time.Duration
			for i, command := range c.read {
				sent := time.Now()
				fmt.Fprintf(reader, "%s\r\n", command)
				line, err := r.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				first = max(first, time.Since(sent))
				if got := strings.TrimSpace(line); got != c.empty[i] {
					t.Errorf("%s: %q, want %q", command, got, c.empty[i])
				}
				fmt.Fprintf(reader, "ECHO end-%d\r\n", i)
				for !bytes.HasPrefix([]byte(line), []byte("end-"+strconv.Itoa(i))) {
					if line, err = r.ReadString('\n'); err != nil {
						t.Fatal(err)
					}
				}
			}
			gone := func() bool {
				n, _ := strconv.Atoi(s.info("expired_subkeys"))
				if c.fill == "SET" {
					n, _ = strconv.Atoi(s.info("expired_keys"))
				}
				return n == size
			}
			if !wait.Holds(gone) {
				t.Fatalf("expired_subkeys:%s expired_keys:%s, want %d", s.info("expired_subkeys"), s.info("expired_keys"), size)
			}
			took := time.Since(time.UnixMilli(at))
			close(stop)
			probing.Wait()
			if n := s.do("DBSIZE"); n != int64(1) {
				t.Errorf("DBSIZE: got %v, want 1", n)
			}
			t.Logf("%d %s: all removed after %v; the slowest read of a due key %v; PING %s; ZADD of another key %s; LATENCY %v; lag %s",
				size, c.name, took.Round(time.Millisecond), first.Round(10*time.Microsecond), percentiles(pings), percentiles(others),
				s.do("LATENCY", "LATEST"), s.info("expire_lag_percentiles_usec"))
		})
	}
}

func (s *peerServer) stopIfOwn() {
	if s.cmd != nil {
		s.stop()
	}
}
