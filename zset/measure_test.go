package zset

// Tests that measure memory. Other work of the process and the machine can break
// them, so make faults runs them and go test ./... does not.

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"testing"
)

// measured skips a test unless make faults runs it.
func measured(t *testing.T) {
	t.Helper()
	if os.Getenv("ZSETD_MEASURE") == "" {
		t.Skip("it measures memory: make faults")
	}
}

// TestMeasurePackedBytes bounds the memory of packed sets, including the Set itself.
func TestMeasurePackedBytes(t *testing.T) {
	measured(t)
	for _, c := range []struct{ members, length, most int }{
		{1, 8, 32},
		{5, 8, 104},
		{5, 14, 136},
		{100, 8, 1800},
		{100, 14, 2320},
		{packedMax, packedMemberMax, 9480},
	} {
		sets := 20_000 / (10 + c.members)
		var before, after runtime.MemStats
		all := make([]*Set, sets)
		loaded := make([]*Set, sets)
		measure := func(fill func(i int)) float64 {
			collectGarbage()
			runtime.ReadMemStats(&before)
			for i := range sets {
				fill(i)
			}
			collectGarbage()
			runtime.ReadMemStats(&after)
			return (float64(after.HeapAlloc) - float64(before.HeapAlloc)) / float64(sets)
		}
		added := measure(func(i int) {
			all[i] = new(Set)
			for j := range c.members {
				all[i].Internal().AddIf(fmt.Appendf(nil, "%0*d", c.length, j), float64(j*i%7), 0)
			}
		})
		// The allocator's next size class is up to an eighth larger.
		most := float64(c.most)
		if added > most*9/8+16 {
			t.Errorf("%d members of %d bytes take %.0f bytes, want at most %.0f", c.members, c.length, added, most)
		}
		load := measure(func(i int) {
			var elements []Element
			for j := range c.members {
				elements = append(elements, Element{fmt.Sprintf("%0*d", c.length, j), float64(j * i % 7)})
			}
			loaded[i] = Load(elements)
		})
		if load > most*9/8+16 {
			t.Errorf("%d members of %d bytes take %.0f bytes after Load, want at most %.0f", c.members, c.length, load, most)
		}
		t.Logf("%d members of %d bytes: %.0f bytes, loaded %.0f", c.members, c.length, added, load)
		if estimated := all[7].Bytes() + c.members*c.length; float64(estimated) < added*0.9-16 || float64(estimated) > added*1.1+16 {
			t.Errorf("%d members of %d bytes take %.0f bytes, Bytes estimates %d", c.members, c.length, added, estimated)
		}
		runtime.KeepAlive(all)
		runtime.KeepAlive(loaded)
	}
}

// collectGarbage runs two collections, which also free the garbage of other tests.
func collectGarbage() {
	runtime.GC()
	runtime.GC()
}

// TestMeasureChurn replaces every member ten times, in insertion order and at random.
// Garbage must not accumulate.
func TestMeasureChurn(t *testing.T) {
	measured(t)
	r := rand.New(rand.NewPCG(8, 9))
	heap := func() float64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return float64(stats.HeapAlloc)
	}
	for name, size := range map[string]int{"by age": 20_000, "at random": 100_000} {
		before := heap()
		var s Set
		var b []byte
		member := func(i int) []byte { b = fmt.Appendf(b[:0], "member:%09d", i); return b }
		for i := range size {
			s.Internal().AddIf(member(i), r.Float64(), 0)
		}
		fresh := heap() - before
		for round := range 10 {
			order := r.Perm(size)
			if name == "by age" {
				slices.Sort(order)
			}
			for _, i := range order {
				s.Internal().Remove(member(round*size + i))
				s.Internal().AddIf(member((round+1)*size+i), r.Float64(), 0)
			}
			if round == 0 {
				if err := s.Check(); err != nil {
					t.Fatal(err)
				}
			}
		}
		churned := heap() - before
		t.Logf("%s: %.1f bytes for each member, %.1f when all were replaced ten times", name, fresh/float64(size), churned/float64(size))
		if churned > 1.4*fresh {
			t.Errorf("%s: %.1f bytes for each member became %.1f", name, fresh/float64(size), churned/float64(size))
		}
		runtime.KeepAlive(&s)
	}
}
