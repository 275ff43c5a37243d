package admin

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/base/keyslot"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/config"
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

// ClusterCommands returns the rows of the CLUSTER command, and of the commands for
// cluster clients.
func ClusterCommands() []engine.Command {
	return []engine.Command{
		{Facts: protocol.Facts{
			Name: "asking", Arity: 1, Flags: "fast",
			Group: "cluster", Since: "3.0.0", Categories: "connection", Complexity: "O(1)",
			Summary: "Accepted without effect: this node imports no slots",
		}, Run: asking, OfConnection: true},
		{Facts: protocol.Facts{
			Name: "cluster", Arity: -2,
			Group: "cluster", Since: "3.0.0", Complexity: "That of the subcommand",
			Summary: "State of the cluster, which has one node",
		}, Subcommands: inCluster([]engine.Command{
			{Facts: protocol.Facts{
				Name: "cluster|addslots", Arity: -3, Flags: "admin stale no_async_loading",
				Group: "cluster", Since: "3.0.0", Complexity: "O(N), N slots given",
				Summary: "Serve the given slots",
				Syntax:  "slot [slot ...]",
			}, Run: clusterAddslots},
			{Facts: protocol.Facts{
				Name: "cluster|addslotsrange", Arity: -4, Flags: "admin stale no_async_loading",
				Group: "cluster", Since: "7.0.0",
				Complexity: "O(N), N slots in the ranges",
				Summary:    "Serve the slots of the given ranges",
				Syntax:     "range:(start-slot end-slot)...",
			}, Run: clusterAddslotsrange},
			{Facts: protocol.Facts{
				Name: "cluster|bumpepoch", Arity: 2, Flags: "admin stale no_async_loading",
				Group: "cluster", Since: "3.0.0", Tips: "nondeterministic_output", Complexity: "O(1)",
				Summary: "Raise the epoch of the configuration",
			}, Run: clusterBumpepoch},
			{Facts: protocol.Facts{
				Name: "cluster|count-failure-reports", Arity: 3, Flags: "admin stale",
				Group: "cluster", Since: "3.0.0", Tips: "nondeterministic_output",
				Complexity: "O(1)",
				Summary:    "Number of reports that a node fails: always 0",
				Syntax:     "node-id",
			}, Run: clusterCountFailureReports},
			{Facts: protocol.Facts{
				Name: "cluster|countkeysinslot", Arity: 3, Flags: "stale",
				Group: "cluster", Since: "3.0.0", Complexity: "O(1)",
				Summary: "Number of keys in a slot",
				Syntax:  "slot",
			}, Run: clusterCountkeysinslot},
			{Facts: protocol.Facts{
				Name: "cluster|delslots", Arity: -3, Flags: "admin stale no_async_loading",
				Group: "cluster", Since: "3.0.0", Complexity: "O(N), N slots given",
				Summary: "No longer serve the given slots",
				Syntax:  "slot [slot ...]",
			}, Run: clusterDelslots},
			{Facts: protocol.Facts{
				Name: "cluster|delslotsrange", Arity: -4, Flags: "admin stale no_async_loading",
				Group: "cluster", Since: "7.0.0",
				Complexity: "O(N), N slots in the ranges",
				Summary:    "No longer serve the slots of the given ranges",
				Syntax:     "range:(start-slot end-slot)...",
			}, Run: clusterDelslotsrange},
			{Facts: protocol.Facts{
				Name: "cluster|failover", Arity: -2, Flags: "admin stale no_async_loading",
				Group: "cluster", Since: "3.0.0", Complexity: "O(1)",
				Summary: "Always an error: the node is no replica",
				Syntax:  "options:[FORCE|TAKEOVER]",
			}, Run: clusterFailover},
			{Facts: protocol.Facts{
				Name: "cluster|flushslots", Arity: 2, Flags: "admin stale no_async_loading",
				Group: "cluster", Since: "3.0.0", Complexity: "O(N), 16384 slots",
				Summary: "No longer serve any slot",
			}, Run: clusterFlushslots},
			{Facts: protocol.Facts{
				Name: "cluster|forget", Arity: 3, Flags: "admin stale no_async_loading",
				Group: "cluster", Since: "3.0.0", Complexity: "O(1)",
				Summary: "Always an error: there is no other node",
				Syntax:  "node-id",
			}, Run: clusterForget},
			{Facts: protocol.Facts{
				Name: "cluster|getkeysinslot", Arity: 4, Flags: "stale",
				Group: "cluster", Since: "3.0.0", Tips: "nondeterministic_output",
				Complexity: "O(N), N keys returned",
				Summary:    "Keys in a slot, up to count",
				Syntax:     "slot count",
			}, Run: clusterGetkeysinslot},
			engine.HelpRow(protocol.Facts{Name: "cluster|help", Group: "cluster", Since: "5.0.0"},
				"ADDSLOTS <slot> [<slot> ...]",
				"    Serve these slots.",
				"ADDSLOTSRANGE <start slot> <end slot> [<start slot> <end slot> ...]",
				"    Serve the slots of these ranges, ends included.",
				"BUMPEPOCH",
				"    Raise the epoch of the configuration.",
				"COUNT-FAILURE-REPORTS <node-id>",
				"    How many nodes report that <node-id> fails: 0.",
				"COUNTKEYSINSLOT <slot>",
				"    How many keys are in <slot>.",
				"DELSLOTS <slot> [<slot> ...]",
				"    Stop serving these slots.",
				"DELSLOTSRANGE <start slot> <end slot> [<start slot> <end slot> ...]",
				"    Stop serving the slots of these ranges, ends included.",
				"FAILOVER [FORCE|TAKEOVER]",
				"    Replaces a master by its replica; an error here, as there is no replica.",
				"FORGET <node-id>",
				"    Removes another node; an error here, as there is none.",
				"GETKEYSINSLOT <slot> <count>",
				"    Up to <count> keys in <slot>.",
				"FLUSHSLOTS",
				"    Stop serving all slots.",
				"INFO",
				"    State and epochs of the cluster.",
				"KEYSLOT <key>",
				"    The slot that <key> belongs to.",
				"MEET <ip> <port> [<bus-port>]",
				"    Joins another node; here only the own address is accepted.",
				"MYID",
				"    The ID of this node.",
				"NODES",
				"    This node as a line of text:",
				"    ID, address, flags, master, ping, pong, epoch, link and slots.",
				"REPLICATE <node-id>",
				"    Makes this node a replica; an error here, as there is no other node.",
				"RESET [HARD|SOFT]",
				"    Forget slots and, if HARD, the ID and the epochs, too (default: SOFT).",
				"SET-CONFIG-EPOCH <epoch>",
				"    Set the epoch of a node that has none.",
				"SETSLOT <slot> (IMPORTING <node-id>|MIGRATING <node-id>|STABLE|NODE <node-id>)",
				"    Serve <slot> if NODE is this node. The other states need a second node.",
				"REPLICAS <node-id>",
				"    The replicas of a node: none.",
				"SAVECONFIG",
				"    Accepted without effect.",
				"SLOTS",
				"    The ranges of slots that are served, each with first and last slot and the",
				"    address and ID of this node.",
				"SLOT-STATS",
				"    Keys, memory, processor time and bytes of slots, by SLOTSRANGE <first> <last> or by",
				"    ORDERBY <metric> [LIMIT <n>] [ASC|DESC].",
				"SHARDS",
				"    The ranges of slots that are served, and this node.",
				"LINKS",
				"    The connections to other nodes: none."),
			{Facts: protocol.Facts{
				Name: "cluster|info", Arity: 2, Flags: "stale",
				Group: "cluster", Since: "3.0.0", Tips: "nondeterministic_output", Complexity: "O(1)",
				Summary: "State of the cluster and its epochs",
			}, Run: clusterInfo},
			{Facts: protocol.Facts{
				Name: "cluster|keyslot", Arity: 3, Flags: "stale",
				Group: "cluster", Since: "3.0.0", Complexity: "O(N), N bytes of the key",
				Summary: "Slot of a key",
				Syntax:  "key:string",
			}, Run: clusterKeyslot},
			{Facts: protocol.Facts{
				Name: "cluster|links", Arity: 2, Flags: "stale",
				Group: "cluster", Since: "7.0.0", Tips: "nondeterministic_output",
				Complexity: "O(1)",
				Summary:    "Connections to other nodes: always an empty list",
			}, Run: clusterLinks},
			{Facts: protocol.Facts{
				Name: "cluster|meet", Arity: -4, Flags: "admin stale no_async_loading",
				Group: "cluster", Since: "3.0.0", Complexity: "O(1)",
				Summary: "Accepts only the address of this node",
				Syntax:  "ip port [cluster-bus-port:integer@4.0.0]",
				History: []string{"4.0.0 `cluster_bus_port`"},
			}, Run: clusterMeet},
			{Facts: protocol.Facts{
				Name: "cluster|myid", Arity: 2, Flags: "stale",
				Group: "cluster", Since: "3.0.0", Complexity: "O(1)",
				Summary: "ID of this node",
			}, Run: clusterMyid},
			{Facts: protocol.Facts{
				Name: "cluster|myshardid", Arity: 2, Flags: "stale",
				Group: "cluster", Since: "7.2.0", Tips: "nondeterministic_output", Complexity: "O(1)",
				Summary: "ID of the shard of this node",
			}, Run: clusterMyshardid},
			{Facts: protocol.Facts{
				Name: "cluster|nodes", Arity: 2, Flags: "stale",
				Group: "cluster", Since: "3.0.0", Tips: "nondeterministic_output",
				Complexity: "O(N), 16384 slots",
				Summary:    "This node and its slots, as a line of nodes.conf",
			}, Run: clusterNodes},
			{Facts: protocol.Facts{
				Name: "cluster|replicas", Arity: 3, Flags: "admin stale",
				Group: "cluster", Since: "5.0.0", Tips: "nondeterministic_output", Complexity: "O(1)",
				Summary: "Replicas of a node: always an empty list",
				Syntax:  "node-id",
			}, Run: clusterReplicas},
			{Facts: protocol.Facts{
				Name: "cluster|replicate", Arity: 3, Flags: "admin stale no_async_loading",
				Group: "cluster", Since: "3.0.0", Complexity: "O(1)",
				Summary: "Always an error: there is no other node to copy",
				Syntax:  "node-id",
			}, Run: clusterReplicate},
			{Facts: protocol.Facts{
				Name: "cluster|reset", Arity: -2, Flags: "admin noscript stale",
				Group: "cluster", Since: "3.0.0",
				Complexity: "O(N), 16384 slots",
				Summary:    "Return the node to its initial state, with a new ID if HARD",
				Syntax:     "reset-type:[HARD|SOFT]",
			}, Run: clusterReset},
			{Facts: protocol.Facts{
				Name: "cluster|saveconfig", Arity: 2, Flags: "admin stale no_async_loading",
				Group: "cluster", Since: "3.0.0", Complexity: "O(1)",
				Summary: "Accepted without effect",
			}, Run: clusterSaveconfig},
			{Facts: protocol.Facts{
				Name: "cluster|set-config-epoch", Arity: 3, Flags: "admin stale no_async_loading",
				Group: "cluster", Since: "3.0.0", Complexity: "O(1)",
				Summary: "Set the epoch of a node that has none",
				Syntax:  "config-epoch",
			}, Run: clusterSetConfigEpoch},
			{Facts: protocol.Facts{
				Name: "cluster|setslot", Arity: -4, Flags: "admin stale no_async_loading",
				Group: "cluster", Since: "3.0.0", Complexity: "O(1)",
				Summary: "Serve a slot or not, by the ID of its node",
				Syntax:  "slot subcommand:(IMPORTING importing=node-id:string | MIGRATING migrating=node-id:string | NODE node=node-id:string | STABLE)",
			}, Run: clusterSetslot},
			{Facts: protocol.Facts{
				Name: "cluster|shards", Arity: 2, Flags: "loading stale",
				Group: "cluster", Since: "7.0.0", Tips: "nondeterministic_output",
				Complexity: "O(N), 16384 slots",
				Summary:    "The shard of this node with its slots",
			}, Run: clusterShards},
			{Facts: protocol.Facts{
				Name: "cluster|slaves", Arity: 3, Flags: "admin stale",
				Group: "cluster", Since: "3.0.0", Tips: "nondeterministic_output", Deprecated: "5.0.0", ReplacedBy: "`CLUSTER REPLICAS`",
				Complexity: "O(1)",
				Summary:    "Former name of CLUSTER REPLICAS",
				Syntax:     "node-id",
			}, Run: clusterSlaves},
			{Facts: protocol.Facts{
				Name: "cluster|slot-stats", Arity: -4, Flags: "loading stale",
				Group: "cluster", Since: "8.2.0", Tips: "nondeterministic_output request_policy:all_shards",
				Complexity: "O(N log N), N slots; with the memory, times the keys in each",
				Summary:    "Keys, memory, processor time and bytes of each slot of this node",
				Syntax:     "filter:(slotsrange:(SLOTSRANGE start-slot:integer end-slot:integer) | ORDERBY orderby:(metric [LIMIT limit:integer] order:[ASC|DESC]))",
			}, Run: clusterSlotStats},
			{Facts: protocol.Facts{
				Name: "cluster|slots", Arity: 2, Flags: "loading stale",
				Group: "cluster", Since: "3.0.0", Tips: "nondeterministic_output", Deprecated: "7.0.0", ReplacedBy: "`CLUSTER SHARDS`",
				Complexity: "O(N), 16384 slots",
				Summary:    "Ranges of slots with the address of this node",
				History: []string{
					"4.0.0 ID of the node",
					"7.0.0 Metadata of the network address",
				},
			}, Run: clusterSlots},
		})},
		{Facts: protocol.Facts{
			Name: "readonly", Arity: 1, Flags: "loading stale fast",
			Group: "cluster", Since: "3.0.0", Categories: "connection", Complexity: "O(1)",
			Summary: "Read at a replica that would redirect the client to its primary; see CLIENT CAPA",
		}, Run: readonly, OfConnection: true},
		{Facts: protocol.Facts{
			Name: "readwrite", Arity: 1, Flags: "loading stale fast",
			Group: "cluster", Since: "3.0.0", Categories: "connection", Complexity: "O(1)",
			Summary: "Undo READONLY",
		}, Run: readwrite, OfConnection: true},
	}
}

