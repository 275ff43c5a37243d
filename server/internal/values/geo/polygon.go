package geo

import "math"

// Polygon returns the shape within the edges between consecutive vertices, and between the
// last and the first. Edges are straight lines in longitude and latitude, and do not cross the
// meridian of 180°. The center is the centroid of the vertices on the sphere: the direction of the sum
// of their unit vectors.
func Polygon(vertices []Point) Shape {
	var x, y, z float64
	for _, v := range vertices {
		lat, lon := v.Latitude*degree, v.Longitude*degree
		x += math.Cos(lat) * math.Cos(lon)
		y += math.Cos(lat) * math.Sin(lon)
		z += math.Sin(lat)
	}
	return Shape{
		Vertices: vertices,
		Unit:     1,
		Center:   Point{math.Atan2(y, x) / degree, math.Atan2(z, math.Hypot(x, y)) / degree},
	}
}

// encloses reports whether a polygon contains a point, by the even-odd rule: a ray from the point to
// the east crosses an odd number of edges (Shimrat, "Algorithm 112", CACM 5.8, 1962).
func (s *Shape) encloses(p Point) bool {
	inside := false
	a := s.Vertices[len(s.Vertices)-1]
	for _, b := range s.Vertices {
		if (a.Latitude > p.Latitude) != (b.Latitude > p.Latitude) &&
			p.Longitude < (b.Longitude-a.Longitude)*(p.Latitude-a.Latitude)/(b.Latitude-a.Latitude)+a.Longitude {
			inside = !inside
		}
		a = b
	}
	return inside
}

// box returns a box that contains a polygon.
func (s *Shape) box() Shape {
	lo, hi := s.Vertices[0], s.Vertices[0]
	for _, v := range s.Vertices {
		lo.Longitude, lo.Latitude = min(lo.Longitude, v.Longitude), min(lo.Latitude, v.Latitude)
		hi.Longitude, hi.Latitude = max(hi.Longitude, v.Longitude), max(hi.Latitude, v.Latitude)
	}
	widest := 0.0 // the latitude at which the box is widest
	if lo.Latitude > 0 || hi.Latitude < 0 {
		widest = min(math.Abs(lo.Latitude), math.Abs(hi.Latitude))
	}
	const slack = 1 + 1e-9 // for rounding
	return Shape{
		Center: Point{(lo.Longitude + hi.Longitude) / 2, (lo.Latitude + hi.Latitude) / 2},
		Box:    true,
		Unit:   earthRadius * degree * slack,
		Width:  (hi.Longitude - lo.Longitude) * math.Cos(widest*degree),
		Height: hi.Latitude - lo.Latitude,
	}
}
