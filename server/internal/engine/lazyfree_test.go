package engine_test

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/servertest/wait"

	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

// TestLazyFree checks the count of objects that Redis would free in the background, and
// that the garbage collector runs when much has been released.
func TestLazyFree(t *testing.T) {
	srv, addr := enginetest.Start(t, nil)
	c := enginetest.Dial(t, addr)
	field := func(name string) int64 { return infoNumber(t, srv, name) }
	add := func(line string, n int) {
		var b strings.Builder
		b.WriteString(line)
		for i := range n {
			fmt.Fprintf(&b, " %d member%[1]d", i)
		}
		c.Call(b.String())
	}
	for _, test := range []struct {
		then string
		n    int
		want int64
	}{
		{"UNLINK z h", 10, 0},
		{"UNLINK z h", 600, 2},
		{"DEL z h", 600, 0},
		{"FLUSHALL", 10, 2},
		{"FLUSHALL SYNC", 600, 2},
		{"FLUSHDB ASYNC", 10, 2},
	} {
		c.Call("CONFIG RESETSTAT")
		add("ZADD z", test.n)
		add("HSET h", test.n)
		c.Call(test.then)
		if got := field("lazyfreed_objects"); got != test.want {
			t.Errorf("%s of %d: %d objects, want %d", test.then, test.n, got, test.want)
		}
	}
	c.Call("CONFIG RESETSTAT")
	c.Call("XADD s * a b")
	c.Call("XGROUP CREATE s g $")
	c.Call("UNLINK s")
	if got := field("lazyfreed_objects"); got != 0 {
		t.Errorf("UNLINK of a short stream: %d objects", got)
	}
	for _, test := range []struct {
		mode string
		n    int
		want int64
	}{{"ASYNC", 64, 0}, {"ASYNC", 65, 66}, {"SYNC", 65, 0}} {
		c.Call("CONFIG RESETSTAT")
		for i := range test.n {
			c.Call(fmt.Sprintf(`FUNCTION LOAD "#!lua name=l%d\nredis.register_function('f%[1]d', function() end)"`, i))
		}
		machine := field("used_memory_vm_functions")
		c.Call("FUNCTION FLUSH " + test.mode)
		if got := field("lazyfreed_objects"); got != test.want {
			t.Errorf("FUNCTION FLUSH %s of %d: %d objects, want %d", test.mode, test.n, got, test.want)
		}
		if empty := field("used_memory_vm_functions"); machine < empty+10_000 {
			t.Errorf("a machine with %d functions has %d bytes, and %d without", test.n, machine, empty)
		}
	}
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	wait.Until(t, "a collection", func() bool { // of a part of the memory in use, also by other tests
		for i := range 400 {
			c.Call(fmt.Sprintf("SETRANGE s%d 100000 x", i))
		}
		c.Call("FLUSHALL ASYNC")
		var now runtime.MemStats
		runtime.ReadMemStats(&now)
		return now.NumForcedGC > before.NumForcedGC
	})
}

// TestCollectorEnds checks that no collection is in progress once a server is closed.
func TestCollectorEnds(t *testing.T) {
	for range 5 {
		srv, err := enginetest.New(engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		enginetest.Must(t, srv, "MEMORY PURGE")
		if err := srv.Close(); err != nil {
			t.Fatal(err)
		}
		stacks := make([]byte, 1<<20)
		if stacks = stacks[:runtime.Stack(stacks, true)]; strings.Contains(string(stacks), "(*freeing).run") {
			t.Fatal("the goroutine that collects garbage has not ended")
		}
	}
}

// TestMemoryOfClosedClients checks that the memory of incomplete commands and unread
// replies of closed clients is released at once, without other activity.
func TestMemoryOfClosedClients(t *testing.T) {
	const size = 64 << 20
	for _, transport := range []string{"epoll", "net"} {
		for _, unread := range []bool{false, true} {
			srv, addr := enginetest.Start(t, map[string]string{"transport": transport})
			enginetest.Must(t, srv, "SETRANGE big 4000000 x -> 4000001")
			runtime.GC()
			before := engine.UsedMemory()
			c := enginetest.Dial(t, addr)
			if unread {
				c.Send(strings.Repeat("GET big\r\n", 8))
			} else {
				c.Send(fmt.Sprintf("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n", size))
				c.Send(strings.Repeat("x", size/2))
			}
			enginetest.Until(t, srv, "the memory to be taken", func() bool { return engine.UsedMemory() > before+size/4 })
			runtime.GC() // removes the garbage of the setup
			c.Close()
			enginetest.Until(t, srv, fmt.Sprint(transport, unread, ": the memory to be given back"), func() bool { return engine.UsedMemory() < before+size/8 })
		}
	}
}

// infoNumber returns a field of INFO that is a number.
func infoNumber(t *testing.T, srv *enginetest.Server, field string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(enginetest.Info(t, srv, field), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
