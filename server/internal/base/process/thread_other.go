//go:build !linux

package process

import "time"

// ThreadTime reports that this system does not tell the processor time of a thread.
func ThreadTime() (used time.Duration, ok bool) { return 0, false }
