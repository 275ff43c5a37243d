package subscription

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/base/glob"
)

// Topic is a kind of subscription.
type Topic uint8

// The kinds of subscriptions.
const (
	Channels Topic = iota
	Patterns
	Shards // sharded channels
	topics
)

// Names are the subscriptions of one subscriber. The zero value is empty.
type Names struct {
	positions [topics]map[string]int // in the list of the name
	n         int
}

// Len returns the number of subscriptions of all kinds.
func (n *Names) Len() int { return n.n }

// Count returns the number of subscriptions of a kind.
func (n *Names) Count(t Topic) int { return len(n.positions[t]) }

// Has reports whether a name is subscribed to.
func (n *Names) Has(t Topic, name []byte) bool {
	_, ok := n.positions[t][string(name)]
	return ok
}

// All returns an iterator over the names of a kind, in no order. The loop may unsubscribe.
func (n *Names) All(t Topic) iter.Seq[string] { return maps.Keys(n.positions[t]) }

// Subscriber has subscriptions: in the server, a session.
type Subscriber interface {
	comparable
	Subscriptions() *Names
}

// Table has the subscribers of all names. The zero value is empty.
type Table[S Subscriber] struct {
	lists [topics]map[string]*list[S]
}

// list is the list of the subscribers of a name. It is not empty.
type list[S Subscriber] struct {
	name        string
	subscribers []S
}

// Len returns how many names of a kind have subscribers.
func (t *Table[S]) Len(kind Topic) int { return len(t.lists[kind]) }

// Names returns the names of a kind that have subscribers, in order.
func (t *Table[S]) Names(kind Topic) []string {
	return slices.Sorted(maps.Keys(t.lists[kind]))
}

// Subscribers returns the subscribers of a name, in no order, until the next change.
func (t *Table[S]) Subscribers(kind Topic, name string) []S {
	if l := t.lists[kind][name]; l != nil {
		return l.subscribers
	}
	return nil
}

// Matching returns an iterator over the patterns that match a channel, with their
// subscribers. It takes O(P), P patterns with subscribers. The loop may unsubscribe.
func (t *Table[S]) Matching(channel string) iter.Seq2[string, []S] {
	return func(yield func(string, []S) bool) {
		for pattern, l := range t.lists[Patterns] {
			if glob.Match(protocol.BytesOf(pattern), protocol.BytesOf(channel), false) && !yield(pattern, l.subscribers) {
				return
			}
		}
	}
}

// Receivers returns how many deliveries a message makes: to the subscribers of a channel
// and of the patterns that match it, or to those of a sharded channel.
func (t *Table[S]) Receivers(sharded bool, channel []byte) int {
	if sharded {
		return len(t.Subscribers(Shards, protocol.View(channel)))
	}
	n := len(t.Subscribers(Channels, protocol.View(channel)))
	for _, subscribers := range t.Matching(protocol.View(channel)) {
		n += len(subscribers)
	}
	return n
}

// Add subscribes s to a name. It reports whether s was not subscribed to it, and whether
// s is its first subscriber. It takes O(1).
func (t *Table[S]) Add(s S, kind Topic, name string) (added, first bool) {
	n := s.Subscriptions()
	mine := &n.positions[kind]
	if _, there := (*mine)[name]; there {
		return false, false
	}
	if *mine == nil {
		*mine = map[string]int{}
	}
	l := t.lists[kind][name]
	if l == nil {
		if t.lists[kind] == nil {
			t.lists[kind] = map[string]*list[S]{}
		}
		l, first = &list[S]{name: name}, true
		t.lists[kind][name] = l
	}
	(*mine)[name] = len(l.subscribers)
	l.subscribers = append(l.subscribers, s)
	n.n++
	return true, first
}

// Remove ends a subscription. It reports whether s was subscribed to the name, which it
// borrows, and whether s was its last subscriber. It takes O(1).
func (t *Table[S]) Remove(s S, kind Topic, name string) (removed, last bool) {
	n := s.Subscriptions()
	position, there := n.positions[kind][name]
	if !there {
		return false, false
	}
	l := t.lists[kind][name]
	delete(n.positions[kind], name)
	n.n--
	end := len(l.subscribers) - 1
	if position < end {
		moved := l.subscribers[end]
		l.subscribers[position] = moved
		moved.Subscriptions().positions[kind][l.name] = position // an assignment replaces the key of the map, too
	}
	var none S
	l.subscribers[end] = none
	l.subscribers = l.subscribers[:end]
	if end == 0 {
		delete(t.lists[kind], name)
	}
	return true, end == 0
}

// Check verifies the table against the subscriptions of all subscribers.
func (t *Table[S]) Check(all iter.Seq[S]) error {
	n := 0
	for s := range all {
		names, sum := s.Subscriptions(), 0
		for kind := range topics {
			sum += len(names.positions[kind])
		}
		if sum != names.n {
			return fmt.Errorf("subscription: a subscriber with %d names counts %d", sum, names.n)
		}
		n += sum
	}
	for kind := range topics {
		for name, l := range t.lists[kind] {
			n -= len(l.subscribers)
			if len(l.subscribers) == 0 {
				return fmt.Errorf("subscription: %q has an empty list", name)
			}
			for i, s := range l.subscribers {
				if at, there := s.Subscriptions().positions[kind][name]; !there || at != i {
					return fmt.Errorf("subscription: subscriber %d of %q has position %d, %t", i, name, at, there)
				}
			}
		}
	}
	if n != 0 {
		return fmt.Errorf("subscription: subscribers have %d more names than the table", n)
	}
	return nil
}
