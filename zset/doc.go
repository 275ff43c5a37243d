// Package zset is an ordered set: unique members with scores, ordered by (score,
// member), as Redis's sorted sets are. It is made for embedding and knows nothing of
// Redis.
//
//	var scores zset.Set // the zero value is ready
//	scores.Add("ann", 1050)
//	scores.Add("ben", 800)
//	rank, _ := scores.RevRank("ben") // 1
//
// # Ranges
//
// Every range, be it of ranks, of scores or of members, is first turned into a span
// of ranks, [lo, hi), in O(log n): [Set.RankSpan], [Set.ScoreSpan], [Set.LexSpan]. So
// counting is a subtraction, an offset and a limit are arithmetic, and whatever can
// be done to a range is done to a span: [Set.Span], [Set.SpanBackward],
// [Set.RemoveSpan]. ByScore, CountScore, RemoveScore and their like say both in one.
//
// # Scores
//
// A score is a float64. NaN is refused ([NotANumber]) and never stored. -Inf and +Inf
// are scores like others. -0 equals 0: members with the one and the other are ordered
// by member, and a score of 0 is not replaced by -0.
//
// # Time
//
// A set looks at no clock. Members may have deadlines ([Set.SetDeadline]), in whatever
// unit; [Set.Expire] is told the time and removes those that are past theirs, and
// [Set.NextDeadline] says when it has something to do again. With times as scores a
// set is a queue of what is due: [Set.PopScoreMin] takes it, [Set.Claim] leases it, and
// [Set.RemoveIf] acknowledges.
//
// # Clones and concurrency
//
// [Set.Clone] takes constant time: both sets share everything, block by block, until
// one of them changes it. Chunks of members are shared for good. Any number of
// goroutines may read a set that nobody
// changes. Clone counts as a change of the original; afterwards either set may be read
// and changed without regard to the other, in different goroutines.
//
// # What it is made of
//
// Up to 128 elements with members of up to 64 bytes are packed into one allocation
// (few.go): 5 elements with members of 8 bytes take 136 bytes with the Set itself, 100
// take 21 each. All but additions change it without allocating, and so do most of
// those.
//
// What is larger is a hash table from member to score (index.go), and blocks of up to
// 128 elements in order, which are found through two levels of groups that know how
// many elements they have, for ranks (block.go, order.go, many.go). Both name members
// by 32 bits: their bytes are in chunks, one after the other (arena.go). So a large
// set takes about 33 bytes for each element, and those of the member and up to four
// more once: 52 in all for members of 16 bytes, and 65 or less after churn. The
// garbage collector finds no pointers in it but those to blocks and pages. Each file
// says what was rejected and by which figures.
//
// A member that a set hands out is a string like any other, and may be kept: its
// bytes are never overwritten. It is a part of memory that the set shares with it, and
// so keeps that from being freed when the set no longer needs it: with a packed set
// all of it, which is 12 KB at most, with a large one a chunk of 64 KB or less. Who
// keeps few members of many for long does well to keep strings.Clone of them.
//
// Members are strings, not a type parameter: hashing a string costs 11 ns through
// maphash.String and 17 through maphash.Comparable, on the way of every lookup, and
// only the bytes of strings can be packed.
//
// The benchmark in the module compare stands beside another ordered set, in the same
// run.
package zset
