package servertest

import (
	"crypto/rand"
	"encoding/hex"
	"net"
	"strconv"
	"sync"
	"testing"

	"github.com/zsetd/zsetd/server"
)

// Cluster is several servers that share the slots of a cluster, for a test of a client of one.
// A command on a key of another node has the reply MOVED, with the address of that node. The
// nodes have no bus: messages of PUBLISH stay at their node, and a node that is stopped has no
// replica.
type Cluster struct {
	Nodes []*Server // with what Addr returns as their addresses

	t     testing.TB
	mu    sync.Mutex // guards the maps of the slots
	slots [slotCount]int
	names []string
}

// slotCount is the number of slots of a cluster.
const slotCount = 16384

// RunCluster starts a cluster of n empty servers, each with an equal share of the slots. The options, at
// most one, are those of [Run] for each node, without File and Listeners, which are of one server.
func RunCluster(t testing.TB, n int, options ...server.Options) *Cluster {
	t.Helper()
	if n < 1 || n > slotCount {
		t.Fatalf("servertest: a cluster of %d nodes", n)
	}
	c := &Cluster{t: t}
	for range n {
		var o server.Options
		if len(options) > 0 {
			o = options[0]
		}
		config := map[string]string{"cluster-enabled": "yes", "cluster-announce-ip": "127.0.0.1"}
		for name, value := range o.Config {
			config[name] = value
		}
		o.Config = config
		c.Nodes = append(c.Nodes, Run(t, o))
		var name [20]byte
		rand.Read(name[:])
		c.names = append(c.names, hex.EncodeToString(name[:]))
	}
	for slot := range c.slots {
		c.slots[slot] = slot * n / slotCount
	}
	c.join()
	return c
}

// Slot returns the slot of a key.
func (c *Cluster) Slot(key string) int {
	c.t.Helper()
	slot, _ := c.Nodes[0].Must("CLUSTER", "KEYSLOT", key).(int64)
	return int(slot)
}

// Node returns the index of the node that has a slot.
func (c *Cluster) Node(slot int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.slots[slot]
}

// Move moves a slot, with its keys, to the node of that index. A client that asks the former node has
// the reply MOVED from then on. Commands of clients of both nodes wait meanwhile.
func (c *Cluster) Move(slot, to int) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	from := c.Nodes[c.slots[slot]]
	if c.slots[slot] == to {
		return
	}
	for _, srv := range []*Server{from, c.Nodes[to]} {
		defer srv.hang()()
	}
	type value struct {
		key       string
		ttl, dump any
	}
	var values []value
	n := from.Must("CLUSTER", "COUNTKEYSINSLOT", slot)
	keys, _ := from.Must("CLUSTER", "GETKEYSINSLOT", slot, n).([]any)
	for _, key := range keys {
		key, _ := key.(string)
		v := value{key, from.Must("PEXPIRETIME", key), from.Must("DUMP", key)}
		if at, _ := v.ttl.(int64); at < 0 {
			v.ttl = 0
		}
		values = append(values, v)
		from.Must("DEL", key)
	}
	c.slots[slot] = to
	c.join()
	for _, v := range values {
		if dump, ok := v.dump.(string); ok {
			c.Nodes[to].Must("RESTORE", v.key, v.ttl, dump, "REPLACE", "ABSTTL")
		}
	}
}

// join tells all nodes that run the slots of each. The lock is held.
func (c *Cluster) join() {
	c.t.Helper()
	nodes := make([]server.ClusterNode, len(c.Nodes))
	for i, srv := range c.Nodes {
		host, port, _ := net.SplitHostPort(srv.Addr())
		nodes[i].ID, nodes[i].Host = c.names[i], host
		nodes[i].Port, _ = strconv.ParseInt(port, 10, 64)
	}
	for slot, i := range c.slots {
		if n := len(nodes[i].Slots); n > 0 && nodes[i].Slots[n-1][1] == slot-1 {
			nodes[i].Slots[n-1][1] = slot
		} else {
			nodes[i].Slots = append(nodes[i].Slots, [2]int{slot, slot})
		}
	}
	for i, srv := range c.Nodes {
		srv.mu.Lock()
		srv.join = func(of *server.Server) { srv.simulate(of.Simulation().Join(i, nodes)) }
		if !srv.stopped {
			srv.join(srv.Server)
		}
		srv.mu.Unlock()
	}
}
