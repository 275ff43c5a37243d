package geo

import "math"

// Limits of coordinates, from EPSG:900913. They exclude the poles.
const (
	maxLongitude = 180
	maxLatitude  = 85.05112878

	earthRadius = 6372797.560856 // metres
	halfEquator = 20037726.37    // metres
	degree      = math.Pi / 180

	precision = 26 // bits of each coordinate in a score
)

// Point is a position on the earth in degrees.
type Point struct{ Longitude, Latitude float64 }

// Valid reports whether a point has a score: a longitude within ±180° and a
// latitude within ±85.05112878°.
func (p Point) Valid() bool {
	return p.Longitude >= -maxLongitude && p.Longitude <= maxLongitude &&
		p.Latitude >= -maxLatitude && p.Latitude <= maxLatitude
}

// Score returns the score of a valid point, an integer below 2^52.
func (p Point) Score() float64 { return float64(cellOf(p, precision).bits) }

// PointOf returns the center of the smallest cell with a score. It accepts any
// score.
func PointOf(score float64) Point {
	lo, hi := cell{truncate(score), precision}.corners()
	return Point{
		min(max((lo.Longitude+hi.Longitude)/2, -maxLongitude), maxLongitude),
		min(max((lo.Latitude+hi.Latitude)/2, -maxLatitude), maxLatitude),
	}
}

// truncate converts to uint64 as C does on x86, also where the C standard leaves
// the result undefined.
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

// Hash returns the standard geohash string of 11 characters. The last character is
// always 0, because a score has no bits for it.
func (p Point) Hash() string {
	const alphabet = "0123456789bcdefghjkmnpqrstuvwxyz"
	h := interleave(scaled(p.Latitude, -90, 90, precision), scaled(p.Longitude, -180, 180, precision))
	b := [11]byte{10: '0'}
	for i := range 10 {
		b[i] = alphabet[h>>(2*precision-5*(i+1))&31]
	}
	return string(b[:])
}

// Distance returns the great-circle distance of two points in metres.
func Distance(a, b Point) float64 {
	v := sin((b.Longitude*degree - a.Longitude*degree) / 2)
	if v == 0 {
		return latitudeDistance(a.Latitude, b.Latitude)
	}
	u := sin((b.Latitude*degree - a.Latitude*degree) / 2)
	// Explicit conversions prevent fused multiply-add, here and in the rest of the
	// package.
	x := float64(u*u) + float64(cos(a.Latitude*degree)*cos(b.Latitude*degree)*v*v)
	return 2 * earthRadius * asin(math.Sqrt(x))
}

func latitudeDistance(a, b float64) float64 {
	return earthRadius * math.Abs(float64(b*degree)-float64(a*degree))
}

// cell is a geohash of 2*step bits. The zero value is no cell.
type cell struct {
	bits uint64
	step uint
}

// scaled returns the position of x in the interval from lo to hi, in units of
// 1/2^step of the interval.
func scaled(x, lo, hi float64, step uint) uint32 {
	return uint32((x - lo) / (hi - lo) * float64(uint64(1)<<step))
}

func cellOf(p Point, step uint) cell {
	return cell{interleave(
		scaled(p.Latitude, -maxLatitude, maxLatitude, step),
		scaled(p.Longitude, -maxLongitude, maxLongitude, step)), step}
}

// corners returns the minimum and the maximum coordinates of a cell.
func (c cell) corners() (lo, hi Point) {
	latitude, longitude := deinterleave(c.bits)
	at := func(i uint32, limit float64) float64 {
		return -limit + float64(float64(i)/float64(uint64(1)<<c.step)*(2*limit))
	}
	return Point{at(longitude, maxLongitude), at(latitude, maxLatitude)},
		Point{at(longitude+1, maxLongitude), at(latitude+1, maxLatitude)}
}

// interleave returns a Morton code: the bits of x at even positions, those of y at
// odd positions. Each step of spreadBits doubles the distance of groups of bits that
// are half as long ("Interleave bits by Binary Magic Numbers" in Anderson's "Bit
// Twiddling Hacks").
func interleave(x, y uint32) uint64 { return spreadBits(x) | spreadBits(y)<<1 }

func spreadBits(n uint32) uint64 {
	x := uint64(n)
	x = (x | x<<16) & 0x0000ffff0000ffff
	x = (x | x<<8) & 0x00ff00ff00ff00ff
	x = (x | x<<4) & 0x0f0f0f0f0f0f0f0f
	x = (x | x<<2) & 0x3333333333333333
	return (x | x<<1) & 0x5555555555555555
}

// deinterleave is the inverse of interleave.
func deinterleave(h uint64) (x, y uint32) { return compactBits(h), compactBits(h >> 1) }

func compactBits(x uint64) uint32 {
	x &= 0x5555555555555555
	x = (x | x>>1) & 0x3333333333333333
	x = (x | x>>2) & 0x0f0f0f0f0f0f0f0f
	x = (x | x>>4) & 0x00ff00ff00ff00ff
	x = (x | x>>8) & 0x0000ffff0000ffff
	return uint32(x | x>>16)
}

// offset returns the cell that lies the given number of cells further east and
// north, modulo the size of the grid. (A point exactly on the upper limit has a
// cell outside of the grid. That cell stays outside unless its coordinate changes.)
func (c cell) offset(east, north int) cell {
	latitude, longitude := deinterleave(c.bits)
	mask := uint32(1)<<c.step - 1
	if north != 0 {
		latitude = (latitude + uint32(north)) & mask
	}
	if east != 0 {
		longitude = (longitude + uint32(east)) & mask
	}
	return cell{interleave(latitude, longitude), c.step}
}
