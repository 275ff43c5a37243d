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

// of returns a size of the load of a recipe's test: all with the flag -full, otherwise
// little.
func of(little, all int) int {
	if *full {
		return all
	}
	return little
}

// tooSlow reports that a test has had too little load, or delays, on a slow machine.
// It fails the test only with -full, since the machine may be busy.
func tooSlow(t *testing.T, what string) {
	t.Helper()
	if *full {
		t.Error(what)
		return
	}
	t.Log("the machine is too slow:", what)
}

// recipe returns a function that creates clients of an empty server, which notifies of
// the members of sorted sets. It skips the test with -against.
func recipe(t *testing.T) func(...func(*redis.Options)) *redis.Client {
	t.Helper()
	if *against != "" {
		t.Skip("the recipes use commands that only zsetd has")
	}
	t.Parallel()
	return connect(t, server.Options{Config: map[string]string{"notify-keyspace-events": "SVz"}})
}

// A meter counts the traffic between clients and server.
type meter struct {
	mu             sync.Mutex
	sent, received int
	trips          int // writes that follow a read
	hasRead        bool
}

// on configures a client to use one connection, whose traffic is counted.
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
	m.sent, m.received, m.trips, m.hasRead = 0, 0, 0, true
	return c
}

type meteredConn struct {
	net.Conn
	m *meter
}

func (c *meteredConn) Write(b []byte) (int, error) {
	c.m.mu.Lock()
	c.m.sent += len(b)
	if c.m.hasRead {
		c.m.hasRead = false
		c.m.trips++
	}
	c.m.mu.Unlock()
	return c.Conn.Write(b)
}

func (c *meteredConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.m.mu.Lock()
	c.m.received += n
	c.m.hasRead = true
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
			t.Errorf("the server has run %s", name)
		}
	}
}

// quantiles formats quantiles of times. It sorts the times.
func quantiles(times []time.Duration) string {
	slices.Sort(times)
	if len(times) == 0 {
		return "none"
	}
	at := func(p int) time.Duration { return times[(len(times)-1)*p/1000].Round(10 * time.Microsecond) }
	return fmt.Sprintf("median %v, p99 %v, longest %v of %d", at(500), at(990), at(1000), len(times))
}

// A cost is the number of round trips and bytes of an operation.
type cost struct{ trips, bytes int }
