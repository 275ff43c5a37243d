package compare

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	bytedance "github.com/bytedance/gopkg/collection/zset"

	"github.com/zsetd/zsetd/zset"
)

// ordered is what is compared.
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

// operations are what is done to a set of n members with scores in [0, 1).
// Each returns a function that does it once; prepare and finish stand outside
// of what is measured.
type operation struct {
	name    string
	batch   func(set ordered, w *work)
	restore func(set ordered, w *work)
}

// work is the random input of a batch: the same for both sets.
type work struct {
	members []string // that are there
	fresh   []string // that are not
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

// BenchmarkBeside times batches of the same operations on both sets in turn,
// so that what else the machine does strikes both, and reports the time of one
// operation on each and their ratio.
func BenchmarkBeside(b *testing.B) {
	for _, n := range []int{100, 10_000, 1_000_000} {
		r := rand.New(rand.NewPCG(1, 2))
		members, fresh := make([]string, n), make([]string, n)
		sets := []ordered{new(ours), theirs{bytedance.NewFloat64()}}
		for i, j := range r.Perm(n) {
			members[i], fresh[i] = fmt.Sprintf("member:%07d", j), fmt.Sprintf("fresh:%07d", j)
			score := r.Float64()
			for _, s := range sets {
				s.add(members[i], score)
			}
		}
		for _, op := range operations() {
			b.Run(fmt.Sprintf("%s/n=%d", op.name, n), func(b *testing.B) {
				var spent [2]time.Duration
				size := min(batch, n)
				w := &work{make([]string, size), make([]string, size), make([]float64, size), n}
				for b.Loop() {
					for i := range size {
						w.members[i] = members[r.IntN(n)]
						w.fresh[i] = fresh[r.IntN(len(fresh)/size)*size+i]
						w.scores[i] = r.Float64()
					}
					for i, s := range sets {
						start := time.Now()
						op.batch(s, w)
						spent[i] += time.Since(start)
						if op.restore != nil {
							op.restore(s, w)
						}
					}
				}
				each := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / float64(b.N*size) }
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(each(spent[0]), "ns/zsetd")
				b.ReportMetric(each(spent[1]), "ns/bytedance")
				b.ReportMetric(float64(spent[1])/float64(spent[0]), "times-faster")
			})
		}
	}
}
