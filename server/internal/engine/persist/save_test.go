package persist_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zsetd/zsetd/server/internal/commands/admin"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/persist"
	"github.com/zsetd/zsetd/server/servertest/wait"
	"github.com/zsetd/zsetd/snapshot"

	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

// TestRemovedWhileRewritten checks that journal entries of a key that has no base, because
// it was changed and then removed during a rewrite, are not treated as damage.
func TestRemovedWhileRewritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k.db")
	srv := enginetest.Keep(t, path, nil)
	enginetest.Must(t, srv, "HSET h f 1 g 2", "ZADD z 1 a 2 b", "RPUSH l a b", "SET other 1", "SAVE")
	enginetest.Must(t, srv, "HSET h f 2", "ZADD z 3 a", "RPUSH l c", "EXPIRE l 100", "APPEND other 2",
		"DEL h", "RENAME z y", "DEL l", "BGREWRITEAOF")
	wait.Until(t, "the file is rewritten", func() bool { return enginetest.Info(t, srv, "aof_rewrites") == "1" })
	enginetest.Must(t, srv, "SAVE")
	want := enginetest.DebugDigest(srv)
	srv = enginetest.Again(t, srv, nil)
	if got := enginetest.DebugDigest(srv); got != want || enginetest.Say(srv, "KEYS *") == "" {
		t.Fatal("the data differ: ", enginetest.Say(srv, "KEYS *"))
	}
}

// TestSaveInAlways checks that replies that wait for the disk are sent when SAVE, in the
// same pipeline, has saved their changes.
func TestSaveInAlways(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k.db")
	srv := enginetest.Keep(t, path, map[string]string{"appendonly": "yes", "appendfsync": "always"})
	c := enginetest.Pipe(t, srv)
	for range 5 {
		c.Send("SET a 1\r\nSAVE\r\nGET a\r\n")
		for _, want := range []any{"OK", "OK", "1"} {
			if got := c.Reply(); fmt.Sprint(got) != want {
				t.Fatal(got)
			}
		}
	}
}

// TestSaveRules runs in a synctest bubble, so that the seconds of the rules take no time.
func TestSaveRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := enginetest.Keep(t, filepath.Join(t.TempDir(), "k.db"), map[string]string{"save": "1 1"})
		for i := range 3 { // each a single change after a rest
			n := enginetest.Saves(t, srv)
			enginetest.Must(t, srv, fmt.Sprint("SET a ", i))
			start := time.Now()
			wait.Until(t, "it is saved", func() bool { return enginetest.Saves(t, srv) > n })
			if took := time.Since(start); took > time.Second+10*time.Millisecond {
				t.Errorf("change %d was saved after %v", i, took)
			}
			if i == 1 {
				time.Sleep(1200 * time.Millisecond)
			}
		}
		if n := enginetest.Info(t, srv, "rdb_changes_since_last_save"); n != "0" {
			t.Errorf("%s changes since", n)
		}
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestSaveRuleOfManyChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := enginetest.Keep(t, filepath.Join(t.TempDir(), "k.db"), map[string]string{"save": "2 10 3600 1"})
		for i := range 9 {
			enginetest.Must(t, srv, fmt.Sprint("SET a ", i))
		}
		time.Sleep(time.Hour - time.Minute)
		if n := enginetest.Saves(t, srv); n != 0 {
			t.Fatalf("9 changes were saved %d times", n)
		}
		enginetest.Must(t, srv, "SET a 10")
		start := time.Now()
		wait.Until(t, "it is saved", func() bool { return enginetest.Saves(t, srv) == 1 })
		if took := time.Since(start); took > 10*time.Millisecond {
			t.Errorf("the tenth change, after an hour, was saved after %v", took)
		}
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestUncountedChanges checks that the deliveries of XREADGROUP to a consumer that reads again
// are saved, although INFO counts none, as Redis 8.6, which Valkey does.
func TestUncountedChanges(t *testing.T) {
	for dialect, want := range map[string][3]string{"redis": {"0", "0", "1"}, "valkey": {"1", "2", "4"}} {
		config := map[string]string{"save": "3600 1", "dialect": dialect}
		srv := enginetest.Keep(t, filepath.Join(t.TempDir(), "k.db"), config)
		enginetest.Must(t, srv, "XADD x 1-0 f v", "XGROUP CREATE x g 0", "XREADGROUP GROUP g alice STREAMS x >", "SAVE -> OK")
		for i, line := range []string{"XREADGROUP GROUP g alice STREAMS x 0", "XREADGROUP GROUP g alice STREAMS x 9", "XREADGROUP GROUP g bob STREAMS x 0"} {
			enginetest.Must(t, srv, line)
			if n := enginetest.Info(t, srv, "rdb_changes_since_last_save"); n != want[i] {
				t.Errorf("%s: %s changes after %s, want %s", dialect, n, line, want[i])
			}
		}
		enginetest.Must(t, srv, "SAVE -> OK", "XREADGROUP GROUP g alice STREAMS x 0")
		srv = enginetest.Again(t, srv, config)
		if got := fmt.Sprint(enginetest.Say(srv, "XPENDING x g - + 9")); !strings.HasSuffix(got, " 3]]") {
			t.Errorf("%s: pending after a restart: %s, want 3 deliveries", dialect, got)
		}
	}
}

