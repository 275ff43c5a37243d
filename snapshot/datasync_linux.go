package snapshot

import (
	"os"
	"syscall"
	"unsafe"
)

// A goroutine that waits in fdatasync occupies a thread, and Go's scheduler looks every 20 µs
// whether it can give the thread's processor to another: with 50 clients that wait for the
// disk that is a sixth of the CPU time. So the kernel executes the fdatasync, by
// io_submit(2), and the goroutine waits for an eventfd, as for a socket.
//
// The kernel's interface: https://man7.org/linux/man-pages/man2/io_submit.2.html,
// IOCB_CMD_FDSYNC, since Linux 4.18.

// dataSync makes the data of files durable, for one goroutine. Its zero value is ready.
type dataSync struct {
	context uintptr  // of io_setup
	done    *os.File // the eventfd; nil before the first call
	event   uintptr  // its descriptor, which done.Fd would make blocking
	refused bool     // the kernel does not have the operation, or does not permit it
}

// request is struct iocb of the kernel. The fields without a name are 0.
type request struct {
	_      [2]uint64 // data, key, flags of read and write
	opcode uint16
	_      int16 // priority
	file   uint32
	_      [2]uint64 // buffer, its size
	_      int64     // offset
	_      uint64
	flags  uint32
	event  uint32
}

// result is struct io_event of the kernel.
type result struct {
	_    [2]uint64 // data, address of the request
	code int64
	_    int64
}

const (
	opDataSync    = 3 // IOCB_CMD_FDSYNC
	signalEventfd = 1 // IOCB_FLAG_RESFD
)

// sync makes the data of a file durable, as fdatasync. It returns false if it could not
// begin.
func (s *dataSync) sync(file *os.File) (done bool, err error) {
	if s.refused || s.done == nil && !s.open() {
		s.refused = true
		return false, nil
	}
	r := &request{opcode: opDataSync, file: uint32(file.Fd()), flags: signalEventfd, event: uint32(s.event)}
	list := [1]*request{r}
	if n, _, errno := syscall.Syscall(syscall.SYS_IO_SUBMIT, s.context, 1, uintptr(unsafe.Pointer(&list))); errno != 0 || n != 1 {
		s.refused = true
		return false, nil
	}
	var count [8]byte
	if _, err := s.done.Read(count[:]); err != nil {
		return true, err
	}
	var ended result
	for {
		n, _, errno := syscall.Syscall6(syscall.SYS_IO_GETEVENTS, s.context, 1, 1, uintptr(unsafe.Pointer(&ended)), 0, 0)
		switch {
		case errno == syscall.EINTR, errno == 0 && n == 0:
			continue
		case errno != 0:
			return true, os.NewSyscallError("io_getevents", errno)
		case ended.code < 0:
			return true, os.NewSyscallError("fdatasync", syscall.Errno(-ended.code))
		}
		return true, nil
	}
}

// syncInThread is sync in the calling thread, without a notice to Go's scheduler: a thread that
// announces a system call loses its processor after 20 µs, and waits for another one.
func (s *dataSync) syncInThread(file *os.File) (done bool, err error) {
	for {
		switch _, _, errno := syscall.RawSyscall(syscall.SYS_FDATASYNC, file.Fd(), 0, 0); errno {
		case 0:
			return true, nil
		case syscall.EINTR:
		default:
			return true, os.NewSyscallError("fdatasync", errno)
		}
	}
}

func (s *dataSync) open() bool {
	fd, _, errno := syscall.Syscall(syscall.SYS_EVENTFD2, 0, syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if errno != 0 {
		return false
	}
	if _, _, errno = syscall.Syscall(syscall.SYS_IO_SETUP, 1, uintptr(unsafe.Pointer(&s.context)), 0); errno != 0 {
		syscall.Close(int(fd))
		return false
	}
	s.done, s.event = os.NewFile(fd, "eventfd"), fd
	return true
}

// close frees the resources of the kernel.
func (s *dataSync) close() {
	if s.done != nil {
		syscall.Syscall(syscall.SYS_IO_DESTROY, s.context, 0, 0)
		s.done.Close()
		*s = dataSync{}
	}
}
