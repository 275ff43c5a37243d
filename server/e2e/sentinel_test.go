package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// Three Sentinels of Redis watch a primary and its replicas: servers of zsetd, of Redis,
// and of both. The servers are processes, and the primary is ended by SIGKILL.

// node is a server, or a Sentinel. It keeps its port and its configuration when it is
// started again.
type node struct {
	t       *testing.T
	program string
	args    []string // after the name of the configuration file
	port    string
	dir     string
	cmd     *exec.Cmd
	done    chan struct{}
	client  *redis.Client
}

// newNode starts a node with the lines of a configuration file, beside its port and
// directory.
func newNode(t *testing.T, program string, conf string, args ...string) *node {
	t.Helper()
	n := &node{t: t, program: program, args: args, dir: t.TempDir()}
	t.Cleanup(func() { n.kill() })
	for attempt := 1; ; attempt++ {
		n.port = freePort(t)
		text := fmt.Sprintf("port %s\nbind 127.0.0.1\ndir %s\n%s", n.port, n.dir, conf)
		if err := os.WriteFile(n.conf(), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		n.client = redis.NewClient(&redis.Options{Addr: n.addr(), Protocol: 2, DisableIdentity: true, DialerRetries: 1, DialTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second})
		t.Cleanup(func() { n.client.Close() })
		if n.start() {
			return n
		}
		if attempt == 5 { // others may take the port
			t.Fatalf("%s does not start:\n%s", program, n.log())
		}
	}
}

func (n *node) conf() string { return filepath.Join(n.dir, "node.conf") }
func (n *node) addr() string { return net.JoinHostPort("127.0.0.1", n.port) }

// start starts the process, and reports whether it answers.
func (n *node) start() bool {
	n.t.Helper()
	log, err := os.OpenFile(filepath.Join(n.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		n.t.Fatal(err)
	}
	defer log.Close()
	n.cmd = exec.Command(n.program, append([]string{n.conf()}, n.args...)...)
	n.cmd.Dir, n.cmd.Stdout, n.cmd.Stderr = n.dir, log, log
	if err := n.cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.done = make(chan struct{})
	go func(cmd *exec.Cmd, done chan struct{}) {
		cmd.Wait() // SIGKILL ends it; the log has everything else
		close(done)
	}(n.cmd, n.done)
	answers := false
	wait.Holds(func() bool {
		answers = n.client.Ping(n.t.Context()).Err() == nil
		return answers || n.ended()
	})
	return answers
}

func (n *node) ended() bool {
	select {
	case <-n.done:
		return true
	default:
		return false
	}
}

// restart starts a node that was killed.
func (n *node) restart() {
	n.t.Helper()
	if !n.start() {
		n.t.Fatalf("%s does not start again:\n%s", n.program, n.log())
	}
}

// kill ends the process without notice.
func (n *node) kill() {
	if n.cmd != nil && n.cmd.Process != nil {
		n.cmd.Process.Kill()
		<-n.done
	}
}

// log returns the end of what the node has written to its standard output and error.
func (n *node) log() string {
	b, err := os.ReadFile(filepath.Join(n.dir, "log"))
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-8000):])
}

// info returns a field of INFO, empty if there is none or the node does not answer.
func (n *node) info(field string) string {
	text, err := n.client.Info(n.t.Context(), "everything").Result()
	if err != nil {
		return ""
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// service is a primary and replicas with three Sentinels.
type service struct {
	t         *testing.T
	nodes     []*node // any of them may be the primary
	sentinels []*node
}

// serviceName is the name of the service at its Sentinels.
const serviceName = "zsetd"

// newService starts servers of the programs, the first one as the primary, and Sentinels,
// and waits until all know each other.
func newService(t *testing.T, programs ...string) *service {
	t.Helper()
	logging.Disable() // of go-redis, which logs each address that does not answer
	s := &service{t: t}
	for _, program := range programs {
		conf := "repl-diskless-sync-delay 0\nrepl-backlog-size 16mb\n"
		if filepath.Base(program) == "redis-server" {
			conf += "save \"\"\nrepl-diskless-sync yes\n"
		}
		if len(s.nodes) > 0 {
			conf += "replicaof 127.0.0.1 " + s.nodes[0].port + "\n"
		}
		s.nodes = append(s.nodes, newNode(t, program, conf))
	}
	for range 3 {
		conf := fmt.Sprintf("sentinel monitor %[1]s 127.0.0.1 %[2]s 2\nsentinel down-after-milliseconds %[1]s 800\n"+
			"sentinel failover-timeout %[1]s 6000\nsentinel parallel-syncs %[1]s 2\n", serviceName, s.nodes[0].port)
		n := newNode(t, "redis-server", conf, "--sentinel")
		// By default a Sentinel waits for 8 s before it makes an old primary a replica: four
		// times the period of its messages.
		for parameter, ms := range map[string]int{"publish-period": 250, "info-period": 500, "ask-period": 250, "ping-period": 250} {
			if err := n.client.Do(t.Context(), "SENTINEL", "DEBUG", parameter, ms).Err(); err != nil {
				t.Fatal(err)
			}
		}
		s.sentinels = append(s.sentinels, n)
	}
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		for _, n := range slices.Concat(s.nodes, s.sentinels) {
			t.Logf("log of %s %s:\n%s", filepath.Base(n.program), n.port, n.log())
		}
	})
	s.eventually("the replicas are connected", func() error { return s.settled(s.nodes[0]) })
	s.eventually("the Sentinels know all servers", func() error {
		for _, n := range s.sentinels {
			m := s.master(n)
			if m["num-slaves"] != fmt.Sprint(len(programs)-1) || m["num-other-sentinels"] != "2" {
				return fmt.Errorf("Sentinel %s knows %v", n.port, m)
			}
		}
		return nil
	})
	return s
}

