package sequence

import (
	"cmp"
	"math"
	"strconv"
)

// StreamID identifies an entry of a stream: the time of its addition in
// milliseconds since 1970, and a sequence number within the millisecond.
type StreamID struct{ Ms, Seq uint64 }

// MaxStreamID returns the maximum ID.
func MaxStreamID() StreamID { return StreamID{math.MaxUint64, math.MaxUint64} }

// Compare compares IDs: negative if a orders before b.
func (a StreamID) Compare(b StreamID) int {
	if a.Ms != b.Ms {
		return cmp.Compare(a.Ms, b.Ms)
	}
	return cmp.Compare(a.Seq, b.Seq)
}

// Less reports whether a orders before b.
func (a StreamID) Less(b StreamID) bool { return a.Ms < b.Ms || a.Ms == b.Ms && a.Seq < b.Seq }

// IsZero reports whether a is 0-0, which is not a valid ID of an entry.
func (a StreamID) IsZero() bool { return a.Ms == 0 && a.Seq == 0 }

// Next returns the ID after a. For the maximum ID it returns 0-0 and false.
func (a StreamID) Next() (next StreamID, ok bool) {
	if a.Seq++; a.Seq == 0 {
		a.Ms++
	}
	return a, !a.IsZero()
}

// Prev returns the ID before a. For 0-0 it returns the maximum ID and false.
func (a StreamID) Prev() (prev StreamID, ok bool) {
	ok = !a.IsZero()
	if a.Seq--; a.Seq == math.MaxUint64 {
		a.Ms--
	}
	return a, ok
}

// Append appends the ID in its text form, such as 1526919030474-55.
func (a StreamID) Append(b []byte) []byte {
	b = append(strconv.AppendUint(b, a.Ms, 10), '-')
	return strconv.AppendUint(b, a.Seq, 10)
}

// String returns the ID in its text form.
func (a StreamID) String() string { return string(a.Append(nil)) }
