package snapshot

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// shed removes the file's pages from the process's resident set. bbolt maps the
// file and reads each page on the path to a change, so that in time the resident
// set grows by the size of the file, although the pages belong to the page cache.
// The mapping is read only and shared: a page that is needed again comes from the
// page cache, in less than a microsecond.
func (f *File) shed() {
	if f.broken || f.mark.pages == 0 {
		return
	}
	// All pages that the meta of our transaction counts are mapped, and the mark has
	// no other one: see follows. The file may be longer than the mapping, behind which
	// there is other memory of the process. An error leaves the pages where they are.
	syscall.Syscall(syscall.SYS_MADVISE, f.db.Info().Data, uintptr(f.mark.pages*pageSize), syscall.MADV_DONTNEED)
}

// shedTime is the time between two calls of shed while bbolt opens a file. bbolt reads up to 20 MB in a
// millisecond, and Go's timers are late by as much, so the goroutine sleeps in a system call.
const shedTime = 100 * time.Microsecond

// shedOpening sheds the pages of a file that bbolt is about to lock and open for writing. If the file
// has no freelist, bbolt reads all of it, through a mapping whose address it does not tell so far: by
// the end the resident set would have grown by the size of the file. stop ends that, and must be
// called before the file is closed.
//
// It takes the lock before bbolt does, on the same descriptor. So no other mapping of this
// process, which could be removed meanwhile, belongs to the file.
func shedOpening(file *os.File) (stop func()) {
	info, err := file.Stat()
	if err != nil || info.Size() <= growth || syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return func() {}
	}
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		address, size := uintptr(0), uintptr(0)
		for {
			select {
			case <-quit:
				return
			default:
			}
			pause := syscall.NsecToTimespec(shedTime.Nanoseconds())
			syscall.Nanosleep(&pause, nil)
			if size == 0 {
				address, size = mappingOf(file, info)
			}
			if size != 0 {
				syscall.Syscall(syscall.SYS_MADVISE, address, size, syscall.MADV_DONTNEED)
			}
		}
	}()
	return func() {
		close(quit)
		<-ended
	}
}

// mappingOf returns the address and the size of bbolt's mapping of a file, 0 if there is none.
// bbolt removes a mapping at once in which it finds no valid meta, so a mapping of a file with
// two valid metas stays.
func mappingOf(file *os.File, info os.FileInfo) (address, size uintptr) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0
	}
	if _, err := openPages(file, info.Size()); err != nil {
		return 0, 0
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return 0, 0
	}
	// 7f2175000000-7f217ac3f000 r--s 00000000 fe:00 9977877 /path/of/the/file
	name, inode := []byte("/"+filepath.Base(file.Name())), strconv.AppendUint(nil, stat.Ino, 10)
	for line := range bytes.Lines(maps) {
		fields := bytes.Fields(line)
		if len(fields) < 6 || string(fields[1]) != "r--s" || !bytes.Equal(fields[4], inode) || !bytes.HasSuffix(bytes.TrimSpace(line), name) {
			continue
		}
		from, to, _ := bytes.Cut(fields[0], []byte("-"))
		begin, err1 := strconv.ParseUint(string(from), 16, 64)
		end, err2 := strconv.ParseUint(string(to), 16, 64)
		if err1 == nil && err2 == nil {
			return uintptr(begin), uintptr(end - begin)
		}
	}
	return 0, 0
}
