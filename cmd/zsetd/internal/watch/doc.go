// Package watch is the tool stat: it reads INFO of a running server again and
// again, and prints what changed in between.
package watch
