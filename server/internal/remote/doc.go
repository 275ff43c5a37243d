// Package remote describes requests to another server, to which the data have moved:
// package engine makes them, and package forward sends them.
package remote
