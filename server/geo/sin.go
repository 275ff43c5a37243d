package geo

import "math"

// Distances are shown with all their digits, and points are sorted by them, so
// the sines should be those of Redis: C's, which are off by little more than half of
// the last bit (and that bit depends on the machine, where glibc fuses products
// or does not). Go's own are off by up to a whole bit. These compute with some
// twenty bits more, as pairs of a float64 and what is missing from it.

// pair is a sum of two numbers; the second is small.
type pair struct{ hi, lo float64 }

// sum is exact if a is not the smaller one.
func sum(a, b float64) pair {
	s := a + b
	return pair{s, b - (s - a)}
}

func product(a, b float64) pair {
	p := a * b
	return pair{p, math.FMA(a, b, -p)}
}

func (a pair) times(b pair) pair {
	p := product(a.hi, b.hi)
	return sum(p.hi, p.lo+(float64(a.hi*b.lo)+float64(a.lo*b.hi)))
}

// over divides by a number.
func (a pair) over(n float64) pair {
	q := a.hi / n
	return sum(q, (math.FMA(-q, n, a.hi)+a.lo)/n)
}

// A quarter of a turn, pi/2.
const (
	quarterHi = 1.57079632679489655800e+00
	quarterLo = 6.12323399573676603587e-17
)

// reduce returns x, which is in [0, pi], less n quarters of a turn, between -pi/4 and
// pi/4.
func reduce(x float64) (r pair, n int) {
	switch {
	case x <= math.Pi/4:
		return pair{x, 0}, 0
	case x <= 3*math.Pi/4:
		n = 1
	default:
		n = 2
	}
	// The difference of numbers that are so close is exact.
	q := float64(n)
	d := x - q*quarterHi
	if d == 0 {
		return pair{-q * quarterLo, 0}, n
	}
	return sum(d, -q*quarterLo), n
}

// smallSin returns the sine of an angle between -pi/4 and pi/4: of its series, x and
// x³/6 with all bits, the others as numbers.
func smallSin(x pair) pair {
	s := x.times(x)
	z := s.hi
	rest := z * z * x.hi * horner(z, 1./120, -1./5040, 1./362880, -1./39916800, 1./6227020800, -1./1307674368000,
		1./355687428096000, -1./121645100408832000)
	cube := s.times(x).over(6)
	return sum(x.hi, -cube.hi).plus(x.lo - cube.lo + rest)
}

func (a pair) plus(b float64) pair { return sum(a.hi, a.lo+b) }

// horner returns a polynomial of z.
func horner(z float64, coefficients ...float64) (sum float64) {
	for i := len(coefficients) - 1; i >= 0; i-- {
		sum = float64(sum*z) + coefficients[i]
	}
	return sum
}

// smallCos is smallSin for the cosine.
func smallCos(x pair) pair {
	s := x.times(x)
	z := s.hi
	rest := z * z * z * horner(z, -1./720, 1./40320, -1./3628800, 1./479001600, -1./87178291200, 1./20922789888000,
		-1./6402373705728000)
	fourth := s.times(s).over(24)
	half := pair{s.hi / 2, s.lo / 2}
	c := sum(1, -half.hi)
	c = c.plus(-half.lo)
	d := sum(c.hi, fourth.hi)
	return d.plus(c.lo + fourth.lo + rest)
}

// sin returns the sine of x.
func sin(x float64) float64 {
	if !(math.Abs(x) <= math.Pi) {
		return math.Sin(x)
	}
	return math.Copysign(1, x) * sinOf(math.Abs(x)).hi
}

// sinOf returns the sine of an x in [0, pi].
func sinOf(x float64) pair {
	switch r, n := reduce(x); n {
	case 0:
		return smallSin(r)
	case 1:
		return smallCos(r)
	default:
		return smallSin(r).minus()
	}
}

func (a pair) minus() pair { return pair{-a.hi, -a.lo} }

// cos returns the cosine of x.
func cos(x float64) float64 {
	x = math.Abs(x)
	if !(x <= math.Pi) {
		return math.Cos(x)
	}
	switch r, n := reduce(x); n {
	case 0:
		return smallCos(r).hi
	case 1:
		return smallSin(r).minus().hi
	default:
		return smallCos(r).minus().hi
	}
}

// asin returns the arc sine of y, which is not negative: what Go finds, made better by one
// of Newton's steps.
func asin(y float64) float64 {
	x := math.Asin(y)
	if x == 0 || math.IsNaN(x) {
		return x
	}
	s, c := sinOf(x), math.Cos(x)
	if c < 1e-6 { // the other side of the earth: little to be had, and Asin is exact enough
		return x
	}
	return x + ((y-s.hi)-s.lo)/c
}
