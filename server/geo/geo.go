package geo

import "math"

// The limits of what a point can be, from EPSG:900913; the poles are out.
const (
	maxLongitude = 180
	maxLatitude  = 85.05112878

	earthRadius = 6372797.560856 // in metres
	mercatorMax = 20037726.37
	degree      = math.Pi / 180

	precision = 26 // bits of each coordinate in a score
)

// Point is a place, in degrees.
type Point struct{ Longitude, Latitude float64 }

// Valid reports whether a point can have a score.
func (p Point) Valid() bool {
	return p.Longitude >= -maxLongitude && p.Longitude <= maxLongitude &&
		p.Latitude >= -maxLatitude && p.Latitude <= maxLatitude
}

// Score returns the score of a valid point.
func (p Point) Score() float64 { return float64(cellOf(p, precision).bits) }

// PointOf returns the middle of the smallest cell that a score stands for. Any score
// will do.
func PointOf(score float64) Point {
	lo, hi := cell{truncate(score), precision}.corners()
	return Point{
		min(max((lo.Longitude+hi.Longitude)/2, -maxLongitude), maxLongitude),
		min(max((lo.Latitude+hi.Latitude)/2, -maxLatitude), maxLatitude),
	}
}

// truncate is C's conversion to an unsigned integer, as x86 does it where C
// does not say what it gives.
func truncate(f float64) uint64 {
	const half = 1 << 63
	switch {
	case f >= half && f < 2*half:
		return uint64(int64(f-half)) ^ half
	case f >= -half && f < half:
		return uint64(int64(f))
	case f >= half:
		return 0
	}
	return half
}

// Truncate returns a score as the integer that Redis shows.
func Truncate(score float64) int64 {
	if score >= -(1<<63) && score < 1<<63 {
		return int64(score)
	}
	return math.MinInt64
}

// Hash returns the geohash of 11 characters that everybody knows. Its
// last one, for which a score has no bits, is always 0.
func (p Point) Hash() string {
	const alphabet = "0123456789bcdefghjkmnpqrstuvwxyz"
	h := interleave(scaled(p.Latitude, -90, 90, precision), scaled(p.Longitude, -180, 180, precision))
	b := [11]byte{10: '0'}
	for i := range 10 {
		b[i] = alphabet[h>>(2*precision-5*(i+1))&31]
	}
	return string(b[:])
}

// Distance returns the metres between two points along a great circle.
func Distance(a, b Point) float64 {
	v := sin((b.Longitude*degree - a.Longitude*degree) / 2)
	if v == 0 {
		return latitudeDistance(a.Latitude, b.Latitude)
	}
	u := sin((b.Latitude*degree - a.Latitude*degree) / 2)
	// The conversions forbid fused products, here as in the rest.
	x := float64(u*u) + float64(cos(a.Latitude*degree)*cos(b.Latitude*degree)*v*v)
	return 2 * earthRadius * asin(math.Sqrt(x))
}

func latitudeDistance(a, b float64) float64 {
	return earthRadius * math.Abs(float64(b*degree)-float64(a*degree))
}

// cell is a geohash of 2*step bits; the zero value is none.
type cell struct {
	bits uint64
	step uint
}

// scaled returns where x lies between lo and hi, in 2^step parts.
func scaled(x, lo, hi float64, step uint) uint32 {
	return uint32((x - lo) / (hi - lo) * float64(uint64(1)<<step))
}

func cellOf(p Point, step uint) cell {
	return cell{interleave(
		scaled(p.Latitude, -maxLatitude, maxLatitude, step),
		scaled(p.Longitude, -maxLongitude, maxLongitude, step)), step}
}

// corners returns the lowest and the highest coordinates of a cell.
func (c cell) corners() (lo, hi Point) {
	latitude, longitude := spread(c.bits)
	at := func(i uint32, limit float64) float64 {
		return -limit + float64(float64(i)/float64(uint64(1)<<c.step)*(2*limit))
	}
	return Point{at(longitude, maxLongitude), at(latitude, maxLatitude)},
		Point{at(longitude+1, maxLongitude), at(latitude+1, maxLatitude)}
}

// interleave puts the bits of x at the even places, those of y at the odd ones.
func interleave(x, y uint32) uint64 { return widen(x) | widen(y)<<1 }

func widen(n uint32) uint64 {
	x := uint64(n)
	x = (x | x<<16) & 0x0000ffff0000ffff
	x = (x | x<<8) & 0x00ff00ff00ff00ff
	x = (x | x<<4) & 0x0f0f0f0f0f0f0f0f
	x = (x | x<<2) & 0x3333333333333333
	return (x | x<<1) & 0x5555555555555555
}

// spread undoes interleave.
func spread(h uint64) (x, y uint32) { return narrow(h), narrow(h >> 1) }

func narrow(x uint64) uint32 {
	x &= 0x5555555555555555
	x = (x | x>>1) & 0x3333333333333333
	x = (x | x>>2) & 0x0f0f0f0f0f0f0f0f
	x = (x | x>>4) & 0x00ff00ff00ff00ff
	x = (x | x>>8) & 0x0000ffff0000ffff
	return uint32(x | x>>16)
}

// move returns the cell so many cells further east and north. At the edge it
// comes back on the other side. (A point on the edge itself has a cell beyond it, which stays
// there as long as it is not moved across.)
func (c cell) move(east, north int) cell {
	latitude, longitude := spread(c.bits)
	mask := uint32(1)<<c.step - 1
	if north != 0 {
		latitude = (latitude + uint32(north)) & mask
	}
	if east != 0 {
		longitude = (longitude + uint32(east)) & mask
	}
	return cell{interleave(latitude, longitude), c.step}
}
