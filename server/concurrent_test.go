package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/servertest/rerun"
)

// methodCalls calls each exported method of a Server once. They return at once, or when ctx
// ends or the server is closed.
func methodCalls(dir string) map[string]func(ctx context.Context, srv *Server) {
	var files atomic.Int64
	serve := func(serve func(*Server, net.Listener) error) func(context.Context, *Server) {
		return func(ctx context.Context, srv *Server) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return
			}
			context.AfterFunc(ctx, func() { l.Close() })
			if nc, err := net.Dial("tcp", l.Addr().String()); err == nil {
				fmt.Fprint(nc, "PING\r\n")
				context.AfterFunc(ctx, func() { nc.Close() })
			}
			serve(srv, l)
		}
	}
	subscribe := func(ctx context.Context, sub *Subscription, err error) {
		if err == nil {
			context.AfterFunc(ctx, func() { sub.Close() })
			for range sub.Messages() {
				break
			}
			sub.Close()
		}
	}
	return map[string]func(context.Context, *Server){
		"Advance": func(_ context.Context, srv *Server) { srv.Advance(time.Second) },
		"Backup":  func(ctx context.Context, srv *Server) { srv.Backup(ctx, io.Discard) },
		"Blocked": func(_ context.Context, srv *Server) { srv.Blocked() },
		"BackupFile": func(ctx context.Context, srv *Server) {
			path := filepath.Join(dir, fmt.Sprint(files.Add(1)))
			srv.BackupFile(ctx, path)
			os.Remove(path)
		},
		"Check":          func(_ context.Context, srv *Server) { srv.Check() },
		"Close":          func(_ context.Context, srv *Server) { srv.Close() },
		"Compact":        func(_ context.Context, srv *Server) { srv.Compact() },
		"CommandName":    func(_ context.Context, srv *Server) { srv.CommandName("get") },
		"Dialer":         func(ctx context.Context, srv *Server) { converse(ctx, srv, "PING") },
		"Do":             func(ctx context.Context, srv *Server) { srv.Do(ctx, "PING") },
		"DoMany":         func(ctx context.Context, srv *Server) { srv.DoMany(ctx, []any{"PING"}, []any{"PING"}) },
		"IsReplica":      func(_ context.Context, srv *Server) { srv.IsReplica() },
		"ListenAndServe": func(_ context.Context, srv *Server) { srv.ListenAndServe() }, // port 0: it fails, and closes nothing
		"Listening":      func(ctx context.Context, srv *Server) { srv.Listening(ctx) },
		"MemoryLimit":    func(_ context.Context, srv *Server) { srv.MemoryLimit() },
		"Now":            func(_ context.Context, srv *Server) { srv.Now() },
		"Observe": func(ctx context.Context, srv *Server) {
			if o, err := srv.Observe(ctx, "GET", "k"); err == nil {
				for range o.Replies() {
					break
				}
			}
		},
		"PSubscribe": func(ctx context.Context, srv *Server) { s, err := srv.PSubscribe(ctx, "*"); subscribe(ctx, s, err) },
		"Ready":      func(ctx context.Context, srv *Server) { srv.Ready(ctx) },
		"Save":       func(ctx context.Context, srv *Server) { srv.Save(ctx) },
		"Serve":      serve((*Server).Serve),
		"ServeTLS":   serve((*Server).ServeTLS),
		"Shutdown":   func(ctx context.Context, srv *Server) { srv.Shutdown(ctx) },
		"Signaled":   func(_ context.Context, srv *Server) { srv.Signaled(true) },
		"Simulation": func(_ context.Context, srv *Server) {
			srv.Simulation().StopClock(false)
			srv.Simulation().Release(ErrHang)
			srv.Simulation().Intercept(func([][]byte) error { return nil })
		},
		"Stats":     func(_ context.Context, srv *Server) { srv.Stats() },
		"Subscribe": func(ctx context.Context, srv *Server) { s, err := srv.Subscribe(ctx, "c"); subscribe(ctx, s, err) },
		"TLSConfig": func(_ context.Context, srv *Server) { srv.TLSConfig() },
		"Tx": func(ctx context.Context, srv *Server) {
			srv.Tx(ctx, func(tx *Tx) error { _, err := tx.Do("PING"); return err })
		},
		"UsedMemory": func(_ context.Context, srv *Server) { srv.UsedMemory() },
		"Keys": func(ctx context.Context, srv *Server) {
			for range srv.Keys(ctx, 0, "*") {
			}
		},
	}
}

