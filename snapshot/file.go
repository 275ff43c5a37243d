package snapshot

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// File is a snapshot file that is open for writing. No other process can open it
// meanwhile. Its methods must not be called concurrently.
type File struct {
	path       string
	db         *bbolt.DB
	file       *os.File // the descriptor of db
	identity   fs.FileInfo
	broken     bool // db has panicked, and may never release its locks
	manifest   Manifest
	tombstones []tombstone // tombstones: bases that record that a key does not exist
	forgetting bool        // journals remain that the last checkpoint was to drop
	suspect    error       // the reason why nothing more may be written
	renamed    bool        // it has its final name, under which readers rely on it
	log        groupLog
	fault      func(op string) error
	dataSync   dataSync

	txid         uint64    // the number of the last transaction
	mark         mark      // the state after the last transaction, see intact.go
	checked      time.Time // begin of the latest append that has looked for changes by other programs
	timeChanges  int       // number of consecutive changes of the modification time alone
	blockChanges int       // number of commits after which there were fewer blocks
	scratch      []byte

	holdExpired bool // a process that copies the file has held it for too long
}

// tombstone is the name of a base without a value. It makes the records
// of the key in older journals void, and is removed with those journals.
type tombstone struct {
	name       string
	generation uint64
}

// Checkpoint is the content of one write: the changes up to one instant.
type Checkpoint struct {
	// Spaces names the space of each database, LastSpace the highest number that
	// was ever given to one.
	Spaces    []uint64
	LastSpace uint64

	// Keys is about how many keys each database has, so that a reader can reserve memory
	// for them; it may be nil.
	Keys []int64

	// Journal yields chunks of a journal in order; nil if nothing has changed.
	Journal iter.Seq[[]byte]

	// Bases are values as they were at the instant of the checkpoint. Write sorts them
	// into the order of the file.
	Bases []Base

	// Log lets Write append the checkpoint to the log of the file, if it has neither Bases
	// nor Forget: that takes one fdatasync, not two, and writes no pages. Files that are not
	// published have no log. A checkpoint without Log removes the log.
	Log bool

	// InThread lets Write wait for the disk in the calling thread if it appends to the log.
	// That saves two changes of threads. Meanwhile the thread runs no other goroutine, and no
	// garbage collection begins: it is for disks that flush in less than a millisecond.
	InThread bool

	// Forget drops journals of checkpoints up to this generation, the oldest first; very
	// many are dropped in several checkpoints, see [File.Forgetting]. Every key that they
	// name must have had a Base since it was last named, and in no checkpoint later than
	// this one.
	Forget uint64

	// Time is the instant.
	Time time.Time

	// Stream is the position of the changes in a stream; nil if that is not known.
	Stream *Stream
}

// Base is the whole value of a key.
type Base struct {
	Space  uint64
	Key    string
	Chunks iter.Seq[[]byte] // operations, borrowed; nil if the key does not exist
}

// compareBases compares two bases in the order of the file.
func compareBases(a, b Base) int { return Compare(a.Space, a.Key, b.Space, b.Key) }

// pageSize is the page size of all files, independent of the machine's: files can
// be moved between machines.
const pageSize = 4096

// growth is the least number of bytes by which a file larger than that grows.
const growth = 4 << 20

// lockTime is the longest wait for another process to unlock a file.
const lockTime = 900 * time.Millisecond

// mostListed is the number of free pages with which a transaction may begin to store their list: it writes
// all of it, 8 bytes for a page. Opening a file without a list takes a fifth longer, and nearly
// twice the memory, because bbolt reads every page then. Reading verifies that the list names no
// page in use.
const mostListed = 8 << 10

func boltOptions() *bbolt.Options {
	return &bbolt.Options{
		Timeout:        lockTime,
		PageSize:       pageSize,
		FreelistType:   bbolt.FreelistMapType,
		NoFreelistSync: true, // see mostListed
	}
}

// Create makes a new file at path, which must not exist. Its checkpoints are not
// synced to the disk before [File.Publish]. Remove a file that is not published with
// [File.Discard].
func Create(path string) (*File, error) {
	db, file, err := openBolt(path, boltOptions())
	if err != nil {
		return nil, err
	}
	db.NoSync = true
	f := &File{path: path, db: db, file: file, manifest: Manifest{Format: plainFormat}}
	f.identity, _ = file.Stat()
	err = f.update(func(tx *bbolt.Tx) error {
		for _, name := range []string{aboutBucket, checkpointsBucket, keysBucket} {
			if _, err := tx.CreateBucket([]byte(name)); err != nil {
				return err
			}
		}
		return f.putManifest(tx, &f.manifest)
	})
	if err == nil {
		err = f.recordMark(&f.manifest, 0)
	}
	if err != nil {
		return nil, errors.Join(err, f.Discard())
	}
	return f, nil
}

