package zset_test

import (
	"fmt"
	"math"

	"github.com/zsetd/zsetd/zset"
)

func Example() {
	var highscores zset.Set
	for member, score := range map[string]float64{"Sharon": 1050, "Abdul": 800, "Calvin": 780, "Pirakalan": 660} {
		highscores.Add(member, score)
	}
	highscores.Incr("Calvin", 100, 0)

	for member, score := range highscores.Backward() {
		rank, _ := highscores.RevRank(member)
		fmt.Println(rank+1, member, score)
	}
	// Output:
	// 1 Sharon 1050
	// 2 Calvin 880
	// 3 Abdul 800
	// 4 Pirakalan 660
}

// Events with timestamps as scores: the newest ten of the last hour, in descending
// order; then the removal of older events.
func ExampleSet_ScoreSpan() {
	var events zset.Set
	for i := range 100 {
		events.Add(fmt.Sprintf("event %02d", i), float64(i)) // minutes
	}
	lo, hi := events.ScoreSpan(zset.ScoreRange{Min: 40, Max: math.Inf(1), MinExclusive: true})
	fmt.Println(hi-lo, "events")
	for event := range events.SpanBackward(max(lo, hi-2), hi) {
		fmt.Println(event)
	}
	fmt.Println(events.RemoveScore(zset.ScoreRange{Min: math.Inf(-1), Max: 40}), "removed")
	// Output:
	// 59 events
	// event 99
	// event 98
	// 41 removed
}

func ExampleSet_AddIf() {
	var best zset.Set
	best.Add("ann", 10)
	for _, score := range []float64{8, 12} {
		outcome, old := best.AddIf("ann", score, zset.GT)
		fmt.Println(outcome == zset.Updated, old)
	}
	// Output:
	// false 10
	// true 10
}

func ExampleSet_ByLex() {
	var words zset.Set
	for _, word := range []string{"ant", "bear", "bee", "cat"} {
		words.Add(word, 0)
	}
	for word := range words.ByLex(zset.LexRange{Min: zset.LexBound{Member: "b"}, Max: zset.LexBound{Member: "c", Exclusive: true}}) {
		fmt.Println(word)
	}
	// Output:
	// bear
	// bee
}

// A clone is a snapshot of the set.
func ExampleSet_Clone() {
	var live zset.Set
	live.Add("a", 1)
	snapshot := live.Clone()
	live.Add("b", 2)
	fmt.Println(live.Len(), snapshot.Len())
	// Output: 2 1
}

// An observer that logs every change of a set.
func ExampleInternal_Observe() {
	var highscores zset.Set
	highscores.Add("ann", 10)
	highscores.Internal().Observe(&zset.Observer{
		Put:      func(member string, score float64) { fmt.Println(member, "has", score) },
		Deadline: func(member string, at int64) { fmt.Println(member, "expires at", at) },
		Removed:  func(member string) { fmt.Println(member, "is gone") },
		Cleared:  func() { fmt.Println("all are gone") },
	})
	highscores.Add("bob", 20)
	highscores.Incr("ann", 15, 0)
	highscores.Add("bob", 20) // changes nothing
	highscores.PopMin(1)
	highscores.Clear()
	// Output:
	// bob has 20
	// ann has 25
	// bob is gone
	// all are gone
}

// A board of a thousand players shows the best three. Most changes do not touch them.
func ExampleSet_Track() {
	var board zset.Set
	for i := range 1000 {
		board.Add(fmt.Sprint("player ", i), float64(i))
	}
	reach := zset.NoReach()
	board.Track(&reach)
	third, _ := board.At(-3)

	board.Add("player 5", 700)
	fmt.Println("read again:", reach.Max >= third.Score)
	board.Add("player 5", 2000)
	fmt.Println("read again:", reach.Max >= third.Score)
	// Output:
	// read again: false
	// read again: true
}

func ExampleSet_Places() {
	var line zset.Set
	for i, name := range []string{"ann", "ben", "cid"} {
		line.Add(name, float64(10*i))
	}
	places := make([]zset.Place, 3)
	line.Places([]string{"cid", "dan", "ben"}, places)
	fmt.Println(places)
	// Output: [{2 20} {-1 0} {1 10}]
}

func ExampleUnion() {
	var today, yesterday zset.Set
	today.Add("/", 5)
	today.Add("/about", 1)
	yesterday.Add("/", 4)
	both := zset.Union(zset.Sum, zset.Input{Source: &today, Weight: 1}, zset.Input{Source: &yesterday, Weight: 0.5})
	for page, views := range both.Backward() {
		fmt.Println(page, views)
	}
	// Output:
	// / 7
	// /about 1
}

func ExampleSet_PopMin() {
	var due zset.Set
	due.Add("later", 20)
	due.Add("now", 10)
	fmt.Println(due.PopMin(1))
	// Output: [{now 10}]
}

// Sessions that end 30 seconds after their last heartbeat.
func ExampleSet_Expire() {
	var sessions zset.Set
	sessions.Add("ann", 1)
	sessions.SetDeadline("ann", 1000+30)
	sessions.Add("ben", 2)
	sessions.SetDeadline("ben", 1010+30)
	sessions.SetDeadline("ann", 1020+30) // a heartbeat of ann

	next, _ := sessions.NextDeadline()
	fmt.Println("look again after", next)
	sessions.Expire(1045, 100, func(e zset.Element) { fmt.Println(e.Member, "is gone") })
	fmt.Println(sessions.Len())
	// Output:
	// look again after 1040
	// ben is gone
	// 1
}
