package zset_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/zsetd/zsetd/zset"
)

// A queue of jobs by the time at which they are due.
func ExampleMap() {
	type job string
	var queue zset.Map[job, time.Time]
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	queue.Put("mail ann", noon.Add(time.Hour))
	queue.Put("mail ben", noon)
	queue.Put("backup", noon.Add(time.Minute))
	for now := noon; ; {
		next, due, ok := queue.PopBefore(now.Add(10 * time.Minute))
		if !ok {
			break
		}
		fmt.Println(next, due.UTC().Format("15:04"))
	}
	fmt.Println(queue.Len(), "later")
	// Output:
	// mail ben 12:00
	// backup 12:01
	// 1 later
}

// Consecutive half-open ranges have each score once.
func ExampleHalfOpen() {
	s := zset.Collect(maps.All(map[string]float64{"a": 1, "b": 5, "c": 9}))
	fmt.Println(s.CountScore(zset.HalfOpen(1, 5)), s.CountScore(zset.HalfOpen(5, 9)))
	fmt.Println(s.CountScore(zset.ScoreRange{Min: 1, Max: 5}), s.CountScore(zset.ScoreRange{Min: 5, Max: 9}))
	// Output:
	// 1 1
	// 2 2
}

// TestMap checks that the scores of each type come back as they were put in, in their order.
func TestMap(t *testing.T) {
	roundTrip(t, []int{math.MinInt32, -1, 0, 7, 1 << 53})
	roundTrip(t, []int64{-(1 << 53), -1, 0, 7, 1 << 53})
	roundTrip(t, []float64{math.Inf(-1), -0.5, 0, 1e-300, math.Inf(1)})
	roundTrip(t, []time.Duration{-time.Hour, 0, 1, time.Second, 104 * 24 * time.Hour})
	var times []time.Time
	for _, at := range []string{"1969-12-31T23:59:59.999999Z", "1970-01-01T00:00:00Z", "2026-11-21T12:00:00.000001Z", "2026-11-21T12:00:00.25Z", "2242-03-16T12:56:31.999999Z"} {
		parsed, err := time.Parse(time.RFC3339Nano, at)
		if err != nil {
			t.Fatal(err)
		}
		times = append(times, parsed.Local())
	}
	roundTrip(t, times)
}

func roundTrip[S zset.Scorer](t *testing.T, scores []S) {
	t.Helper()
	var m zset.Map[string, S]
	var names []string
	for i := range scores {
		i = len(scores) - 1 - i
		names = append(names, fmt.Sprint(i))
		if !m.Put(fmt.Sprint(i), scores[i]) || m.Put(fmt.Sprint(i), scores[i]) {
			t.Errorf("%v: Put returns that it is new once", scores[i])
		}
	}
	slices.Reverse(names)
	equal := func(what string, members []string, from int) {
		t.Helper()
		if !slices.Equal(members, names[from:][:len(members)]) {
			t.Errorf("%T: %s has %q", scores, what, members)
		}
	}
	var up, down, middle []string
	for member, score := range m.All() {
		if want := scores[len(up)]; any(score) != any(want) {
			t.Errorf("%T: %v comes back as %v", scores, want, score)
		}
		up = append(up, member)
	}
	for member := range m.Backward() {
		down = append(down, member)
	}
	for member := range m.Between(scores[1], scores[3]) {
		middle = append(middle, member)
	}
	slices.Reverse(down)
	equal("All", up, 0)
	equal("Backward", down, 0)
	equal("Between", middle, 1)
	if len(up) != 5 || len(down) != 5 || len(middle) != 2 || m.Len() != 5 || m.Set().Len() != 5 {
		t.Errorf("%T: %q %q %q", scores, up, down, middle)
	}
	if score, ok := m.Get("2"); !ok || any(score) != any(scores[2]) || !m.Contains("2") || m.Contains("5") {
		t.Errorf("%T: Get is %v %v", scores, score, ok)
	}
	if rank, ok := m.Rank("3"); rank != 3 || !ok {
		t.Errorf("%T: Rank is %d %v", scores, rank, ok)
	}
	if _, _, ok := m.PopBefore(scores[0]); ok {
		t.Errorf("%T: PopBefore takes the bound itself", scores)
	}
	if member, score, ok := m.PopBefore(scores[1]); member != "0" || any(score) != any(scores[0]) || !ok {
		t.Errorf("%T: PopBefore is %q %v %v", scores, member, score, ok)
	}
	if !m.Delete("1") || m.Delete("1") || m.Len() != 3 {
		t.Errorf("%T: Delete", scores)
	}
	if score, ok := m.Get("1"); ok || any(score) != any(*new(S)) {
		t.Errorf("%T: Get of a member that is gone is %v", scores, score)
	}
}

// TestMapAllocations checks that types of scores cost no allocation.
func TestMapAllocations(t *testing.T) {
	var m zset.Map[string, time.Time]
	now := time.Now()
	for i := range 1000 {
		m.Put(fmt.Sprint(i), now.Add(time.Duration(i)))
	}
	if n := testing.AllocsPerRun(100, func() {
		m.Put("500", now)
		m.Get("500")
		m.Contains("501")
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestAddUnderConditions(t *testing.T) {
	var s zset.Set
	for i, test := range []struct {
		add   func(string, float64) bool
		score float64
		want  bool
		after float64
	}{
		{s.AddXX, 1, false, 0}, {s.AddNX, 5, true, 5}, {s.AddNX, 6, false, 5}, {s.AddXX, 5, false, 5}, {s.AddXX, 4, true, 4},
		{s.AddGT, 4, false, 4}, {s.AddGT, 3, false, 4}, {s.AddGT, 9, true, 9}, {s.AddLT, 9, false, 9}, {s.AddLT, 10, false, 9}, {s.AddLT, 2, true, 2},
		{s.AddGT, math.NaN(), false, 2}, {s.AddNX, math.NaN(), false, 2},
	} {
		if got := test.add("a", test.score); got != test.want {
			t.Errorf("step %d: %v, want %v", i, got, test.want)
		}
		if score, ok := s.Score("a"); score != test.after || s.Contains("a") != ok {
			t.Errorf("step %d: the score is %v, want %v", i, score, test.after)
		}
	}
	for _, add := range []func(string, float64) bool{s.AddGT, s.AddLT} {
		s.Clear()
		if !add("b", 1) || add("b", 1) {
			t.Error("GT and LT add new members")
		}
	}
}

func TestCollect(t *testing.T) {
	s := zset.Collect(func(yield func(string, float64) bool) {
		_ = yield("a", 1) && yield("b", 2) && yield("a", 3) && yield("c", math.NaN())
	})
	if a, _ := s.Score("a"); s.Len() != 2 || a != 3 {
		t.Errorf("%d members, a has %v", s.Len(), a)
	}
	if added := s.Insert(maps.All(map[string]float64{"b": 7, "d": 8})); added != 1 || s.Len() != 3 || s.Check() != nil {
		t.Errorf("%d new, %d members, %v", added, s.Len(), s.Check())
	}
	var copied zset.Set
	copied.Insert(s.All())
	if !slices.Equal(slices.Collect(keys(s)), slices.Collect(keys(&copied))) {
		t.Error("a copy has other members")
	}
}

func keys(s *zset.Set) func(func(string) bool) {
	return func(yield func(string) bool) {
		for member := range s.All() {
			if !yield(member) {
				return
			}
		}
	}
}
