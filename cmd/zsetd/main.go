// Command zsetd serves sorted sets and the other types of Redis over the Redis
// protocol.
//
//	zsetd [redis.conf] [--name value ...]
//	zsetd --check-config [redis.conf] [--name value ...]
//	zsetd ping [redis.conf] [--name value ...]
//	zsetd check | backup | restore | diff | compact | salvage | export | import | functions ...
//	zsetd demo
//	zsetd init
//	zsetd completion bash | zsh | fish
//	zsetd cli [COMMAND ...]
//	zsetd stat [-i SECONDS]
//	zsetd top [--once]
//	zsetd migrate FROM TO ...
//	zsetd link QUERY ...
//	zsetd --help [all | PARAMETER | TOOL]
//	zsetd --version
//
// The parameters are Redis's, as in redis.conf; server/PARAMETERS.md lists them. The tools
// read and write the file in which a server keeps its data; zsetd TOOL --help
// describes each, and its exit statuses.
//
// SIGINT and SIGTERM save the data and stop the server, as shutdown-on-sigint and
// shutdown-on-sigterm define: received commands are answered, then the connections
// are closed. If the data cannot be saved the server goes on, as in Redis, unless
// the parameter contains force. Once the server stops, further signals do not
// interrupt the save: a second SIGINT only ends the wait for clients. (In Redis a
// second SIGINT exits without saving.) SIGHUP is ignored, as in Redis: certificates
// are reloaded automatically. So is SIGPIPE: the server goes on when its log has no
// reader any more.
//
// The exit statuses are
//
//	0  it was stopped, by a signal or by SHUTDOWN, and all data to be saved are saved
//	1  it cannot start (the file of the data, the sockets), or has failed
//	2  the command line, the configuration or a file that it names is wrong: it
//	   cannot start until that is corrected
//	70 it has panicked, which is a bug in zsetd: the log names the command,
//	   and the file has the state of the last save
//
// Fatal errors of Go's runtime, which no program can recover from (a stack of 1 GB,
// no memory), end it with status 2, too, and are described on standard error. With
// --check-config the configuration is checked as at a start, certificates and users
// included, and nothing is changed: 0 if it is valid, 1 with the message of a start
// if it is not. The check includes that the file of the data is a snapshot, and
// that files can be written where the parameters say. (A start only warns of a
// pidfile.) Whether ports are free, and the file of the data is sound to its end,
// only a start can tell, and zsetd check.
//
// The environment variable ZSETD_OPTIONS may hold parameters as on the command
// line; the configuration file and the arguments override them. The tools, link excepted, do
// not read it.
//
// zsetd ping asks the server that runs with these parameters, by its unix socket or
// its port: 0 if it serves, 1 if it loads its data or does not answer within 3
// seconds, 2 if the parameters are wrong.
//
// Sockets that systemd has opened (LISTEN_FDS) are served instead of port and
// unixsocket, and those that are named tls instead of tls-port. zsetd.service,
// zsetd.socket and Dockerfile, in this directory, are to be copied.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server"
)

// panicStatus is the exit status after a panic: EX_SOFTWARE of sysexits.h.
const panicStatus = 70

// defaultFile is the data file of a server that is started without dbfilename.
const defaultFile = "zsetd.db"

// stopTime is the longest wait for clients to receive their last replies.
const stopTime = 3 * time.Second

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run runs a tool, or the server until it stops, and returns the exit status.
func run(args []string, stdout, stderr io.Writer) int {
	if status, ok := runTool(args, os.Stdin, stdout, stderr); ok {
		return status
	}
	if status, ok := runHelp(args, stdout, stderr); ok {
		return status
	}
	if len(args) > 0 && args[0] == "ping" {
		return runPing(args[1:], stdout, stderr)
	}
	if i := slices.Index(args, "--check-config"); i >= 0 {
		return checkConfig(slices.Delete(slices.Clone(args), i, i+1), stdout, stderr)
	}
	values, err := readArgs(args)
	if err != nil {
		argumentError(stderr, "", args, err)
		return 2
	}
	parent, status, start := daemonize(values, stderr)
	if parent {
		return status
	}
	if start != nil {
		stderr = start
	}
	logs := stdout
	if path := values["logfile"]; path != "" {
		f, err := openLog(path)
		if err != nil {
			fmt.Fprintln(stderr, "zsetd: logfile:", err)
			return 2
		}
		defer f.Close()
		logs = f
	}
	if _, given := values["dbfilename"]; !given {
		values["dbfilename"] = defaultFile
	}
	return runServer(values, configFile(args), start, logs, stderr)
}

