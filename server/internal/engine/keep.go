package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/zsetd/zsetd/server/archive"
	"github.com/zsetd/zsetd/server/internal/config"
	"github.com/zsetd/zsetd/snapshot"
)

// A keeper keeps the data in a file. Commands record their changes in the
// keyspace's journal. When a checkpoint is due, the keeper takes the
// journal, which holds the lock for an instant, and writes it in a goroutine of its
// own.
//
// The data are in one of two states. In the usual state the file holds everything
// up to the last checkpoint, and the next checkpoint is the journal. In the other
// state there is no such file: none exists yet, a checkpoint was lost, an fsync
// failed, the file is mostly waste, or checkpoints are taken on request only, so
// that there is no journal. Then the keeper writes a fresh file beside the old one,
// key by key in pieces, with one checkpoint for each piece, so that the journal
// never has to span the whole time. When the last key is written, the fresh file
// replaces the old one. The same pieces write new bases of the keys in the journal
// when the journal has grown.
type Keeper struct {
	srv  *Engine
	Path string
	kick chan struct{} // capacity 1: there may be work
	quit chan struct{}
	done sync.WaitGroup

	ended sync.Once // guards closing quit

	// IO is held while files are read or written. The server's lock is not taken
	// while IO is held; IO may be taken under the server's lock, as SAVE does.
	IO    sync.Mutex
	file  *snapshot.File // may be nil
	fresh *snapshot.File // being written; may be nil

	writingOut sync.Mutex // held during a backup of data in memory, before the server's lock

	queueLock sync.Mutex
	queue     []*Checkpoint // taken and not yet written, in order
	Results   []Result

	// The rest is guarded by the server's lock.
	Loading                 *LoadState // nil once the data are loaded
	loaded                  chan struct{}
	loadErr                 error
	always                  bool
	rules                   []config.SaveRule
	timer                   *time.Timer
	timerAt                 time.Time // zero: not set
	epoch                   uint64    // of the next checkpoint
	durable                 uint64    // the last epoch that is on the disk
	held                    []*Session
	NeedsFresh              bool   // the file lacks changes that the journal does not have either
	WantsFresh              bool   // BGREWRITEAOF
	ObsoleteUpTo            uint64 // journals up to this checkpoint are obsolete
	Rewrite                 *Rewrite
	SaveRequested           bool // BGSAVE is requested
	savers                  []saveWaiter
	Saving                  bool // BGSAVE is in progress
	saveStarted             time.Time
	saveDuration            time.Duration // -1 s: nothing was ever saved
	Failed                  error         // error of the last attempt to save
	Failures                failures
	retry                   time.Time
	lastSave                time.Time
	savedAt                 time.Time // lastSave by the server's clock
	saved                   int64     // unit.changes that are on the disk
	taken                   int64     // unit.changes as of the last checkpoint
	saves                   int64
	rewrites                int64
	loadedKeys, expiredKeys int64
	cleared                 int64 // keys in databases that were cleared, up to the last fresh file
	Stats                   keepStats
	Limits                  KeepLimits
	RewriteFailedAt         time.Time // when a rewrite was abandoned; zero once one has succeeded
}

// KeepLimits are the sizes that trigger writes and rewrites. Tests lower them.
type KeepLimits struct {
	Pending int   // largest journal in memory: above it the journal is written whatever the rules say, or dropped if it cannot be written
	Journal int64 // size of the journals in a file above which they may be dropped
	Waste   int64 // size of the waste in a file above which it may be rewritten
	Cleared int64 // keys cleared with their databases above which the file may be rewritten without them
}

func defaultKeepLimits() KeepLimits {
	return KeepLimits{Pending: 64 << 20, Journal: 16 << 20, Waste: 16 << 20, Cleared: 10_000}
}

// keepStats are figures for INFO.
type keepStats struct {
	size, used, bases, journal int64
	Generation                 uint64
}

