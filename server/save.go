package server

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/archive"
	"github.com/zsetd/zsetd/server/keyspace"
)

// saveCommands are the commands about the data file, see keep.go.
func saveCommands() []Command {
	return []Command{
		{Facts: protocol.Facts{
			Name: "bgrewriteaof", Arity: 1, Flags: "admin noscript no_async_loading",
			Group: "server", Since: "1.0.0", Complexity: "O(1)",
			Summary: "Asynchronously rewrite the append-only file",
		}, run: bgrewriteaof},
		{Facts: protocol.Facts{
			Name: "bgsave", Arity: -1, Flags: "admin noscript no_async_loading",
			Group: "server", Since: "1.0.0", Complexity: "O(1)",
			Summary: "Asynchronously save the dataset to disk",
			Syntax:  "[SCHEDULE@3.2.2]",
			History: []string{"3.2.2 Added the `SCHEDULE` option."},
		}, run: bgsave},
		{Facts: protocol.Facts{
			Name: "lastsave", Arity: 1, Flags: "loading stale fast",
			Group: "server", Since: "1.0.0", Categories: "admin dangerous", Tips: "nondeterministic_output",
			Complexity: "O(1)",
			Summary:    "Get the UNIX time stamp of the last successful save to disk",
		}, run: lastsave},
		{Facts: protocol.Facts{
			Name: "save", Arity: 1, Flags: "admin noscript no_async_loading no_multi",
			Group: "server", Since: "1.0.0", Complexity: "O(N) where N is the total number of keys in all databases",
			Summary: "Synchronously save the dataset to disk",
		}, run: save},
	}
}

const (
	errNotSaved = "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. " +
		"Commands that may modify the data set are disabled, because this instance is configured to report errors during " +
		"writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check the Redis logs for details " +
		"about the RDB error."
	errSaving = "ERR Background save already in progress"
	errNoFile = "ERR there is no file to save to: dbfilename is empty"
)

func save(c *Call) {
	k := c.srv.keeper
	switch {
	case k.path == "":
		c.Reply.Error(errNoFile)
	case k.saveRequested || k.saving:
		c.Reply.Error(errSaving)
	case k.saveNow() != nil:
		c.Reply.Error("ERR") // Redis's reply; the log has the reason
	default:
		c.Reply.OK()
	}
}

func bgsave(c *Call) {
	if c.More() && !c.Is("SCHEDULE") || c.More() {
		c.Fail(protocol.ErrSyntax)
	}
	if !c.ok() {
		return
	}
	k := c.srv.keeper
	switch {
	case k.path == "":
		c.Reply.Error(errNoFile)
	case k.saveRequested || k.saving:
		c.Reply.Error(errSaving)
	default:
		k.saveRequested = true
		k.wake()
		c.Reply.Status("Background saving started")
	}
}

func lastsave(c *Call) { c.Reply.Int(c.srv.keeper.savedAt.Unix()) }

// bgrewriteaof rewrites the whole file, which is the purpose of the command.
func bgrewriteaof(c *Call) {
	k := c.srv.keeper
	switch {
	case k.path == "":
		c.Reply.Error(errNoFile)
	case k.rewrite != nil || k.wantsFresh:
		c.Reply.Error("ERR Background append only file rewriting already in progress")
	default:
		k.wantsFresh = true
		k.wake()
		c.Reply.Status("Background append only file rewriting started")
	}
}

// debugReload saves the data and reads them back.
func debugReload(c *Call) {
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
	if !c.ok() {
		return
	}
	if err := c.srv.reload(write, flush, merge); err != nil {
		c.srv.log.Error("DEBUG RELOAD", "error", err)
		c.Reply.Error("ERR Error trying to load the RDB dump, check server logs.")
		return
	}
	c.srv.log.Warn("DB reloaded by DEBUG RELOAD")
	c.Reply.OK()
}

