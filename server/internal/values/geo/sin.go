package geo

import "math"

// Sine, cosine and arc sine with results as close to correct rounding as those of
// C. Clients see all digits of distances and the order by distance, so the results
// should equal those of Redis. C's functions have errors slightly above half a unit
// in the last place (the last bit depends on the machine, because glibc uses fused
// multiply-add where available); Go's have errors up to one unit. These functions
// use double-double arithmetic (Dekker, 1971), which has about twenty additional
// bits here.

// doubleDouble is the unevaluated sum of a float64 and a small correction.
type doubleDouble struct{ hi, lo float64 }

// twoSum returns the exact sum, provided that |a| >= |b|.
func twoSum(a, b float64) doubleDouble {
	s := a + b
	return doubleDouble{s, b - (s - a)}
}

func twoProduct(a, b float64) doubleDouble {
	p := a * b
	return doubleDouble{p, math.FMA(a, b, -p)}
}

func (a doubleDouble) times(b doubleDouble) doubleDouble {
	p := twoProduct(a.hi, b.hi)
	return twoSum(p.hi, p.lo+(float64(a.hi*b.lo)+float64(a.lo*b.hi)))
}

// over returns a divided by n.
func (a doubleDouble) over(n float64) doubleDouble {
	q := a.hi / n
	return twoSum(q, (math.FMA(-q, n, a.hi)+a.lo)/n)
}

// pi/2 as a double-double.
const (
	quarterHi = 1.57079632679489655800e+00
	quarterLo = 6.12323399573676603587e-17
)

// reduce subtracts n quarter turns from x, which is in [0, pi], so that the result
// r is in [-pi/4, pi/4].
func reduce(x float64) (r doubleDouble, n int) {
	switch {
	case x <= math.Pi/4:
		return doubleDouble{x, 0}, 0
	case x <= 3*math.Pi/4:
		n = 1
	default:
		n = 2
	}
	// The difference is exact, because the operands are close (Sterbenz).
	q := float64(n)
	d := x - q*quarterHi
	if d == 0 {
		return doubleDouble{-q * quarterLo, 0}, n
	}
	return twoSum(d, -q*quarterLo), n
}

// smallSin returns the sine of an angle in [-pi/4, pi/4] by its Taylor series. The
// terms x and x³/6 are double-doubles, the others are float64.
func smallSin(x doubleDouble) doubleDouble {
	s := x.times(x)
	z := s.hi
	rest := z * z * x.hi * horner(z, 1./120, -1./5040, 1./362880, -1./39916800, 1./6227020800, -1./1307674368000,
		1./355687428096000, -1./121645100408832000)
	cube := s.times(x).over(6)
	return twoSum(x.hi, -cube.hi).plus(x.lo - cube.lo + rest)
}

func (a doubleDouble) plus(b float64) doubleDouble { return twoSum(a.hi, a.lo+b) }

// horner evaluates a polynomial at z.
func horner(z float64, coefficients ...float64) (sum float64) {
	for i := len(coefficients) - 1; i >= 0; i-- {
		sum = float64(sum*z) + coefficients[i]
	}
	return sum
}

// smallCos returns the cosine of an angle in [-pi/4, pi/4], as smallSin does for
// the sine.
func smallCos(x doubleDouble) doubleDouble {
	s := x.times(x)
	z := s.hi
	rest := z * z * z * horner(z, -1./720, 1./40320, -1./3628800, 1./479001600, -1./87178291200, 1./20922789888000,
		-1./6402373705728000)
	fourth := s.times(s).over(24)
	half := doubleDouble{s.hi / 2, s.lo / 2}
	c := twoSum(1, -half.hi)
	c = c.plus(-half.lo)
	d := twoSum(c.hi, fourth.hi)
	return d.plus(c.lo + fourth.lo + rest)
}

// sin returns the sine of x.
func sin(x float64) float64 {
	if !(math.Abs(x) <= math.Pi) {
		return math.Sin(x)
	}
	return math.Copysign(1, x) * sinOf(math.Abs(x)).hi
}

// sinOf returns the sine of x, which is in [0, pi].
func sinOf(x float64) doubleDouble {
	switch r, n := reduce(x); n {
	case 0:
		return smallSin(r)
	case 1:
		return smallCos(r)
	default:
		return smallSin(r).neg()
	}
}

func (a doubleDouble) neg() doubleDouble { return doubleDouble{-a.hi, -a.lo} }

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
		return smallSin(r).neg().hi
	default:
		return smallCos(r).neg().hi
	}
}

// asin returns the arc sine of y, which is not negative: the result of math.Asin,
// improved by one step of Newton's method.
func asin(y float64) float64 {
	x := math.Asin(y)
	if x == 0 || math.IsNaN(x) {
		return x
	}
	s, c := sinOf(x), math.Cos(x)
	if c < 1e-6 { // nearly antipodal: a Newton step gains little, and Asin is accurate enough
		return x
	}
	return x + ((y-s.hi)-s.lo)/c
}
