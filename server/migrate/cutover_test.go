package migrate

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/servertest"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// primary starts a zsetd that is the source of a move.
func primary(t *testing.T) *servertest.Server {
	return servertest.Run(t, server.Options{Config: map[string]string{"repl-diskless-sync-delay": "0", "repl-backlog-size": "64mb"}})
}

func endpoint(t *testing.T, text string) Endpoint {
	t.Helper()
	e, err := ParseEndpoint(text)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// moveOf returns the options of a move between servers at addresses.
func moveOf(t *testing.T, from, to string) Options {
	library, err := os.ReadFile("../../cmd/zsetd/zsetd.lua")
	if err != nil {
		t.Fatal(err)
	}
	cut := make(chan struct{})
	close(cut)
	var mu sync.Mutex
	return Options{
		From: endpoint(t, "redis://"+from), To: endpoint(t, "redis://"+to), Library: string(library), LoadLibrary: true, CutOver: cut,
		Verify: VerifyAll, Unpause: true,
		Log: func(line string) {
			mu.Lock()
			defer mu.Unlock()
			t.Log(line)
		},
	}
}

func run(t *testing.T, o Options) error {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	return Run(ctx, o)
}

func must(t *testing.T, c *redis.Client, args ...any) any {
	t.Helper()
	reply, err := c.Do(t.Context(), args...).Result()
	if err != nil && err != redis.Nil {
		t.Fatalf("%.200v: %v", args, err)
	}
	return reply
}

// monitor collects the lines of MONITOR of a server, with the time of each.
type monitor struct {
	mu    sync.Mutex
	lines []string
}

func watch(t *testing.T, addr string) *monitor {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := c.Write([]byte("MONITOR\r\n")); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(c)
	if line, err := in.ReadString('\n'); line != "+OK\r\n" {
		t.Fatalf("MONITOR: %q, %v", line, err)
	}
	m := &monitor{}
	go func() {
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			m.mu.Lock()
			m.lines = append(m.lines, line)
			m.mu.Unlock()
		}
	}()
	return m
}

// between returns the lines whose times are in a range, and that have a word.
func (m *monitor) between(first, last, word string) (list []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, line := range m.lines {
		if at, _, _ := strings.Cut(line, " "); at >= first && at <= last && strings.Contains(line, word) {
			list = append(list, line)
		}
	}
	return list
}

// pauseOf makes the options record when the source refuses writes, as MONITOR writes times.
func pauseOf(o *Options) (first, last *string) {
	first, last = new(string), new(string)
	log := o.Log
	o.Log = func(line string) {
		now := fmt.Sprintf("+%d.%06d", time.Now().Unix(), time.Now().Nanosecond()/1000)
		switch {
		case strings.HasPrefix(line, "pausing"):
			*first = now
		case strings.HasPrefix(line, "cut over"):
			*last = now
		}
		log(line)
	}
	return first, last
}

// TestPauseIsShort checks that the number of commands that a move runs while the source
// refuses writes does not depend on the number of keys, also if all keys have members or
// fields with deadlines and all keys are compared. One key is large.
func TestPauseIsShort(t *testing.T) {
	for _, to := range []string{"zsetd", "redis"} {
		t.Run(to, func(t *testing.T) {
			source := primary(t)
			var target string
			if to == "zsetd" {
				target = servertest.Run(t).Addr()
			} else {
				target = startRedis(t)
			}
			c := clientOf(t, source.Addr())
			p := c.Pipeline()
			for i := range 3000 {
				p.Do(t.Context(), "ZADDEX", fmt.Sprint("z", i), "EX", 3600+i, "MEMBERS", 1, 1, "m")
				p.Do(t.Context(), "HSET", fmt.Sprint("h", i), "f", "v")
				p.Do(t.Context(), "HEXPIRE", fmt.Sprint("h", i), 3600, "FIELDS", 1, "f")
				p.Do(t.Context(), "ZADDEX", "large", "EX", 3600, "MEMBERS", 1, i, fmt.Sprint("m", i))
			}
			if _, err := p.Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
			here, there := watch(t, source.Addr()), watch(t, target)
			o := moveOf(t, source.Addr(), target)
			first, last := pauseOf(&o)
			if err := run(t, o); err != nil {
				t.Fatal(err)
			}
			for name, m := range map[string]*monitor{"source": here, "target": there} {
				if n := len(m.between("", "~", "")); n < 100 {
					t.Errorf("%d commands at the %s", n, name)
				}
				if list := m.between(*first, *last, ""); *first == "" || *last == "" || len(list) > 50 {
					t.Errorf("%d commands at the %s while the source refuses writes, %q ...", len(list), name, list[:20])
				}
			}
		})
	}
}

// TestPauseIsRenewed checks that a source refuses writes for at most pauseTime if the tool
// dies while the hook runs, and for as long as it runs otherwise.
func TestPauseIsRenewed(t *testing.T) {
	source, target := primary(t), servertest.Run(t)
	here := clientOf(t, source.Addr())
	must(t, here, "SET", "k", "v")
	o := moveOf(t, source.Addr(), target.Addr())
	dir := t.TempDir()
	o.Hook = "while ! test -e " + dir + "/end; do sleep 0.05; done"
	o.Unpause = false
	left := func() time.Duration {
		info, err := infoOf(t.Context(), here, "clients")
		if err != nil {
			t.Error(err)
		}
		ms, _ := strconv.Atoi(info["paused_timeout_milliseconds"])
		return time.Duration(ms) * time.Millisecond
	}
	ended := make(chan error, 1)
	go func() { ended <- run(t, o) }()
	wait.Until(t, "the source refuses writes", func() bool { return left() > 0 })
	renewed := false
	last := left()
	wait.Until(t, "the pause is renewed", func() bool {
		now := left()
		if now > pauseTime+renewTime { // the time passes in the source, too
			t.Errorf("the pause lasts %v", now)
		}
		renewed = renewed || now > last
		last = now
		return renewed
	})
	if err := os.WriteFile(dir+"/end", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if d := left(); d < pausedTime-time.Hour {
		t.Errorf("after the move the source refuses writes for %v", d)
	}
}

// TestWritesWhenPauseLapses checks that writes which the source accepts while the hook runs,
// because the pause could not be renewed, move too.
func TestWritesWhenPauseLapses(t *testing.T) {
	source, target := primary(t), servertest.Run(t)
	here := clientOf(t, source.Addr())
	o := moveOf(t, source.Addr(), target.Addr())
	dir := t.TempDir()
	o.Hook = "touch " + dir + "/begun; while ! test -e " + dir + "/end; do sleep 0.05; done"
	ended := make(chan error, 1)
	go func() { ended <- run(t, o) }()
	wait.Until(t, "the hook runs", func() bool {
		_, err := os.Stat(dir + "/begun")
		return err == nil
	})
	p := here.Pipeline()
	p.Do(t.Context(), "CLIENT", "UNPAUSE")
	p.Do(t.Context(), "SET", "late", "v")
	if _, err := p.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/end", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if got := must(t, clientOf(t, target.Addr()), "GET", "late"); got != "v" {
		t.Errorf("the target has %v", got)
	}
}
