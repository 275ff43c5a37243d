package score

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/zset"
)

const now = 1_700_000_000_123_456 // microseconds since 1970

func TestParseTime(t *testing.T) {
	for text, want := range map[string]float64{
		"@now":           1_700_000_000.123456,
		"@NOW":           1_700_000_000.123456,
		"@nowms":         1_700_000_000_123,
		"@nowMS+1":       1_700_000_000_124,
		"@now+1":         1_700_000_001.123456,
		"@now-1h30m":     1_699_994_600.123456,
		"@now+1d2h3m4s":  1_700_093_784.123456,
		"@now+0.5":       1_700_000_000.623456,
		"@now-0.123456s": 1_700_000_000,
		"@nowms-500ms":   1_699_999_999_623,
		"@nowms+1.5s":    1_700_000_001_623,
	} {
		x, ok := ParseTime([]byte(text))
		if got := x.At(now); !ok || !x.Moves() || got != want {
			t.Errorf("%s is %v, %t, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{
		"", "1", "@", "@no", "now", "@now ", "@now1", "@now+", "@now-", "@now+h", "@now+1x", "@now+1h2", "@now+-1", "@now+1m1", "@now+1.2.3",
		"@nowm", "@now+1M", "@now+1e3", "@now+inf", "@now+99999999999999999999d", "@now*2",
	} {
		if x, ok := ParseTime([]byte(text)); ok {
			t.Errorf("%q is a time: %+v", text, x)
		}
	}
}

func TestParseRange(t *testing.T) {
	for text, want := range map[string]zset.ScoreRange{
		"1 2":               {Min: 1, Max: 2},
		"(1 (2":             {Min: 1, MinExclusive: true, Max: 2, MaxExclusive: true},
		"-inf +inf":         {Min: math.Inf(-1), Max: math.Inf(1)},
		"(@now-1s @nowms":   {Min: 1_699_999_999.123456, MinExclusive: true, Max: 1_700_000_000_123},
		"1\x00x 2":          {Min: 1, Max: 2},
		"-inf (@nowms+1000": {Min: math.Inf(-1), Max: 1_700_000_001_123, MaxExclusive: true},
	} {
		lo, hi, _ := strings.Cut(text, " ")
		r, ok := ParseRange([]byte(lo), []byte(hi))
		if got := r.At(now); !ok || got != want {
			t.Errorf("%q is %+v, %t, want %+v", text, got, ok, want)
		}
	}
	for _, text := range []string{"a 1", "1 b", "nan 1", "1 nan", "((1 2", "1_000 2", "0x10 20", "\t1 2", "@nov 1", "1 (@now+", "* 1"} {
		lo, hi, _ := strings.Cut(text, " ")
		if r, ok := ParseRange([]byte(lo), []byte(hi)); ok {
			t.Errorf("%q is a range: %+v", text, r)
		}
	}
}

// TestErrors checks that only arguments that resemble times or tickets get a hint.
func TestErrors(t *testing.T) {
	for _, x := range []struct{ got, want string }{
		{NotFloat([]byte("x")), protocol.ErrNotFloat},
		{NotFloat([]byte("@x")), protocol.ErrNotFloat + TimeForms},
		{NotFloat([]byte("*")), protocol.ErrNotFloat + noTicket},
		{NotIncrement([]byte("x")), protocol.ErrNotFloat},
		{NotIncrement([]byte("@now")), protocol.ErrNotFloat + NoIncrement},
		{NotIncrement([]byte("*")), protocol.ErrNotFloat + NoIncrement},
		{NotRange([]byte("x"), []byte("@now")), errNotRange},
		{NotRange([]byte("1"), []byte("(@x")), errNotRange + TimeForms},
	} {
		if x.got != x.want {
			t.Errorf("%q, want %q", x.got, x.want)
		}
	}
}

// TestReaches checks that Reaches returns the first instant at which a score is within a
// bound.
func TestReaches(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		x := Score{Base: Seconds, Offset: rnd.Int64N(1e12) - 5e11}
		bound := 1.7e9 + float64(rnd.Int64N(1e12))/1e6
		if rnd.IntN(2) == 0 {
			x.Base, bound = Millis, math.Round(bound*1e3)
		}
		if rnd.IntN(4) == 0 {
			bound += rnd.Float64() * 1e-3
		}
		r := Range{Min: Score{Number: math.Inf(-1)}, Max: x, MaxExclusive: rnd.IntN(2) == 0}
		var s zset.Set
		s.Add("a", bound)
		in := func(t int64) bool { return s.CountScore(r.At(t)) == 1 }
		now := int64(1.6e15)
		if in(now) {
			continue
		}
		at := x.Reaches(bound, r.MaxExclusive, now)
		if !in(at) || in(at-1) {
			t.Fatalf("%+v reaches %v (beyond: %t) at %d: %t, and before: %t", x, bound, r.MaxExclusive, at, in(at), in(at-1))
		}
	}
	for _, bound := range []float64{1e18, math.Inf(1)} {
		if at := (Score{Base: Seconds}).Reaches(bound, false, 0); at != MaxInstant {
			t.Errorf("%v is reached at %d", bound, at)
		}
	}
}

func ExampleParseRange() {
	r, ok := ParseRange([]byte("-inf"), []byte("(@now-1h"))
	fmt.Println(r.At(7200e6).Max, r.Max.Moves(), ok)
	// The first instant at which the range contains the score 10.
	fmt.Println(r.Max.Reaches(10, r.MaxExclusive, 0))
	// Output:
	// 3600 true true
	// 3610000001
}
