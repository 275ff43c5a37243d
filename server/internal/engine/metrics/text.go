package metrics

import (
	"iter"
	"math"
	"math/bits"
	"strconv"
)

// Text is the text of INFO during its construction. The zero value is empty.
type Text struct{ Bytes []byte }

// Title begins a section.
func (t *Text) Title(name string) {
	if len(t.Bytes) > 0 {
		t.Bytes = append(t.Bytes, "\r\n"...)
	}
	t.Bytes = append(append(append(t.Bytes, "# "...), name...), "\r\n"...)
}

// Field appends a field.
func (t *Text) Field(name, value string) {
	t.Bytes = append(append(append(append(t.Bytes, name...), ':'), value...), "\r\n"...)
}

// Int appends an integer field.
func (t *Text) Int(name string, n int64) { t.Field(name, strconv.FormatInt(n, 10)) }

// Fixed appends a field with a fixed number of digits after the point.
func (t *Text) Fixed(name string, f float64, digits int) {
	t.Field(name, strconv.FormatFloat(f, 'f', digits, 64))
}

// Size writes a number of bytes, and again in readable form.
func (t *Text) Size(name string, n int64) {
	t.Int(name, n)
	t.Field(name+"_human", HumanBytes(n))
}

// Counts appends a field with how many there are of each size; none if counts is empty. A
// size is 0 or a power of two.
func (t *Text) Counts(name string, counts iter.Seq2[uint64, int64]) {
	var line []byte
	for size, n := range counts {
		if line != nil {
			line = append(line, ',')
		}
		unit := max(bits.Len64(size)-1, 0) / 10
		line = strconv.AppendUint(line, size>>(10*unit), 10)
		if unit > 0 {
			line = append(line, units[unit-1])
		}
		line = strconv.AppendInt(append(line, '='), n, 10)
	}
	if line != nil {
		t.Field(name, string(line))
	}
}

// Zeros writes fields that count features without an equivalent here.
func (t *Text) Zeros(names ...string) {
	for _, name := range names {
		t.Int(name, 0)
	}
}

// Ratio returns a/b, 0 if b is 0.
func Ratio(a, b int64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// units are the prefixes of the powers of 1024.
const units = "KMGTPE"

// HumanBytes writes a size as INFO does: 512B, 1.50K, 2.00M.
func HumanBytes(n int64) string {
	if n < 1024 {
		return strconv.FormatInt(n, 10) + "B"
	}
	i := 0
	f := float64(n) / 1024
	for f >= 1024 && i < len(units)-1 {
		f /= 1024
		i++
	}
	return strconv.FormatFloat(math.Round(f*100)/100, 'f', 2, 64) + units[i:i+1]
}
