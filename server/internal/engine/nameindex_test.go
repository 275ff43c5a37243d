package engine

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestNameIndex compares the index with a map of the names in lower case.
func TestNameIndex(t *testing.T) {
	names := map[string]*string{}
	for _, name := range strings.Fields("get set del ttl zadd zrem zrangebyscore zremrangebyscore zremrangebyrank json.get a ab a-name-of-more-than-16-bytes") {
		names[name] = &name
	}
	for i := range 300 { // many share their first or last letters
		name := strings.Repeat("x", i%15) + fmt.Sprint(i)
		names[name] = &name
	}
	index := newNameIndex(names)
	check := func(name []byte) {
		t.Helper()
		if got, want := index.Find(name), lookupName(names, name); got != want {
			t.Fatalf("%q: found %v, want %v", name, got, want)
		}
	}
	check(nil)
	for name, p := range names {
		if got := index.Find([]byte(strings.ToUpper(name))); got != p {
			t.Fatalf("%s in upper case: found %v", name, got)
		}
		for range 200 {
			b := []byte(name)
			for i := range b {
				if rand.IntN(2) == 0 && 'a' <= b[i] && b[i] <= 'z' {
					b[i] -= 'a' - 'A'
				}
			}
			check(b)
			i := rand.IntN(len(b))
			b[i] ^= 1 << rand.IntN(8)
			check(b)
			check(append(b, b[i]))
			check(b[:i])
		}
	}
}