// TestNoSaveRules checks that without rules the server saves only on request, and not at
// the end.
func TestNoSaveRules(t *testing.T) {
	none := map[string]string{"save": ""}
	srv := enginetest.Keep(t, filepath.Join(t.TempDir(), "k.db"), none)
	enginetest.Must(t, srv, "SET a 1", "SAVE -> OK", "SET a 2")
	if n := enginetest.Info(t, srv, "rdb_changes_since_last_save"); n != "1" {
		t.Errorf("%s changes since", n)
	}
	srv = enginetest.Again(t, srv, none)
	enginetest.Must(t, srv, "GET a -> 1", "SET a 3", "SET b 1")

	// New rules also apply to earlier changes.
	enginetest.Must(t, srv, "CONFIG SET appendonly yes")
	wait.Until(t, "it is saved", func() bool { return enginetest.Saves(t, srv) == 1 })
	enginetest.Must(t, srv, "CONFIG SET appendfsync always")
	n := enginetest.Saves(t, srv)
	enginetest.Must(t, srv, "SET a 4")
	if enginetest.Saves(t, srv) == n {
		t.Error("with appendfsync always the reply came before the data were saved")
	}
	enginetest.Must(t, srv, "CONFIG SET appendonly no", "SET a 5")
	srv = enginetest.Again(t, srv, none)
	enginetest.Must(t, srv, "GET a -> 4", "GET b -> 1")
}

// Without rules there is no journal: a save writes everything. Rules that come and go
// at run time begin and end it.
func TestNoJournalWithoutRules(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k.db")
	srv := enginetest.Keep(t, path, map[string]string{"save": ""})
	records := func() (on bool) {
		srv.InTurn(func() { on = srv.Keys.Recording() })
		return on
	}
	pending := func() string { return enginetest.Info(t, srv, "snapshot_pending_bytes") }
	enginetest.Fill(srv, 1000, 1000)
	enginetest.Must(t, srv, "SET a 1")
	if records() || pending() != "0" {
		t.Errorf("without rules there is a journal of %s bytes", pending())
	}
	for _, command := range []string{"SAVE", "BGSAVE", "BGREWRITEAOF", "DEBUG RELOAD"} {
		n := enginetest.Saves(t, srv)
		enginetest.Must(t, srv, "INCR a", command)
		wait.Until(t, "it is saved", func() bool { return enginetest.Saves(t, srv) > n })
		enginetest.Rest(t, srv)
		enginetest.Must(t, srv, "INCR b")
		if records() || pending() != "0" {
			t.Errorf("after %s there is a journal of %s bytes", command, pending())
		}
	}
	if n := enginetest.Info(t, srv, "aof_rewrites"); n != "1" {
		t.Errorf("%s rewrites were counted, 1 was asked for", n)
	}
	for _, on := range []string{"save", "appendonly"} {
		value := map[string]string{"save": "3600 1", "appendonly": "yes"}[on]
		none := map[string]string{"save": "", "appendonly": "no"}[on]
		enginetest.Must(t, srv, "INCR c")
		enginetest.SayArgs(srv, "CONFIG", "SET", on, value)
		if !records() {
			t.Errorf("with %s %s there is no journal", on, value)
		}
		wait.Until(t, "everything is saved", func() bool { return enginetest.Info(t, srv, "rdb_changes_since_last_save") == "0" })
		enginetest.Rest(t, srv)
		enginetest.Must(t, srv, "INCR d")
		enginetest.SayArgs(srv, "CONFIG", "SET", on, none)
		if records() {
			t.Errorf("after CONFIG SET %s %s there is a journal", on, none)
		}
	}
	enginetest.Must(t, srv, "INCR e", "SAVE", "INCR e")
	srv = enginetest.Again(t, srv, map[string]string{"save": ""})
	enginetest.Must(t, srv, "GET a -> 5", "GET b -> 4", "GET c -> 2", "GET d -> 2", "GET e -> 1", "DBSIZE -> 1005")
}

