package server

import (
	"container/heap"
	"container/list"
	"math"
	"slices"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/keyspace"
	"github.com/zsetd/zsetd/zset"
)

// Blocked commands wait for a key in a queue, first come, first served. Waiters
// with the same condition form a line in the queue, so one check tells whether
// there is an element for any of them. A change thus costs as much as the commands
// that it serves, however many others wait, plus one check for each line. If each
// client waits for a score of its own there are as many lines as clients, so lines
// that wait for a single score are found by the scores of the changed members.
// There remains one check for each distinct range of more than one score.
//
// A condition may become true without any change: with @now as an upper bound, time
// moves members into a range. Such a line has an alarm, set to the instant at which
// the next member of the key enters. The first lock hold after that instant serves
// the line before anything else, so no later command overtakes the waiters. Without
// other lock holds the timer serves it.

// waitKey identifies a key that a command waits for or watches.
type waitKey struct {
	db  int
	key string
}

// want is the condition of a waiter: a key of some type; for sorted sets optionally
// with elements in a range; for streams optionally with entries that are new to a
// consumer group, or the removal of that group, which the client must learn of.
type want struct {
	kind    kind
	ranged  bool
	grouped bool
	scores  rangeAt
	group   string
}

// in reports whether the condition holds for the value of a key; nil if there is no
// key.
func (w *want) in(value any, now int64) bool {
	if value == nil || kindOf(value) != w.kind {
		return w.grouped
	}
	if w.grouped {
		return groupReady(value.(*keyspace.Stream), w.group)
	}
	if !w.ranged {
		return true
	}
	lo, hi := value.(*zset.Set).ScoreSpan(w.scores.at(now))
	return lo < hi
}

// point returns the condition of waiters for a single score.
func point(score float64) want {
	x := scoreAt{number: score}
	return want{kind: kindZset, ranged: true, scores: rangeAt{min: x, max: x}}
}

// isPoint reports whether w is a condition for a single score.
func (w *want) isPoint() bool { return w.ranged && *w == point(w.scores.min.number) }

// moves reports whether time alone can fulfil the condition.
func (w *want) moves() bool { return w.ranged && w.scores.max.base != noClock }

// queue holds the waiters for one key.
type queue struct {
	waitKey
	groups map[want]*waiterGroup
	wide   []*waiterGroup // those that are not for a single score, in no order
	marked []*waiterGroup // those whose condition may hold
	ready  bool           // in the list of queues that the commit scope serves
}

// waiterGroup is a group of waiters in a queue with the same condition.
type waiterGroup struct {
	queue      *queue
	want       want
	waiters    list.List     // of *Waiter
	nextWaiter *list.Element // while the key is served: the first waiter that is not retried yet
	marked     bool
	wideIndex  int // in queue.wide, unless it waits for a single score
	timerEntry     // its alarm, in microseconds since 1970
}

// removeWide removes l from q.wide. The last line takes its place: many clients may
// leave at once.
func (q *queue) removeWide(l *waiterGroup) {
	n := len(q.wide) - 1
	last := q.wide[n]
	q.wide[l.wideIndex], last.wideIndex = last, l.wideIndex
	q.wide[n] = nil
	q.wide = q.wide[:n]
}

// mark records that the condition of the line may hold, for all its waiters.
func (l *waiterGroup) mark() {
	l.nextWaiter = l.waiters.Front()
	if !l.marked {
		l.marked = true
		l.queue.marked = append(l.queue.marked, l)
	}
}

// first returns the next waiter to retry.
func (l *waiterGroup) first() *Waiter { return l.nextWaiter.Value.(*Waiter) }

// Waiter is a blocked Call. It changed nothing and is retried when its key changes
// or its time comes.
type Waiter struct {
	number     uint64 // ascending in order of arrival
	sess       *Session
	cmd        *Command
	argv       [][]byte // copied
	names      int      // how many of them are the command's name
	positions  []position
	db         *keyspace.DB
	since      time.Time
	timeout    func(*protocol.Reply)
	tries      int           // unsuccessful retries so far
	spent      time.Duration // time spent in them
	timerEntry               // its timeout, in milliseconds since 1970; 0 = none
}