// Checkpoint is a snapshot.Checkpoint on its way to the file.
type Checkpoint struct {
	snapshot.Checkpoint
	epoch   uint64
	changes int64
	fresh   bool // its bases are for the fresh file
	begins  bool // it is the first of the fresh file
	ends    bool // it completes the fresh file
	needed  bool // there is no other valid file: nothing in it is durable until the fresh file is complete
}

// Result is the outcome of writing a checkpoint.
type Result struct {
	Checkpoint *Checkpoint
	Err        error
	lost       bool // the file can no longer be trusted, and was closed
	disturbed  bool // lost because another program has changed or removed the file

	Requested        bool // a client waits for the save
	rewriteAbandoned bool // the rewrite was abandoned: the keys of the checkpoint got no bases, and a fresh file was discarded

	moreToDrop bool // there are more journals to drop
	stats      keepStats
}

const (
	// retryTime is the delay between a failure and the next attempt.
	retryTime = time.Second

	// rewriteRetryDelay is the delay between an abandoned rewrite and the next one,
	// unless a client requests it.
	rewriteRetryDelay = time.Minute
)

// keep opens or creates the file, as the parameters say.
func (srv *Engine) keep() error {
	k := &Keeper{srv: srv, saveDuration: -time.Second, lastSave: srv.Start, savedAt: srv.Start, loaded: make(chan struct{}), epoch: 1, Limits: defaultKeepLimits()}
	srv.Keeper = k
	srv.applyKeep()
	if srv.Config.Dbfilename == "" {
		close(k.loaded)
		return nil
	}
	path, err := filepath.Abs(filepath.Join(srv.Config.Dir, srv.Config.Dbfilename))
	if err != nil {
		return err
	}
	k.Path = path
	k.kick, k.quit = make(chan struct{}, 1), make(chan struct{})
	k.timer = time.AfterFunc(time.Hour, k.Wake)
	k.timer.Stop()
	info, err := os.Stat(path)
	switch {
	case err == nil && info.Mode().IsRegular() && info.Size() == 0:
		srv.Log.Warn("the data file is empty (0 bytes): starting without data", "file", path)
		fallthrough
	case errors.Is(err, fs.ErrNotExist):
		k.warnOfData()
		if err := k.create(); err != nil {
			return &FileError{fmt.Errorf("cannot create the data file: %w", err)}
		}
		close(k.loaded)
	case err != nil:
		return &FileError{err}
	default:
		lock, err := snapshot.Lock(path) // plain errors are reported at once
		if err == nil {
			err = lock.Close()
		}
		if err != nil {
			return refused(archive.Recognize(path, err))
		}
		k.Loading = &LoadState{Start: time.Now()}
		k.done.Go(k.load)
	}
	k.warnOfName()
	k.done.Go(k.run)
	return nil
}

// applyKeep applies the parameters to the keeper.
func (srv *Engine) applyKeep() {
	k := srv.Keeper
	k.rules = srv.Config.Save
	k.always = srv.Config.Appendonly && srv.Config.Appendfsync == "always" && srv.Config.Dbfilename != ""
	if srv.Config.Appendonly {
		k.rules = []config.SaveRule{{Seconds: 1, Changes: 1}}
	}
	if k.Path == "" || k.Loading != nil {
		return
	}
	switch recording := srv.Keys.Recording(); {
	case k.Automatic() && !recording:
		srv.Keys.Record(true) // the file is rewritten, and replies may have to wait for that
	case !k.Automatic() && recording:
		k.untrack()
	}
	k.release()
	k.Wake()
}

// track begins to journal the changes that the file does not have yet. If
// checkpoints are taken on request only there is no journal, and each save writes
// everything.
func (k *Keeper) track() {
	if k.Automatic() {
		k.srv.Keys.Record(true)
	} else {
		k.NeedsFresh = true
	}
}

