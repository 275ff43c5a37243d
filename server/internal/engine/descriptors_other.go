//go:build !unix

package engine

import "math"

// maxDescriptors returns the limit of open files of the process: this system has
// none.
func maxDescriptors() int64 { return math.MaxInt64 }
