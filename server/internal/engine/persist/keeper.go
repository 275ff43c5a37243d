package persist

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/zsetd/zsetd/server/archive"
	"github.com/zsetd/zsetd/server/internal/engine/config"
	"github.com/zsetd/zsetd/snapshot"
)

// A Keeper keeps the data in a file. Commands record their changes in the
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
//
// Methods need the host's lock unless their comment says otherwise.
type Keeper struct {
	o    Options
	host Host
	Path string // of the file, absolute; empty without a file, and once the keeper is closed

	worker
	files
	results
	loading // the host's lock guards the fields from here on
	schedule
	direct
	gathered
	progress
	rewriting
	saving
	failing

	Stats  Figures
	Limits Limits
}

// worker is the goroutine that writes.
type worker struct {
	kick  chan struct{} // capacity 1: there may be work
	quit  chan struct{}
	done  sync.WaitGroup
	ended sync.Once // guards closing quit
}

// files are the open files.
type files struct {
	// io is held while files are read or written. The host's lock is not taken
	// while io is held; io may be taken under the host's lock, as SAVE does.
	io    sync.Mutex
	file  *snapshot.File // may be nil
	fresh *snapshot.File // being written; may be nil

	idle bool // there is no file because it is open only while it is loaded or saved

	writingOut sync.Mutex // held during a backup of data in memory, before the host's lock
}

// results are the checkpoints on their way to the file, and the outcomes on their way back.
type results struct {
	queueLock sync.Mutex    // guards the rest
	queue     []*Checkpoint // taken and not yet written, in order
	Results   []Result
}

// loading is the state of loading the data.
type loading struct {
	Loading                 *LoadState // nil once the data are loaded
	loaded                  chan struct{}
	loadErr                 error
	loadedKeys, expiredKeys int64
}

// schedule is when checkpoints are taken.
type schedule struct {
	always    bool
	rules     []config.SaveRule
	timer     *time.Timer
	timerAt   time.Time // zero: not set
	suspended bool      // see Suspend
	closed    bool
}

// progress is how far the file has come.
type progress struct {
	epoch        uint64 // of the next checkpoint
	durable      uint64 // the last epoch that is on the disk
	ObsoleteUpTo uint64 // journals up to this checkpoint are obsolete
	taken        int64  // Host.Changes as of the last checkpoint
	saved        int64  // Host.Changes that are on the disk
	savedCounted int64  // Host.Counted that are on the disk
	released     int    // clients whose replies the last checkpoint has released
}

// rewriting is the state of writing a fresh file, or new bases.
type rewriting struct {
	NeedsFresh      bool // the file lacks changes that the journal does not have either
	WantsFresh      bool // BGREWRITEAOF
	Rewrite         *Rewrite
	RewriteFailedAt time.Time // when a rewrite was abandoned; zero once one has succeeded
	rewrites        int64
	cleared         int64 // keys in databases that were cleared, up to the last fresh file
}

// saving is the state of BGSAVE.
type saving struct {
	SaveRequested bool      // BGSAVE is requested
	requested     time.Time // since when; zero until the keeper looks
	savers        []saveWaiter
	Saving        bool // BGSAVE is in progress
	saveStarted   time.Time
	saveDuration  time.Duration // -1 s: nothing was ever saved
	times         Times
	lastSave      time.Time
	savedAt       time.Time // lastSave by the host's clock
	saves         int64
}

// Limits are the sizes that trigger writes and rewrites, and a time. Tests change them.
type Limits struct {
	Pending int   // largest journal in memory: above it the journal is written whatever the rules say, or dropped if it cannot be written
	Small   int64 // size of the bases in a file up to which a fresh file replaces it when journals are to be dropped
	Waste   int64 // size of the waste in a file above which it may be rewritten
	Cleared int64 // keys cleared with their databases above which the file may be rewritten without them

	Direct time.Duration // duration of the last checkpoint up to which the next may be written directly
}