// untrack drops the journal if checkpoints are taken on request only, as soon as
// nothing is being written.
func (k *Keeper) untrack() {
	if !k.Automatic() && k.srv.Keys.Recording() && !k.SaveRequested && !k.Saving && k.Rewrite == nil && k.ObsoleteUpTo == 0 && !k.Pending() {
		k.LoseTrack()
	}
}

// refused adds advice to an error of reading a file.
func refused(err error) error {
	switch {
	case errors.Is(err, snapshot.ErrDamaged):
		err = fmt.Errorf("%w; the file is unchanged: `zsetd check` shows the damage, `zsetd salvage` recovers what is readable", err)
	case errors.Is(err, snapshot.ErrForeign):
		err = fmt.Errorf("%w; the file is unchanged: set dir and dbfilename to another file", err)
	}
	return &FileError{err}
}

// create makes an empty file.
func (k *Keeper) create() error {
	file, err := snapshot.Beside(k.Path)
	if err != nil {
		return err
	}
	if _, err := file.Write(&snapshot.Checkpoint{Spaces: k.srv.Keys.Spaces(), LastSpace: k.srv.Keys.LastSpace(), Time: k.srv.Start}); err != nil {
		return errors.Join(err, file.Discard())
	}
	if err := file.Publish(k.Path); err != nil {
		return errors.Join(err, file.Discard())
	}
	k.file, k.Stats = file, measure(file)
	k.track()
	return nil
}

// LoadState is the progress of loading the file.
type LoadState struct {
	Start       time.Time
	done, total int64
}

// ErrLoading is the reply to commands that need the data during loading.
const ErrLoading = "LOADING Redis is loading the dataset in memory"

// load reads the file. Meanwhile the server replies -LOADING.
func (k *Keeper) load() {
	srv := k.srv
	defer srv.recovers()
	locked := func(f func()) {
		srv.Mu.Lock()
		srv.guarded(f)
		srv.Mu.Unlock()
	}
	reported := int64(0)
	l := archive.Loader{Keys: srv.Keys, Hold: locked, Progress: func(done, total int64) error {
		if done-reported > 1<<20 || reported == 0 {
			reported = done
			locked(func() { k.Loading.done, k.Loading.total = done, total })
		}
		select {
		case <-k.quit:
			return ErrServerClosed
		default:
			return nil
		}
	}}
	file, err := l.Open(k.Path)
	srv.maintain(func() { k.loadedFrom(&l, file, err) })
}

// loadedFrom takes over the loaded data. The server's lock is held.
func (k *Keeper) loadedFrom(l *archive.Loader, file *snapshot.File, err error) {
	srv := k.srv
	if err == nil && srv.Cluster != nil && srv.Keys.Sparse() {
		err = errors.Join(errors.New("the file has keys in databases other than 0, which a cluster does not support"), file.Close())
	}
	if err != nil {
		k.loadErr = refused(err)
		srv.Log.Error("cannot load the data", "error", k.loadErr)
	} else {
		k.file, k.Stats = file, measure(file)
		k.track()
		for _, p := range l.Past() {
			p.DB.Forget(p.Key)
		}
		srv.loaded(srv)
		k.loadedKeys, k.expiredKeys = l.Loaded, l.Expired
		srv.Log.Info("data loaded", "file", k.Path, "keys", l.Loaded, "expired", l.Expired,
			"seconds", time.Since(k.Loading.Start).Seconds())
		k.Loading = nil
		srv.MemoryState.MoreToEvict = srv.Config.Maxmemory != 0 // the timer checks the limit
		k.note()
	}
	close(k.loaded)
}

// Wake makes the keeper look for work. Any goroutine may call it.
func (k *Keeper) Wake() {
	select {
	case k.kick <- struct{}{}:
	default:
	}
}

