package engine

import "testing"

// TestWorthCompaction plays the unused memory before and after compactions, in megabytes of a heap
// of 160, and expects compactions as long as they free something, and two in vain.
func TestWorthCompaction(t *testing.T) {
	const mega = 1 << 20
	heap := func(unused int64) HeapState { return HeapState{Allocated: 160 * mega, Active: (160 + unused) * mega} }
	for _, test := range []struct {
		name   string
		unused []int64 // at first, and after each compaction
		last   int64   // at last
		again  bool    // then there is another compaction
	}{
		{"little", []int64{10}, 10, false},
		{"all is freed", []int64{100, 40, 5}, 5, false},
		{"nothing can be freed", []int64{100, 99, 98}, 98, false},
		{"the keys changed meanwhile", []int64{100, 120, 50, 49, 48}, 48, false},
		{"more later", []int64{100, 99, 98}, 120, true},
		{"a little more later", []int64{100, 99, 98}, 107, false},
		{"less, and then more", []int64{100, 99, 98, 20}, 40, true},
	} {
		var f compacting
		for i, unused := range test.unused[:len(test.unused)-1] {
			if !f.worthCompaction(heap(unused)) && test.unused[i+1] > 20 {
				t.Errorf("%s: no compaction with %d", test.name, unused)
			}
			f.compacted(true, heap(unused), heap(test.unused[i+1]))
		}
		f.worthCompaction(heap(test.unused[len(test.unused)-1]))
		if got := f.worthCompaction(heap(test.last)); got != test.again {
			t.Errorf("%s: a compaction with %d at last: %v", test.name, test.last, got)
		}
	}
	var f compacting
	if f.compacted(false, heap(100), heap(100)); f.worthCompaction(heap(100)) {
		t.Error("another compaction after one that has moved nothing")
	}
}
