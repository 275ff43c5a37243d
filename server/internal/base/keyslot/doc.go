// Package keyslot computes the hash slot of a key in a cluster, as
// https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/ specifies it.
package keyslot