// run is the goroutine that writes checkpoints.
func (k *Keeper) run() {
	defer k.srv.recovers()
	select {
	case <-k.loaded:
	case <-k.quit:
		return
	}
	if k.loadErr != nil {
		return
	}
	for {
		select {
		case <-k.kick:
		case <-k.quit:
			return
		}
		for k.step() {
			select {
			case <-k.quit:
				return
			default:
			}
		}
	}
}

// step takes and writes one checkpoint, if one is due, and reports whether more may
// be.
func (k *Keeper) step() (more bool) {
	srv := k.srv
	due, startFresh := false, false
	srv.maintain(func() {
		due = k.due()
		if startFresh = due && k.NeedsFresh && k.Rewrite == nil; due && !startFresh {
			k.Take()
		}
	})
	if startFresh {
		k.beginFresh()
		return true
	}
	if !due {
		return k.considerRewrite()
	}
	start := time.Now()
	k.Flush()
	throttle := false
	srv.maintain(func() {
		more = k.Account()
		k.untrack()
		throttle = more && (k.Rewrite != nil || k.ObsoleteUpTo != 0) && !k.NeedsFresh
	})
	if throttle { // a rewrite is not urgent: half of the time is left to the clients
		time.Sleep(time.Since(start))
	}
	return more
}

// miss notes that another program has removed or changed the file, or that its
// content cannot be read. A fresh file is then written.
func (k *Keeper) miss(why error) {
	if !k.NeedsFresh {
		k.srv.Log.Warn("the data file was removed, changed or cannot be read; writing a new one", "file", k.Path, "error", why)
		k.LoseTrack()
	}
}

// due reports whether to take a checkpoint now, and if not, sets the timer for the
// next look.
func (k *Keeper) due() bool {
	if k.Loading != nil || k.Path == "" {
		return false
	}
	now := time.Now()
	if !now.Before(k.timerAt) {
		k.timerAt = time.Time{} // it has fired
	}
	if k.Failed != nil && now.Before(k.retry) && !k.SaveRequested {
		k.setTimer(k.retry)
		return false
	}
	keys := k.srv.Keys
	if k.SaveRequested || k.WantsFresh && k.NeedsFresh || k.Rewrite != nil || k.ObsoleteUpTo != 0 || k.Pending() || keys.Recorded() > k.Limits.Pending {
		return true
	}
	if !k.Automatic() {
		return false
	}
	if k.NeedsFresh || k.always && keys.Recorded() > 0 {
		return true
	}
	next := k.nextSave()
	if next.IsZero() {
		return false
	}
	if next.After(now) {
		k.setTimer(next)
		return false
	}
	return true
}

// Automatic reports whether checkpoints are taken without a request.
func (k *Keeper) Automatic() bool { return k.always || len(k.rules) > 0 }

// savesAtEnd reports whether the data are saved when the server stops with flags f.
func (k *Keeper) savesAtEnd(f stopFlags) bool { return (k.Automatic() || f.Save) && !f.Nosave }

// Pending reports whether a checkpoint is taken and not yet written.
func (k *Keeper) Pending() bool {
	k.queueLock.Lock()
	defer k.queueLock.Unlock()
	return len(k.queue) > 0
}

// nextSave returns when the rules request the next checkpoint; zero if they do not.
func (k *Keeper) nextSave() (next time.Time) {
	changes := k.srv.Changes - k.taken
	for _, r := range k.rules {
		if changes >= r.Changes && changes > 0 {
			if at := k.lastSave.Add(time.Duration(r.Seconds) * time.Second); next.IsZero() || at.Before(next) {
				next = at
			}
		}
	}
	return next
}

func (k *Keeper) setTimer(at time.Time) {
	if k.timerAt.IsZero() || at.Before(k.timerAt) {
		k.timerAt = at
		k.timer.Reset(time.Until(at))
	}
}

