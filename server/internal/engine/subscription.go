package engine

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine/subscription"
)

// Message is a message that was published to a channel.
type Message struct {
	Channel string
	Pattern string // that matched the channel; empty for a subscription to channels
	Payload string
}

// ErrSlowSubscriber is the error of a Subscription whose unread messages exceed the
// limits of the class pubsub in client-output-buffer-limit.
var ErrSlowSubscriber = errors.New("zsetd: unread messages exceed client-output-buffer-limit for the class pubsub")

// Subscription is a subscriber in this process: a session whose output queue is read
// by an iterator instead of a transport. It owns no goroutine.
type Subscription struct {
	sess  *Session
	woken chan struct{} // capacity 1

	mu    sync.Mutex
	ended bool
	err   error       // the reason; nil after Close
	stop  func() bool // releases the context
}

// Subscribe subscribes to channels, or to patterns.
func (srv *Engine) Subscribe(ctx context.Context, pattern bool, names ...string) (sub *Subscription, err error) {
	defer srv.setClosedError(&err)
	if len(names) == 0 {
		return nil, errors.New("zsetd: no channel to subscribe to")
	}
	kind := subscription.Channels
	if pattern {
		kind = subscription.Patterns
	}
	return srv.subscribe(ctx, kind, names, false)
}

// subscribe is Subscribe for a kind of names. observes says that the replies of live queries
// arrive as they are.
func (srv *Engine) subscribe(ctx context.Context, kind subscription.Topic, names []string, observes bool) (sub *Subscription, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !srv.Ending.enterCall() {
		return nil, srv.closedError()
	}
	defer srv.Ending.running.Done()
	sub = &Subscription{woken: make(chan struct{}, 1)}
	refusal := ""
	srv.InTurn(func() {
		srv.addSession(&sub.sess, Peer{FD: -1, Wake: sub.wake})
		s := sub.sess
		s.SetOwner()
		s.Out.SetVersion(3)
		if observes {
			s.lively().observes = true
		}
		if refusal = s.RefusesQueries(kind, names); refusal != "" {
			s.remove()
			return
		}
		for _, name := range names {
			s.Subscribe(kind, name)
		}
		s.Weigh()
	})
	if refusal != "" {
		return nil, protocol.ReplyError(refusal)
	}
	sub.mu.Lock() // ctx may end before stop is set
	defer sub.mu.Unlock()
	sub.stop = context.AfterFunc(ctx, func() { sub.end(ctx.Err()) })
	return sub, nil
}

// Messages returns an iterator over the messages. When the loop ends, the subscription
// is closed.
func (sub *Subscription) Messages() iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		defer sub.end(nil)
		out, err := sub.await()
		for ; out != nil; out, err = sub.following() {
			for len(out) > 0 {
				if ended, _ := sub.state(); ended {
					break
				}
				v, n, err := protocol.Decode(out)
				if err != nil {
					panic("BUG: subscription: " + err.Error())
				}
				out = out[n:]
				if m, ok := messageOf(v); ok && !yield(m, nil) {
					return
				}
			}
		}
		if err != nil {
			yield(Message{}, err)
		}
	}
}

// messageOf returns the message of a push. Other pushes, such as the notice of
// server-side changes of a subscription, are none.
func messageOf(v any) (m Message, ok bool) {
	push, _ := v.(protocol.Push)
	switch {
	case len(push) == 3 && push[0] == "message":
		m.Channel, ok = push[1].(string)
	case len(push) == 4 && push[0] == "pmessage":
		m.Pattern, _ = push[1].(string)
		m.Channel, ok = push[2].(string)
	}
	if ok {
		m.Payload, ok = push[len(push)-1].(string)
	}
	return m, ok
}

// Close ends the subscription and the loop over its messages.
func (sub *Subscription) Close() error {
	sub.end(nil)
	return nil
}

// end closes the session. Only the first call has an effect.
func (sub *Subscription) end(reason error) {
	sub.mu.Lock()
	first := !sub.ended
	if first {
		sub.ended, sub.err = true, reason
		sub.stop()
	}
	sub.mu.Unlock()
	if first {
		sub.sess.Engine.Attempt(func() { sub.sess.Close() })
		sub.wake()
	}
}

// state reports whether the subscription has ended, and the reason.
func (sub *Subscription) state() (ended bool, reason error) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	return sub.ended, sub.err
}

func (sub *Subscription) wake() {
	select {
	case sub.woken <- struct{}{}:
	default:
	}
}

// following returns the output after that which await returned, and waits for it.
func (sub *Subscription) following() (out []byte, err error) {
	defer sub.sess.Engine.setClosedError(&err)
	if out = sub.sess.Written(); out != nil {
		return out, nil
	}
	return sub.await()
}

// await waits for output. It returns nil when the subscription has ended, with the
// reason unless Close has ended it.
func (sub *Subscription) await() (out []byte, err error) {
	srv := sub.sess.Engine
	defer srv.setClosedError(&err)
	for last := false; ; {
		if ended, reason := sub.state(); ended {
			return nil, reason
		}
		out, killed, _ := sub.sess.Take()
		switch {
		case out != nil:
			return out, nil
		case killed && sub.sess.outgrown():
			return nil, ErrSlowSubscriber
		case killed:
			return nil, errors.New("zsetd: the subscription was ended by CLIENT KILL or maxmemory-clients")
		case last:
			return nil, srv.closedError()
		}
		select {
		case <-sub.woken:
		case <-srv.Ending.Stopped:
			last = true // messages that have arrived by now come first
		}
	}
}