func TestSavingCommands(t *testing.T) {
	srv := enginetest.Keep(t, filepath.Join(t.TempDir(), "k.db"), nil)
	k := srv.Keeper
	last := enginetest.Say(srv, "LASTSAVE")
	if start := fmt.Sprint(srv.Identity.Start.Unix()); last != start {
		t.Errorf("LASTSAVE is %s before anything was saved, want the start, %s", last, start)
	}
	enginetest.Must(t, srv, "SET a 1", "BGSAVE -> Background saving started")
	enginetest.Rest(t, srv)
	enginetest.Must(t, srv, "SET a 2", "BGSAVE SCHEDULE -> Background saving started")
	enginetest.Rest(t, srv)
	if n := enginetest.Saves(t, srv); n != 2 {
		t.Errorf("saved %d times", n)
	}
	enginetest.Must(t, srv, "BGSAVE NOW -> ERR syntax error", "BGSAVE SCHEDULE x -> ERR syntax error")

	release := k.HoldFiles() // as if the disk were slow
	enginetest.Must(t, srv, "SET a 3", "BGSAVE", "BGSAVE -> "+admin.ErrSaving, "BGSAVE SCHEDULE -> "+admin.ErrSaving, "SAVE -> "+admin.ErrSaving)
	wait.Until(t, "the checkpoint is taken", func() (taken bool) {
		srv.InTurn(func() { taken = k.Saving })
		return taken
	})
	enginetest.Must(t, srv, "SET a 4", "BGSAVE -> "+admin.ErrSaving)
	if got := enginetest.Info(t, srv, "rdb_bgsave_in_progress"); got != "1" {
		t.Error("rdb_bgsave_in_progress:", got)
	}
	release()
	enginetest.Rest(t, srv)
	if n := enginetest.Info(t, srv, "rdb_changes_since_last_save"); n != "1" {
		t.Errorf("%s changes since", n)
	}
	if now, _ := strconv.ParseInt(enginetest.Say(srv, "LASTSAVE"), 10, 64); time.Since(time.Unix(now, 0)) > time.Minute {
		t.Error("LASTSAVE:", now)
	}
	release = k.HoldFiles()
	enginetest.Must(t, srv, "BGREWRITEAOF", "BGREWRITEAOF -> ERR Background append only file rewriting already in progress")
	release()
	enginetest.Rest(t, srv)
	if enginetest.Info(t, srv, "aof_rewrites") != "1" || enginetest.Info(t, srv, "aof_last_bgrewrite_status") != "ok" {
		t.Error("the file was not rewritten")
	}
	srv = enginetest.Again(t, srv, nil)
	enginetest.Must(t, srv, "GET a -> 4")

	none, err := enginetest.New(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer none.Close()
	enginetest.Must(t, none, "SAVE -> "+admin.ErrNoFile, "BGSAVE -> "+admin.ErrNoFile, "BGREWRITEAOF -> "+admin.ErrNoFile)
}

func TestShutdownSaves(t *testing.T) {
	for _, test := range []struct{ save, command, want string }{
		{"", "SHUTDOWN", "1"},
		{"", "SHUTDOWN SAVE", "2"},
		{"", "SHUTDOWN NOSAVE", "1"},
		{"3600 1", "SHUTDOWN", "2"},
		{"3600 1", "SHUTDOWN NOW", "2"},
		{"3600 1", "SHUTDOWN FORCE", "2"},
		{"3600 1", "SHUTDOWN SAVE NOW FORCE", "2"},
		{"3600 1", "SHUTDOWN NOSAVE NOW", "1"},
	} {
		path := filepath.Join(t.TempDir(), "k.db")
		srv := enginetest.Keep(t, path, map[string]string{"save": test.save})
		enginetest.Must(t, srv, "SET a 1", "SAVE", "SET a 2", "SHUTDOWN ABORT -> ERR No shutdown in progress.",
			"SHUTDOWN SAVE NOSAVE -> ERR syntax error", "SHUTDOWN ABORT NOW -> ERR syntax error")
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		if _, err := srv.Do(ctx, anys(test.command)...); !errors.Is(err, engine.ErrServerClosed) {
			t.Errorf("%s: %v", test.command, err)
		}
		if err := srv.Shutdown(ctx); err != nil {
			t.Errorf("%s: %v", test.command, err)
		}
		cancel()
		srv = enginetest.Keep(t, path, nil)
		if got := enginetest.Say(srv, "GET a"); got != test.want {
			t.Errorf("save %q, %s: a is %s afterwards, want %s", test.save, test.command, got, test.want)
		}
	}
}

// TestSaveInTransaction checks the reply of BGSAVE within MULTI: the save begins after EXEC.
func TestSaveInTransaction(t *testing.T) {
	srv := enginetest.Keep(t, filepath.Join(t.TempDir(), "k.db"), map[string]string{"save": ""})
	c := enginetest.Pipe(t, srv)
	c.Send("MULTI\r\nBGSAVE\r\nEXEC\r\n")
	c.Expect("OK")
	c.Expect("QUEUED")
	if got := fmt.Sprint(c.Reply()); got != "[Background saving scheduled]" {
		t.Error(got)
	}
	enginetest.Rest(t, srv)
	for _, test := range []struct{ lines, want string }{
		{"MULTI\r\nBGREWRITEAOF\r\nEXEC\r\n", "[Background append only file rewriting scheduled]"},
		{"BGREWRITEAOF\r\n", "Background append only file rewriting started"},
	} {
		c.Send(test.lines)
		if strings.HasPrefix(test.lines, "MULTI") {
			c.Expect("OK")
			c.Expect("QUEUED")
		}
		if got := fmt.Sprint(c.Reply()); got != test.want {
			t.Error(got)
		}
		enginetest.Rest(t, srv)
	}
}

// TestShutdownCompletesBGSAVE checks that a stop without save rules completes a save that a
// client has requested.
func TestShutdownCompletesBGSAVE(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k.db")
	srv := enginetest.Keep(t, path, map[string]string{"save": ""})
	enginetest.Must(t, srv, "SET a 1", "SAVE", "SET a 2")
	c := enginetest.Pipe(t, srv)
	c.Send("BGSAVE\r\nSHUTDOWN\r\n") // one turn: the save has not begun
	c.Expect("Background saving started")
	if n, err := c.Read(make([]byte, 1)); err != io.EOF {
		t.Error(n, err)
	}
	if err := srv.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	enginetest.Must(t, enginetest.Keep(t, path, nil), "GET a -> 2")
}

// TestSaveDelay checks that BGSAVE takes its time with rdb-key-save-delay, without and with
// other saves, and that a change of the parameter counts at once.
func TestSaveDelay(t *testing.T) {
	for _, rules := range []string{"", "1 1"} {
		path := filepath.Join(t.TempDir(), "k.db")
		srv := enginetest.Keep(t, path, map[string]string{"save": rules})
		enginetest.Must(t, srv, "SET a 1", "CONFIG SET rdb-key-save-delay 200000000", "BGSAVE -> Background saving started")
		if rules != "" {
			wait.Until(t, "the rule applies", func() bool { return enginetest.Info(t, srv, "rdb_changes_since_last_save") == "0" })
		}
		if got := enginetest.Info(t, srv, "rdb_bgsave_in_progress"); got != "1" {
			t.Errorf("save %q: rdb_bgsave_in_progress:%s", rules, got)
		}
		enginetest.Must(t, srv, "BGSAVE -> "+admin.ErrSaving, "CONFIG SET rdb-key-save-delay 0")
		wait.Until(t, "the save is complete", func() bool { return enginetest.Info(t, srv, "rdb_bgsave_in_progress") == "0" })
		enginetest.Must(t, enginetest.Again(t, srv, nil), "GET a -> 1")
	}
}

func anys(line string) (words []any) {
	for _, word := range strings.Fields(line) {
		words = append(words, word)
	}
	return words
}

// TestRestart checks that the effects of commands on whole keys and databases survive a
// restart, from the journal and from bases.
func TestRestart(t *testing.T) {
	for _, save := range []bool{false, true} {
		srv := enginetest.Keep(t, filepath.Join(t.TempDir(), "k.db"), map[string]string{"save": "3600 1"})
		saved := func() {
			if save {
				enginetest.Must(t, srv, "SAVE")
			}
		}
		enginetest.Must(t, srv, "SET s 1", "RPUSH l a b c", "HSET h f v", "SADD t a b 3", "ZADD z 1 a 2 b", "SET gone 1 PX 50", "SET later 1 PXAT 99999999999999")
		saved()
		enginetest.Must(t, srv, "RENAME s s2", "COPY l l2 DB 1", "MOVE h 2", "COPY z z2", "ZADD z2 7 c", "LPUSH l x", "EXPIRE t 1000", "PERSIST later")
		saved()
		enginetest.Must(t, srv, "SWAPDB 0 2", "SET s 5")
		saved()
		enginetest.Must(t, srv, "SWAPDB 2 3", "RPUSH l y", "HSET h g 2")
		saved()
		wait.Until(t, "one key expires", func() bool { return enginetest.Info(t, srv, "expired_keys") == "1" })
		var before []string
		look := func() (all []string) {
			for line := range strings.Lines("0 3 1 2") {
				for _, db := range strings.Fields(line) {
					c := enginetest.Pipe(t, srv)
					c.Send("SELECT " + db + "\r\nKEYS *\r\nDBSIZE\r\nPEXPIRETIME t\r\nPEXPIRETIME later\r\nLRANGE l 0 -1\r\nHGETALL h\r\n")
					for range 7 {
						r := fmt.Sprint(c.Reply())
						if list := strings.Fields(strings.Trim(r, "[]")); len(list) > 1 {
							r = fmt.Sprint(len(list))
						}
						all = append(all, r)
					}
					c.Close()
				}
			}
			return append(all, enginetest.DebugDigest(srv))
		}
		before = look()
		srv = enginetest.Again(t, srv, map[string]string{"save": "3600 1"})
		if after := look(); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("after a restart\n%v, before\n%v", after, before)
		}
		enginetest.Must(t, srv, "FLUSHDB", "SET only 1")
		saved()
		before = look()
		srv = enginetest.Again(t, srv, map[string]string{"save": "3600 1"})
		if after := look(); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("after a restart and FLUSHDB\n%v, before\n%v", after, before)
		}
		enginetest.Must(t, srv, "FLUSHALL")
		srv = enginetest.Again(t, srv, nil)
		enginetest.Must(t, srv, "DBSIZE -> 0")
	}
}

