package data

import "slices"

// sortNearest moves the n least elements, in order, to the front of list. Equal
// elements keep their order. The others are in no order. O(len(list) log n).
func sortNearest(list []geoMatch, n int, compare func(a, b geoMatch) int) {
	// Candidates gather at the front. When there are 2n, the worse half is dropped;
	// from then on an element must be less than the last of the better half.
	candidates, selected := list[:0], false
	for _, m := range list {
		if selected && compare(m, candidates[n-1]) >= 0 {
			continue
		}
		candidates = append(candidates, m)
		if len(candidates) == 2*n {
			slices.SortStableFunc(candidates, compare)
			candidates, selected = candidates[:n], true
		}
	}
	slices.SortStableFunc(candidates, compare)
}
