package differential

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/servertest/rerun"

	"github.com/zsetd/zsetd/server/servertest/judge"
)

// TestDoublesAsRedis compares how doubles are written with a server that writes them as
// Redis since 7.2 does: as many as -differential.n says.
func TestDoublesAsRedis(t *testing.T) {
	rerun.Skip(t)
	if opponent() == judge.Version {
		t.Skipf("Redis %s writes 17 digits", judge.Version)
	}
	dial := startCompared(t)
	real := judge.NewPeer(dial(), dial())
	r := rand.New(rand.NewPCG(*differentialSeed, 6))
	draw := []func() float64{
		func() float64 { return math.Float64frombits(r.Uint64()) },
		func() float64 { return math.Float64frombits(r.Uint64() >> r.IntN(64)) }, // also subnormal
		func() float64 { return math.Exp(r.Float64()*60 - 20) },
		func() float64 { return float64(r.Int64N(1<<40)) / math.Pow10(r.IntN(12)) },
		func() float64 { return float64(r.Int64N(1<<r.IntN(62))) / float64(int64(1)<<r.IntN(60)) },
		func() float64 { return near(r, math.Ldexp(1, r.IntN(2098)-1074)) },
		func() float64 { return near(r, math.Pow10(r.IntN(631)-323)) },
	}
	const batch = 1000
	different := 0
	for done := 0; done < *differentialN && different < maxReports; done += batch {
		add, ask := []string{"ZADD", "doubles"}, []string{"ZMSCORE", "doubles"}
		var numbers []float64
		for len(numbers) < batch {
			f := draw[r.IntN(len(draw))]()
			if math.IsNaN(f) {
				continue
			}
			member := strconv.Itoa(len(numbers))
			add, ask = append(add, strconv.FormatFloat(f, 'g', 17, 64), member), append(ask, member)
			numbers = append(numbers, f)
		}
		replies, err := real.Pipeline([][]string{add, ask})
		if err != nil {
			t.Fatal(err)
		}
		v, _, err := protocol.Decode([]byte(replies[1]))
		list, _ := v.([]any)
		if err != nil || len(list) != len(numbers) {
			t.Fatalf("%.200q, %v", replies, err)
		}
		for i, f := range numbers {
			if got := string(protocol.AppendFloat(nil, f)); got != list[i] {
				different++
				t.Errorf("%b: %s, not %s", f, got, list[i])
			}
		}
	}
}

// near returns one of the numbers next to f.
func near(r *rand.Rand, f float64) float64 {
	for range r.IntN(4) {
		f = math.Nextafter(f, []float64{0, math.MaxFloat64}[r.IntN(2)])
	}
	return f
}
