package keyspace

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/zsetd/zsetd/server/internal/values/journal"
	"github.com/zsetd/zsetd/server/internal/values/operation"
	"github.com/zsetd/zsetd/server/internal/values/sequence"
	"github.com/zsetd/zsetd/zset"
)

// described returns effects as text.
func described(e *Effects) string {
	if e == nil {
		return ""
	}
	var b strings.Builder
	for x := range e.All {
		switch x.Change {
		case ChangeFlush:
			fmt.Fprintf(&b, "flush %d;", x.DB)
			continue
		case ChangeSwap:
			fmt.Fprintf(&b, "swap %d %d;", x.DB, x.Other)
			continue
		}
		fmt.Fprintf(&b, "%d %s", x.DB, x.Key)
		for op := range x.Operations {
			fmt.Fprintf(&b, " %c%s", op.Code, op.Text)
		}
		b.WriteByte(';')
	}
	return b.String()
}

// records returns the number of records in a journal.
func records(t *testing.T, j *Journal) (n int) {
	t.Helper()
	if j == nil {
		return 0
	}
	for chunk := range j.Chunks {
		for len(chunk) > 0 {
			var err error
			if _, chunk, err = journal.NextRecord(chunk); err != nil {
				t.Fatal(err)
			}
			n++
		}
	}
	return n
}

// EffectBytes returns the size of the effects that were not taken yet, in bytes, with
// values that are pinned in them estimated; 0 if there are none.
func (ks *Keyspace) EffectBytes() int {
	if !ks.Following() {
		return 0
	}
	f := ks.rec.follower
	return f.size + len(f.buf)
}

func TestFollow(t *testing.T) {
	ks := New(2, Hooks{})
	set := func(key string) { ks.DB(0).AddString([]byte(key), []byte("v"), false) }
	want := func(effects string) {
		t.Helper()
		if got := described(ks.TakeEffects()); got != effects {
			t.Errorf("effects %q, want %q", got, effects)
		}
	}
	wantRecords := func(n int) {
		t.Helper()
		if got := records(t, ks.TakeJournal()); got != n {
			t.Errorf("%d records, want %d", got, n)
		}
	}
	set("a")
	want("")
	ks.Follow(true)
	if !ks.Following() || ks.Recording() {
		t.Error("the state after Follow")
	}
	before := ks.Sequence()
	set("b")
	ks.Seal()
	if ks.Sequence() != before || ks.Recorded() != 0 || ks.EffectBytes() == 0 {
		t.Errorf("only followed: sequence %d, was %d; %d bytes recorded, %d of effects", ks.Sequence(), before, ks.Recorded(), ks.EffectBytes())
	}
	if ks.TakeJournal() != nil {
		t.Error("a journal without Record")
	}
	// Neither reader takes what belongs to the other.
	ks.Record(true)
	set("c")
	wantRecords(1)
	set("d")
	want("0 b N Sv;0 c N Sv;0 d N Sv;")
	if ks.EffectBytes() != 0 {
		t.Errorf("%d bytes of effects after they were taken", ks.EffectBytes())
	}
	want("")
	wantRecords(1)
	set("e")
	ks.Record(false)
	if ks.Recording() || !ks.Following() || ks.Sequence() == before {
		t.Error("the state after Record(false)")
	}
	set("f")
	ks.Record(true)
	wantRecords(0)
	set("g")
	ks.Follow(true)
	want("0 e N Sv;0 f N Sv;0 g N Sv;")
	set("h")
	ks.Follow(false)
	if ks.Following() || ks.TakeEffects() != nil || ks.EffectBytes() != 0 {
		t.Error("effects after Follow(false)")
	}
	set("i")
	wantRecords(3)
	ks.Follow(true)
	set("j")
	ks.Swap(0, 1)
	ks.Swap(1, 1)
	ks.DB(1).Clear()
	set("k")
	want("swap 0 1;flush 1;0 k N Sv;") // j was not sealed when its database was cleared
	ks.Record(false)
	ks.Follow(false)
	if ks.rec != nil {
		t.Error("a recorder without a reader")
	}
	ks.Follow(true)
	set("l")
	ks.Adopt(New(2, Hooks{}))
	set("m")
	e := ks.TakeEffects()
	if got := described(e); !e.Replaced() || got != "0 m N Sv;" {
		t.Errorf("after Adopt: %q, %v", got, e.Replaced())
	}
	set("n")
	if ks.TakeEffects().Replaced() {
		t.Error("the contents are replaced twice")
	}
}