// mode is the name of the mode in HELLO and INFO.
func mode(srv *engine.Engine) string {
	if srv.Cluster != nil {
		return "cluster"
	}
	return "standalone"
}

// clustered reports whether the server is a cluster, and replies an error if not.
func clustered(c *engine.Call) bool {
	if c.Engine.Cluster == nil {
		c.Reply.Error(engine.ErrNoCluster)
		return false
	}
	return true
}

// inCluster makes commands reply an error if the server is no cluster.
func inCluster(rows []engine.Command) []engine.Command {
	for i := range rows {
		run := rows[i].Run
		rows[i].Run = func(c *engine.Call) {
			if clustered(c) {
				run(c)
			}
		}
	}
	return rows
}

// node is a node's addresses as clients see them, and its slots, as first and last ones.
type node struct {
	id, ip, hostname string
	port, busPort    int64
	tlsPort          int64 // 0 if it does not serve TLS
	slots            [][2]int
}

// nodes returns this node, and the others of a simulated cluster.
func nodes(srv *engine.Engine) []node {
	list := []node{thisNode(srv)}
	for _, n := range srv.Cluster.Others {
		list = append(list, node{id: n.ID, ip: n.Host, port: n.Port, busPort: n.Port + 10000, slots: n.Slots})
	}
	return list
}

