//go:build !linux

package main

// releaseProgram does nothing: where it is not Linux, the system decides which pages of the
// program stay mapped.
func releaseProgram() {}
