// Package remote describes other servers and clusters: their addresses, as the tool migrate and
// the parameter forward-to take them, and requests to the one to which the data have moved, which
// package engine makes and package forward sends. It opens no connections.
package remote
