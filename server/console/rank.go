package console

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zsetd/zsetd/protocol"
)

// rankKey names a sorted set that is watched. Viewers with the same one share two connections
// and each look at the set.
type rankKey struct {
	user, key string
	db        string
	reverse   bool
}

const (
	defaultRate = 1     // events a second for a viewer
	maxRate     = 20    // events a second for a viewer
	feedRate    = 1200  // events a second for all viewers of a set
	lookRate    = 15000 // members a second that are read for them
	// wholeSet decides how ranks are read: one by one if the set has more than this many
	// members for each that is watched, else with one ZRANGE.
	wholeSet = 4
)

// standing is the place of a member.
type standing struct {
	there bool
	rank  int64
	score float64
	card  int64
}

// rankViewer is one stream of a member's rank.
type rankViewer struct {
	member string
	s      *stream
	rate   int
	shown  standing // what was written last
	begun  bool     // something was written

	// Under the lock of the feed.
	index int // in the viewers of the member
	now   standing
	known bool
	err   error
}

// rankFeed looks at one sorted set for all its viewers. CLIENT TRACKING reports that the set
// has changed; then the ranks are read once, no more often than the fastest viewer wants them.
type rankFeed struct {
	key     rankKey
	stop    func()
	changed chan struct{} // of capacity 1: the set has changed
	arrived chan struct{} // of capacity 1: a viewer has come

	interested int          // under the lock of the console
	total      atomic.Int64 // viewers

	mu      sync.Mutex
	viewers map[string][]*rankViewer // by member
	err     error
}

// rank serves GET /rank.
func (c *Console) rank(w http.ResponseWriter, r *http.Request) {
	nc, who, err := c.open(r)
	if err != nil {
		c.refuse(w, r, err)
		return
	}
	nc.close()
	q := r.URL.Query()
	v := &rankViewer{member: q.Get("member"), rate: defaultRate}
	if q.Get("rate") != "" {
		v.rate, err = strconv.Atoi(q.Get("rate"))
	}
	key := rankKey{user: who.name, key: q.Get("key"), db: q.Get("db"), reverse: q.Get("rev") == "1"}
	if key.db == "" {
		key.db = "0"
	}
	if err != nil || v.rate < 1 || v.rate > maxRate || !q.Has("key") || !q.Has("member") {
		fail(w, http.StatusBadRequest, fmt.Sprintf("ERR key and member are needed, and rate is between 1 and %d", maxRate))
		return
	}
	if v.s, err = c.newStream(r, who); err != nil {
		c.refuse(w, r, err)
		return
	}
	defer v.s.abandon()
	v.s.arrived = make(chan struct{}, 1)
	f := c.watch(v, key, who)
	v.s.take = func() ([]byte, time.Duration, error) { return f.take(v) }
	v.s.leave = append(v.s.leave, func() { c.unwatch(f, v) })
	select {
	case <-v.s.arrived:
	case <-r.Context().Done():
		return
	}
	if _, err := f.standing(v); err != nil {
		c.refuseSource(w, r, err)
		return
	}
	if v.s.begin(w, r) == nil {
		v.s.serve(r)
	}
}

// watch adds a viewer to the feed of a key, which it starts if there is none.
func (c *Console) watch(v *rankViewer, key rankKey, who identity) *rankFeed {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.ranks[key]
	if f == nil {
		ctx, stop := context.WithCancel(c.ctx)
		f = &rankFeed{key: key, stop: stop, changed: make(chan struct{}, 1), arrived: make(chan struct{}, 1), viewers: map[string][]*rankViewer{}}
		c.ranks[key] = f
		c.work.Go(func() {
			err := c.followRanks(ctx, f, who)
			c.mu.Lock()
			if c.ranks[key] == f {
				delete(c.ranks, key)
			}
			c.mu.Unlock()
			f.end(err)
		})
	}
	f.interested++
	f.total.Add(1)
	f.mu.Lock()
	defer f.mu.Unlock()
	v.index = len(f.viewers[v.member])
	f.viewers[v.member] = append(f.viewers[v.member], v)
	if f.err != nil {
		v.err = f.err
		v.notify()
	}
	signal(f.arrived)
	return f
}

// unwatch removes a viewer. The last one ends the feed.
func (c *Console) unwatch(f *rankFeed, v *rankViewer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	others := f.viewers[v.member]
	last := len(others) - 1
	others[v.index], others[last].index = others[last], v.index
	others[last] = nil
	f.viewers[v.member] = others[:last]
	if last == 0 {
		delete(f.viewers, v.member)
	}
	f.total.Add(-1)
	if f.interested--; f.interested == 0 {
		f.stop()
		if c.ranks[f.key] == f {
			delete(c.ranks, f.key)
		}
	}
}