func defaultLimits() Limits {
	return Limits{Pending: 64 << 20, Small: 16 << 20, Waste: 16 << 20, Cleared: 10_000, Direct: time.Millisecond}
}

// Checkpoint is a snapshot.Checkpoint on its way to the file.
type Checkpoint struct {
	snapshot.Checkpoint
	epoch   uint64
	changes int64
	counted int64 // Host.Counted
	taken   time.Time
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
	stats      Figures
}

const (
	// retryTime is the delay between a failure and the next attempt.
	retryTime = time.Second

	// rewriteRetryDelay is the delay between an abandoned rewrite and the next one,
	// unless a client requests it.
	rewriteRetryDelay = time.Minute
)

// New returns a keeper of the data in o.Keys. It opens no file yet.
func New(o Options, h Host) *Keeper {
	return &Keeper{
		o: o, host: h, Limits: defaultLimits(),
		loading:  loading{loaded: make(chan struct{})},
		progress: progress{epoch: 1},
		saving:   saving{saveDuration: -time.Second, lastSave: o.Start, savedAt: o.Start},
	}
}

// Open opens or creates the file that the parameters dir and dbfilename name, and starts
// the goroutines of the keeper. A file that exists is loaded by one of them, see Ready;
// Open itself returns an error if it is not a data file, damaged at first sight or in
// use. The error is a *FileError. Open is called once, without the lock.
//
// While checkpoints are taken on request only the file is not open except to load and to
// save: several servers may name the same file, and the last that saves replaces it.
func (k *Keeper) Open() error {
	k.Apply()
	if k.o.Settings.Dbfilename == "" {
		close(k.loaded)
		return nil
	}
	path, err := filepath.Abs(filepath.Join(k.o.Settings.Dir, k.o.Settings.Dbfilename))
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
		k.o.Log.Warn("the data file is empty (0 bytes): starting without data", "file", path)
		fallthrough
	case errors.Is(err, fs.ErrNotExist):
		k.warnOfData()
		if !k.Automatic() {
			k.track()
		} else if err := k.create(); err != nil {
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
		k.done.Go(func() { k.host.Attempt(k.load) })
	}
	k.warnOfName()
	k.done.Go(func() { k.host.Attempt(k.run) })
	return nil
}

// Apply applies the parameters to the keeper.
func (k *Keeper) Apply() {
	c := k.o.Settings
	k.rules = c.Save
	k.always = c.Appendonly && c.Appendfsync == "always" && c.Dbfilename != ""
	if c.Appendonly {
		k.rules = []config.SaveRule{{Seconds: 1, Changes: 1}}
	}
	if k.Path == "" || k.Loading != nil || k.suspended {
		return
	}
	switch recording := k.o.Keys.Recording(); {
	case k.Automatic() && !recording:
		k.o.Keys.Record(true) // the file is rewritten, and replies may have to wait for that
	case !k.Automatic() && recording:
		k.untrack()
	}
	k.host.Durable()
	k.Wake()
}

// track begins to journal the changes that the file does not have yet. If
// checkpoints are taken on request only there is no journal, and each save writes
// everything.
func (k *Keeper) track() {
	if k.Automatic() {
		k.o.Keys.Record(true)
	} else {
		k.NeedsFresh, k.idle = true, true
	}
}

// untrack drops the journal and closes the file if checkpoints are taken on request only, as
// soon as nothing is being written.
func (k *Keeper) untrack() {
	if !k.Automatic() && k.o.Keys.Recording() && !k.SaveRequested && !k.Saving && k.Rewrite == nil && k.ObsoleteUpTo == 0 && !k.Pending() {
		k.LoseTrack()
		k.release()
	}
}

// release closes the file, which others may open then, until the next save replaces it.
func (k *Keeper) release() {
	if err := k.closeFiles(); err != nil {
		k.o.Log.Warn("cannot close the data file", "error", err)
	}
	k.idle = true
}

