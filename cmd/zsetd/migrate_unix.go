//go:build unix

package main

import (
	"os"
	"syscall"
)

// cutOverSignals are the signals that order the cut-over of a move.
func cutOverSignals() []os.Signal { return []os.Signal{syscall.SIGUSR1} }
