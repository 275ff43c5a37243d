// Command folder makes one notice of the likes of a photo, five seconds after the first of them. No like is
// lost when the program ends in the middle, if it keeps its data in a file.
//
//	go run ./server/examples/folder
package main
