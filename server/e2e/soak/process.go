//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
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
func (p *process) descriptors() int {
	l, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	return len(l)
}

// rss returns the bytes of the resident set, now and at most.
func (p *process) rss() (now, peak int64) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, 0
	}
	of := func(name string) int64 {
		_, rest, _ := strings.Cut(string(b), name+":")
		fields := strings.Fields(rest)
		if len(fields) == 0 {
			return 0
		}
		n, _ := strconv.ParseInt(fields[0], 10, 64)
		return n << 10
	}
	return of("VmRSS"), of("VmHWM")
}

// cpu returns what the process has used so far.
func (p *process) cpu() time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * time.Second / 100
}

// complaints returns the lines of the log that must not be there.
func (p *process) complaints() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	var bad []string
	lines := strings.Split(string(b), "\n")
	for i, line := range lines {
		for _, word := range []string{"DATA RACE", "panic", "fatal error", "level=ERROR", "invariant"} {
			if strings.Contains(line, word) {
				bad = append(bad, strings.Join(lines[i:min(len(lines), i+60)], "\n"))
				if len(bad) == 3 {
					return strings.Join(bad, "\n…\n")
				}
				break
			}
		}
	}
	return strings.Join(bad, "\n")
}
