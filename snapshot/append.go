package snapshot

import (
	"fmt"
	"iter"
	"os"
	"slices"
	"time"

	"go.etcd.io/bbolt"
)

// Appending to the log. A checkpoint that consists of a journal can be appended to the log in
// place of a transaction: that is one write to pages that the file has already, and one
// fdatasync. The next transaction moves the journals of the log into a bucket, which makes
// the log empty.

// checkInterval is how long appends rely on the latest check for changes by other programs. Its two
// system calls cost a tenth of a durable append, and since Linux 6.13 a file whose time was asked
// for gets another one with its next write, which some file systems write to the disk with the
// data (ext4 without a journal: a third of the time of an append).
const checkInterval = 2 * time.Millisecond

// groupLog is the log of a file that is open for writing.
type groupLog struct {
	at     int64  // where the value of the log lies in the file; 0 if the file has no log
	blocks int    // that it has
	next   int    // the first free block
	groups uint32 // that it holds
	closed bool   // nothing is appended before the next transaction: part of a group may follow the last
	last   group  // without its records
	buf    []byte
}

// empty makes the log empty, as each transaction does.
func (l *groupLog) empty() { l.next, l.groups, l.closed, l.last = 0, 0, false, group{} }

// appendable reports whether a checkpoint may be appended to the log.
func (f *File) appendable(c *Checkpoint) bool {
	return c.Log && f.log.at != 0 && !f.log.closed && len(c.Bases) == 0 && c.Forget == 0 &&
		c.LastSpace == f.manifest.LastSpace && slices.Equal(c.Spaces, f.manifest.Spaces)
}

// append appends a checkpoint to the log. done is false if there is no room.
func (f *File) append(c *Checkpoint) (done bool, err error) {
	l := &f.log
	g := group{time: c.Time, stream: c.Stream}
	payload, err := g.appendHead(l.buf[:0])
	if err != nil {
		return false, err
	}
	if c.Journal != nil {
		for chunk := range c.Journal {
			if len(payload)+len(chunk) > (l.blocks-l.next)*blockRoom {
				return false, nil
			}
			payload = append(payload, chunk...)
		}
	}
	size := len(payload)
	blocks := (size + blockRoom - 1) / blockRoom
	if l.buf = payload; blocks > l.blocks-l.next {
		return false, nil
	}
	began := time.Now()
	check := began.Sub(f.checked) >= checkInterval
	if check {
		if err := f.ready(f.unchanged); err != nil {
			return false, err
		}
		f.checked = began
	}
	l.buf = appendBlocks(payload, block{generation: f.manifest.Generation, index: uint32(l.next), group: l.groups + 1}, payload)
	err = f.sync("append", func() error {
		_, err := f.file.WriteAt(l.buf[size:], l.at+int64(logHead+l.next*blockSize))
		return err
	})
	if noSpace(err) {
		l.closed = true
		return false, fmt.Errorf("%s: %w", f.path, trimPath(err))
	}
	if err == nil {
		err = f.sync("sync log", func() error { return f.syncData(c.InThread) })
	}
	if err == nil {
		f.mark.appendBegan, f.mark.appendEnded = began, time.Now()
		err = f.recordAppended(l.next, l.next+blocks, check)
	}
	if err != nil {
		return false, f.markSuspect(err)
	}
	l.next += blocks
	l.groups++
	l.last = g
	return true, nil
}

// syncData makes the data of the file durable. The metadata need not be: its size is the same.
func (f *File) syncData(inThread bool) error {
	sync := f.dataSync.sync
	if inThread {
		sync = f.dataSync.syncInThread
	}
	if done, err := sync(f.file); done {
		return err
	}
	return f.db.Sync()
}

// unchanged is Intact that trusts the size and the time of the file: it costs one system call
// if they are those after the last write.
func (f *File) unchanged() error {
	if f.mark.pages == 0 {
		return f.Intact()
	}
	info, err := os.Stat(f.path)
	if err != nil || info.Size() != f.mark.size || !f.mark.isTime(info.ModTime()) || !os.SameFile(info, f.identity) {
		return f.Intact()
	}
	return nil
}

