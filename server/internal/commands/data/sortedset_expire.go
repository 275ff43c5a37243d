package data

import (
	"math"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/base/process"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/values/score"
	"github.com/zsetd/zsetd/zset"
)

// SortedSetExpireCommands are the commands for deadlines of members (see
// memberttl.go), and the command that adds members with deadlines, limits the
// length of a set and assigns tickets.
func SortedSetExpireCommands() []engine.Command {
	rows := append(memberTTLCommands("z", "sorted-set", process.ExtensionVersion, "members of a sorted set", timedSortedSet),
		engine.Command{Facts: protocol.Facts{
			Name: "zaddex", Arity: -4, Flags: "write denyoom fast", Keys: "1 RW access update",
			Group: "sorted-set", Since: process.ExtensionVersion,
			Complexity: "O((M + T) log N), M members given, T trimmed, N members of the sorted set",
			Summary:    "Add members with scores, with a time to live, a maximum length, or tickets for scores",
			Syntax: "key condition:[NX|XX] comparison:[GT|LT] [change:CH] [increment:INCR] " +
				"expiration:[EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL] [ENX] " +
				"[MAXLEN length:(count end:[MIN|MAX] [REJECT])] " +
				"elements:(score member | MEMBERS members:(nummembers:integer score member [score member ...]))",
		}, Run: zaddex},
	)
	for i := range rows {
		rows[i].Function = true
	}
	return rows
}

// zaddexOptions are the options of ZADDEX.
type zaddexOptions struct {
	zaddOptions
	memberExpiry
	enx    bool // set a deadline only for members that have none
	maxLen int64
	fromHi bool // trim the highest
	reject bool // add nothing rather than trim
}

func (o *zaddexOptions) read(c *engine.Call) {
	o.maxLen = math.MaxInt64
	for {
		before := c.Len()
		o.zaddOptions.read(c)
		switch {
		case o.memberExpiry.option(c, "KEEPTTL"):
		case c.Is("ENX"):
			o.enx = true
		case c.Len() > 1 && c.Is("MAXLEN"):
			o.maxLen = c.IntIn(1, math.MaxInt64, "ERR MAXLEN must be a positive integer")
			if !c.Is("MIN") && c.Is("MAX") {
				o.fromHi = true
			}
			o.reject = c.Is("REJECT")
		}
		if c.Len() == before || c.Err() != "" {
			return
		}
	}
}

// pairs reads the scores and members: one pair, or MEMBERS and how many follow.
func (o *zaddexOptions) pairs(c *engine.Call) [][]byte {
	k := timedSortedSet()
	if c.Err() == "" && c.Len() == 2 && !protocol.EqualFold(c.Peek(0), k.keyword) {
		return c.Rest()
	}
	k.keywordArg(c)
	return k.countedArgs(c, k.tooFew(), 2)
}

// scoreOrTicket reads a score; a ticket is NaN, which is not a valid score.
func scoreOrTicket(c *engine.Call, b []byte) (float64, bool) {
	if string(b) == score.Ticket {
		return math.NaN(), true
	}
	return c.Score(b)
}

func zaddex(c *engine.Call) {
	key := c.Bytes()
	var o zaddexOptions
	o.read(c)
	pairs := o.pairs(c)
	o.zaddOptions.validate(c, pairs)
	if o.enx && !o.set {
		c.Fail("ERR ENX needs one of EX, PX, EXAT and PXAT")
	}
	number, not := func(a0 []byte) (float64, bool) { return scoreOrTicket(c, a0) }, score.NotFloat
	if o.incr {
		number, not = protocol.ParseFloat, score.NotIncrement
	}
	scores := c.Numbers(make([]float64, 0, 16), pairs, number, not)
	if !c.OK() {
		return
	}
	open := engine.Create[zset.Set]
	if o.has(zset.XX) {
		open = engine.Edit[zset.Set]
	}
	s, ok := open(c, key)
	if !ok {
		return
	}
	var done zaddexDone
	if s != nil {
		done = o.add(c, s, pairs, scores)
	}
	done.notify(c, key, &o)
	switch {
	case done.nan:
		c.Reply.Error(ErrScoreNaN)
	case done.full, o.incr && !done.counted:
		c.Reply.Null()
	case o.incr:
		c.Reply.Double(done.score)
	case o.ch:
		c.Reply.Int(done.added + done.updated)
	default:
		c.Reply.Int(done.added)
	}
}

