//go:build !zsetd_net

package config

// defaultTransport is the default of the parameter transport.
const defaultTransport = "epoll"
