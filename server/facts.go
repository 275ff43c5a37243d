package server

import (
	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/wiring"
)

// Commands returns the metadata of all commands that a server has by default, by
// their names in lower case. Subcommands are in those of their containers.
func Commands() map[string]*protocol.Command {
	all := map[string]*protocol.Command{}
	for _, c := range engine.NewTable(wiring.Families()).Rows {
		all[c.Name] = c.Spec
	}
	return all
}
