package servertest_test

import (
	"crypto/tls"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/servertest"
)

func ExampleRun() {
	// A test of a program that keeps its sessions in Redis for half an hour.
	_ = func(t *testing.T) {
		srv := servertest.Run(t)
		// The program would connect to srv.Addr(), or through srv.Dialer().
		srv.Must("SET", "session:42", "ada", "EX", 1800)

		srv.Advance(time.Hour)
		if got := srv.Must("GET", "session:42"); got != nil {
			t.Errorf("an hour later the session is still there: %v", got)
		}
	}
}

func ExampleServer_Inject() {
	// A test of a program that must count an order once, although the reply is lost.
	_ = func(t *testing.T) {
		srv := servertest.Run(t)
		heal := srv.Inject(servertest.Fault{Commands: []string{"INCR"}, Calls: 1, Lose: true})
		// The program, at srv.Addr(), counts an order.
		if heal() != 1 || srv.Must("GET", "orders") != "1" {
			t.Errorf("the order counts twice, or never:\n%s", srv.State())
		}
	}
}

func ExampleServer_Stop() {
	// A test of a program that connects again, and loads its scripts again.
	_ = func(t *testing.T) {
		srv := servertest.Run(t)
		// The program connects to srv.Addr().
		srv.Stop()
		// It reports that the store is away.
		srv.Start() // or StartEmpty
		// It finds its data.
	}
}

func ExampleServer_Seed() {
	// A test of a raffle, whose winner is the same in each run.
	_ = func(t *testing.T) {
		srv := servertest.Run(t)
		srv.Must("SADD", "tickets", "ann", "bob", "cy")
		srv.Seed(1)
		first := srv.Must("SRANDMEMBER", "tickets")
		srv.Seed(1)
		if second := srv.Must("SRANDMEMBER", "tickets"); second != first {
			t.Errorf("%v, then %v", first, second)
		}
	}
}

func ExampleServer_TLS() {
	// A test of a program that insists on TLS.
	_ = func(t *testing.T) {
		srv := servertest.Run(t)
		addr, config := srv.TLS()
		nc, err := tls.Dial("tcp", addr, config)
		if err != nil {
			t.Fatal(err)
		}
		nc.Close()
	}
}

func ExampleRunCluster() {
	// A test of a client that follows a slot from one node to another.
	_ = func(t *testing.T) {
		cluster := servertest.RunCluster(t, 3)
		// The program begins at cluster.Nodes[0].Addr().
		slot := cluster.Slot("user:1")
		cluster.Move(slot, (cluster.Node(slot)+1)%3)
		// Its next command receives MOVED, and it asks the other node.
	}
}
