package persist_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/internal/engine/persist"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/servertest/rerun"
	"github.com/zsetd/zsetd/server/servertest/wait"

	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

// lowerLimits makes a keeper rewrite its file all the time.
func lowerLimits(srv *enginetest.Server, waste int64) {
	enginetest.Say(srv, "CONFIG SET auto-aof-rewrite-min-size 16kb")
	srv.InTurn(func() {
		srv.Keeper.Limits = persist.Limits{Pending: 1 << 20, Small: 16 << 10, Waste: waste, Cleared: 50}
	})
}

// The file is rewritten while clients change what is in it: keys come and go,
// change their names, types and databases, and people save in between. After
// each restart the data are the same.
func TestRewritingUnderLoad(t *testing.T) {
	t.Parallel()
	rounds := max(2, *faults/10)
	path := filepath.Join(t.TempDir(), "k.db")
	for round := range rounds {
		config := map[string]string{"save": "1 1"}
		if round%2 == 1 {
			config = map[string]string{"appendonly": "yes", "appendfsync": "always"}
		}
		srv := enginetest.Keep(t, path, config)
		lowerLimits(srv, 1<<20)
		var load sync.WaitGroup
		var stop atomic.Bool
		t.Cleanup(func() { stop.Store(true) })
		for w := range 4 {
			load.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(round), uint64(w)))
				for n := 0; !stop.Load(); n++ {
					for range 20 {
						key := func() string { return fmt.Sprint("k", rng.IntN(300)) }
						k := key()
						switch rng.IntN(26) {
						case 0, 1:
							enginetest.Say(srv, "DEL "+k+" "+key())
						case 2:
							enginetest.Say(srv, "RENAME "+k+" "+key())
						case 3:
							enginetest.Say(srv, "COPY "+k+" "+key()+" REPLACE")
						case 4:
							enginetest.Say(srv, fmt.Sprint("MOVE ", k, " ", rng.IntN(3)))
						case 5:
							enginetest.Say(srv, fmt.Sprint("PEXPIRE ", k, " ", 1+rng.IntN(200)))
						case 6:
							enginetest.SayArgs(srv, "SET", k, strings.Repeat("v", rng.IntN(3000)))
						case 7:
							enginetest.Say(srv, fmt.Sprint("APPEND ", k, " ", n))
						case 8, 9, 10:
							enginetest.Say(srv, fmt.Sprint("RPUSH ", k, " ", n, " ", n+1))
						case 11:
							enginetest.Say(srv, "LPOP "+k)
						case 12, 13, 14:
							enginetest.Say(srv, fmt.Sprint("HSET ", k, " f", rng.IntN(400), " ", n))
						case 15:
							enginetest.Say(srv, fmt.Sprint("HDEL ", k, " f", rng.IntN(400)))
						case 16, 17, 18:
							enginetest.Say(srv, fmt.Sprint("ZADD ", k, " ", n, " m", rng.IntN(400)))
						case 19:
							enginetest.Say(srv, "ZPOPMIN "+k+" 3")
						case 20, 21:
							enginetest.Say(srv, fmt.Sprint("SADD ", k, " ", rng.IntN(1000), " x", rng.IntN(100)))
						case 22:
							enginetest.Say(srv, "SPOP "+k)
						case 23:
							if rng.IntN(30) == 0 {
								enginetest.Say(srv, fmt.Sprint("SWAPDB ", rng.IntN(3), " ", rng.IntN(3)))
							}
						case 24:
							if rng.IntN(100) == 0 {
								enginetest.Say(srv, "FLUSHDB")
							}
						case 25:
							if rng.IntN(10) == 0 {
								enginetest.Say(srv, []string{"SAVE", "BGSAVE", "BGREWRITEAOF"}[rng.IntN(3)])
							}
						}
					}
				}
			})
		}
		wait.Pace(1200 * time.Millisecond)
		wait.Until(t, "the file is rewritten under load", func() bool { return enginetest.Info(t, srv, "aof_rewrites") != "0" })
		stop.Store(true)
		load.Wait()
		rewrites := enginetest.Info(t, srv, "aof_rewrites")
		if status := enginetest.Info(t, srv, "rdb_last_bgsave_status"); status != "ok" {
			t.Errorf("status %s", status)
		}
		if err := srv.Check(); err != nil {
			t.Fatal(err)
		}
		wait.Until(t, "everything has expired that will", func() bool { _, soon := enginetest.Digest(srv.Engine); return !soon })
		want := enginetest.DebugDigest(srv)
		srv = enginetest.Again(t, srv, map[string]string{"save": "3600 1"})
		if got := enginetest.DebugDigest(srv); got != want {
			t.Fatalf("round %d: after %s rewrites the data differ", round, rewrites)
		}
		if err := srv.Check(); err != nil {
			t.Fatal(err)
		}
		t.Logf("round %d: %s rewrites", round, rewrites)
		if err := srv.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestJournalIsDropped checks that a journal larger than the bases is removed when all
