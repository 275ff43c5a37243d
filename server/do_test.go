package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/base/process"
	"github.com/zsetd/zsetd/server/internal/engine"

	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

// serverOf returns the server that has these parts.
func serverOf(srv *enginetest.Server) *Server { return &Server{srv.Engine, srv.Transport} }

// stops are the ways in which a program ends a server.
func stops() map[string]func(*enginetest.Server) error {
	return map[string]func(*enginetest.Server) error{
		"Close":    (*enginetest.Server).Close,
		"Shutdown": func(srv *enginetest.Server) error { return srv.Shutdown(context.Background()) },
	}
}

func TestDoAfterClose(t *testing.T) {
	for name, stop := range stops() {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			srv, err := enginetest.New(engine.Options{File: filepath.Join(t.TempDir(), "data.db")})
			if err != nil {
				t.Fatal(err)
			}
			nc, err := srv.Dialer()(ctx, "", "")
			if err != nil {
				t.Fatal(err)
			}
			dial := srv.Dialer()
			if err := stop(srv); err != nil {
				t.Fatal(err)
			}
			if n, err := nc.Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("a connection that was open reads %d bytes, %v", n, err)
			}
			for what, f := range map[string]func() error{
				"PING":        func() error { _, err := srv.Do(ctx, "PING"); return err },
				"SET":         func() error { _, err := srv.Do(ctx, "SET", "key", "value"); return err },
				"BLPOP":       func() error { _, err := srv.Do(ctx, "BLPOP", "list", 0); return err },
				"Ready":       func() error { return srv.Ready(ctx) },
				"Dialer":      func() error { _, err := srv.Dialer()(ctx, "", ""); return err },
				"same Dialer": func() error { _, err := dial(ctx, "", ""); return err },
			} {
				if err := f(); !errors.Is(err, engine.ErrServerClosed) {
					t.Errorf("%s: %v", what, err)
				}
			}
			for again, stop := range stops() {
				if err := stop(srv); err != nil {
					t.Errorf("%s after it: %v", again, err)
				}
			}
		})
	}
}

// Calls that wait for others when the server stops end with ErrServerClosed.
func TestDoBlockedAtClose(t *testing.T) {
	for name, stop := range stops() {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			srv, err := enginetest.New(engine.Options{})
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 2)
			go func() { _, err := srv.Do(ctx, "BLPOP", "list", 0); ended <- err }()
			awaitBlocked(t, srv, 1)
			if _, err := srv.Do(ctx, "CLIENT", "PAUSE", 1_000_000, "WRITE"); err != nil {
				t.Fatal(err)
			}
			go func() { _, err := srv.Do(ctx, "SET", "key", "value"); ended <- err }()
			awaitBlocked(t, srv, 2)
			if err := stop(srv); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := <-ended; !errors.Is(err, engine.ErrServerClosed) {
					t.Errorf("a call that waited: %v", err)
				}
			}
			if n := len(srv.Clients.Sessions); n != 0 {
				t.Errorf("%d sessions are left", n)
			}
		})
	}
}

func awaitBlocked(t *testing.T, srv *enginetest.Server, n int) {
	t.Helper()
	for t.Context().Err() == nil {
		srv.Mu.Lock()
		blocked := srv.Stats.BlockedClients
		srv.Mu.Unlock()
		if blocked == n {
			return
		}
	}
}