// create makes an empty file.
func (k *Keeper) create() error {
	file, err := snapshot.Beside(k.Path)
	if err != nil {
		return err
	}
	file.Disturb(k.o.Disk)
	if _, err := file.Write(&snapshot.Checkpoint{Spaces: k.o.Keys.Spaces(), LastSpace: k.o.Keys.LastSpace(), Time: k.o.Start}); err != nil {
		return errors.Join(err, file.Discard())
	}
	if err := k.replaceable(); err != nil {
		return errors.Join(err, file.Discard())
	}
	if err := file.Publish(k.Path); err != nil {
		return errors.Join(err, file.Discard())
	}
	k.file, k.Stats = file, measure(file)
	k.track()
	return nil
}

// load reads the file. Loading is set meanwhile.
func (k *Keeper) load() {
	reported := int64(0)
	l := archive.Loader{Keys: k.o.Keys, Hold: k.host.OutOfTurn, Inserted: k.delay, Progress: func(done, total int64) error {
		if done-reported > 1<<20 || reported == 0 {
			reported = done
			k.host.OutOfTurn(func() { k.Loading.Done, k.Loading.Total = done, total })
		}
		select {
		case <-k.quit:
			return ErrServerClosed
		default:
			return nil
		}
	}}
	file, err := l.Open(k.Path)
	k.host.Maintain(func() { k.loadedFrom(&l, file, err) })
}

// loadedFrom takes over the loaded data.
func (k *Keeper) loadedFrom(l *archive.Loader, file *snapshot.File, err error) {
	if err == nil && k.o.Settings.OneDatabase() && slices.ContainsFunc(k.counts()[1:], func(n int64) bool { return n > 0 }) {
		err = errors.Join(errors.New("the file has keys in databases other than 0, which a cluster does not support"), file.Close())
	}
	if err != nil {
		k.loadErr = refused(err)
		k.o.Log.Error("cannot load the data", "error", k.loadErr)
	} else {
		k.file, k.Stats = file, measure(file)
		k.file.Disturb(k.o.Disk)
		k.track()
		if s := file.Manifest().Stream; s != nil {
			k.host.Continue(*s)
		}
		for _, p := range l.Past() {
			p.DB.Forget(p.Key)
		}
		k.host.Loaded()
		k.loadedKeys, k.expiredKeys = l.Loaded, l.Expired
		k.o.Log.Info("data loaded", "file", k.Path, "keys", l.Loaded, "expired", l.Expired,
			"seconds", time.Since(k.Loading.Start).Seconds())
		k.Loading = nil
		if !k.Automatic() {
			k.release()
		}
		k.Note(k.host.Changes())
	}
	close(k.loaded)
}

