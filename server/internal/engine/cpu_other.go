//go:build !unix

package engine

import "time"

// CpuTime returns 0: this system does not report the processor time of the process.
func CpuTime() (system, user time.Duration) { return 0, 0 }
