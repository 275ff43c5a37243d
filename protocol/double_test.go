package protocol

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// TestAppendFloatRecorded compares AppendFloat with replies of Redis 8.6.3. The test
// TestDoublesAsRedis of server/internal/tests/differential asks a server for more.
func TestAppendFloatRecorded(t *testing.T) {
	for _, s := range strings.Fields(`0 -0 1 -1 0.1 0.5 -2.25 50000.5 12.34 0.001 1.234e-4 0.0012345678 1e-7 0.000001 1.5e-7
		4.1011447058216774e+8 1732200000.123456 123456789.015625 1986246434119406.3 99999999.999999
		4611686018427387904 -4611686018427387904 -4611686018427389000 4611686018427389000 921460748335552256 49999999999999996000000 1e+20 1.2345e+25
		-7.106426066689782e-48 1.7706706665906161e+210 1.7976931348623157e+308 2.2250738585072014e-308 2.62754e-318 5.4e-321 5e-324
		1e-322 1e-323 4.83e-321`) {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(AppendFloat(nil, f)); got != s {
			t.Errorf("%s, want %s", got, s)
		}
	}
	for f, want := range map[float64]string{math.Inf(1): "inf", math.Inf(-1): "-inf", math.NaN(): "nan"} {
		if got := string(AppendFloat([]byte("x"), f)); got != "x"+want {
			t.Errorf("%s, want x%s", got, want)
		}
	}
}

// TestAppendFloat checks that the text identifies the number, with hardly more digits than
// are needed, and that it is as short as AppendFloat says.
func TestAppendFloat(t *testing.T) {
	numbers, more := 0, 0
	var d [32]byte
	check := func(f float64) {
		t.Helper()
		got := string(AppendFloat(d[:0], f))
		if back, err := strconv.ParseFloat(got, 64); err != nil || math.Float64bits(back) != math.Float64bits(f) {
			t.Fatalf("%s is %b, not %b", got, back, f)
		}
		if len(got) > 25 {
			t.Fatalf("%s has %d bytes", got, len(got))
		}
		if math.Abs(f) <= 1<<62 && f == math.Trunc(f) {
			return // all digits of an integer
		}
		count := func(s string) int {
			s, _, _ = strings.Cut(s, "e")
			return len(strings.Trim(strings.Replace(strings.TrimPrefix(s, "-"), ".", "", 1), "0"))
		}
		numbers++
		if count(got) > count(strconv.FormatFloat(f, 'e', -1, 64)) {
			more++
		}
	}
	check(math.MaxFloat64)
	check(5e-324)
	around := func(f float64) {
		for _, sign := range []float64{1, -1} {
			low, high := f, f
			for range 20 {
				check(sign * low)
				check(sign * high)
				low, high = math.Nextafter(low, 0), math.Nextafter(high, math.MaxFloat64)
			}
		}
	}
	for e := -1074; e < 1024; e++ {
		around(math.Ldexp(1, e))
		around(math.Pow10(e/4) * 5)
	}
	if more*50 > numbers { // powers of two have more than others
		t.Errorf("%d of %d numbers have more digits than are needed", more, numbers)
	}
	numbers, more = 0, 0
	for range 50_000 {
		// Various distributions: random bits, magnitudes, few decimals, ties in the
		// last digit, few digits.
		b := rand.Uint64()
		check(math.Float64frombits(b &^ (1 << 62)))
		check(math.Float64frombits(b >> (12 + rand.IntN(50))))
		check(math.Exp(rand.Float64()*50 - 10))
		check(float64(rand.IntN(1e9)) / math.Pow10(rand.IntN(9)))
		check(float64(rand.Int64N(1<<53)) / float64(int64(1)<<rand.IntN(60)))
		check(float64(2*rand.Int64N(1<<rand.IntN(40))+1) / float64(int64(1)<<rand.IntN(30)))
	}
	if more*500 > numbers {
		t.Errorf("%d of %d numbers have more digits than are needed", more, numbers)
	}
}

// TestGrisuPowers computes the table again.
func TestGrisuPowers(t *testing.T) {
	for i := range len(grisuPowers) / 8 {
		got := grisuPower(i)
		n := grisuFirst + i*grisuStep
		power := new(big.Float).SetPrec(4000).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(n, -n))), nil))
		if n < 0 {
			power.Quo(big.NewFloat(1).SetPrec(4000), power)
		}
		power.SetPrec(64)
		exponent := power.MantExp(nil) - 64
		want, _ := new(big.Float).SetMantExp(power, -exponent).Uint64()
		if got != want || grisuExponent(i) != exponent {
			t.Errorf("10^%d: %#x * 2^%d, want %#x * 2^%d", n, got, grisuExponent(i), want, exponent)
		}
	}
}
