//go:build !linux

package snapshot

import "os"

// shed does nothing: only Linux is known to keep pages of the page cache in the
// resident set.
func (f *File) shed() {}

func shedOpening(*os.File) (stop func()) { return func() {} }
