package server

import (
	"github.com/zsetd/zsetd/server/internal/admin"
	"github.com/zsetd/zsetd/server/internal/command"
	"github.com/zsetd/zsetd/server/internal/commandlog"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/forward"
	"github.com/zsetd/zsetd/server/internal/pubsub"
	"github.com/zsetd/zsetd/server/internal/replication"
	"github.com/zsetd/zsetd/server/internal/scripting"
	"github.com/zsetd/zsetd/server/internal/stream"
	"github.com/zsetd/zsetd/server/internal/transport"
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
		admin.ObjectCommands(),
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
		stream.Commands(),
		stream.ReadCommands(),
		stream.GroupCommands(),
		stream.InfoCommands(),
		pubsub.Commands(),
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
		commandlog.Commands(),
		admin.SaveCommands(),
		admin.DebugCommands(),
		admin.ModuleCommands(),
		replication.Commands(),
	}
}

// wiring returns the parts that every engine is made of: see parts.
func wiring(o Options, t **transport.Transport) engine.Parts {
	return engine.Parts{
		Commands:    families(),
		Libraries:   scripting.CompileLibraries,
		Replication: func(e *engine.Engine) engine.Replication { return replication.NewPrimary(e) },
		Forwarder:   forward.New,
		Transport: func(e *engine.Engine) (engine.Transport, error) {
			var err error
			*t, err = transport.New(e, transport.Options{Listeners: o.Listeners, TLSListeners: o.TLSListeners, Dial: o.Dial})
			return *t, err
		},
	}
}

// parts returns the parts of an engine with the commands of the options. The engine
// sets t to its transport.
func parts(o Options, t **transport.Transport) (engine.Parts, error) {
	p := wiring(o, t)
	rows, err := programCommands(o.Commands, p.Commands)
	p.Commands = append(p.Commands, rows)
	return p, err
}
