package server

import "github.com/zsetd/zsetd/server/internal/engine"

// Simulation is the control of a server that a test has beside [Server.Advance]. Package
// servertest makes it comfortable; a server whose program calls none of its methods costs
// nothing more. Its methods are safe for concurrent use, and return [ErrWithin] where others do.
type Simulation struct{ engine *engine.Engine }

// The errors by which a function of [Simulation.Intercept] says what becomes of a command.
var (
	ErrHang = engine.ErrHang
	ErrDrop = engine.ErrDrop
	ErrLose = engine.ErrLose
)

// Simulation returns the control of the server. It is for tests; see package servertest.
func (srv *Server) Simulation() Simulation { return Simulation{srv.engine} }

// Intercept makes decide choose what becomes of each command of a connection, by its result: nil
// runs it; one that wraps ErrHang lets it wait until Release is called with that one; ErrDrop closes
// the connection instead; ErrLose runs it and closes the connection before the reply. Any other
// error is the reply. decide is called with the lock of the server, must not use the server, nor
// keep or change args. The commands of Do, of scripts and of replication are not asked about.
func (s Simulation) Intercept(decide func(args [][]byte) error) error {
	return s.engine.Intercept(decide)
}

// Release runs the commands that wait because of a result of the function of Intercept.
func (s Simulation) Release(result error) error { return s.engine.Release(result) }

// StopClock makes the clock of the server stand still, or run on from where it stands. Advance
// moves one that stands.
func (s Simulation) StopClock(still bool) error { return s.engine.StopClock(still) }

// Seed makes the replies of commands that draw elements or keys repeatable, such as SPOP or
// RANDOMKEY: after the same seed, with the same data, the same commands have the same ones, in
// each process. They take O(n log n) then.
func (s Simulation) Seed(seed uint64) error { return s.engine.Seed(seed) }

// ClusterNode is a node of a simulated cluster: its name of 40 hexadecimal digits, its address, and
// its ranges of slots, with both ends.
type ClusterNode = engine.ClusterNode

// Join makes the server, with the parameter cluster-enabled, the node of that index in a cluster. Commands
// on keys of other nodes have the reply MOVED, and CLUSTER shows all nodes.
func (s Simulation) Join(index int, nodes []ClusterNode) error { return s.engine.Join(index, nodes) }
