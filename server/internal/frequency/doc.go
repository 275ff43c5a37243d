// Package frequency counts the accesses to a key in 24 bits, for the policies of eviction
// that remove the keys used least: 16 bits for the minute of the last access, and 8 bits
// for a logarithmic counter that decays with time. It knows neither keys nor values.
package frequency
