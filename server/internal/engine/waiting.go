package engine

import (
	"container/heap"
	"container/list"
	"math"
	"slices"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/internal/values/score"
	"github.com/zsetd/zsetd/server/internal/values/sequence"
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

// waits are the watched keys, and the blocked commands with their timers.
type waits struct {
	Watched   map[WaitKey]map[*Session]struct{}
	Waiting   map[WaitKey]*queue
	waiters   uint64                  // total number of waiters so far
	Deadlines timerHeap[*Waiter]      // timeouts of waiters
	alarms    timerHeap[*waiterGroup] // alarms of lines
	points    int                     // number of lines for a single score
	claiming  int                     // number of lines that wait for idle entries of a group
}

// WaitKey identifies a key that a command waits for or watches.
type WaitKey struct {
	Db  int
	Key string
}

// Want is the condition of a waiter: a key of some type; for sorted sets optionally
// with elements in a range; for streams optionally with entries that are new to a
// consumer group, or that have been pending in it for some time, or the removal of that
// group, which the client must learn of.
type Want struct {
	Kind    keyspace.Kind
	Ranged  bool
	Grouped bool
	Claims  bool // pending entries that are idle for MinIdle, too
	Scores  score.Range
	Group   string
	MinIdle int64 // milliseconds
	Length  int64 // the least number of elements of a list
}

// In reports whether the condition holds for the value of a key; nil if there is no
// key.
func (w *Want) In(value any, now int64) bool {
	if value == nil || keyspace.KindOf(value) != w.Kind {
		return w.Grouped
	}
	if w.Grouped {
		return w.groupReady(value.(*sequence.Stream), now)
	}
	if w.Length > 0 {
		return int64(value.(*sequence.List).Len()) >= w.Length
	}
	if !w.Ranged {
		return true
	}
	lo, hi := value.(*zset.Set).ScoreSpan(w.Scores.At(now))
	return lo < hi
}

// point returns the condition of waiters for a single score.
func point(at float64) Want {
	x := score.Score{Number: at}
	return Want{Kind: keyspace.KindZset, Ranged: true, Scores: score.Range{Min: x, Max: x}}
}

// isPoint reports whether w is a condition for a single score.
func (w *Want) isPoint() bool { return w.Ranged && *w == point(w.Scores.Min.Number) }

// moves reports whether time alone can fulfil the condition.
func (w *Want) moves() bool { return w.Claims || w.Ranged && w.Scores.Max.Moves() }

// queue holds the waiters for one key.
type queue struct {
	WaitKey
	Groups map[Want]*waiterGroup
	Wide   []*waiterGroup // those that are not for a single score, in no order
	marked []*waiterGroup // those whose condition may hold
	ready  bool           // in the list of queues that the commit scope serves
}

// waiterGroup is a group of waiters in a queue with the same condition.
type waiterGroup struct {
	queue      *queue
	Want       Want
	Waiters    list.List     // of *Waiter
	nextWaiter *list.Element // while the key is served: the first waiter that is not retried yet
	marked     bool
	WideIndex  int // in queue.wide, unless it waits for a single score
	timerEntry     // its alarm, in microseconds since 1970
}

// removeWide removes l from q.wide. The last line takes its place: many clients may
// leave at once.
func (q *queue) removeWide(l *waiterGroup) {
	n := len(q.Wide) - 1
	last := q.Wide[n]
	q.Wide[l.WideIndex], last.WideIndex = last, l.WideIndex
	q.Wide[n] = nil
	q.Wide = q.Wide[:n]
}

// mark records that the condition of the line may hold, for all its waiters.
func (l *waiterGroup) mark() {
	l.nextWaiter = l.Waiters.Front()
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
	Timeout    func(*protocol.Reply)
	Tries      int           // unsuccessful retries so far
	spent      time.Duration // time spent in them
	timerEntry               // its timeout, in milliseconds since 1970; 0 = none
}

// Keys returns the keys that w waits for. The lock is held.
func (w *Waiter) Keys() []string {
	keys := []string{}
	for _, p := range w.positions {
		keys = append(keys, p.group.queue.Key)
	}
	return keys
}

// position is a Waiter's position in a line.
type position struct {
	group   *waiterGroup
	element *list.Element
}

// block creates a Waiter for the call.
func (srv *Engine) block(c *Call, deadline int64, want Want, timeout func(*protocol.Reply), keys [][]byte) {
	srv.Waits.waiters++
	w := &Waiter{
		number: srv.Waits.waiters,
		sess:   c.Session, cmd: c.Command, argv: protocol.CopyArgs(c.Argv), names: len(c.Argv) - len(c.All()), db: c.DB,
		since: time.Now(), Timeout: timeout, timerEntry: timerEntry{at: deadline, index: -1},
	}
	for _, key := range keys {
		l := srv.groupFor(WaitKey{c.DB.ID(), protocol.View(key)}, want)
		if last := l.Waiters.Back(); last != nil && last.Value == w {
			continue // the key occurs twice
		}
		w.positions = append(w.positions, position{l, l.Waiters.PushBack(w)})
	}
	if deadline != 0 {
		heap.Push(&srv.Waits.Deadlines, w)
	}
	c.Session.Stall.Blocked = w
	c.Session.Stall.Stalled.Store(true)
	srv.Stats.BlockedClients++
}

// groupFor returns the line for a condition on a key, and creates it if needed. The key
// is borrowed.
func (srv *Engine) groupFor(k WaitKey, w Want) *waiterGroup {
	q := srv.Waits.Waiting[k]
	if q == nil {
		k.Key = string(protocol.BytesOf(k.Key)) // a copy
		q = &queue{WaitKey: k, Groups: map[Want]*waiterGroup{}}
		srv.Waits.Waiting[k] = q
	}
	l := q.Groups[w]
	if l != nil {
		return l
	}
	l = &waiterGroup{queue: q, Want: w, timerEntry: timerEntry{index: -1}}
	q.Groups[w] = l
	if w.Claims {
		srv.Waits.claiming++
	}
	if w.isPoint() {
		srv.Waits.points++
		srv.selectMemberEvents()
	} else {
		l.WideIndex = len(q.Wide)
		q.Wide = append(q.Wide, l)
		srv.setAlarm(l)
	}
	return l
}

// unblock removes w from all queues; its session continues.
func (srv *Engine) unblock(w *Waiter) {
	for _, p := range w.positions {
		l, q := p.group, p.group.queue
		if l.nextWaiter == p.element {
			l.nextWaiter = p.element.Next()
		}
		l.Waiters.Remove(p.element)
		if l.Waiters.Len() > 0 {
			continue
		}
		if l.index >= 0 {
			heap.Remove(&srv.Waits.alarms, l.index)
		}
		delete(q.Groups, l.Want)
		if l.Want.Claims {
			srv.Waits.claiming--
		}
		if l.Want.isPoint() {
			srv.Waits.points--
			srv.selectMemberEvents()
		} else {
			q.removeWide(l)
		}
		if len(q.Groups) == 0 {
			delete(srv.Waits.Waiting, q.WaitKey)
		}
	}
	if w.index >= 0 {
		heap.Remove(&srv.Waits.Deadlines, w.index)
	}
	w.sess.Stall.Blocked = nil
	w.sess.resume()
	srv.Stats.BlockedClients--
}

// markLines marks the lines whose condition may hold after an effect on their key.
func (u *commitScope) markLines(q *queue, e *effect) {
	switch {
	case len(q.Groups) == len(q.Wide):
	case e.members == "", u.srv.hasBacklog(q.WaitKey): // the effect concerns the whole key
		for _, l := range q.Groups {
			l.mark()
		}
	default:
		if s, ok := u.srv.valueOf(q).(*zset.Set); ok {
			for member := range eachMember(e.members) {
				if at, ok := s.Score(member); ok {
					if l := q.Groups[point(at)]; l != nil {
						l.mark()
					}
				}
			}
		}
	}
	for _, l := range q.Wide {
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
func (srv *Engine) valueOf(q *queue) any {
	if entry := srv.Keys.DB(q.Db).Peek(protocol.BytesOf(q.Key)); entry != nil {
		return entry.Value()
	}
	return nil
}

// serve retries the waiters for a key, in order of arrival, while their conditions
// hold.
func (u *commitScope) serve(q *queue) {
	srv := u.srv
	if srv.hasBacklog(q.WaitKey) {
		q.ready = false // the lines stay marked until the key is clean
		return
	}
	for {
		value := srv.valueOf(q)
		var next *waiterGroup
		q.marked = slices.DeleteFunc(q.marked, func(l *waiterGroup) bool {
			l.marked = l.nextWaiter != nil && l.Want.In(value, srv.Turn.Instant)
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
		u.Commit()
	}
	q.ready = false
	for _, l := range q.Wide {
		srv.setAlarm(l)
	}
}

// setAlarm sets the alarm of a line, if time alone can fulfil its condition.
func (srv *Engine) setAlarm(l *waiterGroup) {
	if !l.Want.moves() {
		return
	}
	at := int64(score.MaxInstant)
	switch v := srv.valueOf(l.queue).(type) {
	case *zset.Set:
		if l.Want.Ranged {
			at = srv.enters(v, &l.Want.Scores)
		}
	case *sequence.Stream:
		if l.Want.Claims {
			at = l.Want.becomesIdle(v)
		}
	}
	switch {
	case l.index < 0 && at == score.MaxInstant:
	case l.index < 0:
		l.at = at
		heap.Push(&srv.Waits.alarms, l)
	case at == score.MaxInstant:
		heap.Remove(&srv.Waits.alarms, l.index)
	case at != l.at:
		l.at = at
		heap.Fix(&srv.Waits.alarms, l.index)
	}
}

// enters returns the instant at which the next element of s enters a range as time
// passes.
func (srv *Engine) enters(s *zset.Set, r *score.Range) int64 {
	now := r.At(srv.Turn.Instant)
	later := zset.ScoreRange{Min: now.Max, MinExclusive: !now.MaxExclusive, Max: math.Inf(1)}
	if now.Min > now.Max {
		later.Min, later.MinExclusive = now.Min, now.MinExclusive
	}
	lo, hi := s.ScoreSpan(later)
	if lo == hi {
		return score.MaxInstant
	}
	e, _ := s.At(lo)
	return r.Max.Reaches(e.Score, r.MaxExclusive, srv.Turn.Instant)
}

// serveAlarms serves the lines whose alarms are due. It runs at the beginning of a
// lock hold.
func (srv *Engine) serveAlarms() {
	if srv.Pauses.Until != 0 {
		return // no waiter is served during a pause
	}
	u := &srv.Turn.Scope
	for len(srv.Waits.alarms) > 0 && srv.Waits.alarms[0].at <= srv.Turn.Instant {
		l := heap.Pop(&srv.Waits.alarms).(*waiterGroup)
		l.mark()
		u.addReady(l.queue)
	}
	u.Commit()
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

// groupReady reports whether clients that wait for entries of a group can be answered,
// by an entry or by an error. now is in microseconds since 1970.
func (w *Want) groupReady(s *sequence.Stream, now int64) bool {
	g := s.Group(protocol.BytesOf(w.Group))
	if g == nil {
		return true
	}
	if last, ok := s.Last(); ok && g.LastID().Less(last.ID) {
		return true
	}
	return w.Claims && w.becomesIdle(s) <= now
}

// becomesIdle returns the instant, in microseconds since 1970, at which the next entry of a
// stream has been pending in the group for MinIdle; score.MaxInstant if there is none. While
// the group has no order by time it is now: the retry of a waiter creates the order.
func (w *Want) becomesIdle(s *sequence.Stream) int64 {
	const never = score.MaxInstant / 1000
	g := s.Group(protocol.BytesOf(w.Group))
	switch {
	case g == nil || g.Len() == 0:
		return score.MaxInstant
	case !g.OrderedByTime():
		return 0
	}
	for p := range g.ByTime {
		switch {
		case p.Time >= never-min(w.MinIdle, never):
			return score.MaxInstant
		case s.Has(p.ID):
			return (p.Time + w.MinIdle) * 1000
		}
	}
	return score.MaxInstant
}

// setAlarms sets the alarms of the lines that wait for pending entries of a stream, whose
// groups have changed.
func (srv *Engine) setAlarms(key WaitKey) {
	if q := srv.Waits.Waiting[key]; q != nil {
		for _, l := range q.Wide {
			if l.Want.Claims {
				srv.setAlarm(l)
			}
		}
	}
}

// KeysAwaited returns the number of keys with waiters that learn of the key's deletion.
func (w *waits) KeysAwaited() (n int) {
	for _, q := range w.Waiting {
		for _, l := range q.Wide {
			if l.Want.Grouped {
				n++
				break
			}
		}
	}
	return n
}
