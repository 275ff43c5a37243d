//go:build !linux

package snapshot

// shed does nothing: only Linux is known to keep pages of the page cache in the
// resident set.
func (f *File) shed() {}