// note is called just before each release of the server's lock. It must cost next
// to nothing.
func (k *Keeper) note() {
	if k.Path == "" || k.Loading != nil {
		return
	}
	changes := k.srv.Changes - k.taken
	switch {
	case k.srv.Keys.Recorded() > k.Limits.Pending:
		k.overflow()
	case k.always:
		if k.srv.Keys.Recorded() > 0 {
			k.Wake()
		}
	case changes > 0 && len(k.rules) > 0 && k.Failed == nil:
		if next := k.nextSave(); !next.IsZero() && (k.timerAt.IsZero() || next.Before(k.timerAt)) {
			k.setTimer(next)
		}
	}
}

// overflow handles a journal that is too large for memory: it is written, or
// dropped if it cannot be written. After a drop the next save rewrites the whole
// file.
func (k *Keeper) overflow() {
	if k.Automatic() && k.Failed == nil {
		k.Wake()
		return
	}
	if k.Rewrite == nil {
		k.srv.Log.Warn("unsaved changes exceed the journal limit; the next save writes all data",
			"bytes", k.srv.Keys.Recorded())
		k.LoseTrack()
	}
}

// LoseTrack drops the journal. The next save writes a fresh file.
func (k *Keeper) LoseTrack() {
	k.srv.Keys.Record(false)
	if k.always && k.Failed == nil {
		k.srv.Keys.Record(true) // replies wait for the fresh file, see holds
	}
	k.epoch++ // a concurrent beginFresh lists the keys again
	k.NeedsFresh = true
	k.Rewrite, k.ObsoleteUpTo = nil, 0
	k.queueLock.Lock()
	k.queue = nil
	k.queueLock.Unlock()
}

// Take takes the journal, and a piece of the rewrite in progress, as the next
// checkpoint. It does nothing while an earlier checkpoint waits to be written.
func (k *Keeper) Take() {
	if k.Pending() {
		return
	}
	srv := k.srv
	c := &Checkpoint{epoch: k.epoch, changes: srv.Changes}
	c.Time = srv.At
	if k.Rewrite != nil {
		k.Rewrite.piece(srv.Keys, c)
		c.needed = k.NeedsFresh
	} else {
		c.Forget = k.ObsoleteUpTo
	}
	if j := srv.Keys.TakeJournal(); j != nil {
		c.Journal = j.Chunks
	}
	c.Spaces, c.LastSpace = srv.Keys.Spaces(), srv.Keys.LastSpace()
	k.epoch++
	k.taken = c.changes
	if k.SaveRequested {
		k.SaveRequested, k.Saving = false, true
	}
	k.saveStarted = time.Now()
	k.queueLock.Lock()
	k.queue = append(k.queue, c)
	k.queueLock.Unlock()
}

// Flush writes the checkpoints that were taken. It may be called with or without
// the server's lock.
func (k *Keeper) Flush() {
	k.IO.Lock()
	defer k.IO.Unlock()
	for {
		k.queueLock.Lock()
		if len(k.queue) == 0 {
			k.queueLock.Unlock()
			return
		}
		c := k.queue[0]
		k.queueLock.Unlock()
		r := k.write(c)
		k.queueLock.Lock()
		k.Results = append(k.Results, r)
		if r.Err == nil || r.lost || c.needed {
			k.queue = k.queue[min(1, len(k.queue)):]
		}
		k.queueLock.Unlock()
		if r.Err != nil {
			return
		}
	}
}

