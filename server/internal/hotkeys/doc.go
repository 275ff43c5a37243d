// Package hotkeys finds the keys that take the most processor time or bytes of the network,
// for HOTKEYS. It keeps a bounded number of counters, by the algorithm Space-Saving
// (Metwally, Agrawal and El Abbadi, "Efficient Computation of Frequent and Top-k Elements in
// Data Streams", ICDT 2005): a key without a counter takes over the smallest one, with its
// value. So no counter is too small, and one is too large by the smallest at most.
package hotkeys
