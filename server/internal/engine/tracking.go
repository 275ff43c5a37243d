package engine

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/zsetd/zsetd/protocol"
)

// Client-side caching, CLIENT TRACKING. The server sends a client an invalidation
// when a key that it has read changes, or, in broadcast mode, when any key changes
// that begins with one of its prefixes.
//
// A key leaves the table at the instant it changes, so a value that a transaction
// or script reads after its own write counts as fresh. The holders of the key are
// part of the effect; they receive the invalidation when the commit scope ends,
// after the reply of the session that made the change. Broadcasts are collected
// until the lock is released, as Redis collects them until it has served a
// pipeline: one message for each prefix.
//
// While no client tracks, all this costs one comparison for each change and one for
// each command.

// tracking is the server's record of the caches of all clients.
type tracking struct {
	on           bool // a client tracks, or keys of earlier tracking remain
	Clients      int
	Keys         map[string]*holders
	Items        int // holders of all keys
	Prefixes     map[string]*broadcast
	broadcastDue bool // a prefix has keys to broadcast
}

// holders are the clients that may have a key in their caches. The ids of clients
// that have disconnected or stopped tracking stay until the key changes.
type holders struct{ ids []int64 } // ascending

// memory estimates the bytes that the table takes.
func (t *tracking) memory() int64 {
	const perKey, perHolder = 160, 8
	return int64(len(t.Keys)*perKey + t.Items*perHolder)
}

// broadcast is a prefix that clients track in broadcast mode.
type broadcast struct {
	clients map[*Session]struct{}
	changed map[string]*Session // keys with the session that changed each last; nil: the server itself
}

// cache is the tracking state of a session.
type cache struct {
	redirect      int64 // the client that receives the invalidations instead; 0: this one
	broken        bool  // that client has disconnected
	bcast         bool
	optin, optout bool
	noloop        bool                // no invalidations for its own changes
	caching       bool                // CLIENT CACHING applies to the next command, or transaction
	prefixes      map[string]struct{} // in broadcast mode
}

// trackingChannel is the channel on which RESP2 clients receive invalidations, as
// messages.
const trackingChannel = "__redis__:invalidate"

// TrimBatch is the number of keys removed from the table under one hold of the lock
// while the table exceeds tracking-table-max-keys.
const TrimBatch = 1000

// reads reports whether a command returns values of keys to clients. For a
// read-only script the commands that it runs count, not the script.
func (cmd *Command) reads() bool {
	flags := cmd.Spec.Flags()
	return flags.Has(protocol.ReadOnly) && !flags.Has(protocol.PubSub) && cmd.Group != "scripting"
}

// trackKeys records that a session has received the values of the keys that a
// command names. The session must track.
func (s *Session) trackKeys(cmd *Command, argv [][]byte) {
	c := s.cache
	if c.bcast || c.optin && !c.caching || c.optout && c.caching {
		return
	}
	t := &s.Engine.Tracking
	var few [8]protocol.KeyRef
	for _, ref := range cmd.Spec.AppendKeys(few[:0], argv) {
		h := t.Keys[protocol.View(argv[ref.Index])]
		if h == nil {
			h = new(holders)
			if t.Keys == nil {
				t.Keys = map[string]*holders{}
			}
			t.Keys[string(argv[ref.Index])] = h
		}
		if i, there := slices.BinarySearch(h.ids, s.ID); !there {
			h.ids = slices.Insert(h.ids, i, s.ID)
			t.Items++
		}
	}
}

// untrackKey removes a key from the table and returns the clients to invalidate. by
// is the session that changed the key; nil if the key has expired.
func (srv *Engine) untrackKey(key string, by *Session, expired bool) *holders {
	t := &srv.Tracking
	for prefix, b := range t.Prefixes {
		if !strings.HasPrefix(key, prefix) {
			continue
		}
		last := by
		if expired || srv.Scripting.Running != nil { // Redis does not know the caller of a script
			last = nil
		}
		if _, there := b.changed[key]; there {
			b.changed[key] = last
		} else {
			b.changed[strings.Clone(key)] = last
		}
		t.broadcastDue = true
	}
	h := t.forget(key)
	if h == nil {
		return nil
	}
	h.ids = slices.DeleteFunc(h.ids, func(id int64) bool {
		s := srv.Sessions[id]
		return s == nil || s.cache == nil || s.cache.bcast || s.cache.noloop && s == by
	})
	if len(h.ids) == 0 {
		return nil
	}
	return h
}

