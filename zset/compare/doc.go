// Package compare is a benchmark of zset beside the best-known ordered set for
// Go, in a module of its own, so that nobody who imports zset inherits it:
//
//	cd zset/compare && go test -bench . -benchtime 2s
package compare
