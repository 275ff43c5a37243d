package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"time"
)

// Detection of changes by other programs. A file that is open for writing belongs
// to one process, but other programs can truncate or overwrite it. bbolt does not
// notice: it writes new pages behind the end, and a commit to a file without its
// other pages succeeds.
//
// So before each transaction File compares the file with its state after the
// previous one: its identity, its size, its modification time, the two metas and
// the last page in use. That is an open, an fstat and two reads of pages in the
// page cache, some 10 µs beside the two fdatasync of a commit. If only the time
// differs the whole file is verified, for some programs set times and change
// nothing. (A write in the middle of the file within the same tick of the kernel's
// clock as the previous commit, some milliseconds, is not detected.)
//
// An append to the log compares identity, size and time, unless another has within
// checkInterval. If another program writes to the file between two appends of one
// interval, the second append sets the time again, and only the other signs show it.
//
// A file that is truncated during a transaction may have its size again when that
// ends, with holes in place of pages: so a size or a number of blocks that is less
// than before has the file verified, too. A commit writes one meta. So if another
// program writes the whole file during the transaction, the newer meta is not that
// of the transaction, or the other meta is not the same as before.
//
// File systems whose times change by themselves would have the file verified with
// each commit: after some such changes in a row the time is no longer compared. The
// number of blocks falls by itself where a file system compresses, or allocates ahead
// and frees later: after some such changes it is no longer compared.

// ErrChanged means that another program has written to a file that is in use, or
// truncated it.
var ErrChanged = errors.New("the file was changed by another program")

// maxTimeChanges is the number of consecutive changes of the time alone after which the
// time is no longer compared.
const maxTimeChanges = 3

// mark is the state of a file after a transaction.
type mark struct {
	size     int64
	blocks   int64
	modified time.Time
	// appendBegan and appendEnded are the times around the latest append to the log, if modified is
	// that of an earlier write. Otherwise appendEnded is zero.
	appendBegan, appendEnded time.Time
	metas                    [2][pageHeader + metaSize]byte
	txid                     uint64 // the transaction of the newer meta
	pages                    uint64 // the number of pages that it counts; 0: there is no mark
	lastSum                  uint32 // the checksum of the last of them
}

// metaSize is the size of a meta, which begins its page.
const metaSize = 64

// markOf reads the mark of a file.
func (f *File) markOf(file *os.File) (m mark, err error) {
	info, err := file.Stat()
	if err != nil {
		return m, err
	}
	m.size, m.blocks, m.modified = info.Size(), blocksOf(info), info.ModTime()
	if f.scratch == nil {
		f.scratch = make([]byte, 2*pageSize)
	}
	if err := readPages(file, f.scratch, 0); err != nil {
		return m, err
	}
	for i := range m.metas {
		copy(m.metas[i][:], f.scratch[i*pageSize:])
		meta := m.metas[i][pageHeader:]
		if id := binary.LittleEndian.Uint64(meta[48:]); i == 0 || id > m.txid {
			m.txid, m.pages = id, binary.LittleEndian.Uint64(meta[40:])
		}
	}
	if m.pages == 0 || m.pages > uint64(m.size)/pageSize {
		return m, damaged("truncated to %d of %d pages", m.size/pageSize, m.pages)
	}
	last := f.scratch[:pageSize]
	err = readPages(file, last, m.pages-1)
	m.lastSum = crc32.Checksum(last, crc32.MakeTable(crc32.Castagnoli))
	return m, err
}

