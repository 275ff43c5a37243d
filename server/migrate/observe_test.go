package migrate

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/servertest"
)

// TestObserve checks how a dry run watches the commands of a source: it logs in, and ends with the
// error of a source that refuses, or when it is stopped.
func TestObserve(t *testing.T) {
	srv := servertest.Run(t, server.Options{Config: map[string]string{"user": "default off\nwatcher on >p ~* +@all\nother on >q ~* +@all -monitor"}})
	g := gateTo(t, srv.Addr())
	observe := func(ctx context.Context, url string, d time.Duration) (*Report, error) {
		e := endpoint(t, url)
		r := &Report{}
		return r, r.observe(ctx, &source{Endpoint: e, addr: g.addr}, d)
	}
	if _, err := observe(t.Context(), "redis://watcher:p@"+g.addr, 50*time.Millisecond); err != nil {
		t.Error(err)
	}
	for url, want := range map[string]string{"other:q@": "NOPERM", "watcher:x@": "WRONGPASS", "": "NOAUTH"} {
		if _, err := observe(t.Context(), "redis://"+url+g.addr, time.Hour); err == nil || !strings.Contains(err.Error(), g.addr+": MONITOR: -"+want) {
			t.Errorf("%s: %v, want %s", url, err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	g.set(func(args []string) []string {
		if args[0] == "MONITOR" {
			cancel()
		}
		return args
	})
	if _, err := observe(ctx, "redis://watcher:p@"+g.addr, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("a dry run that is stopped: %v", err)
	}
	g.l.Close()
	if _, err := observe(t.Context(), "redis://watcher:p@"+g.addr, time.Hour); err == nil {
		t.Error("a source that is away is observed")
	}
}

// TestSurveyObserves checks that a dry run of a move from a server to a cluster watches commands, unless
// the move is to be continued.
func TestSurveyObserves(t *testing.T) {
	source := primary(t)
	g := gateTo(t, source.Addr())
	g.set(func(args []string) []string {
		if args[0] == "MONITOR" {
			return failing(refusal)
		}
		return args
	})
	addr, c := startCluster(t)
	o := moveOf(t, g.addr, addr)
	o.To = endpoint(t, "redis://"+addr+"?cluster")
	if _, err := Survey(t.Context(), o, time.Hour); err == nil || !strings.Contains(err.Error(), "MONITOR: -"+refusal) {
		t.Errorf("the dry run ends with %v", err)
	}
	if _, err := Survey(t.Context(), o, 0); err != nil {
		t.Error(err)
	}
	if err := c.HSet(t.Context(), progressKey, fieldFrom, o.From.String()).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := Survey(t.Context(), o, time.Hour); err != nil {
		t.Errorf("the dry run of a move to be continued ends with %v", err)
	}
}

// TestWatcherSkips checks that lines of MONITOR which have no command are skipped, and which
// transactions are watched.
func TestWatcherSkips(t *testing.T) {
	w := watcher{facts: server.Commands(), clients: map[string]*watched{}, found: map[string]*seen{}}
	for _, line := range []string{`1.1 [0 1.2.3.4:5] "get`, `1.1 [0 1.2.3.4:5] `, `1.1 [0] "get" "a"`, `1.1 "get" "a"`, `+OK`} {
		w.line([]byte(line + "\r\n"))
	}
	if w.commands != 0 {
		t.Errorf("%d commands", w.commands)
	}
	for i := range maxWatched + 1 {
		w.line(fmt.Appendf(nil, `1.1 [0 1.2.3.4:%d] "multi"`, i))
	}
	if len(w.clients) != maxWatched || w.commands != maxWatched+1 {
		t.Errorf("%d clients are watched, after %d commands", len(w.clients), w.commands)
	}
	w.line([]byte(`1.1 [0 1.2.3.4:0] "discard"`))
	if len(w.clients) != maxWatched-1 {
		t.Errorf("%d clients are watched", len(w.clients))
	}
}

// TestSurveyDeadlines checks what a dry run says of members and fields with deadlines, by what the
// servers are.
func TestSurveyDeadlines(t *testing.T) {
	g := gateTo(t, servertest.Run(t).Addr())
	for _, test := range []struct {
		from, to            product
		load                bool
		obstacles, warnings string
	}{
		{zsetd86(), zsetd86(), false, "", ""},
		{product{"redis", 7, 4}, product{"redis", 7, 2}, false, "5 hashes of a have fields with deadlines, which redis 7.2 does not support", ""},
		{product{"redis", 7, 4}, product{"redis", 7, 4}, false, "", ""},
		{zsetd86(), product{"redis", 6, 2}, false, "5 keys of a have members or fields with deadlines, for which redis 6.2 has no functions", "redis 6.2 does not support deadlines of fields of hashes: they are left out"},
		{zsetd86(), product{"redis", 7, 4}, true, "", "5 keys of a have members or fields with deadlines: those of members are kept by the function library, which will be loaded"},
		{zsetd86(), product{"redis", 7, 4}, false, "5 keys of a have members or fields with deadlines, and the target lacks the function library: --functions loads it", ""},
		{zsetd86(), product{"redis", 7, 2}, true, "", "5 keys of a have members or fields with deadlines: those of members are kept by the function library, which will be loaded; redis 7.2 does not support deadlines of fields of hashes: they are left out"},
	} {
		m, _ := applierTo(t, clientOf(t, g.addr), test.to, nil)
		m.o.LoadLibrary = test.load
		r := &Report{}
		if err := r.examineDeadlines(t.Context(), m, &source{product: test.from, addr: "a"}, 5); err != nil {
			t.Fatal(err)
		}
		if a, b := strings.Join(r.Obstacles, "; "), strings.Join(r.Warnings, "; "); a != test.obstacles || b != test.warnings {
			t.Errorf("%v to %v: %q, %q", test.from, test.to, a, b)
		}
	}
}

// TestSurveyModules checks that a dry run finds values of modules, if the source has modules.
func TestSurveyModules(t *testing.T) {
	srv := primary(t)
	must(t, clientOf(t, srv.Addr()), "SET", "document", 1)
	must(t, clientOf(t, srv.Addr()), "SET", "text", 1)
	g := gateTo(t, srv.Addr())
	g.set(func(args []string) []string {
		if strings.EqualFold(args[0], "TYPE") && args[1] == "document" {
			return reply("'ReJSON-RL'")
		}
		return args
	})
	m := newMove(&Options{From: endpoint(t, "redis://"+g.addr)})
	s := &source{Endpoint: m.o.From, addr: g.addr, admin: clientOf(t, g.addr), info: map[string]string{"module": "name=ReJSON,ver=1"}}
	r := &Report{}
	want := []string{g.addr + ` has values of the module type ReJSON-RL, such as key "document", which cannot be moved`}
	if err := r.examineModules(t.Context(), m, s); err != nil || !slices.Equal(r.Obstacles, want) {
		t.Errorf("%q, %v", r.Obstacles, err)
	}
	for _, call := range []string{"SCAN", "TYPE"} {
		g.set(func(args []string) []string {
			if strings.EqualFold(args[0], call) {
				return failing(refusal)
			}
			return args
		})
		if err := r.examineSource(t.Context(), m, s); err == nil || !strings.Contains(err.Error(), refusal) {
			t.Errorf("%s is refused: %v", call, err)
		}
	}
	s.info = map[string]string{}
	if err := r.examineModules(t.Context(), m, s); err != nil {
		t.Error(err)
	}
}

// TestSurveyWarns checks what else a dry run says of both sides, and of a file.
func TestSurveyWarns(t *testing.T) {
	source, target := startRedis(t, "--replicaof", "127.0.0.1 1", "--replica-serve-stale-data", "yes"), servertest.Run(t)
	target.Advance(ahead)
	there := clientOf(t, target.Addr())
	o := moveOf(t, source, target.Addr())
	r, err := Survey(t.Context(), o, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{source + " is a replica: its cut-over does not pause its primary", "the clock of " + target.Addr() + " differs from that of " + source + " by 10m"} {
		if !strings.Contains(strings.Join(r.Warnings, "\n"), want) {
			t.Errorf("the warnings are %q; there is no %q", r.Warnings, want)
		}
	}
	o.From = endpoint(t, "redis://"+primary(t).Addr())
	target.Advance(-ahead)
	if r, err = Survey(t.Context(), o, 0); err != nil || strings.Contains(strings.Join(r.Warnings, "\n"), "replica:") {
		t.Errorf("%q, %v", r.Warnings, err)
	}
	for stored, want := range map[string][2]int{"redis://other:1": {1, 0}, o.From.String(): {0, 1}} {
		must(t, there, "HSET", progressKey, fieldFrom, stored)
		if r, err = Survey(t.Context(), o, 0); err != nil {
			t.Fatal(err)
		}
		a := strings.Count(strings.Join(r.Obstacles, "\n"), "the target has the unfinished move from redis://other:1: --replace deletes it")
		b := strings.Count(strings.Join(r.Warnings, "\n"), "the target has an unfinished move from this source, which will be continued")
		if a != want[0] || b != want[1] {
			t.Errorf("with a move from %s: %q, %q", stored, r.Obstacles, r.Warnings)
		}
	}
	must(t, there, "DEL", progressKey)
	must(t, there, "SET", "k", 1)
	o.From = endpoint(t, filepath.Join(t.TempDir(), "dump.rdb"))
	if r, err = Survey(t.Context(), o, 0); err != nil || r.From != o.From.String() || r.To != o.To.String()+" (zsetd 8.6)" || len(r.Obstacles) != 1 {
		t.Errorf("of a file: %+v, %v", r, err)
	}
	o.From, o.To = endpoint(t, "redis://"+target.Addr()), o.From
	if r, err = Survey(t.Context(), o, 0); err != nil || r.From != o.From.String()+" (zsetd 8.6)" || r.Keys != 1 || r.Stop != 0 {
		t.Errorf("to a file: %+v, %v", r, err)
	}
	o.To = o.From
	if _, err := Survey(t.Context(), o, 0); err == nil || err.Error() != "source and target are the same" {
		t.Errorf("of the same server: %v", err)
	}
	if err := Run(t.Context(), o); err == nil || err.Error() != "source and target are the same" {
		t.Errorf("a move to the same server: %v", err)
	}
}
