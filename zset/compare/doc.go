// Package compare is a benchmark of zset beside the best-known ordered set for
// Go, in a module of its own, so that nobody who imports zset inherits it:
//
//	cd zset/compare && go test -bench . -benchtime 1s -count 6 | benchstat -col /impl -
//
// At a million members, two cores, Go 1.26, nanoseconds for one operation, medians
// of three in one run on a machine that was not idle:
//
//	           zsetd  bytedance  times faster
//	Add         1832       5717           3.1
//	Update      3140       9367           3.0
//	Rank        1486       5251           3.5
//	RangeOf10   1600       6840           4.3
//	Score        391        416           1.1
package compare
