package server

import (
	"context"
	"iter"

	"github.com/zsetd/zsetd/server/internal/engine"
)

// Message is a message that was published to a channel.
type Message struct {
	Channel string
	Pattern string // that matched the channel; empty for Subscribe
	Payload string
}

// ErrSlowSubscriber is the error of a [Subscription] whose unread messages exceed the
// limits of the class pubsub in the parameter client-output-buffer-limit: by default
// 32 MB, or 8 MB for 60 seconds.
var ErrSlowSubscriber = engine.ErrSlowSubscriber

// Subscription receives the messages of channels or patterns in this process, without
// a connection. Messages that arrive wait in a queue until the loop over
// [Subscription.Messages] takes them; the queue is as limited as that of a client
// that has sent SUBSCRIBE. A slow loop therefore delays no publisher.
//
// A Subscription has no goroutine of its own. It ends when its context ends, when the
// loop over its messages ends, with Close, and when the server stops. Until then it
// counts as a client in CLIENT LIST and INFO.
type Subscription struct {
	engine *engine.Engine
	sub    *engine.Subscription
}

// Subscribe subscribes to channels. The subscription is in effect when Subscribe
// returns: a message that is published afterwards, by [Server.Do] for instance, is
// not missed. This is why it returns a value with an iterator and not the iterator
// itself, which would subscribe no earlier than at the first step of the loop.
//
// The ACL does not apply. Subscribe returns an error without a channel, the error of
// ctx if that has ended, and [ErrServerClosed] after Close or Shutdown. It takes O(1)
// for each channel, and is safe for concurrent use. The caller must range over
// Messages, call Close, or end ctx.
func (srv *Server) Subscribe(ctx context.Context, channels ...string) (*Subscription, error) {
	return srv.subscribe(ctx, false, channels)
}

// PSubscribe is [Server.Subscribe] for all channels whose names match a pattern, as
// PSUBSCRIBE does. A message that matches several patterns is received several times.
//
// Keyspace events reach a Go program in this way, too: set the parameter
// notify-keyspace-events and subscribe to "__keyevent@0__:expired" or
// "__keyspace@*__:*".
func (srv *Server) PSubscribe(ctx context.Context, patterns ...string) (*Subscription, error) {
	return srv.subscribe(ctx, true, patterns)
}

func (srv *Server) subscribe(ctx context.Context, pattern bool, names []string) (*Subscription, error) {
	if err := srv.engine.Within(); err != nil {
		return nil, err
	}
	sub, err := srv.engine.Subscribe(ctx, pattern, names...)
	if err != nil {
		return nil, err
	}
	return &Subscription{srv.engine, sub}, nil
}

// Messages returns an iterator over the messages in the order in which they were
// published. It waits for messages until the subscription ends. The reason is the
// error of the last pair, which has no message: the error of the context,
// [ErrSlowSubscriber], [ErrServerClosed] after Close or Shutdown of the server (the
// messages that arrived before come first), an error after CLIENT KILL, or a
// [*PanicError]; or [ErrWithin] at once. After Close of the subscription the loop ends without an error.
//
// When the loop ends, by break or otherwise, the subscription is closed. One loop at a
// time may run.
func (s *Subscription) Messages() iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		if err := s.engine.Within(); err != nil {
			yield(Message{}, err)
			return
		}
		for m, err := range s.sub.Messages() {
			if !yield(Message(m), err) {
				return
			}
		}
	}
}

// Close ends the subscription, discards unread messages, and ends the loop over the
// messages. It returns nil, or [ErrWithin], may be called several times, and is safe for
// concurrent use.
func (s *Subscription) Close() error {
	if err := s.engine.Within(); err != nil {
		return err
	}
	return s.sub.Close()
}
