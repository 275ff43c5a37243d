// Package subscription is the table of publish/subscribe: channels, patterns and sharded
// channels with their subscribers. It knows neither messages nor how they are delivered.
//
//	Table   topic ─► name ─► list of subscribers, in no order
//	                              ▲
//	Names   topic ─► name ─► position in that list      (of one subscriber)
//
// The list makes a delivery a loop over a slice. A map instead of the list doubles the time
// of a delivery up to the write to the socket, because its iteration takes as long as all
// other steps. The position makes an unsubscription O(1): the last subscriber of the list
// takes the place that becomes free.
//
// Nothing in the package may be called concurrently.
package subscription
