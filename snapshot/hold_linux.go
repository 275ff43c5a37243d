package snapshot

import (
	"io"
	"os"
	"syscall"
	"time"
)

// A copy of a file whose commits come faster than it can be copied needs the writer
// to wait. The two agree by an advisory lock on one byte far behind the end of the
// file, an open file description lock: a process that copies holds it shared, and the
// writer looks, before it begins a transaction, whether it is held. The transaction
// that has begun by then goes on: the copy that it spoils is made once more.
//
// The writer waits for some seconds only, for any process that may read the file can
// hold the lock. After that it ignores the lock until it has been given up once.

const (
	ofdGetLock = 36 // F_OFD_GETLK
	ofdSetLock = 37 // F_OFD_SETLK

	holdAt   = 1 << 62
	holdTime = 10 * time.Second
)

// hold has the process that has file open for writing wait with its transactions until
// release is called; nil if the lock cannot be had.
func hold(file *os.File) (release func()) {
	lock := func(kind int16) error {
		return syscall.FcntlFlock(file.Fd(), ofdSetLock, &syscall.Flock_t{Type: kind, Whence: io.SeekStart, Start: holdAt, Len: 1})
	}
	if lock(syscall.F_RDLCK) != nil {
		return nil
	}
	return func() { lock(syscall.F_UNLCK) }
}

// await waits until no other process wants the file to stay as it is.
func (f *File) await() {
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		lock := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart, Start: holdAt, Len: 1}
		if syscall.FcntlFlock(f.file.Fd(), ofdGetLock, &lock) != nil || lock.Type == syscall.F_UNLCK {
			f.impatient = false
			return
		}
		if f.impatient {
			return
		}
		f.impatient = time.Since(began) > holdTime
	}
}
