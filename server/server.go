package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/zsetd/zsetd/server/internal/commands/admin"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/config"
	"github.com/zsetd/zsetd/server/internal/peers/transport"
	"github.com/zsetd/zsetd/server/internal/wiring"
)

// Server is the keyspace, the command table, and the sessions of its clients.
// Create one with [New]. All methods are safe for concurrent use.
type Server struct {
	engine    *engine.Engine
	transport *transport.Transport
}

// Options configure a Server. The zero value is a server with the defaults of Redis
// without a configuration file, without persistence and without a log.
type Options struct {
	// Config holds parameters by Redis's names, as in redis.conf: {"requirepass":
	// "secret"}. PARAMETERS.md in this directory lists them. Users may be declared as
	// "user", one per line: {"user": "alice on >secret ~a:* +@all"}. Names ignore case. It
	// is an error to give a parameter twice, in two spellings or under an alias.
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

	// Dial connects to the primary of a server that is a replica. The network is "tcp",
	// the address host:port. The default is net.Dialer.DialContext. It is called
	// without locks, and must return when ctx ends.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// ConfigFile is the path of the file that Config was read from, for INFO.
	ConfigFile string

	// Commands are commands of the program's own, beside those of the server.
	Commands []Command

	// Now is the time at which the clock of the server begins, for tests; the default is the time of
	// the system.
	Now time.Time

	// Logger receives log records for the operator. The default discards them. Its
	// handler may be called with locks of the server, and delays it: methods that wait for
	// the server return ErrWithin in the handler.
	Logger *slog.Logger

	// LogLevel, if not nil, follows the parameter loglevel. Pass it to the handler
	// of Logger.
	LogLevel *slog.LevelVar
}

// ErrServerClosed is returned by Serve, ListenAndServe, Do, Subscribe, Save, Backup,
// Ready and the function of Dialer after Shutdown or Close, and ends the loops over
// messages and keys.
var ErrServerClosed = engine.ErrServerClosed

// ErrShutdownAborted is returned by Shutdown if a client sends SHUTDOWN ABORT while
// Shutdown waits for replicas. The server continues.
var ErrShutdownAborted = engine.ErrShutdownAborted

// ErrWithin is returned by the methods of a Server that wait for it if code of the program
// calls them that the server has called and waits for itself: a handler of Options.Logger,
// the handler of a [Command], which has [Call.Do], and for Close, Shutdown and Signaled
// also Options.Dial. Another goroutine may call them, if that code does not wait for it.
var ErrWithin = engine.ErrWithin

// FileError is returned by New and Ready if the data file cannot be used. Its one
// line names the file, the reason and possible remedies. Unwrap returns the cause:
// snapshot.ErrDamaged, ErrNewer, ErrForeign or ErrInUse, or an error of the
// operating system.
type FileError = engine.FileError

// PanicError is the error of Serve, Do, Shutdown, Close and similar methods after
// code of the server has panicked. The server has then stopped: no command runs,
// and changes since the last save are not written. Another server may open the
// file.
type PanicError = engine.PanicError

// New returns a server that is ready to execute commands: through [Server.Do] and
// [Server.Dialer] at once, over the network with [Server.Serve]. It returns an
// error if a parameter is unknown or has an invalid value.
func New(o Options) (*Server, error) {
	commands, err := programCommands(o.Commands)
	if err != nil {
		return nil, err
	}
	e, t, err := wiring.New(o.engine(), o.transport(), commands)
	if err != nil {
		return nil, err
	}
	return &Server{e, t}, nil
}

// CheckConfig returns the error with which New, or ListenAndServe, would refuse the
// options: parameters, users, the files that they name, a file of the data that is not
// one or begins with damage. It opens no socket, locks nothing and changes nothing, so
// it can be called beside a running server. Whether ports are free and the rest of the
// file is sound only a start can tell.
func CheckConfig(o Options) error {
	commands, err := programCommands(o.Commands)
	if err != nil {
		return err
	}
	return wiring.Check(o.engine(), o.transport(), commands)
}

// engine returns the options of the engine.
func (o Options) engine() engine.Options {
	return engine.Options{Config: o.Config, File: o.File, ConfigFile: o.ConfigFile, Now: o.Now, Logger: o.Logger, LogLevel: o.LogLevel}
}

// transport returns the options of the transport.
func (o Options) transport() transport.Options {
	return transport.Options{Listeners: o.Listeners, TLSListeners: o.TLSListeners, Dial: o.Dial}
}

