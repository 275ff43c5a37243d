// Package metrics counts what the server does, for INFO, LATENCY, HOTKEYS and CLUSTER
// SLOT-STATS. It knows neither commands nor clients.
//
//	histogram.go              durations in buckets of logarithmic width: a percentile has a bounded error
//	latencylog.go             the longest duration of each kind of event, by second
//	latencygraph.go           these as LATENCY GRAPH draws them
//	hotkeys.go, top.go        the keys that take the most processor time or bytes of the network
//	slotstats.go              processor time and bytes by cluster slot
//	text.go                   the text of INFO: sections, fields, numbers in readable form
//
// Nothing here is safe for concurrent use unless its comment says so: the server's lock
// protects it.
package metrics
