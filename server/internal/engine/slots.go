package engine

import (
	"net"
	"strconv"
	"strings"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/base/keyslot"
	"github.com/zsetd/zsetd/server/internal/engine/config"
)

// Cluster is the state of the node; nil if cluster-enabled is no.
type Cluster struct {
	ID, Shard    string
	Served       [keyslot.Count]bool
	Assigned     [keyslot.Count]bool // by a command
	Slots        int                 // number of served slots
	Epoch        int64               // of the node's configuration
	CurrentEpoch int64
	Others       []ClusterNode // of a simulated cluster
}

// ErrNoCluster is an error of cluster support.
const (
	errClusterDown     = "CLUSTERDOWN The cluster is down"
	errClusterReadOnly = "CLUSTERDOWN The cluster is down and only accepts read commands"
	ErrNoCluster       = "ERR This instance has cluster support disabled"
	ErrCrossSlot       = "CROSSSLOT Keys in request don't hash to the same slot"
)

// newCluster returns a node that has all slots.
func newCluster() *Cluster {
	cl := &Cluster{ID: RandomID(), Shard: RandomID(), Slots: keyslot.Count}
	for i := range cl.Served {
		cl.Served[i] = true
	}
	return cl
}

// Misplaced returns why the node does not serve a command, or "": all its keys, or
// its sharded channels, must be in one slot, which the node has. EXEC has the keys
// of all its commands. slot is that slot, or -1.
func (s *Session) Misplaced(cmd *Command, argv [][]byte) (slot int, refusal string) {
	slot = -1
	if cmd.RunsQueue {
		if !s.Transaction.Multi {
			return slot, ""
		}
		for _, q := range s.Transaction.queue {
			if slot, refusal = s.Engine.Cluster.join(slot, q.cmd, q.argv); refusal != "" {
				return slot, refusal
			}
		}
	} else if slot, refusal = s.Engine.Cluster.join(slot, cmd, argv); refusal != "" {
		return slot, refusal
	}
	if slot >= 0 && s.Engine.Cluster.Down(&s.Engine.Config) {
		sharded := cmd.Spec.Flags().Has(protocol.PubSub)
		switch c := &s.Engine.Config; {
		case sharded && c.ClusterShardsWhenDown:
		case sharded, !c.ClusterReadsWhenDown:
			return slot, errClusterDown
		case cmd.Spec.Flags().Has(protocol.Write):
			return slot, errClusterReadOnly
		}
	}
	return slot, ""
}

// join adds the keys and sharded channels of a command to those of the given slot,
// -1 being none.
func (cl *Cluster) join(slot int, cmd *Command, argv [][]byte) (int, string) {
	add := func(key []byte) string {
		k := keyslot.Of(key)
		switch {
		case slot >= 0 && slot != k:
			return ErrCrossSlot
		case !cl.Served[k]:
			for i := range cl.Others {
				if n := &cl.Others[i]; n.Has(k) {
					return "MOVED " + strconv.Itoa(k) + " " + net.JoinHostPort(n.Host, strconv.FormatInt(n.Port, 10))
				}
			}
			return "CLUSTERDOWN Hash slot not served"
		}
		slot = k
		return ""
	}
	var few [8]protocol.KeyRef
	for _, ref := range cmd.Spec.AppendHashed(few[:0], argv) {
		if refusal := add(argv[ref.Index]); refusal != "" {
			return slot, refusal
		}
	}
	return slot, ""
}

// Down reports whether the cluster serves no keys, because slots are missing.
func (cl *Cluster) Down(c *config.Settings) bool {
	slots := cl.Assignments()
	return slots == 0 || slots < keyslot.Count && c.ClusterFullCoverage
}

// Assignments returns how many slots the nodes of the cluster have.
func (cl *Cluster) Assignments() int {
	n := cl.Slots
	for _, other := range cl.Others {
		for _, r := range other.Slots {
			n += r[1] - r[0] + 1
		}
	}
	return n
}

// NotClustered reports whether the server is not a cluster, and replies an error if
// it is: a cluster does not have the command.
func (c *Call) NotClustered(name string) bool {
	if c.Engine.Cluster != nil {
		c.Reply.Error("ERR " + strings.ToUpper(name) + " is not allowed in cluster mode")
		return false
	}
	return true
}
