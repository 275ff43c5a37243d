// Package stream has the handlers of the stream commands: entries (stream.go), XREAD and
// XREADGROUP (read.go), consumer groups (group.go) and XINFO (info.go). The value is
// sequence.Stream. Handlers follow the rules of package data.
package stream
