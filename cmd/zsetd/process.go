package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// daemonVariable tells the process that daemonize starts that it is the one.
const daemonVariable = "ZSETD_DAEMON"

// daemonize starts the program once more, in the background, if the parameter
// daemonize asks for that. It reports whether it has.
func daemonize(values map[string]string) (started bool, err error) {
	if !strings.EqualFold(values["daemonize"], "yes") {
		return false, nil
	}
	if os.Getenv(daemonVariable) != "" {
		return false, os.Unsetenv(daemonVariable)
	}
	path, err := os.Executable()
	if err != nil {
		return false, err
	}
	cmd := exec.Command(path, os.Args[1:]...)
	cmd.Env = append(os.Environ(), daemonVariable+"=1")
	if cmd.SysProcAttr = detached(); cmd.SysProcAttr == nil {
		return false, errors.New("this system has no processes without a terminal: start it as a service")
	}
	return true, cmd.Start()
}

// writePID writes the number of the process to the file that pidfile names, and
// returns what removes it.
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

// What systemd is told.
const (
	isReady   = "STATUS=Ready to accept connections\nREADY=1\n"
	isLeaving = "STATUS=Stopping\nSTOPPING=1\n"
)

// notify tells systemd the state of the server, if supervised says that it wants to
// know.
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
