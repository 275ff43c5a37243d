// Package zset provides a sorted set: unique members (strings) with scores
// (float64), ordered by (score, member) as in Redis. It is made for embedding and
// does not depend on Redis.
//
//	var scores zset.Set // the zero value is ready
//	scores.Add("ann", 1050)
//	scores.Add("ben", 800)
//	rank, _ := scores.RevRank("ben") // 1
//
// # Ranges
//
// A span is a half-open interval of ranks, [lo, hi). Every range query (by rank, by
// score, by member) first becomes a span in O(log n): [Set.RankSpan],
// [Set.ScoreSpan], [Set.LexSpan]. Counting is then a subtraction, and offset and
// limit are additions. A span is iterated or removed with [Set.Span],
// [Set.SpanBackward] and [Set.RemoveSpan]. ByScore, CountScore, RemoveScore and the
// like combine both steps.
//
// # Scores
//
// A score is a float64. NaN is rejected ([NotANumber]) and never stored. -Inf and
// +Inf are ordinary scores. -0 equals 0: elements with either score are ordered by
// member, and -0 does not replace a score of 0.
//
// # Time
//
// A set reads no clock. Members may have deadlines ([Set.SetDeadline]) in any unit.
// [Set.Expire] takes the current time and removes the members whose deadlines have
// passed; [Set.NextDeadline] returns the time at which Expire next removes a
// member. With timestamps as scores a set is a priority queue of due work:
// [Set.PopScoreMin] removes due elements, [Set.Claim] leases them, and
// [Set.RemoveIf] acknowledges a lease.
//
// # Readers that stay right
//
// A program that shows part of a set, such as the ten highest elements, asks [Set.Track] for the
// range of the scores that changes touch: if it has no score that the part depends on, the part
// is as before. [Set.Places] finds the ranks of many members at once.
//
// # Clones and concurrency
//
// [Set.Clone] takes constant time. The two sets share their leaves, pages and
// chunks copy-on-write; chunks of member bytes are append-only and stay shared. Any
// number of goroutines may read a set that no goroutine modifies. Clone counts as a
// modification of the original; afterwards different goroutines may read and modify
// the two sets without synchronization.
//
// # Representations
//
// A packed set is one allocation (packed.go). It holds up to 128 elements with
// members of up to 64 bytes: with members of 8 bytes, 5 elements take 104 bytes
// including the Set, which is one pointer (form.go), and 100 elements take 18 bytes each,
// if all scores are integers of 32 bits; 120 and 21 bytes with other scores. Only additions
// can allocate, and most do not.
//
// An indexed set (indexed.go) combines two structures: a hash table from member to
// score (index.go), and a B+ tree with element counts for ranks (order.go, leaf.go).
// The root of the tree is a B-tree of github.com/tidwall/btree (root.go), the only
// module that zset imports. Both structures refer to members by 32-bit references
// into an append-only arena (arena.go). An element takes about 33 bytes in the two
// structures, plus the member and up to four bytes once in the arena: 52 bytes for
// members of 16 bytes, and 65 bytes or less under churn. The garbage collector scans
// only pointers to leaves, pages and chunks. Each file gives its invariants, and the
// rejected alternatives with their measurements.
//
// A member that a set returns is an ordinary string and stays valid, because the bytes of a
// member that was returned are never overwritten. It shares memory with the set, so a retained string
// retains its buffer: the whole packed set, at most 12 KB, or one chunk of an
// indexed set, usually 64 KB or less. A program that retains few members out of
// many should retain strings.Clone of them.
//
// Members are strings instead of a type parameter: hashing a string costs 11 ns
// with maphash.String and 17 ns with maphash.Comparable, in every lookup, and only
// strings can be packed.
//
// Package compare, a module of its own, benchmarks Set against another ordered set.
package zset
