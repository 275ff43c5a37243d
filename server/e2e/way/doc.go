// Command way prints the way of one ZADD through the server: the packages, from the top
// of the import graph to its bottom, with their files and the number of functions that
// the command enters. "make way" runs it.
//
//	go run -cover -covermode atomic -coverpkg github.com/zsetd/zsetd/... ./way
//
// It serves a client in its own process, which is built with coverage counters. It sets
// them to zero once the client is connected and has run the command before, and reads
// them when the reply has arrived. Counters have no order in time, so the order of
// packages is that of imports.
package main
