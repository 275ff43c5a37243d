package geo

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// exactSin is the sine of x, in 200 bits.
func exactSin(x float64, cosine bool) *big.Float {
	number := func(f float64) *big.Float { return new(big.Float).SetPrec(200).SetFloat64(f) }
	t, s := number(x), number(0)
	n := 1
	if cosine {
		t, n = number(1), 0
	}
	square := new(big.Float).Mul(number(x), number(x))
	for range 60 {
		s.Add(s, t)
		t.Mul(t, square)
		t.Quo(t, number(-float64((n+1)*(n+2))))
		n += 2
	}
	return s
}

// off returns the error of got in units in the last place.
func off(got float64, want *big.Float) float64 {
	near, _ := want.Float64()
	d, _ := new(big.Float).Sub(new(big.Float).SetPrec(200).SetFloat64(got), want).Float64()
	return math.Abs(d) / (math.Nextafter(math.Abs(near), math.Inf(1)) - math.Abs(near))
}

func TestSines(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	var worst [3]float64
	for range 3000 {
		x := r.Float64() * math.Pi
		if r.IntN(2) == 0 {
			x *= math.Exp(-20 * r.Float64())
		}
		worst[0] = max(worst[0], off(sin(x), exactSin(x, false)))
		worst[1] = max(worst[1], off(cos(x), exactSin(x, true)))
		if sin(-x) != -sin(x) || cos(-x) != cos(x) {
			t.Fatal(x)
		}
		if x > 1.57 {
			continue
		}
		// An arc sine is correct if no neighbouring float64 has a sine closer to y.
		y := math.Sin(x)
		a := asin(y)
		d, _ := new(big.Float).Sub(exactSin(a, false), new(big.Float).SetFloat64(y)).Float64()
		ulp := math.Nextafter(a, 2) - a
		worst[2] = max(worst[2], math.Abs(d)/math.Cos(a)/ulp)
	}
	t.Log("worst errors of sin, cos, asin, in the last bit:", worst)
	for _, w := range worst {
		if w > 0.52 {
			t.Error("error of the sine in units in the last place:", worst)
		}
	}
	for _, x := range []float64{0, math.Inf(1), math.NaN(), 100} {
		if got, want := sin(x), math.Sin(x); got != want && want == want {
			t.Error("sin", x, got)
		}
		if got, want := cos(x), math.Cos(x); got != want && want == want {
			t.Error("cos", x, got)
		}
	}
}

// TestRangesCover checks that the ranges of a shape contain the points of the
// shape.
func TestRangesCover(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	for range 3000 {
		s := Shape{Unit: 1, Center: Point{r.Float64()*300 - 150, r.Float64()*140 - 70}}
		size := math.Exp(r.Float64() * 13)
		s.Radius = size
		if r.IntN(2) == 0 {
			s.Box, s.Width, s.Height = true, size*2, size*(r.Float64()+.5)
		}
		ranges := s.Ranges()
		for range 30 {
			p := PointOf(Point{
				min(max(s.Center.Longitude+r.NormFloat64()*size/60000, -180), 180),
				min(max(s.Center.Latitude+r.NormFloat64()*size/100000, -85), 85),
			}.Score())
			if _, ok := s.Contains(p); !ok {
				continue
			}
			score, found := p.Score(), false
			for _, x := range ranges {
				found = found || x.Min <= score && score < x.Max
			}
			if !found {
				t.Fatalf("%+v contains %v, which none of %v contains", s, p, ranges)
			}
		}
	}
}

func BenchmarkDistance(b *testing.B) {
	p, q := Point{13.361389, 38.115556}, Point{15.087269, 37.502669}
	for b.Loop() {
		Distance(p, q)
	}
}
