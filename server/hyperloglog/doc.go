// Package hyperloglog estimates how many different elements were seen, with a
// standard error of 0.81 %, in strings that are byte for byte those of Redis:
// the same elements in the same order give the same string.
//
// A string is a header of 16 bytes and 16384 registers. The hash of an element
// chooses a register, which keeps the longest run of zeros among the other bits of
// the hash that it has seen, plus one.
//
//	header = "HYLL" encoding(1) 0 0 0 cardinality(8)
//
// The cardinality, little endian, is the estimate that was computed last; its
// highest bit says that it is out of date.
//
// The dense encoding (0) has registers of 6 bits, the first in the lowest bits
// of the first byte. The sparse one (1) has runs of equal registers:
//
//	00nnnnnn           n+1 registers that are 0
//	01nnnnnn nnnnnnnn  n+1 registers that are 0
//	1vvvvvnn           n+1 registers that are v+1
//
// A sparse string becomes dense, for good, when it grows beyond a limit or a
// register beyond 32.
//
// The estimator is the one of Otmar Ertl, "New cardinality estimation algorithms for
// HyperLogLog sketches", arXiv:1702.01284; the hash is MurmurHash64A of Austin
// Appleby. What has to be as in Redis was learnt from hyperloglog.c there.
package hyperloglog
