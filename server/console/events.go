package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/base/replyjson"
)

// feedKey names a source of events. Viewers with the same one share one subscription.
type feedKey struct {
	user, kind, name string
	db               string
	raw              bool
}

// The kinds of sources.
const (
	ofChannel = "channel"
	ofPattern = "pattern"
	ofKey     = "key"
	ofChanges = "changes"
	ofStream  = "stream"
	ofQuery   = "query"
)

// maxSources bounds the channels, patterns and keys of one request.
const maxSources = 100

// pairTime is how long the event of a key is held back: the event with the members may follow.
const pairTime = 20 * time.Millisecond

// changePause is the shortest interval between the events of a key that changes.
const changePause = 20 * time.Millisecond

// events serves GET /events.
func (c *Console) events(w http.ResponseWriter, r *http.Request) {
	nc, who, err := c.open(r)
	if err != nil {
		c.refuse(w, r, err)
		return
	}
	defer nc.close()
	keys, err := sources(r.URL.Query(), who.name)
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	v := c.newViewer(w, r, who)
	if v == nil {
		return
	}
	s := v.s
	defer s.abandon()
	var from, to string // the entries of the stream that the client has missed
	for _, key := range keys {
		if key.kind == ofKey {
			if err := c.checkNotifications(r.Context()); err != nil {
				fail(w, http.StatusConflict, err.Error())
				return
			}
		}
		err := c.join(r.Context(), v, key, who, func(f *feed) {
			if key.kind == ofStream {
				from, to = lastEventID(r), f.lastID
			}
		})
		if err != nil {
			c.refuseSource(w, r, err)
			return
		}
	}
	if s.begin(w, r) != nil {
		return
	}
	if r.URL.Query().Get("state") == "1" {
		for _, key := range keys {
			if key.kind != ofKey {
				continue
			}
			if err := nc.state(s, key); err != nil {
				s.take = func() ([]byte, time.Duration, error) { return nil, 0, err }
				break
			}
		}
	}
	if from != "" {
		if err := nc.replay(s, keys[len(keys)-1], from, to); err != nil {
			s.take = func() ([]byte, time.Duration, error) { return nil, 0, err }
		}
	}
	nc.close()
	s.serve(r)
}

// refuseSource responds to a request whose subscription has failed.
func (c *Console) refuseSource(w http.ResponseWriter, r *http.Request, err error) {
	if _, is := errors.AsType[protocol.ReplyError](err); !is {
		c.refuse(w, r, err)
		return
	}
	status := http.StatusBadRequest
	switch {
	case strings.HasPrefix(err.Error(), "NOPERM"):
		status = http.StatusForbidden
	case strings.Contains(err.Error(), "query-max"):
		status = http.StatusServiceUnavailable
	}
	fail(w, status, err.Error())
}

// sources returns what the query of a request names.
func sources(q url.Values, user string) (keys []feedKey, err error) {
	format := q.Get("format")
	if format != "" && format != "json" && format != "raw" {
		return nil, errors.New("ERR format is json or raw")
	}
	db := q.Get("db")
	if db == "" {
		db = "0"
	}
	if n, err := strconv.Atoi(db); err != nil || n < 0 {
		return nil, errors.New("ERR db is the number of a database")
	}
	for _, kind := range []string{ofChannel, ofPattern, ofKey, ofChanges, ofStream} { // the stream is last
		for _, name := range q[kind] {
			key := feedKey{user: user, kind: kind, name: name, raw: format == "raw"}
			if kind == ofKey || kind == ofStream {
				key.db = db
			}
			keys = append(keys, key)
		}
	}
	switch {
	case len(keys) == 0:
		return nil, errors.New("ERR name what to receive: channel, pattern, key, changes or stream")
	case len(keys) > maxSources:
		return nil, fmt.Errorf("ERR at most %d channels, patterns and keys", maxSources)
	case len(q[ofStream]) > 1:
		return nil, errors.New("ERR only one stream: the ids of two cannot be told apart")
	}
	return keys, nil
}

// lastEventID returns the id after which a client wants the entries of a stream. A browser
// sends the header when it connects again; the parameter last is for its first connection.
func lastEventID(r *http.Request) string {
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		return id
	}
	return r.URL.Query().Get("last")
}

// checkNotifications returns an error if the server publishes no events with members.
func (c *Console) checkNotifications(ctx context.Context) error {
	classes, err := c.parameter(ctx, "notify-keyspace-events")
	if err != nil {
		return err
	}
	if strings.Contains(classes, "S") && strings.ContainsAny(classes, "Ashz") {
		return nil
	}
	return fmt.Errorf("ERR notify-keyspace-events is %q, without the events of members: CONFIG SET notify-keyspace-events SAK", classes)
}

