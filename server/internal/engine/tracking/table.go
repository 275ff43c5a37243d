package tracking

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/zsetd/zsetd/protocol"
)

// Subscriber is a client that may track: in the server, a session. Tracking returns nil
// if it does not.
type Subscriber interface {
	comparable
	Tracking() *Client
}

// Table is the record of the caches of all clients. The zero value is empty.
type Table[S Subscriber] struct {
	on       bool // a client tracks, or keys of earlier tracking remain
	clients  int
	keys     map[string]*Holders
	items    int // holders of all keys
	prefixes map[string]*broadcast[S]
	due      bool // a prefix has keys to broadcast
}

// Holders are the clients that may have a key in their caches.
type Holders struct{ IDs []int64 } // ascending

// broadcast is a prefix that clients track in broadcast mode.
type broadcast[S Subscriber] struct {
	clients map[S]struct{}
	changed map[string]S // keys with the client that changed each last; the zero value if unknown
}

// On reports whether changes of keys concern the table.
func (t *Table[S]) On() bool { return t.on }

// Clients returns how many clients track.
func (t *Table[S]) Clients() int { return t.clients }

// Keys returns the number of keys, Items of their holders, and Prefixes of the prefixes.
func (t *Table[S]) Keys() int { return len(t.keys) }

// Items is described at Keys.
func (t *Table[S]) Items() int { return t.items }

// Prefixes is described at Keys.
func (t *Table[S]) Prefixes() int { return len(t.prefixes) }

// Memory estimates the bytes that the keys take.
func (t *Table[S]) Memory() int64 {
	const perKey, perHolder = 160, 8
	return int64(len(t.keys)*perKey + t.items*perHolder)
}

// Record enters a client as a holder of a key, which it borrows.
func (t *Table[S]) Record(key []byte, id int64) {
	h := t.keys[protocol.View(key)]
	if h == nil {
		h = new(Holders)
		if t.keys == nil {
			t.keys = map[string]*Holders{}
		}
		t.keys[string(key)] = h
	}
	if i, there := slices.BinarySearch(h.IDs, id); !there {
		h.IDs = slices.Insert(h.IDs, i, id)
		t.items++
	}
}

// Changed removes a key, which it borrows, and returns its holders, nil for none. by is
// the client that has changed the key; the zero value if that is unknown. It takes O(P),
// P prefixes.
func (t *Table[S]) Changed(key string, by S) *Holders {
	for prefix, b := range t.prefixes {
		if !strings.HasPrefix(key, prefix) {
			continue
		}
		if last, there := b.changed[key]; !there || last != by {
			b.changed[strings.Clone(key)] = by // also replaces a key that is there
		}
		t.due = true
	}
	return t.forget(key)
}

// forget removes a key from the table.
func (t *Table[S]) forget(key string) *Holders {
	h := t.keys[key]
	if h != nil {
		delete(t.keys, key)
		t.items -= len(h.IDs)
		t.update()
	}
	return h
}

// Clear removes all keys.
func (t *Table[S]) Clear() {
	t.keys, t.items = nil, 0
	t.update()
}

func (t *Table[S]) update() { t.on = t.clients > 0 || len(t.keys) > 0 }

// Exceeds reports whether the table has more than limit keys; 0 is no limit.
func (t *Table[S]) Exceeds(limit int) bool { return limit > 0 && t.clients > 0 && len(t.keys) > limit }

// Trim removes keys, in random order, at most n and only while there are more than limit.
// It returns an iterator over them, which the caller must finish.
func (t *Table[S]) Trim(limit, n int) iter.Seq2[string, *Holders] {
	return func(yield func(string, *Holders) bool) {
		if !t.Exceeds(limit) {
			return
		}
		for key := range t.keys {
			if more := yield(key, t.forget(key)); !more {
				return
			}
			if n--; n == 0 || len(t.keys) <= limit {
				return
			}
		}
	}
}

// Broadcasts returns an iterator over the clients in broadcast mode that have to know of
// changes since the previous call, with the changed keys, in order.
func (t *Table[S]) Broadcasts() iter.Seq2[S, []string] {
	return func(yield func(S, []string) bool) {
		if !t.due {
			return
		}
		t.due = false
		for _, prefix := range slices.Sorted(maps.Keys(t.prefixes)) {
			if b := t.prefixes[prefix]; len(b.changed) > 0 && !b.each(yield) {
				return
			}
		}
	}
}

// each yields the clients of a prefix with the keys that have changed.
func (b *broadcast[S]) each(yield func(S, []string) bool) bool {
	defer clear(b.changed)
	keys := slices.Sorted(maps.Keys(b.changed))
	for s := range b.clients {
		mine := keys
		if s.Tracking().NoLoop {
			mine = slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return b.changed[key] == s })
		}
		if len(mine) > 0 && !yield(s, mine) {
			return false
		}
	}
	return true
}

// Start makes a client track keys: it returns the state that Tracking has to return from
// now on. Prefixes that the client already has stay. The options must not conflict.
func (t *Table[S]) Start(s S, o *Options) *Client {
	c := &Client{Redirect: o.Redirect, Broadcast: o.Broadcast, OptIn: o.OptIn, OptOut: o.OptOut, NoLoop: o.NoLoop}
	if was := s.Tracking(); was != nil {
		c.Caching, c.prefixes = was.Caching, was.prefixes
	} else {
		t.clients++
		t.update()
	}
	if !o.Broadcast {
		return c
	}
	prefixes := o.Prefixes
	if len(prefixes) == 0 {
		prefixes = []string{""}
	}
	for _, prefix := range prefixes {
		b := t.prefixes[prefix]
		if b == nil {
			b = &broadcast[S]{clients: map[S]struct{}{}, changed: map[string]S{}}
			if t.prefixes == nil {
				t.prefixes = map[string]*broadcast[S]{}
			}
			t.prefixes[prefix] = b
		}
		b.clients[s] = struct{}{}
		if c.prefixes == nil {
			c.prefixes = map[string]struct{}{}
		}
		c.prefixes[prefix] = struct{}{}
	}
	return c
}

// Stop ends the tracking of a client, if it tracks. Tracking has to return nil from then on.
func (t *Table[S]) Stop(s S) {
	c := s.Tracking()
	if c == nil {
		return
	}
	for prefix := range c.prefixes {
		b := t.prefixes[prefix]
		delete(b.clients, s)
		if len(b.clients) == 0 {
			delete(t.prefixes, prefix)
		}
	}
	t.clients--
	t.update()
}

// Check verifies the table against the clients.
func (t *Table[S]) Check(all iter.Seq[S]) error {
	clients, items, prefixes := t.clients, t.items, 0
	for s := range all {
		if c := s.Tracking(); c != nil {
			clients--
			prefixes += len(c.prefixes)
		}
	}
	for _, h := range t.keys {
		items -= len(h.IDs)
		if !slices.IsSorted(h.IDs) {
			return fmt.Errorf("tracking: the holders %v are not in order", h.IDs)
		}
	}
	for _, b := range t.prefixes {
		prefixes -= len(b.clients)
	}
	if clients != 0 || items != 0 || prefixes != 0 {
		return fmt.Errorf("tracking: off by %d clients, %d items, %d prefixes", clients, items, prefixes)
	}
	if t.on != (t.clients > 0 || len(t.keys) > 0) {
		return fmt.Errorf("tracking: on is %t with %d clients and %d keys", t.on, t.clients, len(t.keys))
	}
	return nil
}
