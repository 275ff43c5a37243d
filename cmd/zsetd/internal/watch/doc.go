// Package watch is the tools stat and top: it reads INFO of a running server again and
// again, and prints what changed in between.
package watch
