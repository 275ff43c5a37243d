//go:build !zsetd_unsettled

package transport

// unsettled is the default of loops.unsettled.
const unsettled = false
