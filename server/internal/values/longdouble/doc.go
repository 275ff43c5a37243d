// Package longdouble parses, adds and formats numbers as INCRBYFLOAT and HINCRBYFLOAT
// do: Redis computes them in C's long double, which on x86-64 has a significand of 64
// bits, and prints 17 digits after the point. The arithmetic is math/big's.
package longdouble
