package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/archive"
	"github.com/zsetd/zsetd/server/internal/keyspace"
)

// SaveCommands are the commands about the data file, see keep.go.
func SaveCommands() []Command {
	return []Command{
		bgrewriteaofRow(),
		bgsaveRow(),
		lastsaveRow(),
		saveRow(),
	}
}

// ErrNotSaved is an error of SAVE and its relatives.
const (
	ErrNotSaved = "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. " +
		"Commands that may modify the data set are disabled, because this instance is configured to report errors during " +
		"writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check the Redis logs for details " +
		"about the RDB error."
	ErrSaving = "ERR Background save already in progress"
	ErrNoFile = "ERR there is no file to save to: dbfilename is empty"
)

func saveRow() Command {
	return Command{Facts: protocol.Facts{
		Name: "save", Arity: 1, Flags: "admin noscript no_async_loading no_multi",
		Group: "server", Since: "1.0.0", Complexity: "O(N) where N is the total number of keys in all databases",
		Summary: "Synchronously save the dataset to disk",
	}, Run: save}
}

func save(c *Call) {
	k := c.Engine.Keeper
	switch {
	case k.Path == "":
		c.Reply.Error(ErrNoFile)
	case k.SaveRequested || k.Saving:
		c.Reply.Error(ErrSaving)
	case k.SaveNow() != nil:
		c.Reply.Error("ERR") // Redis's reply; the log has the reason
	default:
		c.Reply.OK()
	}
}

func bgsaveRow() Command {
	return Command{Facts: protocol.Facts{
		Name: "bgsave", Arity: -1, Flags: "admin noscript no_async_loading",
		Group: "server", Since: "1.0.0", Complexity: "O(1)",
		Summary: "Asynchronously save the dataset to disk",
		Syntax:  "[SCHEDULE@3.2.2]",
		History: []string{"3.2.2 Added the `SCHEDULE` option."},
	}, Run: bgsave}
}

func bgsave(c *Call) {
	if c.More() && !c.Is("SCHEDULE") || c.More() {
		c.Fail(protocol.ErrSyntax)
	}
	if !c.OK() {
		return
	}
	k := c.Engine.Keeper
	switch {
	case k.Path == "":
		c.Reply.Error(ErrNoFile)
	case k.SaveRequested || k.Saving:
		c.Reply.Error(ErrSaving)
	default:
		k.SaveRequested = true
		k.Wake()
		c.Reply.Status("Background saving started")
	}
}

func lastsaveRow() Command {
	return Command{Facts: protocol.Facts{
		Name: "lastsave", Arity: 1, Flags: "loading stale fast",
		Group: "server", Since: "1.0.0", Categories: "admin dangerous", Tips: "nondeterministic_output",
		Complexity: "O(1)",
		Summary:    "Get the UNIX time stamp of the last successful save to disk",
	}, Run: lastsave}
}

func lastsave(c *Call) { c.Reply.Int(c.Engine.Keeper.savedAt.Unix()) }

func bgrewriteaofRow() Command {
	return Command{Facts: protocol.Facts{
		Name: "bgrewriteaof", Arity: 1, Flags: "admin noscript no_async_loading",
		Group: "server", Since: "1.0.0", Complexity: "O(1)",
		Summary: "Asynchronously rewrite the append-only file",
	}, Run: bgrewriteaof}
}

// bgrewriteaof rewrites the whole file, which is the purpose of the command.
func bgrewriteaof(c *Call) {
	k := c.Engine.Keeper
	switch {
	case k.Path == "":
		c.Reply.Error(ErrNoFile)
	case k.Rewrite != nil || k.WantsFresh:
		c.Reply.Error("ERR Background append only file rewriting already in progress")
	default:
		k.WantsFresh = true
		k.Wake()
		c.Reply.Status("Background append only file rewriting started")
	}
}

// DebugReload saves the data and reads them back.
func DebugReload(c *Call) {
	flush, write, merge := true, true, false
	for c.More() {
		switch {
		case c.Is("MERGE"):
			merge = true
		case c.Is("NOFLUSH"):
			flush = false
		case c.Is("NOSAVE"):
			write = false
		default:
			c.Fail("ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.")
		}
	}
	if !c.OK() {
		return
	}
	if err := c.Engine.reload(write, flush, merge); err != nil {
		c.Engine.Log.Error("DEBUG RELOAD", "error", err)
		c.Reply.Error("ERR Error trying to load the RDB dump, check server logs.")
		return
	}
	c.Engine.Log.Warn("DB reloaded by DEBUG RELOAD")
	c.Reply.OK()
}

// DebugLoadaof is DEBUG RELOAD: there is one file, which contains what an AOF
// would.
func DebugLoadaof(c *Call) {
	if err := c.Engine.reload(true, true, false); err != nil {
		c.Engine.Log.Error("DEBUG LOADAOF", "error", err)
		c.Reply.Error("ERR Error trying to load the AOF files, check server logs.")
		return
	}
	c.Engine.Log.Warn("Append Only File loaded by DEBUG LOADAOF")
	c.Reply.OK()
}