// converse sends lines, and QUIT, over a connection of Dialer, and reads until the end.
func converse(ctx context.Context, srv *Server, lines ...string) {
	nc, err := srv.Dialer()(ctx, "", "")
	if err != nil {
		return
	}
	defer nc.Close()
	defer context.AfterFunc(ctx, func() { nc.Close() })()
	go io.WriteString(nc, strings.Join(lines, "\r\n")+"\r\nRESET\r\nQUIT\r\n")
	io.Copy(io.Discard, nc)
}

// connectionCommands are lines for the commands on connections and the configuration, which
// reach state of other sessions.
var connectionCommands = strings.Split(`HELLO 3 AUTH default x SETNAME n
CLIENT LIST
CLIENT LIST TYPE pubsub
CLIENT INFO
CLIENT ID
CLIENT GETNAME
CLIENT SETNAME n
CLIENT SETINFO lib-name n
CLIENT KILL TYPE pubsub SKIPME yes
CLIENT KILL ID 1
CLIENT KILL MAXAGE 1000
CLIENT KILL USER nobody
CLIENT NO-EVICT on
CLIENT NO-TOUCH on
CLIENT PAUSE 1 WRITE
CLIENT UNPAUSE
CLIENT REPLY SKIP
CLIENT REPLY OFF
CLIENT TRACKING on
CLIENT TRACKING on BCAST NOLOOP
CLIENT TRACKINGINFO
CLIENT CACHING yes
CLIENT GETREDIR
CLIENT UNBLOCK 1
CLIENT CAPA redirect
CLIENT HELP
CONFIG GET *
CONFIG RESETSTAT
CONFIG REWRITE
CONFIG SET maxmemory-clients 100mb
CONFIG SET maxmemory-clients 0
CONFIG SET maxmemory-clients 5%
CONFIG SET maxmemory 1gb
CONFIG SET maxmemory 0
CONFIG SET maxclients 9999
CONFIG SET maxclients 10000
CONFIG SET requirepass ""
CONFIG SET client-output-buffer-limit "normal 1gb 512mb 60 pubsub 32mb 8mb 60"
CONFIG SET client-query-buffer-limit 1gb
CONFIG SET notify-keyspace-events KEA
CONFIG SET notify-keyspace-events ""
CONFIG SET slowlog-log-slower-than 0
CONFIG SET latency-monitor-threshold 1
CONFIG SET protected-mode no
CONFIG SET protected-mode yes
CONFIG SET loglevel debug
CONFIG SET loglevel notice
CONFIG SET tcp-keepalive 100
CONFIG SET timeout 1000
CONFIG SET timeout 0
CONFIG SET bind 127.0.0.1
CONFIG SET port 0
CONFIG SET tls-cluster yes
CONFIG SET save "3600 1"
CONFIG SET save ""
CONFIG SET appendfsync always
CONFIG SET appendfsync everysec
CONFIG SET cluster-announce-ip 127.0.0.1
CONFIG SET latency-tracking no
CONFIG SET latency-tracking-info-percentiles "50 99"
CONFIG SET commandlog-request-larger-than 1
CONFIG SET tracking-table-max-keys 10
CONFIG SET query-max 1000
CONFIG SET query-cpu 50
ACL LIST
ACL USERS
ACL WHOAMI
ACL CAT
ACL GENPASS
ACL LOG
ACL LOG RESET
ACL SETUSER u on nopass ~* +@all
ACL GETUSER u
ACL DRYRUN u get k
ACL DELUSER u
ACL LOAD
ACL SAVE
AUTH u x
INFO everything
MONITOR
SUBSCRIBE c
PSUBSCRIBE *
SSUBSCRIBE c
UNSUBSCRIBE
PUBLISH c m
SPUBLISH c m
PUBSUB CHANNELS
PUBSUB NUMSUB c
PUBSUB NUMPAT
PUBSUB SHARDCHANNELS
REPLICAOF NO ONE
ROLE
WAIT 0 1
WAITAOF 0 0 1
SLOWLOG GET
SLOWLOG RESET
COMMANDLOG GET 10 large-request
LATENCY LATEST
LATENCY HISTOGRAM
LATENCY DOCTOR
LATENCY RESET
MEMORY STATS
MEMORY DOCTOR
MEMORY USAGE k
MEMORY PURGE
MEMORY MALLOC-STATS
DEBUG JMAP
DEBUG SLEEP 0
DEBUG OBJECT k
DEBUG SET-ACTIVE-EXPIRE 1
DEBUG CLIENT-ENFORCE-REPLY-LIST 1
DEBUG RELOAD
DEBUG DIGEST
SELECT 1
SWAPDB 0 1
FLUSHALL
FLUSHDB ASYNC
SET k v PX 1
GET k
INCR n
BLPOP l 0.001
RPUSH l v
XADD s * f v
XREAD BLOCK 1 STREAMS s $
WATCH k
MULTI
EVAL "return redis.call('client','list')" 0
EVAL "redis.call('publish','c','m') return redis.call('config','get','*')" 0
SCRIPT FLUSH
SCRIPT KILL
FUNCTION FLUSH
FUNCTION STATS
HOTKEYS GET
COMMAND INFO get
COMMAND COUNT
BGSAVE
SAVE
LASTSAVE
BGREWRITEAOF
DBSIZE
TIME
SHUTDOWN ABORT
READONLY
READWRITE
ASKING
OBJECT FREQ k
NOSUCH`, "\n")