// Beside creates a file beside the one at path, to replace it with Publish(path).
// It removes an incomplete file that an earlier process has left there. While another
// process writes one it waits for up to a second, and then returns [ErrInUse].
func Beside(path string) (*File, error) {
	path += ".new"
	for began := time.Now(); isLocked(path); time.Sleep(time.Millisecond) {
		if time.Since(began) > lockTime {
			return nil, fmt.Errorf("%s: %w by another process", path, ErrInUse)
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return Create(path)
}

// Tight keeps the file as small as its contents until it is published: bbolt
// extends a file by 4 MB at a time, which is wasted on a file that is written only
// once.
func (f *File) Tight() { f.db.NoGrowSync = true }

// openBolt opens a bbolt file and returns the errors of this package.
//
// A process that waits for the lock may get it because the previous owner has
// replaced the file by another (Publish). Then it has opened a file without a name,
// and all it wrote there would be lost. Such a file is refused.
func openBolt(path string, o *bbolt.Options) (db *bbolt.DB, file *os.File, err error) {
	stop := func() {}
	o.OpenFile = func(name string, flag int, mode os.FileMode) (_ *os.File, err error) {
		if file, err = os.OpenFile(name, flag, mode); err == nil && !o.ReadOnly {
			stop = shedOpening(file)
		}
		return file, err
	}
	panicked, err := guard(func() error {
		db, err = bbolt.Open(path, 0o600, o)
		return err
	})
	stop()
	if panicked && file != nil {
		err = errors.Join(err, closeBroken(file))
	}
	if err == nil {
		db.AllocSize = growth
	}
	if err == nil {
		at, err := isAt(file, path)
		if err == nil && !at {
			err = fmt.Errorf("%w by another process, which has replaced it just now", ErrInUse)
		}
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("%s: %w", path, trimPath(err)), db.Close())
		}
	}
	if errors.Is(err, bolterrors.ErrTimeout) {
		if lockedHere(path) {
			return nil, nil, fmt.Errorf("%s: %w by this process", path, ErrInUse)
		}
		return nil, nil, fmt.Errorf("%s: %w by another process", path, ErrInUse)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, trimPath(err))
	}
	return db, file, nil
}

// isAt reports whether a file is the one that is found at path. That none is there is no error.
func isAt(file *os.File, path string) (bool, error) {
	own, err := file.Stat()
	if err != nil {
		return false, err
	}
	found, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(own, found), err
}

// trimPath removes the path from an error that is reported together with the path.
func trimPath(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// guard turns the panics and memory faults of bbolt into errors. A mapped file that
// another program truncates causes such a fault.
func guard(f func() error) (panicked bool, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			panicked, err = true, fmt.Errorf("%w: %v", ErrDamaged, r)
		}
	}()
	return false, f()
}

// guard is the function of the same name for operations on the file. If bbolt
// panics while it begins a transaction its locks stay held, and the next operation
// would wait without end: so after a panic guard refuses all operations.
func (f *File) guard(do func() error) error {
	if f.broken {
		return fmt.Errorf("%w: an earlier operation failed", ErrDamaged)
	}
	panicked, err := guard(do)
	f.broken = panicked
	return err
}

// closeBroken closes a file that bbolt cannot close any more. Its mapping stays, and
// would keep the lock.
func closeBroken(file *os.File) error { return errors.Join(unlock(file), file.Close()) }

// Path returns the present path of the file.
func (f *File) Path() string { return f.path }

// Manifest returns the description of the contents.
func (f *File) Manifest() Manifest { return f.manifest.current(int(f.log.groups), &f.log.last) }

// Logged returns the bytes of the log that are in use.
func (f *File) Logged() int64 { return int64(f.log.next) * blockSize }

// Usage returns the size of the file and the bytes of it that are in use.
func (f *File) Usage() (size, used int64) {
	s := f.db.Stats()
	size, used = f.mark.size, int64(f.mark.pages)*pageSize
	return size, used - int64(s.FreePageN+s.PendingPageN)*pageSize
}

