package scripting_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/archive"
	"github.com/zsetd/zsetd/server/internal/commands/scripting"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/rdb"
	"github.com/zsetd/zsetd/server/servertest/rerun"
	"github.com/zsetd/zsetd/server/servertest/wait"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

// commandLine encodes a command of arbitrary words.
func commandLine(words ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	return b.String()
}

// send sends a command of arbitrary words and returns the reply.
func send(c *enginetest.Client, words ...string) any {
	c.Send(commandLine(words...))
	return c.Reply()
}

const scriptKilled = "ERR Script killed by user with SCRIPT KILL... script: "

// TestEndlessLibrary checks that a library whose code never ends stops neither a start
// nor the clients: it stays in the file, and FUNCTION RESTORE refuses it.
func TestEndlessLibrary(t *testing.T) {
	srv, addr := enginetest.Start(t, nil)
	c := enginetest.Dial(t, addr)
	good := "#!lua name=good\nredis.register_function('f', function() return 'called' end)"
	if got := send(c, "FUNCTION", "LOAD", good); got != "good" {
		t.Fatal(got)
	}
	endless := "#!lua name=endless\nwhile true do end"
	var payload []byte
	srv.InTurn(func() {
		payload = srv.Engine.Codec().AppendFunctions(nil, []string{endless})
		srv.Scripting.LoadTime = 20 * time.Millisecond
		srv.Keys.DB(keyspace.InternalDB).Put([]byte("endless"), keyspace.NewString([]byte(endless)), false)
		scripting.CompileLibraries(srv.Engine, srv.Keys, srv.LibraryLimits(srv.Scripting.LoadTime))
		if n := srv.Keys.DB(keyspace.InternalDB).Len(); n != 2 {
			t.Errorf("%d libraries are kept, want 2", n)
		}
	})
	if got := send(c, "FCALL", "f", "0"); got != "called" {
		t.Error(got)
	}
	if got := send(c, "FUNCTION", "RESTORE", string(payload), "REPLACE"); !strings.Contains(fmt.Sprint(got), "FUNCTION LOAD timeout") {
		t.Error(got)
	}
	if got := send(c, "FCALL", "f", "0"); got != "called" {
		t.Error(got)
	}
}

func TestBusyScript(t *testing.T) {
	srv, addr := enginetest.Start(t, map[string]string{"busy-reply-threshold": "20"})
	for _, test := range []struct{ name, source string }{
		{"a loop", "while true do end"},
		{"a loop that catches errors", "while true do pcall(function() while true do end end) end"},
		{"xpcall", "local function f() while true do end end while true do xpcall(f, f) end"},
		{"a coroutine", "while true do coroutine.resume(coroutine.create(function() while true do end end)) end"},
		{"wrap", "while true do pcall(coroutine.wrap(function() while true do end end)) end"},
		{"commands", "while true do redis.call('get', 'k') end"},
		{"recursion", "local function f() return f() end return f()"},
		{"sort", "local t = {} for i = 1, 10 do t[i] = i end table.sort(t, function() while true do end end)"},
		{"a pattern", "return string.find(string.rep('a', 50000), string.rep('a?', 30) .. 'b')"},
		{"a metamethod", "return setmetatable({}, {__index = function() while true do end end}).x"},
		{"a replacement", "while true do string.gsub('aaaa', 'a', function() while true do end end) end"},
		{"an error handler", "xpcall(error, function() while true do end end)"},
		{"a wait for a deadline", "while redis.call('exists', 'short') == 1 or redis.call('pttl', 'short') < 1 do end"},
		{"a wait for an idle key", "while redis.call('object', 'idletime', 'idle') ~= 100 do end"},
		{"a wait for an entry", "repeat until redis.pcall('xread', 'block', 0, 'streams', 'x', '$')"},
		{"decoding", "while true do cjson.decode(cjson.encode({1, 2})) cmsgpack.unpack(cmsgpack.pack({1, 2})) struct.unpack('I', struct.pack('I', 1)) end"},
		{"compiling", "while true do loadstring('return 1') end"},
	} {
		t.Run(test.name, func(t *testing.T) {
			busy, other := enginetest.Dial(t, addr), enginetest.Dial(t, addr)
			other.Call("SET short 1 PX 1000")
			other.Call("SET idle 1")
			busy.Send(commandLine("EVAL", test.source, "0"))
			enginetest.Until(t, srv, "busy", func() bool { return srv.Scripting.Busy })
			for _, line := range []string{"PING", "GET k", "SET k v", "EVAL x 0", "SUBSCRIBE c", "INFO", "CLIENT LIST", "FUNCTION LIST", "SCRIPT FLUSH"} {
				if got := other.Call(line); got != protocol.ReplyError(engine.ErrBusyEval) {
					t.Errorf("%s: %v", line, got)
				}
			}
			inside := enginetest.Dial(t, addr) // others can connect, too
			for _, step := range []struct {
				line string
				want any
			}{
				{"MULTI", protocol.Status("OK")},
				{"GET k", protocol.ReplyError(engine.ErrBusyEval)},
				{"FUNCTION STATS", protocol.Status("QUEUED")},
				{"EXEC", protocol.ReplyError("EXECABORT Transaction discarded because of: " + engine.ErrBusyEval)},
				{"WATCH k", protocol.Status("OK")},
				{"FUNCTION STATS", protocol.ReplyError(engine.ErrBusyEval)},
				{"FUNCTION KILL", protocol.ReplyError(engine.ErrBusyEval)},
				{"SHUTDOWN", protocol.ReplyError(engine.ErrBusyEval)},
				{"SCRIPT KILL", protocol.Status("OK")},
			} {
				if got := inside.Call(step.line); got != step.want {
					t.Errorf("%s: %v, want %v", step.line, got, step.want)
				}
			}
			if got := busy.Reply(); !strings.HasPrefix(fmt.Sprint(got), scriptKilled) {
				t.Errorf("the script: %v", got)
			}
			if got := other.Call("PING"); got != protocol.Status("PONG") {
				t.Errorf("afterwards: %v", got)
			}
			if got := other.Call("SCRIPT KILL"); got != protocol.ReplyError(engine.ErrNotBusy) {
				t.Errorf("afterwards SCRIPT KILL: %v", got)
			}
		})
	}
}

