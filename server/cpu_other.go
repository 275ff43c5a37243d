//go:build !unix

package server

import "time"

// cpuTime returns 0: nobody knows how much processor time the process has used.
func cpuTime() (system, user time.Duration) { return 0, 0 }
