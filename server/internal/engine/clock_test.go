package engine_test

import (
	"bufio"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/internal/base/clock"
	"github.com/zsetd/zsetd/server/servertest/wait"

	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

// steppedServer is a server whose system clock and suspend time the test controls.
type steppedServer struct {
	*enginetest.Server
	step, slept, up atomic.Int64
	log             enginetest.LogBuffer
}

func newStepped(t *testing.T, config map[string]string) *steppedServer {
	t.Helper()
	s := new(steppedServer)
	srv, err := enginetest.New(engine.Options{Config: config, Logger: slog.New(slog.NewTextHandler(&s.log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
	s.Server = srv
	s.up.Store(int64(time.Hour))
	srv.Mu.Lock()
	defer srv.Mu.Unlock()
	srv.Time.Read(clock.System{
		Wall:      func(t time.Time) int64 { return t.UnixNano() + s.step.Load() },
		Suspended: func() (time.Duration, bool) { return time.Duration(s.slept.Load()), true },
		Up:        func() time.Duration { return time.Duration(s.up.Load()) },
	})
	return s
}

// look makes the server read the system clock now.
func (s *steppedServer) look() {
	s.InTurn(func() { s.Time.Recheck() })
	s.InTurn(func() {})
}

func (s *steppedServer) must(t *testing.T, args ...any) any {
	t.Helper()
	reply, err := s.Do(context.Background(), args...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return reply
}

// waits runs a command, and sends how long it took and what it returned.
func (s *steppedServer) waits(args ...any) <-chan string {
	done := make(chan string, 1)
	start := time.Now()
	go func() {
		reply, err := s.Do(context.Background(), args...)
		took := time.Since(start)
		switch {
		case took < 390*time.Millisecond:
			done <- fmt.Sprintf("it took %v: %v, %v", took, reply, err)
		case took > 10*time.Minute: // a step is of an hour
			done <- fmt.Sprintf("it took %v: %v, %v", took, reply, err)
		default:
			done <- fmt.Sprint(reply, err)
		}
	}()
	return done
}

// TestClockSteps checks that nothing expires or times out early, late or twice when the
// system clock is set forward or back by an hour.
func TestClockSteps(t *testing.T) {
	for _, mode := range []string{"slew", "follow"} {
		for _, step := range []time.Duration{time.Hour, -time.Hour} {
			t.Run(fmt.Sprint(mode, step), func(t *testing.T) {
				t.Parallel()
				s := newStepped(t, map[string]string{"clock-steps": mode, "notify-keyspace-events": "KEx", "timeout": "1000"})
				nc, err := s.Dialer()(context.Background(), "", "")
				if err != nil {
					t.Fatal(err)
				}
				defer nc.Close()
				listener := bufio.NewReader(nc)
				fmt.Fprint(nc, "SUBSCRIBE __keyevent@0__:expired\r\n")
				events := make(chan string, 100)
				go func() {
					for {
						line, err := listener.ReadString('\n')
						if err != nil {
							return
						}
						events <- strings.TrimSpace(line)
					}
				}()
				idle, err := s.Dialer()(context.Background(), "", "")
				if err != nil {
					t.Fatal(err)
				}
				defer idle.Close()
				fmt.Fprint(idle, "SET idle 1\r\n")
				bufio.NewReader(idle).ReadString('\n')

				s.must(t, "SET", "soon", "1", "PX", 400)
				s.must(t, "SET", "later", "1", "EX", 1800)
				s.must(t, "SET", "much later", "1", "EX", 7200)
				s.must(t, "ZADD", "z", 1, "m")
				s.must(t, "ZEXPIRE", "z", 1800, "MEMBERS", 1, "m")
				id := s.must(t, "XADD", "stream", "*", "f", "v").(string)
				timeout := s.waits("BLPOP", "nothing", 0.4)
				s.must(t, "CLIENT", "PAUSE", 400, "WRITE")
				paused := s.waits("SET", "paused", 1)
				start := time.Now()
				s.step.Store(int64(step))
				s.look()
				if got := <-timeout; got != "<nil> <nil>" {
					t.Errorf("BLPOP: %s", got)
				}
				if got := <-paused; got != "OK<nil>" {
					t.Errorf("SET in a pause: %s", got)
				}

				ttl := s.must(t, "TTL", "much later").(int64)
				want := int64(7200)
				if mode == "follow" {
					want -= int64(step / time.Second)
				}
				if took := int64(time.Since(start)/time.Second) + 2; ttl < want-took || ttl > want {
					t.Errorf("a TTL of %d s, want %d", ttl, want)
				}
				gone := mode == "follow" && step > 0
				wait.Elapse(time.Until(start.Add(450 * time.Millisecond)))
				wantSoon := int64(0)
				if mode == "follow" && step < 0 {
					wantSoon = 1 // it is to be there until that time of the day
				}
				if n := s.must(t, "EXISTS", "soon"); n != wantSoon {
					t.Errorf("there are %v of the key whose time has come, want %d", n, wantSoon)
				}
				if n := s.must(t, "EXISTS", "later"); (n == int64(0)) != gone {
					t.Errorf("there are %v of the key that has half an hour to live", n)
				}
				if n := s.must(t, "ZCARD", "z"); (n == int64(0)) != gone {
					t.Errorf("there are %v of the member that has half an hour to live", n)
				}
				if next := s.must(t, "XADD", "stream", "*", "f", "v").(string); next <= id {
					t.Errorf("entry %s comes after %s", next, id)
				}
				info := s.must(t, "INFO", "server").(string)
				_, rest, _ := strings.Cut(info, "clock_difference_ms:")
				left := 0
				fmt.Sscan(rest, &left)
				if mode == "slew" {
					left -= int(step.Milliseconds()) // but what has been made up for
				}
				if !strings.Contains(info, "clock_steps:1\r") || left < -100 || left > 100 {
					t.Errorf("INFO: %s", info)
				}
				if n := strings.Count(s.log.String(), "the system clock was set"); n != 1 {
					t.Errorf("%d steps are logged: %s", n, s.log.String())
				}
				for _, line := range strings.Split(s.must(t, "CLIENT", "LIST").(string), "\n") {
					if !strings.Contains(line, "cmd=set") && !strings.Contains(line, "cmd=subscribe") {
						continue
					}
					if !strings.Contains(line, " idle=0 ") && !strings.Contains(line, " idle=1 ") && !strings.Contains(line, " idle=2 ") {
						t.Errorf("a client that was idle for a second: %s", line)
					}
				}
				fmt.Fprint(idle, "GET idle\r\n")
				if line, err := bufio.NewReader(idle).ReadString('\n'); line != "$1\r\n" {
					t.Errorf("the idle client has got %q, %v", line, err)
				}

				s.step.Store(0) // and back
				s.look()
				if n := s.must(t, "EXISTS", "much later"); n != int64(1) {
					t.Errorf("there are %v of the key that has two hours to live", n)
				}
				seen := map[string]int{}
				for len(events) > 0 {
					seen[<-events]++
				}
				for name, n := range seen {
					if (name == "soon" || strings.Contains(name, "later")) && n != 1 {
						t.Errorf("%s has expired %d times", name, n)
					}
				}
			})
		}
	}
}

// TestClockFollows checks that the server follows a step on a machine that has just
// started, and a step away from 1970, at once, and any difference on request.
func TestClockFollows(t *testing.T) {
	for name, prepare := range map[string]func(*steppedServer){
		"a young machine": func(s *steppedServer) { s.up.Store(int64(time.Minute)) },
		"1970":            func(s *steppedServer) { s.Advance(-time.Since(time.Unix(3600, 0))) },
		"":                func(s *steppedServer) {},
	} {
		s := newStepped(t, nil)
		prepare(s)
		before := s.Clock()
		s.step.Store(int64(2 * time.Hour))
		s.look()
		if moved := s.Clock().Sub(before); (moved > time.Hour) != (name != "") {
			t.Errorf("%s: the clock has gone on by %v", name, moved)
		}
		s.must(t, "CONFIG", "SET", "clock-steps", "follow")
		s.look()
		if moved := s.Clock().Sub(before); moved < 2*time.Hour || moved > 2*time.Hour+time.Minute {
			t.Errorf("%s: then the clock has gone on by %v", name, moved)
		}
	}
}

// TestClockSuspended checks that the time of a suspended machine counts at once.
func TestClockSuspended(t *testing.T) {
	s := newStepped(t, nil)
	s.must(t, "SET", "k", "1", "EX", 1800)
	s.must(t, "SET", "k2", "1", "EX", 7200)
	done := make(chan any, 1)
	go func() {
		reply, _ := s.Do(context.Background(), "BLPOP", "nothing", 1800)
		done <- reply
	}()
	wait.Until(t, "BLPOP waits", func() bool { return s.Blocked() > 0 })
	s.slept.Store(int64(time.Hour))
	s.step.Store(int64(time.Hour)) // the kernel also adds it to the time of day
	s.look()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("BLPOP goes on waiting")
	}
	if n := s.must(t, "EXISTS", "k", "k2"); n != int64(1) {
		t.Errorf("there are %v of two keys", n)
	}
	if info := s.must(t, "INFO", "server").(string); !strings.Contains(info, "clock_steps:0\r") || !strings.Contains(info, "clock_suspended_seconds:3600\r") {
		t.Errorf("INFO: %s", info)
	}
}

func BenchmarkClock(b *testing.B) {
	srv, err := enginetest.New(engine.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer srv.Close()
	b.Run("time.Now", func(b *testing.B) {
		for b.Loop() {
			time.Now()
		}
	})
	b.Run("clock", func(b *testing.B) {
		for b.Loop() {
			srv.Clock()
		}
	})
	b.Run("freeze", func(b *testing.B) {
		srv.Mu.Lock()
		defer srv.Mu.Unlock()
		for b.Loop() {
			srv.Freeze()
		}
	})
}

// TestClockStepsQueries checks that live queries follow a clock that is set back by an hour: a
// bound that moves shows what had passed, and an interval is not an hour longer.
func TestClockStepsQueries(t *testing.T) {
	s := newStepped(t, map[string]string{"clock-steps": "follow"})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	next := func(channel string) func() string {
		sub, err := s.Subscribe(ctx, false, channel)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { sub.Close() })
		messages, stop := iter.Pull2(sub.Messages())
		t.Cleanup(stop)
		return func() string {
			m, err, _ := messages()
			return fmt.Sprint(string(m.Payload), err)
		}
	}
	expect := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	s.must(t, "ZADD", "hits", "@now-10m", "a")
	moves := next("__query@0__:ZCOUNT hits @now-1m +inf")
	expect(moves(), `{"result":0}<nil>`)
	waits := next("__query@0,200ms__:GET k")
	expect(waits(), `{"result":null}<nil>`)
	s.step.Store(int64(-time.Hour))
	s.look()
	expect(moves(), `{"result":1}<nil>`)
	s.must(t, "SET", "k", "v")
	expect(waits(), `{"result":"v"}<nil>`)
}
