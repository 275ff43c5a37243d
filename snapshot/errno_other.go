//go:build !unix

package snapshot

import "syscall"

// ENOSPC stands for the errors that such systems do not have.
const (
	errQuota    = syscall.ENOSPC
	errTooLarge = syscall.ENOSPC
)
