//go:build !zsetd_net

package rerun

// otherTransport says whether the default of the parameter transport is another than
// usual.
const otherTransport = false
