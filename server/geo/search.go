package geo

import "math"

// Shape is a circle, or a box whose sides run along the meridians and parallels.
type Shape struct {
	Center        Point
	Radius        float64 // of a circle
	Width, Height float64 // of a box
	Box           bool
	Unit          float64 // metres in what the sizes are given in
}

// Contains reports whether a point is in the shape, and how many metres from its center.
func (s *Shape) Contains(p Point) (distance float64, ok bool) {
	if s.Box {
		if latitudeDistance(p.Latitude, s.Center.Latitude) > s.Height*s.Unit/2 ||
			Distance(p, Point{s.Center.Longitude, p.Latitude}) > s.Width*s.Unit/2 {
			return 0, false
		}
		return Distance(s.Center, p), true
	}
	if latitudeDistance(p.Latitude, s.Center.Latitude) > s.Radius*s.Unit*(1+1e-9) {
		return 0, false // the quick way
	}
	distance = Distance(s.Center, p)
	return distance, !(distance > s.Radius*s.Unit)
}

// bounds returns the lowest and the highest coordinates in the shape.
func (s *Shape) bounds() (lo, hi Point) {
	height, width := s.Unit*s.Radius, s.Unit*s.Radius
	if s.Box {
		height, width = s.Unit*(s.Height/2), s.Unit*(s.Width/2)
	}
	c := s.Center
	dy := height / earthRadius / degree
	lo.Latitude, hi.Latitude = c.Latitude-dy, c.Latitude+dy
	edge := hi.Latitude // the one nearer to the pole
	if c.Latitude < 0 {
		edge = lo.Latitude
	}
	dx := width / earthRadius / cos(edge*degree) / degree
	lo.Longitude, hi.Longitude = c.Longitude-dx, c.Longitude+dx
	return lo, hi
}

// step returns how many bits of each coordinate make cells of about the size of the
// shape.
func (s *Shape) step() uint {
	r := s.Radius
	if s.Box {
		w, h := s.Width/2, s.Height/2
		r = math.Sqrt(float64(w*w) + float64(h*h))
	}
	r *= s.Unit
	if r == 0 {
		return precision
	}
	n := -1
	for ; r < mercatorMax; r *= 2 {
		n++
	}
	// Towards the poles cells are narrower.
	switch y := math.Abs(s.Center.Latitude); {
	case y > 80:
		n -= 2
	case y > 66:
		n--
	}
	return uint(min(max(n, 1), precision))
}

// Range is the scores from Min on that are below Max.
type Range struct{ Min, Max float64 }

// Ranges returns where the points of the shape are to be looked for: at most nine cells.
func (s *Shape) Ranges() []Range {
	lo, hi := s.bounds()
	step := s.step()
	c := cellOf(s.Center, step)
	if step > 1 && !c.suffices(lo, hi) {
		step--
		c = cellOf(s.Center, step)
	}
	near, far := c.corners()
	// Which of the neighbours are of no use?
	north, south, east, west := true, true, true, true
	if step >= 2 {
		south = !(near.Latitude < lo.Latitude)
		north = !(far.Latitude > hi.Latitude)
		west = !(near.Longitude < lo.Longitude)
		east = !(far.Longitude > hi.Longitude)
	}
	neighbours := [...]struct {
		east, north int
		useful      bool
	}{
		{0, 0, true}, {0, 1, north}, {0, -1, south}, {1, 0, east}, {-1, 0, west},
		{1, 1, north && east}, {-1, 1, north && west}, {1, -1, south && east}, {-1, -1, south && west},
	}
	var ranges []Range
	var last cell // around a large shape neighbours may be the same
	for i, n := range neighbours {
		if !n.useful {
			continue
		}
		cell := c.move(n.east, n.north)
		if i > 0 && cell == last {
			continue
		}
		ranges = append(ranges, cell.scores())
		if i > 0 {
			last = cell
		}
	}
	return ranges
}

// suffices reports whether the neighbours of a cell cover what lies between lo and hi.
func (c cell) suffices(lo, hi Point) bool {
	_, north := c.move(0, 1).corners()
	south, _ := c.move(0, -1).corners()
	_, east := c.move(1, 0).corners()
	west, _ := c.move(-1, 0).corners()
	return !(north.Latitude < hi.Latitude || south.Latitude > lo.Latitude ||
		east.Longitude < hi.Longitude || west.Longitude > lo.Longitude)
}

func (c cell) scores() Range {
	shift := 2 * (precision - c.step)
	return Range{float64(c.bits << shift), float64((c.bits + 1) << shift)}
}