// Whatever a call has acknowledged while the server was stopping is in the file.
func TestDoRacesClose(t *testing.T) {
	for name, stop := range stops() {
		for _, fsync := range []string{"always", "everysec", ""} {
			t.Run(name+" "+fsync, func(t *testing.T) {
				ctx := t.Context()
				config := map[string]string{}
				if fsync != "" {
					config = map[string]string{"appendonly": "yes", "appendfsync": fsync}
				}
				o := engine.Options{File: filepath.Join(t.TempDir(), "data.db"), Config: config}
				for round := range 10 {
					srv, err := enginetest.New(o)
					if err != nil {
						t.Fatal(err)
					}
					if err := srv.Ready(ctx); err != nil {
						t.Fatal(err)
					}
					const callers = 4
					var acknowledged [callers]int
					var calls sync.WaitGroup
					begun := make(chan struct{}, callers)
					for i := range callers {
						calls.Go(func() {
							for n := 1; ; n++ {
								if _, err := srv.Do(ctx, "SET", fmt.Sprintf("%d:%d", round, i), n); err != nil {
									if !errors.Is(err, engine.ErrServerClosed) {
										t.Errorf("SET: %v", err)
									}
									return
								}
								if acknowledged[i] = n; n == 1+5*i {
									begun <- struct{}{}
								}
							}
						})
					}
					<-begun
					if err := stop(srv); err != nil {
						t.Fatal(err)
					}
					calls.Wait()
					if srv, err = enginetest.New(o); err != nil {
						t.Fatal(err)
					}
					for i, n := range acknowledged {
						got, err := srv.Do(ctx, "GET", fmt.Sprintf("%d:%d", round, i))
						if s := fmt.Sprint(got); err != nil || n > 0 && s != fmt.Sprint(n) {
							t.Errorf("round %d, caller %d: the file has %v (%v), %d was acknowledged", round, i, got, err, n)
						}
					}
					if err := srv.Close(); err != nil {
						t.Fatal(err)
					}
				}
			})
		}
	}
}