// TestOthersWhileBusy checks that commands that wait for the lock during a busy script
// continue when it has ended, and see all its changes.
func TestOthersWhileBusy(t *testing.T) {
	srv, addr := enginetest.Start(t, map[string]string{"busy-reply-threshold": "20"})
	busy, waiter, watcher, listener := enginetest.Dial(t, addr), enginetest.Dial(t, addr), enginetest.Dial(t, addr), enginetest.Dial(t, addr)
	waiter.Send("BLPOP l 0\r\n")
	watcher.Call("WATCH k")
	listener.Call("SUBSCRIBE c")
	enginetest.Until(t, srv, "blocked", func() bool { return srv.Stats.BlockedClients == 1 })
	busy.Send(commandLine("EVAL", `
		redis.call('set', 'k', 1)
		redis.call('rpush', 'l', 'a', 'b')
		redis.call('publish', 'c', 'message')
		local n = 0
		redis.call('set', 'short', 1, 'px', 50)
		repeat
			for i = 1, 100000 do n = n + 1 end
		until n > tonumber(ARGV[1])
		return {redis.call('llen', 'l'), redis.call('exists', 'short')}`, "0", "3000000"))
	enginetest.Until(t, srv, "busy", func() bool { return srv.Scripting.Busy })
	if got := watcher.Call("PING"); got != protocol.ReplyError(engine.ErrBusyEval) {
		t.Errorf("PING: %v", got)
	}
	if got := watcher.Call("SCRIPT KILL"); got != protocol.ReplyError(engine.ErrUnkillable) {
		t.Errorf("SCRIPT KILL after a write: %v", got)
	}
	srv.Mu.Lock()
	blocked := srv.Stats.BlockedClients
	srv.Mu.Unlock()
	if blocked != 1 {
		t.Errorf("a blocked client was served while the script was running")
	}
	if got := fmt.Sprint(busy.Reply()); got != "[2 1]" {
		t.Errorf("the script: %v, want the list as it is, and time that stands still", got)
	}
	if got := fmt.Sprint(waiter.Reply()); got != "[l a]" {
		t.Errorf("BLPOP: %v", got)
	}
	if got := fmt.Sprint(listener.Reply()); !strings.Contains(got, "message") {
		t.Errorf("the message: %v", got)
	}
	watcher.Call("MULTI")
	if got := watcher.Call("EXEC"); got != nil {
		t.Errorf("EXEC after the script has changed what is watched: %v", got)
	}
}

func TestBusyFunction(t *testing.T) {
	srv, addr := enginetest.Start(t, map[string]string{"busy-reply-threshold": "20"})
	busy, other := enginetest.Dial(t, addr), enginetest.Dial(t, addr)
	send(other, "FUNCTION", "LOAD", "#!lua name=l\nredis.register_function('spin', function() while true do end end)")
	busy.Send("FCALL spin 0 argument\r\n")
	enginetest.Until(t, srv, "busy", func() bool { return srv.Scripting.Busy })
	if got := other.Call("PING"); got != protocol.ReplyError(engine.ErrBusyFcall) {
		t.Errorf("PING: %v", got)
	}
	if got := other.Call("SCRIPT KILL"); got != protocol.ReplyError(engine.ErrBusyFcall) {
		t.Errorf("SCRIPT KILL: %v", got)
	}
	if got := fmt.Sprint(other.Call("FUNCTION STATS")); !strings.HasPrefix(got, "[running_script [name spin command [FCALL spin 0 argument] duration_ms ") {
		t.Errorf("FUNCTION STATS: %v", got)
	}
	if got := other.Call("FUNCTION KILL"); got != protocol.Status("OK") {
		t.Errorf("FUNCTION KILL: %v", got)
	}
	if got := fmt.Sprint(busy.Reply()); got != scriptKilled+"spin, on @user_function:2." {
		t.Errorf("the function: %v", got)
	}
}

