//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A target is a kind of server.
type target struct {
	name    string
	binary  string
	command string    // the first of two arguments, the other is the port; "" for servers with parameters
	flags   []string  // disable persistence
	env     []string  // in addition to the environment of this process
	endedBy os.Signal // nil: os.Kill
}

// server is a running server.
type server struct {
	target
	cmd    *exec.Cmd
	port   string
	dir    string
	log    bytes.Buffer
	done   chan struct{}
	answer time.Duration // time from the start to the first reply
}

// start starts a server in a folder of its own, and waits until it answers.
func (t target) start(ctx context.Context) (*server, error) {
	dir, err := os.MkdirTemp("", "zsetd-bench-")
	if err != nil {
		return nil, err
	}
	s, err := t.startIn(ctx, dir)
	if err != nil {
		os.RemoveAll(dir)
	}
	return s, err
}

// startIn starts a server in a folder, and waits until it answers. The folder remains if
// the server does not.
func (t target) startIn(ctx context.Context, dir string) (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	args := append([]string{"--port", port, "--bind", "127.0.0.1", "--maxclients", "4000"}, t.flags...)
	if t.command != "" {
		args = []string{t.command, port}
	}
	s := &server{target: t, cmd: exec.CommandContext(ctx, t.binary, args...), port: port, dir: dir, done: make(chan struct{})}
	s.cmd.Dir = dir
	s.cmd.Env = append(os.Environ(), t.env...)
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	begin := time.Now()
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		s.cmd.Wait()
		close(s.done)
	}()
	for time.Since(begin) < 20*time.Second {
		if c, err := s.dial(); err == nil {
			err = c.do("PING")
			c.close()
			if err == nil {
				s.answer = time.Since(begin)
				return s, nil
			}
		}
		select {
		case <-s.done:
			return nil, fmt.Errorf("%s does not start: %s", t.name, s.log.String())
		case <-time.After(time.Millisecond):
		}
	}
	s.kill()
	return nil, fmt.Errorf("%s does not answer", t.name)
}

// stop ends the server and removes its folder.
func (s *server) stop() {
	s.kill()
	os.RemoveAll(s.dir)
}

func (s *server) kill() {
	if s.endedBy != nil {
		s.cmd.Process.Signal(s.endedBy)
	} else {
		s.cmd.Process.Kill()
	}
	<-s.done
}

// cpu returns the CPU time of the server so far, with a resolution of a tick.
func (s *server) cpu() (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	return parseStat(string(b), 11)
}

// cpuWithChildren returns the processor time of the server and of those of its child processes
// that have ended.
func (s *server) cpuWithChildren() (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	own, err1 := parseStat(string(b), 11)
	children, err2 := parseStat(string(b), 13)
	return own + children, errors.Join(err1, err2)
}

// rss returns the resident set of the server in bytes: current and maximum.
func (s *server) rss() (now, peak int64, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		return 0, 0, err
	}
	now, err = parseStatus(string(b), "VmRSS")
	if err == nil {
		peak, err = parseStatus(string(b), "VmHWM")
	}
	return now, peak, err
}

// cpuOfThreads returns the CPU time of the existing threads in nanoseconds. An idle
// server uses less than a tick of cpu for long. Without support of the kernel it
// falls back to cpu.
func (s *server) cpuOfThreads() (time.Duration, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", s.cmd.Process.Pid))
	if err != nil || len(files) == 0 {
		return s.cpu()
	}
	var sum time.Duration
	for _, f := range files {
		b, err := os.ReadFile(f)
		if errors.Is(err, os.ErrNotExist) {
			continue // the thread has ended
		}
		fields := strings.Fields(string(b))
		if err != nil || len(fields) == 0 {
			return s.cpu()
		}
		n, err := strconv.ParseInt(fields[0], 10, 64)
		if err != nil {
			return 0, err
		}
		sum += time.Duration(n)
	}
	return sum, nil
}

// tick is the unit of times in /proc on all architectures that Go supports.
const tick = time.Second / 100

// parseStat returns the sum of two times of /proc/PID/stat, of which the first is the
// field with that index after the program name: 11 for utime and stime, 13 for those of
// children. The program name, in parentheses, may contain any character.
func parseStat(text string, first int) (time.Duration, error) {
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < first+2 {
		return 0, fmt.Errorf("not the stat of a process: %q", text)
	}
	user, err1 := strconv.ParseInt(fields[first], 10, 64)
	system, err2 := strconv.ParseInt(fields[first+1], 10, 64)
	return time.Duration(user+system) * tick, errors.Join(err1, err2)
}

// parseStatus returns a memory size of /proc/PID/status in bytes.
func parseStatus(text, name string) (int64, error) {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			fields := strings.Fields(value)
			if len(fields) != 2 || fields[1] != "kB" {
				return 0, fmt.Errorf("not a size: %q", line)
			}
			n, err := strconv.ParseInt(fields[0], 10, 64)
			return n * 1024, err
		}
	}
	return 0, fmt.Errorf("no %s: the process has ended", name)
}

// machine describes the machine in one line.
func machine() string {
	model := "unknown processor"
	cpuinfo, _ := os.ReadFile("/proc/cpuinfo")
	cores := 0
	for line := range strings.Lines(string(cpuinfo)) {
		name, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(name) {
		case "model name":
			model = strings.TrimSpace(value)
		case "processor":
			cores++
		}
	}
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return fmt.Sprintf("%d cores, %s, Linux %s", cores, model, strings.TrimSpace(string(kernel)))
}

// load returns the load averages of the machine over 1, 5 and 15 minutes.
func load() string {
	b, _ := os.ReadFile("/proc/loadavg")
	if fields := strings.Fields(string(b)); len(fields) >= 3 {
		return strings.Join(fields[:3], " ")
	}
	return "unknown"
}