// An element that a blocked call has taken is its reply, though its context, or the
// server, ends at the same time.
func TestDoLosesNoElement(t *testing.T) {
	srv, err := enginetest.New(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	for i := range 500 {
		ctx, cancel := context.WithCancel(t.Context())
		popped := make(chan any)
		go func() {
			got, _ := srv.Do(ctx, "BLPOP", "list", 0)
			popped <- got
		}()
		awaitBlocked(t, srv, 1)
		cancel()
		if _, err := srv.Do(t.Context(), "RPUSH", "list", i); err != nil {
			t.Fatal(err)
		}
		got := <-popped
		left, err := srv.Do(t.Context(), "LPOP", "list")
		if err != nil || (got == nil) == (left == nil) {
			t.Fatalf("%d: the call has %v, the list %v (%v)", i, got, left, err)
		}
	}
}

// Commands that only change their session are refused, and say what to use.
func TestDoRefusesConnectionCommands(t *testing.T) {
	srv, err := enginetest.New(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	for _, line := range []string{
		"SUBSCRIBE a", "PSUBSCRIBE a*", "SSUBSCRIBE a", "UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE",
		"MULTI", "EXEC", "DISCARD", "WATCH a", "UNWATCH",
		"SELECT 1", "select 99", "HELLO", "HELLO 2", "AUTH a b", "QUIT", "RESET",
		"MONITOR", "READONLY", "READWRITE", "ASKING",
		"CLIENT TRACKING ON", "CLIENT CACHING YES", "CLIENT REPLY OFF", "CLIENT SETNAME a", "CLIENT SETINFO LIB-NAME a",
		"CLIENT NO-EVICT ON", "CLIENT NO-TOUCH ON", "client setname",
	} {
		words := strings.Fields(line)
		args := make([]any, len(words))
		for i, w := range words {
			args[i] = w
		}
		name := strings.ToUpper(words[0])
		if name == "CLIENT" {
			name += " " + strings.ToUpper(words[1])
		}
		want := "zsetd: " + name + " needs a connection: use Server.Dialer"
		if got, err := srv.Do(t.Context(), args...); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, %v", line, got, err)
		}
	}
	if n := len(srv.Clients.Sessions) + len(srv.Clients.Monitors) + len(srv.Waits.Watched) + srv.PubSub.Table.Receivers(false, []byte("a")); n != 0 {
		t.Errorf("they have left %d traces", n)
	}
	// Those that tell about the session, and those about others, are executed.
	for _, args := range [][]any{{"CLIENT", "ID"}, {"CLIENT", "INFO"}, {"CLIENT", "LIST"}, {"PUBLISH", "a", "b"}, {"CLIENT", "UNPAUSE"}} {
		if _, err := srv.Do(t.Context(), args...); err != nil {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// A call that is killed, or shuts the server down, has no reply and says so.
func TestDoWithoutReply(t *testing.T) {
	srv, err := enginetest.New(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	ended := make(chan error, 1)
	go func() { _, err := srv.Do(t.Context(), "BLPOP", "list", 0); ended <- err }()
	awaitBlocked(t, srv, 1)
	if _, err := srv.Do(t.Context(), "CLIENT", "KILL", "TYPE", "normal"); err != nil {
		t.Fatal(err)
	}
	err = <-ended
	if _, isReply := errors.AsType[protocol.ReplyError](err); err == nil || isReply || errors.Is(err, engine.ErrServerClosed) {
		t.Errorf("a killed call: %v", err)
	}
	if _, err := srv.Do(t.Context(), "SHUTDOWN"); !errors.Is(err, engine.ErrServerClosed) {
		t.Errorf("SHUTDOWN: %v", err)
	}
	<-srv.Ending.Stopped
	if _, err := srv.Do(t.Context(), "PING"); !errors.Is(err, engine.ErrServerClosed) {
		t.Errorf("after SHUTDOWN: %v", err)
	}
}

// Types of a program's own, as arguments of Do.
type (
	ownString  string
	ownStrings []string
	ownBytes   []byte
	ownBool    bool
	ownFloat   float32
)

// ownBinary and ownBinaryString are types that encode themselves.
type (
	ownBinary       struct{ text string }
	ownBinaryString string
)

func (b *ownBinary) MarshalBinary() ([]byte, error) { return []byte("<" + b.text + ">"), nil }

func (b ownBinaryString) MarshalBinary() ([]byte, error) {
	if b == "" {
		return nil, errors.New("empty")
	}
	return []byte("<" + b + ">"), nil
}

// Arguments arrive by their kinds, times and durations in the unit of the command.
func TestDoArguments(t *testing.T) {
	srv, err := enginetest.New(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	at := time.UnixMicro(4_102_444_800_123_456) // in 2100
	for _, c := range []struct {
		args []any
		sent string // or the error
	}{
		{[]any{"SET", "k", "v", "EX", 90 * time.Second}, "SET k v EX 90"},
		{[]any{"set", "k", "v", "px", 90 * time.Second}, "set k v px 90000"},
		{[]any{"SET", "k", "v", "PX", 1500 * time.Microsecond}, "SET k v PX 2"},
		{[]any{"SET", "k", "v", "EXAT", at}, "SET k v EXAT 4102444800"},
		{[]any{"SET", "k", "v", "PXAT", at}, "SET k v PXAT 4102444800123"},
		{[]any{"SETEX", "k", time.Minute, "v"}, "SETEX k 60 v"},
		{[]any{"PSETEX", "k", time.Minute, "v"}, "PSETEX k 60000 v"},
		{[]any{"EXPIRE", "k", time.Hour, "NX"}, "EXPIRE k 3600 NX"},
		{[]any{"PEXPIRE", "k", -time.Hour}, "PEXPIRE k -3600000"},
		{[]any{"EXPIREAT", "k", at}, "EXPIREAT k 4102444800"},
		{[]any{"PEXPIREAT", "k", at}, "PEXPIREAT k 4102444800123"},
		{[]any{"ZADDEX", "z", "EX", time.Minute, "MEMBERS", 1, at, "m"}, "ZADDEX z EX 60 MEMBERS 1 4102444800.123456 m"},
		{[]any{"HPEXPIRE", "h", time.Second, "FIELDS", 1, "f"}, "HPEXPIRE h 1000 FIELDS 1 f"},
		{[]any{"BLPOP", []string{"a", "b"}, 250 * time.Millisecond}, "BLPOP a b 0.25"},
		{[]any{"BZMPOP", time.Second, 1, "z", "MIN"}, "BZMPOP 1 1 z MIN"},
		{[]any{"XREAD", "BLOCK", time.Second, "STREAMS", "s", "$"}, "XREAD BLOCK 1000 STREAMS s $"},
		{[]any{"XCLAIM", "s", "g", "c", time.Second, "1-1", "IDLE", time.Minute, "TIME", at}, "XCLAIM s g c 1000 1-1 IDLE 60000 TIME 4102444800123"},
		{[]any{"RESTORE", "k", time.Second, "payload"}, "RESTORE k 1000 payload"},
		{[]any{"RESTORE", "k", at, "payload", "ABSTTL"}, "RESTORE k 4102444800123 payload ABSTTL"},
		{[]any{"CLIENT", "PAUSE", time.Second}, "CLIENT PAUSE 1000"},
		{[]any{"WAIT", 0, time.Second}, "WAIT 0 1000"},
		{[]any{"ZADD", "z", at, "m"}, "ZADD z 4102444800.123456 m"},
		{[]any{"ZRANGEBYSCORE", "z", at, "+inf"}, "ZRANGEBYSCORE z 4102444800.123456 +inf"},
		{[]any{"ZREM", "z", []string{"a", "b"}, []string{}, "c"}, "ZREM z a b c"},
		{[]any{[]string{"GET", "k"}}, "GET k"},

		{[]any{"SET", "k", "v", "EX", 1500 * time.Millisecond}, "zsetd: argument 4: SET takes whole seconds here, and 1.5s is not: use the variant in milliseconds"},
		{[]any{"SET", "k", time.Second}, "zsetd: argument 2: SET takes no duration here: send 1s as a number or a string"},
		{[]any{"SETEX", "k", 1, time.Second}, "zsetd: argument 3: SETEX takes no duration here: send 1s as a number or a string"},
		{[]any{"ZADD", "z", time.Second, "m"}, "zsetd: argument 2: ZADD takes no duration here: send 1s as a number or a string"},
		{[]any{"EXPIREAT", "k", time.Second}, "zsetd: argument 2: EXPIREAT takes no duration here: send 1s as a number or a string"},
		{[]any{"EXPIRE", "k", at}, "zsetd: argument 2: EXPIRE takes a duration here, not a time"},
		{[]any{"NONE", time.Second}, "zsetd: argument 1: NONE takes no duration here: send 1s as a number or a string"},
		{[]any{at}, "zsetd: argument 0: a time cannot be the name of a command"},
		{[]any{"SET", "k", struct{}{}}, "zsetd: argument 2: cannot send a struct {}"},
		{[]any{"SET", "k", nil}, "zsetd: argument 2: cannot send nil"},
		{[]any{"SET", "k", new("v")}, "zsetd: argument 2: cannot send a *string"},
		{[]any{"SET", "k", []any{"v"}}, "zsetd: argument 2: cannot send a []interface {}"},
		{[]any{"SET", "k", 1i}, "zsetd: argument 2: cannot send a complex128"},
		{[]any{"SET", "k", [2]byte{1, 2}}, "zsetd: argument 2: cannot send a [2]uint8"},

		{[]any{int8(-8), int16(-16), int32(-32), int64(math.MinInt64), -1}, "-8 -16 -32 -9223372036854775808 -1"},
		{[]any{uint8(8), uint16(16), uint32(32), uint64(math.MaxUint64), uint(1), uintptr(2)}, "8 16 32 18446744073709551615 1 2"},
		{[]any{float32(0.1), 0.1, float32(16777216), 1e300, math.Inf(-1)}, "0.1 0.1 16777216 1e+300 -inf"},
		{[]any{netip.MustParseAddr("65.66.67.68"), &ownBinary{"SET"}, ownBinaryString("x")}, "ABCD <SET> <x>"},
		{[]any{(*ownBinary)(nil)}, "zsetd: argument 0: cannot send a nil *server.ownBinary"},
		{[]any{"SET", "k", ownBinaryString("")}, "zsetd: argument 2: empty"},
		{[]any{true, false, ownBool(true), time.March, slog.LevelError}, "1 0 1 3 8"},
		{[]any{ownString("SET"), ownStrings{"a", "b"}, ownBytes("c"), []ownString{"d", "e"}, json.RawMessage("{}"), json.Number("1.0"), ownFloat(0.5)}, "SET a b c d e {} 1.0 0.5"},
	} {
		argv, err := srv.Arguments(c.args)
		got := string(bytes.Join(argv, []byte(" ")))
		if err != nil {
			got = err.Error()
		}
		if got != c.sent {
			t.Errorf("%v: got %q, want %q", c.args, got, c.sent)
		}
	}
	mustDo(t, serverOf(srv), "SET", "k", "v", "PX", time.Hour)
	if ttl := mustDo(t, serverOf(srv), "PTTL", "k"); ttl.(int64) > 3_600_000 || ttl.(int64) < 1_800_000 {
		t.Errorf("a deadline of one hour is %v ms", ttl)
	}
}

// TestDoRefuses checks that Do refuses each command that has no meaning without a
// connection, in any spelling and by its new name, and changes nothing.
func TestDoRefuses(t *testing.T) {
	srv, err := enginetest.New(engine.Options{Config: map[string]string{"rename-command": "SYNC stream"}})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	for _, line := range []string{
		"stream", "PSYNC ? -1", "psync ? -1 FAILOVER", "REPLCONF capa eof", "REPLCONF", "MONITOR", "QUIT", "RESET", "HELLO 2", "AUTH x", "SELECT 1",
		"SUBSCRIBE c", "PSUBSCRIBE *", "SSUBSCRIBE c", "UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE", "MULTI", "EXEC", "DISCARD", "WATCH k", "UNWATCH",
		"READONLY", "READWRITE", "ASKING", "CLIENT REPLY OFF", "client reply on", "CLIENT TRACKING on", "CLIENT CACHING yes", "CLIENT NO-EVICT on", "CLIENT NO-TOUCH on",
		"CLIENT SETNAME n", "CLIENT SETINFO lib-name n", "CLIENT CAPA redirect", "HIMPORT PREPARE f a",
	} {
		if got := enginetest.Say(srv, line); !strings.HasSuffix(got, " needs a connection: use Server.Dialer") {
			t.Errorf("%s: %s", line, got)
		}
	}
	enginetest.Must(t, srv, "CLIENT KILL TYPE normal SKIPME no -> 1", "PING -> PONG")
	srv.InTurn(func() {
		if n := len(srv.Clients.Sessions); n != 0 {
			t.Errorf("%d sessions are left", n)
		}
	})
	if got := enginetest.Say(srv, "SHUTDOWN NOSAVE"); got != engine.ErrServerClosed.Error() {
		t.Errorf("SHUTDOWN: %s", got)
	}
}

// TestConfigSpellings checks that a parameter has its value in any spelling, and that it is
// an error to give it in two.
func TestConfigSpellings(t *testing.T) {
	for _, x := range []struct {
		given map[string]string
		want  string // of CONFIG GET of the first parameter's name, or the error
	}{
		{map[string]string{"MaxMemory": "1mb"}, "maxmemory 1048576"},
		{map[string]string{"hash-max-ziplist-entries": "7"}, "hash-max-ziplist-entries 7"},
		{map[string]string{"SAVE": "60 1"}, "save 60 1"},
		{map[string]string{"USER": "u on nopass"}, ""},
		{map[string]string{"maxmemory": "1mb", "MAXMEMORY": "1mb"}, `zsetd: "MAXMEMORY" and "maxmemory" are the same parameter`},
		{map[string]string{"replica-priority": "1", "slave-priority": "2"}, `zsetd: "replica-priority" and "slave-priority" are the same parameter`},
		{map[string]string{"Hash-max-listpack-entries": "7", "hash-max-ziplist-entries": "8"}, `zsetd: "Hash-max-listpack-entries" and "hash-max-ziplist-entries" are the same parameter`},
		{map[string]string{"user": "a on", "User": "b on"}, `zsetd: "User" and "user" are the same parameter`},
		{map[string]string{"busy-reply-threshold": "1", "lua-time-limit": "1"}, `zsetd: "busy-reply-threshold" and "lua-time-limit" are the same parameter`},
		{map[string]string{"nosuch": "1", "maxmemory": "x"}, `zsetd: unknown parameter "nosuch"`},
		{map[string]string{"maxmemory": "x"}, "zsetd: parameter maxmemory: argument must be a memory value"},
	} {
		srv, err := enginetest.New(engine.Options{Config: x.given, File: filepath.Join(t.TempDir(), "data.db")})
		if err != nil {
			if err.Error() != x.want {
				t.Errorf("%v: %v, want %s", x.given, err, x.want)
			}
			if err := CheckConfig(Options{Config: x.given}); err == nil || err.Error() != x.want {
				t.Errorf("CheckConfig of %v: %v, want %s", x.given, err, x.want)
			}
			continue
		}
		for name := range x.given {
			if m, _ := mustDo(t, serverOf(srv), "CONFIG", "GET", name).(protocol.Map); len(m) == 1 && strings.ToLower(fmt.Sprint(m[0].Key, " ", m[0].Value)) != x.want {
				t.Errorf("%v: %v, want %s", x.given, m, x.want)
			}
		}
		srv.Close()
	}
}

// TestDoWithoutCommand checks calls that are no command, and one whose context has ended.
func TestDoWithoutCommand(t *testing.T) {
	srv, err := enginetest.New(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	if got, err := srv.Do(t.Context()); got != nil || err == nil || err.Error() != "zsetd: no command" {
		t.Errorf("without arguments: %v, %v", got, err)
	}
	if got, err := srv.Do(t.Context(), "SET", "k", struct{}{}); got != nil || err == nil || !strings.Contains(err.Error(), "struct {}") {
		t.Errorf("an argument of no type that can be sent: %v, %v", got, err)
	}
	enginetest.Must(t, srv, "EXISTS k -> 0")
}

// TestClockBounds checks the years that Advance may reach.
func TestClockBounds(t *testing.T) {
	srv, err := enginetest.New(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	before := srv.Clock()
	for _, years := range []time.Duration{-100, 250} {
		if err := srv.Advance(years * 365 * 24 * time.Hour); err == nil || !strings.Contains(err.Error(), ", only in 1970 to 2261") {
			t.Errorf("%d years: %v", years, err)
		}
	}
	if moved := srv.Clock().Sub(before); moved < 0 || moved > 24*time.Hour {
		t.Errorf("the clock has moved by %v", moved)
	}
	if err := srv.Advance(200 * 365 * 24 * time.Hour); err != nil || srv.Clock().Year() < before.Year()+199 {
		t.Errorf("200 years: %v, %v", err, srv.Clock())
	}
}

// TestUnfitParameters checks parameters that New, or CONFIG SET, refuses together with others.
func TestUnfitParameters(t *testing.T) {
	if srv, err := enginetest.New(engine.Options{Config: map[string]string{"forward-to": "x://y"}}); err == nil || !strings.HasPrefix(err.Error(), "zsetd: parameter forward-to: ") {
		t.Errorf("forward-to: %v", err)
		srv.Close()
	}
	const many = "4294967295"
	fit := process.MaxDescriptors() - 32
	if fit >= math.MaxUint32 {
		t.Skip("there is no limit of open files")
	}
	srv, err := enginetest.New(engine.Options{Config: map[string]string{"maxclients": many}})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	want := fmt.Sprintf("ERR CONFIG SET failed (possibly related to argument 'maxclients') - "+
		"The operating system is not able to handle the specified number of clients, try with %d", fit)
	enginetest.Must(t, srv, "CONFIG SET timeout 5 -> OK", "CONFIG SET maxclients 10 -> OK", "CONFIG SET maxclients "+many+" -> "+want,
		fmt.Sprintf("CONFIG SET maxclients %d -> OK", fit), fmt.Sprintf("CONFIG SET maxclients %d -> %s", fit+1, want))

	var log enginetest.LogBuffer
	listening, err := enginetest.New(engine.Options{Config: map[string]string{"maxclients": many}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer listening.Close()
	if c, err := listening.ListenConfig(); err != nil || c.Maxclients != fit {
		t.Errorf("listening: maxclients %d, %v", c.Maxclients, err)
	}
	enginetest.Must(t, listening, fmt.Sprintf("CONFIG GET maxclients -> [{maxclients %d}]", fit))
	limited := fmt.Sprintf(`msg="maxclients is lowered to the limit of open files (ulimit -n)" maxclients=%d wanted=%s limit=%d needed=4294967327`, fit, many, fit+32)
	if !strings.Contains(log.String(), limited) {
		t.Errorf("want %s in %s", limited, log.String())
	}
}
