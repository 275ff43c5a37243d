package scripting_test

import (
	"fmt"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/servertest/rerun"

	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

// TestScriptsStayWithinMemory checks that the process grows by at most the limit while a
// script runs. Another goroutine samples it. server/e2e/faults measures the same with the
// default limit, and with the largest tables.
func TestScriptsStayWithinMemory(t *testing.T) {
	rerun.Skip(t)
	const limit = 256 << 20
	for source, want := range map[string]string{
		"local t,s = {}, string.rep('x', 2^20) while true do t[#t+1] = s .. #t end":                                                       "not enough memory",
		"local t,s = {}, string.rep('X', 2^24) while true do t[#t+1] = s:lower() end":                                                     "not enough memory",
		"local t,s = {}, string.rep('x', 2^24) while true do t[#t+1] = s:reverse() end":                                                   "not enough memory",
		"local t,i = {},1 while true do t[i] = {} i = i + 1 end":                                                                          "not enough memory",
		"local t,i = {},1 while true do t['k' .. i] = i i = i + 1 end":                                                                    "not enough memory",
		"local t,i = {},1 while true do t[i] = function() return i end i = i + 1 end":                                                     "not enough memory",
		"local s = '[' .. string.rep('[],', 1e7) .. '1]' return #cjson.decode(s)":                                                         "not enough memory",
		"local s = string.rep('\\144', 2e7) return #cmsgpack.unpack('\\221\\1\\0\\0\\0' .. s)":                                            "not enough memory",
		"local s = string.rep('x = function() end ', 1e6) return loadstring(s) == nil":                                                    "not enough memory",
		"local s = string.rep('a', 2^22) local k = {} for i=1,8 do k[i] = s .. i end for i=1,500 do s = s:rep(1) .. '' end return 'done'": "done",
		"local u = {} for i=1,7000 do u[i] = string.rep('y', 100) end for i=1,10 do redis.call('rpush','k', unpack(u)) end " +
			"local t, i = {}, 1 while true do t[i] = redis.call('lrange','k',0,-1) i = i + 1 end": "not enough memory",
		"local s = string.rep('x', 2^20) local t = {} for i=1,5000 do t[i] = s end return t": "not enough memory",
	} {
		srv, err := enginetest.New(engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		srv.Scripting.MemoryLimit = limit
		debug.FreeOSMemory()
		base, peak := engine.ReadMemory().Mapped, uint64(0)
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for {
				peak = max(peak, engine.ReadMemory().Mapped)
				select {
				case <-stop:
					return
				case <-time.After(200 * time.Microsecond):
				}
			}
		}()
		got := enginetest.SayArgs(srv, "EVAL", source, 0)
		close(stop)
		<-stopped
		if !strings.Contains(got, want) {
			t.Errorf("%s: %.100s", source, got)
		}
		if peak > base+limit {
			t.Errorf("%s: the process has grown by %d MB", source, (peak-base)>>20)
		}
		if n := srv.Scripting.Session.Out.Cap(); n > engine.MaxKeptReply {
			t.Errorf("%s: a buffer of %d bytes is kept", source, n)
		}
		if err := srv.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n := debug.SetMemoryLimit(-1); n != 1<<63-1 {
		t.Errorf("the memory limit of the process is %d", n)
	}
}

// TestKillWithinLongSteps checks that scripts can be killed while they return an endless
// result, while they compile, and while a command builds a large reply.
func TestKillWithinLongSteps(t *testing.T) {
	srv, addr := enginetest.Start(t, map[string]string{"busy-reply-threshold": "1"})
	list := make([]any, 0, 2+100_000)
	list = append(list, "RPUSH", "list")
	for i := range 100_000 {
		list = append(list, i)
	}
	if _, err := srv.Do(t.Context(), list...); err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{
		"local t = {1} for i = 1, 60 do t = {t, t} end return t",
		"while true do redis.call('lrange', 'list', 0, -1) end",
		"while true do redis.sha1hex(string.rep('x', 2^24)) end",
		"return {" + strings.Repeat("function() x = 1 end, ", 2_000_000) + "}",
	} {
		busy, other := enginetest.Dial(t, addr), enginetest.Dial(t, addr)
		go fmt.Fprintf(busy, "*3\r\n$4\r\nEVAL\r\n$%d\r\n%s\r\n$1\r\n0\r\n", len(source), source)
		enginetest.Until(t, srv, "busy", func() bool { return srv.Scripting.Busy })
		if got := other.Call("PING"); got != protocol.ReplyError(engine.ErrBusyEval) {
			t.Errorf("PING: %v", got)
		}
		if got := other.Call("SCRIPT KILL"); got != protocol.Status("OK") {
			t.Errorf("SCRIPT KILL: %v", got)
		}
		if got := fmt.Sprint(busy.Reply()); !strings.HasPrefix(got, "ERR Script killed by user") {
			t.Errorf("%.60s: %.100s", source, got)
		}
		if got := other.Call("PING"); got != protocol.Status("PONG") {
			t.Errorf("afterwards: %v", got)
		}
	}
}