// Forgetting reports whether the last checkpoint has left journals that it was to
// drop: a later checkpoint must drop them.
func (f *File) Forgetting() bool { return f.forgetting }

// Journals yields the journals in the file, the oldest checkpoint first, in parts of
// whole records, which are borrowed.
func (f *File) Journals(visit func(generation uint64, records []byte) error) error {
	defer f.shed()
	return f.guard(func() error {
		return f.db.View(func(tx *bbolt.Tx) error {
			checkpoints := tx.Bucket([]byte(checkpointsBucket))
			return checkpoints.ForEachBucket(func(bucket []byte) error {
				return checkpoints.Bucket(bucket).ForEach(func(name, value []byte) error {
					records, _, ok := unseal(value, bucket, name)
					if !ok {
						return damaged("journal of checkpoint %x, part %x", bucket, name)
					}
					return visit(binary.BigEndian.Uint64(bucket), records)
				})
			})
		})
	})
}

// Publish makes the file durable and moves it to path, where it replaces another
// file. After an error the file is suspect; if its Path is then the new one, the
// other file is gone, but a crash may bring it back.
func (f *File) Publish(path string) error {
	if err := f.Intact(); err != nil {
		return f.markSuspect(err)
	}
	err := f.sync("sync", f.db.Sync)
	if err != nil {
		return f.markSuspect(err)
	}
	f.db.NoSync, f.db.NoGrowSync = false, false
	if runtime.GOOS == "windows" { // Windows does not rename a file that is open
		if err := f.db.Close(); err != nil {
			return f.markSuspect(err)
		}
	}
	if err := f.sync("rename", func() error { return os.Rename(f.path, path) }); err != nil {
		return f.markSuspect(err)
	}
	f.path, f.renamed = path, true
	if runtime.GOOS == "windows" {
		if f.db, f.file, err = openBolt(path, boltOptions()); err != nil {
			return f.markSuspect(err)
		}
		f.identity, _ = f.file.Stat()
	}
	if err := f.sync("sync directory", func() error { return syncDirectory(filepath.Dir(path)) }); err != nil {
		return f.markSuspect(err)
	}
	return nil
}

// Disturb makes f call fault before each operation that makes data durable, with its
// name: "commit", "append", "sync log", "sync", "rename", "sync directory". An error of fault is that of
// the operation, which is not executed. Around a commit f also calls it with "committed"
// and "verify", and ignores errors. Simulations use it.
func (f *File) Disturb(fault func(operation string) error) { f.fault = fault }

// sync runs an operation that makes data durable, or fails if a simulation wants it to.
func (f *File) sync(op string, do func() error) error {
	if f.fault != nil {
		if err := f.fault(op); err != nil {
			return err
		}
	}
	return do()
}

