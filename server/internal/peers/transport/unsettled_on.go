//go:build zsetd_unsettled

package transport

// unsettled is the default of loops.unsettled in "make test-unsettled", which runs tests while
// clients go from loop to loop.
const unsettled = true
