package transport

import "unsafe"

// lines prefetches n cache lines, at least one, from p on.
//
//go:noescape
func lines(p unsafe.Pointer, n int)
