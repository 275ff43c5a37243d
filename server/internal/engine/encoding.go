package engine

import (
	"github.com/zsetd/zsetd/server/internal/keyspace"
	"github.com/zsetd/zsetd/zset"
)

// EncodingOf names the encoding that Redis would use for a value.
func EncodingOf(v any, l *keyspace.Limits) string {
	if s, ok := v.(*zset.Set); ok {
		return zsetEncoding(s)
	}
	return v.(interface {
		Encoding(*keyspace.Limits) string
	}).Encoding(l)
}

// zsetEncoding names the encoding that Redis would use for s.
//
// Redis converts a listpack to a skiplist when a new member is too long or one too
// many, and when SORT reads the set. It does not convert back; but a set that is
// stored as a whole, loaded or restored is a listpack again if it fits. The mark of
// the set records that it is a skiplist: see zadded and keyspace.Limits.FitSorted.
func zsetEncoding(s *zset.Set) string {
	if ZSetIsListpack(s) {
		return "listpack"
	}
	return "skiplist"
}

// ZSetIsListpack reports whether Redis would keep a sorted set as a listpack.
func ZSetIsListpack(s *zset.Set) bool { return !s.Marked() }