// TestBusyBesideDurableWrites checks that a busy script can be ended while the changes of many
// clients wait for the disk, and that these clients go on.
func TestBusyBesideDurableWrites(t *testing.T) {
	srv, addr := enginetest.Start(t, map[string]string{"busy-reply-threshold": "20", "dir": t.TempDir(), "dbfilename": "busy.db",
		"appendonly": "yes", "appendfsync": "always"})
	var writers sync.WaitGroup
	var written [16]atomic.Int64
	var end atomic.Bool
	for i := range written {
		c := enginetest.Dial(t, addr)
		writers.Go(func() {
			for !end.Load() {
				if fmt.Sprint(c.Call(fmt.Sprintf("SET k%d v", i))) == "OK" {
					written[i].Add(1)
				}
			}
		})
	}
	busy, other := enginetest.Dial(t, addr), enginetest.Dial(t, addr)
	for range 10 {
		var before [len(written)]int64
		for i := range written {
			before[i] = written[i].Load()
		}
		enginetest.Until(t, srv, "all have written", func() bool {
			for i := range written {
				if written[i].Load() < before[i]+5 {
					return false
				}
			}
			return true
		})
		busy.Send(commandLine("EVAL", "while true do end", "0"))
		enginetest.Until(t, srv, "busy", func() bool { return srv.Scripting.Busy })
		if got := fmt.Sprint(other.Call("SCRIPT KILL")); got != "OK" {
			t.Fatalf("SCRIPT KILL: %v", got)
		}
		if got := fmt.Sprint(busy.Reply()); !strings.Contains(got, "Script killed") {
			t.Errorf("the script: %s", got)
		}
	}
	end.Store(true)
	writers.Wait()
}

// TestStopWhileBusy checks that Close and SHUTDOWN NOSAVE end a running script, and that
// the script's changes are not saved.
func TestStopWhileBusy(t *testing.T) {
	for _, by := range []string{"Close", "SHUTDOWN", "SHUTDOWN NOSAVE"} {
		t.Run(by, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "busy.db")
			srv := enginetest.Keep(t, path, map[string]string{"busy-reply-threshold": "20"})
			enginetest.Must(t, srv, "SET before 1", "SAVE")
			done := make(chan string)
			go func() {
				done <- enginetest.SayArgs(srv, "EVAL", "redis.call('set', 'half', 1) while redis.call('exists', 'half') do end redis.call('set', 'other', 1)", 0)
			}()
			enginetest.Until(t, srv, "busy", func() bool { return srv.Scripting.Busy })
			if by != "Close" {
				enginetest.Must(t, srv, "SCRIPT KILL -> "+engine.ErrUnkillable)
				enginetest.Say(srv, by)
			}
			if by != "SHUTDOWN NOSAVE" {
				enginetest.Must(t, srv, "PING -> "+engine.ErrBusyEval)
				if err := srv.Close(); err != nil {
					t.Fatal(err)
				}
			}
			<-done
			if err := srv.Close(); err != nil {
				t.Fatal(err)
			}
			srv = enginetest.Keep(t, path, nil)
			enginetest.Must(t, srv, "MGET before half other -> [1 <nil> <nil>]")
		})
	}
}

// waitsByTime is a script that waits until TIME has moved by 50 ms. It returns the TIME
// before and after, and what stands still.
const waitsByTime = `
	local function us() local t = redis.call('time') return t[1] * 1000000 + t[2] end
	redis.call('set', 'short', 1, 'px', 1)
	redis.call('xadd', 'x', '*', 'f', 1)
	local before = us()
	repeat until us() >= before + 50000
	redis.call('xadd', 'x', '*', 'f', 2)
	local ids = redis.call('xrange', 'x', '-', '+')
	local function ms(id) return string.match(id, '%d+') end
	return {before, us(), redis.call('exists', 'short'), redis.call('pttl', 'short'), ms(ids[#ids - 1][1]) == ms(ids[#ids][1])}`

// TestScriptWaitsByTime checks that TIME moves in a script that has exceeded
// busy-reply-threshold, as in Redis since 7.2, and nothing else does.
func TestScriptWaitsByTime(t *testing.T) {
	_, addr := enginetest.Start(t, map[string]string{"busy-reply-threshold": "20"})
	c := enginetest.Dial(t, addr)
	send(c, "FUNCTION", "LOAD", "#!lua name=l\nredis.register_function('waits', function()"+waitsByTime+" end)")
	check := func(what string, got any) (before, after int64) {
		list, _ := got.([]any)
		if len(list) != 5 {
			t.Fatalf("%s: %v", what, got)
		}
		before, after = list[0].(int64), list[1].(int64)
		if fmt.Sprint(list[2:]) != "[1 1 1]" || after < before+50000 {
			t.Errorf("%s: %v", what, got)
		}
		return before, after
	}
	_, after := check("EVAL", send(c, "EVAL", waitsByTime, "0"))
	if before, _ := check("FCALL", send(c, "FCALL", "waits", "0")); before < after {
		t.Errorf("TIME went back from %d to %d", after, before)
	}
	for _, words := range [][]string{{"MULTI"}, {"TIME"}, {"EVAL", waitsByTime, "0"}, {"TIME"}} {
		send(c, words...)
	}
	list, _ := send(c, "EXEC").([]any)
	if len(list) != 3 {
		t.Fatalf("EXEC: %v", list)
	}
	us := func(reply any) (n int64) {
		var s, rest int64
		fmt.Sscan(strings.Trim(fmt.Sprint(reply), "[]"), &s, &rest)
		return s*1e6 + rest
	}
	if before, after := check("EXEC", list[1]); us(list[0]) != before || us(list[2]) < after {
		t.Errorf("EXEC: TIME is %d before a script from %d to %d, and %d after it", us(list[0]), before, after, us(list[2]))
	}
}

