package acl

// A ruleIndex finds elements of a list by their names. It serves a list that
// changes only by appending elements with new names, or by being emptied. The zero
// value is ready to use.
type ruleIndex struct {
	at      map[string]int
	indexed int // elements of the list
}

// smallIndex is the length up to which a list is searched linearly.
const smallIndex = 16

// find returns the position of the element with a name in a list of n elements, or
// -1.
func (x *ruleIndex) find(n int, name func(i int) string, wanted string) int {
	if n < x.indexed {
		*x = ruleIndex{}
	}
	if n <= smallIndex {
		for i := range n {
			if name(i) == wanted {
				return i
			}
		}
		return -1
	}
	if x.at == nil {
		x.at = make(map[string]int, n)
	}
	for ; x.indexed < n; x.indexed++ {
		x.at[name(x.indexed)] = x.indexed
	}
	if i, ok := x.at[wanted]; ok {
		return i
	}
	return -1
}

// forget removes an element from the index after its name was changed.
func (x *ruleIndex) forget(name string) { delete(x.at, name) }