// debugLoadaof is DEBUG RELOAD: there is one file, which contains what an AOF
// would.
func debugLoadaof(c *Call) {
	if err := c.srv.reload(true, true, false); err != nil {
		c.srv.log.Error("DEBUG LOADAOF", "error", err)
		c.Reply.Error("ERR Error trying to load the AOF files, check server logs.")
		return
	}
	c.srv.log.Warn("Append Only File loaded by DEBUG LOADAOF")
	c.Reply.OK()
}

// reload replaces the data by the content of the file, or without flush adds it to
// them. With write the data are saved first; if there is no data file, then in a
// temporary file.
func (srv *Server) reload(write, flush, merge bool) error {
	k := srv.keeper
	srv.keys.Seal()
	path := k.path
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
		if _, err := archive.Save(path, srv.keys, nil); err != nil {
			return err
		}
	case write:
		if err := k.saveNow(); err != nil {
			return err
		}
	}
	k.io.Lock() // excludes other writers meanwhile
	defer k.io.Unlock()
	n := srv.keys.Len()
	loaded := keyspace.New(n, keyspace.Hooks{})
	loaded.Limits, loaded.Frequency = srv.keys.Limits, srv.keys.Frequency
	loaded.SetNow(srv.keys.Now())
	loader := archive.Loader{Keys: loaded}
	if err := loader.Read(path); err != nil {
		return err
	}
	if flush {
		srv.scope.flushed()
	}
	if flush && k.path != "" {
		srv.keys.Adopt(loaded)
		if write && k.automatic() {
			srv.keys.Record(true)
			for _, p := range loader.Past() {
				srv.keys.DB(p.DB.ID()).Forget(p.Key)
			}
		} else {
			k.loseTrack() // without write, unsaved changes are gone from memory, not from the journal
		}
		srv.loaded(srv)
		return nil
	}
	for i := keyspace.InternalDB; i < n; i++ {
		db := srv.keys.DB(i)
		if flush && i != keyspace.InternalDB {
			db.Clear()
		}
		for e := range loaded.DB(i).All() {
			key := bytesOf(e.Key())
			if db.Peek(key) != nil && !merge && !flush {
				return fmt.Errorf("key %q exists", e.Key())
			}
			db.SetDeadline(db.Put(key, e.Value(), false), e.Deadline())
		}
	}
	srv.keys.Seal()
	srv.loaded(srv)
	return nil
}

// mayWhileLoading reports whether a command is allowed before the data are loaded.
func (s *Session) mayWhileLoading(cmd *Command) bool {
	if cmd.Name == "exec" {
		for _, q := range s.queue {
			if q.cmd.spec.Flags()&protocol.Loading == 0 {
				return false
			}
		}
	}
	return cmd.spec.Flags()&protocol.Loading != 0
}

// saveRules is the parameter save.
func saveRules() parameter {
	return parameter{
		name: "save", lines: true, several: true,
		doc: "Save rules: pairs of an interval in seconds and a number of changes. `1 1` saves every second if there is a change; " +
			"empty disables saving. The default is `1 1` if there is a data file.",
		get: func(c *config) string {
			var words []string
			for _, r := range c.save {
				words = append(words, strconv.FormatInt(r.seconds, 10), strconv.FormatInt(r.changes, 10))
			}
			return strings.Join(words, " ")
		},
		set: func(c *config, s string) error {
			words := strings.Fields(s)
			var rules []saveRule
			for i := 0; i < len(words); i += 2 {
				if i+1 == len(words) {
					return errSaveRules
				}
				seconds, ok1 := protocol.ParseInt([]byte(words[i]))
				changes, ok2 := protocol.ParseInt([]byte(words[i+1]))
				if !ok1 || !ok2 || seconds < 1 || seconds > math.MaxInt32 || changes < 0 {
					return errSaveRules
				}
				rules = append(rules, saveRule{seconds, changes})
			}
			c.save = rules
			return nil
		},
	}
}

// directory is the parameter dir.
func directory() parameter {
	p := text("dir", ".", func(c *config) *string { return &c.dir })
	p.get = func(c *config) string {
		if path, err := filepath.Abs(c.dir); err == nil {
			return path
		}
		return c.dir
	}
	return p.check(func(s string) error {
		if info, err := os.Stat(s); err != nil {
			return err
		} else if !info.IsDir() {
			return fmt.Errorf("%s: not a directory", s)
		}
		return nil
	})
}