func thisNode(srv *engine.Engine) node {
	c := &srv.Config
	n := node{slots: ranges(srv.Cluster), id: srv.Cluster.ID, ip: c.ClusterAnnounceIP, hostname: c.ClusterHostname, port: c.ClusterAnnouncePort, busPort: c.ClusterAnnounceBusPort}
	port, tlsPort := srv.Ports()
	if n.port == 0 {
		n.port = port
	}
	if n.tlsPort = c.ClusterAnnounceTLSPort; n.tlsPort == 0 {
		n.tlsPort = tlsPort
	}
	if n.busPort == 0 {
		if n.busPort = c.ClusterPort; n.busPort == 0 {
			n.busPort = port + 10000
		}
	}
	return n
}

// portFor returns the port for clients that connect as s does: plain or TLS.
func (n *node) portFor(s *engine.Session) int64 {
	if s.Peer.Secure {
		return n.tlsPort
	}
	return n.port
}

// ranges returns the slots that the node has, as first and last slots.
func ranges(cl *engine.Cluster) (list [][2]int) {
	for i := range keyslot.Count {
		if !cl.Served[i] {
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

// description returns the line of CLUSTER NODES for a node.
func description(n node, flags string, epoch int64, s *engine.Session) string {
	line := fmt.Sprintf("%s %s:%d@%d", n.id, n.ip, n.portFor(s), n.busPort)
	if n.hostname != "" {
		line += "," + n.hostname
	}
	line += fmt.Sprintf(" %s - 0 0 %d connected", flags, epoch)
	for _, r := range n.slots {
		line += " " + strconv.Itoa(r[0])
		if r[1] > r[0] {
			line += "-" + strconv.Itoa(r[1])
		}
	}
	return line
}

func clusterSlots(c *engine.Call) {
	list, n := nodes(c.Engine), 0
	for i := range list {
		n += len(list[i].slots)
	}
	c.Reply.Array(n)
	for i := range list {
		for _, r := range list[i].slots {
			c.Reply.Array(3)
			c.Reply.Int(int64(r[0]))
			c.Reply.Int(int64(r[1]))
			replyNode(c, &list[i])
		}
	}
}

// replyNode appends a node as in CLUSTER SLOTS.
func replyNode(c *engine.Call, n *node) {
	kind := c.Engine.Config.ClusterEndpoint
	c.Reply.Array(4)
	switch {
	case kind == config.EndpointUnknown:
		c.Reply.Null()
	case kind == config.EndpointIP:
		c.Reply.BulkString(n.ip)
	case n.hostname == "":
		c.Reply.BulkString("?")
	default:
		c.Reply.BulkString(n.hostname)
	}
	c.Reply.Int(n.portFor(c.Session))
	c.Reply.BulkString(n.id)
	var more []string
	if kind != config.EndpointIP {
		more = append(more, "ip", n.ip)
	}
	if kind != config.EndpointHostname && n.hostname != "" {
		more = append(more, "hostname", n.hostname)
	}
	c.Reply.Map(len(more) / 2)
	for _, word := range more {
		c.Reply.BulkString(word)
	}
}

func clusterShards(c *engine.Call) {
	list := nodes(c.Engine)
	c.Reply.Array(len(list))
	for i := range list {
		replyShard(c, &list[i])
	}
}

// replyShard appends a node and its slots as in CLUSTER SHARDS.
func replyShard(c *engine.Call, n *node) {
	endpoint := n.ip
	switch c.Engine.Config.ClusterEndpoint {
	case config.EndpointUnknown:
		endpoint = ""
	case config.EndpointHostname:
		if endpoint = n.hostname; endpoint == "" {
			endpoint = "?"
		}
	}
	c.Reply.Map(2)
	c.Reply.BulkString("slots")
	c.Reply.Array(2 * len(n.slots))
	for _, r := range n.slots {
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

func clusterInfo(c *engine.Call) {
	cl := c.Engine.Cluster
	state, slots, known := "ok", cl.Assignments(), 1+len(cl.Others)
	size := known
	if cl.Down(&c.Engine.Config) {
		state = "fail"
	}
	if slots == 0 {
		size = 0
	}
	c.Reply.Verbatim("txt", fmt.Sprintf("cluster_state:%s\r\ncluster_slots_assigned:%d\r\ncluster_slots_ok:%d\r\n"+
		"cluster_slots_pfail:0\r\ncluster_slots_fail:0\r\ncluster_known_nodes:%d\r\ncluster_size:%d\r\n"+
		"cluster_current_epoch:%d\r\ncluster_my_epoch:%d\r\ncluster_stats_messages_sent:0\r\n"+
		"cluster_stats_messages_received:0\r\ntotal_cluster_links_buffer_limit_exceeded:0\r\n",
		state, slots, slots, known, size, cl.CurrentEpoch, cl.Epoch))
}

func clusterNodes(c *engine.Call) {
	text := ""
	for i, n := range nodes(c.Engine) {
		flags, epoch := "myself,master", c.Engine.Cluster.Epoch
		if i > 0 {
			flags, epoch = "master", 0
		}
		text += description(n, flags, epoch, c.Session) + "\n"
	}
	c.Reply.Verbatim("txt", text)
}

func clusterMyid(c *engine.Call) { c.Reply.BulkString(c.Engine.Cluster.ID) }

func clusterMyshardid(c *engine.Call) { c.Reply.BulkString(c.Engine.Cluster.Shard) }

func clusterLinks(c *engine.Call) { c.Reply.Array(0) }

func clusterKeyslot(c *engine.Call) { c.Reply.Int(int64(keyslot.Of(c.Bytes()))) }

func clusterCountkeysinslot(c *engine.Call) {
	slot := c.Int()
	if slot < 0 || slot >= keyslot.Count {
		c.Fail("ERR Invalid slot")
	}
	if c.OK() {
		c.Reply.Int(int64(c.DB.SlotLen(int(slot))))
	}
}

func clusterGetkeysinslot(c *engine.Call) {
	slot, count := c.Int(), c.Int()
	if slot < 0 || slot >= keyslot.Count || count < 0 {
		c.Fail("ERR Invalid slot or number of keys")
	}
	if !c.OK() {
		return
	}
	n := min(count, int64(c.DB.SlotLen(int(slot))))
	c.Reply.Array(int(n))
	for key := range c.DB.SlotKeys(int(slot)) {
		if n--; n < 0 {
			break
		}
		c.Reply.BulkString(key)
	}
}

func clusterReset(c *engine.Call) {
	hard := c.Is("HARD")
	if !hard {
		c.Is("SOFT")
	}
	if c.Len() > 0 && len(c.All()) == 1 {
		c.Fail(protocol.ErrSyntax)
	} else if c.Len() > 0 {
		c.UnknownSubcommand()
		return
	}
	if c.Engine.Keys.HasKeys() {
		c.Fail("ERR CLUSTER RESET can't be called with master nodes containing keys")
	}
	if !c.OK() {
		return
	}
	for slot := range keyslot.Count {
		assign(c.Engine, slot, false)
	}
	if cl := c.Engine.Cluster; hard {
		cl.ID, cl.Epoch, cl.CurrentEpoch = engine.RandomID(), 0, 0
	}
	c.Reply.OK()
}

func clusterBumpepoch(c *engine.Call) {
	cl := c.Engine.Cluster
	word := "STILL"
	if cl.Epoch == 0 || cl.Epoch != cl.CurrentEpoch {
		cl.CurrentEpoch++
		cl.Epoch = cl.CurrentEpoch
		word = "BUMPED"
	}
	c.Reply.Status(word + " " + strconv.FormatInt(cl.Epoch, 10))
}

func clusterSetConfigEpoch(c *engine.Call) {
	epoch, cl := c.Int(), c.Engine.Cluster
	switch {
	case epoch < 0:
		c.Fail(fmt.Sprintf("ERR Invalid config epoch specified: %d", epoch))
	case cl.Epoch != 0:
		c.Fail("ERR Node config epoch is already non-zero")
	}
	if !c.OK() {
		return
	}
	cl.Epoch, cl.CurrentEpoch = epoch, max(cl.CurrentEpoch, epoch)
	c.Reply.OK()
}

func clusterSaveconfig(c *engine.Call) { c.Reply.OK() }

// isThisNode parses the name of a node and reports whether it is this one; if not, it
// replies the error.
func isThisNode(c *engine.Call, refusal string) bool {
	if name := c.Bytes(); string(name) != c.Engine.Cluster.ID {
		c.Reply.Error("ERR " + refusal + " " + engine.Clip(name, len(name)))
		return false
	}
	return true
}

func clusterCountFailureReports(c *engine.Call) {
	if isThisNode(c, "Unknown node") {
		c.Reply.Int(0)
	}
}

func clusterReplicas(c *engine.Call) {
	if isThisNode(c, "Unknown node") {
		c.Reply.Array(0)
	}
}

func clusterSlaves(c *engine.Call) { clusterReplicas(c) }

func clusterForget(c *engine.Call) {
	if isThisNode(c, "Unknown node") {
		c.Reply.Error("ERR I tried hard but I can't forget myself...")
	}
}

func clusterReplicate(c *engine.Call) {
	if isThisNode(c, "Unknown node") {
		c.Reply.Error("ERR Can't replicate myself")
	}
}

func clusterFailover(c *engine.Call) {
	switch {
	case c.Len() > 1:
		c.UnknownSubcommand()
	case c.Len() == 1 && !c.Is("FORCE") && !c.Is("TAKEOVER"):
		c.Reply.Error(protocol.ErrSyntax)
	default:
		c.Reply.Error("ERR You should send CLUSTER FAILOVER to a replica")
	}
}

func clusterMeet(c *engine.Call) {
	if c.Len() > 3 {
		c.UnknownSubcommand()
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
				c.Fail("ERR Invalid TCP " + which + " port specified: " + engine.Clip(port, math.MaxInt))
			}
			ports = append(ports, n)
		}
	}
	if !c.OK() {
		return
	}
	if len(ports) == 1 {
		ports = append(ports, ports[0]+10000)
	}
	ip, err := netip.ParseAddr(string(host))
	for _, port := range ports {
		if err != nil || ip.Zone() != "" || port < 1 || port > math.MaxUint16 {
			c.Reply.Error(fmt.Sprintf("ERR Invalid node address specified: %s:%d", engine.Clip(host, math.MaxInt), ports[0]))
			return
		}
	}
	if !isOwnAddress(c.Engine, c.Session, ip, ports[0]) {
		c.Reply.Error("ERR zsetd is a cluster of one node and meets no others")
		return
	}
	c.Reply.OK()
}

// isOwnAddress reports whether the node has an address: its announced one, or one of this
// machine with a port at which the server listens.
func isOwnAddress(srv *engine.Engine, s *engine.Session, ip netip.Addr, port int64) bool {
	n, ip := thisNode(srv), ip.Unmap()
	if announced, err := netip.ParseAddr(n.ip); err == nil && announced.Unmap() == ip && (port == n.port || port == n.tlsPort) {
		return true
	}
	if c := &srv.Config; port != c.Port && port != srv.Transports.TCPPort.Load() && port != c.TLSPort && port != srv.Transports.TLSServed.Load() {
		return false
	}
	if local, err := netip.ParseAddrPort(s.Peer.LocalAddr); ip.IsLoopback() || err == nil && local.Addr().Unmap() == ip {
		return true
	}
	addrs, _ := net.InterfaceAddrs()
	return slices.ContainsFunc(addrs, func(a net.Addr) bool {
		prefix, err := netip.ParsePrefix(a.String())
		return err == nil && prefix.Addr().Unmap() == ip
	})
}

func readonly(c *engine.Call) {
	if c.Engine.Config.Valkey() || c.Session.Login.Redirectable || clustered(c) {
		c.Session.Modes.Readonly = true
		c.Reply.OK()
	}
}

func readwrite(c *engine.Call) {
	if c.Engine.Config.Valkey() || c.Session.Login.Redirectable || clustered(c) {
		c.Session.Modes.Readonly = false
		c.Reply.OK()
	}
}

// asking has no effect: no slot ever migrates from another node.
func asking(c *engine.Call) {
	if clustered(c) {
		c.Reply.OK()
	}
}
