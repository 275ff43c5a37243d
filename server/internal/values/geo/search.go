package geo

import "math"

// Shape is a circle, a box with sides along meridians and parallels, or a polygon, which
// Polygon returns.
type Shape struct {
	Center        Point
	Radius        float64 // of a circle, in units of Unit
	Width, Height float64 // of a box, in units of Unit
	Box           bool
	Unit          float64 // metres of one unit
	Vertices      []Point // of a polygon
}

// Contains reports whether a point is in the shape, and its distance from the
// center in metres.
func (s *Shape) Contains(p Point) (distance float64, ok bool) {
	if s.Vertices != nil {
		return Distance(s.Center, p), s.encloses(p)
	}
	if s.Box {
		if latitudeDistance(p.Latitude, s.Center.Latitude) > s.Height*s.Unit/2 ||
			Distance(p, Point{s.Center.Longitude, p.Latitude}) > s.Width*s.Unit/2 {
			return 0, false
		}
		return Distance(s.Center, p), true
	}
	if latitudeDistance(p.Latitude, s.Center.Latitude) > s.Radius*s.Unit*(1+1e-9) {
		return 0, false // cheap rejection by latitude
	}
	distance = Distance(s.Center, p)
	return distance, !(distance > s.Radius*s.Unit)
}

// bounds returns the minimum and the maximum coordinates of the shape.
func (s *Shape) bounds() (lo, hi Point) {
	height, width := s.Unit*s.Radius, s.Unit*s.Radius
	if s.Box {
		height, width = s.Unit*(s.Height/2), s.Unit*(s.Width/2)
	}
	c := s.Center
	dy := height / earthRadius / degree
	lo.Latitude, hi.Latitude = c.Latitude-dy, c.Latitude+dy
	edge := hi.Latitude // the edge nearer to the pole
	if c.Latitude < 0 {
		edge = lo.Latitude
	}
	dx := width / earthRadius / cos(edge*degree) / degree
	lo.Longitude, hi.Longitude = c.Longitude-dx, c.Longitude+dx
	return lo, hi
}

// step returns the number of bits of each coordinate for cells of about the size of
// the shape. A geohash halves the interval of a coordinate with each bit, so at step n
// a cell is 1/2^n of the equator wide: it is the greatest n for which that exceeds the
// diameter. The nine cells around any point of a cell then contain the shape.
func (s *Shape) step() uint {
	r := s.Radius
	if s.Box {
		w, h := s.Width/2, s.Height/2
		r = math.Sqrt(float64(w*w) + float64(h*h))
	}
	r *= s.Unit
	switch {
	case r == 0:
		return precision
	case r >= halfEquator:
		return 1
	}
	// r·2^n < halfEquator, solved by the exponents of both.
	mantissa, exponent := math.Frexp(r)
	limit, n := math.Frexp(halfEquator)
	if n -= exponent; mantissa >= limit {
		n--
	}
	// Cells are narrower near the poles.
	switch y := math.Abs(s.Center.Latitude); {
	case y > 80:
		n -= 2
	case y > 66:
		n--
	}
	return uint(min(max(n, 1), precision))
}

// Range is the half-open interval of scores [Min, Max).
type Range struct{ Min, Max float64 }

// Ranges returns the score ranges of at most nine cells that contain all points of
// the shape. The caller filters the points with Contains.
func (s *Shape) Ranges() []Range {
	if s.Vertices != nil {
		box := s.box()
		return box.Ranges()
	}
	lo, hi := s.bounds()
	step := s.step()
	c := cellOf(s.Center, step)
	if step > 1 && !c.neighboursCover(lo, hi) {
		step--
		c = cellOf(s.Center, step)
	}
	near, far := c.corners()
	// Skip the neighbours on sides where the center cell already covers the bounds.
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
	var last cell // around a large shape neighbours can coincide
	for i, n := range neighbours {
		if !n.useful {
			continue
		}
		cell := c.offset(n.east, n.north)
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

// neighboursCover reports whether a cell with its neighbours covers the area
// between lo and hi.
func (c cell) neighboursCover(lo, hi Point) bool {
	_, north := c.offset(0, 1).corners()
	south, _ := c.offset(0, -1).corners()
	_, east := c.offset(1, 0).corners()
	west, _ := c.offset(-1, 0).corners()
	return !(north.Latitude < hi.Latitude || south.Latitude > lo.Latitude ||
		east.Longitude < hi.Longitude || west.Longitude > lo.Longitude)
}

func (c cell) scores() Range {
	shift := 2 * (precision - c.step)
	return Range{float64(c.bits << shift), float64((c.bits + 1) << shift)}
}
