package engine

import (
	"bufio"
	"bytes"
	"container/heap"
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/base/process"
	"github.com/zsetd/zsetd/server/internal/base/replyjson"
	"github.com/zsetd/zsetd/server/internal/engine/acl"
	"github.com/zsetd/zsetd/server/internal/engine/subscription"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/internal/values/score"
	"github.com/zsetd/zsetd/zset"
)

// A live query is a channel whose name is a command that reads (queryname.go). Its
// subscribers receive the present reply, and each reply that differs from the one before.
//
// A change marks its key, which costs one lookup. At the end of the turn, when the replies to
// the commands that made the changes are in the output queues, the queries of the marked
// keys are evaluated: each once for all its subscribers, and however many changes there were.
// So a message shows a state that was committed, and follows the reply to the write that
// caused it. A query such as HGET, which reads only the members that it names, is evaluated if the
// change names one of them, or names none.
//
// Nothing polls. A reply that changes because time passes, by a bound such as @now-5m or by a
// deadline, has an alarm for that instant.
//
// Evaluations take the share query-cpu of the time, and a turn spends a millisecond on them at
// most; the rest waits for the timer. Keys and alarms take turns, so one key with a hundred
// thousand queries delays another by a few evaluations. A query that was slow three
// times in a row waits a hundred times as long as it takes.
//
// No reply is kept: a subscriber has the hash of the latest one that it was sent. A subscriber with unread output is late: its reply is computed
// when it has read the output.

// queries are the live queries of a server.
type queries struct {
	byName   map[queryID]*query
	byKey    map[WaitKey]*queriedKey
	named    int               // queries that read only members that they name
	changes  uint64            // how many changes of keys have marked one
	marked   []*queriedKey     // in order; their queries are to be evaluated
	started  []*query          // those with subscribers that wait for their first message
	drained  []*Session        // late subscribers that have read their output
	alarms   timerHeap[*query] // in microseconds since 1970
	session  *Session          // evaluates
	seed     maphash.Seed
	line     []byte   // what read splits
	argv     [][]byte // and the words
	json     replyjson.Transcoder
	from     bytes.Reader  // what json reads
	to       bytes.Buffer  // what json writes
	min, max float64       // the scores that the evaluation reads, of ReadsScores
	credit   time.Duration // left of the share of time, by the clock of the process: that of the server can be moved
	credited time.Time     // when credit was computed
	stale    bool          // the server was a stale replica when it was last asked
	queryStats
}

// queryStats are the counters of live queries.
type queryStats struct {
	Subscriptions int64 // at present
	Evaluations   int64
	Time          time.Duration // of them and their messages
	Messages      int64
	LeftOut       int64 // states that late subscribers were not sent
}

// Len returns the number of live queries.
func (qs *queries) Len() int { return len(qs.byName) }

// queryID identifies a query: by the name of the channel, and by the user of a script, which
// runs with the rights of its subscriber; "" is the program that embeds the server.
type queryID struct{ name, user string }

// query is a live query with its subscribers, at least one.
type query struct {
	queryID
	db          int32
	names       int32 // words of the command's name
	cmd         *Command
	text        int           // where the command begins in the name of the channel
	interval    time.Duration // least time between two messages
	keys        []keyPosition
	subscribers []querySubscriber

	seen     uint64  // queries.changes at the latest evaluation
	next     int64   // no evaluation before that instant, in microseconds since 1970
	min, max float64 // the scores of the key that it reads, at the latest evaluation
	member   int32   // where the name of the channel has the member whose rank it is; 0 if it is no such query
	slow     uint8   // how many of the latest evaluations were slow, up to slowTimes
	moving   bool    // it may have bounds that move
	mixed    bool    // the elements of the reply have no order
	starting bool    // in queries.started
	timerEntry
}

// keyPosition is the position of a query in the list of a key.
type keyPosition struct {
	key *queriedKey
	at  int
}

// querySubscriber is a subscriber of a query.
type querySubscriber struct {
	sess  *Session
	sent  uint64 // the hash of the latest reply that it was sent
	first bool   // it waits for the present reply, whatever it is
	late  bool   // in liveSubscriptions.late
}

// liveSubscriptions are the subscriptions of a session to live queries.
type liveSubscriptions struct {
	byName   map[string]queryPosition
	late     []*query // their messages wait until the output is read
	drained  bool     // in queries.drained
	observes bool     // messages are replies, without a channel
}