// write writes a checkpoint to the file, to the fresh file, or to both.
func (k *Keeper) write(c *Checkpoint) (r Result) {
	r.Checkpoint = c
	defer func() { r.moreToDrop = r.Err == nil && k.file != nil && k.file.Forgetting() }()
	if c.fresh {
		done, err := k.writeFresh(c)
		if err != nil {
			err = errors.Join(err, k.giveUp(c))
			r.rewriteAbandoned = true
			if c.needed || k.file == nil {
				r.Err, r.lost = err, k.file == nil && !c.needed
				return r
			}
			k.srv.Log.Warn("cannot write a new data file; keeping the old one", "error", err)
		}
		if done || c.needed {
			r.stats = measure(k.file)
			return r
		}
	}
	old := c.Checkpoint
	if c.fresh {
		old.Bases = nil
	}
	if _, r.Err = k.file.Write(&old); r.Err == nil {
		r.stats = measure(k.file)
		return r
	}
	if c.fresh || c.Bases != nil || c.Forget != 0 { // the next attempt writes the journal alone, which needs less space
		r.Err = errors.Join(r.Err, k.giveUp(c))
		r.rewriteAbandoned = true
	}
	if k.file.Suspect() != nil {
		r.lost, r.disturbed = true, disturbed(k.file.Suspect())
		if err := k.file.Close(); err != nil {
			k.srv.Log.Warn("cannot close the failed data file", "error", err)
		}
		k.file = nil
	}
	return r
}

// disturbed reports whether an error means that another program has changed or
// removed the file.
func disturbed(err error) bool {
	return errors.Is(err, snapshot.ErrChanged) || errors.Is(err, fs.ErrNotExist)
}

// giveUp abandons the rewrite: it discards the fresh file, and reduces a checkpoint
// to its journal.
func (k *Keeper) giveUp(c *Checkpoint) (err error) {
	if k.fresh != nil {
		err = k.fresh.Discard()
		k.fresh = nil
	}
	c.Bases, c.Forget = nil, 0
	c.fresh, c.begins, c.ends = false, false, false
	return err
}

// measure returns figures about a file.
func measure(f *snapshot.File) (s keepStats) {
	if f == nil {
		return s
	}
	m := f.Manifest()
	s.size, s.used = f.Usage()
	s.bases, s.journal, s.Generation = m.Bases.Bytes, m.Journal.Bytes, m.Generation
	return s
}

// writeFresh writes a checkpoint to the fresh file, and reports whether the fresh
// file has replaced the old one.
func (k *Keeper) writeFresh(c *Checkpoint) (done bool, err error) {
	if c.begins {
		if k.fresh != nil {
			if err := k.fresh.Discard(); err != nil {
				return false, err
			}
		}
		if k.fresh, err = snapshot.Beside(k.Path); err != nil {
			return false, err
		}
	}
	if k.fresh == nil {
		return false, errors.New("the new data file is missing")
	}
	if _, err := k.fresh.Write(&c.Checkpoint); err != nil || !c.ends {
		return false, err
	}
	if k.file != nil {
		if err := k.file.Intact(); errors.Is(err, snapshot.ErrReplaced) {
			return false, fmt.Errorf("%s: %w", k.Path, err)
		}
	}
	err = k.fresh.Publish(k.Path)
	if err != nil && k.fresh.Path() != k.Path {
		return false, err
	}
	if k.file != nil { // the fresh file has its name now
		if err := k.file.Close(); err != nil {
			k.srv.Log.Warn("cannot close the replaced data file", "error", err)
		}
		k.file = nil
	}
	if err != nil { // renamed, but the rename may not be on the disk: a crash may restore the old file
		return false, err
	}
	k.file, k.fresh = k.fresh, nil
	return true, nil
}

