package judge

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// SameNumbers reports whether two replies differ at most in how their numbers are written,
// and by a fraction of them.
func SameNumbers(a, b string, fraction float64) bool {
	return slices.EqualFunc(strings.Split(a, "\r\n"), strings.Split(b, "\r\n"), func(a, b string) bool {
		x, err1 := strconv.ParseFloat(strings.TrimPrefix(a, ","), 64)
		y, err2 := strconv.ParseFloat(strings.TrimPrefix(b, ","), 64)
		return a == b || strings.HasPrefix(a, "$") && strings.HasPrefix(b, "$") || err1 == nil && err2 == nil && math.Abs(x-y) <= fraction*math.Abs(x)
	})
}

// SameWords reports whether two replies or texts of replies differ at most in how their
// numbers are written.
func SameWords(a, b string) bool {
	lines := func(s string) string {
		return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" \r\n[]\"", r) }), "\r\n")
	}
	return a == b || SameNumbers(lines(a), lines(b), 0)
}

// FullName is the name of the command of a line.
func FullName(argv []string) string {
	name := strings.ToLower(argv[0])
	switch name {
	case "acl", "client", "command", "config", "function", "script", "object", "xinfo", "latency", "memory", "pubsub", "slowlog", "cluster", "xgroup":
		if len(argv) > 1 {
			name += "|" + strings.ToLower(argv[1])
		}
	}
	return name
}