// queryPosition is one of these subscriptions.
type queryPosition struct {
	query *query
	at    int // in query.subscribers
}

// queriedKey is a key, or a member of a key, with the queries that read it. A pass visits them
// from the last to the first, so that one which joins, or takes the place of one that leaves, is
// not left out.
type queriedKey struct {
	WaitKey
	queries []*query
	named   *queriedKey            // the queries that read only members that they name
	members map[string]*queriedKey // the same by member
	scores  *scoreReads            // nil unless some of queries read scores of a range
	of      *queriedKey            // the key that has this one as named, or in members
	member  string                 // in of.members
	changed uint64                 // queries.changes at the latest change of the key
	pass    uint64                 // changed when the pass began
	left    int                    // how many queries the pass has still to visit
	marked  bool
}

const (
	// slowQuery is the time from which on an evaluation is slow.
	slowQuery = 10 * time.Millisecond
	// slowTimes is how many slow evaluations in a row make a query slow, and slowShare how many
	// times longer than its evaluation it waits then.
	slowTimes = 3
	slowShare = 100
	// queryTurn is the time that a turn spends on evaluations.
	queryTurn = time.Millisecond
	// queryBurst is how much unused time counts for later evaluations.
	queryBurst = 20 * time.Millisecond
	// queriesAtOnce is how many queries of a key are evaluated before those of the next key.
	queriesAtOnce = 16
	// queryVisits is how many queries of a key are looked at for that.
	queryVisits = 256
	// maxQueryReply is the size of a reply in bytes.
	maxQueryReply = 1 << 20
	// lateFrom is how many bytes of unread output make a subscriber late.
	lateFrom = firstReplies
	// ScriptQueryTime is the time after which the script of a query is ended.
	ScriptQueryTime = 100 * time.Millisecond
	// queryBytes is the memory of a query and a subscription beside the name.
	queryBytes = 400
)

// mark records a change of a key for its queries. members is a list of those that have changed, of
// appendMember; it may be empty.
func (qs *queries) mark(k WaitKey, members []byte) {
	key := qs.byKey[k]
	switch {
	case key == nil:
	case len(members) == 0 || key.named == nil:
		qs.markWhole(key)
	default:
		qs.markKey(key)
		for member := range eachMember(protocol.View(members)) {
			if m := key.members[member]; m != nil {
				qs.markKey(m)
			}
		}
	}
}

// replaced records that a key gets a value in place of another one or of none, perhaps of another
// kind. The event of the change may name the members of the new one only.
func (qs *queries) replaced(db int, key []byte) {
	if qs.named > 0 {
		qs.mark(WaitKey{db, protocol.View(key)}, nil)
	}
}

// markWhole records a change that may be one of any member.
func (qs *queries) markWhole(key *queriedKey) {
	qs.markKey(key)
	if key.named != nil {
		qs.markKey(key.named)
	}
}

func (qs *queries) markKey(key *queriedKey) {
	if len(key.queries) == 0 {
		return
	}
	qs.changes++
	key.changed = qs.changes
	if key.scores != nil {
		key.scores.mark()
	}
	if !key.marked {
		key.marked, key.left = true, 0
		qs.marked = append(qs.marked, key)
	}
}

// markAll records that the data of a database, or with -1 of all, may have changed.
func (qs *queries) markAll(db int) {
	for _, key := range qs.byKey {
		if db < 0 || key.Db == db {
			if key.scores != nil {
				key.scores.any = true
			}
			qs.markWhole(key)
		}
	}
}

// moved records that the clock has moved by d. Intervals move along with it, and a clock that has
// gone back shows what had passed.
func (qs *queries) moved(d time.Duration) {
	for _, q := range qs.byName {
		q.next += d.Microseconds()
	}
	qs.markAll(-1)
}

// RefusesQueries returns the error of the first name that is a live query which the session
// cannot subscribe to, or "".
func (s *Session) RefusesQueries(kind subscription.Topic, names []string) string {
	more := int64(0)
	for _, name := range names {
		if kind == subscription.Patterns || !IsQuery(protocol.BytesOf(name)) {
			continue
		}
		if kind == subscription.Shards {
			return errQueryShard
		}
		if _, refusal := s.parseQuery(name); refusal != "" {
			return refusal
		}
		if _, there := s.position(name); !there {
			more++
		}
	}
	if more > 0 && s.Engine.Queries.Subscriptions+more > s.Engine.Config.QueryMax {
		return errQueryMax
	}
	return ""
}

