package admin

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/base/keyslot"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/metrics"
)

// slotMetric is a number of CLUSTER SLOT-STATS.
type slotMetric struct {
	name string
	of   func(srv *engine.Engine, slot int) int64
}

// slotMetrics returns the metrics that are counted, in the order of replies.
func slotMetrics(srv *engine.Engine) []slotMetric {
	list := []slotMetric{{"key-count", slotKeys}}
	if srv.Stats.SlotKinds.Memory {
		list = append(list, slotMetric{"memory-bytes", slotBytes})
	}
	if srv.Stats.SlotKinds.CPU {
		list = append(list, slotMetric{"cpu-usec", func(srv *engine.Engine, slot int) int64 { return workOf(srv, slot).Time.Microseconds() }})
	}
	if srv.Stats.SlotKinds.Net {
		list = append(list,
			slotMetric{"network-bytes-in", func(srv *engine.Engine, slot int) int64 { return workOf(srv, slot).In }},
			slotMetric{"network-bytes-out", func(srv *engine.Engine, slot int) int64 { return workOf(srv, slot).Out }})
	}
	return list
}

// workOf returns the counters of a slot, for the metrics that the node counts.
func workOf(srv *engine.Engine, slot int) metrics.Work { return srv.Stats.SlotStats.Of(slot) }

// slotKeys returns the number of keys in a slot, in all databases.
func slotKeys(srv *engine.Engine, slot int) (n int64) {
	for _, db := range srv.Keys.DBs() {
		n += int64(db.SlotLen(slot))
	}
	return n
}

// slotBytes returns the bytes of the keys in a slot, with their values, as MEMORY USAGE
// estimates them. O(n) for n keys.
func slotBytes(srv *engine.Engine, slot int) (n int64) {
	for _, db := range srv.Keys.DBs() {
		for key := range db.SlotKeys(slot) {
			if e := db.Peek(protocol.BytesOf(key)); e != nil {
				n += int64(e.Bytes() + engine.Footprint(e.Value(), usageSamples))
			}
		}
	}
	return n
}

func clusterSlotStats(c *engine.Call) {
	var slots []int
	switch {
	case c.Len() == 3 && c.Is("SLOTSRANGE"):
		first, last := slot(c), slot(c)
		if first > last {
			c.Fail(fmt.Sprintf("ERR Start slot number %d is greater than end slot number %d", first, last))
		}
		for i := first; i <= last && c.Err() == ""; i++ {
			if c.Engine.Cluster.Served[i] {
				slots = append(slots, i)
			}
		}
	case c.Is("ORDERBY"):
		slots = orderedSlots(c)
	default:
		c.BadSubcommand()
		return
	}
	if !c.OK() {
		return
	}
	metrics := slotMetrics(c.Engine)
	c.Reply.Array(len(slots))
	for _, slot := range slots {
		c.Reply.Array(2)
		c.Reply.Int(int64(slot))
		c.Reply.Map(len(metrics))
		for _, m := range metrics {
			c.Reply.BulkString(m.name)
			c.Reply.Int(m.of(c.Engine, slot))
		}
	}
}

// orderedSlots parses the rest of CLUSTER SLOT-STATS ORDERBY, and returns the slots that it
// asks for.
func orderedSlots(c *engine.Call) (slots []int) {
	name := c.String()
	metrics := slotMetrics(c.Engine)
	i := slices.IndexFunc(metrics, func(m slotMetric) bool { return strings.EqualFold(m.name, name) })
	if i < 0 {
		c.Fail("ERR Unrecognized sort metric for ORDERBY.")
		return nil
	}
	const twice = "ERR Multiple filters of the same type are disallowed."
	limit, sign := int64(0), 0
	for c.More() {
		switch {
		case c.Len() > 1 && c.Is("LIMIT"):
			if limit != 0 {
				c.Fail(twice)
			}
			limit = c.IntIn(1, keyslot.Count, fmt.Sprintf("ERR Limit has to lie in between 1 and %d (maximum number of slots).", keyslot.Count))
		case c.Is("ASC"), c.Is("DESC"):
			if sign != 0 {
				c.Fail(twice)
			}
			if sign = -1; protocol.EqualFold(c.Peek(-1), "ASC") {
				sign = 1
			}
		default:
			c.Fail(protocol.ErrSyntax)
		}
	}
	if c.Err() != "" {
		return nil
	}
	values := map[int]int64{}
	for slot, served := range c.Engine.Cluster.Served {
		if served {
			slots = append(slots, slot)
			values[slot] = metrics[i].of(c.Engine, slot)
		}
	}
	slices.SortFunc(slots, func(a, b int) int {
		return cmp.Or(cmp.Or(sign, -1)*cmp.Compare(values[a], values[b]), cmp.Compare(a, b))
	})
	if limit != 0 {
		slots = slots[:min(int(limit), len(slots))]
	}
	return slots
}
