package engine

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math"
	mrand "math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zsetd/zsetd/server/internal/base/clock"
	"github.com/zsetd/zsetd/server/internal/base/keyslot"
	"github.com/zsetd/zsetd/server/internal/base/process"
	"github.com/zsetd/zsetd/server/internal/engine/acl"
	"github.com/zsetd/zsetd/server/internal/engine/config"
	"github.com/zsetd/zsetd/server/internal/engine/metrics"
	"github.com/zsetd/zsetd/server/internal/engine/persist"
	"github.com/zsetd/zsetd/server/internal/engine/tracking"
	"github.com/zsetd/zsetd/server/internal/peers/remote"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/rdb"
)

// Engine is the keyspace, the command table, and the sessions of its clients.
// Create one with [New]. Methods that lock it say so; the caller of others holds the lock.
type Engine struct {
	Identity identity

	Log       *slog.Logger
	level     *slog.LevelVar
	callbacks callbacks

	Mu    mainLock // guards the fields that have no note
	fault fault
	Turn  turn
	Time  *clock.Clock

	Table            *table
	transaction      *Command // of Tx
	checks           checks
	intercepted      *interception                                              // nil unless a test has called Intercept
	compileLibraries func(*Engine, *keyspace.Keyspace, LibraryLimits) Functions // see Parts

	Config config.Settings
	limits limitsPointer // those that are read without the lock
	ACL    *acl.List

	Keys       *keyspace.Keyspace
	rdb        *rdb.Codec // see Codec
	Rand       *mrand.Rand
	Seeded     bool     // see Seed
	Cluster    *Cluster // the slots of the node; nil without a cluster
	prefetched uint64   // keeps the compiler from removing reads; see prefetchElements

	Keeper   *persist.Keeper
	Backups  backups
	withheld []*Session // their replies wait for a checkpoint

	Replication Replication
	Replica     following
	Forwarding  forwarding

	Memory  memoryLimit
	Freeing freeing

	Clients  clients
	PubSub   pubsub
	Tracking tracking.Table[*Session]
	events   notifications

	Waits   waits
	Queries queries
	Timers  timers
	Pauses  pauses

	Scripting scripting
	Stats     stats

	Ending     ending
	Transports transports
}

// ending is the state of the shutdown.
type ending struct {
	Flags    stopFlags // how SHUTDOWN or a signal ends the server
	stopWait *stopWait // nil unless that waits for replicas
	closed   bool      // stopping

	lifecycle sync.Mutex // guards stopping
	stopping  bool
	Stopped   chan struct{}  // closed when stopping is set
	running   sync.WaitGroup // calls of Do

	keeperClosed sync.Once
	keeperErr    error
}

// transports is what the engine knows of the transports.
type transports struct {
	transport Transport
	looping   Loop         // the loop that holds the lock, if any
	TCPPort   atomic.Int64 // of the latest listener; 0 without one for TCP. The transport sets it
	TLSServed atomic.Int64 // likewise for TLS
}

// Options are those of package server that concern the engine, which are described there.
type Options struct {
	Config     map[string]string
	File       string
	ConfigFile string
	Logger     *slog.Logger
	LogLevel   *slog.LevelVar
	Now        time.Time
	Machine    Machine
}

// Parts are the packages above the engine that New puts together.
type Parts struct {
	Commands [][]Command // the rows of all families
	// Libraries compiles the libraries of a keyspace. It is called with the lock if the keyspace
	// is that of the engine.
	Libraries func(*Engine, *keyspace.Keyspace, LibraryLimits) Functions

	// Replication makes the part that feeds replicas, before the engine runs any command;
	// nil for an engine without replicas.
	Replication func(*Engine) Replication

	// Forwarder makes the connections of forward-to, with the lock held; nil for an engine
	// that ignores the parameter.
	Forwarder func(*Engine, remote.Address) Forwarder

	// Transport makes the transport, before the engine runs any command.
	Transport func(*Engine) (Transport, error)
}

