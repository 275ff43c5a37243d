package engine_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/persist"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/servertest/wait"

	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

// panicking gives a command another handler.
func panicking(srv *enginetest.Server, name string, run func(before func(*engine.Call), c *engine.Call)) {
	cmd, _ := srv.Table.Find([][]byte{[]byte(name)})
	before := cmd.Run
	cmd.Run = func(c *engine.Call) { run(before, c) }
}

// TestPanic checks that a panic anywhere stops the server: the client of the command gets
// an error, the others are disconnected, every exported method returns an error, no
// goroutine is left, and the file has the saved data.
func TestPanic(t *testing.T) {
	always := func(before func(*engine.Call), c *engine.Call) { panic("BUG: a test") }
	for _, test := range []struct {
		name    string
		prepare func(*enginetest.Server)
		send    string   // by the client
		replies []string // to the client, before it is disconnected
		act     func(*enginetest.Server)
		saves   bool   // its panic comes after a checkpoint
		orElse  string // another possible reply
		logged  []string
		absent  string
	}{
		{
			name: "command", send: "SET k 1\r\nDEBUG PANIC\r\nSET k 2\r\n", replies: []string{"+OK", "-" + engine.ErrInternal},
			logged: []string{`command="DEBUG \"PANIC\""`, "BUG: DEBUG PANIC", "debugPanic", "client=127.0.0.1:"},
		},
		{
			name: "runtime", send: "DEBUG SEGFAULT\r\n", replies: []string{"-" + engine.ErrInternal},
			logged: []string{`command="DEBUG \"SEGFAULT\""`, "nil pointer", "debugSegfault"},
		},
		{
			name: "transaction", send: "MULTI\r\nSET k 1\r\nDEBUG PANIC\r\nEXEC\r\n",
			replies: []string{"+OK", "+QUEUED", "+QUEUED", "-" + engine.ErrInternal}, logged: []string{`command="DEBUG \"PANIC\""`},
		},
		{
			name: "script", send: "DEBUG SET-DISABLE-DENY-SCRIPTS 1\r\nEVAL \"redis.call('set', 'k', '1'); redis.pcall('debug', 'panic')\" 0\r\nPING\r\n",
			replies: []string{"+OK", "-" + engine.ErrInternal}, logged: []string{"command=\"EVAL", `which has called: DEBUG \"panic\"`},
		},
		{
			name: "a series", prepare: func(srv *enginetest.Server) { panicking(srv, "incr", always) },
			send:    "SET k 1\r\nSET k 2\r\nINCR k\r\nGET k\r\n",
			replies: []string{"+OK", "+OK", "-" + engine.ErrInternal}, logged: []string{`command="INCR \"k\""`},
		},
		{
			name: "secret", prepare: func(srv *enginetest.Server) { panicking(srv, "auth", always) },
			send: "AUTH somebody hunter2\r\n", replies: []string{"-" + engine.ErrInternal},
			logged: []string{`command="AUTH (redacted)"`}, absent: "hunter2",
		},
		{
			name: "waiter", prepare: func(srv *enginetest.Server) {
				panicking(srv, "blpop", func(before func(*engine.Call), c *engine.Call) {
					if c.Again {
						c.Reply.Array(7) // half a reply
						panic("BUG: a test")
					}
					before(c)
				})
			},
			// The connections close while the goroutine of the waiter may still reply.
			send: "PING\r\nBLPOP list 0\r\n", replies: []string{"+PONG", "-" + engine.ErrInternal}, orElse: "+PONG\r\n",
			act: func(srv *enginetest.Server) {
				wait.Holds(func() bool { return srv.Blocked() >= 3 })
				srv.Do(context.Background(), "LPUSH", "list", "x")
			},
			logged: []string{`command="BLPOP \"list\" \"0\""`},
		},
		{
			name: "timer", prepare: func(srv *enginetest.Server) {
				panicking(srv, "ping", func(_ func(*engine.Call), c *engine.Call) {
					c.Wait(c.Now()+20, keyspace.KindList, func(*protocol.Reply) { panic("BUG: a test") }, []byte("other"))
				})
			},
			send: "PING\r\n", logged: []string{`command=""`, "BUG: a test", "endWait"},
		},
		{
			name: "keeper", act: func(srv *enginetest.Server) {
				srv.InTurn(func() {
					srv.Keeper.Results = append(srv.Keeper.Results, persist.Result{})
					srv.Keeper.SaveRequested = true
					srv.Keeper.Wake()
				})
			},
			saves: true, logged: []string{"keeper).account"},
		},
		{
			name: "a goroutine without the lock", act: func(srv *enginetest.Server) {
				srv.Attempt(func() { panic("BUG: a test") })
			},
			logged: []string{"BUG: a test"},
		},
		{
			name: "another while a script is busy", prepare: func(srv *enginetest.Server) { srv.Config.BusyReplyThreshold = 1 },
			// The connections close while the goroutine of the script may still reply.
			send: "EVAL \"while true do end\" 0\r\n", orElse: "-" + engine.ErrInternal + "\r\n",
			act: func(srv *enginetest.Server) {
				c1, _ := srv.Dialer()(context.Background(), "", "")
				defer c1.Close()
				r := bufio.NewReader(c1)
				for {
					fmt.Fprint(c1, "PING\r\n")
					if line, err := r.ReadString('\n'); err != nil || strings.HasPrefix(line, "-BUSY") {
						break
					}
				}
				cmd, _ := srv.Table.Find([][]byte{[]byte("SCRIPT"), []byte("KILL")})
				srv.Mu.Lock()
				cmd.Run = func(*engine.Call) { panic("BUG: a test") }
				srv.Mu.Unlock()
				fmt.Fprint(c1, "SCRIPT KILL\r\n")
				io.Copy(io.Discard, c1)
			},
			logged: []string{`command="SCRIPT KILL"`},
		},
		{
			name: "the last save", prepare: func(srv *enginetest.Server) { srv.Ending.Flags.Save = true },
			act: func(srv *enginetest.Server) {
				srv.InTurn(func() { srv.Keeper.Results = append(srv.Keeper.Results, persist.Result{}) })
				srv.Shutdown(context.Background())
			},
			logged: []string{"saveNow"},
		},
	} {
		for _, transport := range []string{"epoll", "net"} {
			t.Run(test.name+"/"+transport, func(t *testing.T) {
				before := runtime.NumGoroutine()
				var log enginetest.LogBuffer
				file := filepath.Join(t.TempDir(), "data.db")
				config := map[string]string{"save": "", "enable-debug-command": "yes", "transport": transport}
				srv, err := enginetest.New(engine.Options{File: file, Config: config, Logger: slog.New(slog.NewTextHandler(&log, nil))})
				if err != nil {
					t.Fatal(err)
				}
				if test.prepare != nil {
					test.prepare(srv)
				}
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				served := make(chan error, 1)
				go func() { served <- srv.Serve(l) }()
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				for _, args := range [][]any{{"SET", "saved", "1"}, {"SAVE"}, {"SET", "lost", "1"}} {
					if _, err := srv.Do(ctx, args...); err != nil {
						t.Fatal(err)
					}
				}
				waiting := make(chan error, 1)
				go func() {
					_, err := srv.Do(ctx, "BRPOP", "nothing", 0)
					waiting <- err
				}()
				wait.Until(t, "BRPOP waits", func() bool { return srv.Blocked() > 0 })
				dial := func() net.Conn {
					nc, err := net.Dial("tcp", l.Addr().String())
					if err != nil {
						t.Fatal(err)
					}
					nc.SetDeadline(time.Now().Add(time.Minute))
					return nc
				}
				other := dial()
				defer other.Close()
				fmt.Fprint(other, "ECHO me\r\nBLPOP nothing 0\r\n")
				mine := dial()
				defer mine.Close()
				fmt.Fprint(mine, test.send)
				if test.act != nil {
					test.act(srv)
				}
				got, _ := io.ReadAll(mine)
				want := ""
				for _, r := range test.replies {
					want += r + "\r\n"
				}
				if string(got) != want && (test.orElse == "" || string(got) != test.orElse) {
					t.Errorf("the client has got %q, want %q or %q", got, want, test.orElse)
				}
				if got, _ := io.ReadAll(other); string(got) != "" && string(got) != "$2\r\nme\r\n" && !strings.HasPrefix(string(got), "-BUSY") {
					t.Errorf("another has got %q", got)
				}
				for what, err := range map[string]error{
					"Serve":    <-served,
					"a waiter": <-waiting,
					"Do":       func() error { _, err := srv.Do(ctx, "PING"); return err }(),
					"Ready":    srv.Ready(ctx),
					"Check":    srv.Check(),
					"Dialer":   func() error { _, err := srv.Dialer()(ctx, "", ""); return err }(),
					"Shutdown": srv.Shutdown(ctx),
					"Close":    srv.Close(),
				} {
					if _, ok := errors.AsType[*engine.PanicError](err); !ok && (what != "Serve" && what != "a waiter" || test.name != "the last save") {
						t.Errorf("%s: %v", what, err)
					}
				}
				srv.Advance(time.Hour)
				srv.Signaled(true)
				for _, words := range test.logged {
					if !strings.Contains(strings.ToLower(log.String()), strings.ToLower(words)) {
						t.Errorf("the log lacks %q:\n%s", words, log.String())
					}
				}
				if test.absent != "" && strings.Contains(log.String(), test.absent) {
					t.Errorf("the log has %q:\n%s", test.absent, log.String())
				}
				mine.Close()
				other.Close()
				if !wait.Holds(func() bool { return runtime.NumGoroutine() <= before }) {
					buf := make([]byte, 1<<20)
					t.Errorf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
				}

				srv, err = enginetest.New(engine.Options{File: file})
				if err != nil {
					t.Fatal(err)
				}
				defer srv.Close()
				for _, key := range []string{"saved", "lost"} {
					if n, err := srv.Do(ctx, "EXISTS", key); err != nil || (n == int64(1)) != (key == "saved" || test.saves) {
						t.Errorf("afterwards there are %v of key %q (%v)", n, key, err)
					}
				}
			})
		}
	}
}

