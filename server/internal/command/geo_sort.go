package command

import "slices"

// sortNearest sorts the first n elements. Elements at the same distance are in the
// order of Redis: a whole list is sorted stably there, while a part of it is sorted
// by pqsort.c, the quicksort of Bentley and McIlroy ("Engineering a sort function",
// 1993) without the partitions outside the part.
func sortNearest(list []geoMatch, n int, compare func(a, b geoMatch) int) {
	if n >= len(list) {
		slices.SortStableFunc(list, compare)
		return
	}
	p := partialSort{list, n, compare}
	p.sort(0, len(list))
}

type partialSort struct {
	list    []geoMatch
	wanted  int
	compare func(a, b geoMatch) int
}

func (p *partialSort) cmp(i, j int) int { return p.compare(p.list[i], p.list[j]) }

func (p *partialSort) swap(i, j int) { p.list[i], p.list[j] = p.list[j], p.list[i] }

// swapRuns exchanges n elements from i on with those from j on.
func (p *partialSort) swapRuns(i, j, n int) {
	for k := range n {
		p.swap(i+k, j+k)
	}
}

// sort sorts the elements from lo up to hi.
func (p *partialSort) sort(lo, hi int) {
	for hi-lo > 1 && lo < p.wanted {
		if hi-lo < 7 {
			for i := lo + 1; i < hi; i++ {
				for j := i; j > lo && p.cmp(j-1, j) > 0; j-- {
					p.swap(j, j-1)
				}
			}
			return
		}
		p.swap(lo, p.pivot(lo, hi))
		left, right := p.partition(lo, hi)
		p.sort(lo, left)
		lo = right
	}
}

// partition moves elements less than the one at lo to the front, and greater ones to
// the end, and returns the end of the former and the beginning of the latter.
func (p *partialSort) partition(lo, hi int) (left, right int) {
	// Equal elements gather at both ends, before a and behind d.
	a, b := lo+1, lo+1
	c, d := hi-1, hi-1
	for {
		for b <= c {
			r := p.cmp(b, lo)
			if r > 0 {
				break
			}
			if r == 0 {
				p.swap(a, b)
				a++
			}
			b++
		}
		for b <= c {
			r := p.cmp(c, lo)
			if r < 0 {
				break
			}
			if r == 0 {
				p.swap(c, d)
				d--
			}
			c--
		}
		if b > c {
			break
		}
		p.swap(b, c)
		b++
		c--
	}
	n := min(a-lo, b-a)
	p.swapRuns(lo, b-n, n)
	n = min(d-c, hi-1-d)
	p.swapRuns(b, hi-n, n)
	return lo + b - a, hi - (d - c)
}

// pivot chooses a median: of three elements, or of nine.
func (p *partialSort) pivot(lo, hi int) int {
	n := hi - lo
	middle := lo + n/2
	if n == 7 {
		return middle
	}
	first, last := lo, hi-1
	if n > 40 {
		d := n / 8
		first = p.median(first, first+d, first+2*d)
		middle = p.median(middle-d, middle, middle+d)
		last = p.median(last-2*d, last-d, last)
	}
	return p.median(first, middle, last)
}

func (p *partialSort) median(a, b, c int) int {
	switch {
	case p.cmp(a, b) < 0:
		switch {
		case p.cmp(b, c) < 0:
			return b
		case p.cmp(a, c) < 0:
			return c
		}
		return a
	case p.cmp(b, c) > 0:
		return b
	case p.cmp(a, c) < 0:
		return a
	}
	return c
}
