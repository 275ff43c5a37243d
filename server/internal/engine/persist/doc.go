// Package persist keeps a keyspace in a file: it takes checkpoints of the keyspace's
// journal when they are due, writes them, rewrites the file when it is mostly waste,
// loads it, and makes backups. The file itself is a snapshot.File.
//
// A [Keeper] runs below a [Host], whose lock guards the keyspace. Taking a checkpoint
// holds that lock for an instant, writing one does not hold it. A rewrite takes its keys
// in pieces of at most 200 µs and 1 MB.
//
// The host decides which replies wait for a checkpoint: it notes [Keeper.Epoch] when it
// withholds a reply, and sends the reply once [Keeper.Saved] holds for that epoch, see
// [Host].Durable. The keeper's goroutine writes checkpoints, or the goroutine whose commands have
// made the changes: where few clients wait (direct.go), and where it has no more input (gather.go).
package persist
