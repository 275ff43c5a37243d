package engine

import (
	"iter"
	"strconv"
	"strings"
)

// The list of the members that an event has changed, in the form that messages have: 3:abc,1:d.
// So the members are copied once, into a buffer that the commit scope has anyway, and their
// memory may be reused before the commit. The handlers name them, because they know which
// members belong to which event, and in which order. The reports of the values to the journal
// do not suffice: an HSET that leaves a field unchanged is an event, too, and a set that is
// stored as a whole reports none of its members.

// appendMember appends a member to a list, behind a comma unless it is the first.
func appendMember[T string | []byte](dst []byte, first bool, member T) []byte {
	if !first {
		dst = append(dst, ',')
	}
	dst = strconv.AppendInt(dst, int64(len(member)), 10)
	return append(append(dst, ':'), member...)
}

// eachMember yields the members that appendMember has written. It panics for any other text.
func eachMember(members string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for members != "" {
			length, rest, _ := strings.Cut(members, ":")
			n, err := strconv.Atoi(length)
			if err != nil {
				panic("BUG: members of an event without a length")
			}
			if !yield(rest[:n]) {
				return
			}
			members = strings.TrimPrefix(rest[n:], ",")
		}
	}
}
