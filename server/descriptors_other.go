//go:build !unix

package server

import "math"

// maxDescriptors returns how many files the process may have open: there is no limit.
func maxDescriptors() int64 { return math.MaxInt64 }
