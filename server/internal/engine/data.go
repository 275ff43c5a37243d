package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/archive"
	"github.com/zsetd/zsetd/server/internal/engine/persist"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/rdb"
)

// ErrServerClosed is returned by Serve, ListenAndServe, Do, Ready and what Dialer
// returns after Shutdown or Close.
var ErrServerClosed = persist.ErrServerClosed

// FileError is returned by New and Ready if the data file cannot be used.
type FileError = persist.FileError

// ErrLoading is the reply to commands that need the data during loading. ErrNotSaved is
// the reply to commands that write while saving fails.
const (
	ErrLoading  = "LOADING Redis is loading the dataset in memory"
	ErrNotSaved = "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. " +
		"Commands that may modify the data set are disabled, because this instance is configured to report errors during " +
		"writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check the Redis logs for details " +
		"about the RDB error."
)

// host is the engine as the keeper sees it, see persist.Host.
type host struct{ *Engine }

// Changes returns the number of changes of keys so far.
func (h host) Changes() int64 { return h.Stats.Changes }

// Counted returns the number of these that INFO counts.
func (h host) Counted() int64 { return h.Stats.Changes - h.Stats.Uncounted }

// At returns the time of the turn.
func (h host) At() time.Time { return h.Turn.At }

// Stream returns the position of the changes so far in the stream of replication.
func (h host) Stream(exact bool) *persist.Stream { return h.Replication.Position(exact) }

// Continue continues the stream of replication after a restart.
func (h host) Continue(s persist.Stream) { h.Replication.Continue(s) }

// Loaded is called when the data have been loaded.
func (h host) Loaded() {
	h.loadLibraries()
	h.Memory.MoreToEvict = h.Config.Maxmemory != 0 // the timer checks the limit
	h.Queries.markAll(-1)
}

// Durable resumes the sessions whose changes are on the disk, and returns their number.
func (h host) Durable() (released int) {
	waiting := len(h.withheld)
	h.withheld = slices.DeleteFunc(h.withheld, func(s *Session) bool {
		if !h.Keeper.Saved(s.Stall.withheldFor) && h.Keeper.Always() {
			return false
		}
		s.Stall.withheld = false
		if s.Stall.Blocked == nil && s.Stall.postponed == nil && !s.awaitsReplies() {
			s.resume()
		} else {
			s.pending()
		}
		return true
	})
	h.Replication.Saved()
	return waiting - len(h.withheld)
}

// Failed ends the sessions that wait for a confirmation which cannot be given.
func (h host) Failed() {
	for _, s := range h.withheld {
		s.Stall.withheld = false
		s.Kill()
	}
	h.withheld = nil
}

// withhold withholds the output of s until the next checkpoint is on the disk.
func (srv *Engine) withhold(s *Session) {
	if !s.Stall.withheld {
		s.Stall.withheld = true
		srv.withheld = append(srv.withheld, s)
	}
	s.Stall.withheldFor = srv.Keeper.Epoch()
	s.Stall.Stalled.Store(true)
}

// WithheldSessions returns how many sessions wait for a checkpoint.
func (srv *Engine) WithheldSessions() int { return len(srv.withheld) }

// withholds reports whether the changes of the current turn must be on the disk before
// any client is notified of them.
func (srv *Engine) withholds() bool {
	k := srv.Keeper
	return k.Always() && srv.Keys.Sequence() != srv.Turn.sequence && (k.Failed == nil || srv.Config.StopWrites)
}

// SaveNow writes everything that is not on the disk yet. The lock is held.
func (srv *Engine) SaveNow() error {
	if err := srv.Keeper.SaveNow(); err != nil {
		return err
	}
	srv.Turn.sequence = srv.Keys.Sequence() // replies to earlier changes need not wait: see withholds
	return nil
}