// joinQuery adds the session to the query of a name, which RefusesQueries has accepted.
func (s *Session) joinQuery(name string) {
	srv := s.Engine
	qs := &srv.Queries
	if p, there := s.lively().byName[name]; there {
		qs.start(p.query, &p.query.subscribers[p.at])
		return
	}
	parsed, refusal := s.parseQuery(name)
	if refusal != "" {
		panic("BUG: a query was not checked: " + refusal)
	}
	id := queryID{name: name}
	if parsed.cmd.ScriptFlags != nil && s.Login.User != srv.ACL.Owner {
		id.user = s.Login.User.Name
	}
	q := qs.byName[id]
	if q == nil {
		q = srv.addQuery(id, parsed)
	}
	l := s.lively()
	l.byName[name] = queryPosition{q, len(q.subscribers)}
	q.subscribers = append(q.subscribers, querySubscriber{sess: s})
	qs.Subscriptions++
	s.Weight.nameBytes += queryBytes
	qs.start(q, &q.subscribers[len(q.subscribers)-1])
}

// lively returns the subscriptions of the session to live queries, which may be none.
func (s *Session) lively() *liveSubscriptions {
	if s.live == nil {
		s.live = &liveSubscriptions{byName: map[string]queryPosition{}}
	}
	return s.live
}

// position returns the subscription to the query of a name.
func (s *Session) position(name string) (p queryPosition, there bool) {
	if s.live != nil {
		p, there = s.live.byName[name]
	}
	return p, there
}

// start sends a subscriber the present reply at the end of the turn.
func (qs *queries) start(q *query, s *querySubscriber) {
	s.first = true
	if !q.starting {
		q.starting = true
		qs.started = append(qs.started, q)
	}
}

// addQuery adds a query without subscribers.
func (srv *Engine) addQuery(id queryID, parsed parsedQuery) *query {
	qs := &srv.Queries
	q := &query{
		queryID: id, db: int32(parsed.db), names: int32(parsed.names), cmd: parsed.cmd, text: parsed.text,
		interval: parsed.interval, moving: parsed.moving, mixed: strings.Contains(parsed.cmd.Tips, "nondeterministic_output_order"),
		min: math.Inf(-1), max: math.Inf(1), member: int32(parsed.member), timerEntry: timerEntry{index: -1},
	}
	if qs.byName == nil {
		qs.byName, qs.byKey, qs.seed = map[queryID]*query{}, map[WaitKey]*queriedKey{}, maphash.MakeSeed()
	}
	qs.byName[id] = q
	q.keys = make([]keyPosition, 0, len(parsed.keys)+len(parsed.members))
	for _, name := range parsed.keys {
		key := qs.byKey[WaitKey{parsed.db, protocol.View(name)}]
		if key == nil {
			key = &queriedKey{WaitKey: WaitKey{parsed.db, string(name)}}
			qs.byKey[key.WaitKey] = key
		}
		if len(parsed.members) == 0 {
			q.join(key)
			continue
		}
		if key.named == nil {
			key.named, key.members = &queriedKey{WaitKey: key.WaitKey, of: key}, map[string]*queriedKey{}
		}
		q.join(key.named)
		for _, member := range parsed.members {
			m := key.members[protocol.View(member)]
			if m == nil {
				m = &queriedKey{WaitKey: key.WaitKey, of: key, member: string(member)}
				key.members[m.member] = m
			}
			if len(m.queries) == 0 || m.queries[len(m.queries)-1] != q { // named twice
				q.join(m)
			}
		}
		if qs.named++; qs.named == 1 {
			srv.selectMemberEvents()
		}
	}
	return q
}

// join adds the query to those of a key or a member.
func (q *query) join(key *queriedKey) {
	q.keys = append(q.keys, keyPosition{key, len(key.queries)})
	key.queries = append(key.queries, q)
}

// leaveQuery ends a subscription.
func (s *Session) leaveQuery(name string) {
	p, there := s.position(name)
	if !there {
		return
	}
	srv, q := s.Engine, p.query
	qs := &srv.Queries
	delete(s.live.byName, name)
	qs.Subscriptions--
	s.Weight.nameBytes -= queryBytes
	last := len(q.subscribers) - 1
	if p.at < last {
		moved := q.subscribers[last]
		q.subscribers[p.at] = moved
		moved.sess.live.byName[q.name] = queryPosition{q, p.at}
	}
	q.subscribers[last] = querySubscriber{}
	q.subscribers = q.subscribers[:last]
	if last == 0 {
		srv.removeQuery(q)
	}
}

