// Command waitinglist has a room with two places. Each page that is open waits in line, sees its place, and
// moves up when another one closes. A page follows its own place only: its link is signed.
//
//	go run ./server/examples/waitinglist
package main