// New returns a server that is ready to execute commands.
func New(o Options, p Parts) (*Engine, error) {
	before := UsedMemory()
	srv, err := configured(o, p)
	if err != nil {
		return nil, err
	}
	databases := srv.Config.Databases
	if srv.Config.ClusterEnabled && !srv.Config.OneDatabase() {
		databases = srv.Config.ClusterDatabases
	}
	srv.Keys = keyspace.New(int(databases), srv.hooks())
	kinds, _ := metrics.ParseSlotKinds(srv.Config.ClusterSlotStats)
	srv.Keys.CountMemory(kinds.Memory || srv.Config.KeyMemoryHistograms)
	if srv.Config.ClusterEnabled {
		srv.Cluster = newCluster()
		srv.Keys.IndexSlots(keyslot.Count, keyslot.Of[string])
	}
	srv.Replication = noReplication{}
	if p.Replication != nil {
		srv.Replication = p.Replication(srv)
	}
	srv.Keys.Standby(srv.Replica.Following.Load())
	srv.applyConfig()
	srv.SetClock(srv.Clock())
	srv.Timers.timer = time.AfterFunc(math.MaxInt64, srv.OnTimer)
	srv.Clients.written.New = func() any { return new([blockSize]byte) }
	srv.Stats.sampled[0].at = srv.Turn.At
	srv.Identity.StartMemory = max(leastMemory, UsedMemory()-before) // the collector may have run meanwhile
	srv.logStart()
	srv.Stats.NotePeak(srv.Identity.StartMemory, srv.Turn.At)
	srv.Keeper = persist.New(persist.Options{
		Keys: srv.Keys, Settings: &srv.Config, Log: srv.Log, Start: srv.Identity.Start, Disk: o.Machine.Disk,
	}, host{srv})
	if err := srv.Keeper.Open(); err != nil { // from here on the server is in concurrent use
		srv.Timers.timer.Stop()
		return nil, err
	}
	srv.Replication.Start()
	if srv.Config.BackupEvery != 0 {
		srv.OnTimer()
	}
	return srv, nil
}

// logStart logs the server's version and files.
func (srv *Engine) logStart() {
	own, _, _ := process.Build()
	args := []any{"version", own, "redis_version", process.RedisVersion, "pid", os.Getpid()}
	if srv.Identity.ConfigFile != "" {
		args = append(args, "config", srv.Identity.ConfigFile)
	}
	if c := &srv.Config; c.Dbfilename != "" {
		path := filepath.Join(c.Dir, c.Dbfilename)
		if absolute, err := filepath.Abs(path); err == nil {
			path = absolute
		}
		args = append(args, "file", path)
	}
	srv.Log.Info("starting zsetd", args...)
}

// leastMemory is the minimum that an empty server counts as used.
const leastMemory = 512 << 10

// configured returns a server that has parsed its parameters, and nothing else yet.
func configured(o Options, p Parts) (*Engine, error) {
	t := NewTable(p.Commands)
	srv := &Engine{
		Log:              o.Logger,
		level:            o.LogLevel,
		Table:            t,
		transaction:      newTransaction(),
		compileLibraries: p.Libraries,
		Config:           config.Defaults(),
		Rand:             mrand.New(mrand.NewPCG(mrand.Uint64(), mrand.Uint64())),
		Forwarding:       forwarding{newForwarder: p.Forwarder},
		Scripting:        scripting{MemoryLimit: defaultScriptMemory, LoadTime: defaultLoadTime},
		Identity:         identity{RunID: RandomID(), ReplID: RandomID(), ReplID2: NoReplID, Repl2End: -1, ConfigFile: o.ConfigFile},
		Time:             clock.New(),
		fault:            fault{broken: make(chan struct{}), closed: make(chan struct{})},
		Clients:          clients{Sessions: map[int64]*Session{}, Monitors: map[*Session]struct{}{}},
		Waits:            waits{Watched: map[WaitKey]map[*Session]struct{}{}, Waiting: map[WaitKey]*queue{}},
		Timers:           timers{timerAt: math.MaxInt64, NextExpiry: math.MaxInt64, Debugging: Debugging{ActiveExpire: true}},
		ACL:              acl.New(t.Access),
		Ending:           ending{Stopped: make(chan struct{})},
	}
	for _, k := range commandChecks() {
		srv.addCheck(k)
	}
	if srv.Log == nil {
		srv.Log = slog.New(slog.DiscardHandler)
	} else {
		srv.Log = slog.New(logHandler{srv.Log.Handler(), &srv.callbacks})
	}
	if srv.level == nil {
		srv.level = new(slog.LevelVar)
	}
	if o.Machine.Clock != nil {
		srv.Time.Read(*o.Machine.Clock)
	}
	if !o.Now.IsZero() {
		srv.Time.Advance(o.Now.Sub(srv.Time.Start()))
	}
	srv.Identity.Start = srv.Time.Now()
	srv.Turn.Scope.srv = srv
	srv.Scripting.idle.L = &srv.Mu
	srv.PubSub.encoded[1].SetVersion(3)
	values, err := named(o.Config)
	if err != nil {
		return nil, err
	}
	if o.File != "" {
		values["dir"], values["dbfilename"] = filepath.Dir(o.File), filepath.Base(o.File)
	}
	if err := srv.configure(values); err != nil {
		return nil, err
	}
	srv.logIgnored(values)
	if err := srv.loadUsers(values["user"]); err != nil {
		return nil, err
	}
	if srv.Transports.transport, err = p.Transport(srv); err != nil {
		return nil, err
	}
	return srv, nil
}

