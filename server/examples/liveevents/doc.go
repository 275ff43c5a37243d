// Command liveevents is a page of events that last 20 seconds. Each open page removes an event at that
// instant, and all show how many pages are open.
//
//	go run ./server/examples/liveevents
package main
