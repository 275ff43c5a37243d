//go:build !linux

package replication

import "time"

// nap sleeps for yieldTime, and lets other goroutines run.
func nap() { time.Sleep(yieldTime) }
