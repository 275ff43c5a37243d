package server

import (
	"context"
	"iter"

	"github.com/zsetd/zsetd/server/internal/engine"
)

// Observation is a live query: it receives the reply to a command, and each reply that differs
// from the one before. It has no goroutine of its own. It ends as a [Subscription] does, and
// counts as a client with one subscription until then.
type Observation struct {
	engine *engine.Engine
	o      *engine.Observation
}

// Observe follows the reply to a command that only reads, on database 0. Arguments are those of
// [Server.Do]. Any change of the command's keys counts, by commands, scripts and transactions,
// deadlines, eviction, FLUSHALL and replication, and so does the time that passes, for bounds such as
// @now-5m.
//
// The ACL does not apply. The error is a protocol.ReplyError if the command writes, blocks, names
// no key, or differs for the same data, as ZRANDMEMBER and TTL do; otherwise those of
// [Server.Subscribe]. While data are being loaded, Observe waits. Equal observations share their
// evaluations with each other and with clients that subscribe to the same query. Observe is safe
// for concurrent use. The caller must range over Replies, call Close, or end ctx.
func (srv *Server) Observe(ctx context.Context, args ...any) (*Observation, error) {
	if err := srv.engine.Within(); err != nil {
		return nil, err
	}
	o, err := srv.engine.Observe(ctx, args...)
	if err != nil {
		return nil, err
	}
	return &Observation{srv.engine, o}, nil
}

// Replies returns an iterator over replies, of the types of [Server.Do]. The first is the present
// one. A loop that is slow receives the newest reply, not those in between. An error reply, such as
// WRONGTYPE, is an error of type protocol.ReplyError, and the loop goes on after it. The other errors,
// and the end of the loop, are those of [Subscription.Messages].
func (o *Observation) Replies() iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		if err := o.engine.Within(); err != nil {
			yield(nil, err)
			return
		}
		o.o.Replies()(yield)
	}
}

// Close ends the observation and the loop over its replies. It returns nil, or [ErrWithin], may be
// called several times, and is safe for concurrent use.
func (o *Observation) Close() error {
	if err := o.engine.Within(); err != nil {
		return err
	}
	return o.o.Close()
}
