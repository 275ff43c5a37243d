package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
)

// daemonVariable is set in the process that daemonize starts.
const daemonVariable = "ZSETD_DAEMON"

// daemonize starts the program once more, in the background, if the parameter
// daemonize asks for that, and waits until its sockets are open. parent is true in
// the process that has done so, which must exit with the status; in the other,
// start reports the result. Errors of the start are written to stderr.
func daemonize(values map[string]string, stderr io.Writer) (parent bool, status int, start *startReport) {
	if !strings.EqualFold(values["daemonize"], "yes") {
		return false, 0, nil
	}
	if os.Getenv(daemonVariable) != "" {
		os.Unsetenv(daemonVariable)
		return false, 0, &startReport{pipe: os.NewFile(reportDescriptor, "start")}
	}
	status, err := background(stderr)
	if err != nil {
		fmt.Fprintln(stderr, "zsetd: daemonize:", err)
		return true, 1, nil
	}
	return true, status, nil
}

// background starts the program in the background and returns the status of its start.
func background(stderr io.Writer) (status int, err error) {
	path, err := os.Executable()
	if err != nil {
		return 0, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer r.Close()
	cmd := exec.Command(path, os.Args[1:]...)
	cmd.Env = append(os.Environ(), daemonVariable+"=1")
	cmd.ExtraFiles = []*os.File{w} // the first is reportDescriptor
	if cmd.SysProcAttr = detached(); cmd.SysProcAttr == nil {
		return 0, errors.Join(errors.New("daemonize is not supported on this system: run zsetd as a service"), w.Close())
	}
	if err := errors.Join(cmd.Start(), w.Close()); err != nil {
		return 0, err
	}
	report := bufio.NewReader(r)
	for {
		b, err := report.ReadByte()
		switch {
		case err != nil: // the process has ended
			if err := cmd.Wait(); err == nil {
				return 0, nil // it was stopped before its sockets were open
			}
			return max(1, cmd.ProcessState.ExitCode()), nil
		case b == startedMark:
			return 0, cmd.Process.Release()
		default:
			stderr.Write([]byte{b})
		}
	}
}

const (
	// reportDescriptor is the descriptor over which a process in the background
	// reports its start.
	reportDescriptor = 3

	// startedMark is the byte that ends the report of a successful start.
	startedMark = 0
)

// startReport sends the errors of a start from a process in the background to its
// parent, or that it has succeeded. Later writes are dropped.
type startReport struct {
	mu   sync.Mutex
	pipe *os.File // nil once the start has succeeded
}

// Write writes to the standard error of the process that waits for the start.
func (r *startReport) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pipe == nil {
		return len(p), nil
	}
	return r.pipe.Write(p)
}

// succeeded ends the wait of the process that has started this one. r may be nil.
func (r *startReport) succeeded() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pipe == nil {
		return
	}
	r.pipe.Write([]byte{startedMark}) // the parent may have been killed
	r.pipe.Close()
	r.pipe = nil
}

// writePID writes the process ID to the file that pidfile names, and returns a
// function that removes the file.
func writePID(values map[string]string) (remove func(), err error) {
	path := values["pidfile"]
	if path == "" && strings.EqualFold(values["daemonize"], "yes") {
		path = "/var/run/zsetd.pid"
	}
	if path == "" {
		return func() {}, nil
	}
	if err := os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644); err != nil {
		return func() {}, err
	}
	return func() { os.Remove(path) }, nil
}

// The notifications for systemd.
const (
	isReady   = "STATUS=Ready to accept connections\nREADY=1\n"
	isLeaving = "STATUS=Stopping\nSTOPPING=1\n"
)

// notify sends the state of the server to systemd, if supervised asks for that.
func notify(values map[string]string, state string) error {
	mode, socket := strings.ToLower(values["supervised"]), os.Getenv("NOTIFY_SOCKET")
	if mode != "systemd" && mode != "auto" || socket == "" {
		return nil
	}
	if socket[0] == '@' {
		socket = "\x00" + socket[1:] // in the abstract namespace
	}
	conn, err := net.Dial("unixgram", socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = fmt.Fprint(conn, state)
	return err
}