// position is a Waiter's position in a line.
type position struct {
	group   *waiterGroup
	element *list.Element
}

// block creates a Waiter for the call.
func (srv *Server) block(c *Call, deadline int64, want want, timeout func(*protocol.Reply), keys [][]byte) {
	srv.waiters++
	w := &Waiter{
		number: srv.waiters,
		sess:   c.sess, cmd: c.cmd, argv: copyArgs(c.argv), names: len(c.argv) - len(c.All()), db: c.db,
		since: time.Now(), timeout: timeout, timerEntry: timerEntry{at: deadline, index: -1},
	}
	for _, key := range keys {
		l := srv.groupFor(waitKey{c.db.ID(), protocol.View(key)}, want)
		if last := l.waiters.Back(); last != nil && last.Value == w {
			continue // the key occurs twice
		}
		w.positions = append(w.positions, position{l, l.waiters.PushBack(w)})
	}
	if deadline != 0 {
		heap.Push(&srv.deadlines, w)
	}
	c.sess.blocked = w
	c.sess.stalled.Store(true)
	srv.blockedClients++
}

// groupFor returns the line for a condition on a key, and creates it if needed. The key
// is borrowed.
func (srv *Server) groupFor(k waitKey, w want) *waiterGroup {
	q := srv.waiting[k]
	if q == nil {
		k.key = string(bytesOf(k.key)) // a copy
		q = &queue{waitKey: k, groups: map[want]*waiterGroup{}}
		srv.waiting[k] = q
	}
	l := q.groups[w]
	if l != nil {
		return l
	}
	l = &waiterGroup{queue: q, want: w, timerEntry: timerEntry{index: -1}}
	q.groups[w] = l
	if w.isPoint() {
		srv.points++
		srv.selectMemberEvents()
	} else {
		l.wideIndex = len(q.wide)
		q.wide = append(q.wide, l)
		srv.setAlarm(l)
	}
	return l
}

// unblock removes w from all queues; its session continues.
func (srv *Server) unblock(w *Waiter) {
	for _, p := range w.positions {
		l, q := p.group, p.group.queue
		if l.nextWaiter == p.element {
			l.nextWaiter = p.element.Next()
		}
		l.waiters.Remove(p.element)
		if l.waiters.Len() > 0 {
			continue
		}
		if l.index >= 0 {
			heap.Remove(&srv.alarms, l.index)
		}
		delete(q.groups, l.want)
		if l.want.isPoint() {
			srv.points--
			srv.selectMemberEvents()
		} else {
			q.removeWide(l)
		}
		if len(q.groups) == 0 {
			delete(srv.waiting, q.waitKey)
		}
	}
	if w.index >= 0 {
		heap.Remove(&srv.deadlines, w.index)
	}
	w.sess.blocked = nil
	w.sess.resume()
	srv.blockedClients--
}

// markLines marks the lines whose condition may hold after an effect on their key.
func (u *commitScope) markLines(q *queue, e *effect) {
	switch {
	case len(q.groups) == len(q.wide):
	case e.members == "", u.srv.hasBacklog(q.waitKey): // the effect concerns the whole key
		for _, l := range q.groups {
			l.mark()
		}
	default:
		if s, ok := u.srv.valueOf(q).(*zset.Set); ok {
			for member := range eachMember(e.members) {
				if score, ok := s.Score(member); ok {
					if l := q.groups[point(score)]; l != nil {
						l.mark()
					}
				}
			}
		}
	}
	for _, l := range q.wide {
		l.mark()
	}
	u.addReady(q)
}

// addReady adds a queue to those that the commit scope serves.
func (u *commitScope) addReady(q *queue) {
	if !q.ready {
		q.ready = true
		u.ready = append(u.ready, q)
	}
}

