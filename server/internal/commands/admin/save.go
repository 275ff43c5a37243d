package admin

import (
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/metrics"
	"github.com/zsetd/zsetd/server/internal/engine/persist"
)

// SaveCommands are the commands about the data file, see package persist.
func SaveCommands() []engine.Command {
	return []engine.Command{
		{Facts: protocol.Facts{
			Name: "bgrewriteaof", Arity: 1, Flags: "admin noscript no_async_loading",
			Group: "server", Since: "1.0.0", Complexity: "O(1), and O(N) in the background, N keys",
			Summary: "Write a new data file in the background, without unused space",
		}, Run: bgrewriteaof},
		{Facts: protocol.Facts{
			Name: "bgsave", Arity: -1, Flags: "admin noscript no_async_loading",
			Group: "server", Since: "1.0.0", Complexity: "O(1), and O(N) in the background, N keys changed",
			Summary: "Save the changes in the background",
			Syntax:  "[SCHEDULE@3.2.2]",
			History: []string{"3.2.2 `SCHEDULE`"},
		}, Run: bgsave},
		{Facts: protocol.Facts{
			Name: "lastsave", Arity: 1, Flags: "loading stale fast",
			Group: "server", Since: "1.0.0", Categories: "admin dangerous", Tips: "nondeterministic_output",
			Complexity: "O(1)",
			Summary:    "Unix time of the last save",
		}, Run: lastsave},
		{Facts: protocol.Facts{
			Name: "save", Arity: 1, Flags: "admin noscript no_async_loading no_multi",
			Group: "server", Since: "1.0.0", Complexity: "O(N), N keys changed since the last save",
			Summary: "Save the changes, and reply when they are on disk",
		}, Run: save},
	}
}

// ErrSaving and ErrNoFile are errors of SAVE and its relatives.
const (
	ErrSaving = "ERR Background save already in progress"
	ErrNoFile = "ERR there is no file to save to: dbfilename is empty"
)

func save(c *engine.Call) {
	k := c.Engine.Keeper
	switch {
	case k.Path == "":
		c.Reply.Error(ErrNoFile)
	case k.SaveRequested || k.Saving:
		c.Reply.Error(ErrSaving)
	case c.Engine.SaveNow() != nil:
		c.Reply.Error("ERR") // Redis's reply; the log has the reason
	default:
		c.Reply.OK()
	}
}

func bgsave(c *engine.Call) {
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
		if c.Nested {
			c.Reply.Status("Background saving scheduled")
		} else {
			c.Reply.Status("Background saving started")
		}
	}
}

func lastsave(c *engine.Call) { c.Reply.Int(c.Engine.Keeper.Status().SavedAt.Unix()) }

// bgrewriteaof rewrites the whole file, which is the purpose of the command.
func bgrewriteaof(c *engine.Call) {
	k := c.Engine.Keeper
	switch {
	case k.Path == "":
		c.Reply.Error(ErrNoFile)
	case k.Rewrite != nil || k.WantsFresh:
		c.Reply.Error("ERR Background append only file rewriting already in progress")
	default:
		k.WantsFresh = true
		k.Wake()
		if c.Nested {
			c.Reply.Status("Background append only file rewriting scheduled")
		} else {
			c.Reply.Status("Background append only file rewriting started")
		}
	}
}

// debugReload saves the data and reads them back.
func debugReload(c *engine.Call) {
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
	if err := c.Engine.Reload(write, flush, merge); err != nil {
		c.Engine.Log.Error("DEBUG RELOAD", "error", err)
		c.Reply.Error("ERR Error trying to load the RDB dump, check server logs.")
		return
	}
	c.Engine.Log.Warn("DEBUG RELOAD: data loaded")
	c.Reply.OK()
}

// debugLoadaof is DEBUG RELOAD: there is one file, which contains what an AOF
// would.
func debugLoadaof(c *engine.Call) {
	if err := c.Engine.Reload(true, true, false); err != nil {
		c.Engine.Log.Error("DEBUG LOADAOF", "error", err)
		c.Reply.Error("ERR Error trying to load the AOF files, check server logs.")
		return
	}
	c.Engine.Log.Warn("DEBUG LOADAOF: data loaded")
	c.Reply.OK()
}