// recordAppended records the state of the file after some blocks of the log were written, and
// compares its size with that before, if check is true.
func (f *File) recordAppended(from, to int, check bool) error {
	if f.mark.pages == 0 {
		return nil
	}
	if check {
		if done, err := f.checkAppended(); !done || err != nil {
			return err
		}
	}
	last := int64(f.mark.pages-1) * pageSize // the mark has the checksum of this page
	first := f.log.at + logHead
	if first+int64(to)*blockSize <= last || first+int64(from)*blockSize >= last+pageSize {
		return nil
	}
	mark, err := f.markOf(f.file)
	if err == nil {
		f.mark.lastSum = mark.lastSum
	}
	return nil
}

// checkAppended compares the size of the file with that before an append, and records its time. done
// is false if that cannot be done.
func (f *File) checkAppended() (done bool, err error) {
	info, err := f.file.Stat()
	if err != nil {
		return false, nil // as in Intact, a check that cannot be made is no error
	}
	if info.Size() != f.mark.size {
		return true, fmt.Errorf("%w: it has %d bytes in place of %d", ErrChanged, info.Size(), f.mark.size)
	}
	f.mark.modified, f.mark.appendEnded = info.ModTime(), time.Time{}
	if blocks := blocksOf(info); blocks < f.mark.blocks && f.blockChanges < maxTimeChanges {
		f.blockChanges++
		f.mark.blocks = blocks
		return true, f.verify(f.file, &f.manifest, f.log.groups+1)
	}
	return true, nil
}

// logged returns the groups in the log, which are read back from the file.
func (f *File) logged() ([]group, error) {
	l := &f.log
	if l.groups == 0 {
		return nil, nil
	}
	value := make([]byte, logHead+l.blocks*blockSize)
	if _, err := f.file.ReadAt(value, l.at); err != nil {
		return nil, err
	}
	content, err := parseLog(value, f.manifest.Generation)
	if err == nil && len(content.groups) < int(l.groups) {
		err = damaged("the log has %d groups, not %d", len(content.groups), l.groups)
	}
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrChanged, err)
	}
	return content.groups[:l.groups], nil
}

// afterGroups returns the records of groups, and then those of a journal, which may be nil.
func afterGroups(groups []group, journal iter.Seq[[]byte]) iter.Seq[[]byte] {
	if len(groups) == 0 {
		return journal
	}
	return func(yield func([]byte) bool) {
		for _, g := range groups {
			if len(g.records) > 0 && !yield(g.records) {
				return
			}
		}
		if journal != nil {
			journal(yield)
		}
	}
}

// putLog makes or removes the log in a transaction.
func (f *File) putLog(tx *bbolt.Tx, m *Manifest, wanted bool) error {
	m.Format = plainFormat
	if m.Log > 0 {
		m.Format = logFormat
	}
	switch {
	case wanted && m.Log == 0:
		m.Format, m.Log = logFormat, logSize
		bucket, err := tx.CreateBucket([]byte(groupsBucket))
		if err != nil {
			return err
		}
		return bucket.Put([]byte(logName), newLog())
	case !wanted && m.Log > 0:
		m.Format, m.Log = plainFormat, 0
		return tx.DeleteBucket([]byte(groupsBucket))
	}
	return nil
}

// locateLog finds the log of an open file, whose manifest says whether there is one.
func (f *File) locateLog() error {
	if f.log.at = 0; f.manifest.Log == 0 {
		return nil
	}
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	tree, err := openPages(f.file, info.Size())
	if err != nil {
		return err
	}
	at, size, err := tree.logAt()
	if err != nil {
		return err
	}
	if size != f.manifest.Log {
		return damaged("a log of %d bytes, not %d", size, f.manifest.Log)
	}
	f.log.at, f.log.blocks = at, int(size-logHead)/blockSize
	return nil
}

// takeLog takes over the log of a file that was read. If it holds anything the next
// transaction makes it empty before more is appended.
func (f *File) takeLog(c logContent) error {
	if err := f.locateLog(); err != nil {
		return err
	}
	if n := len(c.groups); n > 0 {
		f.log.groups, f.log.last = uint32(n), c.groups[n-1]
		f.log.last.records = nil
	}
	f.log.closed = c.remains || len(c.groups) > 0
	return nil
}

// current returns the manifest of a file with the time and the position of the last group in
// its log.
func (m Manifest) current(groups int, last *group) Manifest {
	if groups > 0 {
		m.Time, m.Stream = last.time, last.stream
	}
	return m
}
