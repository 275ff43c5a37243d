package journal

import (
	"math"
	"strings"
	"testing"
)

// Operands of a log are read back; every text that is cut short is an error, after
// which all operands are zero.
func TestOperands(t *testing.T) {
	var l Log
	l.Number(1 << 40)
	l.Signed(-300)
	l.Text("text")
	l.Bytes(nil)
	l.Score(math.Inf(-1))
	l.Number(7)
	for n := range len(l.Ops) + 1 {
		o := Operands{Rest: l.Ops[:n]}
		number, signed, text, empty, score, at := o.Number(), o.Signed(), string(o.Text()), len(o.Text()), o.Score(), o.Position(7)
		if o.Failed != (n < len(l.Ops)) {
			t.Errorf("%d of %d bytes: failed is %v", n, len(l.Ops), o.Failed)
		}
		if !o.Failed && (number != 1<<40 || signed != -300 || text != "text" || empty != 0 || !math.IsInf(score, -1) || at != 7) {
			t.Errorf("%d %d %q %d %v %d", number, signed, text, empty, score, at)
		}
		if o.Failed && (o.Number() != 0 || len(o.Text()) != 0 || o.Byte() != 0 || o.Deadline() != 0) {
			t.Errorf("%d bytes: an operand after the error", n)
		}
	}
	for _, o := range []Operands{
		{Rest: []byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")}, {Rest: []byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")},
	} {
		if at := o.Position(1 << 30); at != 0 || !o.Failed {
			t.Errorf("position %d", at)
		}
	}
	nan := Operands{Rest: AppendScore(nil, math.NaN())}
	if nan.Score(); !nan.Failed {
		t.Error("a score that is no number")
	}
}

func TestLog(t *testing.T) {
	l := Log{Followed: true}
	l.Put("a")
	l.Hints = append(l.Hints, 1)
	l.Deadline("a", 5)
	if string(l.Ops) != "P\x01aT\x01a\x05" || l.Count != 2 {
		t.Errorf("%q, %d", l.Ops, l.Count)
	}
	l.Rewrite()
	if !l.Whole || len(l.Ops)+len(l.Hints)+l.Count > 0 || !l.Followed {
		t.Errorf("%+v", l)
	}
	if l.Reset(); l.Whole {
		t.Errorf("%+v", l)
	}
}

// A writer yields nothing below the limit, and nothing after its reader has stopped.
func TestWriter(t *testing.T) {
	var got []string
	w := Writer{Yield: func(b []byte) bool {
		got = append(got, string(b))
		return len(got) < 2
	}}
	for _, text := range []string{"ab", "c", "de", "fgh"} {
		w.Buf = append(w.Buf, text...)
		w.Full(3)
	}
	if strings.Join(got, " ") != "abc defgh" || w.Full(1) {
		t.Errorf("%q", got)
	}
	whole := Writer{}
	for range 10 {
		if whole.Buf = append(whole.Buf, 'x'); !whole.Full(1) {
			t.Error("a writer without a reader has stopped")
		}
	}
	if len(whole.Buf) != 10 {
		t.Errorf("%d bytes", len(whole.Buf))
	}
}