// zaddexDone is the result of a ZADDEX.
type zaddexDone struct {
	added, updated int64
	scored         [][]byte // members that are new, have another score, or have lost their deadline
	timed          [][]byte // members that have got deadlines
	removed        [][]byte // members whose deadline is in the past
	trimmed        [][]byte
	full           bool    // members were not added because the set is full
	counted        bool    // INCR was done
	score          float64 // the result of INCR
	nan            bool
}

// add applies a ZADDEX to a set.
func (o *zaddexOptions) add(c *engine.Call, s *zset.Set, pairs [][]byte, scores []float64) (done zaddexDone) {
	if o.reject {
		done.full = o.lacksRoom(s, pairs)
	}
	for i, score := range scores {
		member := pairs[2*i+1]
		_, there := s.Internal().Score(member)
		if !there && done.full {
			continue
		}
		if math.IsNaN(score) {
			score = o.ticket(s, member)
		}
		had, _ := s.DeadlineBytes(member)
		if o.past(c) && !(o.enx && had != 0) {
			if there && o.admits(s, member, score) {
				s.Internal().Remove(member)
				done.removed = append(done.removed, member)
			}
			continue
		}
		outcome := o.put(c, s, member, score, &done)
		switch outcome {
		case zset.Added:
			done.added++
			done.scored = append(done.scored, member)
		case zset.Updated:
			done.updated++
			done.scored = append(done.scored, member)
		case zset.Rejected, zset.NotANumber:
			continue
		}
		switch {
		case o.set && (!o.enx || had == 0):
			s.SetDeadlineBytes(member, o.deadline)
			if had != o.deadline {
				done.timed = append(done.timed, member)
			}
		case !o.set && !o.keep && !o.incr && had != 0:
			s.SetDeadlineBytes(member, 0)
			done.scored = append(done.scored, member)
		}
	}
	if over := int64(s.Len()) - o.maxLen; over > 0 && !o.reject && !done.nan {
		lo, hi := 0, int(over)
		if o.fromHi {
			lo, hi = s.Len()-int(over), s.Len()
		}
		for member := range s.Span(lo, hi) {
			done.trimmed = append(done.trimmed, []byte(member))
		}
		s.RemoveSpan(lo, hi)
	}
	return done
}

// put gives a member its score.
func (o *zaddexOptions) put(c *engine.Call, s *zset.Set, member []byte, score float64, done *zaddexDone) (outcome zset.Outcome) {
	if !o.incr {
		return c.Limits().AddSorted(s, member, score, o.cond)
	}
	outcome, done.score = c.Limits().IncrSorted(s, member, score, o.cond)
	done.nan = outcome == zset.NotANumber && !o.has(zset.NX)
	done.counted = outcome != zset.Rejected && outcome != zset.NotANumber
	return outcome
}

// admits reports whether the conditions allow a member of s to get a score, or to
// be incremented by it.
func (o *zaddexOptions) admits(s *zset.Set, member []byte, score float64) bool {
	old, _ := s.Internal().Score(member)
	if o.incr {
		score += old
	}
	return !o.has(zset.NX) && !(o.has(zset.GT) && score <= old) && !(o.has(zset.LT) && score >= old)
}

// lacksRoom reports whether the new members do not all fit in.
func (o *zaddexOptions) lacksRoom(s *zset.Set, pairs [][]byte) bool {
	fresh := map[string]struct{}{}
	for i := 1; i < len(pairs); i += 2 {
		if _, there := s.Internal().Score(pairs[i]); !there {
			fresh[string(pairs[i])] = struct{}{}
		}
	}
	return !o.has(zset.XX) && len(fresh) > 0 && int64(s.Len()+len(fresh)) > o.maxLen
}

// ticket returns the score of a member that draws a ticket: the highest plus one,
// or 1. A member that is in the set keeps its score, except with XX, which moves it
// to the end.
func (o *zaddexOptions) ticket(s *zset.Set, member []byte) float64 {
	if score, there := s.Internal().Score(member); there && !o.has(zset.XX) {
		return score
	}
	if last, ok := s.Last(); ok {
		return last.Score + 1
	}
	return 1
}

// notify calls Touched and Changed for the changes.
func (done *zaddexDone) notify(c *engine.Call, key []byte, o *zaddexOptions) {
	event := "zadd"
	if o.incr {
		event = "zincr"
	}
	changedMembers(c, key, engine.ClassZset, event, done.scored)
	changedMembers(c, key, engine.ClassZset, "zexpire", done.timed)
	changedMembers(c, key, engine.ClassZset, "zrem", done.removed)
	changedMembers(c, key, engine.ClassZset, "zremrangebyrank", done.trimmed)
}
