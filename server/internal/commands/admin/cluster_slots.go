package admin

import (
	"fmt"
	"slices"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/base/keyslot"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/subscription"
)

// The commands that assign slots to the node and remove them.

// slot parses a slot.
func slot(c *engine.Call) int { return int(c.IntIn(0, keyslot.Count-1, errSlot)) }

const errSlot = "ERR Invalid or out of range slot"

// slotSet parses slots, or ranges of them, to be added to the node or, with remove,
// removed from it.
func slotSet(c *engine.Call, ranges, remove bool) []int {
	if ranges && c.Len()%2 != 0 {
		c.Fail(engine.WrongArity(c.Command.Name))
	}
	if !ranges { // all must be valid numbers before any other check
		for i := range c.Len() {
			if n, ok := protocol.ParseInt(c.Peek(i)); !ok || n < 0 || n >= keyslot.Count {
				c.Fail(errSlot)
			}
		}
	}
	var list []int
	seen := map[int]bool{}
	for c.More() {
		first := slot(c)
		last := first
		if ranges {
			if last = slot(c); c.Err() == "" && first > last {
				c.Fail(fmt.Sprintf("ERR start slot number %d is greater than end slot number %d", first, last))
			}
		}
		for i := first; i <= last && c.Err() == ""; i++ {
			switch {
			case remove && !c.Engine.Cluster.Served[i]:
				c.Fail(fmt.Sprintf("ERR Slot %d is already unassigned", i))
			case !remove && c.Engine.Cluster.Assigned[i]:
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

func clusterAddslots(c *engine.Call)      { changeSlots(c, false, false) }
func clusterAddslotsrange(c *engine.Call) { changeSlots(c, true, false) }
func clusterDelslots(c *engine.Call)      { changeSlots(c, false, true) }
func clusterDelslotsrange(c *engine.Call) { changeSlots(c, true, true) }

func changeSlots(c *engine.Call, ranges, remove bool) {
	list := slotSet(c, ranges, remove)
	if !c.OK() {
		return
	}
	for _, slot := range list {
		assign(c.Engine, slot, !remove)
	}
	c.Reply.OK()
}

// assign adds a slot to the node, or removes it. Removing it ends the subscriptions
// of the sharded channels in the slot.
func assign(srv *engine.Engine, slot int, served bool) {
	cl := srv.Cluster
	cl.Assigned[slot] = served
	if cl.Served[slot] == served {
		return
	}
	cl.Served[slot] = served
	if srv.Stats.SlotStats != nil {
		srv.Stats.SlotStats.Forget(slot)
	}
	if served {
		cl.Slots++
		return
	}
	cl.Slots--
	for _, channel := range srv.PubSub.Table.Names(subscription.Shards) {
		if keyslot.Of(channel) != slot {
			continue
		}
		for _, s := range slices.Clone(srv.PubSub.Table.Subscribers(subscription.Shards, channel)) {
			s.Unsubscribe(subscription.Shards, channel)
			r := protocol.NewReply(nil, s.Out.Version())
			r.Push(3)
			r.BulkString("sunsubscribe")
			r.BulkString(channel)
			r.Int(int64(s.Subscriptions().Count(subscription.Shards)))
			s.Push(r.Bytes())
		}
	}
}

func clusterFlushslots(c *engine.Call) {
	if c.Engine.Keys.HasKeys() {
		c.Reply.Error("ERR DB must be empty to perform CLUSTER FLUSHSLOTS.")
		return
	}
	for slot := range keyslot.Count {
		assign(c.Engine, slot, false)
	}
	c.Reply.OK()
}

func clusterSetslot(c *engine.Call) {
	slot := slot(c)
	if !c.OK() {
		return
	}
	served := c.Engine.Cluster.Served[slot]
	switch {
	case c.Len() == 2 && c.Is("MIGRATING"):
		if !served {
			c.Reply.Error(fmt.Sprintf("ERR I'm not the owner of hash slot %d", slot))
		} else if isThisNode(c, "I don't know about node") {
			c.Reply.Error("ERR zsetd is a cluster of one node: there is no other to migrate to")
		}
	case c.Len() == 2 && c.Is("IMPORTING"):
		if served {
			c.Reply.Error(fmt.Sprintf("ERR I'm already the owner of hash slot %d", slot))
		} else if isThisNode(c, "I don't know about node") {
			c.Reply.Error("ERR zsetd is a cluster of one node: there is no other to import from")
		}
	case c.Len() == 1 && c.Is("STABLE"):
		c.Reply.OK()
	case c.Len() == 2 && c.Is("NODE"):
		if isThisNode(c, "Unknown node") {
			assign(c.Engine, slot, true)
			c.Reply.OK()
		}
	default:
		c.Reply.Error("ERR Invalid CLUSTER SETSLOT action or number of arguments. Try CLUSTER HELP")
	}
}