func TestExpiredWhileDown(t *testing.T) {
	srv := enginetest.Keep(t, filepath.Join(t.TempDir(), "k.db"), nil)
	enginetest.Must(t, srv, "SET a 1 PX 2000", "ZADD z 1 a", "PEXPIRE z 2000", "SET b 1 EX 1000", "SAVE")
	srv.InTurn(func() { srv.Ending.Flags.Nosave = true })
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(srv.Config.Dir, srv.Config.Dbfilename)
	wait.Elapse(2100 * time.Millisecond)
	for range 2 {
		srv = enginetest.Keep(t, path, map[string]string{"save": ""})
		enginetest.Must(t, srv, "DBSIZE -> 1", "GET b -> 1")
		if loaded, expired := enginetest.Info(t, srv, "rdb_last_load_keys_loaded"), enginetest.Info(t, srv, "rdb_last_load_keys_expired"); loaded != "1" || expired != "2" {
			t.Errorf("%s keys loaded, %s expired", loaded, expired)
		}
		if err := srv.Close(); err != nil {
			t.Fatal(err)
		}
	}
	srv = enginetest.Keep(t, path, nil)
	enginetest.Must(t, srv, "SET a 2", "SAVE") // expired keys do not reappear
	srv = enginetest.Again(t, srv, nil)
	enginetest.Must(t, srv, "DBSIZE -> 2", "GET a -> 2", "TTL a -> -1")
	if expired := enginetest.Info(t, srv, "rdb_last_load_keys_expired"); expired != "0" {
		t.Errorf("%s expired", expired)
	}
}