// forget removes a key from the table.
func (t *tracking) forget(key string) *holders {
	h := t.Keys[key]
	if h != nil {
		delete(t.Keys, key)
		t.Items -= len(h.ids)
		t.update()
	}
	return h
}

func (t *tracking) update() { t.on = t.Clients > 0 || len(t.Keys) > 0 }

// invalidate sends the holders of a key an invalidation.
func (srv *Engine) invalidate(key string, to *holders) {
	for _, id := range to.ids {
		if s := srv.Sessions[id]; s != nil && s.cache != nil && !s.cache.bcast {
			s.sendInvalidation([]string{key})
		}
	}
}

// Flushed records that databases were emptied: the commit sends every tracking
// client a null, which invalidates its whole cache.
func (u *commitScope) Flushed() {
	t := &u.srv.Tracking
	if !t.on {
		return
	}
	t.Keys, t.Items = nil, 0
	t.update()
	if t.Clients > 0 {
		u.effects = append(u.effects, effect{message: flushMessage})
	}
}

// invalidateAll sends that null.
func (srv *Engine) invalidateAll() {
	for _, s := range srv.ByID() {
		if s.cache != nil {
			s.sendInvalidation(nil)
		}
	}
}

// sendInvalidation sends invalidated keys to a session that tracks, or to the session that it
// redirects to; nil means all keys. A RESP2 client can receive invalidations only
// if it redirects to a session that is subscribed.
func (s *Session) sendInvalidation(keys []string) {
	to := s
	if id := s.cache.redirect; id != 0 {
		if to = s.Engine.Sessions[id]; to == nil || to.End != Serving {
			s.cache.broken = true
			if s.Out.Version() == 3 {
				r := protocol.NewReply(nil, 3)
				r.Push(2)
				r.BulkString("tracking-redir-broken")
				r.Int(id)
				s.Push(r.Bytes())
			}
			return
		}
	}
	r := protocol.NewReply(nil, to.Out.Version())
	switch {
	case to.Out.Version() == 3:
		r.Push(2)
		r.BulkString("invalidate")
	case to != s && to.subscriptions.Len() > 0:
		r.Push(3)
		r.BulkString("message")
		r.BulkString(trackingChannel)
	default:
		return
	}
	if keys == nil {
		r.Null()
	} else {
		r.Array(len(keys))
		for _, key := range keys {
			r.BulkString(key)
		}
	}
	to.Push(r.Bytes())
}

// finishTracking sends the collected broadcasts, and trims the table to its limit.
// It is called before the lock is released.
func (srv *Engine) finishTracking() {
	t := &srv.Tracking
	if t.broadcastDue {
		t.broadcastDue = false
		for _, prefix := range slices.Sorted(maps.Keys(t.Prefixes)) {
			t.Prefixes[prefix].send()
		}
	}
	if limit := int(srv.Config.TrackingTableMaxKeys); limit > 0 && t.Clients > 0 && len(t.Keys) > limit {
		n := 0
		for key := range t.Keys { // in random order
			srv.invalidate(key, t.forget(key))
			if n++; n == TrimBatch || len(t.Keys) <= limit {
				break
			}
		}
	}
}

// trackingExceedsLimit reports whether finishTracking has left keys to trim.
func (srv *Engine) trackingExceedsLimit() bool {
	limit := int(srv.Config.TrackingTableMaxKeys)
	return limit > 0 && srv.Tracking.Clients > 0 && len(srv.Tracking.Keys) > limit
}

// send sends the clients of a prefix the keys that were changed.
func (b *broadcast) send() {
	if len(b.changed) == 0 {
		return
	}
	keys := slices.Sorted(maps.Keys(b.changed))
	for s := range b.clients {
		mine := keys
		if s.cache.noloop {
			mine = slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return b.changed[key] == s })
		}
		if len(mine) > 0 {
			s.sendInvalidation(mine)
		}
	}
	clear(b.changed)
}

