package zset

import (
	"iter"
	"math"
	"time"
)

// Scorer is the constraint of the scores of a [Map]. Integers and durations are exact up to 2^53,
// as a float64 is. A time is kept as the seconds since 1970, to the microsecond until the year 2242,
// as @now is in a server; it is returned in time.Local.
type Scorer interface {
	int | int64 | float64 | time.Duration | time.Time
}

// Map is a [Set] whose members and scores have types of a program: users by points, jobs by the time
// at which they are due. The zero value is empty and ready to use; it is not copied. Its methods are
// those of the set, which has more of them: see Set. Concurrent reads are safe, a write needs exclusive
// access.
type Map[K ~string, S Scorer] struct{ set Set }

// Set returns the set behind the map, for what the map has no methods for. Changes of one are
// changes of the other.
func (m *Map[K, S]) Set() *Set { return &m.set }

// Len returns the number of members. O(1).
func (m *Map[K, S]) Len() int { return m.set.Len() }

// Put sets the score of a member, which is new or not, and reports whether it is new. A float that is
// not a number changes nothing. O(log n).
func (m *Map[K, S]) Put(member K, score S) (added bool) {
	return m.set.Add(string(member), floatOf(score)) == Added
}

// Get returns the score of a member. O(1).
func (m *Map[K, S]) Get(member K) (score S, ok bool) {
	x, ok := m.set.Score(string(member))
	if !ok {
		return score, false
	}
	return scoreOf[S](x), true
}

// Contains reports whether there is such a member. O(1).
func (m *Map[K, S]) Contains(member K) bool { return m.set.Contains(string(member)) }

// Delete removes a member, and reports whether it was there. O(log n).
func (m *Map[K, S]) Delete(member K) bool {
	_, ok := m.set.Remove(string(member))
	return ok
}

// Rank returns the number of members before this one. O(log n).
func (m *Map[K, S]) Rank(member K) (rank int, ok bool) { return m.set.Rank(string(member)) }

// All iterates over the members in ascending order of their scores, those with equal scores by their
// bytes. The map must not be changed meanwhile.
func (m *Map[K, S]) All() iter.Seq2[K, S] { return typed[K, S](m.set.All()) }

// Backward is All in descending order.
func (m *Map[K, S]) Backward() iter.Seq2[K, S] { return typed[K, S](m.set.Backward()) }

// Between iterates over the members whose scores are at least from and less than to, in ascending
// order. O(log n), then O(1) for each. The map must not be changed meanwhile.
func (m *Map[K, S]) Between(from, to S) iter.Seq2[K, S] {
	return typed[K, S](m.set.ByScore(HalfOpen(floatOf(from), floatOf(to))))
}

// PopBefore removes and returns the member with the lowest score, if that is less than the bound. It
// takes the next job of a queue by time. O(log n).
func (m *Map[K, S]) PopBefore(bound S) (member K, score S, ok bool) {
	first := m.set.PopScoreMin(HalfOpen(math.Inf(-1), floatOf(bound)), 1)
	if len(first) == 0 {
		return member, score, false
	}
	return K(first[0].Member), scoreOf[S](first[0].Score), true
}

// typed converts the elements of an iteration.
func typed[K ~string, S Scorer](elements iter.Seq2[string, float64]) iter.Seq2[K, S] {
	return func(yield func(K, S) bool) {
		for member, score := range elements {
			if !yield(K(member), scoreOf[S](score)) {
				return
			}
		}
	}
}

// floatOf returns the score that a set keeps for a value.
func floatOf[S Scorer](score S) float64 {
	switch v := any(score).(type) {
	case int:
		return float64(v)
	case int64:
		return float64(v)
	case time.Duration:
		return float64(v)
	case time.Time:
		return float64(v.UnixMicro()) / 1e6
	}
	return any(score).(float64)
}

// scoreOf returns the value whose number is x.
func scoreOf[S Scorer](x float64) (score S) {
	switch p := any(&score).(type) {
	case *int:
		*p = int(x)
	case *int64:
		*p = int64(x)
	case *time.Duration:
		*p = time.Duration(x)
	case *time.Time:
		*p = time.UnixMicro(int64(math.Round(x * 1e6)))
	case *float64:
		*p = x
	}
	return score
}
