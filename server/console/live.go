package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/zsetd/zsetd/protocol"
)

const (
	liveInterval    = 100 * time.Millisecond // between two replies of a query, unless the request says another
	maxLiveInterval = 24 * time.Hour
	liveEvents      = 256 << 10 // bytes of events from which on a viewer writes them first
	maxReplies      = 256 << 20 // bytes of the newest replies of all queries
)

// Errors that end streams.
var (
	errExpired  = errors.New("the stream has ended: the link has expired")
	errShutdown = errors.New("the stream has ended: the server stops")
	errRevoked  = errors.New("the stream has ended: the user has lost the permission for it")
	errReplies  = errors.New("the stream has ended: the replies to all live queries exceed 256 MB")
)

// endReason returns the word for why a stream has ended.
func endReason(err error) string {
	switch err {
	case errExpired:
		return "expired"
	case errShutdown:
		return "shutdown"
	case errRevoked:
		return "permission"
	case errSlowViewer:
		return "slow"
	case errEnded:
		return "closed"
	}
	return "error"
}

// live serves GET /live.
func (c *Console) live(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	var who identity
	var until time.Time
	var err error
	if q.Has("sig") {
		who, until, err = c.checkLink(r.Context(), q, time.Now())
	} else {
		var nc *conn
		if nc, who, err = c.open(r); err == nil {
			nc.close()
		}
	}
	if err != nil {
		c.refuse(w, r, err)
		return
	}
	keys, err := liveQueries(q, who.name)
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
	s.take = v.takeReplies
	for _, key := range keys {
		if err := c.join(r.Context(), v, key, who, nil); err != nil {
			c.refuseSource(w, r, err)
			return
		}
	}
	if !until.IsZero() {
		expiry := time.AfterFunc(time.Until(until), func() { s.end(errExpired) })
		s.leave = append(s.leave, func() { expiry.Stop() })
	}
	if s.begin(w, r) == nil {
		s.serve(r)
	}
}

// liveQueries returns the queries of a request to GET /live.
func liveQueries(q url.Values, user string) (keys []feedKey, err error) {
	db, interval := 0, liveInterval
	if text := q.Get("db"); text != "" {
		if db, err = strconv.Atoi(text); err != nil || db < 0 {
			return nil, errors.New("ERR db is the number of a database")
		}
	}
	if text := q.Get("interval"); text != "" {
		if interval, err = time.ParseDuration(text); err != nil || interval < 0 || interval > maxLiveInterval {
			return nil, errors.New("ERR interval is a duration of at most 24h, such as 250ms")
		}
	}
	if n := len(q["q"]); n == 0 || n > maxSources {
		return nil, fmt.Errorf("ERR name between 1 and %d queries: q=ZRANGE+board+0+9", maxSources)
	}
	for _, line := range q["q"] {
		keys = append(keys, queryKey(user, db, interval, line))
	}
	return keys, nil
}

// queryKey returns the source of a live query. Its name is that of a channel.
func queryKey(user string, db int, interval time.Duration, line string) feedKey {
	name := "__query@" + strconv.Itoa(db)
	if interval > 0 {
		name += "," + interval.String()
	}
	return feedKey{user: user, kind: ofQuery, name: name + "__:" + line}
}

// set makes a message the newest reply of a query, and wakes the viewers. The lock of the hub is
// held.
func (f *feed) set(c *Console, reply string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := c.replies.Add(int64(len(reply) - len(f.reply))); n > maxReplies {
		c.replies.Add(int64(-len(reply)))
		f.reply, f.err = "", errReplies
	} else {
		f.reply = reply
		f.base++
	}
	f.wakeSoon(time.Now())
}

// drop frees the reply of a feed without viewers.
func (f *feed) drop(c *Console) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c.replies.Add(int64(-len(f.reply)))
	f.reply = ""
}

// reply returns the newest reply of the i-th feed, a query, or "" if v has it.
func (v *viewer) reply(i int) (string, error) {
	f := v.feeds[i]
	f.mu.Lock()
	defer f.mu.Unlock()
	if v.at[i] == f.base {
		return "", f.err
	}
	v.at[i] = f.base
	return f.reply, nil
}

// takeReplies is the take of a stream of queries.
func (v *viewer) takeReplies() (events []byte, pause time.Duration, err error) {
	for i := range v.feeds {
		reply, err := v.reply(i)
		switch {
		case err != nil && len(events) == 0:
			return nil, 0, err
		case err != nil:
			return events, 0, nil // the next call returns it
		case reply != "":
			events = fmt.Appendf(events, "data: {\"query\":%d,%s\n\n", i, strings.TrimPrefix(reply, "{"))
		}
		if len(events) > liveEvents {
			break
		}
	}
	return events, 0, nil
}

// whyEnded returns why the server has closed the connection of a user on which a feed was.
func (c *Console) whyEnded(f *feed, who identity) error {
	ctx, cancel := context.WithTimeout(c.ctx, limitTime)
	defer cancel()
	nc, err := c.connect(ctx, who, feedName)
	switch {
	case err == errNoAuth || err == errWrong:
		return errRevoked
	case err == errCapacity:
		return errEnded
	case err != nil:
		return errShutdown
	}
	defer nc.close()
	// HELLO is allowed to all users. Its reply is the first one, because confirmations are
	// push messages, unless the subscription is refused.
	one := command("SUBSCRIBE", f.key.subscriptions(), nil)
	if nc.send(one.args...) != nil || nc.send("HELLO") != nil {
		return errShutdown
	}
	reply, err := nc.reply()
	if refused, is := reply.(protocol.ReplyError); is && err == nil && strings.HasPrefix(string(refused), "NOPERM") {
		return errRevoked
	}
	return errEnded
}
