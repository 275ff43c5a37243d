package acl

import (
	"strings"

	"github.com/zsetd/zsetd/server/internal/base/glob"
)

// lowered returns s with ASCII letters in lower case.
func lowered(s string) string {
	b := []byte(s)
	for i, c := range b {
		b[i] = glob.Lower(c)
	}
	return string(b)
}

// equalFold reports whether two strings are equal, ignoring the case of ASCII
// letters.
func equalFold(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if glob.Lower(a[i]) != glob.Lower(b[i]) {
			return false
		}
	}
	return true
}

// HasSpace reports whether s holds a byte that a line of rules cannot contain.
func HasSpace(s string) bool { return strings.ContainsAny(s, " \t\n\v\f\r\x00") }