// eventually waits until a condition holds: it returns no error.
func (s *service) eventually(what string, holds func() error) {
	s.t.Helper()
	var err error
	if !wait.Holds(func() bool { err = holds(); return err == nil }) {
		s.t.Fatalf("timeout, waiting until %s: %v", what, err)
	}
}

// master returns what a Sentinel knows of the primary; nothing if it does not answer.
func (s *service) master(sentinel *node) map[string]string {
	cmd := redis.NewMapStringStringCmd(s.t.Context(), "SENTINEL", "MASTER", serviceName)
	sentinel.client.Process(s.t.Context(), cmd) // an error leaves it empty
	return cmd.Val()
}

// address asks a Sentinel for the address of the primary.
func (s *service) address(ctx context.Context, sentinel *node) (string, error) {
	parts, err := sentinel.client.Do(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", serviceName).StringSlice()
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(parts[0], parts[1]), nil
}

// primary returns the node that all Sentinels name as the primary, or an error if they do
// not agree.
func (s *service) primary() (*node, error) {
	var first string
	for _, sentinel := range s.sentinels {
		addr, err := s.address(s.t.Context(), sentinel)
		if err != nil {
			return nil, err
		}
		if first == "" {
			first = addr
		}
		if addr != first {
			return nil, fmt.Errorf("one Sentinel names %s, another %s", first, addr)
		}
	}
	for _, n := range s.nodes {
		if n.addr() == first {
			return n, nil
		}
	}
	return nil, fmt.Errorf("no server has the address %s", first)
}

// settled returns an error unless all other servers that run are connected replicas of
// the primary.
func (s *service) settled(primary *node) error {
	if role := primary.info("role"); role != "master" {
		return fmt.Errorf("%s has the role %q", primary.port, role)
	}
	for _, n := range s.nodes {
		if n == primary || n.ended() {
			continue
		}
		if port, status := n.info("master_port"), n.info("master_link_status"); port != primary.port || status != "up" {
			return fmt.Errorf("%s has the primary %q, status %q, want %s", n.port, port, status, primary.port)
		}
	}
	return nil
}

// failOver kills the primary, waits until the Sentinels have promoted another server and
// the others are its replicas, and returns both.
func (s *service) failOver() (old, next *node) {
	s.t.Helper()
	s.eventually("the Sentinels agree on the primary", func() (err error) { old, err = s.primary(); return err })
	old.kill()
	s.eventually("the Sentinels have promoted another server", func() (err error) {
		if next, err = s.primary(); err == nil && next == old {
			err = errors.New("the primary is the one that was killed")
		}
		return err
	})
	s.eventually("the other servers are its replicas", func() error { return s.settled(next) })
	return old, next
}

// rejoin starts a primary that was killed, and waits until it is a replica of the next
// one, for the Sentinels, too.
func (s *service) rejoin(old *node) {
	s.t.Helper()
	old.restart()
	s.eventually("the old primary is a replica, and all Sentinels know it", func() error {
		next, err := s.primary()
		if err != nil {
			return err
		}
		if next == old {
			return errors.New("the old primary is the primary")
		}
		for _, sentinel := range s.sentinels {
			replicas := redis.NewMapStringStringSliceCmd(s.t.Context(), "SENTINEL", "REPLICAS", serviceName)
			sentinel.client.Process(s.t.Context(), replicas)
			for _, r := range replicas.Val() {
				if r["flags"] != "slave" || r["master-link-status"] != "ok" || r["master-port"] != next.port {
					return fmt.Errorf("Sentinel %s sees %s as %s of %s, status %s", sentinel.port, r["port"], r["flags"], r["master-port"], r["master-link-status"])
				}
			}
		}
		return s.settled(next)
	})
}