// TestScriptTimeAroundSlowCommand checks that one slow command does not move the TIME of a
// script, although it exceeds busy-reply-threshold. A busy machine may delay the script
// before that; it tries again then.
func TestScriptTimeAroundSlowCommand(t *testing.T) {
	rerun.Skip(t)
	srv, _ := enginetest.Start(t, map[string]string{"busy-reply-threshold": "20", "enable-debug-command": "yes"})
	enginetest.Must(t, srv, "DEBUG SET-DISABLE-DENY-SCRIPTS 1")
	wait.Until(t, "TIME is that before the slow command", func() bool {
		return enginetest.SayArgs(srv, "EVAL", "local t = redis.call('time') redis.call('debug', 'sleep', 0.03) return t[2] == redis.call('time')[2]", 0) == "1"
	})
}

// TestScriptInBubble checks that a script that waits, or never ends, ends in a bubble, where
// no time passes while it runs.
func TestScriptInBubble(t *testing.T) {
	rerun.Skip(t)
	synctest.Test(t, func(t *testing.T) {
		srv, err := enginetest.New(engine.Options{Config: map[string]string{"busy-reply-threshold": "20"}})
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		if got := enginetest.SayArgs(srv, "EVAL", waitsByTime, 0); !strings.HasSuffix(got, " 1 1 1]") {
			t.Error(got)
		}
		if got := enginetest.SayArgs(srv, "FUNCTION", "LOAD", "#!lua name=l\nwhile true do end"); !strings.Contains(got, "FUNCTION LOAD timeout") {
			t.Error(got)
		}
		ended := make(chan string)
		go func() { ended <- enginetest.SayArgs(srv, "EVAL", "while true do end", 0) }()
		synctest.Wait() // until the script sleeps, which it does when it is busy
		enginetest.Must(t, srv, "GET k -> "+engine.ErrBusyEval, "SCRIPT KILL -> OK")
		if got := <-ended; !strings.HasPrefix(got, scriptKilled) {
			t.Error(got)
		}
	})
}

