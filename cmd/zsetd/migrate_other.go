//go:build !unix

package main

import "os"

// cutOverSignals are the signals that order the cut-over of a move: there are none.
func cutOverSignals() []os.Signal { return nil }
