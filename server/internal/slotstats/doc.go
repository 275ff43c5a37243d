// Package slotstats counts the work of a node of a cluster by slot: processor time and bytes
// of the network, for CLUSTER SLOT-STATS.
package slotstats
