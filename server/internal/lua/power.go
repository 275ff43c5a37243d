package lua

import (
	"math"

	"github.com/zsetd/zsetd/server/internal/lua/conv"
)

// Power returns x ^ y as C's pow does, rounded to the nearest number; package math's is less exact. It
// computes exp(y log x) with pairs of numbers, which have 106 bits. The sign of NaN is that
// of glibc on amd64.
func Power(x, y float64) float64 {
	switch {
	case y == 0, x == 1:
		return 1
	case y != y && x == x:
		return y
	case x != x:
		if math.Signbit(x) && math.Mod(y, 2) != 0 && y == math.Trunc(y) && !math.IsInf(y, 0) {
			return -x
		}
		return x
	case y == 2:
		return x * x
	case x == 0 || math.IsInf(x, 0) || math.IsInf(y, 0):
		return math.Pow(x, y)
	}
	negative := false
	if x < 0 {
		if y != math.Trunc(y) {
			return math.Copysign(conv.NaN(), -1)
		}
		x, negative = -x, math.Mod(y, 2) != 0
	}
	r := positivePower(x, y)
	if negative {
		r = -r
	}
	return r
}

// positivePower is Power of a finite number above 0.
func positivePower(x, y float64) float64 {
	switch rough := math.Log(x) * y; { // a product of pairs may overflow
	case rough > 1000:
		return math.Inf(1)
	case rough < -1000:
		return 0
	}
	l := logarithm(x).times(pair{y, 0})
	switch {
	case l.high > 710:
		return math.Inf(1)
	case l.high < -746:
		return 0
	}
	return exponential(l)
}

// pair is a sum of two numbers, of which the second is less than the last bit of the first.
type pair struct{ high, low float64 }

// ln2 returns the logarithm of 2.
func ln2() pair { return pair{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56} }

// sum returns a + b.
func sum(a, b float64) pair {
	s := a + b
	t := s - a
	return pair{s, (a - (s - t)) + (b - t)}
}

// product returns a * b.
func product(a, b float64) pair {
	p := a * b
	return pair{p, math.FMA(a, b, -p)}
}

func (p pair) plus(q pair) pair {
	s := sum(p.high, q.high)
	return sum(s.high, s.low+p.low+q.low)
}

func (p pair) times(q pair) pair {
	s := product(p.high, q.high)
	return sum(s.high, s.low+(float64(p.high*q.low)+float64(p.low*q.high)))
}

func (p pair) over(q pair) pair {
	a := p.high / q.high
	r := p.plus(q.times(pair{-a, 0}))
	b := r.high / q.high
	r = r.plus(q.times(pair{-b, 0}))
	return sum(a, b).plus(pair{r.high / q.high, 0})
}

// logarithm returns the natural logarithm of a finite number above 0: with x = m 2^e and
// s = (m-1)/(m+1), it is e log 2 + 2 (s + s^3/3 + s^5/5 + …).
func logarithm(x float64) pair {
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, e = m*2, e-1
	}
	s := pair{m - 1, 0}.over(sum(m, 1))
	square := s.times(s)
	series := pair{}
	for n := 43; n >= 1; n -= 2 {
		series = series.times(square).plus(pair{1, 0}.over(pair{float64(n), 0}))
	}
	series = series.times(s)
	return pair{2 * series.high, 2 * series.low}.plus(ln2().times(pair{float64(e), 0}))
}

// exponential returns e^p: 2^k times the 16th power of a series for what remains.
func exponential(p pair) float64 {
	k := math.Round(p.high / ln2().high)
	r := p.plus(ln2().times(pair{-k, 0}))
	r = pair{r.high / 16, r.low / 16}
	e := pair{1, 0}
	for n := 16; n >= 1; n-- {
		e = e.times(r).over(pair{float64(n), 0}).plus(pair{1, 0})
	}
	for range 4 {
		e = e.times(e)
	}
	return math.Ldexp(e.high, int(k))
}