// its keys have new bases.
func TestJournalIsDropped(t *testing.T) {
	srv := enginetest.Keep(t, filepath.Join(t.TempDir(), "k.db"), nil)
	lowerLimits(srv, 1<<30)
	for i := range 3000 {
		enginetest.Must(t, srv, fmt.Sprintf("ZADD z %d member:%d", i, i%100), fmt.Sprintf("SET s%d %d", i%10, i))
	}
	enginetest.Must(t, srv, "SET gone 1", "DEL gone", "SAVE")
	sizes := func() {
		t.Helper()
		n := map[string]int{}
		for line := range strings.Lines(enginetest.SayArgs(srv, "INFO", "persistence")) { // one reply: the file may be rewritten meanwhile
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			n[name], _ = strconv.Atoi(value)
		}
		if n["aof_current_size"] == 0 || n["aof_current_size"] != n["snapshot_bases_bytes"]+n["snapshot_journal_bytes"]+n["snapshot_pending_bytes"] ||
			n["aof_base_size"] != n["snapshot_bases_bytes"] {
			t.Errorf("the sizes of the file: %d, %d; bases %d, journal %d", n["aof_current_size"], n["aof_base_size"], n["snapshot_bases_bytes"], n["snapshot_journal_bytes"])
		}
	}
	if strings.Contains(enginetest.SayArgs(srv, "INFO", "persistence"), "aof_current_size") {
		t.Error("INFO has sizes of an append-only file without appendonly")
	}
	enginetest.Must(t, srv, "CONFIG SET appendonly yes")
	sizes()
	if enginetest.Info(t, srv, "snapshot_journal_bytes") == "0" && enginetest.Info(t, srv, "aof_rewrites") == "0" {
		t.Fatal("there is no journal to drop")
	}
	srv.Keeper.Wake()
	wait.Until(t, "the journal is dropped", func() bool {
		return enginetest.Info(t, srv, "snapshot_journal_bytes") == "0" && enginetest.Info(t, srv, "aof_rewrites") == "1"
	})
	sizes()
	want := enginetest.DebugDigest(srv)
	srv = enginetest.Again(t, srv, nil)
	if got := enginetest.DebugDigest(srv); got != want {
		t.Error("the data differ")
	}
	enginetest.Must(t, srv, "DBSIZE -> 11")
}

// Keys and values may be larger than what bbolt takes for a key, or a page.
func TestHugeKeysAndValues(t *testing.T) {
	rerun.Skip(t)
	t.Parallel()
	srv := enginetest.Keep(t, filepath.Join(t.TempDir(), "k.db"), map[string]string{"save": "3600 1"})
	huge := strings.Repeat("k", 100_000)
	for i, key := range []string{huge, huge[:40_000], huge[:1024], huge[:1023], "", "\x00\xff"} {
		enginetest.SayArgs(srv, "SET", key, fmt.Sprint("value ", i))
		enginetest.SayArgs(srv, "HSET", key+"h", huge, i, "f", huge)
		enginetest.SayArgs(srv, "ZADD", key+"z", i, huge)
		if i%2 == 0 {
			enginetest.Must(t, srv, "SAVE")
		}
	}
	enginetest.SayArgs(srv, "SET", "big", strings.Repeat("0123456789", 1_200_000))
	enginetest.SayArgs(srv, "SETRANGE", "big", 13_000_000, "end")
	for i := range 8 {
		enginetest.SayArgs(srv, "RPUSH", "biglist", strings.Repeat(string(rune('a'+i)), 500_000))
	}
	enginetest.Must(t, srv, "SETRANGE gap 200000 x")
	for _, command := range []string{"SAVE", "BGREWRITEAOF", "DEBUG JMAP"} {
		enginetest.Say(srv, command)
		enginetest.Rest(t, srv)
		enginetest.SayArgs(srv, "SETRANGE", "big", 12_500_000, command)
		enginetest.SayArgs(srv, "SET", huge, command)
		want := enginetest.DebugDigest(srv)
		srv = enginetest.Again(t, srv, map[string]string{"save": "3600 1"})
		if got := enginetest.DebugDigest(srv); got != want {
			t.Errorf("%s: the data differ", command)
		}
	}
	if got := enginetest.SayArgs(srv, "GET", huge); got != "DEBUG JMAP" {
		t.Error(got)
	}
}