// valueOf returns the current value of a queue's key, nil if there is none.
func (srv *Server) valueOf(q *queue) any {
	if entry := srv.keys.DB(q.db).Peek(bytesOf(q.key)); entry != nil {
		return entry.Value()
	}
	return nil
}

// serve retries the waiters for a key, in order of arrival, while their conditions
// hold.
func (u *commitScope) serve(q *queue) {
	srv := u.srv
	if srv.hasBacklog(q.waitKey) {
		q.ready = false // the lines stay marked until the key is clean
		return
	}
	for {
		value := srv.valueOf(q)
		var next *waiterGroup
		q.marked = slices.DeleteFunc(q.marked, func(l *waiterGroup) bool {
			l.marked = l.nextWaiter != nil && l.want.in(value, srv.instant)
			if l.marked && (next == nil || l.first().number < next.first().number) {
				next = l
			}
			return !l.marked
		})
		if next == nil {
			break
		}
		w := next.first()
		next.nextWaiter = next.nextWaiter.Next()
		w.sess.retry(w)
		u.commit()
	}
	q.ready = false
	for _, l := range q.wide {
		srv.setAlarm(l)
	}
}

// setAlarm sets the alarm of a line, if time alone can fulfil its condition.
func (srv *Server) setAlarm(l *waiterGroup) {
	if !l.want.moves() {
		return
	}
	at := int64(maxInstant)
	if s, ok := srv.valueOf(l.queue).(*zset.Set); ok {
		at = srv.enters(s, &l.want.scores)
	}
	switch {
	case l.index < 0 && at == maxInstant:
	case l.index < 0:
		l.at = at
		heap.Push(&srv.alarms, l)
	case at == maxInstant:
		heap.Remove(&srv.alarms, l.index)
	case at != l.at:
		l.at = at
		heap.Fix(&srv.alarms, l.index)
	}
}

// enters returns the instant at which the next element of s enters a range as time
// passes.
func (srv *Server) enters(s *zset.Set, r *rangeAt) int64 {
	now := r.at(srv.instant)
	later := zset.ScoreRange{Min: now.Max, MinExclusive: !now.MaxExclusive, Max: math.Inf(1)}
	if now.Min > now.Max {
		later.Min, later.MinExclusive = now.Min, now.MinExclusive
	}
	lo, hi := s.ScoreSpan(later)
	if lo == hi {
		return maxInstant
	}
	e, _ := s.At(lo)
	return r.max.reaches(e.Score, r.maxExclusive, srv.instant)
}

// serveAlarms serves the lines whose alarms are due. It runs at the beginning of a
// lock hold.
func (srv *Server) serveAlarms() {
	if srv.pausedUntil != 0 {
		return // no waiter is served during a pause
	}
	u := &srv.scope
	for len(srv.alarms) > 0 && srv.alarms[0].at <= srv.instant {
		l := heap.Pop(&srv.alarms).(*waiterGroup)
		l.mark()
		u.addReady(l.queue)
	}
	u.commit()
}

// timerEntry is an entry in a timer heap.
type timerEntry struct {
	at    int64
	index int // -1 = in no heap
}

func (a *timerEntry) when() *timerEntry { return a }

// timerHeap is a timer heap: entries ordered by time.
type timerHeap[T interface{ when() *timerEntry }] []T

func (a timerHeap[T]) Len() int           { return len(a) }
func (a timerHeap[T]) Less(i, j int) bool { return a[i].when().at < a[j].when().at }
func (a timerHeap[T]) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].when().index, a[j].when().index = i, j
}

// Push implements heap.Interface.
func (a *timerHeap[T]) Push(x any) {
	e := x.(T)
	e.when().index = len(*a)
	*a = append(*a, e)
}

// Pop implements heap.Interface.
func (a *timerHeap[T]) Pop() any {
	old := *a
	e := old[len(old)-1]
	clear(old[len(old)-1:])
	*a = old[:len(old)-1]
	e.when().index = -1
	return e
}
