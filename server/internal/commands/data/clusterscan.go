package data

import (
	"strconv"
	"strings"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/base/keyslot"
	"github.com/zsetd/zsetd/server/internal/engine"
)

// clusterscan is CLUSTERSCAN of Valkey 9.1. A cursor is "0" or NODE-{TAG}-N: the tag tells a
// client of a cluster which node continues. This node has all slots, so one iteration over its keys
// is one of the cluster. Of a cursor of another node, or of this one before a restart, N has no meaning:
// the iteration begins again.
func clusterscan(c *engine.Call) {
	if !c.Config().ClusterEnabled {
		c.Reply.Error(engine.ErrNoCluster)
		return
	}
	text := c.String()
	o := keyScan{scanOptions: scanOptions{count: 10}}
	for c.More() {
		switch {
		case o.read(c):
		case c.Len() >= 2 && c.Is("SLOT"):
			o.slot, o.slotted = int(c.IntIn(0, keyslot.Count-1, "ERR Invalid or out of range slot")), true
		default:
			c.Fail(protocol.ErrSyntax)
		}
	}
	if !c.OK() {
		return
	}
	node, tag, at := c.RunID()[:6], "{}", uint64(0)
	if text == "0" {
		if o.slotted {
			tag = slotTag(o.slot)
		}
	} else {
		parts := strings.Split(text, "-")
		n, ok := uint64(0), len(parts) == 3 && parts[2] != ""
		if ok {
			n, ok = parseCursor([]byte(parts[2]))
		}
		switch {
		case !ok:
			c.Reply.Error("ERR Invalid cursor")
			return
		case o.slotted && keyslot.Of(parts[1]) != o.slot:
			c.Reply.Error("ERR Cursor slot mismatch with SLOT argument")
			return
		case parts[0] == node:
			at = n
		}
		tag = parts[1]
	}
	next, found := o.keys(c, at)
	if next == 0 {
		replyKeys(c, "0", found)
		return
	}
	replyKeys(c, node+"-"+tag+"-"+strconv.FormatUint(next, 10), found)
}

// slotTag returns a hash tag of a slot. It tries names until one has the slot: some 16 384 on
// average.
func slotTag(slot int) string {
	for i := int64(0); ; i++ {
		if tag := "{" + strconv.FormatInt(i, 36) + "}"; keyslot.Of(tag) == slot {
			return tag
		}
	}
}
