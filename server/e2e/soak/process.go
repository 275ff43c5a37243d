//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// process is a server that runs.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
	log  string // file
}

// start starts a server, which is killed if this process is.
func start(binary, dir string, env, args []string) (*process, error) {
	p := &process{cmd: exec.Command(binary, slices.Concat(args, []string{"--log-format", "logfmt"})...), done: make(chan struct{}), log: filepath.Join(dir, "log")}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, log, log
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

func (p *process) signal(s syscall.Signal) { p.cmd.Process.Signal(s) }

// ended reports whether the process has ended.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// wait waits until the process has ended.
func (p *process) wait(limit time.Duration) error {
	select {
	case <-p.done:
		return nil
	case <-time.After(limit):
		return errors.New("the server does not stop")
	}
}

// descriptors returns how many are open.
func (p *process) descriptors() int64 {
	l, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	return int64(len(l))
}

// complaints returns the lines of the log that must not be there, with those behind them.
func (p *process) complaints() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(string(b), "\n")
	i := slices.IndexFunc(lines, func(line string) bool {
		for _, word := range []string{"DATA RACE", "panic", "fatal error", "level=ERROR", "invariant"} {
			if strings.Contains(line, word) {
				return true
			}
		}
		return false
	})
	if i < 0 {
		return ""
	}
	return strings.Join(lines[i:min(len(lines), i+200)], "\n")
}
