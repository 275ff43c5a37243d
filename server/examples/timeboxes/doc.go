// Command timeboxes counts hits in intervals of two seconds, and keeps the last 30 of them. Each open page
// draws them as bars, which move as time passes.
//
//	go run ./server/examples/timeboxes
package main
