package forward

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/base/keyslot"
	"github.com/zsetd/zsetd/server/internal/engine/subscription"
)

// topic is a channel, a pattern or a sharded channel.
type topic struct {
	kind subscription.Topic
	name string
}

// words are the commands that begin and end a subscription.
func (t topic) words() (on, off string) {
	switch t.kind {
	case subscription.Patterns:
		return "PSUBSCRIBE", "PUNSUBSCRIBE"
	case subscription.Shards:
		return "SSUBSCRIBE", "SUNSUBSCRIBE"
	}
	return "SUBSCRIBE", "UNSUBSCRIBE"
}

// ofNode reports whether the nodes of a cluster have different messages of a topic: those
// of a sharded channel, or the events of a node's keys.
func (t topic) ofNode() bool {
	return t.kind == subscription.Shards || strings.HasPrefix(t.name, "__key")
}

// hub receives the messages of all topics that clients of the server subscribe to.
type hub struct {
	home *Home

	mu     sync.Mutex // guards the fields below, and those of links
	topics map[topic]*wantedTopic
	links  map[string]*link // by address; "" for the topics that any node has
}

// wantedTopic is a topic that clients want.
type wantedTopic struct {
	links     []*link
	confirmed bool     // by one of them
	waiting   []func() // called when it is, with the lock held
}

// link is a connection that receives messages.
type link struct {
	hub     *hub
	addr    string // "" for any node
	up      bool
	wanted  map[topic]struct{}
	pending []byte        // commands to write
	wake    chan struct{} // capacity 1: there are
}

const (
	firstPause, longestPause = 20 * time.Millisecond, time.Second
)

func newHub(h *Home) *hub {
	return &hub{home: h, topics: map[topic]*wantedTopic{}, links: map[string]*link{}}
}

// subscribe makes messages of topics arrive, and then calls done in another goroutine.
func (h *hub) subscribe(kind subscription.Topic, names []string, done func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	left := 1
	one := func() {
		if left--; left == 0 {
			h.home.gone.Go(done)
		}
	}
	for _, name := range names {
		t := topic{kind, name}
		s := h.topics[t]
		if s == nil {
			s = &wantedTopic{}
			h.topics[t] = s
			h.place(t, s)
		}
		if !s.confirmed {
			left++
			s.waiting = append(s.waiting, one)
		}
	}
	one()
}

// place assigns a topic to links. The nodes of a cluster may have to be asked for theirs:
// then a goroutine does it.
func (h *hub) place(t topic, s *wantedTopic) {
	if !h.home.to.Cluster || !t.ofNode() {
		h.assign(t, s, []string{""})
		return
	}
	h.home.gone.Go(func() {
		var addrs []string
		var err error
		if t.kind == subscription.Shards {
			addrs = make([]string, 1)
			addrs[0], err = h.home.node(keyslot.Of(t.name))
		} else {
			addrs, err = h.home.nodes()
		}
		if err != nil {
			addrs = []string{""} // its reply redirects
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.topics[t] == s {
			h.assign(t, s, addrs)
		}
	})
}

// placeAgain assigns the topics of which the nodes are not all alike: other nodes have the
// slots.
func (h *hub) placeAgain() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for t, s := range h.topics {
		if t.ofNode() {
			h.place(t, s)
		}
	}
}

// assign makes the links of a topic those to some addresses. The nodes of former ones may
// be replicas by now, which have the same messages as their primaries.
func (h *hub) assign(t topic, s *wantedTopic, addrs []string) {
	on, off := t.words()
	for _, l := range s.links {
		if !slices.Contains(addrs, l.addr) {
			delete(l.wanted, t)
			l.send(encode(off, t.name))
		}
	}
	s.links = nil
	for _, addr := range addrs {
		l := h.links[addr]
		if l == nil {
			l = &link{hub: h, addr: addr, wanted: map[topic]struct{}{}, wake: make(chan struct{}, 1)}
			h.links[addr] = l
			h.home.gone.Go(l.run)
		}
		s.links = append(s.links, l)
		if _, ok := l.wanted[t]; !ok {
			l.wanted[t] = struct{}{}
			l.send(encode(on, t.name))
		}
	}
}

