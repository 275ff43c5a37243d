package keyspace

import (
	"math"
	"strings"

	"github.com/zsetd/zsetd/zset"
)

// The encoding that Redis would use for a sorted set. A small set is a listpack until a
// member is too long or one too many, or SORT reads it, and then remains a skiplist; but
// one that is stored as a whole, loaded or restored is a listpack again if it fits. The
// mark of the zset.Set records that it is a skiplist. Clients see more of a listpack than
// its name: it stores integers without the sign of -0.

// IsListpack reports whether Redis would keep a sorted set as a listpack.
func IsListpack(s *zset.Set) bool { return !s.Internal().Marked() }

// MakeSkiplist makes a sorted set a skiplist.
func MakeSkiplist(s *zset.Set) { s.Internal().SetMark(true) }

// AddSorted is s.AddIfBytes, with the encoding of the sorted set.
func (l *Limits) AddSorted(s *zset.Set, member []byte, score float64, cond zset.Cond) zset.Outcome {
	outcome, _ := s.Internal().AddIf(member, l.storedScore(s, member, score), cond)
	if outcome == zset.Added {
		l.added(s, member)
	}
	return outcome
}

// IncrSorted is s.IncrBytes, with the encoding of the sorted set.
func (l *Limits) IncrSorted(s *zset.Set, member []byte, delta float64, cond zset.Cond) (zset.Outcome, float64) {
	outcome, score := s.Internal().Incr(member, l.storedScore(s, member, delta), cond)
	if outcome == zset.Added {
		l.added(s, member)
	}
	return outcome, score
}

// storedScore returns score without the sign of -0 if s stores it in a listpack.
func (l *Limits) storedScore(s *zset.Set, member []byte, score float64) float64 {
	if score != 0 || !math.Signbit(score) {
		return score
	}
	_, exists := s.Internal().Score(member)
	if IsListpack(s) && (exists || s.Len() < l.ZsetMaxListpackEntries && len(member) <= l.ZsetMaxListpackValue) {
		return 0
	}
	return score
}

// added makes s a skiplist if its new member exceeds the limits of a listpack. The lock of the
// server guards reads of s, too, except those of clones.
func (l *Limits) added(s *zset.Set, member []byte) {
	s.Internal().Reuse()
	if s.Len() > l.ZsetMaxListpackEntries || len(member) > l.ZsetMaxListpackValue {
		MakeSkiplist(s)
	}
}

// GrowSorted allocates the memory for the members of pairs that a small set lacks: pairs
// has each member behind the text of its score.
func (l *Limits) GrowSorted(s *zset.Set, scores []float64, pairs [][]byte) {
	if len(scores) == 1 || s.Len()+len(scores) > l.ZsetMaxListpackEntries {
		return
	}
	n, size := 0, 0
	for i := range scores {
		member := pairs[2*i+1]
		if _, there := s.Internal().Score(member); !there {
			n, size = n+1, size+len(member)
		}
	}
	s.Internal().Grow(n, size, scores)
}

// FitSorted makes a sorted set a listpack if the limits allow one, and else a skiplist.
func (l *Limits) FitSorted(s *zset.Set) {
	fits := l.SortedFits(s)
	if fits {
		dropSigns(s)
	}
	s.Internal().SetMark(!fits)
}

// SortedFits reports whether the limits allow a listpack for a sorted set.
func (l *Limits) SortedFits(s *zset.Set) bool {
	if s.Len() > l.ZsetMaxListpackEntries {
		return false
	}
	for member := range s.All() {
		if len(member) > l.ZsetMaxListpackValue {
			return false
		}
	}
	return true
}

// dropSigns makes every -0 a 0.
func dropSigns(s *zset.Set) {
	var members []string
	for member, score := range s.ByScore(zset.ScoreRange{}) {
		if math.Signbit(score) {
			members = append(members, strings.Clone(member))
		}
	}
	for _, member := range members {
		deadline, _ := s.Deadline(member)
		s.Remove(member)
		s.Add(member, 0)
		if deadline != 0 {
			s.SetDeadline(member, deadline)
		}
	}
}
