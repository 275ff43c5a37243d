package server

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/zsetd/zsetd/protocol"
)

// A cluster of one node, for applications that use a cluster: CLUSTER replies as a
// node of a cluster does, and commands on keys of several slots are refused.
//
// The node has all slots from the start, so that no setup is needed. A setup script
// can still assign them: a slot counts as busy only once a command has assigned it.
// DELSLOTS, FLUSHSLOTS and RESET remove slots. Assignments last until the server
// stops.
//
// The node knows no other nodes and has no bus: CLUSTER MEET succeeds with its own
// address only.

const slotCount = 16384

// cluster is the state of the node; nil if cluster-enabled is no.
type cluster struct {
	id, shard    string
	served       [slotCount]bool
	assigned     [slotCount]bool // by a command
	slots        int             // number of served slots
	epoch        int64           // of the node's configuration
	currentEpoch int64
}

func clusterCommands() []Command {
	return []Command{
		{Facts: protocol.Facts{
			Name: "asking", Arity: 1, Flags: "fast",
			Group: "cluster", Since: "3.0.0", Categories: "connection", Complexity: "O(1)",
			Summary: "Sent by cluster clients after an -ASK redirect",
		}, run: asking, ofConnection: true},
		{Facts: protocol.Facts{
			Name: "cluster", Arity: -2,
			Group: "cluster", Since: "3.0.0", Complexity: "Depends on subcommand.",
			Summary: "A container for cluster commands",
		}, subcommands: []Command{
			{Facts: protocol.Facts{
				Name: "cluster|addslots", Arity: -3, Flags: "admin stale no_async_loading",
				Group: "cluster", Since: "3.0.0", Complexity: "O(N) where N is the total number of hash slot arguments",
				Summary: "Assign new hash slots to receiving node",
				Syntax:  "slot [slot ...]",
			}, run: clusterAddslots},
			{Facts: protocol.Facts{
				Name: "cluster|addslotsrange", Arity: -4, Flags: "admin stale no_async_loading",
				Group: "cluster", Since: "7.0.0",
				Complexity: "O(N) where N is the total number of the slots between the start slot and end slot arguments.",
				Summary:    "Assign new hash slots to receiving node",
				Syntax:     "start-slot end-slot [start-slot end-slot ...]",
			}, run: clusterAddslotsrange},
			{Facts: protocol.Facts{
				Name: "cluster|bumpepoch", Arity: 2, Flags: "admin stale no_async_loading",
				Group: "cluster", Since: "3.0.0", Tips: "nondeterministic_output", Complexity: "O(1)",
				Summary: "Advance the cluster config epoch",
			}, run: clusterBumpepoch},
			{Facts: protocol.Facts{
				Name: "cluster|count-failure-reports", Arity: 3, Flags: "admin stale",
				Group: "cluster", Since: "3.0.0", Tips: "nondeterministic_output",
				Complexity: "O(N) where N is the number of failure reports",
				Summary:    "Return the number of failure reports active for a given node",
				Syntax:     "node-id",
			}, run: clusterCountFailureReports},
			{Facts: protocol.Facts{
				Name: "cluster|countkeysinslot", Arity: 3, Flags: "stale",
				Group: "cluster", Since: "3.0.0", Complexity: "O(1)",
				Summary: "Return the number of local keys in the specified hash slot",
				Syntax:  "slot",
			}, run: clusterCountkeysinslot},
			{Facts: protocol.Facts{
				Name: "cluster|delslots", Arity: -3, Flags: "admin stale no_async_loading",
				Group: "cluster", Since: "3.0.0", Complexity: "O(N) where N is the total number of hash slot arguments",
				Summary: "Set hash slots as unbound in receiving node",
				Syntax:  "slot [slot ...]",
			}, run: clusterDelslots},
			{Facts: protocol.Facts{
				Name: "cluster|delslotsrange", Arity: -4, Flags: "admin stale no_async_loading",
				Group: "cluster", Since: "7.0.0",
				Complexity: "O(N) where N is the total number of the slots between the start slot and end slot arguments.",
				Summary:    "Set hash slots as unbound in receiving node",
				Syntax:     "start-slot end-slot [start-slot end-slot ...]",
			}, run: clusterDelslotsrange},
			{Facts: protocol.Facts{
				Name: "cluster|failover", Arity: -2, Flags: "admin stale no_async_loading",
				Group: "cluster", Since: "3.0.0", Complexity: "O(1)",
				Summary: "Forces a replica to perform a manual failover of its master.",
				Syntax:  "options:[FORCE|TAKEOVER]",
			}, run: clusterFailover},
			{Facts: protocol.Facts{
				Name: "cluster|flushslots", Arity: 2, Flags: "admin stale no_async_loading",
				Group: "cluster", Since: "3.0.0", Complexity: "O(1)",
				Summary: "Delete a node's own slots information",
			}, run: clusterFlushslots},
			{Facts: protocol.Facts{
				Name: "cluster|forget", Arity: 3, Flags: "admin stale no_async_loading",
				Group: "cluster", Since: "3.0.0", Complexity: "O(1)",
				Summary: "Remove a node from the nodes table",
				Syntax:  "node-id",
			}, run: clusterForget},
			{Facts: protocol.Facts{
				Name: "cluster|getkeysinslot", Arity: 4, Flags: "stale",
				Group: "cluster", Since: "3.0.0", Tips: "nondeterministic_output",
				Complexity: "O(log(N)) where N is the number of requested keys",
				Summary:    "Return local key names in the specified hash slot",
				Syntax:     "slot count",
			}, run: clusterGetkeysinslot},
			{Facts: protocol.Facts{
				Name: "cluster|help", Arity: 2, Flags: "loading stale",
				Group: "cluster", Since: "5.0.0", Complexity: "O(1)",
				Summary: "Show helpful text about the different subcommands",
			}, run: clusterHelp},
			{Facts: protocol.Facts{
				Name: "cluster|info", Arity: 2, Flags: "stale",
				Group: "cluster", Since: "3.0.0", Tips: "nondeterministic_output", Complexity: "O(1)",
				Summary: "Provides info about Redis Cluster node state",
			}, run: clusterInfo},
			{Facts: protocol.Facts{
				Name: "cluster|keyslot", Arity: 3, Flags: "stale",
				Group: "cluster", Since: "3.0.0", Complexity: "O(N) where N is the number of bytes in the key",
				Summary: "Returns the hash slot of the specified key",
				Syntax:  "key:string",
			}, run: clusterKeyslot},
			{Facts: protocol.Facts{
				Name: "cluster|links", Arity: 2, Flags: "stale",
				Group: "cluster", Since: "7.0.0", Tips: "nondeterministic_output",
				Complexity: "O(N) where N is the total number of Cluster nodes",
				Summary:    "Returns a list of all TCP links to and from peer nodes in cluster",
			}, run: clusterLinks},
			{Facts: protocol.Facts{
				Name: "cluster|meet", Arity: -4, Flags: "admin stale no_async_loading",
				Group: "cluster", Since: "3.0.0", Complexity: "O(1)",
				Summary: "Force a node cluster to handshake with another node",
				Syntax:  "ip port [cluster_bus_port@4.0.0]",
				History: []string{"4.0.0 Added the optional `cluster_bus_port` argument."},
			}, run: clusterMeet},
			{Facts: protocol.Facts{
				Name: "cluster|myid", Arity: 2, Flags: "stale",
				Group: "cluster", Since: "3.0.0", Complexity: "O(1)",
				Summary: "Return the node id",
			}, run: clusterMyid},
			{Facts: protocol.Facts{
				Name: "cluster|myshardid", Arity: 2, Flags: "stale",
				Group: "cluster", Since: "7.2.0", Tips: "nondeterministic_output", Complexity: "O(1)",
				Summary: "Returns the shard ID of a node.",
			}, run: clusterMyshardid},
			{Facts: protocol.Facts{
				Name: "cluster|nodes", Arity: 2, Flags: "stale",
				Group: "cluster", Since: "3.0.0", Tips: "nondeterministic_output",
				Complexity: "O(N) where N is the total number of Cluster nodes",
				Summary:    "Get Cluster config for the node",
			}, run: clusterNodes},
			{Facts: protocol.Facts{
				Name: "cluster|replicas", Arity: 3, Flags: "admin stale",
				Group: "cluster", Since: "5.0.0", Tips: "nondeterministic_output", Complexity: "O(1)",
				Summary: "List replica nodes of the specified master node",
				Syntax:  "node-id",
			}, run: clusterReplicas},
			{Facts: protocol.Facts{
				Name: "cluster|replicate", Arity: 3, Flags: "admin stale no_async_loading",
				Group: "cluster", Since: "3.0.0", Complexity: "O(1)",
				Summary: "Reconfigure a node as a replica of the specified master node",
				Syntax:  "node-id",
			}, run: clusterReplicate},
			{Facts: protocol.Facts{
				Name: "cluster|reset", Arity: -2, Flags: "admin noscript stale",
				Group: "cluster", Since: "3.0.0",
				Complexity: "O(N) where N is the number of known nodes. The command may execute a FLUSHALL as a side effect.",
				Summary:    "Reset a Redis Cluster node",
				Syntax:     "[HARD|SOFT]",
			}, run: clusterReset},
			{Facts: protocol.Facts{
				Name: "cluster|saveconfig", Arity: 2, Flags: "admin stale no_async_loading",
				Group: "cluster", Since: "3.0.0", Complexity: "O(1)",
				Summary: "Forces the node to save cluster state on disk",
			}, run: clusterSaveconfig},
			{Facts: protocol.Facts{
				Name: "cluster|set-config-epoch", Arity: 3, Flags: "admin stale no_async_loading",
				Group: "cluster", Since: "3.0.0", Complexity: "O(1)",
				Summary: "Set the configuration epoch in a new node",
				Syntax:  "config-epoch",
			}, run: clusterSetConfigEpoch},
			{Facts: protocol.Facts{
				Name: "cluster|setslot", Arity: -4, Flags: "admin stale no_async_loading",
				Group: "cluster", Since: "3.0.0", Complexity: "O(1)",
				Summary: "Bind a hash slot to a specific node",
				Syntax:  "slot subcommand:(IMPORTING node-id | MIGRATING node-id | NODE node-id | STABLE)",
			}, run: clusterSetslot},
			{Facts: protocol.Facts{
				Name: "cluster|shards", Arity: 2, Flags: "stale",
				Group: "cluster", Since: "7.0.0", Tips: "nondeterministic_output",
				Complexity: "O(N) where N is the total number of cluster nodes",
				Summary:    "Get array of cluster slots to node mappings",
			}, run: clusterShards},
			{Facts: protocol.Facts{
				Name: "cluster|slaves", Arity: 3, Flags: "admin stale",
				Group: "cluster", Since: "3.0.0", Tips: "nondeterministic_output", Deprecated: "5.0.0", ReplacedBy: "`CLUSTER REPLICAS`",
				Complexity: "O(1)",
				Summary:    "List replica nodes of the specified master node",
				Syntax:     "node-id",
			}, run: clusterSlaves},
			{Facts: protocol.Facts{
				Name: "cluster|slots", Arity: 2, Flags: "stale",
				Group: "cluster", Since: "3.0.0", Tips: "nondeterministic_output", Deprecated: "7.0.0", ReplacedBy: "`CLUSTER SHARDS`",
				Complexity: "O(N) where N is the total number of Cluster nodes",
				Summary:    "Get array of Cluster slot to node mappings",
				History: []string{
					"4.0.0 Added node IDs.",
					"7.0.0 Added additional networking metadata field.",
				},
			}, run: clusterSlots},
		}},
		{Facts: protocol.Facts{
			Name: "readonly", Arity: 1, Flags: "loading stale fast",
			Group: "cluster", Since: "3.0.0", Categories: "connection", Complexity: "O(1)",
			Summary: "Enables read queries for a connection to a cluster replica node",
		}, run: readonly, ofConnection: true},
		{Facts: protocol.Facts{
			Name: "readwrite", Arity: 1, Flags: "loading stale fast",
			Group: "cluster", Since: "3.0.0", Categories: "connection", Complexity: "O(1)",
			Summary: "Disables read queries for a connection to a cluster replica node",
		}, run: readwrite, ofConnection: true},
	}
}

