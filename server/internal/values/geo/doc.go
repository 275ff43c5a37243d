// Package geo encodes points on the earth as scores of a sorted set, and searches
// for the points in a circle or a box.
//
// A score is a geohash (Gustavo Niemeyer, geohash.org, 2008) of 52 bits: longitude and
// latitude, each bisected 26 times, with their bits interleaved (G. M. Morton, "A
// computer oriented geodetic data base", 1966). Points that share the first 2n bits
// are in the same cell, so a cell is a range of scores. A search examines a cell of
// about the size of the shape and its eight neighbours.
//
// Cells, their order and the arithmetic equal those of Redis, so scores, the order of
// results and the digits of distances are the same. The sines of C and Go differ
// occasionally in the last bit; see sin.go.
package geo