// TestPanicWhileHeld checks that with appendfsync always no client receives a reply to
// unsaved changes when the server panics.
func TestPanicWhileHeld(t *testing.T) {
	for _, transport := range []string{"epoll", "net"} {
		file := filepath.Join(t.TempDir(), "data.db")
		srv, err := enginetest.New(engine.Options{File: file, Config: map[string]string{
			"enable-debug-command": "yes", "transport": transport, "appendonly": "yes", "appendfsync": "always",
		}})
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go srv.Serve(l)
		nc, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		nc.SetDeadline(time.Now().Add(time.Minute))
		r := bufio.NewReader(nc)
		fmt.Fprint(nc, "SET a 1\r\n")
		if line, err := r.ReadString('\n'); line != "+OK\r\n" {
			t.Fatal(line, err)
		}
		fmt.Fprint(nc, "MULTI\r\nSET b 1\r\nEXEC\r\nSET c 1\r\nDEBUG PANIC\r\n")
		rest, _ := io.ReadAll(r)
		if strings.Contains(string(rest), "+OK\r\n-") || bytes.Count(rest, []byte("\n")) > 6 {
			t.Errorf("%s: the client got %q", transport, rest)
		}
		srv.Close()
		if srv, err = enginetest.New(engine.Options{File: file}); err != nil {
			t.Fatal(err)
		}
		for key, told := range map[string]bool{"a": true, "b": strings.Contains(string(rest), "*1"), "c": strings.Count(string(rest), "+OK") > 2} {
			if n, err := srv.Do(context.Background(), "EXISTS", key); err != nil || told && n != int64(1) {
				t.Errorf("%s: %s was acknowledged, and is gone (%v)", transport, key, err)
			}
		}
		srv.Close()
	}
}
