//go:build !linux

package clock

import (
	"math"
	"time"
)

// suspended returns false: this system does not report suspensions.
func suspended() (d time.Duration, known bool) { return 0, false }

// uptime returns the largest duration: this system does not report it.
func uptime() time.Duration { return math.MaxInt64 }