// TestConcurrentUse runs each method of a server, and each command on connections and the
// configuration, beside each other one. Under the race detector it finds state that they
// share without a lock.
func TestConcurrentUse(t *testing.T) {
	dir := t.TempDir()
	calls := methodCalls(dir)
	ofTests := strings.Fields("BlockedClients Changes Commands Digest Direct Follow HoldFiles LimitScripts PassDeadline Progress SkipChecksums TakeEffects Untouched")
	for m := range reflect.TypeFor[*Server]().Methods() {
		if calls[m.Name] == nil && !slices.Contains(ofTests, m.Name) {
			t.Errorf("methodCalls lacks %s", m.Name)
		}
	}
	open := func(file string) *Server {
		srv, err := New(Options{File: file, Config: map[string]string{
			"port": "0", "save": "", "enable-debug-command": "yes", "latency-monitor-threshold": "1"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { srv.Close() })
		return srv
	}
	srv := open(filepath.Join(dir, "data.db"))
	ends := map[string]func(context.Context, *Server){"Close": calls["Close"], "Shutdown": calls["Shutdown"]}
	maps.DeleteFunc(calls, func(name string, _ func(context.Context, *Server)) bool { return ends[name] != nil })
	for _, line := range connectionCommands {
		var args []any
		words, _ := protocol.SplitArgs(nil, []byte(line))
		for _, word := range words {
			args = append(args, word)
		}
		var n atomic.Int64
		calls[line] = func(ctx context.Context, srv *Server) {
			if n.Add(1)%2 == 0 {
				converse(ctx, srv, line)
			} else {
				srv.Do(ctx, args...)
			}
		}
	}
	reply, err := srv.Do(t.Context(), "CONFIG", "GET", "*")
	if err != nil {
		t.Fatal(err)
	}
	var next atomic.Int64
	parameters := reply.(protocol.Map)
	calls["CONFIG SET of each parameter"] = func(ctx context.Context, srv *Server) {
		e := parameters[int(next.Add(1))%len(parameters)]
		srv.Do(ctx, "CONFIG", "SET", fmt.Sprint(e.Key), fmt.Sprint(e.Value))
	}
	names := slices.Sorted(maps.Keys(calls))
	for i, one := range names {
		if !rerun.Race && i%16 != 0 { // a few, to see that they end
			continue
		}
		ctx, cancel := context.WithCancel(t.Context())
		var beside sync.WaitGroup
		beside.Go(func() {
			for ctx.Err() == nil {
				calls[one](ctx, srv)
			}
		})
		for _, other := range names {
			limited, end := context.WithTimeout(ctx, time.Millisecond)
			calls[other](limited, srv)
			end()
		}
		cancel()
		beside.Wait()
	}
	if err := srv.Check(); err != nil {
		t.Error(err)
	}
	for end, stop := range ends {
		for i, other := range names {
			if !rerun.Race && i%16 != 0 {
				continue
			}
			srv := open("")
			var beside sync.WaitGroup
			for range 2 {
				beside.Go(func() { calls[other](t.Context(), srv) })
			}
			beside.Go(func() { stop(t.Context(), srv) })
			stop(t.Context(), srv)
			beside.Wait()
			if _, err := srv.Do(t.Context(), "PING"); !errors.Is(err, ErrServerClosed) {
				t.Errorf("Do after %s beside %s: %v", end, other, err)
			}
		}
	}
}