// reload replaces the data by the content of the file, or without flush adds it to
// them. With write the data are saved first; if there is no data file, then in a
// temporary file.
func (srv *Engine) reload(write, flush, merge bool) error {
	k := srv.Keeper
	srv.Keys.Seal()
	path := k.Path
	switch {
	case path == "" && !write:
		return errors.New("there is no data file")
	case path == "":
		dir, err := os.MkdirTemp("", "zsetd")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		path = filepath.Join(dir, "copy.db")
		if _, err := archive.Save(path, srv.Keys, nil); err != nil {
			return err
		}
	case write:
		if err := k.SaveNow(); err != nil {
			return err
		}
	}
	k.IO.Lock() // excludes other writers meanwhile
	defer k.IO.Unlock()
	n := srv.Keys.Len()
	loaded := keyspace.New(n, keyspace.Hooks{})
	loaded.Limits, loaded.Frequency = srv.Keys.Limits, srv.Keys.Frequency
	loaded.SetNow(srv.Keys.Now())
	loader := archive.Loader{Keys: loaded}
	if err := loader.Read(path); err != nil {
		return err
	}
	if flush {
		srv.Scope.Flushed()
	}
	if flush && k.Path != "" {
		srv.Keys.Adopt(loaded)
		if write && k.Automatic() {
			srv.Keys.Record(true)
			for _, p := range loader.Past() {
				srv.Keys.DB(p.DB.ID()).Forget(p.Key)
			}
		} else {
			k.LoseTrack() // without write, unsaved changes are gone from memory, not from the journal
		}
		srv.loaded(srv)
		return nil
	}
	for i := keyspace.InternalDB; i < n; i++ {
		db := srv.Keys.DB(i)
		if flush && i != keyspace.InternalDB {
			db.Clear()
		}
		for e := range loaded.DB(i).All() {
			key := protocol.BytesOf(e.Key())
			if db.Peek(key) != nil && !merge && !flush {
				return fmt.Errorf("key %q exists", e.Key())
			}
			db.SetDeadline(db.Put(key, e.Value(), false), e.Deadline())
		}
	}
	srv.Keys.Seal()
	srv.loaded(srv)
	return nil
}

// InfoPersistence appends the section Persistence of INFO.
func (srv *Engine) InfoPersistence(t *InfoText) {
	k := srv.Keeper
	t.Title("Persistence")
	t.Int("loading", btoi(k.Loading != nil))
	t.Zeros("async_loading", "current_cow_peak", "current_cow_size", "current_cow_size_age")
	t.Fixed("current_fork_perc", 0, 2)
	done, all := 0, 0
	if k.Rewrite != nil {
		done, all = k.Rewrite.at, len(k.Rewrite.Keys)
	}
	t.Int("current_save_keys_processed", int64(done))
	t.Int("current_save_keys_total", int64(all))
	t.Int("rdb_changes_since_last_save", srv.Changes-k.saved)
	saving, status, current := int64(0), "ok", int64(-1)
	if k.SaveRequested || k.Saving || k.NeedsFresh && k.Rewrite != nil {
		saving, current = 1, int64(time.Since(k.saveStarted).Seconds())
	}
	if k.Failed != nil {
		status = "err"
	}
	t.Int("rdb_bgsave_in_progress", saving)
	t.Int("rdb_last_save_time", k.savedAt.Unix())
	t.Text("rdb_last_bgsave_status", status)
	t.Int("rdb_last_bgsave_time_sec", int64(k.saveDuration/time.Second))
	t.Int("rdb_current_bgsave_time_sec", current)
	t.Int("rdb_saves", k.saves)
	t.Zeros("rdb_last_cow_size")
	t.Int("rdb_last_load_keys_expired", k.expiredKeys)
	t.Int("rdb_last_load_keys_loaded", k.loadedKeys)
	t.Int("aof_enabled", btoi(srv.Config.Appendonly))
	t.Int("aof_rewrite_in_progress", btoi(k.Rewrite != nil))
	t.Zeros("aof_rewrite_scheduled")
	t.Int("aof_last_rewrite_time_sec", -1)
	t.Int("aof_current_rewrite_time_sec", -1)
	rewritten := status
	if !k.RewriteFailedAt.IsZero() {
		rewritten = "err"
	}
	t.Text("aof_last_bgrewrite_status", rewritten)
	t.Int("aof_rewrites", k.rewrites)
	t.Zeros("aof_rewrites_consecutive_failures")
	t.Text("aof_last_write_status", status)
	t.Zeros("aof_last_cow_size", "module_fork_in_progress", "module_fork_last_cow_size")
	if k.Path != "" {
		t.Text("snapshot_file", k.Path)
		t.Int("snapshot_generation", int64(k.Stats.Generation))
		t.Int("snapshot_file_bytes", k.Stats.size)
		t.Int("snapshot_file_used_bytes", k.Stats.used)
		t.Int("snapshot_bases_bytes", k.Stats.bases)
		t.Int("snapshot_journal_bytes", k.Stats.journal)
		t.Int("snapshot_pending_bytes", int64(srv.Keys.Recorded()))
		t.Int("snapshot_held_clients", int64(len(k.held)))
	}
	if k.Failed != nil {
		t.Text("snapshot_last_error", k.Failed.Error())
	}
	if l := k.Loading; l != nil {
		srv.infoLoading(t, l)
	}
}

// infoLoading writes the progress of loading the data.
func (srv *Engine) infoLoading(t *InfoText, l *LoadState) {
	elapsed := time.Since(l.Start).Seconds()
	part := Ratio(l.done, l.total)
	eta := int64(1)
	if l.done > 0 {
		eta = int64(elapsed * float64(l.total-l.done) / float64(l.done))
	}
	t.Int("loading_start_time", l.Start.Unix())
	t.Int("loading_total_bytes", l.total)
	t.Int("loading_rdb_used_mem", 0)
	t.Int("loading_loaded_bytes", l.done)
	t.Fixed("loading_loaded_perc", 100*part, 2)
	t.Int("loading_eta_seconds", eta)
}

func btoi(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
