package sequence

// deque is a slice with free space at both ends. Insertion and removal take O(1)
// amortized at the ends; elsewhere they move the shorter side.
//
//	buf   │ free │ lo … items … hi │ free │
type deque[T any] struct {
	buf    []T
	lo, hi int // the items are buf[lo:hi]
}

// token identifies the owner of copy-on-write structures by its address. It has a
// size, because pointers to distinct zero-size variables may be equal.
type token struct{ _ byte }

func (d *deque[T]) all() []T { return d.buf[d.lo:d.hi] }

func (d *deque[T]) len() int { return d.hi - d.lo }

// insertGap inserts n items before item i and returns them, uninitialized. If possible,
// the buffer has at most limit items.
func (d *deque[T]) insertGap(i, n, limit int) []T {
	used := d.len()
	front := i < used-i
	switch {
	case n <= d.lo && (front || i == 0):
		copy(d.buf[d.lo-n:], d.buf[d.lo:d.lo+i])
		d.lo -= n
	case n <= len(d.buf)-d.hi && !front:
		copy(d.buf[d.lo+i+n:d.hi+n], d.buf[d.lo+i:d.hi])
		d.hi += n
	default:
		d.insertGapSlow(i, n, front, limit)
	}
	return d.buf[d.lo+i : d.lo+i+n : d.lo+i+n]
}

// insertGapSlow makes a gap where the free space does not suffice. Three quarters of the new free
// space are on the side that was exhausted. Giving that side all of it would move
// everything again and again if items are added at alternating ends.
func (d *deque[T]) insertGapSlow(i, n int, front bool, limit int) {
	need := d.len() + n
	to := d.buf
	if need > len(to) || need > len(to)-len(to)/4 && len(to) < limit {
		to = make([]T, max(need, min(2*need, limit)))
	}
	lo := (len(to) - need) / 4
	if front {
		lo = len(to) - need - lo
	}
	before, behind := d.buf[d.lo:d.lo+i], d.buf[d.lo+i:d.hi]
	if lo <= d.lo { // order of overlapping copies
		copy(to[lo:], before)
		copy(to[lo+i+n:], behind)
	} else {
		copy(to[lo+i+n:], behind)
		copy(to[lo:], before)
	}
	d.buf, d.lo, d.hi = to, lo, lo+need
	clear(to[:d.lo])
	clear(to[d.hi:])
}

// removeRange removes n items from item i on. It returns the freed part of the buffer,
// which still has the items if they were at an end.
func (d *deque[T]) removeRange(i, n int) []T {
	if i < d.len()-i-n {
		copy(d.buf[d.lo+n:], d.buf[d.lo:d.lo+i])
		d.lo += n
		return d.buf[d.lo-n : d.lo]
	}
	copy(d.buf[d.lo+i:], d.buf[d.lo+i+n:d.hi])
	d.hi -= n
	return d.buf[d.hi : d.hi+n]
}

// shrink shrinks the buffer when three quarters of it are free. The result of removeRange
// stays valid.
func (d *deque[T]) shrink() {
	if n := d.len(); len(d.buf) > 32 && n < len(d.buf)/4 {
		buf := make([]T, 2*n)
		copy(buf, d.all())
		d.buf, d.lo, d.hi = buf, 0, n
	}
}

// clone copies the buffer.
func (d *deque[T]) clone() {
	buf := make([]T, len(d.buf))
	copy(buf[d.lo:], d.all())
	d.buf = buf
}
