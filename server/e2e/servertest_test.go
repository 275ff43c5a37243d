package e2e

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/server/servertest"
)

// TestServertestCluster checks that go-redis finds the nodes of a cluster, and follows a slot that moves and
// a node that is started again.
func TestServertestCluster(t *testing.T) {
	t.Parallel()
	cluster := servertest.RunCluster(t, 3)
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{cluster.Nodes[0].Addr()}})
	defer c.Close()
	for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
		if err := c.Set(t.Context(), key, key, 0).Err(); err != nil {
			t.Fatal(err)
		}
		if got := cluster.Nodes[cluster.Node(cluster.Slot(key))].Must("GET", key); got != key {
			t.Errorf("%s is %v at its node", key, got)
		}
	}
	slot := cluster.Slot("a")
	to := (cluster.Node(slot) + 1) % 3
	cluster.Move(slot, to)
	if got, err := c.Get(t.Context(), "a").Result(); got != "a" {
		t.Errorf("after the move: %q, %v", got, err)
	}
	cluster.Nodes[to].Stop()
	cluster.Nodes[to].Start()
	if got, err := c.Get(t.Context(), "a").Result(); got != "a" {
		t.Errorf("after the restart: %q, %v", got, err)
	}
}

// TestServertestFaults checks what go-redis makes of the faults, over TLS.
func TestServertestFaults(t *testing.T) {
	t.Parallel()
	srv := servertest.Run(t)
	addr, config := srv.TLS()
	c := redis.NewClient(&redis.Options{Addr: addr, TLSConfig: config, MaxRetries: 2})
	defer c.Close()
	heal := srv.Inject(servertest.Fault{Commands: []string{"INCR"}, Calls: 2, Error: "LOADING Redis is loading the dataset in memory"})
	if n, err := c.Incr(t.Context(), "n").Result(); n != 1 || heal() != 2 {
		t.Errorf("INCR with two retries: %d, %v", n, err)
	}
	once := redis.NewClient(&redis.Options{Addr: addr, TLSConfig: config, MaxRetries: -1})
	defer once.Close()
	srv.Inject(servertest.Fault{Commands: []string{"INCR"}, Calls: 1, Lose: true})
	if _, err := once.Incr(t.Context(), "n").Result(); !errors.Is(err, io.EOF) && (err == nil || !strings.Contains(err.Error(), "reset")) {
		t.Errorf("a reply that is lost: %v", err)
	}
	if got := srv.Must("GET", "n"); got != "2" {
		t.Errorf("n is %v", got)
	}
}