// savesAtEnd reports whether the data are saved when the server stops with flags f. A stop
// completes a BGSAVE, too.
func (srv *Engine) savesAtEnd(f stopFlags) bool {
	return (srv.Keeper.Automatic() || srv.Keeper.InProgress() || f.Save) && !f.Nosave
}

// closeKeeper writes the last changes, if the save rules or the options of the
// shutdown ask for that, and closes the file. Only the first call has an effect.
func (srv *Engine) closeKeeper() error {
	srv.Ending.keeperClosed.Do(func() {
		var flags stopFlags
		var save bool
		srv.OutOfTurn(func() { flags, save = srv.Ending.Flags, srv.savesAtEnd(srv.Ending.Flags) })
		srv.Ending.keeperErr = srv.Keeper.Close(save)
		if srv.Ending.keeperErr != nil && flags.force {
			srv.Log.Error("cannot save the data; stopping anyway because of FORCE", "error", srv.Ending.keeperErr)
			srv.Ending.keeperErr = nil
		}
	})
	return srv.Ending.keeperErr
}

// Reload replaces the data by the content of the file, or without flush adds it to
// them. With write the data are saved first; if there is no data file, then in a
// temporary file. The lock is held.
func (srv *Engine) Reload(write, flush, merge bool) error {
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
		if err := srv.SaveNow(); err != nil {
			return err
		}
	}
	defer k.HoldFiles()()
	n := srv.Keys.Len()
	loaded := srv.Keys.Empty()
	loaded.SetNow(srv.Keys.Now())
	loader := archive.Loader{Keys: loaded}
	if err := loader.Read(path); err != nil {
		return err
	}
	srv.Queries.markAll(-1)
	if flush {
		srv.Turn.Scope.Flushed()
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
		srv.loadLibraries()
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
	srv.loadLibraries()
	return nil
}

// BackupFile writes what the server holds, as of some instant during the call, to a new
// file at path, in the format of the files that [Options].File names: a server that
// is given a copy of it has the same data. Clients go on meanwhile. There must be no
// file at path. If BackupFile returns an error there is none afterwards, otherwise it is
// complete, verified and on the disk.
//
// A server that keeps its data in a file saves them there first, as BGSAVE does.
func (srv *Engine) BackupFile(ctx context.Context, path string) (err error) {
	defer srv.setClosedError(&err)
	if err := srv.Ready(ctx); err != nil {
		return err
	}
	return srv.Keeper.Backup(ctx, path)
}

// Backup writes to w what [Engine.BackupFile] writes to a file, and returns how many
// bytes that were. It makes a temporary file, beside the file of the data if there is
// one. If it returns an error w may have been given a part.
func (srv *Engine) Backup(ctx context.Context, w io.Writer) (n int64, err error) {
	defer srv.setClosedError(&err)
	dir := ""
	srv.OutOfTurn(func() {
		if srv.Config.Dbfilename != "" {
			dir = srv.Config.Dir
		}
	})
	dir, err = os.MkdirTemp(dir, "backup-*")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "copy.db")
	if err := srv.BackupFile(ctx, path); err != nil {
		return 0, err
	}
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return io.Copy(w, contextReader{ctx, f})
}

// Save writes all changes to the data file and waits until they are on the disk.
func (srv *Engine) Save(ctx context.Context) (err error) {
	defer srv.setClosedError(&err)
	if err := srv.Ready(ctx); err != nil {
		return err
	}
	return srv.Keeper.Save(ctx)
}

// contextReader is a reader that ends with a context.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

// Read reads from r while the context lasts.
func (r contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// Codec returns the codec of Redis's format of values.
func (srv *Engine) Codec() *rdb.Codec {
	if srv.rdb == nil {
		srv.rdb = rdb.NewCodec(&srv.Keys.Limits)
	}
	srv.rdb.Uncompressed = !srv.Config.Compression
	srv.rdb.AnyVersion = srv.Config.RDBVersionCheck == "relaxed"
	return srv.rdb
}