// syncDirectory makes the names in a directory durable.
func syncDirectory(path string) error {
	if runtime.GOOS == "windows" { // Windows cannot do it, and does not need it
		return nil
	}
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// Discard closes the file and removes it, unless it was published.
func (f *File) Discard() error {
	err := f.Close()
	if f.renamed {
		return err
	}
	return errors.Join(err, os.Remove(f.path))
}

// Close closes the file and unlocks it.
func (f *File) Close() error {
	f.dataSync.close()
	if f.broken {
		return closeBroken(f.file)
	}
	return f.guard(f.db.Close)
}

// markSuspect makes the file suspect because of err, which it returns.
func (f *File) markSuspect(err error) error {
	f.suspect = fmt.Errorf("%s: %w", f.path, trimPath(err))
	return f.suspect
}

// Suspect returns why the file can no longer be trusted with data, nil if it can.
// After a failed fsync the contents that the system shows and those on the disk may
// differ, and stay so: the data must be written to another file.
func (f *File) Suspect() error { return f.suspect }

// ready returns the error with which a write is refused because of an error of intact.
func (f *File) ready(intact func() error) error {
	switch err := intact(); {
	case errors.Is(err, ErrReplaced):
		return fmt.Errorf("%s: %w", f.path, err)
	case err != nil:
		return f.markSuspect(err)
	}
	return nil
}

// Write writes a checkpoint, which is durable when Write returns; after an error
// nothing of it is. It returns the generation of the checkpoint, for one in the log that of
// the next transaction. If there was no
// space, or another file has replaced this one, Write may be retried; after other
// errors the file is suspect. One of them is that the file was changed or removed,
// see [File.Intact].
func (f *File) Write(c *Checkpoint) (generation uint64, err error) {
	if f.suspect != nil {
		return 0, f.suspect
	}
	if f.appendable(c) {
		if done, err := f.append(c); done || err != nil {
			return f.manifest.Generation + 1, err
		}
	}
	f.await()
	if err := f.ready(f.Intact); err != nil {
		return 0, err
	}
	groups, err := f.logged()
	if err != nil {
		return 0, f.markSuspect(err)
	}
	journal := afterGroups(groups, c.Journal)
	next := f.manifest
	next.Generation++
	next.Time, next.Stream = c.Time, c.Stream
	next.Spaces, next.LastSpace, next.Keys = slices.Clone(c.Spaces), c.LastSpace, slices.Clone(c.Keys)
	// bbolt inserts a key by moving the keys behind it: 300 000 in random order
	// take two minutes, in order less than a second.
	slices.SortFunc(c.Bases, compareBases)
	tombstones, more := slices.Clip(f.tombstones), false // f.tombstones does not change until the checkpoint is written
	err = f.update(func(tx *bbolt.Tx) error {
		if journal != nil {
			if err := putJournal(tx, &next, journal); err != nil {
				return err
			}
		}
		for i := range c.Bases {
			if err := putBase(tx, &next, &c.Bases[i]); err != nil {
				return err
			}
			if b := &c.Bases[i]; b.Chunks == nil {
				tombstones = append(tombstones, tombstone{string(baseName(b.Space, b.Key, 0)), next.Generation})
			}
		}
		if c.Forget > 0 {
			if tombstones, more, err = forget(tx, &next, c.Forget, tombstones); err != nil {
				return err
			}
		}
		if err := f.putLog(tx, &next, c.Log && !f.db.NoSync); err != nil {
			return err
		}
		return f.putManifest(tx, &next)
	})
	switch {
	case err == nil:
		err = f.recordMark(&next, 0)
	case noSpace(err):
		err = cmp.Or(f.recordMark(&f.manifest, f.log.groups), err)
	case errors.Is(err, ErrDamaged): // bbolt cannot read its own pages any more
		err = fmt.Errorf("%w (%w)", ErrChanged, err)
	}
	if err != nil {
		if noSpace(err) {
			return 0, fmt.Errorf("%s: %w", f.path, trimPath(err))
		}
		return 0, f.markSuspect(err)
	}
	moved := f.manifest.Log != next.Log
	f.manifest, f.tombstones, f.forgetting = next, tombstones, more
	f.log.empty()
	if moved {
		if err := f.locateLog(); err != nil {
			return 0, f.markSuspect(err)
		}
	}
	return next.Generation, nil
}

// noSpace reports whether an error is a write, or an extension of the file, that found no space,
// after which the file is unchanged. An error of fsync does not count.
func noSpace(err error) bool {
	full := []error{syscall.ENOSPC, errQuota, errTooLarge}
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Op != "sync" && slices.ContainsFunc(full, func(full error) bool { return errors.Is(pe, full) })
	}
	// bbolt does not wrap the error of truncate.
	return err != nil && strings.HasPrefix(err.Error(), "file resize error: ") &&
		slices.ContainsFunc(full, func(full error) bool { return strings.HasSuffix(err.Error(), ": "+full.Error()) })
}

// update runs a transaction. It is not bbolt's Update, which after a panic reads
// the whole file in another goroutine, where no function recovers from the next
// panic.
func (f *File) update(do func(*bbolt.Tx) error) error {
	return f.guard(func() error {
		tx, err := f.db.Begin(true)
		if err != nil {
			return err
		}
		defer tx.Rollback() // no effect after the commit
		if err := do(tx); err != nil {
			return err
		}
		if f.fault != nil {
			if err := f.fault("commit"); err != nil {
				return err
			}
		}
		txid := uint64(tx.ID())
		s := f.db.Stats()
		f.db.NoFreelistSync = s.FreePageN+s.PendingPageN > mostListed
		if err := tx.Commit(); err != nil {
			return err
		}
		f.txid = txid
		return nil
	})
}

func (f *File) putManifest(tx *bbolt.Tx, m *Manifest) error {
	value, err := m.encode()
	if err != nil {
		return err
	}
	return tx.Bucket([]byte(aboutBucket)).Put([]byte(manifestName), value)
}