// ReadArgs parses a command line as redis-server does: optionally a configuration
// file first ("-" is standard input, there or at the end), then parameters as
// "--name value …", as if they were at the end of that file. It also accepts
// "--name=value". The result is for [Options.Config].
//
// The error for an unknown parameter or value is a [*ParameterError].
func ReadArgs(args []string) (map[string]string, error) { return config.ReadArgs(args) }

// ParameterError is the error of [ReadArgs] for a parameter of a configuration file or of
// the command line: its name is unknown, or its value is not accepted.
type ParameterError = config.ParameterError

// Version returns the lines of zsetd --version. The first is zsetd and the version of the
// module. The second has the fields of Redis's, which tools read: v is the version of
// Redis whose commands the server has.
func Version() string { return admin.Version() }

// ListenAndServe listens on the configured addresses and serves clients until
// Shutdown or Close. It always returns an error; after these two,
// ErrServerClosed, and a *PanicError if the server has panicked. While one call runs
// another one returns an error.
func (srv *Server) ListenAndServe() (err error) { return srv.transport.ListenAndServe() }

// Listening waits until ListenAndServe has opened the configured sockets, or until
// ctx ends, and then returns ctx's error. If ListenAndServe could not open them, Listening
// returns its error; after Shutdown or Close, ErrServerClosed. The data may not be loaded
// when it returns, see [Server.Ready].
func (srv *Server) Listening(ctx context.Context) error { return srv.transport.Listening(ctx) }

// Ready waits until the data are loaded from the file, or ctx ends, and returns the
// error, if any. Until then commands that need the data receive the error -LOADING.
// After Close or Shutdown it returns ErrServerClosed, unless the file could not be
// loaded.
func (srv *Server) Ready(ctx context.Context) error {
	if err := srv.engine.Within(); err != nil {
		return err
	}
	return srv.engine.Ready(ctx)
}

// Serve accepts clients on l until Shutdown or Close, and closes l. It always
// returns an error; after these two, ErrServerClosed, and a *PanicError if the
// server has panicked. A nil l is an error. A panic of l reaches the caller, and the
// server continues.
func (srv *Server) Serve(l net.Listener) (err error) { return srv.transport.Serve(l) }

// ServeTLS is [Server.Serve] for clients that speak TLS, as the parameters whose
// names begin with tls- say. A program that has a tls.Config of its own passes
// Serve a listener of [tls.NewListener] instead.
func (srv *Server) ServeTLS(l net.Listener) (err error) { return srv.transport.ServeTLS(l) }

// TLSConfig returns a tls.Config for a listener of another protocol, such as HTTPS, with the
// certificates and rules of the parameters whose names begin with tls-. It follows CONFIG SET
// and changes of the files. The error says which file or parameter is wrong.
func (srv *Server) TLSConfig() (*tls.Config, error) { return srv.transport.TLSConfig() }

// Do executes one command without a connection and returns its reply in RESP3, as
// decoded by [protocol.Decode]: nil, int64, float64, bool, string, []any,
// protocol.Map and so on. REPLIES.md in this directory has the types of each command. An error
// reply is returned as an error of type protocol.ReplyError. A blocking command waits until it is served, its timeout
// passes, or ctx ends. While data are being loaded, Do waits.
//
// After Close or Shutdown, Do returns [ErrServerClosed], and so does a call that is
// blocked at that moment. They save the changes of every call that has returned a
// reply. If ctx ends while a change is being written (appendfsync always), Do
// returns the error of ctx although the command has been executed.
//
// Every call is a session of its own: database 0, no transaction, no subscriptions.
// It has all permissions, regardless of the ACL. Commands whose effect lasts as
// long as a connection, or that make a stream of it (SELECT, MULTI, WATCH, SUBSCRIBE,
// MONITOR, CLIENT TRACKING, QUIT, SYNC and similar), are refused: use [Server.Dialer] with a
// client library for these. SHUTDOWN stops the server, and Do returns ErrServerClosed.
//
// Arguments may be strings, []byte, integers and floats of all sizes, bools (1 or 0),
// []string, which stands for its elements, time.Duration and time.Time, and values of
// named types, such as type ID string, that have the kind of one of these. They are sent by
// their kind, and a type made of time.Duration is an integer. Any other type, and a named one too, is
// sent as its method MarshalBinary encodes it (encoding.BinaryMarshaler); without that, it is an
// error, as are nil and pointers.
//
// A Duration is sent in the unit that the command demands where the Duration stands:
// after EX or as the timeout of BLPOP in seconds, after PX or BLOCK in milliseconds,
// rounded up to a whole one. Where whole seconds are demanded, any other duration is
// an error, and so is a Duration where the command demands none, as in the score of
// ZADD.
//
// A Time is sent in seconds (EXPIREAT, EXAT: without their fraction, as Time.Unix) or
// milliseconds since 1970 where the command demands that. Anywhere else, as in a
// score, it is sent in seconds with microseconds as the fraction, which is the
// number that @now stands for.
func (srv *Server) Do(ctx context.Context, args ...any) (reply any, err error) {
	if err := srv.engine.Within(); err != nil {
		return nil, err
	}
	return srv.engine.Do(ctx, args...)
}

