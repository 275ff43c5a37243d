package zset

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func Benchmark(b *testing.B) {
	for _, size := range []int{5, 100, 10_000, 1_000_000} {
		r := rand.New(rand.NewPCG(1, 2))
		members := make([]string, 2*size)
		elements := make([]Element, size)
		for i, j := range r.Perm(2 * size) {
			members[i] = fmt.Sprintf("member:%07d", j)
		}
		for i := range elements {
			elements[i] = Element{members[i], r.Float64()}
		}
		s := new(Set)
		for _, e := range elements {
			s.Add(e.Member, e.Score)
		}
		run := func(name string, f func(b *testing.B)) {
			b.Run(fmt.Sprintf("%s/n=%d", name, size), func(b *testing.B) {
				b.ReportAllocs()
				f(b)
			})
		}
		run("Score", func(b *testing.B) {
			for b.Loop() {
				s.Score(members[r.IntN(size)])
			}
		})
		run("Rank", func(b *testing.B) {
			for b.Loop() {
				s.Rank(members[r.IntN(size)])
			}
		})
		run("At", func(b *testing.B) {
			for b.Loop() {
				s.At(r.IntN(size))
			}
		})
		run("RangeByScore10", func(b *testing.B) {
			for b.Loop() {
				lo, hi := s.ScoreSpan(ScoreRange{Min: r.Float64(), Max: 1})
				for range s.Span(lo, min(hi, lo+10)) {
				}
			}
		})
		run("Update", func(b *testing.B) {
			for b.Loop() {
				s.Add(members[r.IntN(size)], r.Float64())
			}
		})
		run("Incr", func(b *testing.B) { // small increments, as in games
			for b.Loop() {
				s.Incr(members[r.IntN(size)], 1e-8, 0)
			}
		})
		// Each addition adds a new member; the removal before keeps the size.
		run("RemoveAdd", func(b *testing.B) {
			for b.Loop() {
				i, j := r.IntN(size), size+r.IntN(size)
				s.Remove(members[i])
				s.Add(members[j], r.Float64())
				members[i], members[j] = members[j], members[i]
			}
		})
		run("Add", func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				s := new(Set)
				b.StartTimer()
				for _, e := range elements {
					s.Add(e.Member, e.Score)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size), "ns/element")
		})
		run("AddInOrder", func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				s := new(Set)
				b.StartTimer()
				for i, member := range members[:size] {
					s.Add(member, float64(i))
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size), "ns/element")
		})
		run("PopMin", func(b *testing.B) { // and adds the element again
			for b.Loop() {
				e := s.PopMin(1)[0]
				s.Add(e.Member, r.Float64())
			}
		})
		// Random spans, most of them large, until the set is empty.
		run("RemoveSpans", func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				c := new(Set)
				for _, e := range elements {
					c.Add(e.Member, e.Score)
				}
				b.StartTimer()
				for c.Len() > 0 {
					lo, hi := r.Float64(), r.Float64()
					c.RemoveScore(ScoreRange{Min: min(lo, hi), Max: max(lo, hi)})
					if c.Len() < size/100 {
						c.Clear()
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size), "ns/element")
		})
		run("Clone", func(b *testing.B) {
			for b.Loop() {
				s.Clone()
			}
		})
		run("CloneAdd", func(b *testing.B) { // the first change after a clone
			for b.Loop() {
				s.Clone()
				s.Add(members[r.IntN(size)], r.Float64())
			}
		})
		run("All", func(b *testing.B) {
			for b.Loop() {
				for range s.All() {
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size), "ns/element")
		})
	}
}
