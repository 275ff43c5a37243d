package conv

import (
	"math"
	"testing"
)

func TestParseNumber(t *testing.T) {
	for text, want := range map[string]string{
		"010": "10", "0x10": "16", "-0X1P4": "-16", "\t1e3\r\n": "1000", "1e999": "inf", "-Infinity": "-inf", "nan(1)": "nan", "-nan": "-nan", "-nan(a_1)": "-nan", "nan()": "nan",
		"3\x00x": "3", ".5": "0.5", "5.": "5", "1e-400": "0", "123456789012345678": "1.2345678901235e+17",
		"": "", "-": "", "+-1": "", "1 2": "", "0x": "", "1_0": "", "0x1_0": "", "nan(a b)": "", "abc": "", "0b1": "", "0o7": "",
	} {
		f, ok := ParseNumber(text)
		got := ""
		if ok {
			got = NumberString(f)
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestIntegers(t *testing.T) {
	const low = math.MinInt64
	for _, c := range []struct {
		f     float64
		whole int64
		small int
		plain uint64
	}{
		{2.9, 2, 2, 2}, {-2.9, -2, -2, 1<<64 - 2}, {1 << 32, 1 << 32, 0, 1 << 32}, {1<<31 + 1, 1<<31 + 1, -1<<31 + 1, 1<<31 + 1},
		{1 << 63, low, 0, 1 << 63}, {math.NaN(), low, 0, 1 << 63}, {math.Inf(-1), low, 0, 1 << 63}, {math.Inf(1), low, 0, 0},
	} {
		if ToInt(c.f) != c.whole || ToInt32(c.f) != c.small || ToUint(c.f) != c.plain {
			t.Errorf("%v: %d, %d, %d", c.f, ToInt(c.f), ToInt32(c.f), ToUint(c.f))
		}
	}
}

func TestCharacters(t *testing.T) {
	if s := CString("a\x00b"); s != "a" {
		t.Error(s)
	}
	for c := -1; c < 256; c++ {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if IsAlpha(c) != letter || IsDigit(c) != (c >= '0' && c <= '9') {
			t.Errorf("%d: %v, %v", c, IsAlpha(c), IsDigit(c))
		}
	}
}
