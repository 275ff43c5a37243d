//go:build !unix

package process

import "math"

// MaxDescriptors returns the limit of open files of the process: this system has
// none.
func MaxDescriptors() int64 { return math.MaxInt64 }
