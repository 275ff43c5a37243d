//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"syscall"

	zsetd "github.com/zsetd/zsetd/server"
)

// A profile is for the compiler: go build finds it as cmd/zsetd/default.pgo, inlines the
// functions that take the time, and calls the usual implementations of interfaces directly. It
// is a CPU profile of a server in this program, which runs the code of zsetd without its
// own profile, under the works of a whole run.

// profiledCommand is the first argument of this program when it is that server.
const profiledCommand = "profiled"

// profileVariable is the environment variable with the path of the profile.
const profileVariable = "ZSETD_BENCH_PROFILE"

// profile runs works and writes the profile of the server.
func (r *report) profile(ctx context.Context, list []work, l limits) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	path, err := filepath.Abs(r.options.profile)
	if err != nil {
		return err
	}
	r.targets = []target{{
		name: "zsetd", binary: self, command: profiledCommand, env: []string{profileVariable + "=" + path}, endedBy: syscall.SIGTERM,
	}}
	if err := r.measureWorks(ctx, list, l); err != nil {
		return err
	}
	if info, err := os.Stat(path); err != nil || info.Size() == 0 {
		return fmt.Errorf("%s: the server has not written the profile", path)
	}
	return nil
}

// serveProfiled is the server, until SIGTERM.
func serveProfiled(port string) (err error) {
	f, err := os.Create(os.Getenv(profileVariable))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	srv, err := zsetd.New(zsetd.Options{Config: map[string]string{"bind": "127.0.0.1", "port": port}})
	if err != nil {
		return err
	}
	defer srv.Close()
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- srv.ListenAndServe() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return nil
	}
}
