package snapshot

import (
	"io"
	"os"
	"syscall"
	"time"
)

// A copy of a file whose commits come faster than it can be copied needs the writer
// to wait. The two synchronize by an advisory lock on one byte far behind the end
// of the file, an open file description lock: a process that copies holds it
// shared, and the writer checks it before it begins a transaction. A transaction
// that has begun by then goes on: the copy that it spoils is repeated.
//
// The writer waits for some seconds only, for any process that may read the file
// can hold the lock. After that it ignores the lock until it has been released
// once.

const (
	ofdGetLock = 36 // F_OFD_GETLK
	ofdSetLock = 37 // F_OFD_SETLK

	holdAt   = 1 << 62
	holdTime = 10 * time.Second
)

// hold makes the process that has file open for writing delay its transactions
// until release is called; nil if the lock cannot be taken.
func hold(file *os.File) (release func()) {
	lock := func(kind int16) error {
		return syscall.FcntlFlock(file.Fd(), ofdSetLock, &syscall.Flock_t{Type: kind, Whence: io.SeekStart, Start: holdAt, Len: 1})
	}
	if lock(syscall.F_RDLCK) != nil {
		return nil
	}
	return func() { lock(syscall.F_UNLCK) }
}

// await waits until no other process holds the file for copying, for holdTime at
// most.
func (f *File) await() {
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		lock := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart, Start: holdAt, Len: 1}
		if syscall.FcntlFlock(f.file.Fd(), ofdGetLock, &lock) != nil || lock.Type == syscall.F_UNLCK {
			f.holdExpired = false
			return
		}
		if f.holdExpired {
			return
		}
		f.holdExpired = time.Since(began) > holdTime
	}
}