// Account records the outcome of the checkpoints that were written, and reports
// whether all have succeeded.
func (k *Keeper) Account() (ok bool) {
	ok = true
	k.queueLock.Lock()
	results := k.Results
	k.Results = nil
	k.queueLock.Unlock()
	for _, r := range results {
		c := r.Checkpoint
		if r.rewriteAbandoned {
			k.Rewrite, k.RewriteFailedAt = nil, time.Now()
		}
		if r.disturbed { // no failure: the fresh file will include this checkpoint
			k.miss(r.Err)
			k.SaveRequested, k.Saving = k.SaveRequested || k.Saving, false
			continue
		}
		if r.Err != nil {
			k.Fail(r)
			ok = false
			continue
		}
		k.Stats = r.stats
		if !r.moreToDrop {
			k.ObsoleteUpTo = 0
		}
		if k.Rewrite != nil && k.Rewrite.at == len(k.Rewrite.Keys) && (c.ends || c.Forget == k.Rewrite.upTo) {
			if !k.Rewrite.FullSave {
				k.srv.Log.Info("data file rewritten", "file", k.Path, "fresh", k.Rewrite.Fresh, "keys", len(k.Rewrite.Keys),
					"seconds", time.Since(k.Rewrite.Began).Seconds())
				k.rewrites++
			}
			if r.moreToDrop {
				k.ObsoleteUpTo = c.Forget
			}
			if k.Rewrite.Fresh {
				k.NeedsFresh, k.cleared = false, k.srv.Keys.Cleared()
			}
			k.Rewrite, k.RewriteFailedAt = nil, time.Time{}
		} else if c.needed {
			continue // written to a fresh file that is incomplete: a crash would lose it
		}
		k.durable, k.saved = c.epoch, c.changes
		k.lastSave, k.saveDuration, k.savedAt = time.Now(), time.Since(k.saveStarted), k.srv.Clock()
		if k.Failed != nil {
			k.srv.Log.Info("saving succeeds again", "file", k.Path, "failures", k.Failures.n,
				"seconds", time.Since(k.Failures.since).Seconds())
		}
		k.Failed, k.Failures = nil, failures{}
		k.saves++
		if k.Saving {
			k.Saving = false
			k.srv.Log.Info("saved", "file", k.Path, "seconds", k.saveDuration.Seconds())
		}
	}
	k.tellSavers(nil)
	k.release()
	return ok
}

// failures counts the attempts to save that have failed since the last success.
type failures struct {
	since    time.Time
	n        int
	logged   string        // the last error that was logged
	Next     time.Time     // when the same error is logged again
	Interval time.Duration // delay until the log entry after that
}

// LastReminder is the time of the latest log line about a failing save.
const (
	// FirstReminder is the delay after which a persistent failure is logged again.
	// Each interval is twice the previous one, up to LastReminder.
	FirstReminder = 10 * time.Second
	LastReminder  = time.Hour
)

// log logs a failure, unless the error is the same as the last one and its next
// reminder is not due. A failure of a save that a client has requested is always
// logged.
func (f *failures) log(log *slog.Logger, err error, asked bool) {
	now := time.Now()
	if f.n++; f.n == 1 {
		f.since = now
	}
	text := err.Error()
	switch {
	case text != f.logged:
		f.Interval = FirstReminder
	case now.Before(f.Next):
		if !asked {
			return
		}
	default:
		f.Interval = min(2*f.Interval, LastReminder)
	}
	f.logged, f.Next = text, now.Add(f.Interval)
	log.Error("saving failed", "error", err, "retry", retryTime, "failures", f.n, "since", f.since.Format(time.RFC3339))
}

// Fail records that a checkpoint could not be written.
func (k *Keeper) Fail(r Result) {
	k.Failures.log(k.srv.Log, r.Err, k.Saving || r.Requested)
	k.Failed, k.SaveRequested, k.Saving = r.Err, false, false
	k.retry = time.Now().Add(retryTime)
	k.saveDuration = time.Since(k.saveStarted)
	k.tellSavers(r.Err)
	if r.Checkpoint.needed {
		k.LoseTrack()
	}
	if r.lost {
		k.srv.Log.Warn("the data file has failed; writing a new one", "file", k.Path)
		k.LoseTrack()
	}
	for _, s := range k.held { // they wait for a confirmation that cannot be given
		s.held = false
		s.Kill()
	}
	k.held = nil
	if k.Automatic() {
		k.timerAt = time.Time{}
		k.setTimer(k.retry)
	}
}