// DoMany executes commands one after another, as if a connection had sent them together, and
// returns their replies in order:
//
//	replies, err := srv.DoMany(ctx, []any{"INCR", "views"}, []any{"ZRANGE", "due", 0, -1})
//
// An error reply is an element of type protocol.ReplyError, and the commands after it are executed
// nevertheless. It costs less than as many calls of [Server.Do]. Other commands may run in between,
// and see the changes so far: see [Server.Tx]. Arguments, replies and errors are those of Do. An
// argument that cannot be sent is an error before the first command is executed. If err is not nil, replies are
// those of the commands that have completed by then, the first ones.
func (srv *Server) DoMany(ctx context.Context, commands ...[]any) (replies []any, err error) {
	if err := srv.engine.Within(); err != nil {
		return nil, err
	}
	return srv.engine.DoMany(ctx, commands...)
}

// Apart returns a context for [Server.Do], and for the function that [Server.Dialer] returns,
// for a program that shows the state of the server and must not change it. Commands of that
// call, or of that connection, are left out of the statistics, the slow log, the latency
// monitor, the hot keys, and the access times of keys, unless they write or run a script.
// INFO has their number in apart_commands_processed, and apart_error_replies.
func Apart(ctx context.Context) context.Context { return engine.Apart(ctx) }

// As returns a context for the function that [Server.Dialer] returns. The connection begins as
// that user, without a password: the program has authenticated its client in a way of its own. A
// user that does not exist, or is disabled, has no permissions.
func As(ctx context.Context, user string) context.Context { return engine.WithUser(ctx, user) }

// Dialer returns a function that connects to the server without a network, for any
// client library with a configurable dialer:
//
//	redis.NewClient(&redis.Options{Dialer: srv.Dialer()})
//
// After Close or Shutdown it returns ErrServerClosed. These close its connections
// as they close those of a network.
func (srv *Server) Dialer() func(ctx context.Context, network, addr string) (net.Conn, error) {
	dial := srv.transport.Dialer()
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if err := srv.engine.Within(); err != nil {
			return nil, err
		}
		return dial(ctx, network, addr)
	}
}

// Save writes all changes to the data file and waits until they are on the disk, or
// ctx ends. Clients go on meanwhile, as with BGSAVE: a change is saved if it was made
// before the call. Save returns an error if the server has no data file or cannot
// write it, and [ErrServerClosed] after Close or Shutdown, which save by themselves.
func (srv *Server) Save(ctx context.Context) (err error) {
	if err := srv.engine.Within(); err != nil {
		return err
	}
	return srv.engine.Save(ctx)
}

// Backup writes to w all that the server holds, as of some instant during the call,
// in the format of the files that [Options].File names: a server that is given a file
// with these bytes has the same data. It returns how many bytes that were. Clients go
// on meanwhile. Backup makes a temporary file of that size, beside the data file if
// there is one. After an error, w may have been given a part.
//
// A server that keeps its data in a file saves them there first, as BGSAVE does.
// Backup takes O(n) for n bytes of data, and ends with the error of ctx when that
// ends. It is safe for concurrent use.
func (srv *Server) Backup(ctx context.Context, w io.Writer) (n int64, err error) {
	if err := srv.engine.Within(); err != nil {
		return 0, err
	}
	return srv.engine.Backup(ctx, w)
}

// BackupFile writes to a new file at path what [Server.Backup] writes to a Writer.
// There must be no file at path: the error is then an os.ErrExist. If BackupFile
// returns an error there is no file afterwards, otherwise it is complete, verified
// and on the disk.
func (srv *Server) BackupFile(ctx context.Context, path string) (err error) {
	if err := srv.engine.Within(); err != nil {
		return err
	}
	return srv.engine.BackupFile(ctx, path)
}