// The journal of the file is valid while there is a follower, too: values that it
// makes the recorder write as a whole are the same.
func TestFollowedJournal(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	ks := New(1, Hooks{})
	ks.Record(true)
	ks.Follow(true)
	db := ks.DB(0)
	db.Add([]byte("l"), new(sequence.List))
	db.Add([]byte("z"), new(zset.Set))
	limits := DefaultLimits()
	builders := map[string]*Builder{"l": {Limits: &limits}, "z": {Limits: &limits}}
	for range 3000 {
		l := db.Edit([]byte("l")).Value().(*sequence.List)
		z := db.Edit([]byte("z")).Value().(*zset.Set)
		for range r.IntN(4) {
			text := fmt.Appendf(nil, "%d", r.IntN(4))
			switch n := l.Len(); r.IntN(9) {
			case 0:
				l.Insert(r.IntN(n+1), text)
			case 1:
				if n > 0 {
					i := r.IntN(n)
					l.Delete(i, r.IntN(n-i)+1)
				}
			case 2:
				if n > 0 {
					l.PopBack()
				}
			case 3:
				z.Clear()
			case 4, 5:
				z.Add(string(text), r.Float64())
			case 6:
				l.PushFront(text)
			default:
				l.PushBack(text)
			}
		}
		l.PushBack([]byte("last")) // no collection is empty
		z.Add("last", 1)
		if r.IntN(10) > 0 {
			continue
		}
		ks.TakeEffects()
		for chunk := range ks.TakeJournal().Chunks {
			for len(chunk) > 0 {
				record, rest, err := journal.NextRecord(chunk)
				if err != nil {
					t.Fatal(err)
				}
				chunk = rest
				if err := builders[string(record.Key)].Apply(record.Operations); err != nil {
					t.Fatal(err)
				}
			}
		}
		for key, value := range map[string]any{"l": l, "z": z} {
			var got, want journal.Writer
			builders[key].load()
			writeValue(&got, builders[key].value, 0)
			writeValue(&want, value, 0)
			if string(got.Buf) != string(want.Buf) {
				t.Fatalf("%s is %q, want %q", key, got.Buf, want.Buf)
			}
		}
	}
}

// Both readers encode the same pinned values, at the same time and while the keyspace
// changes. The race detector tells whether they may.
func TestPinnedForBoth(t *testing.T) {
	ks := New(1, Hooks{})
	ks.Record(true)
	ks.Follow(true)
	db := ks.DB(0)
	const n = 2 * pinAt
	l, set, h, z, x := new(sequence.List), new(Set), new(Hash), new(zset.Set), new(sequence.Stream)
	for i := range n {
		b := fmt.Appendf(nil, "m%d", i)
		l.PushBack(b)
		set.Add(&ks.Limits, MemberOf(b))
		h.Set(b, b, &ks.Limits)
		z.Add(string(b), float64(i))
		x.Add(sequence.StreamID{Ms: uint64(i), Seq: 1}, [][]byte{b, b}, ks.Limits.Stream)
	}
	g := x.AddGroup([]byte("g"), sequence.StreamID{}, 0)
	g.ReadNext(g.AddConsumer([]byte("c"), 1), n, 1, true, false, func(sequence.StreamEntry) {})
	for i, v := range []any{l, set, h, z, x} {
		db.Add([]byte{byte('a' + i)}, v)
	}
	db.AddString([]byte("s"), make([]byte, 2*pinBytes), false)
	journal, effects := ks.TakeJournal(), ks.TakeEffects()
	var running sync.WaitGroup
	bytes, operations := 0, 0
	running.Go(func() {
		for chunk := range journal.Chunks {
			bytes += len(chunk)
		}
	})
	running.Go(func() {
		for e := range effects.All {
			if e.Kind == KindStream {
				s, _ := e.Stream()
				for range s.Ascend(sequence.StreamID{}, sequence.MaxStreamID()) {
					operations++
				}
				for range s.Groups()[0].AscendOf(s.Groups()[0].Consumers()[0], sequence.StreamID{}) {
					operations++
				}
			}
			for op := range e.Operations {
				if op.Code != operation.New {
					operations++
				}
			}
		}
	})
	for i := range n {
		b := fmt.Appendf(nil, "m%d", i)
		db.Edit([]byte("a")).Value().(*sequence.List).PopFront()
		db.Edit([]byte("b")).Value().(*Set).Remove(MemberOf(b))
		db.Edit([]byte("c")).Value().(*Hash).Delete(b)
		db.Edit([]byte("d")).Value().(*zset.Set).Remove(string(b))
		db.Edit([]byte("e")).Value().(*sequence.Stream).EditGroup([]byte("g")).Acknowledge(sequence.StreamID{Ms: uint64(i), Seq: 1})
		db.Edit([]byte("e")).Value().(*sequence.Stream).Delete(sequence.StreamID{Ms: uint64(i), Seq: 1})
		db.AppendString(db.Edit([]byte("s")), b)
		ks.Seal()
	}
	running.Wait()
	if want := 6*n + 1; operations != want || bytes < 2*pinBytes {
		t.Errorf("%d operations, want %d; a journal of %d bytes", operations, want, bytes)
	}
}