func (v *rankViewer) notify() { v.s.notify() }

// end ends the streams of all viewers.
func (f *rankFeed) end(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, refused := errors.AsType[protocol.ReplyError](err); !refused && err != errNoAuth && err != errWrong && err != errCapacity {
		err = errEnded
	}
	f.err = err
	for _, viewers := range f.viewers {
		for _, v := range viewers {
			v.err = err
			v.notify()
		}
	}
}

// standing returns what v shows next.
func (f *rankFeed) standing(v *rankViewer) (standing, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return v.now, v.err
}

// take returns the rank of a member when it has changed, at most rate times a second. It is
// called by the stream of v.
func (f *rankFeed) take(v *rankViewer) (event []byte, pause time.Duration, err error) {
	now, err := f.standing(v)
	if err != nil || v.begun && now.rank == v.shown.rank && now.score == v.shown.score && now.there == v.shown.there {
		return nil, 0, err
	}
	v.shown, v.begun = now, true
	return now.appendEvent(nil), f.pause(v.rate, feedRate), nil
}

// pause returns the interval of a rate, or a longer one with which all viewers together do not
// exceed a limit: both are events a second. So the cost of a set is bounded, however many watch
// it and however often it changes.
func (f *rankFeed) pause(rate, limit int) time.Duration {
	return max(time.Second/time.Duration(rate), time.Duration(f.total.Load())*time.Second/time.Duration(limit))
}

// appendEvent appends a standing as a Server-Sent Event.
func (p *standing) appendEvent(b []byte) []byte {
	b = append(b, `data: {"rank":`...)
	if !p.there {
		b = append(b, `null,"score":null`...)
	} else {
		b = strconv.AppendInt(b, p.rank, 10)
		b = append(b, `,"score":`...)
		if math.IsInf(p.score, 0) {
			b = append(b, `"`...)
			b = protocol.AppendFloat(b, p.score)
			b = append(b, `"`...)
		} else {
			b = protocol.AppendFloat(b, p.score)
		}
	}
	b = append(b, `,"card":`...)
	b = strconv.AppendInt(b, p.card, 10)
	return append(b, "}\n\n"...)
}

