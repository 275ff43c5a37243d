package persist

import (
	"log/slog"
	"time"

	"github.com/zsetd/zsetd/server/internal/engine/config"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/snapshot"
)

// Options are what a keeper keeps, and how.
type Options struct {
	Keys     *keyspace.Keyspace
	Settings *config.Settings // read with the lock held; see Keeper.Apply
	Log      *slog.Logger
	Start    time.Time // of the server: the time of the last save until there is one

	Disk func(operation string) error // see snapshot.File.Disturb; nil without a simulation
}

// Stream is the position in a stream of changes to which the data of a file belong.
type Stream = snapshot.Stream

// Host is the engine, as far as a keeper needs it: its lock, its clock, and the replies
// that wait for a checkpoint.
type Host interface {
	// Maintain runs f with the lock held. f executes no commands; the effects of expired
	// keys that it finds are committed.
	Maintain(f func())

	// MaintainUnlessBusy is Maintain, unless a script lends the lock: then it returns false,
	// and f does not run.
	MaintainUnlessBusy(f func()) bool

	// OutOfTurn runs f with the lock held, and nothing before or after it.
	OutOfTurn(f func())

	// Attempt runs f, the body of a goroutine of the keeper, and handles panics.
	Attempt(f func())

	// Changes returns the number of changes of keys so far. The lock is held, as for
	// all methods below.
	Changes() int64

	// Counted returns the number of these that INFO counts.
	Counted() int64

	// At returns the time of the turn, which a checkpoint records.
	At() time.Time

	// Clock returns the host's time.
	Clock() time.Time

	// Stream returns the position of the changes so far in the stream of replication;
	// nil without one. Unless exact is set it is nil, too, if finding out takes long.
	Stream(exact bool) *Stream

	// Continue is called with the position that the file has, if it has one, when the
	// data have been loaded and before the first of them is changed.
	Continue(s Stream)

	// Loaded is called when the data have been loaded.
	Loaded()

	// Durable is called when more checkpoints are on the disk, or parameters have
	// changed: replies that waited for Keeper.Saved may be sent. It returns to how many
	// clients.
	Durable() (released int)

	// Failed is called when a checkpoint could not be written: the replies that wait
	// for it can never be sent.
	Failed()
}