const (
	errClusterDown     = "CLUSTERDOWN The cluster is down"
	errClusterReadOnly = "CLUSTERDOWN The cluster is down and only accepts read commands"
	errNoCluster       = "ERR This instance has cluster support disabled"
	errCrossSlot       = "CROSSSLOT Keys in request don't hash to the same slot"
)

// newCluster returns a node that has all slots.
func newCluster() *cluster {
	cl := &cluster{id: randomID(), shard: randomID(), slots: slotCount}
	for i := range cl.served {
		cl.served[i] = true
	}
	return cl
}

// keySlot returns the slot of a key. It is a hash of the text between the first {
// and the next }, if that is not empty, or else of the whole key.
func keySlot[T string | []byte](key T) int {
	tag := key
	for i := range len(key) {
		if key[i] != '{' {
			continue
		}
		for j := i + 1; j < len(key); j++ {
			if key[j] == '}' {
				if j > i+1 {
					tag = key[i+1 : j]
				}
				break
			}
		}
		break
	}
	crc := uint16(0) // CRC-16/XMODEM
	for i := range len(tag) {
		crc ^= uint16(tag[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc) % slotCount
}

// misplaced returns why the node does not serve a command, or "": all its keys, or
// its sharded channels, must be in one slot, which the node has. EXEC has the keys
// of all its commands. slot is that slot, or -1.
func (s *Session) misplaced(cmd *Command, argv [][]byte) (slot int, refusal string) {
	slot = -1
	if cmd.Name == "exec" {
		if !s.multi {
			return slot, ""
		}
		for _, q := range s.queue {
			if slot, refusal = s.srv.cluster.join(slot, q.cmd, q.argv); refusal != "" {
				return slot, refusal
			}
		}
	} else if slot, refusal = s.srv.cluster.join(slot, cmd, argv); refusal != "" {
		return slot, refusal
	}
	if slot >= 0 && s.srv.cluster.down(&s.srv.config) {
		sharded := cmd.spec.Flags().Has(protocol.PubSub)
		switch c := &s.srv.config; {
		case sharded && c.clusterShardsWhenDown:
		case sharded, !c.clusterReadsWhenDown:
			return slot, errClusterDown
		case cmd.spec.Flags().Has(protocol.Write):
			return slot, errClusterReadOnly
		}
	}
	return slot, ""
}

// join adds the keys of a command to those of the given slot, -1 being none.
func (cl *cluster) join(slot int, cmd *Command, argv [][]byte) (int, string) {
	add := func(key []byte) string {
		k := keySlot(key)
		switch {
		case slot >= 0 && slot != k:
			return errCrossSlot
		case !cl.served[k]:
			return "CLUSTERDOWN Hash slot not served"
		}
		slot = k
		return ""
	}
	if cmd.spec.Flags().Has(protocol.PubSub) { // sharded channels have slots
		var channels [][]byte
		switch cmd.Name {
		case "spublish":
			channels = argv[1:2]
		case "ssubscribe", "sunsubscribe":
			channels = argv[1:]
		}
		for _, channel := range channels {
			if refusal := add(channel); refusal != "" {
				return slot, refusal
			}
		}
		return slot, ""
	}
	var few [8]protocol.KeyRef
	for _, ref := range cmd.spec.AppendKeys(few[:0], argv) {
		if refusal := add(argv[ref.Index]); refusal != "" {
			return slot, refusal
		}
	}
	return slot, ""
}

// down reports whether the cluster serves no keys, because slots are missing.
func (cl *cluster) down(c *config) bool {
	return cl.slots == 0 || cl.slots < slotCount && c.clusterFullCoverage
}

// mode is the name of the mode in HELLO and INFO.
func (srv *Server) mode() string {
	if srv.cluster != nil {
		return "cluster"
	}
	return "standalone"
}

// clustered reports whether the server is a cluster, and replies an error if not.
func (c *Call) clustered() bool {
	if c.srv.cluster == nil {
		c.Reply.Error(errNoCluster)
		return false
	}
	return true
}

// node is the node's addresses as clients see them.
type node struct {
	id, ip, hostname string
	port, busPort    int64
	tlsPort          int64 // 0 if it does not serve TLS
}

func (srv *Server) node() node {
	c := &srv.config
	n := node{id: srv.cluster.id, ip: c.clusterAnnounceIP, hostname: c.clusterHostname, port: c.clusterAnnouncePort, busPort: c.clusterAnnounceBusPort}
	port := c.port
	if served := srv.tcpPort.Load(); port != 0 && served != 0 {
		port = served // a program may serve elsewhere than its configuration says
	}
	if n.port == 0 {
		n.port = port
	}
	if n.tlsPort = c.clusterAnnounceTLSPort; n.tlsPort == 0 {
		n.tlsPort = c.tlsPort
		if served := srv.tlsServed.Load(); served != 0 {
			n.tlsPort = served
		}
	}
	if n.busPort == 0 {
		if n.busPort = c.clusterPort; n.busPort == 0 {
			n.busPort = port + 10000
		}
	}
	return n
}

// portFor returns the port for clients that connect as s does: plain or TLS.
func (n *node) portFor(s *Session) int64 {
	if s.secure {
		return n.tlsPort
	}
	return n.port
}

// ranges returns the slots that the node has, as first and last slots.
func (cl *cluster) ranges() (list [][2]int) {
	for i := range slotCount {
		if !cl.served[i] {
			continue
		}
		if n := len(list); n > 0 && list[n-1][1] == i-1 {
			list[n-1][1] = i
		} else {
			list = append(list, [2]int{i, i})
		}
	}
	return list
}

// description returns the line of CLUSTER NODES.
func (srv *Server) description(s *Session) string {
	n := srv.node()
	line := fmt.Sprintf("%s %s:%d@%d", n.id, n.ip, n.portFor(s), n.busPort)
	if n.hostname != "" {
		line += "," + n.hostname
	}
	line += fmt.Sprintf(" myself,master - 0 0 %d connected", srv.cluster.epoch)
	for _, r := range srv.cluster.ranges() {
		line += " " + strconv.Itoa(r[0])
		if r[1] > r[0] {
			line += "-" + strconv.Itoa(r[1])
		}
	}
	return line
}

// The choices of cluster-preferred-endpoint-type.
const (
	endpointIP       = "ip"
	endpointHostname = "hostname"
	endpointUnknown  = "unknown-endpoint"
)

func clusterSlots(c *Call) {
	if !c.clustered() {
		return
	}
	n, kind := c.srv.node(), c.srv.config.clusterEndpoint
	ranges := c.srv.cluster.ranges()
	c.Reply.Array(len(ranges))
	for _, r := range ranges {
		c.Reply.Array(3)
		c.Reply.Int(int64(r[0]))
		c.Reply.Int(int64(r[1]))
		c.Reply.Array(4)
		switch {
		case kind == endpointUnknown:
			c.Reply.Null()
		case kind == endpointIP:
			c.Reply.BulkString(n.ip)
		case n.hostname == "":
			c.Reply.BulkString("?")
		default:
			c.Reply.BulkString(n.hostname)
		}
		c.Reply.Int(n.portFor(c.sess))
		c.Reply.BulkString(n.id)
		var more []string
		if kind != endpointIP {
			more = append(more, "ip", n.ip)
		}
		if kind != endpointHostname && n.hostname != "" {
			more = append(more, "hostname", n.hostname)
		}
		c.Reply.Map(len(more) / 2)
		for _, word := range more {
			c.Reply.BulkString(word)
		}
	}
}

func clusterShards(c *Call) {
	if !c.clustered() {
		return
	}
	n := c.srv.node()
	endpoint := n.ip
	switch c.srv.config.clusterEndpoint {
	case endpointUnknown:
		endpoint = ""
	case endpointHostname:
		if endpoint = n.hostname; endpoint == "" {
			endpoint = "?"
		}
	}
	ranges := c.srv.cluster.ranges()
	c.Reply.Array(1)
	c.Reply.Map(2)
	c.Reply.BulkString("slots")
	c.Reply.Array(2 * len(ranges))
	for _, r := range ranges {
		c.Reply.Int(int64(r[0]))
		c.Reply.Int(int64(r[1]))
	}
	c.Reply.BulkString("nodes")
	c.Reply.Array(1)
	fields := 7
	if n.port == 0 {
		fields--
	}
	if n.tlsPort != 0 {
		fields++
	}
	if n.hostname != "" {
		fields++
	}
	text := func(name, value string) {
		c.Reply.BulkString(name)
		c.Reply.BulkString(value)
	}
	c.Reply.Map(fields)
	text("id", n.id)
	if n.port != 0 {
		c.Reply.BulkString("port")
		c.Reply.Int(n.port)
	}
	if n.tlsPort != 0 {
		c.Reply.BulkString("tls-port")
		c.Reply.Int(n.tlsPort)
	}
	text("ip", n.ip)
	text("endpoint", endpoint)
	if n.hostname != "" {
		text("hostname", n.hostname)
	}
	text("role", "master")
	c.Reply.BulkString("replication-offset")
	c.Reply.Int(0)
	text("health", "online")
}

func clusterInfo(c *Call) {
	if !c.clustered() {
		return
	}
	cl := c.srv.cluster
	state, size := "ok", 1
	if cl.down(&c.srv.config) {
		state = "fail"
	}
	if cl.slots == 0 {
		size = 0
	}
	c.Reply.Verbatim("txt", fmt.Sprintf("cluster_state:%s\r\ncluster_slots_assigned:%d\r\ncluster_slots_ok:%d\r\n"+
		"cluster_slots_pfail:0\r\ncluster_slots_fail:0\r\ncluster_known_nodes:1\r\ncluster_size:%d\r\n"+
		"cluster_current_epoch:%d\r\ncluster_my_epoch:%d\r\ncluster_stats_messages_sent:0\r\n"+
		"cluster_stats_messages_received:0\r\ntotal_cluster_links_buffer_limit_exceeded:0\r\n",
		state, cl.slots, cl.slots, size, cl.currentEpoch, cl.epoch))
}

func clusterNodes(c *Call) {
	if c.clustered() {
		c.Reply.Verbatim("txt", c.srv.description(c.sess)+"\n")
	}
}

func clusterMyid(c *Call) {
	if c.clustered() {
		c.Reply.BulkString(c.srv.cluster.id)
	}
}

func clusterMyshardid(c *Call) {
	if c.clustered() {
		c.Reply.BulkString(c.srv.cluster.shard)
	}
}

func clusterLinks(c *Call) {
	if c.clustered() {
		c.Reply.Array(0)
	}
}

func clusterKeyslot(c *Call) {
	if c.clustered() {
		c.Reply.Int(int64(keySlot(c.Bytes())))
	}
}

func clusterCountkeysinslot(c *Call) {
	if !c.clustered() {
		return
	}
	slot := c.Int()
	if slot < 0 || slot >= slotCount {
		c.Fail("ERR Invalid slot")
	}
	if c.ok() {
		c.Reply.Int(int64(c.srv.keys.SlotLen(int(slot))))
	}
}

func clusterGetkeysinslot(c *Call) {
	if !c.clustered() {
		return
	}
	slot, count := c.Int(), c.Int()
	if slot < 0 || slot >= slotCount || count < 0 {
		c.Fail("ERR Invalid slot or number of keys")
	}
	if !c.ok() {
		return
	}
	n := min(count, int64(c.srv.keys.SlotLen(int(slot))))
	c.Reply.Array(int(n))
	for key := range c.srv.keys.SlotKeys(int(slot)) {
		if n--; n < 0 {
			break
		}
		c.Reply.BulkString(key)
	}
}

// slot parses a slot.
func (c *Call) slot() int { return int(c.IntIn(0, slotCount-1, errSlot)) }

const errSlot = "ERR Invalid or out of range slot"

// slotSet parses slots, or ranges of them, to be added to the node or, with remove,
// removed from it.
func (c *Call) slotSet(ranges, remove bool) []int {
	if ranges && c.Len()%2 != 0 {
		c.Fail(wrongArity(c.cmd.Name))
	}
	if !ranges { // all must be valid numbers before any other check
		for i := range c.Len() {
			if n, ok := protocol.ParseInt(c.Peek(i)); !ok || n < 0 || n >= slotCount {
				c.Fail(errSlot)
			}
		}
	}
	var list []int
	seen := map[int]bool{}
	for c.More() {
		first := c.slot()
		last := first
		if ranges {
			if last = c.slot(); c.Err() == "" && first > last {
				c.Fail(fmt.Sprintf("ERR start slot number %d is greater than end slot number %d", first, last))
			}
		}
		for i := first; i <= last && c.Err() == ""; i++ {
			switch {
			case remove && !c.srv.cluster.served[i]:
				c.Fail(fmt.Sprintf("ERR Slot %d is already unassigned", i))
			case !remove && c.srv.cluster.assigned[i]:
				c.Fail(fmt.Sprintf("ERR Slot %d is already busy", i))
			case seen[i]:
				c.Fail(fmt.Sprintf("ERR Slot %d specified multiple times", i))
			}
			seen[i] = true
			list = append(list, i)
		}
	}
	return list
}

func clusterAddslots(c *Call)      { c.changeSlots(false, false) }
func clusterAddslotsrange(c *Call) { c.changeSlots(true, false) }
func clusterDelslots(c *Call)      { c.changeSlots(false, true) }
func clusterDelslotsrange(c *Call) { c.changeSlots(true, true) }

func (c *Call) changeSlots(ranges, remove bool) {
	if !c.clustered() {
		return
	}
	list := c.slotSet(ranges, remove)
	if !c.ok() {
		return
	}
	for _, slot := range list {
		c.srv.assign(slot, !remove)
	}
	c.Reply.OK()
}

// assign adds a slot to the node, or removes it. Removing it ends the subscriptions
// of the sharded channels in the slot.
func (srv *Server) assign(slot int, served bool) {
	cl := srv.cluster
	cl.assigned[slot] = served
	if cl.served[slot] == served {
		return
	}
	cl.served[slot] = served
	if served {
		cl.slots++
		return
	}
	cl.slots--
	shards := shardTopic()
	for _, channel := range sortedNames(srv.pubsub.shards) {
		if keySlot(channel) != slot {
			continue
		}
		for _, s := range slices.Clone(srv.pubsub.shards[channel].sessions) {
			shards.drop(s, channel)
			r := protocol.NewReply(nil, s.out.Version())
			r.Push(3)
			r.BulkString(shards.off)
			r.BulkString(channel)
			r.Int(int64(shards.count(s)))
			s.push(r.Bytes())
		}
	}
}

func clusterFlushslots(c *Call) {
	switch {
	case !c.clustered():
	case c.srv.keys.DB(0).Len() > 0:
		c.Reply.Error("ERR DB must be empty to perform CLUSTER FLUSHSLOTS.")
	default:
		for slot := range slotCount {
			c.srv.assign(slot, false)
		}
		c.Reply.OK()
	}
}

func clusterReset(c *Call) {
	if !c.clustered() {
		return
	}
	hard := c.Is("HARD")
	if !hard {
		c.Is("SOFT")
	}
	if c.Len() > 0 && len(c.All()) == 1 {
		c.Fail(protocol.ErrSyntax)
	} else if c.Len() > 0 {
		c.unknownSubcommand()
		return
	}
	if c.db.Len() > 0 {
		c.Fail("ERR CLUSTER RESET can't be called with master nodes containing keys")
	}
	if !c.ok() {
		return
	}
	for slot := range slotCount {
		c.srv.assign(slot, false)
	}
	if cl := c.srv.cluster; hard {
		cl.id, cl.epoch, cl.currentEpoch = randomID(), 0, 0
	}
	c.Reply.OK()
}

func clusterBumpepoch(c *Call) {
	if !c.clustered() {
		return
	}
	cl := c.srv.cluster
	word := "STILL"
	if cl.epoch == 0 || cl.epoch != cl.currentEpoch {
		cl.currentEpoch++
		cl.epoch = cl.currentEpoch
		word = "BUMPED"
	}
	c.Reply.Status(word + " " + strconv.FormatInt(cl.epoch, 10))
}

func clusterSetConfigEpoch(c *Call) {
	if !c.clustered() {
		return
	}
	epoch, cl := c.Int(), c.srv.cluster
	switch {
	case epoch < 0:
		c.Fail(fmt.Sprintf("ERR Invalid config epoch specified: %d", epoch))
	case cl.epoch != 0:
		c.Fail("ERR Node config epoch is already non-zero")
	}
	if !c.ok() {
		return
	}
	cl.epoch, cl.currentEpoch = epoch, max(cl.currentEpoch, epoch)
	c.Reply.OK()
}

func clusterSaveconfig(c *Call) {
	if c.clustered() {
		c.Reply.OK()
	}
}

// isThisNode parses the name of a node and reports whether it is this one; if not, it
// replies the error.
func (c *Call) isThisNode(refusal string) bool {
	if name := c.Bytes(); string(name) != c.srv.cluster.id {
		c.Reply.Error("ERR " + refusal + " " + clip(name, len(name)))
		return false
	}
	return true
}

func clusterCountFailureReports(c *Call) {
	if c.clustered() && c.isThisNode("Unknown node") {
		c.Reply.Int(0)
	}
}

func clusterReplicas(c *Call) {
	if c.clustered() && c.isThisNode("Unknown node") {
		c.Reply.Array(0)
	}
}

func clusterSlaves(c *Call) { clusterReplicas(c) }

func clusterForget(c *Call) {
	if c.clustered() && c.isThisNode("Unknown node") {
		c.Reply.Error("ERR I tried hard but I can't forget myself...")
	}
}

func clusterReplicate(c *Call) {
	if c.clustered() && c.isThisNode("Unknown node") {
		c.Reply.Error("ERR Can't replicate myself")
	}
}

func clusterFailover(c *Call) {
	if !c.clustered() {
		return
	}
	switch {
	case c.Len() > 1:
		c.unknownSubcommand()
	case c.Len() == 1 && !c.Is("FORCE") && !c.Is("TAKEOVER"):
		c.Reply.Error(protocol.ErrSyntax)
	default:
		c.Reply.Error("ERR You should send CLUSTER FAILOVER to a replica")
	}
}

func clusterMeet(c *Call) {
	if !c.clustered() {
		return
	}
	if c.Len() > 3 {
		c.unknownSubcommand()
		return
	}
	host := c.Bytes()
	var ports []int64
	for _, which := range []string{"base", "bus"} {
		if !c.More() {
			break
		}
		if port := c.Bytes(); c.Err() == "" {
			n, ok := protocol.ParseInt(port)
			if !ok {
				c.Fail("ERR Invalid TCP " + which + " port specified: " + clip(port, math.MaxInt))
			}
			ports = append(ports, n)
		}
	}
	if !c.ok() {
		return
	}
	if len(ports) == 1 {
		ports = append(ports, ports[0]+10000)
	}
	ip, err := netip.ParseAddr(string(host))
	for _, port := range ports {
		if err != nil || ip.Zone() != "" || port < 1 || port > math.MaxUint16 {
			c.Reply.Error(fmt.Sprintf("ERR Invalid node address specified: %s:%d", clip(host, math.MaxInt), ports[0]))
			return
		}
	}
	if !c.srv.isThisNode(c.sess, ip, ports[0]) {
		c.Reply.Error("ERR zsetd is a cluster of one node and meets no others")
		return
	}
	c.Reply.OK()
}

// isThisNode reports whether the node has an address: its announced one, or one of this
// machine with a port at which the server listens.
func (srv *Server) isThisNode(s *Session, ip netip.Addr, port int64) bool {
	n, ip := srv.node(), ip.Unmap()
	if announced, err := netip.ParseAddr(n.ip); err == nil && announced.Unmap() == ip && (port == n.port || port == n.tlsPort) {
		return true
	}
	if c := &srv.config; port != c.port && port != srv.tcpPort.Load() && port != c.tlsPort && port != srv.tlsServed.Load() {
		return false
	}
	if local, err := netip.ParseAddrPort(s.laddr); ip.IsLoopback() || err == nil && local.Addr().Unmap() == ip {
		return true
	}
	addrs, _ := net.InterfaceAddrs()
	return slices.ContainsFunc(addrs, func(a net.Addr) bool {
		prefix, err := netip.ParsePrefix(a.String())
		return err == nil && prefix.Addr().Unmap() == ip
	})
}

func clusterSetslot(c *Call) {
	if !c.clustered() {
		return
	}
	slot := c.slot()
	if !c.ok() {
		return
	}
	served := c.srv.cluster.served[slot]
	switch {
	case c.Len() == 2 && c.Is("MIGRATING"):
		if !served {
			c.Reply.Error(fmt.Sprintf("ERR I'm not the owner of hash slot %d", slot))
		} else if c.isThisNode("I don't know about node") {
			c.Reply.Error("ERR zsetd is a cluster of one node: there is no other to migrate to")
		}
	case c.Len() == 2 && c.Is("IMPORTING"):
		if served {
			c.Reply.Error(fmt.Sprintf("ERR I'm already the owner of hash slot %d", slot))
		} else if c.isThisNode("I don't know about node") {
			c.Reply.Error("ERR zsetd is a cluster of one node: there is no other to import from")
		}
	case c.Len() == 1 && c.Is("STABLE"):
		c.Reply.OK()
	case c.Len() == 2 && c.Is("NODE"):
		if c.isThisNode("Unknown node") {
			c.srv.assign(slot, true)
			c.Reply.OK()
		}
	default:
		c.Reply.Error("ERR Invalid CLUSTER SETSLOT action or number of arguments. Try CLUSTER HELP")
	}
}

func readonly(c *Call) {
	if c.clustered() {
		c.sess.readonly = true
		c.Reply.OK()
	}
}

func readwrite(c *Call) {
	if c.clustered() {
		c.sess.readonly = false
		c.Reply.OK()
	}
}

// asking has no effect: no slot ever migrates from another node.
func asking(c *Call) {
	if c.clustered() {
		c.Reply.OK()
	}
}

// notClustered reports whether the server is not a cluster, and replies an error if
// it is: a cluster does not have the command.
func (c *Call) notClustered(name string) bool {
	if c.srv.cluster != nil {
		c.Reply.Error("ERR " + strings.ToUpper(name) + " is not allowed in cluster mode")
		return false
	}
	return true
}

func clusterHelp(c *Call) {
	if !c.clustered() {
		return
	}
	c.help(
		"ADDSLOTS <slot> [<slot> ...]",
		"    Assign slots to current node.",
		"ADDSLOTSRANGE <start slot> <end slot> [<start slot> <end slot> ...]",
		"    Assign slots which are between <start-slot> and <end-slot> to current node.",
		"BUMPEPOCH",
		"    Advance the cluster config epoch.",
		"COUNT-FAILURE-REPORTS <node-id>",
		"    Return number of failure reports for <node-id>.",
		"COUNTKEYSINSLOT <slot>",
		"    Return the number of keys in <slot>.",
		"DELSLOTS <slot> [<slot> ...]",
		"    Delete slots information from current node.",
		"DELSLOTSRANGE <start slot> <end slot> [<start slot> <end slot> ...]",
		"    Delete slots information which are between <start-slot> and <end-slot> from current node.",
		"FAILOVER [FORCE|TAKEOVER]",
		"    Promote current replica node to being a master.",
		"FORGET <node-id>",
		"    Remove a node from the cluster.",
		"GETKEYSINSLOT <slot> <count>",
		"    Return key names stored by current node in a slot.",
		"FLUSHSLOTS",
		"    Delete current node own slots information.",
		"INFO",
		"    Return information about the cluster.",
		"KEYSLOT <key>",
		"    Return the hash slot for <key>.",
		"MEET <ip> <port> [<bus-port>]",
		"    Connect nodes into a working cluster.",
		"MYID",
		"    Return the node id.",
		"NODES",
		"    Return cluster configuration seen by node. Output format:",
		"    <id> <ip:port> <flags> <master> <pings> <pongs> <epoch> <link> <slot> ...",
		"REPLICATE <node-id>",
		"    Configure current node as replica to <node-id>.",
		"RESET [HARD|SOFT]",
		"    Reset current node (default: soft).",
		"SET-CONFIG-EPOCH <epoch>",
		"    Set config epoch of current node.",
		"SETSLOT <slot> (IMPORTING <node-id>|MIGRATING <node-id>|STABLE|NODE <node-id>)",
		"    Set slot state.",
		"REPLICAS <node-id>",
		"    Return <node-id> replicas.",
		"SAVECONFIG",
		"    Force saving cluster configuration on disk.",
		"SLOTS",
		"    Return information about slots range mappings. Each range is made of:",
		"    start, end, master and replicas IP addresses, ports and ids",
		"SHARDS",
		"    Return information about slot range mappings and the nodes associated with them.",
		"LINKS",
		"    Return information about all network links between this node and its peers.",
		"    Output format is an array where each array element is a map containing attributes of a link",
	)
}
