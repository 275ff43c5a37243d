package transport_test

// Tests that measure time and memory. Other work of the process and the machine can
// break them, so make faults runs them and go test ./... does not.

import (
	"fmt"
	"io"
	"net"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/servertest/wait"

	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

// An idle client holds no buffers, whatever it has sent before.
func TestMeasureIdleClients(t *testing.T) {
	enginetest.Measured(t)
	srv, addr := enginetest.Start(t, map[string]string{"transport": "epoll"})
	const n = 500
	request := strings.Repeat("SET key 0123456789\r\n", 20)
	reply := strings.Repeat("+OK\r\n", 20)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	conns := make([]net.Conn, n)
	for i := range conns {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		conns[i] = c
	}
	for _, c := range conns {
		io.WriteString(c, request)
	}
	for _, c := range conns {
		c.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := io.ReadFull(c, make([]byte, len(reply))); err != nil {
			t.Fatal(err)
		}
	}
	enginetest.Until(t, srv, "idle", func() bool { return len(srv.Clients.Sessions) == n })
	const most = 5 << 10 // includes the client's end and the shared buffers of the loop
	if per := (heap() - before) / n; per > most {
		t.Errorf("an idle connection takes %d bytes", per)
	}
}

// An idle server uses no CPU, also while it does not read clients that have sent
// more than it buffers.
func TestMeasureIdle(t *testing.T) {
	enginetest.Measured(t)
	overBoth(t, nil, func(t *testing.T, srv *enginetest.Server, addr string) {
		for range 10 {
			c := enginetest.Dial(t, addr)
			c.Send("BLPOP list 0\r\n" + strings.Repeat("PING "+strings.Repeat("x", 1000)+"\r\n", 1500))
		}
		enginetest.Until(t, srv, "waiting", func() bool { return srv.Stats.BlockedClients == 10 })
		wait.Elapse(100 * time.Millisecond) // to read what they have sent
		used := func() time.Duration {
			var u syscall.Rusage
			syscall.Getrusage(syscall.RUSAGE_SELF, &u)
			return time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
		const window = 100 * time.Millisecond
		for try := 1; ; try++ { // the process does other things, too, such as collecting garbage
			before := used()
			wait.Elapse(window)
			took := used() - before
			if took < window/2 {
				break
			}
			if try == 20 {
				t.Fatalf("%v of CPU in %v", took, window)
			}
		}
	})
}

// A connection beyond maxclients is refused within 20 ms, though thousands of sockets
// are checked for closed clients before.
func TestMeasureRefusals(t *testing.T) {
	enginetest.Measured(t)
	const clients, refused = 3000, 50
	_, addr := enginetest.Start(t, map[string]string{"maxclients": strconv.Itoa(clients)})
	for range clients {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	enginetest.Dial(t, addr).Reply() // all clients are connected
	begin := time.Now()
	for range refused {
		if got := fmt.Sprint(enginetest.Dial(t, addr).Reply()); !strings.Contains(got, "max number of clients") {
			t.Fatal(got)
		}
	}
	took := time.Since(begin) / refused
	t.Logf("%v for each", took)
	if took > 20*time.Millisecond {
		t.Errorf("a refusal takes %v", took)
	}
}
