package wiring

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

// Families returns the rows of the command table. The file with the handlers of a
// family declares its rows.
func Families() [][]engine.Command {
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

// New returns an engine and its transport. commands are rows beside those of Families.
func New(o engine.Options, t transport.Options, commands []engine.Command) (*engine.Engine, *transport.Transport, error) {
	var net *transport.Transport
	e, err := engine.New(o, parts(t, &net, commands))
	return e, net, err
}

// Check returns the error with which New, or ListenAndServe of its transport, would refuse
// the options. It opens no socket.
func Check(o engine.Options, t transport.Options, commands []engine.Command) error {
	var net *transport.Transport
	if err := engine.CheckConfig(o, parts(t, &net, commands)); err != nil {
		return err
	}
	return net.CheckListening()
}

// parts returns the parts of an engine. The engine sets net to its transport.
func parts(o transport.Options, net **transport.Transport, commands []engine.Command) engine.Parts {
	return engine.Parts{
		Commands:    append(Families(), commands),
		Libraries:   scripting.CompileLibraries,
		Replication: func(e *engine.Engine) engine.Replication { return replication.NewPrimary(e) },
		Forwarder:   forward.New,
		Transport: func(e *engine.Engine) (engine.Transport, error) {
			var err error
			*net, err = transport.New(e, o)
			return *net, err
		},
	}
}