// isFileName refuses paths.
func isFileName(s string) error {
	if s != "" && (s != filepath.Base(s) || s == "." || s == "..") {
		return errors.New("dbfilename can't be a path, just a filename")
	}
	return nil
}

func (srv *Server) infoPersistence(t *infoText) {
	k := srv.keeper
	t.title("Persistence")
	t.int("loading", btoi(k.loading != nil))
	t.zeros("async_loading", "current_cow_peak", "current_cow_size", "current_cow_size_age")
	t.fixed("current_fork_perc", 0, 2)
	done, all := 0, 0
	if k.rewrite != nil {
		done, all = k.rewrite.at, len(k.rewrite.keys)
	}
	t.int("current_save_keys_processed", int64(done))
	t.int("current_save_keys_total", int64(all))
	t.int("rdb_changes_since_last_save", srv.scope.changes-k.saved)
	saving, status, current := int64(0), "ok", int64(-1)
	if k.saveRequested || k.saving || k.needsFresh && k.rewrite != nil {
		saving, current = 1, int64(time.Since(k.saveStarted).Seconds())
	}
	if k.failed != nil {
		status = "err"
	}
	t.int("rdb_bgsave_in_progress", saving)
	t.int("rdb_last_save_time", k.savedAt.Unix())
	t.text("rdb_last_bgsave_status", status)
	t.int("rdb_last_bgsave_time_sec", int64(k.saveDuration/time.Second))
	t.int("rdb_current_bgsave_time_sec", current)
	t.int("rdb_saves", k.saves)
	t.zeros("rdb_last_cow_size")
	t.int("rdb_last_load_keys_expired", k.expiredKeys)
	t.int("rdb_last_load_keys_loaded", k.loadedKeys)
	t.int("aof_enabled", btoi(srv.config.appendonly))
	t.int("aof_rewrite_in_progress", btoi(k.rewrite != nil))
	t.zeros("aof_rewrite_scheduled")
	t.int("aof_last_rewrite_time_sec", -1)
	t.int("aof_current_rewrite_time_sec", -1)
	rewritten := status
	if !k.rewriteFailedAt.IsZero() {
		rewritten = "err"
	}
	t.text("aof_last_bgrewrite_status", rewritten)
	t.int("aof_rewrites", k.rewrites)
	t.zeros("aof_rewrites_consecutive_failures")
	t.text("aof_last_write_status", status)
	t.zeros("aof_last_cow_size", "module_fork_in_progress", "module_fork_last_cow_size")
	if k.path != "" {
		t.text("snapshot_file", k.path)
		t.int("snapshot_generation", int64(k.stats.generation))
		t.int("snapshot_file_bytes", k.stats.size)
		t.int("snapshot_file_used_bytes", k.stats.used)
		t.int("snapshot_bases_bytes", k.stats.bases)
		t.int("snapshot_journal_bytes", k.stats.journal)
		t.int("snapshot_pending_bytes", int64(srv.keys.Recorded()))
		t.int("snapshot_held_clients", int64(len(k.held)))
	}
	if k.failed != nil {
		t.text("snapshot_last_error", k.failed.Error())
	}
	if l := k.loading; l != nil {
		srv.infoLoading(t, l)
	}
}

// infoLoading writes the progress of loading the data.
func (srv *Server) infoLoading(t *infoText, l *loadState) {
	elapsed := time.Since(l.start).Seconds()
	part := ratio(l.done, l.total)
	eta := int64(1)
	if l.done > 0 {
		eta = int64(elapsed * float64(l.total-l.done) / float64(l.done))
	}
	t.int("loading_start_time", l.start.Unix())
	t.int("loading_total_bytes", l.total)
	t.int("loading_rdb_used_mem", 0)
	t.int("loading_loaded_bytes", l.done)
	t.fixed("loading_loaded_perc", 100*part, 2)
	t.int("loading_eta_seconds", eta)
}

func btoi(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
