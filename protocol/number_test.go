package protocol

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

func TestAppendInt(t *testing.T) {
	check := func(n int64) {
		t.Helper()
		if got, want := string(AppendInt([]byte("x"), n)), "x"+strconv.FormatInt(n, 10); got != want {
			t.Fatalf("%q, want %q", got, want)
		}
		var r Reply
		r.Int(n)
		r.BulkInt(n)
		text := strconv.FormatInt(n, 10)
		if got, want := string(r.Bytes()), ":"+text+"\r\n$"+strconv.Itoa(len(text))+"\r\n"+text+"\r\n"; got != want {
			t.Fatalf("%q, want %q", got, want)
		}
	}
	for p := int64(1); p > 0; p *= 2 {
		for d := int64(-2); d <= 2; d++ {
			check(p + d)
			check(-p + d)
		}
	}
	for p := int64(1); p < math.MaxInt64/10; p *= 10 {
		for d := int64(-2); d <= 2; d++ {
			check(10*p + d)
			check(-10*p + d)
		}
	}
	check(math.MinInt64)
	check(math.MaxInt64)
}

func BenchmarkNumbers(b *testing.B) {
	var d [32]byte
	b.Run("int", func(b *testing.B) {
		for i := int64(0); b.Loop(); i++ {
			AppendInt(d[:0], 1234567+i&0xff)
		}
	})
	for _, f := range []float64{12345, 50000.5, 1732200000.123456, 0.1} {
		b.Run(strconv.FormatFloat(f, 'g', -1, 64), func(b *testing.B) {
			for b.Loop() {
				AppendFloat(d[:0], f)
			}
		})
		b.Run(strconv.FormatFloat(f, 'g', -1, 64)+" by strconv", func(b *testing.B) {
			for b.Loop() {
				strconv.AppendFloat(d[:0], f, 'g', -1, 64)
			}
		})
	}
	var r Reply
	for _, s := range []string{"short", "member:00123", "a member of some thirty bytes."} {
		b.Run("bulk of "+strconv.Itoa(len(s)), func(b *testing.B) {
			for b.Loop() {
				r.Truncate(0)
				for range 16 {
					r.BulkString(s)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*16), "ns/each")
		})
	}
}

// TestParseFloatDecimals compares the fast path of ParseFloat with strconv.
func TestParseFloatDecimals(t *testing.T) {
	check := func(text string) {
		t.Helper()
		want, err := strconv.ParseFloat(text, 64)
		got, ok := ParseFloat([]byte(text))
		if ok != (err == nil) || ok && math.Float64bits(got) != math.Float64bits(want) {
			t.Fatalf("%q: %v %v, want %v %v", text, got, ok, want, err)
		}
	}
	for _, text := range []string{"", ".", "-", "-.", "1.", ".1", "-.5", "1..2", "1.2.3", "-0.5", "0.5", "00.5", "-0.0", "0.0", "9007199254740993",
		"-900719925474099", "900719925474099.3", "9007199254740.99", "-1.", "+1.5", "1.5e3", " 1.5", "1.5 "} {
		check(text)
	}
	for range 300_000 {
		n := 1 + rand.IntN(18)
		b := make([]byte, n)
		for i := range b {
			b[i] = '0' + byte(rand.IntN(10))
		}
		if rand.IntN(3) > 0 {
			b[rand.IntN(n)] = '.'
		}
		if rand.IntN(8) == 0 {
			b[rand.IntN(n)] = "-.+e"[rand.IntN(4)]
		}
		check(string(b))
	}
}
