package snapshot

import "syscall"

// shed takes the file's pages out of the process's memory. bbolt maps the file and
// reads each page on the way to what it changes, so that in time the resident set
// grows by the size of the file, although the pages are the page cache's. The
// mapping is read only and shared: a page that is needed again comes from the page
// cache, in less than a microsecond.
func (f *File) shed() {
	if f.broken || f.mark.pages == 0 {
		return
	}
	// All pages that a meta counts are mapped; the file may be longer than the mapping.
	// An error leaves the pages where they are.
	syscall.Syscall(syscall.SYS_MADVISE, f.db.Info().Data, uintptr(f.mark.pages*pageSize), syscall.MADV_DONTNEED)
}