// track makes a session track keys. Prefixes that it already has stay.
func (s *Session) track(o *trackingOptions) {
	t := &s.Engine.Tracking
	c := &cache{redirect: o.redirect, bcast: o.bcast, optin: o.optin, optout: o.optout, noloop: o.noloop}
	if s.cache == nil {
		t.Clients++
		t.update()
	} else {
		c.caching, c.prefixes = s.cache.caching, s.cache.prefixes
	}
	s.cache = c
	if !o.bcast {
		return
	}
	if len(o.prefixes) == 0 {
		o.prefixes = []string{""}
	}
	for _, prefix := range o.prefixes {
		b := t.Prefixes[prefix]
		if b == nil {
			b = &broadcast{clients: map[*Session]struct{}{}, changed: map[string]*Session{}}
			if t.Prefixes == nil {
				t.Prefixes = map[string]*broadcast{}
			}
			t.Prefixes[prefix] = b
		}
		b.clients[s] = struct{}{}
		if c.prefixes == nil {
			c.prefixes = map[string]struct{}{}
		}
		if _, there := c.prefixes[prefix]; !there {
			c.prefixes[prefix] = struct{}{}
			s.nameBytes += int64(len(prefix)) + perName
		}
	}
}

// untrack ends tracking. The session stays in the table until the keys change, as
// in Redis: a search for its entries takes too long. When the last tracking client
// has disconnected, the table is dropped.
func (s *Session) untrack(gone bool) {
	t := &s.Engine.Tracking
	if s.cache != nil {
		for prefix := range s.cache.prefixes {
			s.nameBytes -= int64(len(prefix)) + perName
			b := t.Prefixes[prefix]
			delete(b.clients, s)
			if len(b.clients) == 0 {
				delete(t.Prefixes, prefix)
			}
		}
		s.cache = nil
		t.Clients--
	}
	if gone && t.Clients == 0 {
		t.Keys, t.Items = nil, 0
	}
	t.update()
}

// check verifies the table against the sessions that track.
func (t *tracking) check(sessions map[int64]*Session) error {
	clients, items, prefixes := t.Clients, t.Items, 0
	for _, s := range sessions {
		if s.cache != nil {
			clients--
			prefixes += len(s.cache.prefixes)
		}
	}
	for _, h := range t.Keys {
		items -= len(h.ids)
	}
	for _, b := range t.Prefixes {
		prefixes -= len(b.clients)
	}
	if clients != 0 || items != 0 || prefixes != 0 {
		return fmt.Errorf("tracking: off by %d clients, %d items, %d prefixes", clients, items, prefixes)
	}
	return nil
}

// trackingOptions are the options of CLIENT TRACKING.
type trackingOptions struct {
	redirect                     int64
	bcast, optin, optout, noloop bool
	prefixes                     []string
}

// ClientTracking is the handler of CLIENT TRACKING.
func ClientTracking(c *Call) {
	on := c.Bytes()
	var o trackingOptions
	for c.More() {
		switch {
		case c.Len() > 1 && c.Is("REDIRECT"):
			if o.redirect != 0 {
				c.Fail("ERR A client can only redirect to a single other client")
			}
			if o.redirect = c.Int(); c.Err() == "" && c.Engine.Sessions[o.redirect] == nil {
				c.Fail("ERR The client ID you want redirect to does not exist")
			}
		case c.Len() > 1 && c.Is("PREFIX"):
			o.prefixes = append(o.prefixes, c.String())
		case c.Is("BCAST"):
			o.bcast = true
		case c.Is("OPTIN"):
			o.optin = true
		case c.Is("OPTOUT"):
			o.optout = true
		case c.Is("NOLOOP"):
			o.noloop = true
		default:
			c.Fail(protocol.ErrSyntax)
		}
		if c.Err() != "" {
			break // later words may be wrong in other ways
		}
	}
	switch {
	case protocol.EqualFold(on, "ON"):
		if e := c.Session.trackingConflict(&o); e != "" {
			c.Fail(e)
		}
		if c.OK() {
			c.Session.track(&o)
			c.Reply.OK()
		}
	case protocol.EqualFold(on, "OFF"):
		if c.OK() {
			c.Session.untrack(false)
			c.Reply.OK()
		}
	default:
		c.Fail(protocol.ErrSyntax)
		c.OK()
	}
}

