package server

import (
	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/wiring"
)

// Absent describes commands of Redis, or options of commands, that zsetd does not
// implement, and the reason.
type Absent struct {
	Version string // of Redis that introduced them
	Group   string
	Names   string // separated by spaces
	Reason  string
}

// AbsentCommands lists the commands of Redis up to 8.6 that zsetd does not implement.
func AbsentCommands() []Absent {
	const oneNode = "a cluster has one node, with all slots"
	return []Absent{
		{"8.0", "modules", "VADD VCARD VDIM VEMB VGETATTR VINFO VISMEMBER VLINKS VRANDMEMBER VRANGE VREM VSETATTR VSIM",
			"there are no sets of vectors"},
		{"8.0", "modules", "JSON.* FT.* TS.* BF.* CF.* CMS.* TOPK.* TDIGEST.*",
			"there are no documents, no search, no time series, no probabilistic structures"},
		{"8.4", "cluster", "CLUSTER|MIGRATION CLUSTER|SYNCSLOTS TRIMSLOTS", oneNode},
	}
}

// AllCommands returns the facts of all commands and subcommands, containers
// included.
func AllCommands() []*protocol.Command {
	var specs []*protocol.Command
	engine.NewTable(wiring.Families()).Each(func(c *engine.Command) { specs = append(specs, c.Spec) })
	return specs
}
