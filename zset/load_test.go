package zset

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestLoader loads sets of all sizes and orders with one Loader, beside a model.
func TestLoader(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var l Loader
	for _, n := range []int{0, 1, 2, 5, packedMax, packedMax + 1, 2*leafFill + 1, 1000, stagedMax, stagedMax + 1, stagedMax + leafFill + 3, 50000} {
		for _, order := range []string{"ascending", "descending", "random", "again", "equal"} {
			for _, long := range []bool{false, true} {
				elements := make([]Element, n)
				for i := range elements {
					elements[i] = Element{fmt.Sprintf("member:%06d", i), float64(i / 2)}
					switch order {
					case "again": // many members come more than once
						elements[i] = Element{fmt.Sprint(r.IntN(n)), float64(r.IntN(100))}
					case "equal":
						elements[i].Score = 7
					}
				}
				if long && n > 0 {
					elements[n/2].Member += strings.Repeat("x", 300)
				}
				switch order {
				case "descending":
					slices.Reverse(elements)
				case "random", "equal":
					r.Shuffle(n, func(i, j int) { elements[i], elements[j] = elements[j], elements[i] })
				}
				want := map[string]float64{}
				member := make([]byte, 0, 400)
				for i, e := range elements {
					member = append(member[:0], e.Member...) // the same memory for all
					l.Add(member, e.Score)
					want[e.Member] = e.Score
					if i%7 == 0 {
						l.Add([]byte("not a number"), math.NaN())
					}
				}
				for name, s := range map[string]*Set{"Loader": l.Set(), "Load": Load(slices.Clone(elements))} {
					if err := s.Check(); err != nil {
						t.Fatalf("%s, %d %s: %v", name, n, order, err)
					}
					if s.Len() != len(want) {
						t.Fatalf("%s, %d %s: %d elements, want %d", name, n, order, s.Len(), len(want))
					}
					for member, score := range s.All() {
						if want[member] != score {
							t.Fatalf("%s, %d %s: %q has score %v, want %v", name, n, order, member, score, want[member])
						}
					}
					for i := range 3 * leafFill { // the set takes changes, in its leaves and in the arena
						s.Add(fmt.Sprint("new ", i), float64(r.IntN(n+1)))
						s.RemoveRank(0, 1)
					}
					if err := s.Check(); err != nil {
						t.Fatalf("%s, %d %s, after changes: %v", name, n, order, err)
					}
				}
			}
		}
	}
}

// BenchmarkLoader loads sets that come in their order.
func BenchmarkLoader(b *testing.B) {
	for _, n := range []int{5, 100, 1000, 1000000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var members [][]byte
			for i := range n {
				members = append(members, fmt.Appendf(nil, "member:%012d", i))
			}
			var l Loader
			b.ReportAllocs()
			for b.Loop() {
				for i, m := range members {
					l.Add(m, float64(i))
				}
				l.Set()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/element")
		})
	}
}
