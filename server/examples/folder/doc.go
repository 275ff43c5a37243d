// Command folder makes one notice of the likes of a photo, five seconds after the first of them. The worker
// claims a photo before it writes the notice: an error in between loses no like, and the photo is due again.
//
//	go run ./server/examples/folder
package main
