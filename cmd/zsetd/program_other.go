//go:build !linux

package main

import "time"

// releaseProgram does nothing: where it is not Linux, the system decides which pages of the
// program stay mapped.
func releaseProgram() {}

// processorTime returns 0: only releaseProgram needs it.
func processorTime() time.Duration { return 0 }
