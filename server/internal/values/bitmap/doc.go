// Package bitmap computes with bits in byte slices, as the bitmap commands of Redis do: bit
// 0 is the highest bit of the first byte. It combines, counts and finds bits eight bytes at
// a time, and reads and writes integers of any width ([Field]).
package bitmap
