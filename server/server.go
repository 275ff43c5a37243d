package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	mrand "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zsetd/zsetd/server/keyspace"
	"github.com/zsetd/zsetd/server/rdb"
)

// Server is the keyspace, the command table, and the sessions of its clients.
// Create one with [New]. All methods are safe for concurrent use.
type Server struct {
	log    *slog.Logger
	level  *slog.LevelVar
	table  *table
	loaded func(*Server) // see parts
	start  time.Time
	runID  string

	configFile  string
	startMemory int64 // memory in use when the server was created

	limits limitsPointer
	time   clock

	mu mainLock // guards the fields down to lifecycle, except those with a note

	busy bool      // a script has run for long and lends the lock, only for replies of -BUSY
	idle sync.Cond // signaled when the script has ended

	at          time.Time // the latest reading of the clock
	instant     int64     // the reading for the current turn, in microseconds since 1970
	keys        *keyspace.Keyspace
	rdb         *rdb.Codec // see codec
	scope       commitScope
	keeper      *keeper
	ending      stopFlags // how SHUTDOWN or a signal ends the server
	rand        *mrand.Rand
	config      config
	notify      class
	subkeys     class // the event classes for which members must be recorded
	sessions    map[int64]*Session
	current     *Session // the session whose turn it is
	looping     *loop    // the loop that holds the lock, if any
	lastID      int64
	replID      string // replication ID
	freeing     freeing
	memoryLimit memoryLimit

	watched   map[waitKey]map[*Session]struct{}
	waiting   map[waitKey]*queue
	waiters   uint64                  // total number of waiters so far
	deadlines timerHeap[*Waiter]      // timeouts of waiters
	alarms    timerHeap[*waiterGroup] // alarms of lines
	points    int                     // number of lines for a single score

	timer        *time.Timer
	timerAt      int64 // microseconds since 1970; math.MaxInt64 = not set
	nextExpiry   int64 // the earliest deadline of a key; math.MaxInt64 = none
	activeExpire bool
	cronPaused   bool // DEBUG PAUSE-CRON

	nextIdle     int64 // next check for idle clients, milliseconds since 1970; 0 = none
	pausedUntil  int64 // milliseconds since 1970; 0 = not paused
	pauseAll     bool
	postponed    []*Session // by the pause, in order of arrival
	warnedOfHTTP time.Time
	delayed      []*Session // until their keys are clean, see backlog.go
	keysToPurge  []waitKey  // that waiters need cleaned
	released     []*Session // from the pause; their commands run when this turn ends
	forgotten    int        // lower bound of the sessions in these lists that have ended

	acl      *acl
	pubsub   pubsub
	tracking tracking

	slow         slowConsumers // has a lock of its own
	clientMemory clientMemory
	cluster      *cluster // nil without one

	scripting    scripting
	monitors     map[*Session]struct{}
	closed       bool // stopping
	timerStopped bool // timers are no longer set
	slowlog      slowLog
	latency      latencyLog
	stats

	// The listeners of ListenAndServe. The lock of listening may be taken with mu
	// held, the lifecycle lock must not.
	listening struct {
		sync.Mutex
		tcp   []net.Listener     // including those of TLS
		serve func(net.Listener) // starts serving an additional listener
		open  chan struct{}      // closed when they are open
		once  sync.Once          // closes it

		handed, handedTLS []net.Listener // already open at the start; never changed
	}

	// The transports.
	lifecycle       sync.Mutex
	listeners       map[net.Listener]struct{}
	tcpPort         atomic.Int64 // of the latest listener; 0 without one for TCP
	tlsServed       atomic.Int64 // likewise for TLS
	conns           map[transport]struct{}
	staying         map[transport]struct{} // those that stay although their clients have closed
	nextClosedCheck time.Time              // earliest next check of awaitSlot for closed clients
	loops           loops
	polls           bool          // plain sockets are served by loops
	bufferPool      sync.Pool     // of *ioBuffers
	left            chan struct{} // closed when the next client has left; nil without a waiting listener

	acceptFailures struct {
		told  time.Time // time of the last log line
		times int       // since then
	}
	stopping bool
	stopped  chan struct{} // closed when stopping is set
	running  sync.WaitGroup

	tls tlsState

	keeperClosed sync.Once
	keeperErr    error

	fault            atomic.Pointer[PanicError] // the panic that broke the lock
	broken           chan struct{}              // closed once fault is set
	closedAfterPanic chan struct{}              // closed once everything else is closed after that
}

// ErrServerClosed is returned by Serve, ListenAndServe, Do, Ready and what Dialer
// returns after Shutdown or Close.
var ErrServerClosed = errors.New("zsetd: server closed")