// counts returns the number of keys of each database.
func (k *Keeper) counts() []int64 {
	var counts []int64
	for _, db := range k.o.Keys.DBs() {
		counts = append(counts, int64(db.Len()))
	}
	return counts
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
	due, startFresh := false, false
	k.host.Maintain(func() {
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
	var pause time.Duration
	k.host.Maintain(func() {
		more = k.accountAndGather()
		k.untrack()
		pause = k.pause(time.Since(start), more)
	})
	time.Sleep(pause)
	return more
}

// miss notes that another program has removed or changed the file, or that its
// content cannot be read. A fresh file is then written.
func (k *Keeper) miss(why error) {
	if !k.NeedsFresh {
		k.o.Log.Warn("the data file was removed, changed or cannot be read; writing a new one", "file", k.Path, "error", why)
		k.LoseTrack()
	}
}

// due reports whether to take a checkpoint now, and if not, sets the timer for the
// next look.
func (k *Keeper) due() bool {
	if k.Loading != nil || k.suspended || k.Path == "" {
		return false
	}
	now := time.Now()
	if !now.Before(k.timerAt) {
		k.timerAt = time.Time{} // it has fired
	}
	requested := k.SaveRequested && !k.delayed(now)
	if k.Failed != nil && now.Before(k.retry) && !requested {
		k.setTimer(k.retry)
		return false
	}
	keys := k.o.Keys
	if requested || k.WantsFresh && k.NeedsFresh || k.Rewrite != nil || k.ObsoleteUpTo != 0 || k.Pending() || keys.Recorded() > k.Limits.Pending {
		return true
	}
	if !k.Automatic() {
		return false
	}
	if k.NeedsFresh {
		return true
	}
	if gathers := k.gathers(now); k.always && keys.Recorded() > 0 {
		return !gathers
	}
	next := k.nextSave(k.host.Changes() - k.taken)
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

// Always reports whether a change has to be on the disk before its reply is sent.
func (k *Keeper) Always() bool { return k.always }

// Epoch returns the number of the next checkpoint. Saved(Epoch()) becomes true when the
// changes so far are on the disk.
func (k *Keeper) Epoch() uint64 { return k.epoch }

// Saved reports whether the checkpoint of an epoch is on the disk.
func (k *Keeper) Saved(epoch uint64) bool { return epoch <= k.durable }

// Settled reports whether all changes so far are on the disk.
func (k *Keeper) Settled() bool { return !k.NeedsFresh && k.saved == k.host.Changes() }

// InProgress reports whether a save that a client has requested, or the first file, is not
// complete.
func (k *Keeper) InProgress() bool {
	return k.SaveRequested || k.Saving || k.NeedsFresh && k.Rewrite != nil
}

// Pending reports whether a checkpoint is taken and not yet written.
func (k *Keeper) Pending() bool {
	k.queueLock.Lock()
	defer k.queueLock.Unlock()
	return len(k.queue) > 0
}

// nextSave returns when the rules request the next checkpoint after a number of
// changes; zero if they do not.
func (k *Keeper) nextSave(changes int64) (next time.Time) {
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

// Note is called just before each release of the host's lock, with Host.Changes. It must
// cost next to nothing.
func (k *Keeper) Note(changes int64) {
	if k.Path == "" || k.Loading != nil || k.suspended {
		return
	}
	changes -= k.taken
	switch {
	case k.o.Keys.Recorded() > k.Limits.Pending:
		k.overflow()
	case k.always && k.Failed != nil:
		k.setTimer(k.retry)
	case k.always:
		if k.o.Keys.Recorded() == 0 {
			break
		}
		if k.wanted = k.deferred; !k.wanted && !k.Gathering() {
			k.Wake()
		}
	case changes > 0 && len(k.rules) > 0 && k.Failed == nil:
		if next := k.nextSave(changes); !next.IsZero() && (k.timerAt.IsZero() || next.Before(k.timerAt)) {
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
		k.o.Log.Warn("unsaved changes exceed the journal limit; the next save writes all data",
			"bytes", k.o.Keys.Recorded())
		k.LoseTrack()
	}
}

// LoseTrack drops the journal. The next save writes a fresh file: at once if checkpoints are
// taken without a request, for replies may wait for it.
func (k *Keeper) LoseTrack() {
	k.o.Keys.Record(false)
	if k.always && k.Failed == nil {
		k.o.Keys.Record(true) // replies wait for the fresh file
	}
	k.epoch++ // a concurrent beginFresh lists the keys again
	k.NeedsFresh = true
	k.Rewrite, k.ObsoleteUpTo = nil, 0
	k.SaveRequested, k.Saving = k.SaveRequested || k.Saving, false // a save in progress begins again
	k.queueLock.Lock()
	k.queue = nil
	k.queueLock.Unlock()
	k.Wake()
}

// Suspend stops saving: the data in memory are not to be kept. The file keeps the last
// state until Resume, or until the next start.
func (k *Keeper) Suspend() {
	k.suspended = true
	if k.Path != "" {
		k.LoseTrack()
	}
}

// Resume continues to save, with a fresh file of all data.
func (k *Keeper) Resume() {
	k.suspended = false
	if k.Path != "" {
		k.LoseTrack()
	}
}

// Suspended reports whether saving is stopped.
func (k *Keeper) Suspended() bool { return k.suspended }

// Take takes the journal, and a piece of the rewrite in progress, as the next
// checkpoint. It does nothing while an earlier checkpoint waits to be written.
func (k *Keeper) Take() { k.take(k.SaveRequested && !k.delayed(time.Now())) }

// take is Take. With exact, the file has the position in the stream of replication, and no
// log, and the checkpoint is the save that is requested.
func (k *Keeper) take(exact bool) {
	if k.Pending() {
		return
	}
	c := &Checkpoint{epoch: k.epoch, changes: k.host.Changes(), counted: k.host.Counted()}
	c.Time, c.Stream, c.Log = k.host.At(), k.host.Stream(exact), k.always && !exact
	if k.Rewrite != nil {
		k.Rewrite.piece(k.o.Keys, c)
		c.needed = k.NeedsFresh
	} else {
		c.Forget = k.ObsoleteUpTo
	}
	if j := k.o.Keys.TakeJournal(); j != nil {
		c.Journal = j.Chunks
	}
	c.Spaces, c.LastSpace, c.Keys = k.o.Keys.Spaces(), k.o.Keys.LastSpace(), k.counts()
	k.epoch++
	k.taken = c.changes
	if exact && k.SaveRequested {
		k.SaveRequested, k.Saving, k.requested = false, true, time.Time{}
	}
	c.taken = time.Now()
	k.saveStarted = c.taken
	k.queueLock.Lock()
	k.queue = append(k.queue, c)
	k.queueLock.Unlock()
}

// Flush writes the checkpoints that were taken. It may be called with or without
// the lock.
func (k *Keeper) Flush() {
	k.io.Lock()
	k.flush(false)
}

// flush is Flush with the files locked, which it unlocks. With inThread, the calling thread
// waits for the disk.
func (k *Keeper) flush(inThread bool) {
	defer k.io.Unlock()
	for {
		k.queueLock.Lock()
		if len(k.queue) == 0 {
			k.queueLock.Unlock()
			return
		}
		c := k.queue[0]
		k.queueLock.Unlock()
		c.InThread = inThread
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
			k.o.Log.Warn("cannot write a new data file; keeping the old one", "error", err)
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
			k.o.Log.Warn("cannot close the failed data file", "error", err)
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
		k.fresh.Disturb(k.o.Disk)
	}
	if k.fresh == nil {
		return false, errors.New("the new data file is missing")
	}
	if _, err := k.fresh.Write(&c.Checkpoint); err != nil || !c.ends {
		return false, err
	}
	if err := k.replaceable(); err != nil {
		return false, err
	}
	err = k.fresh.Publish(k.Path)
	if err != nil && k.fresh.Path() != k.Path {
		return false, err
	}
	if k.file != nil { // the fresh file has its name now
		if err := k.file.Close(); err != nil {
			k.o.Log.Warn("cannot close the replaced data file", "error", err)
		}
		k.file = nil
	}
	if err != nil { // renamed, but the rename may not be on the disk: a crash may restore the old file
		return false, err
	}
	k.file, k.fresh, k.idle = k.fresh, nil, false
	return true, nil
}

// replaceable returns an error if the file at the path belongs to another program, and is not
// to be replaced by a fresh file.
func (k *Keeper) replaceable() error {
	if k.file != nil {
		if err := k.file.Intact(); errors.Is(err, snapshot.ErrReplaced) {
			return fmt.Errorf("%s: %w", k.Path, err)
		}
		return nil
	}
	if info, err := os.Stat(k.Path); err != nil || info.Size() == 0 {
		return nil
	} else if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: %w", k.Path, snapshot.ErrReplaced)
	}
	lock, err := snapshot.Lock(k.Path)
	switch {
	case err == nil:
		return lock.Close()
	case errors.Is(err, snapshot.ErrInUse), k.idle && errors.Is(err, snapshot.ErrForeign):
		return err
	}
	return nil // a file that was ours, and is damaged
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
				k.o.Log.Info("data file rewritten", "file", k.Path, "fresh", k.Rewrite.Fresh, "keys", len(k.Rewrite.Keys),
					"seconds", time.Since(k.Rewrite.Began).Seconds())
				k.rewrites++
			}
			if r.moreToDrop {
				k.ObsoleteUpTo = c.Forget
			}
			if k.Rewrite.Fresh {
				k.NeedsFresh, k.cleared = false, k.o.Keys.Cleared()
			}
			k.Rewrite, k.RewriteFailedAt = nil, time.Time{}
		} else if c.needed {
			continue // written to a fresh file that is incomplete: a crash would lose it
		}
		k.durable, k.saved, k.savedCounted = c.epoch, c.changes, c.counted
		k.lastSave, k.savedAt = time.Now(), k.host.Clock()
		k.saveDuration = k.lastSave.Sub(k.saveStarted)
		k.times.add(k.lastSave.Sub(c.taken))
		if k.Failed != nil {
			k.o.Log.Info("saving succeeds again", "file", k.Path, "failures", k.Failures.n,
				"seconds", time.Since(k.Failures.since).Seconds())
		}
		k.Failed, k.Failures = nil, failures{}
		k.saves++
		if k.Saving {
			k.Saving = false
			k.o.Log.Info("saved", "file", k.Path, "seconds", k.saveDuration.Seconds())
		}
	}
	k.tellSavers(nil)
	k.released = k.host.Durable()
	return ok
}

// SaveNow writes everything that is not on the disk yet.
func (k *Keeper) SaveNow() error {
	if k.suspended {
		return errSuspended
	}
	for {
		k.finishWrite()
		if k.NeedsFresh && k.Rewrite == nil {
			k.o.Keys.Record(true)
			keys := k.AllKeys(func(f func()) { f() })
			k.BeginRewrite(&Rewrite{Keys: keys, Fresh: true, FullSave: !k.Automatic() && !k.WantsFresh, Began: time.Now()})
			k.WantsFresh = false
		}
		waiting := k.Pending()
		k.take(true)
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
			k.untrack()
			return nil
		}
	}
}

