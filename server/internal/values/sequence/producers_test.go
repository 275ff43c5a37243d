package sequence

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/zsetd/zsetd/server/internal/values/journal"
)

// naiveProducers is what a stream keeps of producers, as lists.
type naiveProducers struct {
	limits       IdempotenceLimits
	names        map[string][]naiveIdentifier // of a producer, the oldest first
	added, twice uint64
}

type naiveIdentifier struct {
	name   string
	id     StreamID
	number uint64
}

// outdate removes those of the ten lowest IDs that are over.
func (n *naiveProducers) outdate(now int64) {
	for range 10 {
		var first *naiveIdentifier
		of := ""
		for producer, list := range n.names {
			for i := range list {
				if x := &list[i]; first == nil || x.id.Less(first.id) || x.id == first.id && x.number < first.number {
					first, of = x, producer
				}
			}
		}
		if first == nil || int64(first.id.Ms)+n.limits.Seconds*1000 > now {
			return
		}
		name := first.name
		n.names[of] = slices.DeleteFunc(n.names[of], func(x naiveIdentifier) bool { return x.name == name })
	}
}

func (n *naiveProducers) add(producer, name string, id StreamID) {
	list := slices.DeleteFunc(n.names[producer], func(x naiveIdentifier) bool { return x.name == name })
	if len(list) == int(n.limits.Most) {
		list = list[1:]
	}
	n.names[producer] = append(list, naiveIdentifier{name, id, n.added})
	n.added++
}

func (n *naiveProducers) clone() *naiveProducers {
	c := *n
	c.names = map[string][]naiveIdentifier{}
	for producer, list := range n.names {
		c.names[producer] = slices.Clone(list)
	}
	return &c
}

// compare compares what is visible at a time.
func (n *naiveProducers) compare(s *Stream, now int64) error {
	if err := s.Check(); err != nil {
		return err
	}
	if s.IdempotenceLimits() != n.limits {
		return fmt.Errorf("limits %v, want %v", s.IdempotenceLimits(), n.limits)
	}
	if added, twice := s.Identified(); added != n.added || twice != n.twice {
		return fmt.Errorf("%d added, %d twice; want %d, %d", added, twice, n.added, n.twice)
	}
	producers, identifiers := 0, 0
	for producer, list := range n.names {
		live := 0
		for _, x := range list {
			over := int64(x.id.Ms)+n.limits.Seconds*1000 <= now
			if id, ok := s.AddedBy([]byte(producer), []byte(x.name), now); ok == over || ok && id != x.id {
				return fmt.Errorf("%s of %s at %d: %v, %v; want %v", x.name, producer, now, id, ok, x)
			}
			if !over {
				live++
			}
		}
		if identifiers += live; live > 0 {
			producers++
		}
	}
	if p, i := s.Tracked(now); p != producers || i != identifiers {
		return fmt.Errorf("%d identifiers of %d producers are tracked, want %d of %d", i, p, identifiers, producers)
	}
	return nil
}

// TestProducers compares the identifiers that streams and their clones keep with lists, and
// with streams restored from their operations.
func TestProducers(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 0))
		log := &journal.Log{}
		s, n := new(Stream), &naiveProducers{limits: DefaultIdempotenceLimits(), names: map[string][]naiveIdentifier{}}
		s.Observe(log)
		replayed, before := new(Stream), (*Stream)(nil)
		var then *naiveProducers
		now := int64(1_000_000)
		for step := range 2000 {
			now += r.Int64N(200)
			producer, name := fmt.Sprint("p", r.IntN(4)), fmt.Sprint(r.IntN(12))
			switch r.IntN(100) {
			case 0:
				l := IdempotenceLimits{1 + r.Int64N(3), 1 + r.Int64N(9)}
				if s.SetIdempotenceLimits(l) != (l != n.limits) {
					t.Fatal("the limits have changed without a change, or the other way round")
				}
				if l != n.limits {
					n.limits, n.names = l, map[string][]naiveIdentifier{}
				}
			case 1:
				before, then = s.Clone(), n.clone()
			case 2, 3, 4:
				s.CountDuplicate()
				n.twice++
			default:
				id := StreamID{Ms: uint64(now - r.Int64N(2)*r.Int64N(3000)), Seq: r.Uint64N(2)}
				s.Identify([]byte(producer), []byte(name), id, now)
				n.outdate(now)
				n.add(producer, name, id)
			}
			if !replay(replayed, log.Ops) {
				t.Fatalf("seed %d, step %d: the journal is invalid", seed, step)
			}
			log.Reset()
			if step%10 != 0 {
				continue
			}
			whole := new(Stream)
			w := &journal.Writer{}
			s.Write(w)
			if !replay(whole, w.Buf) {
				t.Fatalf("seed %d, step %d: the operations that construct the stream are invalid", seed, step)
			}
			for what, s := range map[string]*Stream{"stream": s, "replayed": replayed, "whole": whole} {
				if err := n.compare(s, now); err != nil {
					t.Fatalf("seed %d, step %d, %s: %v", seed, step, what, err)
				}
			}
			if before != nil {
				if err := then.compare(before, now); err != nil {
					t.Fatalf("seed %d, step %d, clone: %v", seed, step, err)
				}
			}
		}
	}
}