// join makes v follow the feed of a key, which it starts if there is none. The function before
// is called with the lock of the feed held at the instant from which v has the events.
func (c *Console) join(ctx context.Context, v *viewer, key feedKey, who identity, before func(*feed)) (err error) {
	c.mu.Lock()
	f := c.feeds[key]
	if f == nil {
		f = newFeed(key, nil)
		c.feeds[key] = f
		if key.subscriptions() != nil {
			c.subscribe(f, who)
		} else {
			var source context.Context
			source, f.stop = context.WithCancel(c.ctx)
			c.work.Go(func() { c.ended(f, c.read(source, f, who)) })
		}
	}
	f.interested++
	c.mu.Unlock()
	select {
	case <-f.started:
		f.mu.Lock()
		err = f.err
		f.mu.Unlock()
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		c.release(f)
		return err
	}
	v.follow(f, before)
	return nil
}

// leave ends the feeds that only v follows.
func (c *Console) leave(v *viewer) {
	v.leave()
	for _, f := range v.feeds {
		c.release(f)
	}
}

// release gives up the interest of a viewer in a feed.
func (c *Console) release(f *feed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.interested--; f.interested > 0 {
		return
	}
	f.stop()
	f.drop(c)
	if c.feeds[f.key] == f {
		delete(c.feeds, f.key)
	}
}

// errEnded ends the streams of a subscription: the server has stopped, or the user has lost
// the permission.
var errEnded = errors.New("the stream has ended: the server has closed the subscription")

// read follows a source that has a connection of its own, until ctx ends or the server closes it.
func (c *Console) read(ctx context.Context, f *feed, who identity) error {
	nc, err := c.connect(ctx, who, feedName)
	if err != nil {
		return err
	}
	defer nc.close()
	if f.key.kind == ofStream {
		return nc.follow(f)
	}
	if _, err := nc.must("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", f.key.name); err != nil {
		return err
	}
	f.start()
	return nc.changes(f)
}

// changes adds an event for each change of a key, at most one within changePause. The server
// tells it to clients that cache the key, whatever the parameter notify-keyspace-events says.
// The messages do not name the database.
func (c *conn) changes(f *feed) error {
	event := []byte(`data: {"key":` + string(replyjson.String(f.key.name)) + `,"event":"change"}` + "\n\n")
	if f.key.raw {
		event = appendData(nil, f.key.name)
	}
	var last time.Time
	for waiting := false; ; {
		if waiting {
			c.nc.SetReadDeadline(last.Add(changePause))
			_, err := c.r.Peek(1)
			c.nc.SetReadDeadline(time.Time{})
			timeout, is := err.(interface{ Timeout() bool })
			if err != nil && (!is || !timeout.Timeout()) {
				return err
			}
			if time.Since(last) >= changePause {
				f.add(event, "")
				waiting, last = false, time.Now()
			}
			if err != nil {
				continue
			}
		}
		v, err := protocol.DecodeFrom(c.r)
		if err != nil {
			return err
		}
		push, _ := v.(protocol.Push)
		if len(push) != 2 || push[0] != "invalidate" {
			continue
		}
		keys, _ := push[1].([]any) // nil: all keys
		if keys == nil || slices.Contains(keys, any(f.key.name)) {
			waiting = true
		}
	}
}

// Prefixes of the channels of a key.
const (
	subkeyspace = "__subkeyspace@"
	keyspace    = "__keyspace@"
)

// message is a message of a channel.
type message struct {
	channel, pattern, text string
	key                    string // of an event of a key
}

// appendEvent appends m as a Server-Sent Event.
func (m *message) appendEvent(b []byte, raw bool) []byte {
	if raw {
		return appendData(b, m.text)
	}
	b = append(b, `data: {"channel":`...)
	b = append(b, replyjson.String(m.channel)...)
	if m.pattern != "" {
		b = append(b, `,"pattern":`...)
		b = append(b, replyjson.String(m.pattern)...)
	}
	if m.key != "" {
		event, members, _ := strings.Cut(m.text, "|")
		b = append(b, `,"key":`...)
		b = append(b, replyjson.String(m.key)...)
		b = append(b, `,"event":`...)
		b = append(b, replyjson.String(event)...)
		b = append(b, `,"members":[`...)
		for i, member := range memberList(members) {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, replyjson.String(member)...)
		}
		b = append(b, ']')
	}
	b = append(b, `,"message":`...)
	b = append(b, replyjson.String(m.text)...)
	return append(b, "}\n\n"...)
}

// memberList parses "3:ann,3:bob".
func memberList(s string) (members []string) {
	for s != "" {
		length, rest, ok := strings.Cut(s, ":")
		n, err := strconv.Atoi(length)
		if !ok || err != nil || n < 0 || n > len(rest) {
			return members
		}
		members = append(members, rest[:n])
		s = strings.TrimPrefix(rest[n:], ",")
	}
	return members
}

// appendData appends text as the data of an event. Every line of it is a field, so that no
// text can forge another field.
func appendData(b []byte, text string) []byte {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\r", "\n"), "\n") {
		b = append(b, "data: "...)
		b = append(b, line...)
		b = append(b, '\n')
	}
	return append(b, '\n')
}