// followRanks reads the ranks whenever they may have changed, until ctx ends. One connection
// reads the set; a second one receives that it has changed.
func (c *Console) followRanks(ctx context.Context, f *rankFeed, who identity) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	nc, err := c.connect(ctx, who, "http:rank")
	if err != nil {
		return err
	}
	defer nc.close()
	changes, err := c.connect(ctx, who, "http:rank")
	if err != nil {
		return err
	}
	defer changes.close()
	id, err := changes.must("CLIENT", "ID")
	if err != nil {
		return err
	}
	if _, err := nc.must("CLIENT", "TRACKING", "ON", "REDIRECT", fmt.Sprint(id)); err != nil {
		return err
	}
	if err := nc.selectDB(f.key.db); err != nil {
		return err
	}
	c.work.Go(func() {
		for {
			if _, err := protocol.DecodeFrom(changes.r); err != nil {
				cancel() // the server has closed it: the other one cannot go on
				return
			}
			signal(f.changed)
		}
	})
	pause := time.NewTimer(0)
	defer pause.Stop()
	changed := (<-chan struct{})(nil) // f.changed, unless the pause since the last look lasts
	for {
		select {
		case <-pause.C:
			changed = f.changed
		case <-f.arrived:
			if _, err := nc.look(f, false); err != nil {
				return err
			}
		case <-changed:
			fastest, err := nc.look(f, true)
			if err != nil {
				return err
			}
			changed = nil
			pause.Reset(f.pause(fastest, lookRate))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// must executes a command and returns an error reply as an error.
func (c *conn) must(args ...string) (any, error) {
	reply, err := c.do(args...)
	if refused, is := reply.(protocol.ReplyError); is && err == nil {
		return nil, refused
	}
	return reply, err
}

// look reads the standings of all members that are watched, or only of those that have a
// viewer without one, and wakes the viewers of those that have changed. It returns the rate of
// the fastest viewer.
func (c *conn) look(f *rankFeed, all bool) (fastest int, err error) {
	fastest = 1
	f.mu.Lock()
	standings := make(map[string]*standing, len(f.viewers))
	values := make([]standing, len(f.viewers)) // that standings points to
	for member, viewers := range f.viewers {
		read := all
		for _, v := range viewers {
			fastest = max(fastest, v.rate)
			read = read || !v.known
		}
		if read {
			standings[member] = &values[len(standings)]
		}
	}
	f.mu.Unlock()
	reply, err := c.must("ZCARD", f.key.key)
	if err != nil {
		return fastest, err
	}
	card, _ := reply.(int64)
	if card <= int64(len(standings))*wholeSet {
		err = c.readSet(f.key, standings)
	} else {
		err = c.readRanks(f.key, standings)
	}
	if err != nil {
		return fastest, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for member, viewers := range f.viewers {
		now := standings[member]
		if now == nil { // not read, or it has come since: arrived is set
			continue
		}
		now.card = card
		for _, v := range viewers {
			was := v.now
			v.now = *now
			if !v.known || was.there != now.there || was.rank != now.rank || was.score != now.score {
				v.known = true
				v.notify()
			}
		}
	}
	return fastest, nil
}

// readSet reads the whole set. It takes no memory for members that are not watched.
func (c *conn) readSet(key rankKey, standings map[string]*standing) error {
	args := []string{"ZRANGE", key.key, "0", "-1", "WITHSCORES"}
	if key.reverse {
		args = []string{"ZRANGE", key.key, "0", "-1", "REV", "WITHSCORES"}
	}
	if _, err := c.nc.Write(appendCommand(nil, args)); err != nil {
		return err
	}
	n, err := c.header('*')
	if err != nil {
		return err
	}
	var member []byte
	for rank := range n {
		if _, err := c.header('*'); err != nil {
			return err
		}
		length, err := c.header('$')
		if err != nil {
			return err
		}
		if cap(member) < length+2 {
			member = make([]byte, length+2)
		}
		if _, err := io.ReadFull(c.r, member[:length+2]); err != nil {
			return err
		}
		line, err := c.r.ReadSlice('\n')
		if err != nil || len(line) < 4 || line[0] != ',' {
			return errors.Join(errReply, err)
		}
		if p := standings[string(member[:length])]; p != nil {
			p.there, p.rank = true, int64(rank)
			if p.score, err = strconv.ParseFloat(string(line[1:len(line)-2]), 64); err != nil {
				return errReply
			}
		}
	}
	return nil
}

// errReply is the error of a reply with another form than that of its command.
var errReply = errors.New("unexpected reply")

// header reads the line of an aggregate or a string and returns its length. An error reply is
// an error.
func (c *conn) header(kind byte) (n int, err error) {
	b, err := c.r.Peek(1)
	if err != nil {
		return 0, err
	}
	if b[0] != kind {
		reply, err := protocol.DecodeFrom(c.r)
		if refused, is := reply.(protocol.ReplyError); is && err == nil {
			return 0, refused
		}
		return 0, errors.Join(errReply, err)
	}
	line, err := c.r.ReadSlice('\n')
	if err != nil || len(line) < 4 {
		return 0, errors.Join(errReply, err)
	}
	length, ok := protocol.ParseInt(line[1 : len(line)-2])
	if !ok || length < 0 || length > math.MaxInt32 {
		return 0, errReply
	}
	return int(length), nil
}

// readRanks reads the members one by one.
func (c *conn) readRanks(key rankKey, standings map[string]*standing) error {
	command := "ZRANK"
	if key.reverse {
		command = "ZREVRANK"
	}
	members := make([]string, 0, len(standings))
	for member := range standings {
		members = append(members, member)
	}
	sent := make(chan error, 1)
	go func() {
		out := bufio.NewWriterSize(c.nc, replyBuffer)
		var b []byte
		for _, member := range members {
			b = appendCommand(b[:0], []string{command, key.key, member, "WITHSCORE"})
			if _, err := out.Write(b); err != nil {
				break // Flush returns it
			}
		}
		sent <- out.Flush()
	}()
	for _, member := range members {
		reply, err := c.reply()
		if refused, is := reply.(protocol.ReplyError); is && err == nil {
			err = refused
		}
		if err != nil {
			c.close() // ends the writer
			<-sent
			return err
		}
		if pair, _ := reply.([]any); len(pair) == 2 {
			p := standings[member]
			p.there = true
			p.rank, _ = pair[0].(int64)
			p.score, _ = pair[1].(float64)
		}
	}
	return <-sent
}
