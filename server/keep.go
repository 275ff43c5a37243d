package server

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/zsetd/zsetd/server/archive"
	"github.com/zsetd/zsetd/server/keyspace"
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
type keeper struct {
	srv  *Server
	path string
	kick chan struct{} // capacity 1: there may be work
	quit chan struct{}
	done sync.WaitGroup

	ended sync.Once // guards closing quit

	// io is held while files are read or written. The server's lock is not taken
	// while io is held; io may be taken under the server's lock, as SAVE does.
	io    sync.Mutex
	file  *snapshot.File // may be nil
	fresh *snapshot.File // being written; may be nil

	queueLock sync.Mutex
	queue     []*checkpoint // taken and not yet written, in order
	results   []result

	// The rest is guarded by the server's lock.
	loading                 *loadState // nil once the data are loaded
	loaded                  chan struct{}
	loadErr                 error
	always                  bool
	rules                   []saveRule
	timer                   *time.Timer
	timerAt                 time.Time // zero: not set
	epoch                   uint64    // of the next checkpoint
	durable                 uint64    // the last epoch that is on the disk
	turnSequence            uint64    // the journal's sequence when the lock was taken
	held                    []*Session
	needsFresh              bool   // the file lacks changes that the journal does not have either
	wantsFresh              bool   // BGREWRITEAOF
	obsoleteUpTo            uint64 // journals up to this checkpoint are obsolete
	rewrite                 *rewrite
	saveRequested           bool // BGSAVE is requested
	savers                  []saveWaiter
	saving                  bool // BGSAVE is in progress
	saveStarted             time.Time
	saveDuration            time.Duration // -1 s: nothing was ever saved
	failed                  error         // error of the last attempt to save
	failures                failures
	retry                   time.Time
	lastSave                time.Time
	savedAt                 time.Time // lastSave by the server's clock
	saved                   int64     // unit.changes that are on the disk
	taken                   int64     // unit.changes as of the last checkpoint
	saves                   int64
	rewrites                int64
	loadedKeys, expiredKeys int64
	cleared                 int64 // keys in databases that were cleared, up to the last fresh file
	stats                   keepStats
	limits                  keepLimits
	rewriteFailedAt         time.Time // when a rewrite was abandoned; zero once one has succeeded
}

// keepLimits are the sizes that trigger writes and rewrites. Tests lower them.
type keepLimits struct {
	pending int   // largest journal in memory: above it the journal is written whatever the rules say, or dropped if it cannot be written
	journal int64 // size of the journals in a file above which they may be dropped
	waste   int64 // size of the waste in a file above which it may be rewritten
	cleared int64 // keys cleared with their databases above which the file may be rewritten without them
}

func defaultKeepLimits() keepLimits {
	return keepLimits{pending: 64 << 20, journal: 16 << 20, waste: 16 << 20, cleared: 10_000}
}

// keepStats are figures for INFO.
type keepStats struct {
	size, used, bases, journal int64
	generation                 uint64
}

// saveRule requests a checkpoint some seconds after the last one if there were that
// many changes.
type saveRule struct{ seconds, changes int64 }

// checkpoint is a snapshot.Checkpoint on its way to the file.
type checkpoint struct {
	snapshot.Checkpoint
	epoch   uint64
	changes int64
	fresh   bool // its bases are for the fresh file
	begins  bool // it is the first of the fresh file
	ends    bool // it completes the fresh file
	needed  bool // there is no other valid file: nothing in it is durable until the fresh file is complete
}

