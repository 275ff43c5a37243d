package keyspace

// deque is a slice with room at both ends, so that items come and go at either
// end in constant time, and elsewhere at the cost of moving the shorter side.
type deque[T any] struct {
	room   []T
	lo, hi int // where the items are
}

// token is an identity; it has a size, for pointers to empty structs may be
// equal.
type token struct{ _ byte }

func (d *deque[T]) all() []T { return d.room[d.lo:d.hi] }

func (d *deque[T]) len() int { return d.hi - d.lo }

// open makes place for n items before item i and returns it for filling. As
// far as it can it takes no more than limit items' memory.
func (d *deque[T]) open(i, n, limit int) []T {
	used := d.len()
	front := i < used-i
	switch {
	case n <= d.lo && (front || i == 0):
		copy(d.room[d.lo-n:], d.room[d.lo:d.lo+i])
		d.lo -= n
	case n <= len(d.room)-d.hi && !front:
		copy(d.room[d.lo+i+n:d.hi+n], d.room[d.lo+i:d.hi])
		d.hi += n
	default:
		d.relocate(i, n, front, limit)
	}
	return d.room[d.lo+i : d.lo+i+n : d.lo+i+n]
}

// relocate is open where the room is exhausted. Three quarters of the new room
// are on the side that ran out of it, and not all, lest items that come in turn
// at both ends have everything moved each time.
func (d *deque[T]) relocate(i, n int, front bool, limit int) {
	need := d.len() + n
	to := d.room
	if need > len(to) || need > len(to)-len(to)/4 && len(to) < limit {
		to = make([]T, max(need, min(2*need, limit)))
	}
	lo := (len(to) - need) / 4
	if front {
		lo = len(to) - need - lo
	}
	before, behind := d.room[d.lo:d.lo+i], d.room[d.lo+i:d.hi]
	if lo <= d.lo { // the order matters when they move within the same memory
		copy(to[lo:], before)
		copy(to[lo+i+n:], behind)
	} else {
		copy(to[lo+i+n:], behind)
		copy(to[lo:], before)
	}
	d.room, d.lo, d.hi = to, lo, lo+need
	clear(to[:d.lo])
	clear(to[d.hi:])
}

// cut takes out n items from item i on. It returns the place that became
// free, which still holds what it held: if the cut was at an end, the items.
func (d *deque[T]) cut(i, n int) []T {
	if i < d.len()-i-n {
		copy(d.room[d.lo+n:], d.room[d.lo:d.lo+i])
		d.lo += n
		return d.room[d.lo-n : d.lo]
	}
	copy(d.room[d.lo+i:], d.room[d.lo+i+n:d.hi])
	d.hi -= n
	return d.room[d.hi : d.hi+n]
}

// fit gives memory back when three quarters are empty. What cut returned stays
// as it is.
func (d *deque[T]) fit() {
	if n := d.len(); len(d.room) > 32 && n < len(d.room)/4 {
		room := make([]T, 2*n)
		copy(room, d.all())
		d.room, d.lo, d.hi = room, 0, n
	}
}

// clone makes the room this deque's own.
func (d *deque[T]) clone() {
	room := make([]T, len(d.room))
	copy(room[d.lo:], d.all())
	d.room = room
}