// TestSaveWhileListing checks that keys that are added and saved while the keys for a new
// file are listed are in the new file.
func TestSaveWhileListing(t *testing.T) {
	t.Parallel()
	srv := enginetest.Keep(t, filepath.Join(t.TempDir(), "k.db"), nil)
	enginetest.Fill(srv, keysToCopy(), 1)
	enginetest.Must(t, srv, "SAVE")
	const rounds = 6
	for i := range rounds {
		enginetest.Must(t, srv, "BGREWRITEAOF")
		for j := range 5 {
			enginetest.Must(t, srv, fmt.Sprintf("SET new:%d:%d 1", i, j), "SAVE")
		}
		enginetest.Rest(t, srv)
	}
	want := enginetest.DebugDigest(srv)
	srv = enginetest.Again(t, srv, nil)
	if got := enginetest.DebugDigest(srv); got != want {
		t.Error("the data differ: ", enginetest.Say(srv, "DBSIZE"), " keys of ", keysToCopy()+rounds*5)
	}
}

// TestDueDuringCheckpoint checks a waiter that is served by a deadline while the keeper
// holds the lock for a checkpoint: it gets its reply, and its change is in that checkpoint
// or the next.
func TestDueDuringCheckpoint(t *testing.T) {
	t.Parallel()
	srv := enginetest.Keep(t, filepath.Join(t.TempDir(), "k.db"), map[string]string{"appendonly": "yes", "appendfsync": "always"})
	enginetest.Must(t, srv, "ZADD due @now+1h a")
	c := enginetest.Pipe(t, srv)
	c.Send("BZPOPBYSCORE 0 1 due -inf @now\r\n")
	wait.Until(t, "somebody waits", func() bool { return enginetest.Info(t, srv, "blocked_clients") == "1" })
	srv.Time.Advance(2 * time.Hour) // the timer does not know yet
	srv.Mu.Lock()
	srv.Keeper.SaveRequested = true
	srv.Mu.Unlock()
	srv.Keeper.Wake()
	enginetest.Until(t, srv, "the keeper has taken a checkpoint", func() bool { return !srv.Keeper.SaveRequested }) // under the bare lock, which serves no waiter
	enginetest.Must(t, srv, "PING")
	if got := fmt.Sprint(c.Reply()); !strings.HasPrefix(got, "[due [[a ") {
		t.Error(got)
	}
	enginetest.Must(t, srv, "EXISTS due -> 0")
	srv = enginetest.Again(t, srv, nil)
	enginetest.Must(t, srv, "EXISTS due -> 0")
}