// result is the outcome of writing a checkpoint.
type result struct {
	checkpoint *checkpoint
	err        error
	lost       bool // the file can no longer be trusted, and was closed
	disturbed  bool // lost because another program has changed or removed the file

	requested        bool // a client waits for the save
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
func (srv *Server) keep() error {
	k := &keeper{srv: srv, saveDuration: -time.Second, lastSave: srv.start, savedAt: srv.start, loaded: make(chan struct{}), epoch: 1, limits: defaultKeepLimits()}
	srv.keeper = k
	srv.applyKeep()
	if srv.config.dbfilename == "" {
		close(k.loaded)
		return nil
	}
	path, err := filepath.Abs(filepath.Join(srv.config.dir, srv.config.dbfilename))
	if err != nil {
		return err
	}
	k.path = path
	k.kick, k.quit = make(chan struct{}, 1), make(chan struct{})
	k.timer = time.AfterFunc(time.Hour, k.wake)
	k.timer.Stop()
	info, err := os.Stat(path)
	switch {
	case err == nil && info.Mode().IsRegular() && info.Size() == 0:
		srv.log.Warn("the data file is empty (0 bytes): starting without data", "file", path)
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
		k.loading = &loadState{start: time.Now()}
		k.done.Go(k.load)
	}
	k.warnOfName()
	k.done.Go(k.run)
	return nil
}

// applyKeep applies the parameters to the keeper.
func (srv *Server) applyKeep() {
	k := srv.keeper
	k.rules = srv.config.save
	k.always = srv.config.appendonly && srv.config.appendfsync == "always" && srv.config.dbfilename != ""
	if srv.config.appendonly {
		k.rules = []saveRule{{1, 1}}
	}
	if k.path == "" || k.loading != nil {
		return
	}
	switch recording := srv.keys.Recording(); {
	case k.automatic() && !recording:
		srv.keys.Record(true) // the file is rewritten, and replies may have to wait for that
	case !k.automatic() && recording:
		k.untrack()
	}
	k.release()
	k.wake()
}

// track begins to journal the changes that the file does not have yet. If
// checkpoints are taken on request only there is no journal, and each save writes
// everything.
func (k *keeper) track() {
	if k.automatic() {
		k.srv.keys.Record(true)
	} else {
		k.needsFresh = true
	}
}

// untrack drops the journal if checkpoints are taken on request only, as soon as
// nothing is being written.
func (k *keeper) untrack() {
	if !k.automatic() && k.srv.keys.Recording() && !k.saveRequested && !k.saving && k.rewrite == nil && k.obsoleteUpTo == 0 && !k.pending() {
		k.loseTrack()
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
func (k *keeper) create() error {
	file, err := snapshot.Beside(k.path)
	if err != nil {
		return err
	}
	if _, err := file.Write(&snapshot.Checkpoint{Spaces: k.srv.keys.Spaces(), LastSpace: k.srv.keys.LastSpace(), Time: k.srv.start}); err != nil {
		return errors.Join(err, file.Discard())
	}
	if err := file.Publish(k.path); err != nil {
		return errors.Join(err, file.Discard())
	}
	k.file, k.stats = file, measure(file)
	k.track()
	return nil
}

// loadState is the progress of loading the file.
type loadState struct {
	start       time.Time
	done, total int64
}

// errLoading is the reply to commands that need the data during loading.
const errLoading = "LOADING Redis is loading the dataset in memory"

// load reads the file. Meanwhile the server replies -LOADING.
func (k *keeper) load() {
	srv := k.srv
	defer srv.recovers()
	locked := func(f func()) {
		srv.mu.Lock()
		srv.guarded(f)
		srv.mu.Unlock()
	}
	reported := int64(0)
	l := archive.Loader{Keys: srv.keys, Hold: locked, Progress: func(done, total int64) error {
		if done-reported > 1<<20 || reported == 0 {
			reported = done
			locked(func() { k.loading.done, k.loading.total = done, total })
		}
		select {
		case <-k.quit:
			return ErrServerClosed
		default:
			return nil
		}
	}}
	file, err := l.Open(k.path)
	srv.maintain(func() { k.loadedFrom(&l, file, err) })
}

// loadedFrom takes over the loaded data. The server's lock is held.
func (k *keeper) loadedFrom(l *archive.Loader, file *snapshot.File, err error) {
	srv := k.srv
	if err == nil && srv.cluster != nil && srv.keys.Sparse() {
		err = errors.Join(errors.New("the file has keys in databases other than 0, which a cluster does not support"), file.Close())
	}
	if err != nil {
		k.loadErr = refused(err)
		srv.log.Error("cannot load the data", "error", k.loadErr)
	} else {
		k.file, k.stats = file, measure(file)
		k.track()
		for _, p := range l.Past() {
			p.DB.Forget(p.Key)
		}
		srv.loaded(srv)
		k.loadedKeys, k.expiredKeys = l.Loaded, l.Expired
		srv.log.Info("data loaded", "file", k.path, "keys", l.Loaded, "expired", l.Expired,
			"seconds", time.Since(k.loading.start).Seconds())
		k.loading = nil
		srv.memoryLimit.moreToEvict = srv.config.maxmemory != 0 // the timer checks the limit
		k.note()
	}
	close(k.loaded)
}

// wake makes the keeper look for work. Any goroutine may call it.
func (k *keeper) wake() {
	select {
	case k.kick <- struct{}{}:
	default:
	}
}

// run is the goroutine that writes checkpoints.
func (k *keeper) run() {
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
func (k *keeper) step() (more bool) {
	srv := k.srv
	due, startFresh := false, false
	srv.maintain(func() {
		due = k.due()
		if startFresh = due && k.needsFresh && k.rewrite == nil; due && !startFresh {
			k.take()
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
	k.flush()
	throttle := false
	srv.maintain(func() {
		more = k.account()
		k.untrack()
		throttle = more && (k.rewrite != nil || k.obsoleteUpTo != 0) && !k.needsFresh
	})
	if throttle { // a rewrite is not urgent: half of the time is left to the clients
		time.Sleep(time.Since(start))
	}
	return more
}

// miss notes that another program has removed or changed the file, or that its
// content cannot be read. A fresh file is then written.
func (k *keeper) miss(why error) {
	if !k.needsFresh {
		k.srv.log.Warn("the data file was removed, changed or cannot be read; writing a new one", "file", k.path, "error", why)
		k.loseTrack()
	}
}

// due reports whether to take a checkpoint now, and if not, sets the timer for the
// next look.
func (k *keeper) due() bool {
	if k.loading != nil || k.path == "" {
		return false
	}
	now := time.Now()
	if !now.Before(k.timerAt) {
		k.timerAt = time.Time{} // it has fired
	}
	if k.failed != nil && now.Before(k.retry) && !k.saveRequested {
		k.setTimer(k.retry)
		return false
	}
	keys := k.srv.keys
	if k.saveRequested || k.wantsFresh && k.needsFresh || k.rewrite != nil || k.obsoleteUpTo != 0 || k.pending() || keys.Recorded() > k.limits.pending {
		return true
	}
	if !k.automatic() {
		return false
	}
	if k.needsFresh || k.always && keys.Recorded() > 0 {
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

// automatic reports whether checkpoints are taken without a request.
func (k *keeper) automatic() bool { return k.always || len(k.rules) > 0 }

// savesAtEnd reports whether the data are saved when the server stops with flags f.
func (k *keeper) savesAtEnd(f stopFlags) bool { return (k.automatic() || f.save) && !f.nosave }

// pending reports whether a checkpoint is taken and not yet written.
func (k *keeper) pending() bool {
	k.queueLock.Lock()
	defer k.queueLock.Unlock()
	return len(k.queue) > 0
}

// nextSave returns when the rules request the next checkpoint; zero if they do not.
func (k *keeper) nextSave() (next time.Time) {
	changes := k.srv.scope.changes - k.taken
	for _, r := range k.rules {
		if changes >= r.changes && changes > 0 {
			if at := k.lastSave.Add(time.Duration(r.seconds) * time.Second); next.IsZero() || at.Before(next) {
				next = at
			}
		}
	}
	return next
}

func (k *keeper) setTimer(at time.Time) {
	if k.timerAt.IsZero() || at.Before(k.timerAt) {
		k.timerAt = at
		k.timer.Reset(time.Until(at))
	}
}

// note is called just before each release of the server's lock. It must cost next
// to nothing.
func (k *keeper) note() {
	if k.path == "" || k.loading != nil {
		return
	}
	changes := k.srv.scope.changes - k.taken
	switch {
	case k.srv.keys.Recorded() > k.limits.pending:
		k.overflow()
	case k.always:
		if k.srv.keys.Recorded() > 0 {
			k.wake()
		}
	case changes > 0 && len(k.rules) > 0 && k.failed == nil:
		if next := k.nextSave(); !next.IsZero() && (k.timerAt.IsZero() || next.Before(k.timerAt)) {
			k.setTimer(next)
		}
	}
}

// overflow handles a journal that is too large for memory: it is written, or
// dropped if it cannot be written. After a drop the next save rewrites the whole
// file.
func (k *keeper) overflow() {
	if k.automatic() && k.failed == nil {
		k.wake()
		return
	}
	if k.rewrite == nil {
		k.srv.log.Warn("unsaved changes exceed the journal limit; the next save writes all data",
			"bytes", k.srv.keys.Recorded())
		k.loseTrack()
	}
}

// loseTrack drops the journal. The next save writes a fresh file.
func (k *keeper) loseTrack() {
	k.srv.keys.Record(false)
	if k.always && k.failed == nil {
		k.srv.keys.Record(true) // replies wait for the fresh file, see holds
	}
	k.epoch++ // a concurrent beginFresh lists the keys again
	k.needsFresh = true
	k.rewrite, k.obsoleteUpTo = nil, 0
	k.queueLock.Lock()
	k.queue = nil
	k.queueLock.Unlock()
}

// take takes the journal, and a piece of the rewrite in progress, as the next
// checkpoint. It does nothing while an earlier checkpoint waits to be written.
func (k *keeper) take() {
	if k.pending() {
		return
	}
	srv := k.srv
	c := &checkpoint{epoch: k.epoch, changes: srv.scope.changes}
	c.Time = srv.at
	if k.rewrite != nil {
		k.rewrite.piece(srv.keys, c)
		c.needed = k.needsFresh
	} else {
		c.Forget = k.obsoleteUpTo
	}
	if j := srv.keys.TakeJournal(); j != nil {
		c.Journal = j.Chunks
	}
	c.Spaces, c.LastSpace = srv.keys.Spaces(), srv.keys.LastSpace()
	k.epoch++
	k.taken = c.changes
	if k.saveRequested {
		k.saveRequested, k.saving = false, true
	}
	k.saveStarted = time.Now()
	k.queueLock.Lock()
	k.queue = append(k.queue, c)
	k.queueLock.Unlock()
}

// flush writes the checkpoints that were taken. It may be called with or without
// the server's lock.
func (k *keeper) flush() {
	k.io.Lock()
	defer k.io.Unlock()
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
		k.results = append(k.results, r)
		if r.err == nil || r.lost || c.needed {
			k.queue = k.queue[min(1, len(k.queue)):]
		}
		k.queueLock.Unlock()
		if r.err != nil {
			return
		}
	}
}

// write writes a checkpoint to the file, to the fresh file, or to both.
func (k *keeper) write(c *checkpoint) (r result) {
	r.checkpoint = c
	defer func() { r.moreToDrop = r.err == nil && k.file != nil && k.file.Forgetting() }()
	if c.fresh {
		done, err := k.writeFresh(c)
		if err != nil {
			err = errors.Join(err, k.giveUp(c))
			r.rewriteAbandoned = true
			if c.needed || k.file == nil {
				r.err, r.lost = err, k.file == nil && !c.needed
				return r
			}
			k.srv.log.Warn("cannot write a new data file; keeping the old one", "error", err)
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
	if _, r.err = k.file.Write(&old); r.err == nil {
		r.stats = measure(k.file)
		return r
	}
	if c.fresh || c.Bases != nil || c.Forget != 0 { // the next attempt writes the journal alone, which needs less space
		r.err = errors.Join(r.err, k.giveUp(c))
		r.rewriteAbandoned = true
	}
	if k.file.Suspect() != nil {
		r.lost, r.disturbed = true, disturbed(k.file.Suspect())
		if err := k.file.Close(); err != nil {
			k.srv.log.Warn("cannot close the failed data file", "error", err)
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
func (k *keeper) giveUp(c *checkpoint) (err error) {
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
	s.bases, s.journal, s.generation = m.Bases.Bytes, m.Journal.Bytes, m.Generation
	return s
}

// writeFresh writes a checkpoint to the fresh file, and reports whether the fresh
// file has replaced the old one.
func (k *keeper) writeFresh(c *checkpoint) (done bool, err error) {
	if c.begins {
		if k.fresh != nil {
			if err := k.fresh.Discard(); err != nil {
				return false, err
			}
		}
		if k.fresh, err = snapshot.Beside(k.path); err != nil {
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
			return false, fmt.Errorf("%s: %w", k.path, err)
		}
	}
	err = k.fresh.Publish(k.path)
	if err != nil && k.fresh.Path() != k.path {
		return false, err
	}
	if k.file != nil { // the fresh file has its name now
		if err := k.file.Close(); err != nil {
			k.srv.log.Warn("cannot close the replaced data file", "error", err)
		}
		k.file = nil
	}
	if err != nil { // renamed, but the rename may not be on the disk: a crash may restore the old file
		return false, err
	}
	k.file, k.fresh = k.fresh, nil
	return true, nil
}

// account records the outcome of the checkpoints that were written, and reports
// whether all have succeeded.
func (k *keeper) account() (ok bool) {
	ok = true
	k.queueLock.Lock()
	results := k.results
	k.results = nil
	k.queueLock.Unlock()
	for _, r := range results {
		c := r.checkpoint
		if r.rewriteAbandoned {
			k.rewrite, k.rewriteFailedAt = nil, time.Now()
		}
		if r.disturbed { // no failure: the fresh file will include this checkpoint
			k.miss(r.err)
			k.saveRequested, k.saving = k.saveRequested || k.saving, false
			continue
		}
		if r.err != nil {
			k.fail(r)
			ok = false
			continue
		}
		k.stats = r.stats
		if !r.moreToDrop {
			k.obsoleteUpTo = 0
		}
		if k.rewrite != nil && k.rewrite.at == len(k.rewrite.keys) && (c.ends || c.Forget == k.rewrite.upTo) {
			if !k.rewrite.fullSave {
				k.srv.log.Info("data file rewritten", "file", k.path, "fresh", k.rewrite.fresh, "keys", len(k.rewrite.keys),
					"seconds", time.Since(k.rewrite.began).Seconds())
				k.rewrites++
			}
			if r.moreToDrop {
				k.obsoleteUpTo = c.Forget
			}
			if k.rewrite.fresh {
				k.needsFresh, k.cleared = false, k.srv.keys.Cleared()
			}
			k.rewrite, k.rewriteFailedAt = nil, time.Time{}
		} else if c.needed {
			continue // written to a fresh file that is incomplete: a crash would lose it
		}
		k.durable, k.saved = c.epoch, c.changes
		k.lastSave, k.saveDuration, k.savedAt = time.Now(), time.Since(k.saveStarted), k.srv.clock()
		if k.failed != nil {
			k.srv.log.Info("saving succeeds again", "file", k.path, "failures", k.failures.n,
				"seconds", time.Since(k.failures.since).Seconds())
		}
		k.failed, k.failures = nil, failures{}
		k.saves++
		if k.saving {
			k.saving = false
			k.srv.log.Info("saved", "file", k.path, "seconds", k.saveDuration.Seconds())
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
	next     time.Time     // when the same error is logged again
	interval time.Duration // delay until the log entry after that
}

const (
	// firstReminder is the delay after which a persistent failure is logged again.
	// Each interval is twice the previous one, up to lastReminder.
	firstReminder = 10 * time.Second
	lastReminder  = time.Hour
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
		f.interval = firstReminder
	case now.Before(f.next):
		if !asked {
			return
		}
	default:
		f.interval = min(2*f.interval, lastReminder)
	}
	f.logged, f.next = text, now.Add(f.interval)
	log.Error("saving failed", "error", err, "retry", retryTime, "failures", f.n, "since", f.since.Format(time.RFC3339))
}

// fail records that a checkpoint could not be written.
func (k *keeper) fail(r result) {
	k.failures.log(k.srv.log, r.err, k.saving || r.requested)
	k.failed, k.saveRequested, k.saving = r.err, false, false
	k.retry = time.Now().Add(retryTime)
	k.saveDuration = time.Since(k.saveStarted)
	k.tellSavers(r.err)
	if r.checkpoint.needed {
		k.loseTrack()
	}
	if r.lost {
		k.srv.log.Warn("the data file has failed; writing a new one", "file", k.path)
		k.loseTrack()
	}
	for _, s := range k.held { // they wait for a confirmation that cannot be given
		s.held = false
		s.kill()
	}
	k.held = nil
	if k.automatic() {
		k.timerAt = time.Time{}
		k.setTimer(k.retry)
	}
}

// hold withholds the output of s until the next checkpoint is on the disk.
func (k *keeper) hold(s *Session) {
	if !s.held {
		s.held = true
		k.held = append(k.held, s)
	}
	s.heldFor = k.epoch
	s.stalled.Store(true)
}

// release resumes the sessions whose changes are on the disk.
func (k *keeper) release() {
	k.held = slices.DeleteFunc(k.held, func(s *Session) bool {
		if s.heldFor > k.durable && k.always {
			return false
		}
		s.held = false
		if s.blocked == nil && s.postponed == nil {
			s.resume()
		} else {
			s.pending()
		}
		return true
	})
}

// holds reports whether the changes of the current turn must be on the disk before
// any client is notified of them.
func (k *keeper) holds() bool {
	return k.always && k.srv.keys.Sequence() != k.turnSequence && (k.failed == nil || k.srv.config.stopWrites)
}

// refuses reports whether commands that write are refused, because saving fails.
func (k *keeper) refuses() bool { return k.failed != nil && k.srv.config.stopWrites && k.automatic() }

// saveNow writes everything that is not on the disk yet. The server's lock is held.
func (k *keeper) saveNow() error {
	for {
		k.finishWrite()
		if k.needsFresh && k.rewrite == nil {
			k.srv.keys.Record(true)
			keys := k.allKeys(func(f func()) { f() })
			k.beginRewrite(&rewrite{keys: keys, fresh: true, fullSave: !k.automatic() && !k.wantsFresh, began: time.Now()})
			k.wantsFresh = false
		}
		waiting := k.pending()
		k.take()
		k.flush()
		k.queueLock.Lock()
		for i := range k.results {
			k.results[i].requested = true
		}
		k.queueLock.Unlock()
		if !k.account() {
			return k.failed
		}
		if !k.needsFresh && !waiting {
			k.turnSequence = k.srv.keys.Sequence() // replies to earlier changes need not wait: see holds
			k.untrack()
			return nil
		}
	}
}

// finishWrite waits for the result of the checkpoint that is being written, and
// accounts for it. Otherwise the rewrite that this checkpoint completes would seem
// to go on, and the next checkpoint would be a part of it.
func (k *keeper) finishWrite() {
	k.io.Lock()
	k.queueLock.Lock()
	unaccounted := len(k.results) > 0
	k.queueLock.Unlock()
	k.io.Unlock()
	if unaccounted {
		k.account()
	}
}

// close writes unsaved data if save is set, and closes the file. The server's lock
// is not held, and no commands run any more.
func (k *keeper) close(save bool) (err error) {
	if k.path == "" {
		return nil
	}
	k.end()
	if k.loadErr != nil {
		return nil
	}
	k.srv.maintain(func() {
		if save {
			err = k.saveNow()
			if err != nil && k.needsFresh { // the file has failed, and there is no later attempt
				err = k.saveNow()
			}
			if err != nil {
				err = fmt.Errorf("cannot save the last changes: %w", err)
			}
		}
		err = errors.Join(err, k.closeFiles())
		k.srv.keys.Record(false)
		k.path = ""
	})
	return err
}

// end stops the keeper's goroutines and waits for them.
func (k *keeper) end() {
	k.ended.Do(func() { close(k.quit) })
	k.done.Wait()
}

// abandon closes the file as it is. The server's lock is broken.
func (k *keeper) abandon() error {
	if k.quit == nil {
		return nil // there is no file
	}
	k.end()
	k.timer.Stop()
	return k.closeFiles()
}

func (k *keeper) closeFiles() (err error) {
	k.io.Lock()
	defer k.io.Unlock()
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

// rewrite is a rewrite in progress: it writes bases of keys, in the order of the
// file.
type rewrite struct {
	keys     []keyID
	at       int
	fresh    bool   // into a fresh file
	fullSave bool   // because each save writes everything, see track
	upTo     uint64 // the last checkpoint whose journal is obsolete when all keys have new bases
	began    time.Time
}

// keyID names a key of a space.
type keyID struct {
	space uint64
	key   string
}

// compareID compares in the order of the file.
func compareID(a, b keyID) int { return snapshot.Compare(a.space, a.key, b.space, b.key) }

const (
	// pieceTime is the longest time that the lock is held for a piece, and
	// pieceBytes the size of a piece.
	pieceTime  = 200 * time.Microsecond
	pieceBytes = 1 << 20
)

func (k *keeper) beginRewrite(r *rewrite) {
	slices.SortFunc(r.keys, compareID)
	k.rewrite = r
}

// beginFresh begins a fresh file. It lists the keys while clients run commands;
// keys that are created meanwhile are in the journal. If a checkpoint takes that
// journal during the listing, because a client has requested a save, the fresh file
// would lack these keys, so beginFresh lists the keys again.
func (k *keeper) beginFresh() {
	srv := k.srv
	for began := false; !began; {
		var epoch uint64
		srv.do(func() {
			epoch = k.epoch
			if !srv.keys.Recording() {
				srv.keys.Record(true)
			}
		})
		keys := k.allKeys(srv.do)
		srv.do(func() {
			if began = k.epoch == epoch; began {
				k.beginRewrite(&rewrite{keys: keys, fresh: true, fullSave: !k.automatic() && !k.wantsFresh, began: time.Now()})
				k.wantsFresh = false
			}
		})
	}
}

// allKeys lists all keys that exist throughout the call. hold runs a function under
// the lock.
func (k *keeper) allKeys(hold func(func())) (keys []keyID) {
	var spaces []uint64
	hold(func() { spaces = append([]uint64{keyspace.InternalSpace}, k.srv.keys.Spaces()...) })
	for _, space := range spaces {
		for cursor, more := uint64(0), true; more; {
			hold(func() {
				more = false
				if db := databases(k.srv.keys)[space]; db != nil { // it may have been cleared
					cursor = db.Scan(cursor, 500, func(e *keyspace.Entry) { keys = append(keys, keyID{space, e.Key()}) })
					more = cursor != 0
				}
			})
		}
	}
	return keys
}

// databases returns the databases by their spaces.
func databases(keys *keyspace.Keyspace) map[uint64]*keyspace.DB {
	dbs := map[uint64]*keyspace.DB{}
	for i := keyspace.InternalDB; i < keys.Len(); i++ {
		dbs[keys.DB(i).Space()] = keys.DB(i)
	}
	return dbs
}

// considerRewrite begins to rewrite a part of the file, or all of it, if that is
// worth its cost, and reports whether it has. It bounds the file to about two to
// three times the size of the data, and each byte of a journal is rewritten about
// once at most.
func (k *keeper) considerRewrite() bool {
	srv := k.srv
	var idle, wanted bool
	var s keepStats
	var live, cleared int64
	var epoch uint64
	srv.maintain(func() {
		idle = k.loading == nil && k.rewrite == nil && k.obsoleteUpTo == 0 && !k.needsFresh && k.failed == nil &&
			(k.wantsFresh || k.rewriteFailedAt.IsZero() || time.Since(k.rewriteFailedAt) > rewriteRetryDelay)
		wanted, s, epoch = k.wantsFresh && idle, k.stats, k.epoch
		for i := range srv.keys.Len() {
			live += int64(srv.keys.DB(i).Len())
		}
		cleared = srv.keys.Cleared() - k.cleared
	})
	switch {
	case !idle:
		return false
	case wanted || s.size-s.used > max(k.limits.waste, s.used) || cleared > max(k.limits.cleared, live):
		k.beginFresh()
		return true
	case s.journal > max(k.limits.journal, s.bases) && s.bases <= k.limits.journal:
		k.beginFresh() // costs little more, and leaves a file without free pages
		return true
	case s.journal > max(k.limits.journal, s.bases):
		r, err := k.journaled()
		if errors.Is(err, snapshot.ErrReplaced) {
			return false // the next checkpoint fails, and reports it
		}
		if err != nil {
			srv.maintain(func() { k.miss(err) })
			return true
		}
		srv.do(func() {
			if k.epoch == epoch {
				k.beginRewrite(r)
			}
		})
		return true
	}
	return false
}

// journaled lists the keys that the journals in the file name.
func (k *keeper) journaled() (*rewrite, error) {
	k.io.Lock()
	defer k.io.Unlock()
	seen := map[keyID]struct{}{}
	if k.file == nil {
		return nil, errors.New("the data file is missing")
	}
	if err := k.file.Intact(); err != nil {
		return nil, err
	}
	r := &rewrite{upTo: k.file.Manifest().Generation, began: time.Now()}
	err := k.file.Journals(func(_ uint64, records []byte) error {
		for len(records) > 0 {
			record, rest, err := keyspace.NextRecord(records)
			if err != nil {
				return err
			}
			seen[keyID{record.Space, string(record.Key)}] = struct{}{}
			records = rest
		}
		return nil
	})
	r.keys = slices.Collect(maps.Keys(seen))
	return r, err
}

// piece adds to a checkpoint the bases of the next keys, as they are at this
// instant.
func (r *rewrite) piece(keys *keyspace.Keyspace, c *checkpoint) {
	dbs := databases(keys)
	c.fresh, c.begins = r.fresh, r.fresh && r.at == 0
	start, bytes := time.Now(), 0
	for ; r.at < len(r.keys) && bytes < pieceBytes; r.at++ {
		if r.at%16 == 15 && time.Since(start) > pieceTime {
			break
		}
		id := r.keys[r.at]
		base := snapshot.Base{Space: id.space, Key: id.key}
		if db := dbs[id.space]; db != nil {
			if e := db.Peek(bytesOf(id.key)); e != nil {
				p := db.Pin(e)
				base.Chunks = p.Chunks
				bytes += p.Size()
			}
		}
		// A record that a key is gone is needed only where an older record may have
		// the key.
		if base.Chunks != nil || !r.fresh {
			c.Bases = append(c.Bases, base)
		}
	}
	if r.at < len(r.keys) {
		return
	}
	if r.fresh {
		c.ends = true
	} else {
		c.Forget = r.upTo
	}
}
