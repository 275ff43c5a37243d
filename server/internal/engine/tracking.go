package engine

import (
	"slices"
	"strings"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine/tracking"
)

// Client-side caching, CLIENT TRACKING (package tracking). The server sends a client an
// invalidation when a key that it has read changes, or, in broadcast mode, when any key
// changes that begins with one of its prefixes.
//
// A key leaves the table at the instant it changes, so a value that a transaction
// or script reads after its own write counts as fresh. The holders of the key are
// part of the effect; they receive the invalidation when the command ends, and the session
// that made the change after its reply. Broadcasts are collected
// until the lock is released, as Redis collects them until it has served a
// pipeline: one message for each prefix.
//
// While no client tracks, all this costs one comparison for each change and one for
// each command.

// trackingChannel is the channel on which RESP2 clients receive invalidations, as
// messages.
const trackingChannel = "__redis__:invalidate"

// TrimBatch is the number of keys removed from the table under one hold of the lock
// while the table exceeds tracking-table-max-keys.
const TrimBatch = 1000

// Tracking returns the tracking state of the session, nil if it does not track.
func (s *Session) Tracking() *tracking.Client { return s.cache }

// Track makes the session track keys. The options must not conflict.
func (s *Session) Track(o *tracking.Options) {
	if s.cache != nil {
		s.Weight.nameBytes -= s.cache.PrefixBytes(perName)
	}
	s.cache = s.Engine.Tracking.Start(s, o)
	s.Weight.nameBytes += s.cache.PrefixBytes(perName)
}

// Untrack ends tracking.
func (s *Session) Untrack() {
	if s.cache != nil {
		s.Weight.nameBytes -= s.cache.PrefixBytes(perName)
		s.Engine.Tracking.Stop(s)
		s.cache = nil
	}
}

// reads reports whether a command returns values of keys to clients. For a
// read-only script the commands that it runs count, not the script.
func (cmd *Command) reads() bool {
	flags := cmd.Spec.Flags()
	return flags.Has(protocol.ReadOnly) && !flags.Has(protocol.PubSub) && cmd.Group != "scripting"
}

// trackKeys records that a session has received the values of the keys that a
// command names. The session must track.
func (s *Session) trackKeys(cmd *Command, argv [][]byte) {
	if !s.cache.Records() {
		return
	}
	var few [8]protocol.KeyRef
	for _, ref := range cmd.Spec.AppendKeys(few[:0], argv) {
		s.Engine.Tracking.Record(argv[ref.Index], s.ID)
	}
}

// untrackKey removes a key from the table and returns the clients to invalidate. by
// is the session that changed the key; nil if the key has expired.
func (srv *Engine) untrackKey(key string, by *Session, expired bool) *tracking.Holders {
	last := by
	if expired || srv.Scripting.Running != nil { // Redis does not know the caller of a script
		last = nil
	}
	h := srv.Tracking.Changed(key, last)
	if h == nil {
		return nil
	}
	h.IDs = slices.DeleteFunc(h.IDs, func(id int64) bool {
		s := srv.Clients.Sessions[id]
		return s == nil || s.cache == nil || s.cache.Broadcast || s.cache.NoLoop && s == by
	})
	if len(h.IDs) == 0 {
		return nil
	}
	return h
}

// invalidate sends the holders of a key an invalidation.
func (t *clients) invalidate(key string, to *tracking.Holders) {
	for _, id := range to.IDs {
		if s := t.Sessions[id]; s != nil && s.cache != nil && !s.cache.Broadcast {
			s.invalidate([]string{key})
		}
	}
}

// invalidate sends invalidated keys to a session that tracks: after the reply, if one of its
// commands runs, also if it tracks no more by then. It borrows the keys.
func (s *Session) invalidate(keys []string) {
	if !s.Queue.replying {
		s.sendInvalidation(keys)
		return
	}
	for i, key := range keys {
		keys[i] = strings.Clone(key)
	}
	h := s.Queue.hold()
	h.stale = append(h.stale, keys)
}

// Flushed records that databases were emptied: apply sends every tracking
// client a null, which invalidates its whole cache.
func (u *commitScope) Flushed() {
	t := &u.srv.Tracking
	if !t.On() {
		return
	}
	t.Clear()
	if t.Clients() > 0 {
		u.effects = append(u.effects, effect{message: flushMessage})
	}
}

// invalidateAll sends that null.
func (t *clients) invalidateAll() {
	for _, s := range t.ByID() {
		if s.cache != nil {
			s.invalidate(nil)
		}
	}
}

// sendInvalidation sends invalidated keys to a session, or to the session that it
// redirects to; nil means all keys. A RESP2 client can receive invalidations only
// if it redirects to a session that is subscribed.
func (s *Session) sendInvalidation(keys []string) {
	to := s
	if id := s.Redirection(); id > 0 {
		if to = s.Engine.Clients.Sessions[id]; to == nil || to.End != Serving {
			s.cache.Broken = true
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
	case s.Redirection() > 0 && to.subscriptions.Len() > 0:
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
	for s, keys := range srv.Tracking.Broadcasts() {
		s.sendInvalidation(keys)
	}
	for key, holders := range srv.Tracking.Trim(int(srv.Config.TrackingTableMaxKeys), TrimBatch) {
		srv.Clients.invalidate(key, holders)
	}
}

// trackingExceedsLimit reports whether finishTracking has left keys to trim.
func (srv *Engine) trackingExceedsLimit() bool {
	return srv.Tracking.Exceeds(int(srv.Config.TrackingTableMaxKeys))
}

// untrackRemoved ends the tracking of a session that is removed. Without clients that
// track, the table is dropped.
func (s *Session) untrackRemoved() {
	s.Untrack()
	if t := &s.Engine.Tracking; t.Clients() == 0 {
		t.Clear()
	}
}

// Redirection returns the id of the client that a session redirects to, 0 if it
// does not redirect, and -1 if it does not track.
func (s *Session) Redirection() int64 {
	if s.cache == nil {
		return -1
	}
	return s.cache.Redirect
}
