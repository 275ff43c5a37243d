//go:build zsetd_net

package config

// defaultTransport is the default of the parameter transport in "make test-net", which
// runs tests with the transport that Linux does not use for plain sockets.
const defaultTransport = "net"