// recordMark records the state of the file after a transaction. m is its manifest, groups the
// number of groups in the log.
func (f *File) recordMark(m *Manifest, groups uint32) error {
	if closeDropsLock() {
		return nil
	}
	if f.fault != nil {
		f.fault("committed")
	}
	mark, err := f.markOf(f.file) // its path may be out of reach
	switch {
	case errors.Is(err, ErrDamaged):
		return fmt.Errorf("%w (%w)", ErrChanged, err)
	case err != nil:
		f.mark.pages = 0 // as in Intact, a check that cannot be made is no error
		return nil
	case !mark.follows(&f.mark, f.txid):
		return fmt.Errorf("%w: another program has written its metas", ErrChanged)
	case mark.size < f.mark.size || mark.blocks < f.mark.blocks && f.blockChanges < maxTimeChanges:
		f.blockChanges++
		if f.fault != nil {
			f.fault("verify")
		}
		if err := f.verify(f.file, m, groups); err != nil {
			return err
		}
	}
	f.mark = mark
	f.shed()
	return nil
}

// isTime reports whether the modification time t may be that of the file's own latest write. That of
// an append whose exact time is not known lies between its begin and its end, or before, by as
// much as the file system rounds times down: two seconds at most.
func (m *mark) isTime(t time.Time) bool {
	if m.appendEnded.IsZero() {
		return t.Equal(m.modified)
	}
	return !t.After(m.appendEnded) && t.After(m.appendBegan.Add(-3*time.Second))
}

// follows reports whether m is the state after a transaction: its number is txid,
// and before is the state before it. The meta in page 1 is that of odd numbers.
func (m *mark) follows(before *mark, txid uint64) bool {
	if m.txid != txid {
		return false
	}
	for i := range m.metas {
		written := uint64(i) == txid%2 && txid != before.txid
		if before.pages != 0 && !written && m.metas[i] != before.metas[i] {
			return false
		}
	}
	return true
}

// verify reads a whole file and returns ErrChanged if it does not agree with m and a number
// of groups.
func (f *File) verify(file *os.File, m *Manifest, groups uint32) error {
	r, err := read(file, Visitor{})
	if err == nil && len(r.log.groups) != int(groups) && !f.log.closed {
		err = damaged("%d groups in the log, not %d", len(r.log.groups), groups)
	}
	if err == nil && (r.bases != m.Bases || r.journal != m.Journal || r.manifest.Generation != m.Generation) {
		err = damaged("different records")
	}
	if err != nil {
		return fmt.Errorf("%w (%w)", ErrChanged, err)
	}
	return nil
}

// closeDropsLock reports whether a process loses its lock on a file when it closes
// another descriptor of it: on such systems the file is not checked.
func closeDropsLock() bool {
	return slices.Contains([]string{"aix", "illumos", "solaris"}, runtime.GOOS)
}

// Intact returns nil if the file is at Path, in the state after the last
// transaction. The error is one of [fs.ErrNotExist] if there is no file at Path,
// [ErrReplaced] if there is another, and [ErrChanged]. A check that cannot be made
// is no error.
func (f *File) Intact() error {
	if closeDropsLock() {
		return nil
	}
	found, err := os.Stat(f.path) // before it is opened: another may be a pipe, which waits for its writer
	if err == nil && !os.SameFile(found, f.identity) {
		if at, err := isAt(f.file, f.path); err == nil && !at {
			return ErrReplaced
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("removed: %w", fs.ErrNotExist)
	case err != nil || f.mark.pages == 0:
		return nil
	}
	file, err := os.Open(f.path)
	if err != nil {
		return nil
	}
	defer file.Close()
	now, err := f.markOf(file)
	switch {
	case errors.Is(err, ErrDamaged):
		return fmt.Errorf("%w (%w)", ErrChanged, err)
	case err != nil:
		return nil
	case now.size != f.mark.size:
		return fmt.Errorf("%w: it has %d bytes in place of %d", ErrChanged, now.size, f.mark.size)
	case now.metas != f.mark.metas || now.lastSum != f.mark.lastSum:
		return fmt.Errorf("%w: pages were overwritten", ErrChanged)
	case f.mark.isTime(now.modified):
		f.timeChanges = 0
		return nil
	case f.timeChanges >= maxTimeChanges:
		return nil
	}
	if err := f.verify(file, &f.manifest, f.log.groups); err != nil {
		return err
	}
	f.mark = now
	f.timeChanges++
	return nil
}