// partSize is the target size of a part of a journal. Chunks are larger than a
// page, and bbolt rewrites a page of large values with each that is added.
const partSize = 1 << 20

// putJournal writes a journal into a bucket of its own, whose pages no other
// transaction rewrites.
func putJournal(tx *bbolt.Tx, m *Manifest, chunks iter.Seq[[]byte]) error {
	bucketName := checkpointName(m.Generation)
	var bucket *bbolt.Bucket
	part, n := make([]byte, sumSize), 0
	put := func() (err error) {
		if len(part) == sumSize {
			return nil
		}
		if bucket == nil {
			if bucket, err = tx.Bucket([]byte(checkpointsBucket)).CreateBucket(bucketName); err != nil {
				return err
			}
			bucket.FillPercent = 1
		}
		name := partName(n)
		m.Journal.add(seal(part, bucketName, name), len(part))
		n++
		return bucket.Put(name, part)
	}
	for chunk := range chunks {
		if len(part)+len(chunk) > partSize {
			if err := put(); err != nil {
				return err
			}
			part = make([]byte, sumSize, max(partSize/4, sumSize+len(chunk)))
		}
		part = append(part, chunk...)
	}
	return put()
}

// putBase writes the value of a key, or its tombstone.
func putBase(tx *bbolt.Tx, m *Manifest, b *Base) error {
	bucket := tx.Bucket([]byte(keysBucket))
	bucket.FillPercent = 0.9
	var values [][]byte
	add := func(ops []byte) {
		n := len(values)
		value := make([]byte, sumSize, chunksAt+4+len(ops)) // more if the key is long
		values = append(values, append(appendBaseHead(value, m.Generation, b.Key, n), ops...))
	}
	if b.Chunks == nil {
		add(nil)
	} else {
		for ops := range b.Chunks {
			add(ops)
		}
		putChunks(values[0], len(values))
	}
	was := 0
	if old := bucket.Get(baseName(b.Space, b.Key, 0)); old != nil {
		was = max(1, int(binary.BigEndian.Uint32(old[chunksAt:])))
	}
	for i, value := range values {
		name := baseName(b.Space, b.Key, i)
		if i < was {
			if old := bucket.Get(name); old != nil {
				m.Bases.remove(old)
			}
		}
		m.Bases.add(seal(value, name), len(value))
		if err := bucket.Put(name, value); err != nil {
			return err
		}
	}
	for i := len(values); i < was; i++ {
		if err := removeBase(bucket, m, baseName(b.Space, b.Key, i)); err != nil {
			return err
		}
	}
	return nil
}

func removeBase(bucket *bbolt.Bucket, m *Manifest, name []byte) error {
	if old := bucket.Get(name); old != nil {
		m.Bases.remove(old)
	}
	return bucket.Delete(name)
}

// forgetAtOnce is the number of journals that one checkpoint drops at most: some 10 ms.
const forgetAtOnce = 2000

// forget drops journals, and the tombstones that only they need. more reports that
// journals are left.
func forget(tx *bbolt.Tx, m *Manifest, generation uint64, tombstones []tombstone) (left []tombstone, more bool, err error) {
	checkpoints := tx.Bucket([]byte(checkpointsBucket))
	var names [][]byte
	c := checkpoints.Cursor()
	for name, _ := c.First(); name != nil && binary.BigEndian.Uint64(name) <= generation; name, _ = c.Next() {
		if len(names) == forgetAtOnce {
			more, generation = true, binary.BigEndian.Uint64(name)-1
			break
		}
		names = append(names, slices.Clone(name))
	}
	for _, name := range names {
		err := checkpoints.Bucket(name).ForEach(func(_, value []byte) error {
			m.Journal.remove(value)
			return nil
		})
		if err != nil {
			return nil, false, err
		}
		if err := checkpoints.DeleteBucket(name); err != nil {
			return nil, false, err
		}
	}
	keys := tx.Bucket([]byte(keysBucket))
	for _, g := range tombstones {
		if g.generation > generation {
			left = append(left, g)
			continue
		}
		// The key may exist again, and have a base with a value by now.
		if old := keys.Get([]byte(g.name)); old != nil && binary.BigEndian.Uint64(old[sumSize:]) == g.generation {
			if err := removeBase(keys, m, []byte(g.name)); err != nil {
				return nil, false, err
			}
		}
	}
	return left, more, nil
}
