//go:build !unix

package server

import "time"

// cpuTime returns 0: this system does not report the processor time of the process.
func cpuTime() (system, user time.Duration) { return 0, 0 }