// hold withholds the output of s until the next checkpoint is on the disk.
func (k *Keeper) hold(s *Session) {
	if !s.held {
		s.held = true
		k.held = append(k.held, s)
	}
	s.heldFor = k.epoch
	s.Stalled.Store(true)
}

// release resumes the sessions whose changes are on the disk.
func (k *Keeper) release() {
	k.held = slices.DeleteFunc(k.held, func(s *Session) bool {
		if s.heldFor > k.durable && k.always {
			return false
		}
		s.held = false
		if s.Blocked == nil && s.postponed == nil {
			s.resume()
		} else {
			s.pending()
		}
		return true
	})
}

// holds reports whether the changes of the current turn must be on the disk before
// any client is notified of them.
func (k *Keeper) holds() bool {
	return k.always && k.srv.Keys.Sequence() != k.srv.sequence && (k.Failed == nil || k.srv.Config.StopWrites)
}

// Refuses reports whether commands that write are refused, because saving fails.
func (k *Keeper) Refuses() bool { return k.Failed != nil && k.srv.Config.StopWrites && k.Automatic() }

// SaveNow writes everything that is not on the disk yet. The server's lock is held.
func (k *Keeper) SaveNow() error {
	for {
		k.finishWrite()
		if k.NeedsFresh && k.Rewrite == nil {
			k.srv.Keys.Record(true)
			keys := k.AllKeys(func(f func()) { f() })
			k.BeginRewrite(&Rewrite{Keys: keys, Fresh: true, FullSave: !k.Automatic() && !k.WantsFresh, Began: time.Now()})
			k.WantsFresh = false
		}
		waiting := k.Pending()
		k.Take()
		k.Flush()
		k.queueLock.Lock()
		for i := range k.Results {
			k.Results[i].Requested = true
		}
		k.queueLock.Unlock()
		if !k.Account() {
			return k.Failed
		}
		if !k.NeedsFresh && !waiting {
			k.srv.sequence = k.srv.Keys.Sequence() // replies to earlier changes need not wait: see holds
			k.untrack()
			return nil
		}
	}
}

// finishWrite waits for the result of the checkpoint that is being written, and
// accounts for it. Otherwise the rewrite that this checkpoint completes would seem
// to go on, and the next checkpoint would be a part of it.
func (k *Keeper) finishWrite() {
	k.IO.Lock()
	k.queueLock.Lock()
	unaccounted := len(k.Results) > 0
	k.queueLock.Unlock()
	k.IO.Unlock()
	if unaccounted {
		k.Account()
	}
}

// close writes unsaved data if save is set, and closes the file. The server's lock
// is not held, and no commands run any more.
func (k *Keeper) close(save bool) (err error) {
	if k.Path == "" {
		return nil
	}
	k.end()
	if k.loadErr != nil {
		return nil
	}
	k.srv.maintain(func() {
		if save {
			err = k.SaveNow()
			if err != nil && k.NeedsFresh { // the file has failed, and there is no later attempt
				err = k.SaveNow()
			}
			if err != nil {
				err = fmt.Errorf("cannot save the last changes: %w", err)
			}
		}
		err = errors.Join(err, k.closeFiles())
		k.srv.Keys.Record(false)
		k.Path = ""
	})
	return err
}

// end stops the keeper's goroutines and waits for them.
func (k *Keeper) end() {
	k.ended.Do(func() { close(k.quit) })
	k.done.Wait()
}

// abandon closes the file as it is. The server's lock is broken.
func (k *Keeper) abandon() error {
	if k.quit == nil {
		return nil // there is no file
	}
	k.end()
	k.timer.Stop()
	return k.closeFiles()
}

func (k *Keeper) closeFiles() (err error) {
	k.IO.Lock()
	defer k.IO.Unlock()
	if k.fresh != nil {
		err = errors.Join(err, k.fresh.Discard())
		k.fresh = nil
	}
	if k.file != nil {
		err = errors.Join(err, k.file.Close())
		k.file = nil
	}
	return err
}
