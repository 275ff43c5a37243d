package transport

import "math"

// Decisions about the number of loops, without a clock and without loops.

const (
	// busyFrom is the average part of their time that loops are awake from which
	// another one may help, and busyFor that which fewer loops would then be. The
	// distance keeps the number from going up and down.
	busyFrom = 0.8
	busyFor  = 0.5
	// growShare is the part of the work of the previous loops that further ones must
	// do for their time to be kept.
	growShare = 0.25
	// calmWindows is how many windows the load must be small before fewer loops serve.
	calmWindows = 5
	// leastPause and mostPause are how many windows pass after a failed trial until the
	// next one. Each pause is twice as long as the previous one.
	leastPause = 5
	mostPause  = 300
)

// load is what was measured in a window.
type load struct {
	busy    float64 // seconds per second that all loops together were awake
	rate    float64 // commands per second
	idle    float64 // cores of the machine without work
	clients int
	procs   int // cores that the process may use
}

// scaler decides how many loops serve.
type scaler struct {
	loops     int
	settle    bool    // the next window is not like the following ones
	trial     *trial  // of the present number
	pause     int     // windows until the next trial may begin
	nextPause int     // after the next failed trial
	calm      int     // windows since the load became small
	peak      float64 // of busy in these
}

// trial is the state before loops were added.
type trial struct {
	loops int
	load  load
}

func newScaler(loops int) *scaler { return &scaler{loops: loops, nextPause: leastPause} }

// next returns how many loops are to serve after a window with this load. enough is true if one
// has long had little to do.
func (s *scaler) next(l load) (loops int, enough bool) {
	s.pause = max(s.pause-1, 0)
	if s.settle {
		s.settle = false
		return s.loops, false
	}
	if t := s.trial; t != nil {
		s.trial = nil
		if t.failed(l) {
			s.pause, s.nextPause = s.nextPause, min(2*s.nextPause, mostPause)
			return s.change(t.loops), false
		}
		s.nextPause = leastPause
	}
	need := max(1, int(math.Ceil(l.busy/busyFor)))
	switch {
	case l.busy >= busyFrom*float64(s.loops):
		s.calm, s.peak = 0, 0
		if step := s.step(l); step > 0 && s.pause == 0 {
			s.trial = &trial{s.loops, l}
			return s.change(s.loops + step), false
		}
	case need < s.loops || s.loops == 1 && l.busy < busyFor:
		s.peak = max(s.peak, l.busy)
		if s.calm++; s.calm < calmWindows {
			break
		}
		if s.loops == 1 {
			return 1, true
		}
		need = max(1, int(math.Ceil(s.peak/busyFor)))
		s.calm, s.peak = 0, 0
		return s.change(need), false
	default:
		s.calm, s.peak = 0, 0
	}
	return s.loops, false
}

// change changes the number of loops.
func (s *scaler) change(n int) int {
	s.loops, s.settle = n, true
	return n
}

// step returns how many loops may be added: at most half of those that there are, no more than
// there are idle cores and clients, and so that a core is left for others.
func (s *scaler) step(l load) int {
	n := s.loops
	return min(max(1, n/2), l.procs-1-n, l.clients-n, int(math.Round(l.idle)))
}

// failed reports that the loops added since take time without serving more commands: the
// clients, the engine's lock or the cores are the limit.
func (t *trial) failed(l load) bool {
	more := l.busy/t.load.busy - 1
	return more > 0.1 && l.rate/t.load.rate-1 < more*growShare
}

// balance returns how many clients each loop is to give to each other one, so that the first n
// have about equally many, and the others none. A small difference stays.
func balance(clients []int, n int) (give [][]int) {
	total, least, most, parked := 0, math.MaxInt, 0, 0
	for i, c := range clients {
		total += c
		if i >= n {
			parked += c
			continue
		}
		least, most = min(least, c), max(most, c)
	}
	give = make([][]int, len(clients))
	if parked == 0 && most-least <= total/n/2+1 {
		return give
	}
	wanted := func(i int) int {
		switch {
		case i >= n:
			return 0
		case i < total%n:
			return total/n + 1
		}
		return total / n
	}
	to, room := -1, 0
	for from, c := range clients {
		give[from] = make([]int, len(clients))
		for excess := c - wanted(from); excess > 0; {
			for room <= 0 {
				to++
				room = wanted(to) - clients[to]
			}
			k := min(excess, room)
			give[from][to] += k
			excess -= k
			room -= k
		}
	}
	return give
}
