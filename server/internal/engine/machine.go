package engine

import "github.com/zsetd/zsetd/server/internal/base/clock"

// Machine is the parts of a machine that a simulation replaces. A nil field leaves the
// part of the system in its place.
type Machine struct {
	// Clock is the clocks of the system.
	Clock *clock.System

	// Disk is called before each operation that makes data durable, with its name:
	// "commit", "append", "sync log", "sync", "rename" or "sync directory". It may sleep, in the
	// time that the operation takes.
	// If it returns an error the operation is not executed and has failed with that error.
	Disk func(operation string) error
}
