package memberlist

import (
	"iter"
	"strconv"
	"strings"
)

// Append appends a member to a list, behind a comma unless it is the first.
func Append[T string | []byte](dst []byte, first bool, member T) []byte {
	if !first {
		dst = append(dst, ',')
	}
	dst = strconv.AppendInt(dst, int64(len(member)), 10)
	return append(append(dst, ':'), member...)
}

// Each yields the members that Append has written. It panics for any other text.
func Each(members string) iter.Seq[string] {
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
