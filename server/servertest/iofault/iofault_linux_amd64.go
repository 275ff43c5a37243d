//go:build !race

package iofault

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// question is struct seccomp_notif of the kernel: a thread waits in a system call.
type question struct {
	id    uint64
	_     [2]uint32 // thread, flags
	call  int32
	_     uint32 // architecture
	_     uint64 // address of the instruction
	words [6]uint64
}

// answer is struct seccomp_notif_resp of the kernel.
type answer struct {
	id    uint64
	value int64
	errno int32 // negative
	flags uint32
}

// calls returns the names of the system calls that can fail, by their numbers. Calls that
// Go's runtime makes outside of package syscall are not among them: while it makes one it
// gives the processor to no other thread, so the call would have no answer.
func calls() map[int32]string {
	return map[int32]string{
		unix.SYS_OPENAT: "openat", unix.SYS_NEWFSTATAT: "newfstatat", unix.SYS_FSTAT: "fstat", unix.SYS_CLOSE: "close",
		unix.SYS_READ: "read", unix.SYS_WRITE: "write", unix.SYS_PREAD64: "pread64", unix.SYS_PWRITE64: "pwrite64",
		unix.SYS_LSEEK: "lseek", unix.SYS_FTRUNCATE: "ftruncate", unix.SYS_FSYNC: "fsync", unix.SYS_FDATASYNC: "fdatasync",
		unix.SYS_RENAMEAT: "renameat", unix.SYS_RENAMEAT2: "renameat2", unix.SYS_UNLINKAT: "unlinkat", unix.SYS_MKDIRAT: "mkdirat",
		unix.SYS_LINKAT: "linkat", unix.SYS_GETDENTS64: "getdents64", unix.SYS_FLOCK: "flock", unix.SYS_MMAP: "mmap",
		unix.SYS_FCHMOD: "fchmod", unix.SYS_FCHOWN: "fchown", unix.SYS_FCHMODAT: "fchmodat", unix.SYS_COPY_FILE_RANGE: "copy_file_range",
		unix.SYS_EVENTFD2: "eventfd2", unix.SYS_IO_SETUP: "io_setup", unix.SYS_IO_SUBMIT: "io_submit", unix.SYS_IO_GETEVENTS: "io_getevents",
	}
}

// fault is the call that fails: of those with this name, number nth from 0. It is none if the name
// is empty. Another number of calls with other names does not change it: how often a goroutine
// reads an eventfd, for example, depends on the time at which what it waits for ends.
type fault struct {
	name string
	nth  int
}

// run runs do in a thread of its own, in which a call about files fails with errno. It returns
// the calls, each with the base name of its file if that is known, and the one that has failed. A
// close that fails has closed the file, as in Linux. do must not end the test.
func run(t testing.TB, fails fault, errno syscall.Errno, do func()) (made []string, failed string) {
	t.Helper()
	if file, err := os.Open(os.DevNull); err == nil { // the runtime has its eventfd from now on
		file.Close()
	}
	quit := make(chan struct{})
	defer close(quit)
	go pace(quit)
	program := filter()
	listener, ended := make(chan error, 1), make(chan any, 1)
	var fd uintptr
	go func() {
		runtime.LockOSThread() // and the thread ends with the goroutine
		var err error
		if fd, err = install(program); err != nil {
			listener <- err
			return
		}
		listener <- nil
		defer func() {
			ended <- recover()
			unix.Flock(-1, unix.LOCK_UN) // tells that no call follows
		}()
		do()
	}()
	if err := <-listener; err != nil {
		t.Skip("no system call can be made to fail here:", err)
	}
	made, failed, err := decide(fd, fails, errno)
	unix.Close(int(fd))
	if err != nil {
		t.Fatal(err)
	}
	if panicked := <-ended; panicked != nil {
		t.Fatalf("%q of %q fails: %v", failed, made, panicked)
	}
	return made, failed
}

// Each runs an operation without a fault, and then with each of its calls failing; of very
// many that are the same in a row, only with the first and the last ones. prepare makes what
// the operation needs and returns it; check gets the call that has failed, or "".
func Each(t testing.TB, errno syscall.Errno, prepare func() (do func(), check func(failed string))) {
	t.Helper()
	const some = 4
	do, check := prepare()
	made, _ := run(t, fault{}, errno, do)
	check("")
	count := map[string]int{}
	for n, call := range made {
		name, _, _ := strings.Cut(call, " ")
		fails := fault{name, count[name]}
		count[name]++
		if n >= some && n < len(made)-some && !slices.ContainsFunc(made[n-some:n+some+1], func(c string) bool { return c != call }) {
			continue
		}
		do, check := prepare()
		_, failed := run(t, fails, errno, do)
		check(failed) // "" if it has made fewer calls than the first time
	}
}

