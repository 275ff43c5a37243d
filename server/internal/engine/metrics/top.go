package metrics

import (
	"cmp"
	"container/heap"
	"slices"
)

// Top finds the keys with the largest sums. It is not for concurrent use.
type Top struct {
	limit  int
	byKey  map[string]*counter
	lowest counters
	seen   int   // number of keys that were counted, again after their counter was lost
	Sum    int64 // of all weights
}

// counter is the sum of a key.
type counter struct {
	key   string
	n     int64
	at    int // in the heap
	since int // Top.seen when its key was first counted
}

// NewTop returns a Top with so many counters.
func NewTop(limit int) *Top { return &Top{limit: limit, byKey: map[string]*counter{}} }

// Add adds a weight, which must not be negative, to a key. O(log n) for n counters.
func (t *Top) Add(key []byte, weight int64) {
	t.Sum += weight
	if c := t.byKey[string(key)]; c != nil {
		c.n += weight
		heap.Fix(&t.lowest, c.at)
		return
	}
	t.seen++
	if len(t.lowest) < t.limit {
		c := &counter{key: string(key), n: weight, since: t.seen}
		t.byKey[c.key] = c
		heap.Push(&t.lowest, c)
		return
	}
	c := t.lowest[0]
	delete(t.byKey, c.key)
	c.key, c.since = string(key), t.seen
	c.n += weight
	t.byKey[c.key] = c
	heap.Fix(&t.lowest, 0)
}

// HotKey is a key and its sum.
type HotKey struct {
	Key string
	Sum int64
}

// Largest returns at most n keys with the largest sums above zero, the largest first, keys of
// equal sums in the order in which they were first counted. O(k log k) for k counters.
func (t *Top) Largest(n int) []HotKey {
	ordered := slices.SortedFunc(slices.Values(t.lowest), func(a, b *counter) int {
		return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.since, b.since))
	})
	var list []HotKey
	for _, c := range ordered[:min(n, len(ordered))] {
		if c.n > 0 {
			list = append(list, HotKey{c.key, c.n})
		}
	}
	return list
}

// counters is a heap, the smallest first.
type counters []*counter

func (h counters) Len() int           { return len(h) }
func (h counters) Less(i, j int) bool { return h[i].n < h[j].n }
func (h counters) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

// Push implements heap.Interface.
func (h *counters) Push(x any) {
	c := x.(*counter)
	c.at = len(*h)
	*h = append(*h, c)
}

// Pop implements heap.Interface.
func (h *counters) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
