package server

import (
	"github.com/zsetd/zsetd/server/internal/admin"
	"github.com/zsetd/zsetd/server/internal/command"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/scripting"
)

// families returns the rows of the command table. The file with the handlers of a
// family declares its rows.
func families() [][]engine.Command {
	return [][]engine.Command{
		command.SortedSetCommands(),
		command.SortedSetExpireCommands(),
		command.SortedSetTakeCommands(),
		command.KeyCommands(),
		command.DumpCommands(),
		command.ObjectCommands(),
		command.SortCommands(),
		command.StringCommands(),
		command.BitmapCommands(),
		command.BitfieldCommands(),
		command.HyperloglogCommands(),
		command.GeoCommands(),
		command.HashCommands(),
		command.HashExpireCommands(),
		command.SetCommands(),
		command.ListCommands(),
		command.StreamCommands(),
		command.StreamReadCommands(),
		command.StreamGroupCommands(),
		command.StreamInfoCommands(),
		engine.PubsubCommands(),
		engine.TransactionCommands(),
		scripting.ScriptCommands(),
		scripting.FunctionCommands(),
		admin.ConnectionCommands(),
		admin.ACLCommands(),
		admin.ClientCommands(),
		admin.CommandCommands(),
		admin.ConfigCommands(),
		admin.ClusterCommands(),
		admin.ServerCommands(),
		engine.SaveCommands(),
		admin.DebugCommands(),
		admin.ModuleCommands(),
	}
}

// wiring returns the parts that an engine is made of.
func wiring() engine.Parts {
	return engine.Parts{Commands: families(), Loaded: scripting.LoadLibraries}
}

// parts returns the parts of an engine with the commands of the options.
func parts(o Options) (engine.Parts, error) {
	p := wiring()
	rows, err := programCommands(o.Commands, p.Commands)
	p.Commands = append(p.Commands, rows)
	return p, err
}