// send adds a command to those that are to be written. A link that is down sends all
// subscriptions when it is up again.
func (l *link) send(command []byte) {
	if !l.up {
		return
	}
	l.pending = append(l.pending, command...)
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// unsubscribe ends a subscription.
func (h *hub) unsubscribe(t topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.topics[t]
	if s == nil {
		return
	}
	delete(h.topics, t)
	h.leave(t, s)
	s.confirm()
}

// leave removes a topic from its links.
func (h *hub) leave(t topic, s *wantedTopic) {
	_, off := t.words()
	for _, l := range s.links {
		delete(l.wanted, t)
		l.send(encode(off, t.name))
	}
	s.links = nil
}

// confirm ends the waits for a subscription.
func (s *wantedTopic) confirm() {
	s.confirmed = true
	for _, one := range s.waiting {
		one()
	}
	s.waiting = nil
}

// run keeps a link open until the home is closed.
func (l *link) run() {
	ctx := l.hub.home.ctx
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, longestPause) {
		if l.connect(ctx) {
			pause = firstPause
		}
		l.hub.mu.Lock()
		l.up, l.pending = false, nil
		for t := range l.wanted { // no client waits for a server that is away
			if s := l.hub.topics[t]; s != nil {
				s.confirm()
			}
		}
		unused := l.addr != "" && len(l.wanted) == 0
		if unused {
			delete(l.hub.links, l.addr)
		}
		l.hub.mu.Unlock()
		if unused {
			return
		}
		if l.addr != "" && ctx.Err() == nil { // another node may have its slots by now
			l.hub.home.lost()
			l.hub.home.node(-1)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// connect opens the connection of a link, and writes its commands until it is lost. It
// reports whether it was open.
func (l *link) connect(ctx context.Context) bool {
	addr := l.addr
	if addr == "" {
		var err error
		if addr, err = l.hub.home.node(-1); err != nil {
			return false
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c, err := l.hub.home.dial(ctx, addr)
	if err != nil {
		return false
	}
	defer c.close()
	l.hub.mu.Lock()
	l.up, l.pending = true, nil
	for t := range l.wanted {
		on, _ := t.words()
		l.send(encode(on, t.name))
	}
	l.hub.mu.Unlock()
	l.hub.home.gone.Go(func() {
		defer cancel()
		for {
			v, err := protocol.DecodeFrom(c.in)
			if err != nil {
				return
			}
			l.received(v)
		}
	})
	for {
		select {
		case <-ctx.Done():
			return true
		case <-l.wake:
		}
		l.hub.mu.Lock()
		out := l.pending
		l.pending = nil
		l.hub.mu.Unlock()
		if _, err := c.Write(out); err != nil {
			return true
		}
	}
}

// received handles what a server has sent to a subscriber.
func (l *link) received(v any) {
	if e, ok := v.(protocol.ReplyError); ok {
		if to, ok := redirectionOf(string(e), l.addr); ok && to.addr != "" {
			l.hub.home.moved(to.slot, to.addr)
			l.move(func(t topic) bool { return t.kind == subscription.Shards && keyslot.Of(t.name) == to.slot })
		}
		return
	}
	words, _ := v.([]any)
	text := make([]string, len(words))
	for i, w := range words {
		text[i], _ = w.(string)
	}
	if len(text) < 3 {
		return
	}
	e := l.hub.home.engine
	switch text[0] {
	case "message":
		e.Deliver(subscription.Channels, text[1], text[1], text[2])
	case "pmessage":
		if len(text) == 4 {
			e.Deliver(subscription.Patterns, text[1], text[2], text[3])
		}
	case "smessage":
		e.Deliver(subscription.Shards, text[1], text[1], text[2])
	case "subscribe":
		l.confirmed(topic{subscription.Channels, text[1]})
	case "psubscribe":
		l.confirmed(topic{subscription.Patterns, text[1]})
	case "ssubscribe":
		l.confirmed(topic{subscription.Shards, text[1]})
	case "sunsubscribe": // the slot has moved, unless the topic is no longer wanted
		l.hub.home.lost()
		l.move(func(t topic) bool { return t == topic{subscription.Shards, text[1]} })
	}
}

func (l *link) confirmed(t topic) {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	if s := l.hub.topics[t]; s != nil {
		s.confirm()
	}
}

// move assigns topics of the link to other links.
func (l *link) move(which func(topic) bool) {
	h := l.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	for t := range l.wanted {
		if s := h.topics[t]; which(t) && s != nil {
			for _, old := range s.links {
				delete(old.wanted, t)
			}
			s.links = nil
			h.place(t, s)
		}
	}
}
