//go:build linux

package main

import (
	"math/bits"
	"time"
)

// A histogram counts durations in buckets that are 1/64 as wide as what is in
// them, so that a quantile is right to 1.6 %, up to more than a minute.
type histogram struct {
	counts [33 * fineness]uint64
	n      uint64
}

const fineness = 64 // buckets for each power of two

// bucketOf returns the bucket of a number of nanoseconds: those below 64 have
// one each, and of greater numbers the first seven bits say which it is.
func bucketOf(ns uint64) int {
	if ns < fineness {
		return int(ns)
	}
	shift := bits.Len64(ns) - 7
	return min((shift+1)*fineness+int(ns>>shift)-fineness, 33*fineness-1)
}

// highest returns the greatest number of nanoseconds of a bucket.
func highest(bucket int) uint64 {
	if bucket < fineness {
		return uint64(bucket)
	}
	shift := bucket/fineness - 1
	return uint64(bucket%fineness+fineness+1)<<shift - 1
}

func (h *histogram) add(d time.Duration) {
	h.counts[bucketOf(uint64(max(d, 0)))]++
	h.n++
}

func (h *histogram) merge(o *histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
	h.n += o.n
}

// quantile returns a duration that the part q of all do not exceed; 0 without
// any.
func (h *histogram) quantile(q float64) time.Duration {
	rank := uint64(q * float64(h.n))
	var below uint64
	for i, n := range h.counts {
		below += n
		if n > 0 && (below > rank || below == h.n) {
			return time.Duration(highest(i))
		}
	}
	return 0
}