// TestMemberDeadlinesAfterRestart checks that deadlines of members and fields survive a
// kill, in the journal and in bases, and that members that expired meanwhile are not
// visible.
func TestMemberDeadlinesAfterRestart(t *testing.T) {
	for _, how := range []string{"journal", "bases", "save", "close"} {
		t.Run(how, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "k.db")
			config := map[string]string{"appendonly": "yes", "appendfsync": "always"}
			if how == "save" || how == "close" {
				config = map[string]string{"save": "3600 1"}
			}
			srv := enginetest.Keep(t, path, config)
			soon := time.Now().Add(700 * time.Millisecond).UnixMilli()
			const late = 33177117420000
			enginetest.Must(t, srv, fmt.Sprintf("ZADDEX z PXAT %d MEMBERS 3 1 a 2 b 3 c", late), fmt.Sprintf("HSETEX h PXAT %d FIELDS 2 f 1 g 2", late),
				"ZADD z 4 forever", "HSET h forever 1", fmt.Sprintf("ZADDEX z PXAT %d MEMBERS 1 9 soon", soon),
				fmt.Sprintf("HSETEX h PXAT %d FIELDS 1 soon 1", soon), fmt.Sprintf("ZADDEX allsoon PXAT %d MEMBERS 2 1 a 2 b", soon),
				fmt.Sprintf("HSETEX hallsoon PXAT %d FIELDS 1 a 2", soon))
			if how == "bases" {
				enginetest.Must(t, srv, "BGREWRITEAOF")
				enginetest.Rest(t, srv)
			}
			enginetest.Must(t, srv, "ZPERSIST z MEMBERS 1 b", "ZPEXPIREAT z 33177117420001 MEMBERS 1 c", "HPERSIST h FIELDS 1 g", "ZINCRBY z 1 a", "COPY z z2", "RENAME h h2")
			look := func() string {
				return enginetest.Say(srv, "ZRANGE z 0 -1 WITHSCORES") + enginetest.Say(srv, "ZPEXPIRETIME z MEMBERS 5 a b c forever soon") +
					enginetest.Say(srv, "ZPEXPIRETIME z2 MEMBERS 5 a b c forever soon") + enginetest.Say(srv, "HGETALL h2") + enginetest.Say(srv, "HPEXPIRETIME h2 FIELDS 4 f g forever soon") +
					enginetest.Say(srv, "EXISTS allsoon hallsoon") + enginetest.DebugDigest(srv)
			}
			if how == "save" {
				enginetest.Must(t, srv, "SAVE")
			}
			before := look()
			if how != "close" { // killed: use a copy of the current file
				b, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				defer srv.Close()
				path = filepath.Join(t.TempDir(), "killed.db")
				if err := os.WriteFile(path, b, 0o640); err != nil {
					t.Fatal(err)
				}
			} else if err := srv.Close(); err != nil {
				t.Fatal(err)
			}
			was := srv
			if time.Now().UnixMilli() < soon-100 {
				srv = enginetest.Keep(t, path, config)
				if after := look(); after != before && time.Now().UnixMilli() < soon {
					t.Errorf("after a restart\n%s, before\n%s", after, before)
				}
				if err := srv.Close(); err != nil {
					t.Fatal(err)
				}
			}
			wait.Elapse(time.Until(time.UnixMilli(soon + 5)))
			if how == "close" {
				was = nil
			}
			srv = enginetest.Keep(t, path, config)
			enginetest.Must(t, srv, "EXISTS allsoon hallsoon -> 0", "DBSIZE -> 3", "ZSCORE z soon -> <nil>", "ZCARD z -> 4", "ZCARD z2 -> 4", "HLEN h2 -> 3",
				"ZPEXPIRETIME z MEMBERS 5 a b c forever soon -> [33177117420000 -1 33177117420001 -1 -2]",
				"HPEXPIRETIME h2 FIELDS 4 f g forever soon -> [33177117420000 -1 -1 -2]")
			if err := srv.Check(); err != nil {
				t.Error(err)
			}
			if was != nil {
				now := enginetest.DebugDigest(srv)
				wait.Until(t, "the old one has the same", func() bool { return enginetest.DebugDigest(was) == now })
			}
			if err := srv.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestDueWhileLoading checks that elements that expire during loading are removed, and
// journaled, when loading has ended: a field that is set again must not get the deadline
// of the expired one back.
func TestDueWhileLoading(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k.db")
	srv := enginetest.Keep(t, path, nil)
	enginetest.Must(t, srv, "HSET h due old other 1", "HPEXPIRE h 2000 FIELDS 1 due", "SAVE")
	srv.InTurn(func() { // as if the file were being loaded
		srv.Keeper.Loading = &persist.LoadState{Start: time.Now()}
		srv.Keys.Record(false)
	})
	wait.Until(t, "the field is due", func() (due bool) {
		srv.InTurn(func() { due = srv.Keys.DB(0).DueMembers([]byte("h"), keyspace.FieldsStay) == 1 })
		return due
	})
	srv.InTurn(func() {
		srv.Keeper.Loading = nil
		srv.Keys.Record(true)
	})
	enginetest.Must(t, srv, "HSET h due new", "SAVE")
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	srv = enginetest.Keep(t, path, nil)
	defer srv.Close()
	if v, err := srv.Do(context.Background(), "HGET", "h", "due"); err != nil || v != "new" {
		t.Errorf("after a restart the field is %v (%v)", v, err)
	}
}

// TestSaveBehindLastPiece checks that a save that begins after the background goroutine
// has written the last piece of a new file, and before it has recorded that, writes no
// piece to the complete file.
func TestSaveBehindLastPiece(t *testing.T) {
	for name, settings := range map[string]map[string]string{
		"no journal": {"save": ""},
		"always":     {"appendonly": "yes", "appendfsync": "always"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := enginetest.Keep(t, filepath.Join(t.TempDir(), "k.db"), settings)
			enginetest.Must(t, srv, "MSET a 1 b 2 c 3")
			enginetest.Rest(t, srv)
			k := srv.Keeper
			srv.InTurn(func() {
				k.LoseTrack()
				srv.Keys.Record(true)
				keys := k.AllKeys(func(f func()) { f() })
				k.BeginRewrite(&persist.Rewrite{Keys: keys, Fresh: true, FullSave: true, Began: time.Now()})
				k.Take()
				k.Flush()
				if err := k.SaveNow(); err != nil {
					t.Error(err)
				}
				if k.Failed != nil || k.NeedsFresh == k.Automatic() || k.Rewrite != nil || !k.RewriteFailedAt.IsZero() {
					t.Errorf("failed %v, fresh file needed %v, rewrite %v", k.Failed, k.NeedsFresh, k.Rewrite)
				}
			})
		})
	}
}
