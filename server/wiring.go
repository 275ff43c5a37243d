package server

import (
	"github.com/zsetd/zsetd/server/internal/commands/admin"
	"github.com/zsetd/zsetd/server/internal/commands/data"
	"github.com/zsetd/zsetd/server/internal/commands/pubsub"
	"github.com/zsetd/zsetd/server/internal/commands/scripting"
	"github.com/zsetd/zsetd/server/internal/commands/stream"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/peers/forward"
	"github.com/zsetd/zsetd/server/internal/peers/replication"
	"github.com/zsetd/zsetd/server/internal/peers/transport"
)

// families returns the rows of the command table. The file with the handlers of a
// family declares its rows.
func families() [][]engine.Command {
	return [][]engine.Command{
		data.SortedSetCommands(),
		data.SortedSetExpireCommands(),
		data.SortedSetTakeCommands(),
		data.KeyCommands(),
		data.DumpCommands(),
		admin.ObjectCommands(),
		data.SortCommands(),
		data.StringCommands(),
		data.BitmapCommands(),
		data.BitfieldCommands(),
		data.HyperloglogCommands(),
		data.GeoCommands(),
		data.HashCommands(),
		data.HashExpireCommands(),
		data.SetCommands(),
		data.ListCommands(),
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
		admin.LogCommands(),
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