// trackingConflict returns the error if the options conflict with each other, or with the
// current tracking state of the session.
func (s *Session) trackingConflict(o *trackingOptions) string {
	was := s.cache
	switch {
	case !o.bcast && len(o.prefixes) > 0:
		return "ERR PREFIX option requires BCAST mode to be enabled"
	case was != nil && was.bcast != o.bcast:
		return "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then " +
			"re-enabling it with a different mode."
	case o.bcast && (o.optin || o.optout):
		return "ERR OPTIN and OPTOUT are not compatible with BCAST"
	case o.optin && o.optout:
		return "ERR You can't specify both OPTIN mode and OPTOUT mode"
	case was != nil && (o.optin && was.optout || o.optout && was.optin):
		return "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then " +
			"re-enabling it with a different mode."
	}
	var existing []string
	if was != nil {
		existing = slices.Sorted(maps.Keys(was.prefixes))
	}
	overlap := func(p, q string) bool { return strings.HasPrefix(p, q) || strings.HasPrefix(q, p) }
	message := func(p, kind, q string) string {
		return "ERR Prefix '" + Clip([]byte(p), math.MaxInt) + "' overlaps with " + kind + " prefix '" +
			Clip([]byte(q), math.MaxInt) + "'. Prefixes for a single client must not overlap."
	}
	// In sorted order the names that begin with p follow p directly, and between p
	// and a prefix of p before it there are only names that share that prefix. So a
	// name that overlaps any other overlaps a neighbour.
	sorted := slices.Sorted(slices.Values(slices.Concat(existing, o.prefixes)))
	alone := func(p string) bool {
		i, _ := slices.BinarySearch(sorted, p)
		return (i == 0 || !overlap(sorted[i-1], p)) && (i+1 == len(sorted) || !overlap(p, sorted[i+1]))
	}
	for i, p := range o.prefixes {
		if alone(p) {
			continue
		}
		for _, q := range existing {
			if overlap(p, q) {
				return message(p, "an existing", q)
			}
		}
		for _, q := range o.prefixes[i+1:] {
			if overlap(p, q) {
				return message(p, "another provided", q)
			}
		}
	}
	return ""
}

// ClientCaching is the handler of CLIENT CACHING.
func ClientCaching(c *Call) {
	t := c.Session.cache
	switch {
	case t == nil:
		c.Fail("ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled")
	case c.Is("YES"):
		if !t.optin {
			c.Fail("ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.")
		}
	case c.Is("NO"):
		if !t.optout {
			c.Fail("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")
		}
	default:
		c.Fail(protocol.ErrSyntax)
	}
	if !c.OK() {
		return
	}
	t.caching = true
	c.Reply.OK()
}

// redirection returns the id of the client that a session redirects to, 0 if it
// does not redirect, and -1 if it does not track.
func (s *Session) redirection() int64 {
	if s.cache == nil {
		return -1
	}
	return s.cache.redirect
}

// ClientGetredir is the handler of CLIENT GETREDIR.
func ClientGetredir(c *Call) { c.Reply.Int(c.Session.redirection()) }

// ClientTrackinginfo is the handler of CLIENT TRACKINGINFO.
func ClientTrackinginfo(c *Call) {
	flags := []string{"off"}
	var prefixes []string
	if t := c.Session.cache; t != nil {
		flags[0] = "on"
		for _, f := range []struct {
			is   bool
			name string
		}{
			{t.bcast, "bcast"},
			{t.optin, "optin"},
			{t.optin && t.caching, "caching-yes"},
			{t.optout, "optout"},
			{t.optout && t.caching, "caching-no"},
			{t.noloop, "noloop"},
			{t.broken, "broken_redirect"},
		} {
			if f.is {
				flags = append(flags, f.name)
			}
		}
		prefixes = slices.Sorted(maps.Keys(t.prefixes))
	}
	c.Reply.Map(3)
	c.Reply.BulkString("flags")
	c.Reply.Set(len(flags))
	for _, f := range flags {
		c.Reply.BulkString(f)
	}
	c.Reply.BulkString("redirect")
	c.Reply.Int(c.Session.redirection())
	c.Reply.BulkString("prefixes")
	c.Reply.Array(len(prefixes))
	for _, p := range prefixes {
		c.Reply.BulkString(p)
	}
}
