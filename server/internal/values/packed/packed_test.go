package packed

import (
	"bytes"
	"fmt"
	"math"
	"testing"
)

// Lengths at which the size of a frame changes, and their neighbors.
func lengths() (all []int) {
	for _, n := range []int{0, 1, 64, 128, 4096, 1 << 14, 1 << 21} {
		all = append(all, max(n-1, 0), n, n+1)
	}
	return all
}

func TestEntries(t *testing.T) {
	for _, n := range lengths() {
		b := bytes.Repeat([]byte{'x'}, n)
		d := make([]byte, EntrySize(n))
		PutEntry(d, b)
		first, size := FirstEntry(append(bytes.Clone(d), 0xff))
		if !bytes.Equal(first, b) || size != len(d) {
			t.Errorf("%d bytes: %d forward, size %d of %d", n, len(first), size, len(d))
		}
		last, size := LastEntry(append([]byte{0xff}, d...))
		if !bytes.Equal(last, b) || size != len(d) {
			t.Errorf("%d bytes: %d backward, size %d of %d", n, len(last), size, len(d))
		}
	}
}

func TestTexts(t *testing.T) {
	for _, n := range lengths() {
		b := bytes.Repeat([]byte{'x'}, n)
		p := AppendText([]byte{0xff}, b)
		text, next := ReadText(p, 1)
		if !bytes.Equal(text, b) || next != len(p) || TextSize(n) != len(p)-1 {
			t.Errorf("%d bytes: %d read, next at %d of %d, size %d", n, len(text), next, len(p), TextSize(n))
		}
	}
}

// Replacing a value by shorter and longer ones leaves the other pairs alone.
func TestPairs(t *testing.T) {
	p := make([]byte, 0, 1000)
	for i := range 5 {
		p = SetPair(p, -1, -1, fmt.Append(nil, "f", i), fmt.Append(nil, "v", i))
	}
	for _, n := range []int{0, 1, 127, 128, 300, 5} {
		to := bytes.Repeat([]byte{'y'}, n)
		at, end := FindField(p, "f2")
		want := len(p) + Growth(at, end, []byte("f2"), to)
		if p = SetPair(p, at, end, []byte("f2"), to); len(p) != want {
			t.Errorf("%d bytes, want %d", len(p), want)
		}
		for i := range 5 {
			value := fmt.Append(nil, "v", i)
			if i == 2 {
				value = to
			}
			at, _ := FindField(p, fmt.Sprint("f", i))
			if text, _ := ReadText(p, at); !bytes.Equal(text, value) {
				t.Errorf("after a value of %d bytes: field %d is %q", n, i, text)
			}
		}
	}
	at, end := FindField(p, "f2")
	p = RemovePair(p, at, end, []byte("f2"))
	if at, _ := FindField(p, "f2"); at >= 0 {
		t.Error("a removed field is there")
	}
	if at, _ := FindText(p, "v4"); at < 0 {
		t.Error("the last value is gone")
	}
}

func TestInteger(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "-1": -1, "9223372036854775807": math.MaxInt64, "-9223372036854775808": math.MinInt64} {
		if n, ok := Integer(text); n != want || !ok {
			t.Errorf("%s: %d, %v", text, n, ok)
		}
	}
	for _, text := range []string{"", "-", "-0", "00", "01", "+1", " 1", "1 ", "1.0", "9223372036854775808", "-9223372036854775809", "99999999999999999999"} {
		if n, ok := Integer(text); ok {
			t.Errorf("%q is %d", text, n)
		}
	}
}

func TestInts(t *testing.T) {
	for _, n := range []int64{0, -1, math.MaxInt16, math.MinInt16, math.MaxInt16 + 1, math.MinInt16 - 1, math.MaxInt32, math.MinInt32,
		math.MaxInt32 + 1, math.MinInt32 - 1, math.MaxInt64, math.MinInt64} {
		for width := IntWidth(n); width <= 8; width *= 2 {
			var b [8]byte
			if WriteInt(b[:width], width, n); ReadInt(b[:width], width) != n {
				t.Errorf("%d in %d bytes is read as %d", n, width, ReadInt(b[:width], width))
			}
		}
		if width := IntWidth(n); width > 2 && n == int64(int32(n)) && width != 4 || width == 2 && n != int64(int16(n)) {
			t.Errorf("%d takes %d bytes", n, width)
		}
	}
}