// removeQuery removes a query without subscribers.
func (srv *Engine) removeQuery(q *query) {
	qs := &srv.Queries
	delete(qs.byName, q.queryID)
	if q.index >= 0 {
		heap.Remove(&qs.alarms, q.index)
	}
	for _, p := range q.keys {
		key := p.key
		last := len(key.queries) - 1
		if p.at < last {
			moved := key.queries[last]
			key.queries[p.at] = moved
			for i := range moved.keys {
				if moved.keys[i].key == key && moved.keys[i].at == last {
					moved.keys[i].at = p.at
				}
			}
		}
		key.queries[last] = nil
		key.queries = key.queries[:last]
		key.left = min(key.left, last)
		if last == 0 { // the list of marked keys may still have it
			qs.drop(key)
		}
	}
	if q.keys[0].key.of != nil {
		if qs.named--; qs.named == 0 {
			srv.selectMemberEvents()
		}
	}
}

// drop removes a key or a member without queries.
func (qs *queries) drop(key *queriedKey) {
	of := key.of
	switch {
	case of == nil:
		of = key
	case of.named == key:
		of.named = nil
	default:
		delete(of.members, key.member)
	}
	if len(of.queries) == 0 && of.named == nil && len(of.members) == 0 {
		delete(qs.byKey, of.WaitKey)
	}
}

// evaluateQueries evaluates the queries whose replies may have changed, and sends their
// messages. It runs at the end of a turn.
func (srv *Engine) evaluateQueries() {
	qs := &srv.Queries
	if len(qs.byName) == 0 {
		for _, s := range qs.drained {
			s.live.drained = false
		}
		qs.started, qs.drained, qs.marked = nil, nil, nil
		return
	}
	if srv.Keeper.Loading != nil {
		return // Loaded marks all
	}
	if stale := srv.Stale(); stale != qs.stale {
		qs.stale = stale
		qs.markAll(-1)
	}
	if len(qs.started) == 0 && len(qs.drained) == 0 && len(qs.marked) == 0 && !qs.alarmed(srv.Turn.Instant) {
		return
	}
	now := time.Now()
	qs.refill(now, srv.Config.QueryCPU)
	r := queryRound{srv: srv, qs: qs, at: now, end: now.Add(queryTurn)}
	before, known := process.ThreadTime()
	r.run()
	qs.credit -= r.cost(now, before, known)
	if len(srv.Turn.Scope.effects) > 0 { // keys that have expired
		srv.Turn.Scope.Commit()
	}
}

// alarmed reports whether the alarm of a query is due.
func (qs *queries) alarmed(instant int64) bool {
	return len(qs.alarms) > 0 && qs.alarms[0].at <= instant
}

// refill adds the share of the time that has passed.
func (qs *queries) refill(now time.Time, percent int64) {
	if passed := now.Sub(qs.credited); passed > 0 {
		share := min(passed, time.Minute) * time.Duration(percent) / 100
		qs.credit = min(qs.credit+share, queryBurst)
	}
	qs.credited = now
}

// queriesDue returns the instant at which evaluateQueries has work, in microseconds since 1970.
func (srv *Engine) queriesDue(never int64) int64 {
	qs := &srv.Queries
	if len(qs.byName) == 0 || srv.Keeper.Loading != nil {
		return never
	}
	if len(qs.started) > 0 {
		return srv.Turn.Instant
	}
	next := never
	if len(qs.marked) > 0 || len(qs.drained) > 0 {
		next = srv.Turn.Instant
	} else if len(qs.alarms) > 0 {
		next = qs.alarms[0].at
	}
	if next != never && qs.credit <= 0 {
		wait := -qs.credit*100/time.Duration(srv.Config.QueryCPU) + queryTurn
		next = max(next, srv.Turn.Instant+wait.Microseconds())
	}
	return next
}

// queryRound is the evaluations of one turn.
type queryRound struct {
	srv *Engine
	qs  *queries
	at  time.Time // the end of the latest evaluation
	end time.Time
	own time.Duration // the part that first messages took, which are the subscribers' own commands
}

// cost returns the time of a round that began at start, when the thread had used so much processor
// time, if that is known. Time in which other processes had the processor does not count, unless the
// goroutine has changed its thread meanwhile.
func (r *queryRound) cost(start time.Time, before time.Duration, known bool) time.Duration {
	spent := r.at.Sub(start)
	if after, ok := process.ThreadTime(); ok && known && after >= before {
		spent = min(spent, after-before)
	}
	return max(0, spent-r.own)
}