// logIgnored names the parameters that only files have, because they are of old versions.
func (srv *Engine) logIgnored(values map[string]string) {
	table := config.Parameters()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if p := config.Find(table, name); p != nil && p.FileOnly {
			srv.Log.Warn("a parameter is ignored", "parameter", p.Name, "reason", p.Doc)
		}
	}
}

// Ready waits until the data are loaded from the file, or ctx ends, and returns the
// error, if any. Until then commands that need the data receive the error -LOADING.
// After Close or Shutdown it returns ErrServerClosed, unless the file could not be
// loaded.
func (srv *Engine) Ready(ctx context.Context) error {
	if e := srv.fault.first.Load(); e != nil {
		return e
	}
	select {
	case <-srv.Keeper.Ready():
		if err := srv.Keeper.LoadError(); err != nil {
			return err
		}
	case <-srv.Ending.Stopped:
		return srv.closedError()
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-srv.Ending.Stopped:
		return srv.closedError()
	default:
		return nil
	}
}

// SetClock fixes the time for the commit scopes to come.
func (srv *Engine) SetClock(t time.Time) {
	srv.Turn.At, srv.Turn.Instant = t, t.UnixMicro()
	srv.Keys.SetNow(t.UnixMilli())
}

// The years that the clock can show: before them times since 1970 are negative, and after
// them they exceed 64 bits in nanoseconds.
const firstYear, lastYear = 1970, 2261

// Advance moves the server's clock forward by d, which may be negative. Everything
// that becomes due expires, times out or is delivered before Advance returns. It is
// for tests; see package servertest. If the time would leave the years 1970 to 2261,
// Advance returns an error and the clock stays as it is.
func (srv *Engine) Advance(d time.Duration) error {
	if err := srv.Within(); err != nil {
		return err
	}
	if year := srv.Clock().UTC().Add(d).Year(); year < firstYear || year > lastYear {
		return fmt.Errorf("zsetd: the clock cannot advance by %v to the year %d, only in %d to %d", d, year, firstYear, lastYear)
	}
	defer srv.recovers()
	srv.Time.Advance(d)
	for due := true; due; {
		srv.OnTimer()
		srv.OutOfTurn(func() {
			due = srv.Sweeps() && srv.Timers.NextExpiry <= srv.Clock().UnixMilli() || srv.Pauses.HasDelayed() || srv.queriesDue(math.MaxInt64) <= srv.Clock().UnixMicro()
		})
	}
	return nil
}

// Check verifies the invariants of all data and state of the server, and returns
// the first violation. It visits every element of every value while no command
// runs: it is for tests.
func (srv *Engine) Check() (err error) {
	defer srv.setClosedError(&err)
	srv.InTurn(func() { err = srv.check() })
	return err
}

func (srv *Engine) check() error {
	if err := srv.Keys.Check(); err != nil {
		return err
	}
	watches, waits, waiters := 0, 0, 0
	for _, s := range srv.Clients.Sessions {
		watches += len(s.Transaction.watches)
		if w := s.Stall.Blocked; w != nil {
			waiters++
			waits += len(w.positions)
		}
		if s.Stall.postponed != nil {
			waiters++
		}
	}
	for _, s := range srv.Waits.Watched {
		watches -= len(s)
	}
	for _, q := range srv.Waits.Waiting {
		for _, l := range q.Groups {
			waits -= l.Waiters.Len()
		}
	}
	if err := srv.PubSub.Table.Check(maps.Values(srv.Clients.Sessions)); err != nil {
		return err
	}
	if err := srv.Queries.check(); err != nil {
		return err
	}
	if err := srv.Tracking.Check(maps.Values(srv.Clients.Sessions)); err != nil {
		return err
	}
	if watches != 0 || waits != 0 || waiters != srv.Stats.BlockedClients {
		return fmt.Errorf("the indexes of the server do not match its sessions: they differ by %d watched keys, %d awaited keys, %d blocked clients",
			watches, waits, waiters-srv.Stats.BlockedClients)
	}
	return nil
}
