package transport

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/servertest/wait"
)

// TestArrange changes the number of loops while clients have sent nothing yet, are blocked, have
// subscribed, have sent a part of a command, or have a transaction, and checks that each loop
// then has its share of them, and that all are served.
func TestArrange(t *testing.T) {
	for _, kind := range kinds()[:2] {
		t.Run(kind[1], func(t *testing.T) {
			s := serve(t, kind, nil, "")
			c := s.client()
			c.send("PING\r\n")
			c.expect("+PONG\r\n")
			const each = 8
			var blocked, subscribed, partial, idle []*client
			for i := range each {
				b, u, p, e := s.client(), s.client(), s.client(), s.client()
				b.send(fmt.Sprint("BLPOP l", i, " 0\r\nECHO after\r\n"))
				u.send("SUBSCRIBE news\r\n")
				u.expect("*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n")
				p.send("*2\r\n$4\r\nECHO\r\n$6\r\nabc")
				blocked, subscribed, partial, idle = append(blocked, b), append(subscribed, u), append(partial, p), append(idle, e)
			}
			clients := func() (all []int) {
				for _, l := range s.loops.all {
					all = append(all, int(l.meter.clients.Load()))
				}
				return all
			}
			s.until("they are blocked", func() bool { return s.engine.Stats.BlockedClients == each })
			for _, n := range []int{3, 5, 2, 4, 1} {
				wait.Until(t, fmt.Sprint("each of ", n, " loops has its share"), func() bool {
					s.arrange(n) // asks again for clients that had something in progress
					all, total := clients(), 0
					for i, k := range all {
						if i < n && k == 0 || i >= n && k > 0 {
							return false
						}
						total += k
					}
					return total == 4*each+1
				})
				for i := range each {
					c.send("PUBLISH news x\r\n")
					c.expect(fmt.Sprintf(":%d\r\n", each))
					c.send(fmt.Sprint("RPUSH l", i, " v\r\n"))
					c.expect(":1\r\n")
					blocked[i].expect(fmt.Sprintf("*2\r\n$2\r\nl%d\r\n$1\r\nv\r\n$5\r\nafter\r\n", i))
					partial[i].send("def\r\n*2\r\n$4\r\nECHO\r\n$6\r\nabc")
					partial[i].expect("$6\r\nabcdef\r\n")
					idle[i].send("PING\r\n")
					idle[i].expect("+PONG\r\n")
					blocked[i].send(fmt.Sprint("BLPOP l", i, " 0\r\nECHO after\r\n"))
				}
				for _, u := range subscribed {
					for range each {
						u.expect("*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1\r\nx\r\n")
					}
				}
				s.until("they are blocked again", func() bool { return s.engine.Stats.BlockedClients == each })
			}
			for i := range each {
				for _, c := range []*client{blocked[i], subscribed[i], partial[i], idle[i]} {
					c.Close()
				}
			}
			s.left(1)
		})
	}
}

// TestReading checks the load between two readings: of a loop that slept for a quarter of a
// second, while another one began.
func TestReading(t *testing.T) {
	at := time.Now()
	before := reading{at: at, slept: 3 * time.Second, idle: 10 * time.Second, knownIdle: true, commands: 1000, clients: 4, all: 1}
	now := reading{at: at.Add(time.Second), slept: 3*time.Second + 250*time.Millisecond, idle: 11500 * time.Millisecond, knownIdle: true, commands: 6000, clients: 7, all: 2}
	l := now.load(before)
	if math.Abs(l.busy-0.75) > 1e-9 || l.rate != 5000 || l.idle != 1.5 || l.clients != 7 {
		t.Errorf("got %+v", l)
	}
	before.slept += time.Minute // more than is possible
	if l := now.load(before); l.busy != 1 {
		t.Errorf("got %+v", l)
	}
	now.knownIdle = false
	if l := now.load(before); l.idle != float64(l.procs) {
		t.Errorf("got %+v", l)
	}
}

// TestFollowLoad checks that the load is measured while clients send much, and no longer when
// they have stopped.
func TestFollowLoad(t *testing.T) {
	if unsettled {
		t.Skip("the number of loops is fixed")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	s := serve(t, kinds()[0], nil, "")
	var clients []*client
	for range 20 {
		clients = append(clients, s.client())
	}
	wait.Until(t, "the load is measured", func() bool {
		for range 100 {
			for _, c := range clients {
				c.send("PING\r\n")
			}
			for _, c := range clients {
				c.expect("+PONG\r\n")
			}
		}
		return s.loops.watched.Load()
	})
	wait.Until(t, "nothing measures an idle server", func() bool { return !s.loops.watched.Load() })
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loops.active != 1 {
		t.Errorf("%d loops serve no client", s.loops.active)
	}
}