// FileError is returned by New and Ready if the data file cannot be used. Its one
// line names the file, the reason and possible remedies.
type FileError struct{ err error }

// Error returns the message, in one line.
func (e *FileError) Error() string { return "zsetd: " + e.err.Error() }

// Unwrap returns the cause: snapshot.ErrDamaged, snapshot.ErrForeign,
// snapshot.ErrInUse or an error of the operating system.
func (e *FileError) Unwrap() error { return e.err }

// Options configure a Server. The zero value is a server with the defaults of Redis
// without a configuration file, without persistence and without a log.
type Options struct {
	// Config holds parameters by Redis's names, as in redis.conf: {"requirepass":
	// "secret"}. README.md in this directory lists them. Users may be declared as
	// "user", one per line: {"user": "alice on >secret ~a:* +@all"}.
	Config map[string]string

	// File is the path of the data file, which is created if it does not exist. The
	// default is to keep the data in memory only. File takes the place of the
	// parameters dir and dbfilename.
	File string

	// Listeners are open sockets that ListenAndServe serves in place of those that
	// port and unixsocket ask for.
	Listeners []net.Listener

	// TLSListeners likewise take the place of tls-port.
	TLSListeners []net.Listener

	// ConfigFile is the path of the file that Config was read from, for INFO.
	ConfigFile string

	// Logger receives log records for the operator. The default discards them.
	Logger *slog.Logger

	// LogLevel, if not nil, follows the parameter loglevel. Pass it to the handler
	// of Logger.
	LogLevel *slog.LevelVar
}

// parts are the packages above the engine that New puts together.
type parts struct {
	commands [][]Command   // the rows of all families
	loaded   func(*Server) // runs under the lock when the data were loaded or replaced
}

// newServer returns a server that is ready to execute commands.
func newServer(o Options, p parts) (*Server, error) {
	before := usedMemory()
	srv, err := configured(o, p)
	if err != nil {
		return nil, err
	}
	srv.keys = keyspace.New(int(srv.config.databases), srv.hooks())
	if srv.config.clusterEnabled {
		srv.cluster = newCluster()
		srv.keys.IndexSlots(slotCount, keySlot[string])
	}
	srv.applyConfig()
	srv.setClock(srv.clock())
	srv.timer = time.AfterFunc(math.MaxInt64, srv.onTimer)
	srv.sampled[0].at = srv.at
	srv.startMemory = max(leastMemory, usedMemory()-before) // the collector may have run meanwhile
	srv.logStart()
	srv.peakMemory = srv.startMemory
	if err := srv.keep(); err != nil { // from here on the server is in concurrent use
		srv.timer.Stop()
		return nil, err
	}
	return srv, nil
}

// logStart logs the server's version and files.
func (srv *Server) logStart() {
	version, _, _ := buildVersion()
	args := []any{"version", version, "redis_version", redisVersion, "pid", os.Getpid()}
	if srv.configFile != "" {
		args = append(args, "config", srv.configFile)
	}
	if c := &srv.config; c.dbfilename != "" {
		path := filepath.Join(c.dir, c.dbfilename)
		if absolute, err := filepath.Abs(path); err == nil {
			path = absolute
		}
		args = append(args, "file", path)
	}
	srv.log.Info("starting zsetd", args...)
}

// leastMemory is the minimum that an empty server counts as used.
const leastMemory = 512 << 10

// configured returns a server that has parsed its parameters, and nothing else yet.
func configured(o Options, p parts) (*Server, error) {
	t := newTable(p.commands)
	srv := &Server{
		loaded:           p.loaded,
		scripting:        scripting{memoryLimit: defaultScriptMemory},
		log:              o.Logger,
		level:            o.LogLevel,
		table:            t,
		runID:            randomID(),
		configFile:       o.ConfigFile,
		replID:           randomID(),
		acl:              newACL(t),
		rand:             mrand.New(mrand.NewPCG(mrand.Uint64(), mrand.Uint64())),
		config:           defaultConfig(),
		sessions:         map[int64]*Session{},
		watched:          map[waitKey]map[*Session]struct{}{},
		waiting:          map[waitKey]*queue{},
		monitors:         map[*Session]struct{}{},
		timerAt:          math.MaxInt64,
		nextExpiry:       math.MaxInt64,
		activeExpire:     true,
		listeners:        map[net.Listener]struct{}{},
		conns:            map[transport]struct{}{},
		stopped:          make(chan struct{}),
		broken:           make(chan struct{}),
		closedAfterPanic: make(chan struct{}),
	}
	srv.listening.open = make(chan struct{})
	if srv.log == nil {
		srv.log = slog.New(slog.DiscardHandler)
	}
	if srv.level == nil {
		srv.level = new(slog.LevelVar)
	}
	srv.time.init()
	srv.start = srv.time.base
	srv.scope.srv = srv
	srv.idle.L = &srv.mu
	srv.pubsub.init()
	values := o.Config
	if o.File != "" {
		values = maps.Clone(values)
		if values == nil {
			values = map[string]string{}
		}
		values["dir"], values["dbfilename"] = filepath.Dir(o.File), filepath.Base(o.File)
	}
	if err := srv.configure(values); err != nil {
		return nil, err
	}
	srv.polls = srv.config.transport == "epoll"
	if _, told := values["transport"]; !told && os.Getenv("ZSETD_TRANSPORT") == "net" { // tests run with both
		srv.polls = false
	}
	if err := srv.loadUsers(values["user"]); err != nil {
		return nil, err
	}
	srv.listening.handed, srv.listening.handedTLS = o.Listeners, o.TLSListeners
	srv.tls.wanted = len(o.TLSListeners) > 0
	if _, err := srv.applyTLS(&srv.config); err != nil {
		return nil, fmt.Errorf("zsetd: TLS: %w", err)
	}
	return srv, nil
}