// runServer runs the server until it stops, and returns the exit status. start may be nil.
func runServer(values map[string]string, file string, start *startReport, logs, stderr io.Writer) int {
	plain, secure, err := inheritedSockets()
	if err != nil {
		fmt.Fprintln(stderr, "zsetd:", err)
		return 1
	}
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	level := new(slog.LevelVar)
	role := &logRole{replicaOf: values["replicaof"]}
	handler := newLogHandler(logs, values["log-format"], level, role)
	kept := consoleLog(values)
	if kept != nil {
		handler = kept.Handler(handler)
	}
	log := slog.New(handler)
	srv, err := server.New(server.Options{
		Config: values, ConfigFile: file, Logger: log, LogLevel: level, Listeners: plain, TLSListeners: secure,
	})
	if err != nil {
		fmt.Fprintln(stderr, advise(err, values))
		if _, file := errors.AsType[*server.FileError](err); file {
			return 1
		}
		return 2
	}
	role.server.Store(srv)
	stopConsole, err := startConsole(srv, values, log, kept)
	if err != nil {
		fmt.Fprintln(stderr, advise(err, values))
		srv.Close()
		return 1
	}
	defer stopConsole()
	removePID, pidErr := writePID(values)
	if pidErr != nil {
		log.Warn("cannot write the pidfile", "error", pidErr)
	}
	defer removePID()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go manageHeap(ctx, srv)
	go announce(ctx, srv, values, start, log)
	if err = serve(srv, values, signals, log); err == nil {
		log.Info("stopped")
		return 0
	}
	err = advise(err, values)
	log.Error("stopped", "error", err)
	if start != nil {
		fmt.Fprintln(stderr, err)
	}
	if _, panicked := errors.AsType[*server.PanicError](err); panicked {
		return panicStatus
	}
	return 1
}

// announce reports that the sockets are open to the process that started this one, and to systemd
// that the data are loaded.
func announce(ctx context.Context, srv *server.Server, values map[string]string, start *startReport, log *slog.Logger) {
	if srv.Listening(ctx) != nil {
		return // ListenAndServe returns the same error
	}
	start.succeeded()
	if srv.Ready(ctx) != nil {
		return
	}
	if err := notify(values, isReady); err != nil {
		log.Warn("cannot notify systemd that the server is ready", "error", err)
	}
}

// serve serves clients until the server stops: because it failed, or because of SHUTDOWN or a
// signal. The error is nil if all data are saved that are to be.
func serve(srv *server.Server, values map[string]string, signals <-chan os.Signal, log *slog.Logger) error {
	done := make(chan error, 1)
	go func() { done <- srv.ListenAndServe() }()
	var err error
	stopErr := server.ErrShutdownAborted
	for errors.Is(stopErr, server.ErrShutdownAborted) {
		select {
		case err = <-done: // it failed, or a client sent SHUTDOWN: Shutdown waits for the end of that
		case got := <-signals:
			log.Info("stopping", "reason", "signal", "signal", got.String())
			if err := srv.Signaled(got == os.Interrupt); err != nil {
				log.Error("cannot save the data; shutdown canceled", "error", err)
				continue
			}
		}
		if err := notify(values, isLeaving); err != nil {
			log.Warn("cannot notify systemd that the server is stopping", "error", err)
		}
		stopErr = shutdown(srv, signals, log)
	}
	if err == nil {
		err = <-done
	}
	if errors.Is(err, server.ErrServerClosed) {
		err = stopErr
	}
	if errors.Is(err, server.ErrServerClosed) {
		return nil
	}
	return err
}

// shutdown shuts the server down. Meanwhile it catches signals. SIGINT closes the
// connections at once.
func shutdown(srv *server.Server, signals <-chan os.Signal, log *slog.Logger) error {
	limit, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		for {
			select {
			case got := <-signals:
				log.Info("already stopping: saving the data", "signal", got.String())
				if got == os.Interrupt {
					cancel()
				}
			case <-ended:
				return
			}
		}
	}()
	err := srv.Shutdown(limit)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		log.Warn("timeout while sending the last replies to clients", "limit", stopTime)
		return nil
	}
	return err
}

// optionsVariable is the environment variable with parameters as on a command line.
// Arguments, and the configuration file that they name, override them.
const optionsVariable = "ZSETD_OPTIONS"

// readArgs returns the parameters of the arguments and of the environment.
func readArgs(args []string) (values map[string]string, err error) {
	words, ok := protocol.SplitArgs(nil, []byte(os.Getenv(optionsVariable)))
	if !ok {
		return nil, errors.New(optionsVariable + ": unbalanced quotes")
	}
	options := make([]string, len(words))
	for i, word := range words {
		options[i] = string(word)
	}
	if len(options) > 0 && !strings.HasPrefix(options[0], "--") {
		return nil, fmt.Errorf("%s: %s is not a parameter; write --name value", optionsVariable, options[0])
	}
	defaults, err := server.ReadArgs(options)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", optionsVariable, err)
	}
	if values, err = server.ReadArgs(args); err != nil {
		return nil, err
	}
	maps.Copy(defaults, values)
	return defaults, nil
}

// checkConfig reports whether the server would start with these arguments, as far
// as that can be determined without changing anything.
func checkConfig(args []string, stdout, stderr io.Writer) int {
	values, err := readArgs(args)
	if err != nil {
		argumentError(stderr, "--check-config", args, err)
		return 1
	}
	if _, given := values["dbfilename"]; !given {
		values["dbfilename"] = defaultFile
	}
	if err := server.CheckConfig(server.Options{Config: values, ConfigFile: configFile(args)}); err != nil {
		fmt.Fprintln(stderr, advise(err, values))
		return 1
	}
	fmt.Fprintln(stdout, "zsetd: the configuration is valid")
	return 0
}

// configFile returns the absolute path of the configuration file that the
// command line names, or "".
func configFile(args []string) string {
	if len(args) == 0 || args[0] == "-" || strings.HasPrefix(args[0], "--") {
		return ""
	}
	path, err := filepath.Abs(args[0])
	if err != nil {
		return args[0]
	}
	return path
}