// run evaluates until there is no work, or the time is over.
func (r *queryRound) run() {
	qs := r.qs
	for worked := true; worked && r.at.Before(r.end); {
		worked = r.runStarted()
		if qs.credit <= 0 {
			continue
		}
		worked = r.runDrained() || worked
		worked = r.runAlarm() || worked
		if r.at.Before(r.end) {
			worked = r.runKey() || worked
		}
	}
}

// runStarted sends the first messages of a query.
func (r *queryRound) runStarted() bool {
	qs := r.qs
	if len(qs.started) == 0 {
		return false
	}
	q := qs.started[0]
	qs.started = popFirst(qs.started)
	q.starting = false
	if len(q.subscribers) > 0 {
		at := r.at
		r.evaluate(q, 0, len(q.subscribers))
		r.own += r.at.Sub(at)
	}
	return true
}

// popFirst removes the first element.
func popFirst[T any](list []T) []T {
	var none T
	list[0] = none
	if list = list[1:]; len(list) == 0 {
		return nil
	}
	return list
}

// runDrained sends the messages of a subscriber that is late no more.
func (r *queryRound) runDrained() bool {
	qs := r.qs
	if len(qs.drained) == 0 {
		return false
	}
	s := qs.drained[0]
	l := s.live
	for n := 0; len(l.late) > 0 && s.End == Serving && s.backlog() < lateFrom; n++ {
		if n == queriesAtOnce || !r.at.Before(r.end) {
			return true
		}
		q := l.late[0]
		l.late = popFirst(l.late)
		p, there := l.byName[q.name]
		if !there || p.query != q || !q.subscribers[p.at].late {
			continue
		}
		q.subscribers[p.at].late = false
		r.evaluate(q, p.at, p.at+1)
	}
	l.drained = false
	qs.drained = popFirst(qs.drained)
	return true
}

// runAlarm evaluates a query whose alarm is due.
func (r *queryRound) runAlarm() bool {
	if !r.qs.alarmed(r.srv.Turn.Instant) {
		return false
	}
	q := heap.Pop(&r.qs.alarms).(*query)
	r.update(q)
	return true
}

// runKey evaluates some queries of the first marked key, which becomes the last one if there
// are more.
func (r *queryRound) runKey() bool {
	qs := r.qs
	if len(qs.marked) == 0 {
		return false
	}
	key := qs.marked[0]
	qs.marked = popFirst(qs.marked)
	if key.left == 0 {
		key.pass, key.left = key.changed, len(key.queries)
		if key.scores != nil {
			key.scores.begin(r.srv.sortedSetAt(key))
		}
	}
	var ranks [rankQueries]*query
	n := 0
	for evaluated, visits := 0, 0; key.left > 0 && evaluated < queriesAtOnce && visits < queryVisits && r.at.Before(r.end); visits++ {
		key.left--
		switch q := key.queries[key.left]; {
		case q.seen >= key.changed || key.scores.spares(q):
		case q.member > 0:
			ranks[n] = q
			n++
		default:
			r.update(q)
			evaluated++
		}
	}
	r.ranks(key, ranks[:n])
	r.lap()
	if key.left > 0 || key.pass != key.changed {
		qs.marked = append(qs.marked, key)
	} else {
		key.marked = false
	}
	return true
}

// update evaluates a query, or sets its alarm if it may not be evaluated yet.
func (r *queryRound) update(q *query) {
	if !r.postpone(q) {
		r.evaluate(q, 0, len(q.subscribers))
	}
}

// postpone sets the alarm of a query that may not be evaluated yet.
func (r *queryRound) postpone(q *query) bool {
	if q.next <= r.srv.Turn.Instant {
		return false
	}
	r.qs.setAlarm(q, q.next)
	return true
}

// setAlarm sets the alarm of a query to an instant, or to an earlier one that it has already.
func (qs *queries) setAlarm(q *query, at int64) {
	switch {
	case at >= score.MaxInstant:
	case q.index < 0:
		q.at = at
		heap.Push(&qs.alarms, q)
	case at < q.at:
		q.at = at
		heap.Fix(&qs.alarms, q.index)
	}
}

