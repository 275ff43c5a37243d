// Package geo has points on the earth, as scores of a sorted set, and the search for
// those in a circle or a box.
//
// A score is a geohash of 52 bits: longitude and latitude, each cut in halves 26
// times, their bits interleaved. Points that share the first 2n bits lie in the
// same cell, and a cell is a range of scores. A search looks at a cell that is about as large
// as what is searched, and at its eight neighbours.
//
// Cells, their order and the arithmetic are those of Redis (geohash.c,
// geohash_helper.c), so that scores, the order of what is found and the digits of
// distances are the same. The sines of C and Go differ in the last bit now and then;
// see sin.
package geo
