//go:build unix

package snapshot

import "syscall"

const (
	errQuota    = syscall.EDQUOT
	errTooLarge = syscall.EFBIG
)