// evaluate evaluates a query and sends its messages to subscribers from to to-1.
func (r *queryRound) evaluate(q *query, from, to int) {
	srv, qs := r.srv, r.qs
	argv, refusal := qs.read(q)
	qs.min, qs.max = math.Inf(-1), math.Inf(1)
	part := to-from < len(q.subscribers)
	r.deliver(q, from, to, srv.query(q, argv, refusal))
	srv.readScores(q, part)
	if refusal == "" && len(q.subscribers) > 0 { // none if the message has closed the last one
		qs.setAlarm(q, srv.changesAt(q, argv))
	}
	took := r.lap()
	if took < slowQuery {
		q.slow = 0
	} else if q.slow++; q.slow >= slowTimes { // a busy machine makes one evaluation slow now and then
		q.slow = slowTimes
		q.next = max(q.next, srv.Turn.Instant+slowShare*took.Microseconds())
	}
	srv.noteSlowQuery(q, took)
}

// deliver sends the reply of an evaluation to subscribers from to to-1. It removes the alarm.
func (r *queryRound) deliver(q *query, from, to int, reply []byte) {
	qs := r.qs
	if to-from == len(q.subscribers) {
		q.seen = qs.changes
	}
	if q.index >= 0 {
		heap.Remove(&qs.alarms, q.index)
	}
	qs.Evaluations++
	if r.srv.tell(q, from, to, reply) && q.interval > 0 {
		q.next = r.srv.Turn.Instant + q.interval.Microseconds()
	}
}

// lap returns the time since the end of the latest evaluation, and makes now the latest.
func (r *queryRound) lap() time.Duration {
	now := time.Now()
	took := now.Sub(r.at)
	r.at = now
	r.qs.Time += took
	return took
}

// read returns the words of a query, which are valid until the next call.
func (qs *queries) read(q *query) (argv [][]byte, refusal string) {
	qs.line = append(qs.line[:0], q.name[q.text:]...)
	argv, ok := protocol.SplitArgs(qs.argv[:0], qs.line)
	if !ok || len(argv) == 0 {
		return nil, errQueryQuotes
	}
	qs.argv = argv
	return argv, ""
}

// query runs the command of a query, and returns the reply in RESP3. It leaves no trace in
// the statistics, in the access times of keys, or in the log of MONITOR.
func (srv *Engine) query(q *query, argv [][]byte, refusal string) []byte {
	s := srv.querySession()
	s.DB = srv.Keys.DB(int(q.db))
	s.Login.User, s.Login.Authenticated = srv.ACL.Owner, true
	if q.user != "" {
		if s.Login.User = srv.ACL.Users[q.user]; s.Login.User == nil {
			s.Login.User, refusal = srv.ACL.Owner, "NOPERM the user of this live query does not exist"
		}
	}
	s.Out.Truncate(0)
	s.Out.SetVersion(3)
	s.Out.SetLimit(maxQueryReply)
	switch {
	case refusal != "":
		s.Out.Error(refusal)
	case srv.Stale() && !q.cmd.effects(srv, argv).Has(protocol.Stale):
		s.Out.Error(srv.staleError())
	case srv.Forwarding.forwarder != nil:
		s.Out.Error(srv.queriesMoved())
	default:
		s.Call.observe(q.cmd, argv, int(q.names), s.DB)
	}
	if s.Out.Over() || s.Out.Len() > maxQueryReply {
		s.Out.Swap(nil)
		s.Out.Truncate(0)
		s.Out.Error(fmt.Sprintf("ERR the reply to a live query exceeds %d bytes: ask for less", maxQueryReply))
	}
	return s.Out.Bytes()
}

// queriesMoved is the error of queries while another server has the data.
func (srv *Engine) queriesMoved() string {
	return "ERR live queries are not forwarded: subscribe at " + srv.Forwarding.To()
}

// querySession returns the session that evaluates.
func (srv *Engine) querySession() *Session {
	if s := srv.Queries.session; s != nil {
		return s
	}
	s := &Session{Engine: srv, Peer: Peer{FD: -1, Wake: func() {}}}
	s.Modes.NoBlock, s.Modes.direct = true, true
	s.Call = Call{Session: s, Engine: srv, Reply: &s.Out, Nested: true, Observing: true}
	srv.Queries.session = s
	return s
}

