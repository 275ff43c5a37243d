package server_test

import (
	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/wiring"
)

// absent describes commands of Redis, or options of commands, that zsetd does not
// implement, and the reason.
type absent struct {
	Version string // of Redis that introduced them
	Group   string
	Names   string // separated by spaces
	Reason  string
}

// absentCommands lists the commands of Redis up to 8.6 that zsetd does not implement.
func absentCommands() []absent {
	const oneNode = "a cluster has one node, with all slots"
	return []absent{
		{"8.0", "modules", "VADD VCARD VDIM VEMB VGETATTR VINFO VISMEMBER VLINKS VRANDMEMBER VRANGE VREM VSETATTR VSIM",
			"there are no sets of vectors"},
		{"8.0", "modules", "JSON.* FT.* TS.* BF.* CF.* CMS.* TOPK.* TDIGEST.*",
			"there are no documents, no search, no time series, no probabilistic structures"},
		{"8.4", "cluster", "CLUSTER|MIGRATION CLUSTER|SYNCSLOTS TRIMSLOTS", oneNode},
	}
}

// allCommands returns the facts of all commands and subcommands, containers
// included.
func allCommands() []*protocol.Command {
	var specs []*protocol.Command
	engine.NewTable(wiring.Families()).Each(func(c *engine.Command) { specs = append(specs, c.Spec) })
	return specs
}
