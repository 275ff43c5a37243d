package snapshot

import "syscall"

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