// tell sends a reply to those of subscribers from to to-1 that were sent another one, and reports
// whether there were any.
func (srv *Engine) tell(q *query, from, to int, reply []byte) (sent bool) {
	qs := &srv.Queries
	hash := qs.hash(reply, q.mixed)
	var payload []byte
	encoded := &srv.PubSub.encoded
	var behind []*Session
	for i := from; i < to; i++ {
		sub := &q.subscribers[i]
		s := sub.sess
		if sub.late || !sub.first && sub.sent == hash || s.End != Serving {
			continue
		}
		if s.backlog() >= lateFrom {
			sub.late = true
			s.live.late = append(s.live.late, q)
			s.Queue.again()
			qs.LeftOut++
			continue
		}
		if s.live.observes {
			s.message(reply)
		} else {
			if payload == nil {
				payload = qs.payload(reply)
			}
			b := &encoded[s.Out.Version()-2]
			if b.Len() == 0 {
				b.Push(3)
				b.BulkString(messageToChannel)
				b.BulkString(q.name)
				b.Bulk(payload)
			}
			s.message(b.Bytes())
		}
		sub.sent, sub.first, sent = hash, false, true
		qs.Messages++
		if s.exceedsLimit() {
			behind = append(behind, s)
		}
	}
	for i := range encoded {
		if b := &encoded[i]; b.Cap() > maxKeptMessage {
			b.Swap(nil)
		} else {
			b.Truncate(0)
		}
	}
	for _, s := range behind { // leave the list
		s.tooFarBehind()
	}
	return sent
}

// hash returns the hash of a reply. Of one whose elements have no order, it is the sum of their
// hashes, so that the same elements in another order are no other reply.
func (qs *queries) hash(reply []byte, mixed bool) (sum uint64) {
	if !mixed || len(reply) == 0 || reply[0] != '~' && reply[0] != '*' && reply[0] != '%' {
		return maphash.Bytes(qs.seed, reply)
	}
	bulks := 1
	if reply[0] == '%' {
		bulks = 2
	}
	rest := reply[bytes.IndexByte(reply, '\n')+1:]
	for len(rest) > 0 {
		size := 0
		for range bulks {
			end := bytes.IndexByte(rest[size:], '\n')
			if end < 0 || rest[size] != '$' {
				return maphash.Bytes(qs.seed, reply) // not of strings
			}
			n, ok := protocol.ParseInt(rest[size+1 : size+end-1])
			if !ok || n < 0 {
				return maphash.Bytes(qs.seed, reply)
			}
			size += end + 1 + int(n) + len("\r\n")
		}
		sum += maphash.Bytes(qs.seed, rest[:size])
		rest = rest[size:]
	}
	return sum
}

// payload returns a reply as the JSON of a message. It is valid until the next call.
func (qs *queries) payload(reply []byte) []byte {
	qs.to.Reset()
	if reply[0] == ':' { // an integer has the same digits
		qs.to.WriteString(`{"result":`)
		qs.to.Write(bytes.TrimSuffix(reply[1:], []byte("\r\n")))
		qs.to.WriteByte('}')
		return qs.to.Bytes()
	}
	qs.from.Reset(reply)
	if qs.json.R == nil {
		qs.json = replyjson.Transcoder{R: bufio.NewReader(&qs.from), W: bufio.NewWriter(&qs.to)}
	}
	qs.json.R.Reset(&qs.from)
	if err := qs.json.Response(); err != nil {
		panic("BUG: the reply to a live query has no JSON: " + err.Error())
	}
	qs.json.W.Flush()
	return qs.to.Bytes()
}

// changesAt returns the instant at which the reply to a query may change because time passes,
// in microseconds since 1970: at a deadline of one of its keys or their members, which show
// nothing from then on even if nothing removes them, or when a bound that moves reaches
// the next element.
func (srv *Engine) changesAt(q *query, argv [][]byte) int64 {
	at := int64(score.MaxInstant)
	earlier := func(ms int64) {
		if ms < score.MaxInstant/1000-1 {
			at = min(at, max((ms+1)*1000, srv.Turn.Instant+1))
		}
	}
	for _, p := range q.keys {
		if p.key.member != "" {
			continue // the key itself is among them
		}
		e := srv.Keys.DB(p.key.Db).Peek(protocol.BytesOf(p.key.Key))
		if e == nil {
			continue
		}
		if ms := e.Deadline(); ms != 0 {
			earlier(ms)
		}
		switch v := e.Value().(type) {
		case *zset.Set:
			if ms, ok := v.NextDeadline(); ok {
				earlier(ms)
			}
			if q.moving {
				at = min(at, srv.crossing(v, argv[q.names:]))
			}
		case *keyspace.Hash:
			if d := v.Deadlines(); d != nil {
				if e, ok := d.First(); ok {
					earlier(int64(e.Score))
				}
			}
		}
	}
	return at
}

