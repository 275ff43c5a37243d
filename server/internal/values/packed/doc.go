// Package packed stores byte strings in one slice, without a pointer for each. It has two
// framings:
//
//   - a text (text.go) has its length before it. Small hashes and sets are texts;
//   - an element (packed.go) has its length at both ends, so that a slice can be walked
//     backward. Lists and streams are elements.
//
// One framing with both lengths would make a small hash or set a byte a text larger,
// and they are the values of which there are most: the texts of an embedded hash of 10
// short pairs take 20 bytes of framing instead of 40. Both are formats in memory:
// package journal has that of the file.
//
// Integers of a small set have 2, 4 or 8 bytes each (integer.go).
//
// The package also has the sizes of listpacks of Redis, which decide when a value has
// another encoding, and the sizes of Go's allocations. Its functions have no state. They
// panic on slices that they did not write.
package packed