// Check verifies the invariants of all data and state of the server, and returns
// the first violation. It visits every element of every value while no command
// runs: it is for tests.
func (srv *Server) Check() (err error) {
	if err := srv.engine.Within(); err != nil {
		return err
	}
	return srv.engine.Check()
}

// Now returns the server's time.
func (srv *Server) Now() time.Time { return srv.engine.Clock() }

// Advance moves the server's clock forward by d, which may be negative. Everything
// that becomes due expires, times out or is delivered before Advance returns. It is
// for tests; see package servertest. If the time would leave the years 1970 to 2261, and
// where other methods return [ErrWithin], Advance panics and the clock stays as it is.
func (srv *Server) Advance(d time.Duration) {
	if err := srv.engine.Advance(d); err != nil {
		panic(err)
	}
}

// IsReplica reports whether the server is a replica of another one, by the parameter
// replicaof or the command REPLICAOF. It takes no lock, so handlers of Options.Logger may
// call it.
func (srv *Server) IsReplica() bool { return srv.engine.Replica.Following.Load() }

// CommandName returns the name by which clients call a command, in lower case: another one
// than its own if the parameter rename-command says so, and "" if there is no such command,
// or it is disabled. The names of subcommands do not change. O(n) for n commands if the name
// is another one. It takes no lock.
func (srv *Server) CommandName(name string) string { return srv.engine.Table.Renamed(name) }

// MemoryLimit returns the parameter maxmemory: bytes, 0 for no limit.
func (srv *Server) MemoryLimit() int64 { return srv.engine.MemoryLimit() }

// Compact moves keys and small values together, if much memory between them is unused, and returns
// what becomes free to the system. It is for a program that is idle and has just collected garbage,
// as cmd/zsetd does; MEMORY PURGE collects first, and then does the same. Compact returns at once. The
// work takes a fifth of a core at most, with the lock of the server for 0.2 ms at a time, and ends
// with [runtime/debug.FreeOSMemory]. O(keys).
func (srv *Server) Compact() { srv.engine.Compact() }

// UsedMemory estimates the bytes that keys, values, clients and scripts take, as in
// used_memory of INFO. It is 0 when the server has failed, and where other methods return
// [ErrWithin]. O(n) for n clients. It may be called concurrently, and waits for the command
// that runs.
func (srv *Server) UsedMemory() (bytes int64) {
	if srv.engine.Within() != nil {
		return 0
	}
	return srv.engine.UsedMemory()
}

// Listen opens a socket at port for each address of bind, which has the form of the parameter
// bind: addresses separated by spaces, * for all; with the prefix - an address that is not
// there is no error. After an error no socket is open. It is for listeners of other protocols
// beside a server.
func Listen(bind string, port int) ([]net.Listener, error) {
	ls, err := transport.ListenPort(bind, int64(port))
	if err == nil && len(ls) == 0 {
		err = fmt.Errorf("no address of %q is available", bind)
	}
	if err != nil {
		for _, l := range ls {
			l.Close()
		}
		return nil, err
	}
	return ls, nil
}

// Signaled prepares the server for the shutdown after a SIGINT, or else a SIGTERM:
// it saves the data as shutdown-on-sigint or shutdown-on-sigterm demands. The
// caller then calls Shutdown, which saves later changes of clients that are still
// connected. If the data cannot be saved, and the parameter does not contain force,
// Signaled returns the error and the server continues: the caller must not stop it.
func (srv *Server) Signaled(interrupt bool) (err error) {
	if err := srv.engine.StopsWithin(); err != nil {
		return err
	}
	return srv.engine.Signaled(interrupt)
}

// Shutdown stops accepting clients, runs and answers all commands that have arrived
// so far, whole pipelines, and closes all connections. Blocked clients are
// disconnected. If ctx ends first, the remaining connections are closed at once and
// Shutdown returns ctx's error. Then changes are written to the file, unless the
// save rules are empty; if that fails, the error says so. A server with replicas first
// waits until they have all changes, for shutdown-timeout at most; SHUTDOWN ABORT ends that
// wait, and Shutdown with [ErrShutdownAborted].
func (srv *Server) Shutdown(ctx context.Context) (err error) { return srv.transport.Shutdown(ctx) }

// Close closes all listeners and connections at once. It still writes changes to
// the file.
func (srv *Server) Close() (err error) { return srv.transport.Close() }