// crossing returns the instant at which the first of the bounds in args that move reaches an
// element of a set, as an upper one that lets it in, or passes it, as a lower one that leaves it
// out.
func (srv *Engine) crossing(s *zset.Set, args [][]byte) int64 {
	at := int64(score.MaxInstant)
	for _, arg := range args {
		x, ok := score.ParseTime(bytes.TrimPrefix(arg, []byte("(")))
		if !ok {
			continue
		}
		now := x.At(srv.Turn.Instant)
		for _, beyond := range []bool{false, true} {
			lo, hi := s.ScoreSpan(zset.ScoreRange{Min: now, MinExclusive: !beyond, Max: math.Inf(1)})
			if lo < hi {
				e, _ := s.At(lo)
				at = min(at, x.Reaches(e.Score, beyond, srv.Turn.Instant))
			}
		}
	}
	return at
}

// noteSlowQuery enters a slow evaluation in the slow log, with the channel of the query.
func (srv *Engine) noteSlowQuery(q *query, took time.Duration) {
	cfg := &srv.Config
	if cfg.SlowlogSlowerThan < 0 || took.Microseconds() < cfg.SlowlogSlowerThan {
		return
	}
	c := &srv.Queries.session.Call
	c.Command, c.Argv, c.secret = q.cmd, [][]byte{protocol.BytesOf(q.name)}, nil
	srv.Stats.Slow.note(c, srv.Turn.At, took.Microseconds(), cfg.SlowlogSlowerThan, cfg.SlowlogMaxLen)
}

// queriesDrained makes the end of the next turn send the messages of a late subscriber, which
// has read its output. The lock is held, perhaps outside of any turn.
func (s *Session) queriesDrained() {
	if s.live == nil || len(s.live.late) == 0 || s.live.drained {
		return
	}
	srv := s.Engine
	s.live.drained = true
	srv.Queries.drained = append(srv.Queries.drained, s)
	if !srv.Timers.TimerStopped {
		srv.Timers.timerAt = srv.Turn.Instant
		srv.Timers.timer.Reset(0)
	}
}

// losesQuery reports whether a user with other rules may not subscribe to a query of the
// session, to which its user is subscribed.
func (s *Session) losesQuery(next *acl.User) bool {
	if s.live == nil {
		return false
	}
	for _, p := range s.live.byName {
		q := p.query
		argv, _ := s.Engine.Queries.read(q)
		d, _ := next.Permits(q.cmd.Access, argv, acl.Selected{ID: int(q.db), Count: s.Engine.Keys.Len()})
		if d != acl.Permitted {
			return true
		}
	}
	return false
}

// check verifies the lists of queries against the sessions.
func (qs *queries) check() error {
	n, positions, named := int64(0), 0, 0
	for _, q := range qs.byName {
		for i, sub := range q.subscribers {
			if p, _ := sub.sess.position(q.name); p.query != q || p.at != i {
				return fmt.Errorf("queries: subscriber %d of %q has position %d", i, q.name, p.at)
			}
		}
		if len(q.subscribers) == 0 {
			return fmt.Errorf("queries: %q has no subscriber", q.name)
		}
		n += int64(len(q.subscribers))
		positions += len(q.keys)
		for _, p := range q.keys {
			if p.key.queries[p.at] != q {
				return fmt.Errorf("queries: %q is not in the list of key %q", q.name, p.key.Key)
			}
		}
		if q.keys[0].key.of != nil {
			named++
		}
	}
	for k, key := range qs.byKey {
		lists := []*queriedKey{key}
		if key.named != nil {
			lists = append(lists, key.named)
		}
		for _, list := range slices.AppendSeq(lists, maps.Values(key.members)) {
			positions -= len(list.queries)
			if len(list.queries) == 0 && (list != key || key.named == nil) || list.marked != slices.Contains(qs.marked, list) || !list.marked && list.left > 0 {
				return fmt.Errorf("queries: key %q, member %q, has %d queries, and is marked: %t", k.Key, list.member, len(list.queries), list.marked)
			}
		}
	}
	if n != qs.Subscriptions || positions != 0 || named != qs.named {
		return fmt.Errorf("queries: there are %d subscriptions, counted %d, and %d that name members, counted %d; keys have %d more queries", n, qs.Subscriptions, named, qs.named, -positions)
	}
	return nil
}

// IsQuery reports whether the name of a channel is a live query.
func IsQuery(name []byte) bool { return strings.HasPrefix(protocol.View(name), queryPrefix) }