// Ready waits until the data are loaded from the file, or ctx ends, and returns the
// error, if any. Until then commands that need the data receive the error -LOADING.
// After Close or Shutdown it returns ErrServerClosed, unless the file could not be
// loaded.
func (srv *Server) Ready(ctx context.Context) error {
	if e := srv.fault.Load(); e != nil {
		return e
	}
	select {
	case <-srv.keeper.loaded:
		if err := srv.keeper.loadErr; err != nil {
			return err
		}
	case <-srv.stopped:
		return srv.closedError()
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-srv.stopped:
		return srv.closedError()
	default:
		return nil
	}
}

// Listening waits until ListenAndServe has opened the configured sockets, or until
// ctx ends, and then returns ctx's error. The data may not be loaded by then, see
// [Server.Ready].
func (srv *Server) Listening(ctx context.Context) error {
	select {
	case <-srv.listening.open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func randomID() string {
	var b [20]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic("BUG: no randomness: " + err.Error())
	}
	return hex.EncodeToString(b[:])
}

// setClock fixes the time for the commit scopes to come.
func (srv *Server) setClock(t time.Time) {
	srv.at, srv.instant = t, t.UnixMicro()
	srv.keys.SetNow(t.UnixMilli())
}

// Now returns the server's time.
func (srv *Server) Now() time.Time { return srv.clock() }

// Advance moves the server's clock forward by d, which may be negative. Everything
// that becomes due expires, times out or is delivered before Advance returns. It is
// for tests; see package servertest.
func (srv *Server) Advance(d time.Duration) {
	defer srv.recovers()
	srv.time.offset.Add(int64(d))
	for {
		srv.onTimer()
		srv.mu.Lock()
		due := srv.sweeps() && srv.nextExpiry <= srv.clock().UnixMilli() || srv.hasDelayed()
		srv.mu.Unlock()
		if !due {
			return
		}
	}
}

// Check verifies the invariants of all data and state of the server, and returns
// the first violation. It visits every element of every value while no command
// runs: it is for tests.
func (srv *Server) Check() (err error) {
	defer srv.setClosedError(&err)
	srv.do(func() { err = srv.check() })
	return err
}

func (srv *Server) check() error {
	if err := srv.keys.Check(); err != nil {
		return err
	}
	watches, waits, waiters, subscriptions := 0, 0, 0, 0
	for _, s := range srv.sessions {
		watches += len(s.watches)
		subscriptions += s.subscriptions()
		if w := s.blocked; w != nil {
			waiters++
			waits += len(w.positions)
		}
		if s.postponed != nil {
			waiters++
		}
	}
	for _, s := range srv.watched {
		watches -= len(s)
	}
	for _, q := range srv.waiting {
		for _, l := range q.groups {
			waits -= l.waiters.Len()
		}
	}
	for _, t := range []topic{channelTopic(), patternTopic(), shardTopic()} {
		for name, a := range t.all(&srv.pubsub) {
			subscriptions -= a.len()
			for i, s := range a.sessions {
				if place, listens := (*t.mine(s))[name]; !listens || place != i {
					return fmt.Errorf("session %d is subscriber %d of %q, but has no such subscription", s.id, i, name)
				}
			}
		}
	}
	if err := srv.tracking.check(srv.sessions); err != nil {
		return err
	}
	if watches != 0 || waits != 0 || subscriptions != 0 || waiters != srv.blockedClients {
		return fmt.Errorf("the indexes of the server do not match its sessions: they differ by %d watched keys, %d awaited keys, %d subscriptions, %d blocked clients",
			watches, waits, subscriptions, waiters-srv.blockedClients)
	}
	return nil
}

// ListenAndServe listens on the configured addresses and serves clients until
// Shutdown or Close. It always returns an error; after these two,
// ErrServerClosed, and a *PanicError if the server has panicked.
func (srv *Server) ListenAndServe() (err error) {
	defer srv.setClosedError(&err)
	ls, err := srv.listen()
	if err != nil {
		return err
	}
	failed := make(chan error)
	ended := make(chan struct{})
	var loading sync.WaitGroup // the goroutine that waits for the load
	defer loading.Wait()
	defer close(ended)
	serve := func(l net.Listener) {
		go func() {
			err := srv.Serve(l)
			if errors.Is(err, net.ErrClosed) {
				return // relisten has replaced it
			}
			select {
			case failed <- err:
			case <-ended:
			}
		}()
	}
	for _, l := range ls {
		serve(l)
	}
	srv.listening.Lock()
	srv.listening.serve = serve
	srv.listening.Unlock()
	srv.listening.once.Do(func() { close(srv.listening.open) })
	loading.Go(func() {
		select {
		case <-srv.keeper.loaded:
		case <-ended:
			return
		}
		if err := srv.keeper.loadErr; err != nil {
			select {
			case failed <- err:
			case <-ended:
			}
			return
		}
		for _, l := range ls {
			srv.logListening(l)
		}
	})
	select {
	case err = <-failed:
	case <-srv.stopped: // no listener may stay open
		err = srv.closedError()
	}
	if !errors.Is(err, ErrServerClosed) {
		srv.Close()
	}
	return err
}

// Shutdown stops accepting clients, runs and answers all commands that have arrived
// so far, whole pipelines, and closes all connections. Blocked clients are
// disconnected. If ctx ends first, the remaining connections are closed at once and
// Shutdown returns ctx's error. Then changes are written to the file, unless the
// save rules are empty; if that fails, the error says so.
func (srv *Server) Shutdown(ctx context.Context) (err error) {
	defer srv.waitClosedAfterPanic(ctx, &err)
	defer srv.setClosedError(&err)
	srv.stop(transport.finish)
	done := make(chan struct{})
	go func() {
		srv.running.Wait()
		close(done)
	}()
	var late error
	wait := ctx.Done()
	if srv.closesAtOnce() {
		wait = closedChannel()
	}
	select {
	case <-done:
	case <-wait:
		srv.stop(transport.abort)
		<-done
		late = ctx.Err()
	}
	srv.loops.stop()
	srv.loops.close()
	srv.stopTimer()
	if err := srv.closeKeeper(); err != nil {
		return err
	}
	return late
}

// closeKeeper writes the last changes, if the save rules or the options of the
// shutdown ask for that, and closes the file. Only the first call has an effect.
func (srv *Server) closeKeeper() error {
	srv.keeperClosed.Do(func() {
		srv.mu.Lock()
		flags := srv.ending
		srv.mu.Unlock()
		srv.keeperErr = srv.keeper.close(srv.keeper.savesAtEnd(flags))
		if srv.keeperErr != nil && flags.force {
			srv.log.Error("cannot save the data; stopping anyway because of FORCE", "error", srv.keeperErr)
			srv.keeperErr = nil
		}
	})
	return srv.keeperErr
}

// Close closes all listeners and connections at once. It still writes changes to
// the file.
func (srv *Server) Close() (err error) {
	defer srv.waitClosedAfterPanic(context.Background(), &err)
	defer srv.setClosedError(&err)
	srv.stop(transport.abort)
	srv.running.Wait()
	srv.loops.stop()
	srv.loops.close()
	srv.stopTimer()
	return srv.closeKeeper()
}

func (srv *Server) stop(each func(transport)) {
	srv.mu.Lock()
	srv.closed = true
	srv.mu.Unlock()
	for _, c := range srv.stopListening() {
		each(c)
	}
}

// stopTimer stops the timer, which commands may have needed so far.
func (srv *Server) stopTimer() {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	srv.timerStopped = true
	srv.timer.Stop()
}

// stopListening closes the listeners, and returns the open connections. No further
// ones can be added.
func (srv *Server) stopListening() []transport {
	srv.lifecycle.Lock()
	defer srv.lifecycle.Unlock()
	if !srv.stopping {
		srv.stopping = true
		close(srv.stopped)
	}
	for l := range srv.listeners {
		l.Close()
	}
	return slices.Collect(maps.Keys(srv.conns))
}

// waitClosedAfterPanic waits, after a panic of the server, until everything is closed.
func (srv *Server) waitClosedAfterPanic(ctx context.Context, err *error) {
	e := srv.fault.Load()
	if e == nil {
		return
	}
	*err = e
	select {
	case <-srv.closedAfterPanic:
	case <-ctx.Done():
	}
}
