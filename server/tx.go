package server

import (
	"context"

	"github.com/zsetd/zsetd/server/internal/engine"
)

// Tx is a transaction: see [Server.Tx]. It is valid until the function returns, in its goroutine.
type Tx struct{ call *engine.ProgramCall }

// Do runs a command in the transaction, in database 0, or the one that an earlier SELECT of the
// transaction has chosen. Its arguments and its results are those of [Server.Do]; it sees what
// earlier commands of the transaction have changed. A command that would block replies as if its
// time had passed. Commands that scripts cannot run, such as MULTI, EVAL or SUBSCRIBE, are refused, and
// FLUSHALL, FLUSHDB and SWAPDB, which cannot be rolled back.
func (tx *Tx) Do(args ...any) (reply any, err error) { return tx.call.Do(args...) }

// Tx calls f and makes all changes of its commands visible at once, or none of them:
//
//	err := srv.Tx(ctx, func(tx *server.Tx) error {
//		if _, err := tx.Do("DECRBY", "stock", 1); err != nil {
//			return err
//		}
//		_, err := tx.Do("ZADD", "orders", time.Now(), id)
//		return err
//	})
//
// If f returns an error, Tx rolls the changes back and returns that error; if f panics, Tx rolls them
// back and panics with the same value. What has been rolled back sends no keyspace event, no
// message and no live query, reaches neither the data file nor a replica, and a client that waits for
// a key does not see it. A crash of the machine loses all changes of a transaction or none.
//
// No other command runs while f does, so f must be short. It must not wait for another goroutine that
// uses the server; methods of the Server in f return [ErrWithin]. f runs once at most, and need not be
// repeatable. It must return or panic: one that ends its goroutine, as testing.T.FailNow does, stops the
// server.
//
// Tx waits as [Server.Do] does, and if it returns an error of the server, such as
// [ErrServerClosed], the error of ctx, or READONLY on a replica, f was not called; but if ctx ends
// while the changes are being written (appendfsync always), they stay. Before its first change each key
// costs a copy-on-write clone of its value, O(1). A rollback costs O(k log n) for k changed keys of n.
func (srv *Server) Tx(ctx context.Context, f func(tx *Tx) error) error {
	if err := srv.engine.Within(); err != nil {
		return err
	}
	return srv.engine.Tx(ctx, func(p *engine.ProgramCall) error { return f(&Tx{p}) })
}
