//go:build race

package rerun

// Race says whether the race detector is on. It allocates, and makes a test ten times as slow.
const Race = true
