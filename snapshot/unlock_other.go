//go:build !unix || aix || solaris

package snapshot

import "os"

// unlock does nothing: closing a file releases its lock.
func unlock(*os.File) error { return nil }
