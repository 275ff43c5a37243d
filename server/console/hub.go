package console

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zsetd/zsetd/protocol"
)

// hub receives the messages of all channels, patterns and keys that the viewers of one user
// follow, on one connection. The lock of the console may be held when its own is taken, and its
// own when that of a feed is.
type hub struct {
	c    *Console
	user string
	stop func() // closes the connection

	mu     sync.Mutex
	feeds  map[subscription][]*feed // those that follow it, or are about to
	unsent []hubCommand
	sent   []hubCommand  // those without their replies, in their order
	wake   chan struct{} // of capacity 1: unsent has commands
	stale  int           // names that the user may not unsubscribe from
}

// subscription is a channel or a pattern.
type subscription struct {
	pattern bool
	name    string
}

// hubCommand is SUBSCRIBE, UNSUBSCRIBE or their like.
type hubCommand struct {
	args []string
	left int   // confirmations that are missing
	f    *feed // of a command that subscribes
}

// maxStale is the number of stale names above which a hub takes no further feeds.
const maxStale = 100

// subscriptions returns what the server publishes the events of a source to; none if it is
// read in another way.
func (k feedKey) subscriptions() []subscription {
	switch k.kind {
	case ofChannel, ofQuery:
		return []subscription{{name: k.name}}
	case ofPattern:
		return []subscription{{pattern: true, name: k.name}}
	case ofKey:
		return []subscription{{name: subkeyspace + k.db + "__:" + k.name}, {name: keyspace + k.db + "__:" + k.name}}
	}
	return nil
}

// command returns a command for all of several subscriptions of one kind.
func command(verb string, of []subscription, f *feed) hubCommand {
	if of[0].pattern {
		verb = "P" + verb
	}
	args := []string{verb}
	for _, s := range of {
		args = append(args, s.name)
	}
	return hubCommand{args: args, left: len(of), f: f}
}

// subscribe makes the hub of a user, which it starts if there is none, the source of f. The lock
// of the console is held.
func (c *Console) subscribe(f *feed, who identity) {
	h := c.hubs[who.name]
	if h == nil {
		ctx, stop := context.WithCancel(c.ctx)
		h = &hub{c: c, user: who.name, stop: stop, feeds: map[subscription][]*feed{}, wake: make(chan struct{}, 1)}
		c.hubs[who.name] = h
		c.work.Go(func() { h.run(ctx, who) })
	}
	f.stop = func() { h.remove(f) }
	h.mu.Lock()
	defer h.mu.Unlock()
	of := f.key.subscriptions()
	for _, s := range of {
		h.feeds[s] = append(h.feeds[s], f)
	}
	h.queue(command("SUBSCRIBE", of, f))
}

// queue sends a command. The lock is held.
func (h *hub) queue(one hubCommand) {
	h.unsent = append(h.unsent, one)
	signal(h.wake)
}

// remove makes f receive nothing further. The hub ends with its last feed. The lock of the
// console is held.
func (h *hub) remove(f *feed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if left := h.forget(f); len(left) > 0 {
		h.queue(command("UNSUBSCRIBE", left, nil))
	}
	if len(h.feeds) == 0 {
		h.retire()
		h.stop()
	}
}

// retire makes the next feed of the user start another hub. The lock of the console is held.
func (h *hub) retire() {
	if h.c.hubs[h.user] == h {
		delete(h.c.hubs, h.user)
	}
}

// forget takes f out of the lists, and returns the subscriptions that no other feed follows. The
// lock is held.
func (h *hub) forget(f *feed) (left []subscription) {
	for _, s := range f.key.subscriptions() {
		i := slices.Index(h.feeds[s], f)
		switch {
		case i < 0:
		case len(h.feeds[s]) > 1:
			h.feeds[s] = slices.Delete(h.feeds[s], i, i+1)
		default:
			delete(h.feeds, s)
			left = append(left, s)
		}
	}
	return left
}

// run is the life of a hub.
func (h *hub) run(ctx context.Context, who identity) {
	err := h.serve(ctx, who)
	h.c.mu.Lock()
	h.retire()
	h.mu.Lock()
	var all []*feed
	for _, feeds := range h.feeds {
		all = append(all, feeds...)
	}
	h.mu.Unlock()
	h.c.mu.Unlock()
	h.stop()
	for _, f := range all {
		reason := err
		if f.isStarted() {
			reason = h.c.whyEnded(f, who)
		}
		h.c.ended(f, reason)
	}
}