func TestFewerDatabases(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k.db")
	srv := enginetest.Keep(t, path, nil)
	c := enginetest.Pipe(t, srv)
	c.Send("SELECT 15\r\nSET a 1\r\nSAVE\r\n")
	for range 3 {
		if got := c.Reply(); fmt.Sprint(got) != "OK" {
			t.Fatal(got)
		}
	}
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := enginetest.OpenKeep(path, map[string]string{"databases": "8"})
	if err == nil || !strings.Contains(err.Error(), "the file has keys in more than 8 databases: set the parameter databases") {
		t.Fatal(err)
	}
	enginetest.Keep(t, path, map[string]string{"databases": "20"})
}

func TestFileInUse(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "k.db")
	srv := enginetest.Keep(t, path, nil)
	enginetest.Must(t, srv, "SET a 1")
	_, err := enginetest.OpenKeep(path, nil)
	if !errors.Is(err, snapshot.ErrInUse) || !strings.Contains(err.Error(), path) || runtime.GOOS == "linux" && !strings.Contains(err.Error(), "in use by this process") {
		t.Fatal(err)
	}
	enginetest.Must(t, srv, "SAVE -> OK")
	enginetest.Again(t, srv, nil)
}

// TestRefusedFiles checks that unusable files are refused, with an error of one line that
// names the file, and are not changed.
// TestSeveralInOneFolder checks that the file is open only while it is read or written on
// servers that save on request only, and all the time on one that saves by itself.
func TestSeveralInOneFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k.db")
	none := map[string]string{"save": ""}
	a, b := enginetest.Keep(t, path, none), enginetest.Keep(t, path, none)
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a file before the first save: %v", err)
	}
	enginetest.Must(t, a, "SET from a", "SAVE -> OK", "SET from a2")
	enginetest.Must(t, enginetest.Keep(t, path, none), "GET from -> a", "SET from c")
	enginetest.Must(t, b, "DBSIZE -> 0", "SET from b", "BGSAVE")
	enginetest.Rest(t, b)
	wait.Until(t, "it is saved", func() bool { return enginetest.Info(t, b, "rdb_changes_since_last_save") == "0" })
	enginetest.Must(t, enginetest.Keep(t, path, none), "GET from -> b")
	enginetest.Must(t, a, "DEBUG RELOAD", "GET from -> a2", "DEBUG RELOAD NOSAVE", "GET from -> a2")

	// A server that saves by itself has the file open.
	enginetest.Must(t, b, "CONFIG SET appendonly yes appendfsync always", "SET from b2 -> OK")
	if _, err := enginetest.OpenKeep(path, none); !errors.Is(err, snapshot.ErrInUse) {
		t.Errorf("a third server on a file that is written: %v", err)
	}
	enginetest.Must(t, a, "SAVE -> ERR")
	if text := fmt.Sprint(a.Keeper.Failed); !strings.Contains(text, "in use") {
		t.Errorf("the save has failed: %s", text)
	}
	enginetest.Must(t, a, "SET from a3 -> OK", "BGSAVE")
	enginetest.Rest(t, a)
	if got := enginetest.Info(t, a, "rdb_last_bgsave_status"); got != "err" {
		t.Errorf("BGSAVE: %s", got)
	}
	enginetest.Must(t, b, "SET from b3 -> OK")
	enginetest.Must(t, b, "CONFIG SET appendonly no", "SET from b4 -> OK")
	enginetest.Must(t, enginetest.Keep(t, path, none), "GET from -> b3")
	enginetest.Must(t, a, "SAVE -> OK", "CONFIG SET appendonly yes")
	wait.Until(t, "the file is open", func() bool {
		_, err := enginetest.OpenKeep(path, none)
		return errors.Is(err, snapshot.ErrInUse)
	})
	enginetest.Must(t, b, "CONFIG SET appendonly yes")
	wait.Until(t, "the second server cannot save", func() bool { return enginetest.Info(t, b, "rdb_last_bgsave_status") == "err" })
	if got := enginetest.Say(b, "SET from b5"); !strings.HasPrefix(got, "MISCONF") {
		t.Errorf("a server that cannot save: %s", got)
	}
	enginetest.Must(t, a, "SET from a4", "SAVE -> OK")
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the second server saves", func() bool { return enginetest.Info(t, b, "rdb_last_bgsave_status") == "ok" })
	enginetest.Must(t, enginetest.Again(t, b, none), "GET from -> b4")

	// A file that is not ours is not replaced.
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := enginetest.Keep(t, path+"2", none)
	if err := os.Rename(path, path+"2"); err != nil {
		t.Fatal(err)
	}
	enginetest.Must(t, c, "SET from c", "SAVE -> ERR")
	if b, err := os.ReadFile(path + "2"); string(b) != "mine" {
		t.Errorf("the file of another program has %.20q, %v", b, err)
	}
}