// finishWrite waits for the result of the checkpoint that is being written, and
// accounts for it. Otherwise the rewrite that this checkpoint completes would seem
// to go on, and the next checkpoint would be a part of it.
func (k *Keeper) finishWrite() {
	k.io.Lock()
	k.queueLock.Lock()
	unaccounted := len(k.Results) > 0
	k.queueLock.Unlock()
	k.io.Unlock()
	if unaccounted {
		k.Account()
	}
}

// Close writes unsaved data if save is set, and closes the file. It is called without the
// lock, when no commands run any more.
func (k *Keeper) Close(save bool) (err error) {
	if k.Path == "" {
		return nil
	}
	k.end()
	if k.loadErr != nil {
		return nil
	}
	k.host.Maintain(func() {
		if save && !k.suspended {
			err = k.SaveNow()
			if err != nil && k.NeedsFresh { // the file has failed, and there is no later attempt
				err = k.SaveNow()
			}
			if err != nil {
				err = fmt.Errorf("cannot save the last changes: %w", err)
			}
		}
		err = errors.Join(err, k.closeFiles())
		k.o.Keys.Record(false)
		k.Path, k.closed = "", true
	})
	return err
}

// end stops the keeper's goroutines and waits for them.
func (k *Keeper) end() {
	k.ended.Do(func() { close(k.quit) })
	k.done.Wait()
}

// Abandon closes the file as it is. The host's lock is broken.
func (k *Keeper) Abandon() error {
	if k.quit == nil {
		return nil // there is no file
	}
	k.end()
	k.timer.Stop()
	return k.closeFiles()
}

func (k *Keeper) closeFiles() (err error) {
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
