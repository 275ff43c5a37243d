package migrate

import (
	"strconv"
	"testing"
)

// TestDoubts checks which keys are doubtful after commands that lack something, and after more
// of them than are kept.
func TestDoubts(t *testing.T) {
	var d doubts
	touched := []keyAt{{0, "a"}, {0, "b"}, {1, "b"}, {0, "c"}, {0, StatePrefix + "x"}, {0, "zsetd:deadlines:{z}"}}
	u := newUnit("offset")
	for i := range touched {
		u.addChecked(span{i, i + 1, false}, "1", int64(i+1), 0, nil, "HSET")
	}
	u.applied([]any{int64(1), int64(3), int64(5), int64(6), int64(99)})
	d.learn(u, touched)
	has := func(want ...keyAt) {
		t.Helper()
		n := 0
		for _, k := range append([]keyAt{{0, "z"}, {9, "any"}}, touched...) {
			if d.has(k) {
				n++
			}
		}
		for _, k := range want {
			if !d.has(k) || !d.compares(k) {
				t.Errorf("%v is not doubtful", k)
			}
		}
		if n != len(want) {
			t.Errorf("%d keys are doubtful, want %d", n, len(want))
		}
	}
	has(keyAt{0, "a"}, keyAt{1, "b"}, keyAt{0, "z"}, keyAt{0, "zsetd:deadlines:{z}"})
	del := newUnit("offset")
	del.addChecked(span{0, 1, true}, "", 1, 0, nil, "DEL")
	del.addChecked(span{3, 4, false}, "1", 2, 0, nil, "HSET")
	del.applied(int64(0)) // the reply of an earlier call was lost
	d.learn(del, touched)
	d.settle(keyAt{1, "b"})
	has(keyAt{0, "c"}, keyAt{0, "z"}, keyAt{0, "zsetd:deadlines:{z}"})
	for i := range maxDoubts + 2 {
		d.add([]keyAt{{2, strconv.Itoa(i)}})
	}
	d.settle(keyAt{0, "a"})
	if d.has(keyAt{0, "a"}) || !d.compares(keyAt{0, "a"}) || !d.has(keyAt{9, "any"}) {
		t.Error("after too many doubts, not every key except one that is repaired is doubtful")
	}
	for i := range manyDoubts + 1 {
		d.add([]keyAt{{2, strconv.Itoa(i)}})
	}
	if some := d.some(); len(some[2]) != scanCount {
		t.Errorf("%d of many doubtful keys", len(some[2]))
	}
	if d.reset(); d.has(keyAt{9, "any"}) || d.some() != nil {
		t.Error("after a reset there are doubts")
	}
}
