package archive

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/zsetd/zsetd/server/internal/values/journal"
	"github.com/zsetd/zsetd/snapshot"
)

// TestJournals compares journals with a map, with so many keys that the table grows.
func TestJournals(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var js journals
	want := map[id][]string{}
	var order []id
	const perPart = 300
	for generation := range uint64(100) {
		var chunk []byte
		var records []journal.Record
		var starts []int
		for i := range perPart {
			k := id{uint64(r.IntN(3)), fmt.Sprint("key", r.IntN(9000))}
			ops := fmt.Sprint(generation, ".", i)
			starts = append(starts, len(chunk))
			chunk = journal.AppendText(journal.AppendText(binary.AppendUvarint(chunk, k.space), k.key), ops)
			records = append(records, journal.Record{Space: k.space, Key: []byte(k.key), Operations: []byte(ops)})
			if want[k] == nil {
				order = append(order, k)
			}
			want[k] = append(want[k], ops)
		}
		if err := js.begin(snapshot.Part{Generation: generation, Records: chunk}, false); err != nil {
			t.Fatal(err)
		}
		for i, record := range records {
			if err := js.add(record, starts[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	all := func(first uint32) (got []string) {
		for _, ops := range js.changes(first) {
			got = append(got, string(ops))
		}
		return got
	}
	taken := map[id]bool{}
	for i, k := range order {
		if i%3 > 0 {
			continue
		}
		first := js.take(k.space, []byte(k.key))
		if taken[k] = true; !slices.Equal(all(first), want[k]) {
			t.Fatalf("%v: %v, want %v", k, all(first), want[k])
		}
	}
	if first := js.take(1, []byte("absent")); first != none {
		t.Fatal(first)
	}
	var left []id
	for i, d := range js.leaders {
		record, _ := js.first(d)
		k := id{record.Space, string(record.Key)}
		left = append(left, k)
		if js.drop(i); !slices.Equal(all(i), want[k]) {
			t.Fatalf("%v: %v, want %v", k, all(i), want[k])
		}
	}
	if order = slices.DeleteFunc(order, func(k id) bool { return taken[k] }); !slices.Equal(left, order) {
		t.Errorf("%d keys are left, want %d", len(left), len(order))
	}
	if js.droppedParts == 0 || js.droppedBlocks == 0 {
		t.Error("nothing was dropped")
	}
}
