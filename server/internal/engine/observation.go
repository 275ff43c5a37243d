package engine

import (
	"context"
	"errors"
	"iter"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine/subscription"
)

// Observation is a live query of this process.
type Observation struct{ sub *Subscription }

// Observe follows the reply to a command that reads, on database 0. Its arguments are those of
// Do.
func (srv *Engine) Observe(ctx context.Context, args ...any) (o *Observation, err error) {
	defer srv.setClosedError(&err)
	argv, err := srv.Arguments(args)
	if err != nil {
		return nil, err
	}
	if len(argv) == 0 {
		return nil, errors.New("zsetd: no command")
	}
	words := make([]string, len(argv))
	for i, arg := range argv {
		words[i] = string(arg)
	}
	if err := srv.Ready(ctx); err != nil {
		return nil, err
	}
	sub, err := srv.subscribe(ctx, subscription.Channels, []string{queryPrefix + "0__:" + protocol.JoinArgs(words)}, true)
	if err != nil {
		return nil, err
	}
	return &Observation{sub}, nil
}

// Replies returns an iterator over the present reply and each one that differs from the one before. A
// loop that is slow receives the newest only. An error reply is an error of type
// protocol.ReplyError, after which the loop goes on.
func (o *Observation) Replies() iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		defer o.sub.end(nil)
		out, err := o.sub.await()
		for ; out != nil; out, err = o.sub.following() {
			if ended, _ := o.sub.state(); ended {
				continue
			}
			reply, failed := newest(out)
			if !yield(reply, failed) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// newest returns the last of the replies in out, at least one.
func newest(out []byte) (reply any, err error) {
	for len(out) > 0 {
		v, n, err := protocol.Decode(out)
		if err != nil {
			panic("BUG: observation: " + err.Error())
		}
		out, reply = out[n:], v
	}
	if e, failed := reply.(protocol.ReplyError); failed {
		return nil, e
	}
	return reply, nil
}

// Close ends the observation and the loop over its replies.
func (o *Observation) Close() error { return o.sub.Close() }
