//go:build !unix

package snapshot

import "syscall"

// Where there are no such errors, ENOSPC stands for them.
const (
	errQuota    = syscall.ENOSPC
	errTooLarge = syscall.ENOSPC
)
