// Command zsetd serves sorted sets and the rest of Redis's types over the Redis
// protocol.
//
//	zsetd [redis.conf] [--name value ...]
//	zsetd check | compact | salvage | export | import | functions ...
//
// The parameters are Redis's, as in redis.conf; the README lists them. The tools
// look into the file that a server keeps its data in; zsetd TOOL --help tells of
// each, and of its exit statuses.
//
// SIGINT and SIGTERM stop the server: what clients have asked for is answered,
// then their connections are closed. The exit status is 0 after that, 1 if the
// server cannot start or fails, and 2 if the command line or the configuration
// file is wrong.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/zsetd/zsetd/server"
)

// stopTime is how long clients may take to receive their last replies.
const stopTime = 3 * time.Second

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	if status, ok := runTool(args, os.Stdin, stdout, stderr); ok {
		return status
	}
	if len(args) == 1 {
		switch args[0] {
		case "-h", "--help", "help":
			fmt.Fprint(stdout, server.Usage(), toolUsage())
			return 0
		case "-v", "--version", "version":
			fmt.Fprintln(stdout, "zsetd", version())
			return 0
		}
	}
	values, err := server.ReadArgs(args)
	if err != nil {
		fmt.Fprintln(stderr, "zsetd:", err)
		return 2
	}
	if started, err := daemonize(values); err != nil {
		fmt.Fprintln(stderr, "zsetd: daemonize:", err)
		return 1
	} else if started {
		return 0
	}
	logs := stderr
	if path := values["logfile"]; path != "" {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			fmt.Fprintln(stderr, "zsetd: logfile:", err)
			return 2
		}
		defer f.Close()
		logs = f
	}
	if _, given := values["dbfilename"]; !given {
		values["dbfilename"] = "zsetd.db"
	}
	level := new(slog.LevelVar)
	log := slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: level}))
	srv, err := server.New(server.Options{Config: values, ConfigFile: configFile(args), Logger: log, LogLevel: level})
	if err != nil {
		fmt.Fprintln(stderr, err)
		if _, file := errors.AsType[*server.FileError](err); file {
			return 1
		}
		return 2
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	removePID, err := writePID(values)
	if err != nil {
		log.Warn("cannot write the file for the process's number", "error", err)
	}
	defer removePID()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	done := make(chan error, 1)
	go func() { done <- srv.ListenAndServe() }()
	go manageHeap(ctx, srv)
	go func() {
		if srv.Ready(ctx) != nil {
			return // ListenAndServe returns it
		}
		if err := notifyReady(values); err != nil {
			log.Warn("cannot tell systemd that the server is ready", "error", err)
		}
	}()
	select {
	case err = <-done: // it failed, or a client sent SHUTDOWN: what that has begun is waited for
	case got := <-signals:
		signal.Stop(signals) // a second signal ends the process at once
		srv.Signaled(got == os.Interrupt)
		log.Info("stopping", "reason", "signal")
	}
	limit, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	stopErr := srv.Shutdown(limit)
	if errors.Is(stopErr, context.DeadlineExceeded) {
		log.Warn("clients did not take their last replies in time", "limit", stopTime)
		stopErr = nil
	}
	if err == nil {
		err = <-done
	}
	if errors.Is(err, server.ErrServerClosed) {
		err = stopErr
	}
	if err != nil && !errors.Is(err, server.ErrServerClosed) {
		log.Error("stopped", "error", err)
		return 1
	}
	log.Info("stopped")
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

// version returns the version of the module, and the revision it was built
// from where that is known.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	v := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v += " " + s.Value[:min(12, len(s.Value))]
		}
	}
	return v + " " + info.GoVersion
}
