//go:build race

package server

// underRace says that the race detector is on: it allocates, too.
const underRace = true