// serve connects, and writes and reads until ctx ends or the server closes the connection.
func (h *hub) serve(ctx context.Context, who identity) error {
	nc, err := h.c.connect(ctx, who, feedName)
	if err != nil {
		return err
	}
	defer nc.close()
	h.c.work.Go(func() { h.write(ctx, nc) })
	for {
		v, err := protocol.DecodeFrom(nc.r)
		if err != nil {
			return err
		}
		switch v := v.(type) {
		case protocol.ReplyError:
			h.answered(v)
		case protocol.Push:
			h.push(v)
		}
	}
}

// write writes the commands of the queue.
func (h *hub) write(ctx context.Context, nc *conn) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.wake:
		}
		var b []byte
		h.mu.Lock()
		for _, one := range h.unsent {
			b = appendCommand(b, one.args)
		}
		h.sent = append(h.sent, h.unsent...)
		h.unsent = nil
		h.mu.Unlock()
		if _, err := nc.nc.Write(b); err != nil {
			return // so does the reader
		}
	}
}

// push handles a push message.
func (h *hub) push(push protocol.Push) {
	words := make([]string, len(push))
	for i, word := range push {
		words[i], _ = word.(string)
	}
	switch {
	case len(words) != 3 && len(words) != 4:
	case words[0] == "message":
		h.deliver(subscription{name: words[1]}, message{channel: words[1], text: words[2]})
	case words[0] == "pmessage":
		h.deliver(subscription{pattern: true, name: words[1]}, message{channel: words[2], pattern: words[1], text: words[3]})
	case strings.HasSuffix(words[0], "subscribe"):
		h.answered(nil)
	}
}

// answered handles one confirmation of the first command without its replies, or its error.
func (h *hub) answered(refused error) {
	h.mu.Lock()
	if len(h.sent) == 0 {
		h.mu.Unlock()
		return
	}
	one := &h.sent[0]
	if one.left--; one.left > 0 && refused == nil {
		h.mu.Unlock()
		return
	}
	f, names := one.f, len(one.args)-1
	h.sent = h.sent[1:]
	switch {
	case refused == nil:
	case f != nil:
		h.forget(f)
	default:
		h.stale += names
	}
	full := h.stale > maxStale
	h.mu.Unlock()
	switch {
	case f == nil && full:
		h.c.mu.Lock()
		h.retire()
		h.c.mu.Unlock()
	case f == nil:
	case refused != nil:
		h.c.ended(f, refused)
	default:
		f.start()
	}
}

// deliver adds a message to the feeds of a subscription that has been confirmed to them.
func (h *hub) deliver(s subscription, m message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.feeds[s] {
		switch {
		case !f.isStarted():
		case f.key.kind == ofKey:
			h.pair(f, m)
		case f.key.kind == ofQuery:
			f.set(h.c, m.text)
		default:
			f.add(m.appendEvent(nil, f.key.raw), "")
		}
	}
}

// pair adds an event of a key. One without the members is held back for pairTime: the same event
// with its members, if it is the next, takes its place. The lock is held.
func (h *hub) pair(f *feed, m message) {
	m.key = f.key.name
	event, _, _ := strings.Cut(m.text, "|")
	if held := f.held; held != nil && (!strings.HasPrefix(m.channel, subkeyspace) || event != held.text) {
		f.add(held.appendEvent(nil, f.key.raw), "")
	}
	f.held = nil
	if strings.HasPrefix(m.channel, subkeyspace) {
		f.add(m.appendEvent(nil, f.key.raw), "")
		return
	}
	f.held = &m
	time.AfterFunc(pairTime, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if f.held == &m {
			f.held = nil
			f.add(m.appendEvent(nil, f.key.raw), "")
		}
	})
}

// ended ends a feed whose source has ended with err.
func (c *Console) ended(f *feed, err error) {
	c.mu.Lock()
	if c.feeds[f.key] == f {
		delete(c.feeds, f.key)
	}
	c.mu.Unlock()
	if _, refused := errors.AsType[protocol.ReplyError](err); !refused && f.isStarted() && endReason(err) == "error" {
		err = errEnded
	}
	f.end(err)
	f.start()
}
