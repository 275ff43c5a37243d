package compare

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	bytedance "github.com/bytedance/gopkg/collection/zset"

	"github.com/zsetd/zsetd/zset"
)

// ordered is the interface of the benchmarked sets.
type ordered interface {
	add(member string, score float64)
	remove(member string)
	score(member string) float64
	rank(member string) int
	between(min, max float64) int
}

type ours struct{ zset.Set }

func (o *ours) add(member string, score float64) { o.Add(member, score) }
func (o *ours) remove(member string)             { o.Remove(member) }
func (o *ours) score(member string) float64      { s, _ := o.Score(member); return s }
func (o *ours) rank(member string) int           { r, _ := o.Rank(member); return r }
func (o *ours) between(min, max float64) (n int) {
	for range o.ByScore(zset.ScoreRange{Min: min, Max: max}) {
		n++
	}
	return n
}

type theirs struct{ *bytedance.Float64Set }

func (o theirs) add(member string, score float64) { o.Add(score, member) }
func (o theirs) remove(member string)             { o.Remove(member) }
func (o theirs) score(member string) float64      { s, _ := o.Score(member); return s }
func (o theirs) rank(member string) int           { return o.Rank(member) }
func (o theirs) between(min, max float64) (n int) { return len(o.RangeByScore(min, max)) }

// operation is a benchmarked operation on a set of n members with scores in [0, 1).
type operation struct {
	name    string
	batch   func(set ordered, w *work)
	restore func(set ordered, w *work) // undoes the batch, not measured
}

// work is the random input of a batch.
type work struct {
	members []string // members of the set
	fresh   []string // members that the set does not have
	scores  []float64
	n       int
}

const batch = 1000

func operations() []operation {
	return []operation{
		{name: "Add", batch: func(s ordered, w *work) {
			for i, m := range w.fresh {
				s.add(m, w.scores[i])
			}
		}, restore: func(s ordered, w *work) {
			for _, m := range w.fresh {
				s.remove(m)
			}
		}},
		{name: "Update", batch: func(s ordered, w *work) {
			for i, m := range w.members {
				s.add(m, w.scores[i])
			}
		}},
		{name: "Score", batch: func(s ordered, w *work) {
			for _, m := range w.members {
				s.score(m)
			}
		}},
		{name: "Rank", batch: func(s ordered, w *work) {
			for _, m := range w.members {
				s.rank(m)
			}
		}},
		{name: "RangeOf10", batch: func(s ordered, w *work) {
			for _, x := range w.scores {
				s.between(x, x+10/float64(w.n))
			}
		}},
	}
}

// Benchmark measures batches of the same operations on both sets. Each set is alone
// in memory during its measurement, so that it causes all garbage collection. The
// input of a batch is drawn before the measurement.
func Benchmark(b *testing.B) {
	for _, n := range []int{100, 10_000, 1_000_000} {
		for _, impl := range []struct {
			name string
			new  func() ordered
		}{
			{"zsetd", func() ordered { return new(ours) }},
			{"bytedance", func() ordered { return theirs{bytedance.NewFloat64()} }},
		} {
			var set ordered // built for the first selected operation
			var members, fresh []string
			r := rand.New(rand.NewPCG(1, 2))
			build := func() {
				set = impl.new()
				for _, j := range r.Perm(n) {
					members, fresh = append(members, fmt.Sprintf("member:%07d", j)), append(fresh, fmt.Sprintf("fresh:%07d", j))
					set.add(members[len(members)-1], r.Float64())
				}
				runtime.GC()
			}
			for _, op := range operations() {
				b.Run(fmt.Sprintf("%s/n=%d/impl=%s", op.name, n, impl.name), func(b *testing.B) {
					if set == nil {
						build()
					}
					var spent time.Duration
					size := min(batch, n)
					w := &work{make([]string, size), make([]string, size), make([]float64, size), n}
					for b.Loop() {
						for i := range size {
							w.members[i] = members[r.IntN(n)]
							w.fresh[i] = fresh[r.IntN(n/size)*size+i]
							w.scores[i] = r.Float64()
						}
						start := time.Now()
						op.batch(set, w)
						spent += time.Since(start)
						if op.restore != nil {
							op.restore(set, w)
						}
					}
					b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N*size), "ns/op")
				})
			}
		}
	}
}

// BenchmarkMemory reports the heap bytes for each member, including the member's 14
// bytes.
func BenchmarkMemory(b *testing.B) {
	heap := func() float64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return float64(stats.HeapAlloc)
	}
	for _, n := range []int{1000, 100_000, 1_000_000} {
		for _, impl := range []string{"zsetd", "bytedance"} {
			b.Run(fmt.Sprintf("n=%d/impl=%s", n, impl), func(b *testing.B) {
				sets := make([]ordered, 1+10_000/n)
				r := rand.New(rand.NewPCG(1, 2))
				before := heap()
				for i := range sets {
					if sets[i] = ordered(new(ours)); impl == "bytedance" {
						sets[i] = theirs{bytedance.NewFloat64()}
					}
					for j := range n {
						sets[i].add(fmt.Sprintf("member:%07d", j), r.Float64())
					}
				}
				b.ReportMetric((heap()-before)/float64(n*len(sets)), "B/member")
				start := time.Now()
				runtime.GC()
				b.ReportMetric(float64(time.Since(start).Milliseconds()), "ms/GC")
				b.ReportMetric(0, "ns/op")
				runtime.KeepAlive(sets)
			})
		}
	}
}
