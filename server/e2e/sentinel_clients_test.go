package e2e

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/server/e2e/program"
	"github.com/zsetd/zsetd/server/servertest/rerun"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// TestSentinelClients checks that client libraries that ask Sentinels for the primary
// follow a failover. Each one increments a counter all the time. It reports when 100
// increments in a row have succeeded, and does so again after the failover. Errors between
// the two reports do not count: the primary is gone for a time.
func TestSentinelClients(t *testing.T) {
	rerun.SkipRace(t) // the servers are processes
	t.Parallel()
	needRedis(t) // it has the Sentinel
	zsetd := binary.Path(t)
	clients := map[string]func(*testing.T, *service) *follower{
		"go-redis": followGoRedis,
		"ioredis": func(t *testing.T, s *service) *follower {
			return followProgram(t, s, []string{"NODE_PATH=" + program.NodeModules(t)}, "node", filepath.Join("testdata", "node", "ioredis_sentinel.js"))
		},
		"redis-py": func(t *testing.T, s *service) *follower {
			return followProgram(t, s, nil, python(t), filepath.Join("testdata", "python", "redis_py_sentinel.py"))
		},
	}
	s := newService(t, zsetd, zsetd)
	var running []*follower
	for title, start := range clients {
		t.Run(title, func(t *testing.T) {
			f := start(t, s)
			f.title = title
			f.steady(t, "before the failover")
			running = append(running, f)
		})
	}
	if t.Failed() {
		return
	}
	old, next := s.failOver()
	for _, f := range running {
		f.again()
	}
	for _, f := range running {
		f.steady(t, "after the failover")
		n, err := next.client.Get(t.Context(), "counter:"+f.title).Int()
		if err != nil || n < 100 {
			t.Errorf("%s has counted to %d at the new primary: %v", f.title, n, err)
		}
	}
	s.rejoin(old)
	for _, f := range running {
		f.again()
		f.steady(t, "with the old primary as a replica")
	}
}

// follower is a client that increments the counter "counter:" and its title.
type follower struct {
	title  string
	again  func()                // forget the successes until now
	report func() (string, bool) // "steady" after 100 successes in a row; false if the client has ended
}

// steady waits until 100 increments in a row have succeeded.
func (f *follower) steady(t *testing.T, when string) {
	t.Helper()
	if line, ok := f.report(); !ok || line != "steady" {
		t.Fatalf("%s %s: %q", f.title, when, line)
	}
}

// inARow is the number of increments that have to succeed one after the other.
const inARow = 100

// followGoRedis is a follower with the FailoverClient of go-redis.
func followGoRedis(t *testing.T, s *service) *follower {
	c := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: serviceName, SentinelAddrs: s.addrs(), MaxRetries: -1})
	ctx, cancel := context.WithCancel(s.t.Context())
	reports, again, done := make(chan string, 1), make(chan struct{}), make(chan struct{})
	s.t.Cleanup(func() { cancel(); <-done; c.Close() })
	go func() {
		defer close(done)
		row, reported := 0, false
		for ctx.Err() == nil {
			select {
			case <-again:
				row, reported = 0, false
			default:
			}
			if err := c.Incr(ctx, "counter:go-redis").Err(); err != nil {
				row = 0
				wait.Pace(10 * time.Millisecond)
				continue
			}
			if row++; row >= inARow && !reported {
				reported = true
				reports <- "steady"
			}
			wait.Pace(time.Millisecond)
		}
	}()
	return &follower{
		again: func() {
			select {
			case again <- struct{}{}:
			case <-done:
			}
		},
		report: func() (line string, ok bool) {
			ok = wait.Holds(func() bool {
				select {
				case line = <-reports:
					return true
				default:
					return false
				}
			})
			return line, ok
		},
	}
}

// followProgram is a follower that is a program of another language. Its arguments are
// the addresses of the Sentinels.
func followProgram(t *testing.T, s *service, env []string, interpreter, file string) *follower {
	os.Stat(file) // so that go test notices a change of it
	cmd := exec.CommandContext(s.t.Context(), interpreter, append([]string{file}, s.addrs()...)...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = s.t.Output()
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	s.t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	lines := bufio.NewScanner(out)
	return &follower{
		again: func() { io.WriteString(in, "again\n") },
		report: func() (string, bool) {
			timer := time.AfterFunc(2*time.Minute, func() { cmd.Process.Kill() })
			defer timer.Stop()
			ok := lines.Scan()
			return lines.Text(), ok
		},
	}
}

// addrs returns the addresses of the Sentinels.
func (s *service) addrs() (list []string) {
	for _, n := range s.sentinels {
		list = append(list, n.addr())
	}
	return list
}
