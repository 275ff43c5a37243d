// Package compare benchmarks zset against the most widely used sorted set for Go.
// It is a module of its own, so that importers of zset do not depend on the other
// set:
//
//	cd zset/compare && go test -bench . -benchtime 1s -count 6 | benchstat -col /impl -
//
// Results at a million members, on two cores with Go 1.26: nanoseconds of processor
// time for each operation, means of two samples of one run on a busy machine; and
// heap bytes for each member, including the member's 14 bytes:
//
//	           zsetd  bytedance  times
//	Add         2755       8013    2.9
//	Update      2705      14435    5.3
//	Rank        1670       7090    4.2
//	RangeOf10   2082       9743    4.7
//	Score        461        615    1.3
//	Memory        48        185    3.9
package compare