// infoPersistence appends the section Persistence of INFO.
func infoPersistence(srv *engine.Engine, t *metrics.Text) {
	k := srv.Keeper
	now, replication := k.Status(), srv.Replication.Status()
	t.Title("Persistence")
	t.Int("loading", btoi(k.Loading != nil))
	t.Int("async_loading", btoi(srv.Replica.Replacing))
	t.Zeros("current_cow_peak", "current_cow_size", "current_cow_size_age")
	t.Fixed("current_fork_perc", 0, 2)
	t.Int("current_save_keys_processed", int64(now.Rewritten))
	t.Int("current_save_keys_total", int64(now.Keys))
	t.Int("rdb_changes_since_last_save", now.Unsaved)
	// In Redis a child sends all data to replicas, too.
	status, current, saving := "ok", int64(-1), now.InProgress || !replication.TransferBegan.IsZero()
	switch {
	case now.InProgress:
		current = int64(time.Since(now.Started).Seconds())
	case saving:
		current = int64(time.Since(replication.TransferBegan).Seconds())
	}
	if k.Failed != nil {
		status = "err"
	}
	t.Int("rdb_bgsave_in_progress", btoi(saving))
	t.Int("rdb_last_save_time", now.SavedAt.Unix())
	t.Field("rdb_last_bgsave_status", status)
	t.Int("rdb_last_bgsave_time_sec", int64(now.Duration/time.Second))
	t.Int("rdb_current_bgsave_time_sec", current)
	t.Field("checkpoint_histogram_usec", timesOf(&now.Times))
	t.Int("rdb_saves", now.Saves)
	t.Int("rdb_saves_consecutive_failures", int64(now.Failures))
	t.Zeros("rdb_last_cow_size")
	t.Int("rdb_last_load_keys_expired", now.Expired)
	t.Int("rdb_last_load_keys_loaded", now.Loaded)
	t.Int("aof_enabled", btoi(srv.Config.Appendonly))
	t.Int("aof_rewrite_in_progress", btoi(k.Rewrite != nil))
	t.Zeros("aof_rewrite_scheduled")
	t.Int("aof_last_rewrite_time_sec", -1)
	t.Int("aof_current_rewrite_time_sec", -1)
	rewritten := status
	if now.RewriteFailed {
		rewritten = "err"
	}
	t.Field("aof_last_bgrewrite_status", rewritten)
	t.Int("aof_rewrites", now.Rewrites)
	t.Zeros("aof_rewrites_consecutive_failures")
	t.Field("aof_last_write_status", status)
	t.Zeros("aof_last_cow_size", "module_fork_in_progress", "module_fork_last_cow_size")
	last := srv.Backups.Last
	t.Int("backup_last_time", max(0, last.At.Unix()))
	backup := "ok"
	if last.Failed {
		backup = "err"
	}
	t.Field("backup_last_status", backup)
	t.Field("backup_last_file", last.File)
	t.Int("backup_last_duration_sec", int64(last.Took/time.Second))
	t.Int("backups_kept", int64(last.Kept))
	if srv.Config.Appendonly { // the file has bases, and a journal of the changes since, but for the latest
		t.Int("aof_current_size", k.Stats.Bases+k.Stats.Journal+int64(srv.Keys.Recorded()))
		t.Int("aof_base_size", k.Stats.Bases)
		t.Int("aof_buffer_length", int64(srv.Keys.Recorded()))
		t.Int("aof_pending_bio_fsync", btoi(now.InProgress))
		t.Zeros("aof_pending_rewrite", "aof_delayed_fsync")
	}
	if k.Path != "" {
		t.Field("snapshot_file", k.Path)
		t.Int("snapshot_generation", int64(k.Stats.Generation))
		t.Int("snapshot_file_bytes", k.Stats.Size)
		t.Int("snapshot_file_used_bytes", k.Stats.Used)
		t.Int("snapshot_bases_bytes", k.Stats.Bases)
		t.Int("snapshot_journal_bytes", k.Stats.Journal)
		t.Int("snapshot_pending_bytes", int64(srv.Keys.Recorded()))
		t.Int("snapshot_held_clients", int64(srv.WithheldSessions()))
	}
	if k.Failed != nil {
		t.Field("snapshot_last_error", k.Failed.Error())
	}
	if l := k.Loading; l != nil {
		infoLoading(t, l)
	}
}

// infoLoading writes the progress of loading the data.
func infoLoading(t *metrics.Text, l *persist.LoadState) {
	elapsed := time.Since(l.Start).Seconds()
	part := metrics.Ratio(l.Done, l.Total)
	eta := int64(1)
	if l.Done > 0 {
		eta = int64(elapsed * float64(l.Total-l.Done) / float64(l.Done))
	}
	t.Int("loading_start_time", l.Start.Unix())
	t.Int("loading_total_bytes", l.Total)
	t.Int("loading_rdb_used_mem", 0)
	t.Int("loading_loaded_bytes", l.Done)
	t.Fixed("loading_loaded_perc", 100*part, 2)
	t.Int("loading_eta_seconds", eta)
}

func btoi(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