func TestScriptsHaveBounds(t *testing.T) {
	rerun.Skip(t)
	srv, err := enginetest.New(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	srv.Scripting.MemoryLimit = 32 << 20
	for source, want := range map[string]string{
		"local t = {} for i = 1, 1e9 do t[i] = string.rep('x', 1000) .. i end":                 "not enough memory",
		"local t = {} while true do t = {t} end":                                               "not enough memory",
		"local s = string.rep('x', 2^20) for i = 1, 300 do s = s:rep(1) end":                   "<nil>", // is not kept
		"local function f() return 1 + f() end return f()":                                     "stack overflow",
		"local function f() return pcall(f) end return f()":                                    "",
		"local t = setmetatable({}, {}) getmetatable(t).__index = t return t.x":                "loop in gettable",
		"return string.rep('(', 300)":                                                          "",
		"return loadstring('return ' .. string.rep('(', 300) .. string.rep(')', 300))":         "",
		"return unpack({}, 1, 1e8)":                                                            "too many results to unpack",
		"local s = '' for i = 1, 300 do s = s .. '..a' end return loadstring('return a' .. s)": "",
		"local co co = coroutine.wrap(function() return co() end) return co()":                 "cannot resume",
		"local function f() return coroutine.wrap(f)() end return f()":                         "stack overflow",
		"return cjson.decode(string.rep('[', 100000))":                                         "too many nested",
		"return cmsgpack.unpack(string.rep('\\145', 100000))":                                  "too many return values",
	} {
		start := time.Now()
		got := enginetest.SayArgs(srv, "EVAL", source, 0)
		if took := time.Since(start); took > 2*time.Second {
			t.Logf("%s: %v", source, took)
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %.200s, want %q", source, got, want)
		}
	}
	if got := enginetest.Say(srv, "PING"); got != "PONG" {
		t.Errorf("afterwards: %v", got)
	}
}

// TestSandbox checks that the environment of scripts has only the intended names, and that
// scripts cannot change it for later scripts.
func TestSandbox(t *testing.T) {
	srv, err := enginetest.New(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	// Everything that can be reached from the globals, through tables and
	// metatables.
	const walk = `
		local seen, out = {}, {}
		local function go(path, v)
			if type(v) ~= 'table' or seen[v] then return end
			seen[v] = true
			for k, e in pairs(v) do
				out[#out + 1] = path .. tostring(k) .. ':' .. type(e)
				go(path .. tostring(k) .. '.', e)
			end
			local mt = getmetatable(v)
			if mt then go(path .. 'META.', mt) end
		end
		go('', _G)
		go('STRING.', getmetatable(''))
		table.sort(out)
		return out`
	reach := func() string { return enginetest.SayArgs(srv, "EVAL", walk, 0) }
	before := reach()
	for _, name := range []string{
		"io", "debug", "require", "package", "module", "dofile", "loadfile", "print", "newproxy", "getfenv", "setfenv", "channel",
	} {
		if got := enginetest.SayArgs(srv, "EVAL", "return "+name, 0); !strings.Contains(got, "nonexistent global variable '"+name+"'") {
			t.Errorf("%s: %s", name, got)
		}
	}
	for _, source := range []string{
		"x = 1", "redis = nil", "_G.x = 1", "_G._G = nil", "rawset(_G, 'x', 1)", "rawset(string, 'rep', nil)", "string.rep = nil",
		"redis.call = nil", "math.pi = 3", "table.insert(table, 1)", "setmetatable(_G, nil)",
		"setmetatable(string, {})", "getmetatable(_G).__index = nil", "getmetatable(_G).__metatable = nil", "getmetatable('').__index = nil",
		"getmetatable('').__add = nil", "getmetatable('').__index.upper = nil", "rawset(getmetatable(''), '__index', {})",
		"cjson.x = 1", "cmsgpack.pack = nil", "bit.band = nil", "struct.pack = nil", "coroutine.wrap = nil", "os.clock = nil",
		"for k in pairs(_G) do _G[k] = nil end", "next(_G).x = 1", "function string.trim() end", "function redis.foo() end",
		"string.format = function() end", "pcall = error", "local mt = getmetatable(redis) mt.__index = nil",
		"setmetatable(getmetatable(_G), {})", "loadstring('x = 1')()", "load(coroutine.wrap(function() coroutine.yield('x = 1') end))()",
		"coroutine.wrap(function() x = 1 end)()",
	} {
		if got := enginetest.SayArgs(srv, "EVAL", source+" return 'done'", 0); got == "done" {
			t.Errorf("%s: nothing was wrong with it", source)
		}
	}
	// KEYS and ARGV are each script's own.
	if got := enginetest.SayArgs(srv, "EVAL", "KEYS[1] = 'x' ARGV.y = 1 cjson.encode_sparse_array(false) return 1", 0); got != "1" {
		t.Error(got)
	}
	if after := reach(); after != before {
		t.Errorf("the environment was\n%s\nand is\n%s", before, after)
	}
	for _, part := range strings.Fields(strings.Trim(before, "[]")) {
		if strings.Contains(part, ":userdata") && !strings.HasSuffix(part, "null:userdata") || strings.Contains(part, ":thread") {
			t.Errorf("scripts reach %s", part)
		}
	}
}

// TestPanicWithinScript checks that pcall does not catch the panic of a command.
func TestPanicWithinScript(t *testing.T) {
	srv, err := enginetest.New(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	srv.Table.ByName["echo"].Run = func(*engine.Call) { panic("BUG: a test") }
	for _, source := range []string{
		"redis.pcall('echo', 'x')", "pcall(redis.call, 'echo', 'x')", "xpcall(function() redis.call('echo', 'x') end, error)",
		"coroutine.wrap(function() pcall(redis.call, 'echo', 'x') end)()",
	} {
		func() {
			defer func() {
				if r := recover(); fmt.Sprint(r) != "BUG: a test" {
					t.Errorf("%s: recovered %v", source, r)
				}
			}()
			s := srv.NewSession(engine.Peer{FD: -1, Wake: func() {}})
			s.SetOwner()
			srv.Mu.Lock()
			defer srv.Mu.Unlock()
			s.Exec([][]byte{[]byte("EVAL"), []byte(source), []byte("0")})
			t.Errorf("%s: went on", source)
		}()
	}
}

// TestFunctionsAreKept checks that function libraries are saved and exported.
func TestFunctionsAreKept(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "functions.db")
	srv := enginetest.Keep(t, path, map[string]string{"save": ""})
	load := func(name, reply string) {
		t.Helper()
		code := fmt.Sprintf("#!lua name=%s\nredis.register_function('%s', function() return '%s' end)", name, name, reply)
		if got := enginetest.SayArgs(srv, "FUNCTION", "LOAD", "REPLACE", code); got != name {
			t.Fatal(got)
		}
	}
	load("a", "first")
	load("b", "second")
	load("c", "third")
	enginetest.Must(t, srv, "SET k v", "FUNCTION DELETE b", "FLUSHALL")
	enginetest.Must(t, srv, "SET k v")
	load("a", "changed")
	enginetest.Must(t, srv, "SAVE")
	load("d", "not saved")
	dumped := enginetest.SayArgs(srv, "FUNCTION", "LIST", "WITHCODE")
	srv = enginetest.Again(t, srv, map[string]string{"save": "1 1"}) // closes without saving
	if got := enginetest.SayArgs(srv, "FCALL", "d", 0); got != "ERR Function not found" {
		t.Errorf("what was not saved: %s", got)
	}
	load("d", "not saved")
	check := func() {
		t.Helper()
		if got := enginetest.SayArgs(srv, "FUNCTION", "LIST", "WITHCODE"); got != dumped {
			t.Errorf("libraries:\n%s\nwant\n%s", got, dumped)
		}
		enginetest.Must(t, srv, "FCALL a 0 -> changed", "FCALL c 0 -> third", "FCALL b 0 -> ERR Function not found", "GET k -> v", "DBSIZE -> 1")
		if err := srv.Check(); err != nil {
			t.Error(err)
		}
	}
	srv = enginetest.Again(t, srv, nil) // saves
	check()
	enginetest.Must(t, srv, "BGREWRITEAOF") // a fresh file
	enginetest.Rest(t, srv)
	srv = enginetest.Again(t, srv, map[string]string{"databases": "3"})
	check()
	enginetest.Must(t, srv, "DEBUG RELOAD")
	check()
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"commands", "json", "rdb"} {
		var out bytes.Buffer
		to := filepath.Join(dir, format+".db")
		var err error
		switch format {
		case "json":
			if _, err = archive.ExportJSON(&out, path, time.Now(), nil); err == nil {
				_, err = new(archive.Import).JSON(&out, to)
			}
		case "rdb":
			if _, err = archive.ExportRDB(&out, path, rdb.Any, time.Now(), nil); err == nil {
				_, err = new(archive.Import).RDB(&out, to)
			}
		default:
			if _, err = archive.ExportCommands(&out, path, rdb.Any, time.Now(), nil); err == nil {
				_, err = server.ImportCommands(&out, to, 0, &archive.Import{})
			}
		}
		if err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		srv = enginetest.Keep(t, to, nil)
		check()
	}
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := archive.Compact(path, nil); err != nil {
		t.Fatal(err)
	}
	report, err := archive.Check(path, time.Now(), nil)
	if err != nil || report.Libraries != 3 || len(report.Databases) != 1 {
		t.Errorf("check: %+v, %v", report, err)
	}
	srv = enginetest.Keep(t, path, nil)
	check()
	enginetest.Must(t, srv, "FUNCTION FLUSH", "SAVE")
	srv = enginetest.Again(t, srv, nil)
	enginetest.Must(t, srv, "FUNCTION LIST -> []", "GET k -> v")
}

func TestMonitorOfScripts(t *testing.T) {
	_, addr := enginetest.Start(t, nil)
	m, c := enginetest.Dial(t, addr), enginetest.Dial(t, addr)
	m.Call("MONITOR")
	send(c, "EVAL", "redis.call('select', 2) return redis.call('set', KEYS[1], 1)", "1", "k")
	send(c, "EVALSHA", send(c, "SCRIPT", "LOAD", "return redis.call('get', 'k')").(string), "0")
	send(c, "EVALSHA", "short", "0")
	for _, want := range []string{`] "EVAL" "redis.call('select', 2) return`, ` [2 lua] "select" "2"`, ` [2 lua] "set" "k" "1"`,
		`] "SCRIPT" "LOAD" "return redis.call('get', 'k')"`, `] "EVALSHA" "`, ` [0 lua] "get" "k"`, `] "EVALSHA" "short" "0"`} {
		if got := fmt.Sprint(m.Reply()); !strings.Contains(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestNamedCalls checks calls whose command is named in the source, which are bound to it when the
// script is compiled: rules of access hold when they run, names are those of rename-command, and
// MONITOR shows a name as the script writes it.
func TestNamedCalls(t *testing.T) {
	srv, addr := enginetest.Start(t, map[string]string{"rename-command": "get fetch append \"\""})
	m, c := enginetest.Dial(t, addr), enginetest.Dial(t, addr)
	run := func(source string, args ...string) any {
		return send(c, append([]string{"EVALSHA", send(c, "SCRIPT", "LOAD", source).(string), "0"}, args...)...)
	}
	const unknown = "ERR Unknown Redis command called from script script: "
	for _, test := range []struct {
		source string
		want   string
	}{
		{"return redis.call('set', 'k', 'v')", "OK"},
		{"return redis.call('get', 'k')", unknown},
		{"return redis.call('append', 'k', 'x')", unknown},
		{"return redis.call('fetch', 'k')", "v"},
		{"return redis.call(ARGV[1] or 'fetch', 'k')", "v"},
		{"return server.call('fetch', 'k') .. redis.pcall('FETCH', 'k')", "vv"},
		{"return redis.pcall('get', 'k').err", "ERR Unknown Redis command called from script"},
		{"return server.pcall('get', 'k').err", "ERR Unknown command called from script"},
		{"return redis.call('fetch')", "ERR Wrong number of args calling Redis command from script script: "},
		{"return server.pcall('fetch').err", "ERR Wrong number of args calling command from script"},
		{"return redis.call('fetch', {})", "ERR Lua redis lib command arguments must be strings or integers script: "},
		{"return redis.call('')", unknown},
		{"return redis.call('subscribe', 'k')", "ERR This Redis command is not allowed from script script: "},
		{"return redis.call('object', 'refcount', 'k')", "1"},
		{"return redis.call('object', 'nosuch', 'k')", unknown},
		{"return redis.call('mset', unpack({'a', 1, 'b', 2, 'c', 3, 'd', 4, 'e', 5, 'f', 6, 'g', 7, 'h', 8, 'i', 9}))", "OK"},
		{"local function two() return 'k', 'w' end return redis.call('getset', two())", "v"},
		{"return select('#', redis.call('fetch', 'none'))", "1"},
		{"return redis.call('fetch', 'k'), redis.call('set', 'k', 'w')", "v"},
	} {
		for range 2 {
			send(c, "SET", "k", "v")
			if got := fmt.Sprint(run(test.source)); !strings.HasPrefix(got, test.want) {
				t.Errorf("%s: %s, want %s", test.source, got, test.want)
			}
		}
	}
	m.Call("MONITOR")
	run("return redis.call('FeTcH', 'k')")
	for _, want := range []string{`"SCRIPT"`, `"EVALSHA"`, ` [0 lua] "FeTcH" "k"`} {
		if got := fmt.Sprint(m.Reply()); !strings.Contains(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
	enginetest.Must(t, srv, "ACL SETUSER u on nopass ~* +@all -get")
	send(c, "AUTH", "u", "")
	if got := fmt.Sprint(run("return redis.call('fetch', 'k')")); !strings.HasPrefix(got, "ERR ACL failure in script: User u has no permissions to run the 'get' command") {
		t.Error(got)
	}
	enginetest.Must(t, srv, "ACL SETUSER u +@all")
	if got := fmt.Sprint(run("return redis.call('fetch', 'k')")); got != "w" {
		t.Error(got)
	}
}

// TestNestedReply checks that a script's reply which is nested more deeply than Lua's stack ends
// in an error.
func TestNestedReply(t *testing.T) {
	_, addr := enginetest.Start(t, nil)
	c := enginetest.Dial(t, addr)
	for _, test := range []struct {
		depth, levels int
		end           string
	}{{100, 100, ":1\r\n"}, {7995, 7995, "-ERR reached lua stack limit\r\n"}, {9000, 7995, "-ERR reached lua stack limit\r\n"}} {
		c.Send(fmt.Sprintf("EVAL \"local t = 1 for i = 1, %d do t = {t} end return t\" 0\r\n", test.depth))
		levels, line := -1, "*1\r\n"
		for ; line == "*1\r\n"; levels++ {
			var err error
			if line, err = c.R.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		if line != test.end || levels != test.levels {
			t.Errorf("%d levels: %s after %d", test.depth, line, levels)
		}
	}
}

// TestErrorsMadeUp checks that INFO errorstats counts no more codes after 128, which scripts make
// up: Redis 8.6 has one line then, until CONFIG RESETSTAT, and Valkey counts the rest as one code.
func TestErrorsMadeUp(t *testing.T) {
	for dialect, want := range map[string]string{
		"redis":  "# Errorstats\r\nerrorstat_ERRORSTATS_DISABLED:count=1\r\n",
		"valkey": "errorstat_ERRORSTATS_OVERFLOW:count=3\r\n",
	} {
		srv, err := enginetest.New(engine.Options{Config: map[string]string{"dialect": dialect}})
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		for i := range 128 + 3 {
			enginetest.SayArgs(srv, "EVAL", "return redis.error_reply(ARGV[1])", 0, fmt.Sprintf("CODE%d text", i))
		}
		enginetest.SayArgs(srv, "EVAL", "return redis.error_reply('CODE0 text')", 0)
		if got := enginetest.Say(srv, "INFO errorstats"); !strings.Contains(got, want) || dialect == "redis" && got != want {
			t.Errorf("%s: %q, want %q", dialect, got, want)
		}
		if got := enginetest.Info(t, srv, "total_error_replies"); got != "132" {
			t.Errorf("%s: %s errors", dialect, got)
		}
		enginetest.Say(srv, "CONFIG RESETSTAT")
		enginetest.SayArgs(srv, "EVAL", "return redis.error_reply('CODE0 text')", 0)
		if got, want := enginetest.Say(srv, "INFO errorstats"), "# Errorstats\r\nerrorstat_CODE0:count=1\r\n"; got != want {
			t.Errorf("%s, after CONFIG RESETSTAT: %q, want %q", dialect, got, want)
		}
	}
}

// TestStatsOfScripts checks that each command of a script is counted as if a client had
// sent it, and an error once, though both the command and the script fail.
func TestStatsOfScripts(t *testing.T) {
	srv, err := enginetest.New(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	enginetest.SayArgs(srv, "EVAL", "redis.call('set', 'k', 'v') redis.pcall('lpush', 'k', 'x') redis.pcall('nosuch') return redis.call('lpush', 'k', 'x')", 0)
	enginetest.SayArgs(srv, "EVAL", "error('own')", 0)
	for field, want := range map[string]string{
		"cmdstat_set":         "calls=1,",
		"cmdstat_lpush":       "calls=2,",
		"cmdstat_eval":        "calls=2,",
		"errorstat_WRONGTYPE": "count=2",
		"errorstat_ERR":       "count=2",
	} {
		if got := enginetest.Info(t, srv, field); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", field, got, want)
		}
	}
	if got := enginetest.Info(t, srv, "cmdstat_lpush"); !strings.HasSuffix(got, "rejected_calls=0,failed_calls=2") {
		t.Errorf("lpush: %s", got)
	}
	if got := enginetest.Info(t, srv, "cmdstat_eval"); !strings.HasSuffix(got, "rejected_calls=0,failed_calls=2") {
		t.Errorf("eval: %s", got)
	}
	if got := enginetest.Info(t, srv, "number_of_cached_scripts"); got != "2" {
		t.Errorf("cached scripts: %s", got)
	}
}

// TestEvictedScripts checks that the scripts of EVAL leave the cache, the one used least
// recently first, and those of SCRIPT LOAD do not.
func TestEvictedScripts(t *testing.T) {
	srv, err := enginetest.New(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	source := func(i int) string { return fmt.Sprint("return ", i) }
	loaded := enginetest.SayArgs(srv, "SCRIPT", "LOAD", source(1000))
	const maxEvals = 500 // as Redis keeps
	for i := range maxEvals {
		enginetest.SayArgs(srv, "EVAL", source(i), 0)
	}
	first := enginetest.SayArgs(srv, "EVAL", "return redis.sha1hex('return 0')", 0) // evicts return 0
	if got := enginetest.SayArgs(srv, "EVALSHA", first, 0); got != engine.ErrNoScript {
		t.Errorf("the evicted script: %s", got)
	}
	if got := enginetest.SayArgs(srv, "EVALSHA", loaded, 0); got != "1000" {
		t.Errorf("the loaded script: %s", got)
	}
	for field, want := range map[string]string{"evicted_scripts": "1", "number_of_cached_scripts": fmt.Sprint(maxEvals + 1)} {
		if got := enginetest.Info(t, srv, field); got != want {
			t.Errorf("%s: %s, want %s", field, got, want)
		}
	}
	enginetest.SayArgs(srv, "CONFIG", "RESETSTAT")
	if got := enginetest.Info(t, srv, "evicted_scripts"); got != "0" {
		t.Errorf("after RESETSTAT: %s", got)
	}
}

// TestScriptsInCluster checks that in a cluster a script may use keys of several slots only
// if it has no shebang line, or the flag allow-cross-slot-keys.
func TestScriptsInCluster(t *testing.T) {
	srv, err := enginetest.New(engine.Options{Config: map[string]string{"cluster-enabled": "yes"}})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	const both = "redis.call('set', 'a', 1) return redis.call('set', 'b', 2)"
	for _, test := range []struct {
		source string
		keys   []any
		want   string
	}{
		{both, nil, "OK"},
		{"return redis.call('mset', 'a', 1, 'b', 2)", nil, "ERR Script attempted to access a non local key in a cluster node script: "},
		{"return 1", []any{"a", "b"}, engine.ErrCrossSlot},
		{"#!lua\n" + both, nil, "ERR Script attempted to access keys that do not hash to the same slot script: "},
		{"#!lua\nreturn redis.call('get', 'b')", []any{"a"}, "ERR Script attempted to access keys that do not hash to the same slot script: "},
		{"#!lua flags=allow-cross-slot-keys\n" + both, nil, "OK"},
		{"#!lua flags=no-cluster\nreturn 1", nil, "ERR Can not run script on cluster, 'no-cluster' flag is set."},
	} {
		got := enginetest.SayArgs(srv, append([]any{"EVAL", test.source, len(test.keys)}, test.keys...)...)
		if !strings.HasPrefix(got, test.want) {
			t.Errorf("%s %v: %s, want %s", test.source, test.keys, got, test.want)
		}
	}
	enginetest.Must(t, srv, "CLUSTER DELSLOTS 15495 -> OK")
	if got := enginetest.SayArgs(srv, "EVAL", "return redis.call('get', 'b')", 0); !strings.HasPrefix(got, "ERR Script attempted to execute a command while the cluster is down") {
		t.Errorf("while slots are missing: %s", got)
	}
}

func BenchmarkEval(b *testing.B) {
	srv, err := enginetest.New(engine.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer srv.Close()
	for name, source := range map[string]string{
		"nothing": "return 1",
		"incr":    "return redis.call('incr', KEYS[1])",
		"loop":    "local x = 0 for i = 1, 1000 do x = x + i end return x",
		"json":    "return cjson.encode(cjson.decode(ARGV[1]))",
	} {
		b.Run(name, func(b *testing.B) {
			s := srv.NewSession(engine.Peer{FD: -1, Wake: func() {}})
			s.SetOwner()
			defer s.Close()
			line := [][]byte{[]byte("EVAL"), []byte(source), []byte("1"), []byte("k"), []byte(`{"a":[1,2,3],"b":"text"}`)}
			b.ReportAllocs()
			var out []byte
			for b.Loop() {
				_, out, _ = s.Turn([][][]byte{line}, out[:0])
				s.Written()
			}
		})
	}
}

// Nothing of a library stays in memory when another takes its place.
func TestMeasureReplacedLibraries(t *testing.T) {
	enginetest.Measured(t)
	srv, err := enginetest.New(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	load := func(n int) {
		for range n {
			source := "#!lua name=lib\nredis.register_function('f', function() return 1 end)"
			if _, err := srv.Do(context.Background(), "FUNCTION", "LOAD", "REPLACE", source); err != nil {
				t.Fatal(err)
			}
		}
	}
	load(100)
	before := enginetest.UsedAfterGC()
	load(1000)
	if grown := enginetest.UsedAfterGC() - before; grown > 1<<20 {
		t.Errorf("1000 libraries that were replaced have left %d bytes", grown)
	}
}
