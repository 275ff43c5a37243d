//go:build linux

package main

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestBuckets(t *testing.T) {
	last := -1
	for ns := uint64(0); ns < 1<<20; ns++ {
		b := bucketOf(ns)
		if b != last && b != last+1 {
			t.Fatalf("%d ns: bucket %d follows bucket %d", ns, b, last)
		}
		if h := highest(b); h < ns || float64(h-ns) > float64(ns)/stepsPerDoubling {
			t.Fatalf("%d ns: bucket %d, whose maximum is %d", ns, b, h)
		}
		last = b
	}
	for b := range 33 * stepsPerDoubling {
		if got := bucketOf(highest(b)); got != b {
			t.Errorf("the maximum of bucket %d is in bucket %d", b, got)
		}
	}
	for _, long := range []time.Duration{time.Minute, time.Hour, 1<<63 - 1} {
		if got := time.Duration(highest(bucketOf(uint64(long)))); got < time.Minute {
			t.Errorf("a sample of %v counts as %v", long, got)
		}
	}
}

func TestQuantiles(t *testing.T) {
	var a, b histogram
	if got := a.quantile(0.5); got != 0 {
		t.Errorf("quantile without samples: got %v, want 0", got)
	}
	a.add(-1) // the clock was set back
	if got := a.quantile(1); got != 0 {
		t.Errorf("quantile of a negative sample: got %v, want 0", got)
	}
	a = histogram{}
	rnd := rand.New(rand.NewPCG(1, 2))
	var all []time.Duration
	for i := range 100000 {
		d := time.Duration(rnd.ExpFloat64() * 1e6)
		all = append(all, d)
		if i%3 == 0 {
			a.add(d)
		} else {
			b.add(d)
		}
	}
	a.merge(&b)
	slices.Sort(all)
	for _, q := range []float64{0, 0.5, 0.99, 0.999, 1} {
		want := all[min(int(q*1e5), len(all)-1)]
		if got := a.quantile(q); got < want || float64(got) > float64(want)*(1+1.0/stepsPerDoubling)+1 {
			t.Errorf("quantile %v: got %v, want %v", q, got, want)
		}
	}
}
