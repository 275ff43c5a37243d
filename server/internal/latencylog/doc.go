// Package latencylog keeps how long events have taken at worst, one sample a second, for the
// LATENCY command. It does not know what the events are.
package latencylog
