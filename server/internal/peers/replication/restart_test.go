package replication_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/servertest"
	"github.com/zsetd/zsetd/server/servertest/wait"

	"github.com/zsetd/zsetd/server/servertest/judge"
)

// restart replaces the primary by one that has a file, which the replica then follows.
func (p *pair) restart(file string, config map[string]string) {
	p.t.Helper()
	c := map[string]string{"repl-diskless-sync-delay": "0", "repl-ping-replica-period": noPings, "enable-debug-command": "yes"}
	for name, value := range config {
		c[name] = value
	}
	p.srv = servertest.Run(p.t, server.Options{Config: c, File: file})
	if err := p.srv.Ready(context.Background()); err != nil {
		p.t.Fatal(err)
	}
	dial := func() net.Conn {
		nc, err := net.Dial("tcp", p.srv.Addr())
		if err != nil {
			p.t.Fatal(err)
		}
		p.t.Cleanup(func() { nc.Close() })
		return nc
	}
	p.primary = judge.NewPeer(dial(), dial())
	host, port, _ := net.SplitHostPort(p.srv.Addr())
	if r := p.replica.Do("REPLICAOF", host, port); r != "+OK\r\n" {
		p.t.Fatal(r)
	}
	p.linked()
}

// TestReplicaAfterRestart checks after which restarts of the primary a replica continues,
// and that it has the same data in any case.
func TestReplicaAfterRestart(t *testing.T) {
	stop := func(p *pair, file string) string {
		if err := p.srv.Shutdown(context.Background()); err != nil {
			p.t.Fatal(err)
		}
		return file
	}
	// crash returns a copy of the file as of now, as a crash would leave it.
	crash := func(p *pair, file string) string {
		b, err := os.ReadFile(file)
		if err != nil {
			p.t.Fatal(err)
		}
		file = filepath.Join(p.t.TempDir(), "crash.db")
		if err := os.WriteFile(file, b, 0o600); err != nil {
			p.t.Fatal(err)
		}
		return file
	}
	tests := map[string]func(*testing.T){}
	for _, test := range []struct {
		name   string
		save   string   // the parameter save; "none" for no rules
		before []string // after the replica has come
		end    func(p *pair, file string) string
		second map[string]string // parameters after the restart
		full   bool
	}{
		{name: "clean", before: []string{"SET a 1", "ZADD z 1 m"}, end: stop},
		{name: "clean, nothing written", end: stop},
		{name: "clean, saved at the end", save: "3600 1000", before: []string{"SET a 1"}, end: stop},
		{name: "clean, under load", end: func(p *pair, file string) string {
			var writers sync.WaitGroup
			for range 4 {
				nc, err := net.Dial("tcp", p.srv.Addr())
				if err != nil {
					p.t.Fatal(err)
				}
				writers.Go(func() { // until the server closes the connection
					defer nc.Close()
					go io.Copy(io.Discard, nc)
					for n := 0; err == nil; n++ {
						_, err = fmt.Fprintf(nc, "INCR counter\r\nRPUSH list %d\r\n", n)
					}
				})
			}
			wait.Until(p.t, "the writers write", func() bool { return len(p.primary.Do("LLEN", "list")) > len(":1000\r\n") })
			defer writers.Wait()
			return stop(p, file)
		}},
		{name: "clean, not saved", save: "none", before: []string{"SET a 1", "SAVE", "SET a 2"}, end: stop, full: true},
		{name: "crash after a save", save: "none", before: []string{"SET a 1"}, end: func(p *pair, file string) string {
			p.run("SAVE")
			return crash(p, file)
		}},
		{name: "crash after a change", save: "none", before: []string{"SET a 1", "SAVE", "SET a 2"}, end: crash, full: true},
		{name: "another stream", before: []string{"SET a 1", "DEBUG CHANGE-REPL-ID"}, end: stop, full: true},
		{name: "other data", before: []string{"SET a 1"}, end: func(p *pair, file string) string {
			stop(p, file)
			srv := servertest.Run(p.t, server.Options{File: file, Config: map[string]string{"repl-backlog-ttl": "1"}})
			if err := srv.Ready(context.Background()); err != nil {
				p.t.Fatal(err)
			}
			srv.Must("SET", "a", "2")
			if err := srv.Shutdown(context.Background()); err != nil {
				p.t.Fatal(err)
			}
			return file
		}, full: true},
		{name: "expired keys", before: []string{"DEBUG SET-ACTIVE-EXPIRE 0", "SET a 1 PX 60", "SET b 1 PX 60", "SET c 1", "ZADD z 1 m 2 n", "ZPEXPIRE z 60 MEMBERS 1 m"}, end: func(p *pair, file string) string {
			file = stop(p, file)
			after := time.Now().Add(60 * time.Millisecond)
			wait.Until(p.t, "the keys are expired", func() bool { return time.Now().After(after) })
			return file
		}},
		{name: "very many expired keys", before: func() (lines []string) {
			lines = append(lines, "DEBUG SET-ACTIVE-EXPIRE 0")
			for i := range 2000 {
				lines = append(lines, fmt.Sprintf("SET key:%d 1 PX 1", i))
			}
			return append(lines, "SET c 1")
		}(), end: stop, second: map[string]string{"repl-backlog-size": "16384"}, full: true},
	} {
		tests[test.name] = func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "data.db")
			config := map[string]string{}
			if test.save != "" {
				config["save"] = strings.TrimPrefix(test.save, "none")
			}
			p := primaryOf(t, config, file)
			p.run("SET first 1", "RPUSH list a b c")
			p.follow("--repl-ping-replica-period", noPings)
			p.run(test.before...)
			p.caughtUp()
			id := p.primary.Info("master_replid")
			file = test.end(p, file)
			p.restart(file, test.second)
			p.equal()
			if got, want := p.primary.Info("sync_partial_ok"), map[bool]string{false: "1", true: "0"}[test.full]; got != want {
				t.Errorf("sync_partial_ok is %s, want %s", got, want)
			}
			if got := p.primary.Info("master_replid"); got == id {
				t.Error("the ID of the stream is the same")
			}
			if got := p.primary.Info("master_replid2"); !test.full && got != id {
				t.Errorf("master_replid2 is %s, want %s", got, id)
			}
			p.run("SET last 1")
			p.equal()
		}
	}
	atOnce(t, tests)
}
