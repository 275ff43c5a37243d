package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/servertest/wait"
	"github.com/zsetd/zsetd/snapshot"
)

func TestBlocked(t *testing.T) {
	srv := openForTest(t, Options{})
	if got := srv.Blocked(); len(got) != 0 {
		t.Errorf("%v without a client", got)
	}
	nc, err := srv.Dialer()(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	fmt.Fprint(nc, "BLPOP first second first 0\r\n")
	wait.Until(t, "the client waits", func() bool { return srv.Stats().BlockedClients == 1 })
	got := slices.Collect(maps.Values(srv.Blocked()))
	if len(got) != 1 || !slices.Equal(got[0], []string{"first", "second"}) {
		t.Errorf("%q", got)
	}
	mustDo(t, srv, "RPUSH", "second", "x")
	wait.Until(t, "the client does not wait", func() bool { return len(srv.Blocked()) == 0 })
}

// The counters are those of INFO.
func TestStats(t *testing.T) {
	srv := openForTest(t, Options{Config: map[string]string{"maxmemory": "100mb"}})
	before := srv.Stats()
	mustDo(t, srv, "SET", "a", strings.Repeat("x", 1000))
	mustDo(t, srv, "SET", "b", 1, "PX", time.Minute)
	mustDo(t, srv, "SET", "c", 1)
	mustDo(t, srv, "MOVE", "c", 3)
	mustDo(t, srv, "GET", "a")
	mustDo(t, srv, "GET", "none")
	if _, err := srv.Do(t.Context(), "INCR", "a"); err == nil {
		t.Fatal("INCR of a text succeeds")
	}
	sub, err := srv.PSubscribe(t.Context(), "x*")
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	got := srv.Stats()
	if got.UsedMemory < before.UsedMemory+1000 || got.PeakMemory < got.UsedMemory || got.MaxMemory != 100<<20 {
		t.Errorf("memory %d (before: %d), peak %d, maximum %d", got.UsedMemory, before.UsedMemory, got.PeakMemory, got.MaxMemory)
	}
	if want := []DatabaseStats{{0, 2, 1}, {3, 1, 0}}; !slices.Equal(got.Databases, want) {
		t.Errorf("databases %v, want %v", got.Databases, want)
	}
	if got.Commands != 7 || got.Errors != 1 || got.Hits < 1 || got.Misses < 1 || got.Clients != 1 || got.Patterns != 1 || got.Channels != 0 {
		t.Errorf("%+v", got)
	}
	srv.Advance(time.Hour)
	info := mustDo(t, srv, "INFO").(string)
	got = srv.Stats()
	if got.ExpiredKeys != 1 || got.Uptime < time.Hour {
		t.Errorf("after an hour: %+v", got)
	}
	for field, n := range map[string]int64{
		"keyspace_hits": got.Hits, "keyspace_misses": got.Misses, "expired_keys": got.ExpiredKeys, "total_error_replies": got.Errors,
		"total_commands_processed": got.Commands - 1, "maxmemory": got.MaxMemory, "evicted_keys": got.EvictedKeys, "rdb_changes_since_last_save": got.Changes,
	} {
		if !strings.Contains(info, fmt.Sprintf("\r\n%s:%d\r\n", field, n)) {
			t.Errorf("%s is not %d in INFO", field, n)
		}
	}
	srv.engine.Attempt(func() { srv.engine.InTurn(func() { panic("for the test") }) })
	if got := srv.Stats(); got.Commands != 0 || got.Databases != nil {
		t.Errorf("after a panic: %+v", got)
	}
}

func TestKeys(t *testing.T) {
	srv := openForTest(t, Options{})
	const n = 3000
	want := map[string]int{}
	for i := range n {
		key := fmt.Sprint("key:", i)
		mustDo(t, srv, "SET", key, i)
		want[key] = 1
	}
	mustDo(t, srv, "SET", "other", 1)
	mustDo(t, srv, "SET", "key:expired", 1, "PX", time.Millisecond)
	srv.engine.Mu.Lock()
	srv.engine.Timers.ActiveExpire = false
	srv.engine.Mu.Unlock()
	srv.Advance(time.Second)
	got := map[string]int{}
	for key, err := range srv.Keys(t.Context(), 0, "key:*") {
		if err != nil {
			t.Fatal(err)
		}
		got[key]++
		mustDo(t, srv, "SET", "new:"+key, 1) // the table grows meanwhile
	}
	if !maps.Equal(got, want) {
		t.Errorf("%d keys of %d", len(got), len(want))
	}
	for range srv.Keys(t.Context(), 1, "*") {
		t.Error("database 1 has a key")
	}
	seen := 0
	for _, err := range srv.Keys(t.Context(), 0, "*") {
		if err != nil {
			t.Fatal(err)
		}
		if seen++; seen == 5 {
			break
		}
	}
	last := func(ctx context.Context, db int) (err error) {
		for _, err = range srv.Keys(ctx, db, "*") {
		}
		return err
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := last(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	if err := last(t.Context(), 16); err == nil || err.Error() != "zsetd: there is no database 16" {
		t.Errorf("database 16: %v", err)
	}
	srv.Close()
	if err := last(t.Context(), 0); !errors.Is(err, ErrServerClosed) {
		t.Errorf("closed: %v", err)
	}
}

func TestSave(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	srv := openForTest(t, Options{File: path, Config: map[string]string{"save": ""}})
	for i := range 3 {
		mustDo(t, srv, "SET", fmt.Sprint("key", i), i)
		if err := srv.Save(t.Context()); err != nil {
			t.Fatal(err)
		}
		if info := mustDo(t, srv, "INFO", "persistence").(string); !strings.Contains(info, "rdb_changes_since_last_save:0\r\n") {
			t.Errorf("after Save: %s", info)
		}
	}
	copied := filepath.Join(t.TempDir(), "copy.db")
	if _, err := snapshot.Backup(path, copied, snapshot.CopyOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := mustDo(t, openForTest(t, Options{File: copied}), "MGET", []string{"key0", "key1", "key2"}); fmt.Sprint(got) != "[0 1 2]" {
		t.Errorf("the file has %v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := srv.Save(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	srv.Close()
	if err := srv.Save(t.Context()); !errors.Is(err, ErrServerClosed) {
		t.Errorf("closed: %v", err)
	}
	memory := openForTest(t, Options{})
	if err := memory.Save(t.Context()); err == nil || err.Error() != "zsetd: there is no data file to save to" {
		t.Errorf("without a file: %v", err)
	}
}

// TestCountedChanges checks what counts in rdb_changes_since_last_save.
func TestCountedChanges(t *testing.T) {
	srv := openForTest(t, Options{})
	for _, test := range []struct {
		command string
		want    int64
	}{
		{"RPUSH l a", 1},
		{"LMOVE l other LEFT LEFT", 1}, // and removes l
		{"LPOP other", 1},
		{"RENAME s t", 1},
		{"SPOP t", 1},
		{"DEL absent", 0},
	} {
		mustDo(t, srv, "SADD", "s", "m")
		before := srv.Stats().Changes
		mustDo(t, srv, strings.Fields(test.command))
		if got := srv.Stats().Changes - before; got != test.want {
			t.Errorf("%s counts as %d changes, want %d", test.command, got, test.want)
		}
	}
}
