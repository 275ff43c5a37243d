// Package slotindex has an index of keys by cluster slot, for the commands of a cluster
// that count and list the keys of a slot. It knows neither values nor how a slot is
// computed.
package slotindex
