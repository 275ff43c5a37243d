package engine

import "github.com/zsetd/zsetd/zset"

// ZSetIsListpack reports whether Redis would keep a sorted set as a listpack. The mark
// of the set records that it is a skiplist: see keyspace.EncodingOf.
func ZSetIsListpack(s *zset.Set) bool { return !s.Marked() }
