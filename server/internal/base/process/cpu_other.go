//go:build !unix

package process

import "time"

// CPUTime returns 0: this system does not report the processor time of the process.
func CPUTime() (system, user time.Duration) { return 0, 0 }