func TestRefusedFiles(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good.db")
	srv := enginetest.Keep(t, good, nil)
	enginetest.Must(t, srv, "SET a 1", "SAVE")
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(whole)
	for at := range flipped { // whichever manifest is the current one
		if bytes.HasPrefix(flipped[at:], []byte(`"generation"`)) {
			flipped[at] ^= 1
		}
	}
	for name, test := range map[string]struct {
		content []byte
		want    error
	}{
		"zeros":     {make([]byte, 65536), snapshot.ErrForeign},
		"text":      {[]byte("# redis.conf\nport 6379\n"), snapshot.ErrForeign},
		"rdb":       {append([]byte("REDIS0010\xfa\tredis-ver\x057.0.0"), make([]byte, 20000)...), snapshot.ErrForeign},
		"truncated": {whole[:len(whole)/2], snapshot.ErrDamaged},
		"page":      {whole[:4096], snapshot.ErrDamaged},
		"flipped":   {flipped, snapshot.ErrDamaged},
	} {
		path := filepath.Join(dir, name+".db")
		if err := os.WriteFile(path, test.content, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := enginetest.OpenKeep(path, nil)
		var fe *engine.FileError
		if !errors.Is(err, test.want) || !errors.As(err, &fe) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, test.content) {
			t.Errorf("%s: the file was changed: %v", name, err)
		}
	}
	if _, err := enginetest.OpenKeep(filepath.Join(dir, "nowhere", "k.db"), nil); err == nil {
		t.Error("a directory that is not there")
	}
	if err := os.Mkdir(filepath.Join(dir, "d.db"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := enginetest.OpenKeep(filepath.Join(dir, "d.db"), nil); err == nil {
		t.Error("a directory in place of the file")
	}

	// The remainder of an incomplete rewrite does not prevent the start.
	for _, name := range []string{"good", "new"} {
		path := filepath.Join(dir, name+".db")
		if err := os.WriteFile(path+".new", flipped[:30000], 0o600); err != nil {
			t.Fatal(err)
		}
		srv := enginetest.Keep(t, path, nil)
		enginetest.Must(t, srv, "SET b 2", "BGREWRITEAOF")
		wait.Until(t, "it is rewritten", func() bool { return enginetest.Info(t, srv, "aof_rewrites") == "1" })
		enginetest.Must(t, srv, "SAVE")
		srv = enginetest.Again(t, srv, nil)
		enginetest.Must(t, srv, "GET b -> 2")
		if _, err := os.Stat(path + ".new"); err == nil {
			t.Error("the rest is still there")
		}
	}
}

// TestEmptyFile checks that a server starts with an empty file, and logs that.
func TestEmptyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	srv, err := enginetest.New(engine.Options{File: path, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "the data file is empty") {
		t.Errorf("the log says %q", &log)
	}
	enginetest.Must(t, srv, "DBSIZE -> 0", "SET a 1", "SAVE -> OK")
	srv = enginetest.Again(t, srv, nil)
	enginetest.Must(t, srv, "GET a -> 1")
}

// TestFailuresAreLoggedRarely checks that a persistent failure is logged once, and then at
// growing intervals, and that another error, a save on request, and the recovery are
// logged, too.
func TestFailuresAreLoggedRarely(t *testing.T) {
	var log bytes.Buffer
	srv, err := enginetest.New(engine.Options{File: filepath.Join(t.TempDir(), "k.db"), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	lines := 0
	more := func(what string, want int, f func(*persist.Keeper)) {
		t.Helper()
		srv.InTurn(func() {
			f(srv.Keeper)
			n := strings.Count(log.String(), "saving failed")
			if n-lines != want {
				t.Errorf("%s: %d lines in the log, want %d", what, n-lines, want)
			}
			lines = n
		})
	}
	full, broken := errors.New("disk full"), errors.New("disk broken")
	fail := func(k *persist.Keeper, err error) {
		k.Fail(persist.Result{Checkpoint: new(persist.Checkpoint), Err: err})
	}
	more("1000 failures", 1, func(k *persist.Keeper) {
		for range 1000 {
			fail(k, full)
		}
	})
	more("another error", 2, func(k *persist.Keeper) {
		for _, err := range []error{broken, broken, full, full} {
			fail(k, err)
		}
	})
	intervals := []time.Duration{}
	more("the time has come", 12, func(k *persist.Keeper) {
		for range 12 {
			k.Failures.Next = time.Now()
			fail(k, full)
			fail(k, full)
			intervals = append(intervals, k.Failures.Interval)
		}
	})
	if intervals[0] != 2*persist.FirstReminder || intervals[11] != persist.LastReminder {
		t.Errorf("the intervals are %v", intervals)
	}
	more("a client has asked", 2, func(k *persist.Keeper) {
		for range 2 {
			k.Fail(persist.Result{Checkpoint: new(persist.Checkpoint), Err: full, Requested: true})
		}
	})
	enginetest.Must(t, srv, "SAVE -> OK")
	srv.InTurn(func() {
		if !strings.Contains(log.String(), "saving succeeds again") || !strings.Contains(log.String(), "failures=1030") {
			t.Errorf("the end is not in the log: %s", &log)
		}
	})
	more("the next failure", 1, func(k *persist.Keeper) { fail(k, full) })
	enginetest.Must(t, srv, "SAVE -> OK")
}

// TestLoading checks that commands on data are refused while the data are loaded, and that
// INFO reports the progress.
func TestLoading(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k.db")
	srv := enginetest.Keep(t, path, nil)
	enginetest.Fill(srv, 150_000, 50)
	enginetest.Must(t, srv, "SAVE")
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	srv, err := enginetest.New(engine.Options{File: path})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	c := enginetest.Pipe(t, srv)
	refused, last := 0, int64(0)
	for loading := true; loading; {
		c.Send("GET fill:1\r\nPING\r\nSET a 1\r\nSAVE\r\nMULTI\r\nSET a 1\r\nEXEC\r\nCONFIG GET save\r\nLASTSAVE\r\nINFO persistence\r\n")
		var replies []string
		for range 10 {
			replies = append(replies, fmt.Sprint(c.Reply()))
		}
		info := replies[9]
		loading = strings.Contains(info, "loading:1\r\n")
		if strings.HasPrefix(replies[7], "LOADING") || strings.HasPrefix(replies[8], "LOADING") {
			t.Fatal("CONFIG GET and LASTSAVE are allowed while loading: ", replies[7:9])
		}
		if !loading {
			break
		}
		for i, want := range []string{engine.ErrLoading, engine.ErrLoading, engine.ErrLoading, engine.ErrLoading, "OK", engine.ErrLoading, "EXECABORT"} {
			if !strings.HasPrefix(replies[i], want) {
				t.Fatalf("reply %d while loading: %s", i, replies[i])
			}
		}
		refused++
		var done, total int64
		for line := range strings.Lines(info) {
			fmt.Sscanf(line, "loading_loaded_bytes:%d", &done)
			fmt.Sscanf(line, "loading_total_bytes:%d", &total)
		}
		if done < last || done > total {
			t.Fatalf("loaded %d of %d bytes, after %d", done, total, last)
		}
		last = done
	}
	if refused < 2 || last == 0 {
		t.Errorf("asked %d times while loading, %d bytes were loaded the last time", refused, last)
	}
	c.Send("DEL a\r\nDBSIZE\r\n")
	if c.Reply(); fmt.Sprint(c.Reply()) != "150000" {
		t.Error("not all keys are there")
	}
	if err := srv.Ready(context.Background()); err != nil {
		t.Error(err)
	}
}

// TestCloseWhileLoading checks that a server that is closed while loading does not change
// the file.
func TestCloseWhileLoading(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k.db")
	srv := enginetest.Keep(t, path, nil)
	enginetest.Fill(srv, 50_000, 50)
	enginetest.Must(t, srv, "SAVE")
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	for _, pause := range []time.Duration{0, 10 * time.Millisecond} {
		srv, err := enginetest.New(engine.Options{File: path})
		if err != nil {
			t.Fatal(err)
		}
		wait.Pace(pause)
		if err := srv.Close(); err != nil {
			t.Fatal(err)
		}
	}
	srv = enginetest.Keep(t, path, nil)
	enginetest.Must(t, srv, "DBSIZE -> 50000")
}

// TestOthersWaitForDisk checks that with appendfsync always nothing leaves the server that
// reports a change which the disk does not have yet: no reply to its client, none to a client
// that it wakes, no message, and no invalidation. While the files are held no change can be
// written; all that is withheld arrives afterwards.
func TestOthersWaitForDisk(t *testing.T) {
	for name, test := range map[string]struct{ prepare, listen, change, want string }{
		"BLPOP":        {"", "BLPOP k 0", "RPUSH k v", "[k v]"},
		"BRPOP":        {"", "BRPOP other k 0", "LPUSH k v w", "[k v]"},
		"BLMOVE":       {"", "BLMOVE k to LEFT LEFT 0", "RPUSH k v", "v"},
		"BLMPOP":       {"", "BLMPOP 0 1 k LEFT", "RPUSH k v", "[k [v]]"},
		"BZPOPMIN":     {"", "BZPOPMIN k 0", "ZADD k 1 v", "[k v 1]"},
		"BZMPOP":       {"", "BZMPOP 0 1 k MIN", "ZADD k 1 v", "[k [[v 1]]]"},
		"XREAD":        {"", "XREAD BLOCK 0 STREAMS k $", "XADD k 1-1 f v", "[[k [[1-1 [f v]]]]]"},
		"XREADGROUP":   {"XGROUP CREATE k g $ MKSTREAM", "XREADGROUP GROUP g c BLOCK 0 STREAMS k >", "XADD k 1-1 f v", "[[k [[1-1 [f v]]]]]"},
		"group ends":   {"XGROUP CREATE k g $ MKSTREAM", "XREADGROUP GROUP g c BLOCK 0 STREAMS k >", "DEL k", "NOGROUP"},
		"script":       {"", "BLPOP k 0", `EVAL "return redis.call('rpush', KEYS[1], 'v')" 1 k`, "[k v]"},
		"rename":       {"RPUSH from v", "BLPOP k 0", "RENAME from k", "[k v]"},
		"message":      {"", "SUBSCRIBE k", `EVAL "redis.call('set', 'x', '1') redis.call('publish', 'k', 'v')" 0`, "[message k v]"},
		"event":        {"CONFIG SET notify-keyspace-events KEA", "SUBSCRIBE __keyevent@0__:set", "SET k v", "[message __keyevent@0__:set k]"},
		"invalidation": {"", "CLIENT TRACKING ON BCAST", "SET k v", "[invalidate [k]]"},
	} {
		for _, transport := range []string{"epoll", "net"} {
			t.Run(name+"/"+transport, func(t *testing.T) {
				t.Parallel()
				srv, addr := enginetest.StartWith(t, engine.Options{File: filepath.Join(t.TempDir(), "k.db"),
					Config: map[string]string{"appendonly": "yes", "appendfsync": "always", "transport": transport}})
				srv.InTurn(func() { srv.Keeper.Limits.Direct = time.Hour })
				if test.prepare != "" {
					enginetest.Must(t, srv, test.prepare)
				}
				enginetest.Must(t, srv, "SET before 1") // so that a checkpoint was timed
				listener, client := enginetest.Dial(t, addr), enginetest.Dial(t, addr)
				if name == "invalidation" {
					listener.Send("HELLO 3\r\n")
					listener.Reply()
				}
				listener.Send(test.listen + "\r\n")
				if strings.HasPrefix(test.listen, "SUBSCRIBE") || name == "invalidation" {
					listener.Reply()
				} else {
					wait.Until(t, "the client waits", func() bool { return enginetest.Info(t, srv, "blocked_clients") == "1" })
				}
				client.Send("PING\r\n")
				client.Expect("PONG")
				release := sync.OnceFunc(srv.Keeper.HoldFiles())
				defer release()
				client.Send(test.change + "\r\n")
				n := 0
				wait.Until(t, "the change is made", func() bool {
					srv.OutOfTurn(func() { n = srv.WithheldSessions() })
					return n > 0
				})
				if n != 2 {
					t.Errorf("the output of %d clients waits for the disk, not that of both", n)
				}
				release()
				if got := fmt.Sprint(listener.Reply()); !strings.HasPrefix(got, test.want) {
					t.Errorf("the listener got %s, want %s", got, test.want)
				}
				if got := fmt.Sprint(client.Reply()); strings.HasPrefix(got, "ERR") {
					t.Errorf("the client got %s", got)
				}
				client.Send("DEL k\r\nSET k 1\r\nGET k\r\n")
				client.Conn.(*net.TCPConn).CloseWrite()
				if got := client.All(); !strings.HasSuffix(got, "+OK\r\n$1\r\n1\r\n") {
					t.Errorf("a client that sends no more got %q", got)
				}
			})
		}
	}
}
