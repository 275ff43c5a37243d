//go:build linux

package faults

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/servertest/wait"
)

// Clients that die while they wait are noticed at once, and take no element with them
// but those that were sent to them before.
func TestDeadWaiters(t *testing.T) {
	const dying, elements = 500, 2000
	run(t, all, func(t *testing.T, k kind) {
		p := k.start(t)
		other := p.dial()
		defer other.close()
		before := p.state(other)
		await := func(n int) (list []*client) {
			for range n {
				c := p.dial()
				c.send("BZPOPMIN", "z0", "z1", "0")
				list = append(list, c)
			}
			return list
		}
		blocked := func(n int) {
			t.Helper()
			if !eventually(patience, func() bool { return p.info("blocked_clients", other) == fmt.Sprint(n) }) {
				t.Fatalf("%s: %s clients are blocked, not %d", p.name, p.info("blocked_clients", other), n)
			}
		}
		late := lateness(t)
		var took time.Duration
		for range 3 { // on a machine that is busy the best counts
			doomed := await(dying)
			blocked(dying)
			for i, c := range doomed {
				if i%2 == 0 {
					c.close()
				} else {
					c.dies()
				}
			}
			begin := time.Now()
			blocked(0)
			if took = time.Since(begin); took < 500*time.Millisecond {
				break
			}
			t.Logf("%s: the last of the dead is noticed after %v", p.name, took)
		}
		atMost(p, "the last of the dead is noticed after", took, 500*time.Millisecond+late)
		for i := range 100 {
			other.want(int64(1), "ZADD", "z0", fmt.Sprint(i), fmt.Sprint("after", i))
		}
		other.want(int64(100), "ZCARD", "z0")
		other.want(int64(1), "DEL", "z0")

		// The clients die while elements are added. They read the elements that were sent
		// before the server noticed, so that these can be counted.
		var mu sync.Mutex
		popped := map[string]int{}
		received := func(v any) {
			mu.Lock()
			defer mu.Unlock()
			popped[v.([]any)[1].(string)]++
		}
		var deaths, lives sync.WaitGroup
		doomed := await(dying)
		blocked(dying)
		start := make(chan struct{})
		for _, c := range doomed {
			at := time.Duration(rand.IntN(300)) * time.Millisecond
			deaths.Go(func() {
				defer c.close()
				<-start
				wait.Pace(at)
				if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
					t.Error(err)
				}
				for {
					v, err := c.tryReceive(patience)
					if err != nil {
						return
					}
					received(v)
				}
			})
		}
		living := await(20)
		blocked(dying + len(living))
		for _, c := range living {
			lives.Go(func() {
				defer c.close()
				for {
					v, err := c.tryReceive(patience)
					if err != nil {
						if p.ours() {
							t.Error(err)
						}
						return
					}
					if received(v); v.([]any)[1] == "last" {
						return
					}
					c.Write(command("BZPOPMIN", "z0", "z1", "0"))
				}
			})
		}
		close(start)
		for i := range elements {
			other.want(int64(1), "ZADD", fmt.Sprint("z", i%2), fmt.Sprint(i), fmt.Sprint("e", i))
			if i%100 == 0 {
				wait.Pace(10 * time.Millisecond)
			}
		}
		deaths.Wait()
		limit := patience
		if !p.ours() {
			limit = time.Second
		}
		if !eventually(limit, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(popped) == elements
		}) {
			for _, c := range living {
				c.close()
			}
			lives.Wait()
			if p.ours() {
				t.Errorf("%s: %d of %d elements were lost", p.name, elements-len(popped), elements)
			}
			t.Logf("%s: %d of %d elements were lost", p.name, elements-len(popped), elements)
			return
		}
		blocked(len(living))
		for range living { // each client receives the same element, one after the other
			wait.Until(t, "a client has taken the previous element", func() bool { return other.do("ZADD", "z0", "0", "last") != int64(0) })
		}
		lives.Wait()
		for member, n := range popped {
			if n != 1 && member != "last" {
				t.Errorf("%s: %s was popped %d times", p.name, member, n)
			}
		}
		p.alive()
		p.returns(before, 2*time.Second+late, other)
	})
}
