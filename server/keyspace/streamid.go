package keyspace

import (
	"cmp"
	"math"
	"strconv"
)

// StreamID names an entry of a stream: the time at which it was added, and a
// number among those of the same millisecond.
type StreamID struct{ Ms, Seq uint64 }

// MaxStreamID returns the last of all IDs.
func MaxStreamID() StreamID { return StreamID{math.MaxUint64, math.MaxUint64} }

// Compare orders IDs: negative if a comes before b.
func (a StreamID) Compare(b StreamID) int {
	if a.Ms != b.Ms {
		return cmp.Compare(a.Ms, b.Ms)
	}
	return cmp.Compare(a.Seq, b.Seq)
}

// Less reports whether a comes before b.
func (a StreamID) Less(b StreamID) bool { return a.Ms < b.Ms || a.Ms == b.Ms && a.Seq < b.Seq }

// IsZero reports whether a is 0-0, which no entry has.
func (a StreamID) IsZero() bool { return a.Ms == 0 && a.Seq == 0 }

// Next returns the ID behind a. Behind the last one comes 0-0, and ok is false.
func (a StreamID) Next() (next StreamID, ok bool) {
	if a.Seq++; a.Seq == 0 {
		a.Ms++
	}
	return a, !a.IsZero()
}

// Prev returns the ID before a. Before 0-0 comes the last one, and ok is false.
func (a StreamID) Prev() (prev StreamID, ok bool) {
	ok = !a.IsZero()
	if a.Seq--; a.Seq == math.MaxUint64 {
		a.Ms--
	}
	return a, ok
}

// Append appends the ID as clients write it, 1526919030474-55.
func (a StreamID) Append(b []byte) []byte {
	b = append(strconv.AppendUint(b, a.Ms, 10), '-')
	return strconv.AppendUint(b, a.Seq, 10)
}

// String returns the ID as clients write it.
func (a StreamID) String() string { return string(a.Append(nil)) }