// pace does nothing every few milliseconds, until quit is closed. Meanwhile the monitor of Go's
// scheduler, which takes the processor from a thread that waits for an answer, never sleeps
// for longer.
func pace(quit chan struct{}) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-quit:
			return
		}
	}
}

// filter returns a program for the kernel that has it ask about the calls.
func filter() []unix.SockFilter {
	const number, words = 0, 16 // where struct seccomp_data has the call and its parameters
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	unless := func(value uint32, skip uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: skip, K: value}
	}
	result := func(value uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: value}
	}
	program := []unix.SockFilter{load(number)}
	for call := range calls() {
		var except []unix.SockFilter
		switch call {
		case unix.SYS_MMAP: // the runtime maps memory, which is no file
			except = []unix.SockFilter{load(words + 8*4), unless(^uint32(0), 1), result(unix.SECCOMP_RET_ALLOW)}
		case unix.SYS_READ, unix.SYS_WRITE: // the runtime wakes itself by an eventfd
			except = []unix.SockFilter{load(words)}
			for _, fd := range eventDescriptors() {
				except = append(except, unless(fd, 1), result(unix.SECCOMP_RET_ALLOW))
			}
		}
		except = append(except, result(unix.SECCOMP_RET_USER_NOTIF))
		program = append(append(program, unless(uint32(call), uint8(len(except)))), except...)
	}
	return append(program, result(unix.SECCOMP_RET_ALLOW))
}

// eventDescriptors returns the eventfds that are open.
func eventDescriptors() (list []uint32) {
	links, _ := filepath.Glob("/proc/self/fd/*")
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && to == "anon_inode:[eventfd]" {
			var fd uint32
			fmt.Sscan(filepath.Base(link), &fd)
			list = append(list, fd)
		}
	}
	return list
}

// install gives the calling thread a filter, and returns the descriptor of its questions.
func install(program []unix.SockFilter) (fd uintptr, err error) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return 0, err
	}
	p := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, uintptr(unsafe.Pointer(&p)))
	if errno != 0 {
		return 0, errno
	}
	return fd, nil
}

// decide answers the questions of a thread until it makes no more calls.
func decide(fd uintptr, fails fault, errno syscall.Errno) (made []string, failed string, err error) {
	names := calls()
	for {
		q := &question{}
		if _, _, e := unix.Syscall(unix.SYS_IOCTL, fd, unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(q))); e == unix.EINTR || e == unix.ENOENT {
			continue // the call was interrupted, and is repeated
		} else if e != 0 {
			return nil, "", e
		}
		a := &answer{id: q.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
		last := q.call == unix.SYS_FLOCK && int32(q.words[0]) == -1
		call := strings.TrimSpace(names[q.call] + " " + fileOf(q))
		ours := last || strings.HasSuffix(call, " testlog.txt") // in which go test has what a test opens
		now := !ours && failed == "" && names[q.call] == fails.name && fails.nth == 0
		if now {
			if q.call == unix.SYS_CLOSE {
				unix.Close(int(q.words[0]))
			}
			a.flags, a.errno = 0, -int32(errno)
		}
		_, _, e := unix.Syscall(unix.SYS_IOCTL, fd, unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(a)))
		switch {
		case last:
			return made, failed, nil
		case e == unix.ENOENT: // as above
			continue
		case e != 0:
			return nil, "", errors.Join(e, errors.New("a system call has no answer"))
		case !ours:
			made = append(made, call)
			if now {
				failed = call
			} else if names[q.call] == fails.name {
				fails.nth--
			}
		}
	}
}

// fileOf returns the base name of the file that a call is about.
func fileOf(q *question) string {
	switch q.call {
	case unix.SYS_OPENAT, unix.SYS_NEWFSTATAT, unix.SYS_UNLINKAT, unix.SYS_MKDIRAT, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_LINKAT:
		// The thread waits, and its memory is ours.
		return filepath.Base(unix.BytePtrToString(*(**byte)(unsafe.Pointer(&q.words[1]))))
	case unix.SYS_MMAP:
		q.words[0] = q.words[4]
	case unix.SYS_EVENTFD2, unix.SYS_IO_SETUP, unix.SYS_IO_SUBMIT, unix.SYS_IO_GETEVENTS:
		return ""
	}
	to, _ := os.Readlink(fmt.Sprint("/proc/self/fd/", q.words[0]))
	return filepath.Base(to)
}
