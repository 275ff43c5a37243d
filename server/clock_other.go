//go:build !linux

package server

import (
	"math"
	"time"
)

// suspended would return for how long the machine was suspended. It is not known here.
func suspended() (d time.Duration, known bool) { return 0, false }

// uptime would return the time since the machine has started: long ago.
func uptime() time.Duration { return math.MaxInt64 }
