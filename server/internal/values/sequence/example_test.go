package sequence_test

import (
	"fmt"

	"github.com/zsetd/zsetd/server/internal/values/sequence"
)

func Example() {
	var l sequence.List
	for _, b := range []string{"b", "c"} {
		l.PushBack([]byte(b))
	}
	l.PushFront([]byte("a"))
	before := l.Clone()
	l.Delete(1, 1)
	fmt.Printf("%d %s, before %d %s\n", l.Len(), l.At(1), before.Len(), before.At(1))

	var s sequence.Stream
	limits := sequence.StreamLimits{MaxBytes: 4096, MaxEntries: 100}
	for ms := range uint64(3) {
		s.Add(sequence.StreamID{Ms: ms + 1}, [][]byte{[]byte("n"), fmt.Append(nil, ms*ms)}, limits)
	}
	g := s.AddGroup([]byte("readers"), sequence.StreamID{}, 0)
	c := g.AddConsumer([]byte("ada"), 1)
	g.ReadNext(c, 2, 1, true, false, func(e sequence.StreamEntry) {
		for field, value := range e.Pairs {
			fmt.Printf("%v %s=%s\n", e.ID, field, value)
		}
	})
	g.Acknowledge(sequence.StreamID{Ms: 1})
	fmt.Println(g.Len(), "pending")
	// Output:
	// 2 c, before 3 b
	// 1-0 n=0
	// 2-0 n=1
	// 1 pending
}
