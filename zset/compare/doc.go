// Package compare is a benchmark of zset beside the best-known ordered set for
// Go, in a module of its own, so that nobody who imports zset inherits it:
//
//	cd zset/compare && go test -bench . -benchtime 1s -count 6 | benchstat -col /impl -
//
// At a million members, two cores, Go 1.26, nanoseconds of processor time for one
// operation, means of two in one run on a busy machine, and bytes of the heap for
// each member, those of the member (14 bytes) included:
//
//	           zsetd  bytedance  times
//	Add         2755       8013    2.9
//	Update      2705      14435    5.3
//	Rank        1670       7090    4.2
//	RangeOf10   2082       9743    4.7
//	Score        461        615    1.3
//	Memory        48        185    3.9
package compare
