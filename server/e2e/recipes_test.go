package e2e

import (
	"context"
	"flag"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zsetd/zsetd/server"
)

var (
	full    = flag.Bool("full", false, "run the recipes with all their clients and events, for about a minute")
	rewrite = flag.Bool("rewrite", false, "write the measured costs and the replies of sessions into the documents")
)

// of returns how much of something a test of a recipe has: little, unless all
// is asked for.
func of(little, all int) int {
	if *full {
		return all
	}
	return little
}

// tooSlow says that a recipe has held, but with less going on than was meant. On
// a machine that has other work, and without -full, that is no failure.
func tooSlow(t *testing.T, what string) {
	t.Helper()
	if *full {
		t.Error(what)
		return
	}
	t.Log("too slow a machine:", what)
}

// recipe returns a function that makes clients of an empty server that tells of
// the members of sorted sets. The recipes use commands that only zsetd has.
func recipe(t *testing.T) func(...func(*redis.Options)) *redis.Client {
	t.Helper()
	if *against != "" {
		t.Skip("of our own server only")
	}
	t.Parallel()
	return connect(t, server.Options{Config: map[string]string{"notify-keyspace-events": "SVz"}})
}

// A meter counts what clients and server say to each other.
type meter struct {
	mu             sync.Mutex
	sent, received int
	trips          int // times that something was sent after something had been received
	heard          bool
}

// on makes a client count.
func (m *meter) on(o *redis.Options) {
	o.PoolSize = 1
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := new(net.Dialer).DialContext(ctx, network, addr)
		return &meteredConn{nc, m}, err
	}
}

// take returns the counts since the last take.
func (m *meter) take() cost {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := cost{m.trips, m.sent + m.received}
	m.sent, m.received, m.trips, m.heard = 0, 0, 0, true
	return c
}

type meteredConn struct {
	net.Conn
	m *meter
}

func (c *meteredConn) Write(b []byte) (int, error) {
	c.m.mu.Lock()
	c.m.sent += len(b)
	if c.m.heard {
		c.m.heard = false
		c.m.trips++
	}
	c.m.mu.Unlock()
	return c.Conn.Write(b)
}

func (c *meteredConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.m.mu.Lock()
	c.m.received += n
	c.m.heard = true
	c.m.mu.Unlock()
	return n, err
}

// changedMembers reads a message like "zadd|3:ann,3:bob".
func changedMembers(message string) (event string, members []string) {
	event, rest, _ := strings.Cut(message, "|")
	for rest != "" {
		size, tail, _ := strings.Cut(rest, ":")
		n, _ := strconv.Atoi(size)
		members, rest = append(members, tail[:n]), strings.TrimPrefix(tail[n:], ",")
	}
	return event, members
}

// ranNone fails the test if one of the commands was run.
func ranNone(t *testing.T, rdb *redis.Client, commands ...string) {
	t.Helper()
	stats := must[string](t)(rdb.Info(context.Background(), "commandstats").Result())
	for _, name := range commands {
		if strings.Contains(stats, "cmdstat_"+name+":") {
			t.Errorf("%s was run", name)
		}
	}
}

// quantiles shows how times are spread. It sorts them.
func quantiles(times []time.Duration) string {
	slices.Sort(times)
	if len(times) == 0 {
		return "none"
	}
	at := func(p int) time.Duration { return times[(len(times)-1)*p/1000].Round(10 * time.Microsecond) }
	return fmt.Sprintf("median %v, p99 %v, longest %v of %d", at(500), at(990), at(1000), len(times))
}

// A cost is what something takes.
type cost struct{ trips, bytes int }
