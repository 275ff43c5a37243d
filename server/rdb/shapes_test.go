package rdb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/internal/values/sequence"
	"github.com/zsetd/zsetd/zset"
)

// Values in the encodings of all versions of Redis, written here from the documentation of the
// format: package rdb writes only some of them.

// sized returns a text behind its length.
func sized(s string) string { return string(appendLength(nil, uint64(len(s)))) + s }

// le returns an integer in n bytes, the lowest first.
func le(n int64, size int) string {
	return string(binary.LittleEndian.AppendUint64(nil, uint64(n))[:size])
}

// ziplist returns a ziplist of integers, which take as few bytes as possible, and texts.
func ziplist(elements ...any) string {
	body, before, last := "", 0, 10
	for _, e := range elements {
		head := le(int64(before), 1)
		if before >= 254 {
			head = "\xfe" + le(int64(before), 4)
		}
		element := ""
		switch x := e.(type) {
		case int:
			n := int64(x)
			switch {
			case n >= 0 && n <= 12:
				element = le(0xf1+n, 1)
			case n == int64(int8(n)):
				element = "\xfe" + le(n, 1)
			case n == int64(int16(n)):
				element = "\xc0" + le(n, 2)
			case n >= -1<<23 && n < 1<<23:
				element = "\xf0" + le(n, 3)
			case n == int64(int32(n)):
				element = "\xd0" + le(n, 4)
			default:
				element = "\xe0" + le(n, 8)
			}
		case string:
			switch n := len(x); {
			case n < 64:
				element = le(int64(n), 1) + x
			case n < 1<<14:
				element = le(int64(0x40|n>>8), 1) + le(int64(n), 1) + x
			default:
				element = "\x80" + string(binary.BigEndian.AppendUint32(nil, uint32(n))) + x
			}
		}
		last = 10 + len(body)
		before = len(head + element)
		body += head + element
	}
	return le(int64(11+len(body)), 4) + le(int64(last), 4) + le(int64(len(elements)), 2) + body + "\xff"
}

// listpack returns a listpack of integers and texts.
func listpack(elements ...any) string {
	b := make([]byte, 6)
	for _, e := range elements {
		switch x := e.(type) {
		case int:
			b = appendPackedInt(b, int64(x))
		case string:
			b = appendPackedText(b, x)
		}
	}
	b = append(b, 0xff)
	binary.LittleEndian.PutUint32(b, uint32(len(b)))
	binary.LittleEndian.PutUint16(b[4:], uint16(len(elements)))
	return string(b)
}

// zipmap returns a zipmap of fields and values, each value before free unused bytes.
func zipmap(free int, pairs ...string) string {
	length := func(s string) string {
		if len(s) < 254 {
			return le(int64(len(s)), 1)
		}
		return "\xfe" + le(int64(len(s)), 4)
	}
	b := le(int64(min(len(pairs)/2, 254)), 1)
	for i := 0; i < len(pairs); i += 2 {
		b += length(pairs[i]) + pairs[i] + length(pairs[i+1]) + le(int64(free), 1) + pairs[i+1] + strings.Repeat("?", free)
	}
	return b + "\xff"
}

// ints returns an intset of integers of a size.
func ints(size int, numbers ...int64) string {
	b := le(int64(size), 4) + le(int64(len(numbers)), 4)
	for _, n := range numbers {
		b += le(n, size)
	}
	return b
}

// read reads a value of a type, and returns how it reads as text.
func read(c *Codec, kind byte, body string) (string, error) {
	in := input{rest: []byte(body)}
	v, err := c.value(&in, kind)
	if err == nil && (!in.sound() || len(in.rest) > 0) {
		err = fmt.Errorf("bad %v, spoiled %v, %d bytes left", in.bad, in.spoil, len(in.rest))
	}
	if err != nil {
		return "", err
	}
	if err := v.(interface{ Check() error }).Check(); err != nil {
		return "", err
	}
	return content(v), nil
}

// content returns a value as text: its elements, sorted if their order has no meaning.
func content(v any) string {
	var all []string
	deadline := func(at int64) string {
		if at == 0 {
			return ""
		}
		return fmt.Sprint("@", at)
	}
	switch v := v.(type) {
	case *keyspace.String:
		return string(v.Content())
	case *sequence.List:
		for b := range v.Forward(0) {
			all = append(all, string(b))
		}
		return strings.Join(all, " ")
	case *keyspace.Set:
		for m := range v.All() {
			all = append(all, m)
		}
	case *keyspace.Hash:
		for f, x := range v.All() {
			at, _ := v.DeadlineBytes([]byte(f))
			all = append(all, f+"="+x+deadline(at))
		}
	case *zset.Set:
		for m, score := range v.All() {
			at, _ := v.Deadline(m)
			all = append(all, fmt.Sprint(m, "=", score, deadline(at)))
		}
		return strings.Join(all, " ")
	case *sequence.Stream:
		s := fmt.Sprintf("%d last %v added %d deleted %v:", v.Len(), v.LastID(), v.Added(), v.MaxDeletedID())
		v.Ascend(sequence.StreamID{}, sequence.MaxStreamID())(func(e sequence.StreamEntry) bool {
			s += fmt.Sprint(" ", e.ID)
			for f, x := range e.Pairs {
				s += fmt.Sprintf(" %s=%s", f, x)
			}
			return true
		})
		for _, g := range v.Groups() {
			s += fmt.Sprintf("; group %s last %v read %d", g.Name(), g.LastID(), g.Read())
			for p := range g.Ascend(sequence.StreamID{}) {
				s += fmt.Sprintf(", %v of %s at %d times %d", p.ID, g.Owner(p).Name(), p.Time, p.Count)
			}
			for _, consumer := range g.Consumers() {
				s += fmt.Sprintf(", %s seen %d active %d", consumer.Name(), consumer.Seen(), consumer.Active())
			}
		}
		return s
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// TestEncodings reads each encoding of a value.
func TestEncodings(t *testing.T) {
	c := newTestCodec()
	x63, x64, x300 := strings.Repeat("a", 63), strings.Repeat("b", 64), strings.Repeat("c", 300)
	x16383, x16384 := strings.Repeat("d", 1<<14-1), strings.Repeat("e", 1<<14)
	texts := []any{"", x63, x64, x300, x16383, x16384, "end"}
	numbers := []any{0, 1, 12, 13, -1, 127, -128, 128, -129, 32767, -32768, 32768, -32769, 1<<23 - 1, -1 << 23, 1 << 23, -1<<23 - 1, math.MaxInt32, math.MinInt32, math.MaxInt32 + 1, math.MinInt64, math.MaxInt64}
	joined := func(all []any) string {
		s := ""
		for i, e := range all {
			if i > 0 {
				s += " "
			}
			s += fmt.Sprint(e)
		}
		return s
	}
	pairs := []any{x64, "1", "n", -70000, "", x300}
	hash := "=" + x300 + " " + x64 + "=1 n=-70000"
	at := int64(1) << 42
	for _, test := range []struct {
		name string
		kind byte
		body string
		want string
	}{
		{"ziplist of texts", typeListZiplist, sized(ziplist(texts...)), joined(texts)},
		{"ziplist of integers", typeListZiplist, sized(ziplist(numbers...)), joined(numbers)},
		{"listpack of texts", typeListQuicklist2, "\x01\x02" + sized(listpack(texts...)), joined(texts)},
		{"listpack of integers", typeListQuicklist2, "\x01\x02" + sized(listpack(numbers...)), joined(numbers)},
		{"quicklist of ziplists", typeListQuicklist, "\x02" + sized(ziplist(texts...)) + sized(ziplist(1)), joined(texts) + " 1"},
		{"quicklist with a plain node", typeListQuicklist2, "\x02\x01" + sized("7") + "\x02" + sized(listpack("x")), "7 x"},
		{"list of texts", typeList, "\x03\x01a\xc0\xff" + sized(x300), "a -1 " + x300},
		{"hash in a ziplist", typeHashZiplist, sized(ziplist(pairs...)), hash},
		{"hash in a listpack", typeHashListpack, sized(listpack(pairs...)), hash},
		{"hash in a zipmap", typeHashZipmap, sized(zipmap(0, "", x300, x64, "1", "n", "-70000")), hash},
		{"hash in a zipmap with unused bytes", typeHashZipmap, sized(zipmap(3, "", x300, x64, "1", "n", "-70000")), hash},
		{"zipmap of 253 bytes", typeHashZipmap, sized(zipmap(0, "f", strings.Repeat("x", 253))), "f=" + strings.Repeat("x", 253)},
		{"zipmap of 254 bytes", typeHashZipmap, sized(zipmap(0, "f", strings.Repeat("x", 254))), "f=" + strings.Repeat("x", 254)},
		{"zipmap of unknown count", typeHashZipmap, sized("\xfe\x01a\x01\x00b\xff"), "a=b"},
		{"hash", typeHash, "\x02\x01a\xc0\x05\x01b\x00", "a=5 b="},
		{"sorted set in a ziplist", typeZsetZiplist, sized(ziplist("a", "-inf", x64, -3, "b", "1.5", "c", 20)), "a=-Inf " + x64 + "=-3 b=1.5 c=20"},
		{"sorted set in a listpack", typeZsetListpack, sized(listpack("a", "-inf", x64, -3, "b", "1.5", "c", 20)), "a=-Inf " + x64 + "=-3 b=1.5 c=20"},
		{"sorted set out of order", typeZsetListpack, sized(listpack("b", 2, "a", 1)), "a=1 b=2"},
		{"sorted set with scores as text", typeZset, "\x05\x01a\x011\x01b\x041e30\x01c\xfe\x01d\xff\x01e\x051e999", "d=-Inf a=1 b=1e+30 c=+Inf e=+Inf"},
		{"sorted set", typeZset2, "\x01\x01a" + le(int64(math.Float64bits(0.1)), 8), "a=0.1"},
		{"intset of 2 bytes", typeSetIntset, sized(ints(2, -32768, 5, 32767)), "-32768 32767 5"},
		{"intset of 4 bytes", typeSetIntset, sized(ints(4, math.MinInt32, 5, math.MaxInt32)), "-2147483648 2147483647 5"},
		{"intset of 8 bytes", typeSetIntset, sized(ints(8, math.MinInt64, 5, math.MaxInt64)), "-9223372036854775808 5 9223372036854775807"},
		{"set in a listpack", typeSetListpack, sized(listpack("b", 7, x64)), "7 b " + x64},
		{"set", typeSet, "\x02\x01a\xc1\x00\x80", "-32768 a"},
		{"listpack of unknown count", typeSetListpack, sized("\x0d\x00\x00\x00\xff\xff\x81a\x02\x81b\x02\xff"), "a b"},
		{"listpack of another count", typeSetListpack, sized("\x0d\x00\x00\x00\x07\x00\x81a\x02\x81b\x02\xff"), "a b"},
		{"ziplist of unknown count", typeListZiplist, sized("\x0d\x00\x00\x00\x0a\x00\x00\x00\xff\xff\x00\xf5\xff"), "4"},
		{"hash with deadlines", typeHashTimed, le(at, 8) + "\x02\x00\x01a\x01x\x06\x01b\x01y", fmt.Sprint("a=x b=y@", at+5)},
		{"hash with deadlines in a listpack", typeHashListpackTTL, le(at, 8) + sized(listpack("b", "y", int(at), "a", "x", 0)), fmt.Sprint("a=x b=y@", at)},
		{"hash of a release candidate", typeHashTimedPreview, "\x02" + string(appendLength(nil, uint64(at))) + "\x01b\x01y\x00\x01a\x01x", fmt.Sprint("a=x b=y@", at)},
		{"small hash of a release candidate", typeHashListpackTTLPreview, sized(listpack("b", "y", int(at), "a", "x", 0)), fmt.Sprint("a=x b=y@", at)},
		{"hash with the latest deadline", typeHashTimedPreview, "\x01" + string(appendLength(nil, maxFieldDeadline-1)) + "\x01a\x01b", fmt.Sprint("a=b@", maxFieldDeadline-1)},
		{"small hash of equal deadlines", typeHashListpackTTL, le(5, 8) + sized(listpack("a", "b", 5, "c", "d", 5, "e", "f", 0, "g", "h", 0)), "a=b@5 c=d@5 e=f g=h"},
		{"number of 1 byte", typeString, "\xc0\x80", "-128"},
		{"number of 2 bytes", typeString, "\xc1\xff\x7f", "32767"},
		{"number of 4 bytes", typeString, "\xc2\x00\x00\x00\x80", "-2147483648"},
		{"length of 2 bytes", typeString, "\x41\x2c" + x300, x300},
		{"length of 5 bytes", typeString, "\x80\x00\x00\x01\x2c" + x300, x300},
		{"length of 9 bytes", typeString, "\x81\x00\x00\x00\x00\x00\x00\x01\x2c" + x300, x300},
		{"compressed", typeString, "\xc3\x04\x0b\x00a\xe0\x00\x00", strings.Repeat("a", 10)},
	} {
		if test.name == "compressed" { // a literal, and a match of nine bytes
			test.body = "\xc3\x05\x0a\x00a\xe0\x00\x00"
		}
		if got, err := read(c, test.kind, test.body); err != nil || got != test.want {
			t.Errorf("%s: %.200q, %v", test.name, got, err)
		}
		// No part of it is a value.
		for cut := range test.body {
			if len(test.body) > 1000 && cut%97 > 0 {
				continue
			}
			in := input{rest: []byte(test.body[:cut])}
			if _, err := c.value(&in, test.kind); err == nil && !in.bad {
				t.Errorf("%s: read from %d of %d bytes", test.name, cut, len(test.body))
			}
		}
	}
}

// TestInvalidEncodings reads values with contents that are refused although their length is known: the
// input is spoiled, not bad, and what follows can be read.
func TestInvalidEncodings(t *testing.T) {
	c := newTestCodec()
	changed := func(s string, at int, to string) string { return s[:at] + to + s[at+len(to):] }
	zl, lp := ziplist("a", "b", 300, "d"), listpack("a", "b", 300, "d")
	for _, test := range []struct {
		name string
		kind byte
		body string
	}{
		{"ziplist of another size", typeListZiplist, sized(changed(zl, 0, "\x63"))},
		{"ziplist with another tail", typeListZiplist, sized(changed(zl, 4, "\x0a"))},
		{"ziplist of more elements", typeListZiplist, sized(changed(zl, 8, "\x05"))},
		{"ziplist of fewer elements", typeListZiplist, sized(changed(zl, 8, "\x03"))},
		{"ziplist without an end", typeListZiplist, sized(changed(zl, len(zl)-1, "\xfe"))},
		{"ziplist with a false size before an element", typeListZiplist, sized(changed(zl, 13, "\x04"))},
		{"ziplist with an end within", typeListZiplist, sized(changed(zl, 13, "\xff"))},
		{"ziplist with a size before an element that is cut", typeListZiplist, sized("\x0d\x00\x00\x00\x0a\x00\x00\x00\x01\x00\xfe\x00\xff")},
		{"ziplist with a long element", typeListZiplist, sized(changed(zl, 11, "\x3f"))},
		{"ziplist with an unknown element", typeListZiplist, sized(changed(zl, 11, "\xc1"))},
		{"ziplist with an unknown element 0xff", typeListZiplist, sized(changed(zl, 11, "\xff"))},
		{"ziplist with a cut number", typeListZiplist, sized("\x0e\x00\x00\x00\x0a\x00\x00\x00\x01\x00\x00\xe0\x01\xff")},
		{"ziplist with a cut length of 2 bytes", typeListZiplist, sized("\x0d\x00\x00\x00\x0a\x00\x00\x00\x01\x00\x00\x40\xff")},
		{"ziplist with a cut length of 5 bytes", typeListZiplist, sized("\x0f\x00\x00\x00\x0a\x00\x00\x00\x01\x00\x00\x80\x00\x00\xff")},
		{"ziplist without contents", typeListZiplist, sized("\x0a\x00\x00\x00\x0a\x00\x00\x00\x00\xff")},
		{"listpack of another size", typeHashListpack, sized(changed(lp, 0, "\x63"))},
		{"listpack without an end", typeHashListpack, sized(changed(lp, len(lp)-1, "\xfe"))},
		{"listpack with a false size behind an element", typeHashListpack, sized(changed(lp, 8, "\x03"))},
		{"listpack with a long element", typeHashListpack, sized(changed(lp, 6, "\xbf"))},
		{"listpack with an unknown element", typeHashListpack, sized(changed(lp, 6, "\xf5"))},
		{"listpack with a cut number", typeSetListpack, sized("\x08\x00\x00\x00\x01\x00\xf4\xff")},
		{"listpack with a cut number of 13 bits", typeSetListpack, sized("\x08\x00\x00\x00\x01\x00\xc1\xff")},
		{"listpack with a cut length of 12 bits", typeSetListpack, sized("\x08\x00\x00\x00\x01\x00\xe1\xff")},
		{"listpack with a cut length of 32 bits", typeSetListpack, sized("\x0a\x00\x00\x00\x01\x00\xf0\x01\x00\xff")},
		{"listpack without contents", typeHashListpack, sized("\x06\x00\x00\x00\x00\xff")},
		{"hash of an odd number in a listpack", typeHashListpack, sized(listpack("a", "b", "c"))},
		{"hash of an odd number in a ziplist", typeHashZiplist, sized(ziplist("a", "b", "c"))},
		{"hash with a field twice", typeHash, "\x02\x01a\x01b\x01a\x01c"},
		{"hash with a field twice in a listpack", typeHashListpack, sized(listpack("a", "b", "a", "c"))},
		{"hash with deadlines of an odd number", typeHashListpackTTL, le(5, 8) + sized(listpack("a", "b"))},
		{"hash with a deadline that is no number", typeHashListpackTTL, le(5, 8) + sized(listpack("a", "b", "c"))},
		{"hash with deadlines out of order", typeHashListpackTTL, le(5, 8) + sized(listpack("a", "b", 6, "c", "d", 5))},
		{"hash with a deadline after none", typeHashListpackTTL, le(5, 8) + sized(listpack("a", "b", 0, "c", "d", 5))},
		{"small hash with a late deadline", typeHashListpackTTL, le(5, 8) + sized(listpack("a", "b", maxFieldDeadline))},
		{"hash with a deadline just too late", typeHashTimedPreview, "\x01" + string(appendLength(nil, maxFieldDeadline)) + "\x01a\x01b"},
		{"hash with a negative deadline", typeHashListpackTTL, le(5, 8) + sized(listpack("a", "b", -5))},
		{"hash with a late deadline", typeHashTimed, le(5, 8) + "\x01" + string(appendLength(nil, 1<<60)) + "\x01a\x01b"},
		{"hash with a late earliest deadline", typeHashTimed, le(maxDeadline, 8) + "\x01\x01\x01a\x01b"},
		{"hash with a negative earliest deadline", typeHashTimed, le(-1, 8) + "\x01\x01\x01a\x01b"},
		{"zipmap of another count", typeHashZipmap, sized("\x02\x01a\x01\x00b\xff")},
		{"zipmap of count 255", typeHashZipmap, sized("\xff\x01a\x01\x00b\xff")},
		{"zipmap with a short length in five bytes", typeHashZipmap, sized("\x01\xfe\x01\x00\x00\x00a\x01\x00b\xff")},
		{"zipmap of 253 bytes with a length in five bytes", typeHashZipmap, sized("\x01\x01a\xfe\xfd\x00\x00\x00\x00" + strings.Repeat("x", 253) + "\xff")},
		{"zipmap with a cut length", typeHashZipmap, sized("\x01\x01a\xfe\x00\x01\x00\xff")},
		{"zipmap with an end within", typeHashZipmap, sized("\x01\x01a\xff\x00b\xff")},
		{"zipmap without unused bytes", typeHashZipmap, sized("\x01\x01a\x01\xff")},
		{"zipmap with many unused bytes", typeHashZipmap, sized("\x01\x01a\x01\x09b\xff")},
		{"zipmap of a field alone", typeHashZipmap, sized("\x01\x01a\xff")},
		{"zipmap without an end", typeHashZipmap, sized("\x01\x01a\x01\x00b\xfe")},
		{"zipmap of one byte", typeHashZipmap, sized("\x00")},
		{"intset of a short header", typeSetIntset, sized("\x02\x00\x00\x00\x01\x00\x00")},
		{"intset of 3 bytes", typeSetIntset, sized("\x03\x00\x00\x00\x01\x00\x00\x00abc")},
		{"intset of none", typeSetIntset, sized(ints(2))},
		{"intset of more", typeSetIntset, sized(changed(ints(2, 1, 2), 4, "\x03"))},
		{"intset of fewer", typeSetIntset, sized(changed(ints(2, 1, 2), 4, "\x01"))},
		{"intset out of order", typeSetIntset, sized(ints(2, 2, 1))},
		{"intset of equals", typeSetIntset, sized(ints(2, 1, 1))},
		{"set of equals", typeSet, "\x02\x01a\x01a"},
		{"set of equals in a listpack", typeSetListpack, sized(listpack("a", "a"))},
		{"sorted set with a member twice", typeZset2, "\x02\x01a" + le(0, 8) + "\x01a" + le(0, 8)},
		{"sorted set of NaN", typeZset2, "\x01\x01a" + le(int64(math.Float64bits(math.NaN())), 8)},
		{"sorted set of NaN as text", typeZset, "\x01\x01a\xfd"},
		{"sorted set of NaN in letters", typeZset, "\x01\x01a\x03nan"},
		{"sorted set of no score", typeZset, "\x01\x01a\x01x"},
		{"sorted set of no score in a ziplist", typeZsetZiplist, sized(ziplist("a", "x"))},
		{"sorted set of a member alone", typeZsetZiplist, sized(ziplist("a", 1, "b"))},
		{"sorted set of a member alone in a listpack", typeZsetListpack, sized(listpack("a", 1, "b"))},
		{"sorted set with a late deadline", typeZsetTimed, "\x01\x01a" + le(0, 8) + le(maxDeadline, 8)},
		{"quicklist with an empty node", typeListQuicklist, "\x02\x00" + sized(ziplist("a"))},
		{"quicklist with an unknown node", typeListQuicklist2, "\x01\x03" + sized(listpack("a"))},
		{"quicklist with node 0", typeListQuicklist2, "\x01\x00" + sized(listpack("a"))},
		{"compressed to another length", typeString, "\xc3\x02\x05\x00a"},
		{"compressed with a match before the beginning", typeString, "\xc3\x04\x04\x00a\x20\x05"},
		{"compressed with a cut match", typeString, "\xc3\x03\x04\x00a\x20"},
		{"compressed with cut literals", typeString, "\xc3\x02\x04\x03a"},
		{"compressed with a cut long match", typeString, "\xc3\x03\x0a\x00a\xe0"},
		{"compressed to more than is possible", typeString, "\xc3\x02\x81\x00\x00\x00\x01\x00\x00\x00\x00\x00a"},
	} {
		in := input{rest: []byte(test.body + "\x03end")}
		v, err := c.value(&in, test.kind)
		if in.bad || err == nil && !in.spoil || test.kind != typeString && !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v, %v, bad %v, spoiled %v", test.name, v, err, in.bad, in.spoil)
		}
		if end := in.text(); string(end) != "end" {
			t.Errorf("%s: %q follows", test.name, end)
		}
	}
	for name, body := range map[string]string{
		"set": "\x02", "list": "\x01", "sorted set": "\x05", "hash": "\x04", "set in a listpack": "\x14" + sized(listpack()),
		"list in a ziplist": "\x0a" + sized(ziplist()), "hash in a zipmap": "\x09" + sized(zipmap(0)), "quicklist": "\x12",
	} {
		if _, err := read(c, body[0], (body + "\x00")[1:max(2, len(body))]); err != ErrEmpty {
			t.Errorf("empty %s: %v", name, err)
		}
	}
}

// streamBody returns a stream of a type: of blocks, with numbers that may be wrong.
func streamBody(kind byte, blocks []string, length int, last, first, deleted sequence.StreamID, added int64, groups ...string) string {
	b := string(appendLength(nil, uint64(len(blocks)))) + strings.Join(blocks, "")
	b += string(appendID(appendLength(nil, uint64(length)), last))
	if kind != typeStream {
		b += string(appendLength(appendID(appendID(nil, first), deleted), uint64(added)))
	}
	return b + string(appendLength(nil, uint64(len(groups)))) + strings.Join(groups, "")
}

// streamGroup returns a group whose consumer c has entries pending, of which owned are named.
func streamGroup(kind byte, read int64, pending []uint64, owners map[string][]uint64) string {
	b := appendID(append([]byte{1}, 'g'), sequence.StreamID{Ms: 2})
	if kind != typeStream {
		b = appendLength(b, uint64(read))
	}
	b = appendLength(b, uint64(len(pending)))
	for _, ms := range pending {
		b = append(appendRawID(b, sequence.StreamID{Ms: ms}), le(1000, 8)+"\x03"...)
	}
	b = appendLength(b, uint64(len(owners)))
	for _, name := range []string{"c", "d"} {
		if ids, ok := owners[name]; ok {
			b = append(b, sized(name)+le(70, 8)...)
			if kind == typeStream3 {
				b = append(b, le(80, 8)...)
			}
			b = appendLength(b, uint64(len(ids)))
			for _, ms := range ids {
				b = appendRawID(b, sequence.StreamID{Ms: ms})
			}
		}
	}
	return string(b)
}

// TestStreamNumbers reads streams whose recorded numbers are not those of their entries, as some
// versions of Redis wrote them and all load them: the entries count.
func TestStreamNumbers(t *testing.T) {
	c := newTestCodec()
	block := func(first uint64, elements ...any) string {
		return sized(string(appendRawID(nil, sequence.StreamID{Ms: first}))) + sized(listpack(elements...))
	}
	id := func(ms uint64) sequence.StreamID { return sequence.StreamID{Ms: ms} }
	three := block(1, 3, 0, 1, "f", 0, 2, 0, 0, "a", 4, 2, 1, 0, "b", 4, 0, 2, 0, 1, "g", "c", 6)
	const entries = "1-0 f=a 2-0 f=b 3-0 g=c"
	both := []uint64{1, 2}
	for _, test := range []struct {
		name string
		body string
		kind byte
		want string // "" for a value that is refused
	}{
		{"right", streamBody(typeStream2, []string{three}, 3, id(3), id(1), id(0), 3), typeStream2, "3 last 3-0 added 3 deleted 0-0: " + entries},
		{"of Redis 5", streamBody(typeStream, []string{three}, 3, id(3), id(0), id(0), 0), typeStream, "3 last 3-0 added 3 deleted 0-0: " + entries},
		{"length too low", streamBody(typeStream2, []string{three}, 2, id(3), id(1), id(0), 2), typeStream2, "3 last 3-0 added 3 deleted 0-0: " + entries},
		{"length 0", streamBody(typeStream2, []string{three}, 0, id(3), id(1), id(0), 3), typeStream2, "3 last 3-0 added 3 deleted 0-0: " + entries},
		{"length too high", streamBody(typeStream2, []string{three}, 9, id(3), id(1), id(2), 9), typeStream2, "3 last 3-0 added 9 deleted 2-0: " + entries},
		{"length too high, of Redis 5", streamBody(typeStream, []string{three}, 4, id(3), id(0), id(0), 0), typeStream, "3 last 3-0 added 3 deleted 0-0: " + entries},
		{"added is negative", streamBody(typeStream2, []string{three}, 3, id(3), id(1), id(0), -5), typeStream2, "3 last 3-0 added 3 deleted 0-0: " + entries},
		{"another first ID", streamBody(typeStream2, []string{three}, 3, id(3), id(77), id(0), 3), typeStream2, "3 last 3-0 added 3 deleted 0-0: " + entries},
		{"last ID too low", streamBody(typeStream2, []string{three}, 3, id(2), id(1), id(0), 3), typeStream2, "3 last 3-0 added 3 deleted 0-0: " + entries},
		{"deleted ID beyond the last", streamBody(typeStream2, []string{three}, 3, id(3), id(1), id(9), 3), typeStream2, "3 last 3-0 added 3 deleted 9-0: " + entries},
		{"a deleted entry", streamBody(typeStream2, []string{block(1, 1, 1, 1, "f", 0, 3, 0, 0, "a", 4, 2, 1, 0, "b", 4)}, 2, id(2), id(1), id(0), 2), typeStream2, "1 last 2-0 added 2 deleted 0-0: 2-0 f=b"},
		{"a block without entries", streamBody(typeStream2, []string{block(1, 0, 0, 1, "f", 0), block(2, 1, 0, 1, "f", 0, 2, 0, 0, "b", 4)}, 1, id(2), id(2), id(0), 1), typeStream2, "1 last 2-0 added 1 deleted 0-0: 2-0 f=b"},
		{"empty", streamBody(typeStream2, nil, 0, id(3), id(0), id(3), 3), typeStream2, "0 last 3-0 added 3 deleted 3-0:"},
		{"a group", streamBody(typeStream3, []string{three}, 3, id(3), id(1), id(0), 3, streamGroup(typeStream3, 2, both, map[string][]uint64{"c": both})), typeStream3,
			"3 last 3-0 added 3 deleted 0-0: " + entries + "; group g last 2-0 read 2, 1-0 of c at 1000 times 3, 2-0 of c at 1000 times 3, c seen 70 active 80"},
		{"a group of Redis 7", streamBody(typeStream2, []string{three}, 3, id(3), id(1), id(0), 3, streamGroup(typeStream2, -1, nil, map[string][]uint64{"c": nil})), typeStream2,
			"3 last 3-0 added 3 deleted 0-0: " + entries + "; group g last 2-0 read -1, c seen 70 active 70"},
		{"a group of Redis 5", streamBody(typeStream, []string{three}, 3, id(3), id(1), id(0), 3, streamGroup(typeStream, 0, nil, map[string][]uint64{"c": nil})), typeStream,
			"3 last 3-0 added 3 deleted 0-0: " + entries + "; group g last 2-0 read -1, c seen 70 active 70"},
		{"a group that has read less than nothing", streamBody(typeStream2, []string{three}, 3, id(3), id(1), id(0), 3, streamGroup(typeStream2, -7, nil, nil)), typeStream2,
			"3 last 3-0 added 3 deleted 0-0: " + entries + "; group g last 2-0 read -1"},
		{"a pending entry of two consumers", streamBody(typeStream2, []string{three}, 3, id(3), id(1), id(0), 3, streamGroup(typeStream2, 2, both, map[string][]uint64{"c": both, "d": {2}})), typeStream2,
			"3 last 3-0 added 3 deleted 0-0: " + entries + "; group g last 2-0 read 2, 1-0 of c at 1000 times 3, 2-0 of d at 1000 times 3, c seen 70 active 70, d seen 70 active 70"},

		{"a block of more entries", streamBody(typeStream2, []string{block(1, 2, 0, 1, "f", 0, 2, 0, 0, "a", 4)}, 1, id(1), id(1), id(0), 1), typeStream2, ""},
		{"a block of more deleted entries", streamBody(typeStream2, []string{block(1, 1, 1, 1, "f", 0, 2, 0, 0, "a", 4)}, 1, id(1), id(1), id(0), 1), typeStream2, ""},
		{"a block of entries that are not there", streamBody(typeStream2, []string{block(1, 1, 0, 1, "f", 0)}, 0, id(1), id(1), id(0), 1), typeStream2, ""},
		{"entries, but no block", streamBody(typeStream2, nil, 3, id(3), id(1), id(0), 3), typeStream2, ""},
		{"a pending entry of no consumer", streamBody(typeStream2, []string{three}, 3, id(3), id(1), id(0), 3, streamGroup(typeStream2, 2, both, map[string][]uint64{"c": {1}})), typeStream2, ""},
		{"a pending entry that the group has not", streamBody(typeStream2, []string{three}, 3, id(3), id(1), id(0), 3, streamGroup(typeStream2, 2, both, map[string][]uint64{"c": {1, 2, 3}})), typeStream2, ""},
		{"a pending entry twice", streamBody(typeStream2, []string{three}, 3, id(3), id(1), id(0), 3, streamGroup(typeStream2, 2, []uint64{1, 1}, map[string][]uint64{"c": {1}})), typeStream2, ""},
		{"a pending entry twice of one consumer", streamBody(typeStream2, []string{three}, 3, id(3), id(1), id(0), 3, streamGroup(typeStream2, 2, both, map[string][]uint64{"c": {1, 2, 2}})), typeStream2, ""},
		{"a group twice", streamBody(typeStream2, []string{three}, 3, id(3), id(1), id(0), 3, streamGroup(typeStream2, 2, nil, nil), streamGroup(typeStream2, 2, nil, nil)), typeStream2, ""},
		{"a block twice", streamBody(typeStream2, []string{three, three}, 6, id(3), id(1), id(0), 6), typeStream2, ""},
		{"an ID of 15 bytes", streamBody(typeStream2, []string{sized(strings.Repeat("x", 15)) + sized(listpack(1))}, 1, id(3), id(1), id(0), 1), typeStream2, ""},
		{"a block that is no listpack", streamBody(typeStream2, []string{sized(strings.Repeat("x", 16)) + sized("x")}, 1, id(3), id(1), id(0), 1), typeStream2, ""},
		{"a number that is none", streamBody(typeStream2, []string{block(1, 1, 0, "x", "f", 0, 2, 0, 0, "a", 4)}, 1, id(1), id(1), id(0), 1), typeStream2, ""},
		{"more fields than there are", streamBody(typeStream2, []string{block(1, 1, 0, 9, "f", 0)}, 1, id(1), id(1), id(0), 1), typeStream2, ""},
		{"a negative number of fields", streamBody(typeStream2, []string{block(1, 1, 0, -1, "f", 0)}, 1, id(1), id(1), id(0), 1), typeStream2, ""},
		{"fields without an end", streamBody(typeStream2, []string{block(1, 1, 0, 1, "f", 1, 2, 0, 0, "a", 4)}, 1, id(1), id(1), id(0), 1), typeStream2, ""},
		{"an entry of another size", streamBody(typeStream2, []string{block(1, 1, 0, 1, "f", 0, 2, 0, 0, "a", 5)}, 1, id(1), id(1), id(0), 1), typeStream2, ""},
		{"fields without their end", streamBody(typeStream2, []string{block(0, 0, 0, 1, "f")}, 0, id(1), id(0), id(0), 0), typeStream2, ""},
		{"entries out of order", streamBody(typeStream2, []string{block(1, 2, 0, 1, "f", 0, 2, 5, 0, "a", 4, 2, 4, 0, "a", 4)}, 2, id(6), id(1), id(0), 2), typeStream2, ""},
	} {
		got, err := read(c, test.kind, test.body)
		if test.want == "" {
			in := input{rest: []byte(test.body)}
			if _, err := c.value(&in, test.kind); !errors.Is(err, ErrFormat) || in.bad || len(in.rest) > 0 {
				t.Errorf("%s: %v, bad %v, %d bytes left", test.name, err, in.bad, len(in.rest))
			}
			continue
		}
		if err != nil || got != test.want {
			t.Errorf("%s: %q, %v\nnot %q", test.name, got, err, test.want)
			continue
		}
		in := input{rest: []byte(test.body)}
		v, err := c.value(&in, test.kind)
		if err != nil {
			t.Fatal(err)
		}
		back, err := c.Payload(c.AppendPayload(nil, v))
		if err != nil || test.kind != typeStream3 && content(back) != got {
			t.Errorf("%s: written and read again: %v, %v", test.name, back, err)
		}
	}
}

// TestDamagedValues reads a file of damaged values among others: those are named, and the rest is
// read. Where a length is lost the error names the key.
func TestDamagedValues(t *testing.T) {
	c := newTestCodec()
	key := func(kind byte, key, body string) string { return string([]byte{kind}) + sized(key) + body }
	end := func(s string) string { return s + "\xff" + le(0, 8) }
	file := end("REDIS0011\xfe\x02" + key(typeString, "a", sized("x")) + "\xfc" + le(1<<42, 8) + key(typeHashListpack, "h", sized("garbage")) +
		key(typeSet, "s", "\x03\x01a\x01a\x01b") + key(typeString, "c", "\xc3\x02\x05\x00a") + key(typeModule2, "m", "\x81\xbd\xe7\x2d\xa2\xbb\x1e\xb4\x00\x00") +
		key(typeZset2, "z", "\x01\x01a"+le(0, 8)))
	var got []string
	_, err := c.ReadFile(strings.NewReader(file), func(e Entry) error {
		got = append(got, fmt.Sprint(e.DB, e.Key, e.Deadline, e.Value != nil, e.Err))
		return nil
	})
	want := []string{"2a0 true <nil>", "2h4398046511104 false bad data format", "2s0 false bad data format", "2c0 false bad data format", "2m0 false value of module vectorset", "2z0 true <nil>"}
	for i := range want {
		if i >= len(got) || strings.ReplaceAll(got[i], " ", "") != strings.ReplaceAll(want[i], " ", "") {
			t.Errorf("%q, %v, not %q", got, err, want[i])
		}
	}
	if err != nil || len(got) != len(want) {
		t.Errorf("%q, %v", got, err)
	}
	for _, test := range []struct{ file, want string }{
		{"REDIS0004" + key(typeString, "a", sized("x")) + key(typeString, "key", "\x05x"), `unexpected end of the file (key "key" of database 0, type 0: bad data format)`},
		{"REDIS0004" + key(typeSet, "key", "\x82"), `key "key" of database 0, type 2: bad data format`},
		{"REDIS0004" + key(typeModule2, "key", "\x81\xbd\xe7\x2d\xa2\xbb\x1e\xb4\x00\x09"), `key "key" of database 0, type 7: bad data format`},
		{"REDIS0004\xfe\x82", "bad data format, before the first key"},
		{"REDIS0004\xfe\x03" + key(typeString, "a", sized("x")) + "\xfb\x82", `bad data format, after key "a" of database 3`},
		{"REDIS0004\xfe\x03" + key(typeString, "a", sized("x")) + "\xfb\x05", `unexpected end of the file (bad data format, after key "a" of database 3)`},
		{"REDIS0004" + key(typeString, "a", sized("x")), `unexpected end of the file (bad data format, after key "a" of database 0)`},
		{"REDIS0004\xf5\xc3\x02\x05\x00a", "bad data format, before the first key"},
		{"REDIS0004\xf6\x03lib\x03LUA\x00\xc3\x02\x05\x00a", "bad data format, before the first key"},
		{"REDIS0004\xf6\x03lib", "unexpected end of the file (bad data format, before the first key)"},
		{"REDIS0004", "unexpected end of the file (bad data format, before the first key)"},
		{"REDIS000", "unexpected end of the file (bad data format: not a file of Redis or Valkey)"},
		{"", "unexpected end of the file (bad data format: not a file of Redis or Valkey)"},
		{"nonsense!\xff", "bad data format: not a file of Redis or Valkey"},
		{"REDIS0000\xff", "unsupported format version 0: supported are 1 to 13 (Redis up to 8.6) and 80 (Valkey 9)"},
		{end("REDIS0005")[:15], "unexpected end of the file (bad data format)"},
		{"REDIS0005\xff" + le(1, 8), "wrong version or checksum of the file"},
		{"REDIS0004\xff", "<nil>"},
	} {
		if _, err := c.ReadFile(strings.NewReader(test.file), func(Entry) error { return nil }); fmt.Sprint(err) != test.want {
			t.Errorf("%q: %v, not %s", test.file, err, test.want)
		}
	}
	// An error of reading is no damage.
	failed := errors.New("input/output error")
	r := io.MultiReader(strings.NewReader(file[:40]), &failing{failed})
	if _, err := c.ReadFile(r, func(Entry) error { return nil }); err != failed {
		t.Error(err)
	}
}

// failing is a reader that fails.
type failing struct{ err error }

// Read implements io.Reader.
func (f *failing) Read([]byte) (int, error) { return 0, f.err }

// TestFileFacts reads what a file has beside its values.
func TestFileFacts(t *testing.T) {
	c := newTestCodec()
	var announced, got []string
	c.Announced = func(db, keys uint64) { announced = append(announced, fmt.Sprint(db, ":", keys)) }
	info, err := c.ReadFile(strings.NewReader("REDIS0006\xfa\x09redis-ver\x055.0.0\xfa\x0erepl-stream-db\xc0\x07"+
		"\xf5"+sized("#!lua name=new\n1")+
		"\xf6\x03old\x03LUA\x01\x04text"+sized("redis.register_function('f', 1)")+
		"\xf6\x05plain\x03lua\x00"+sized("2")+
		"\xfe\x05\xfb\x40\x50\x02\xf4\x01\x02\x03\xf8\x80\x00\x00\x00\x09\xf9\xff"+
		"\xfd"+le(7, 4)+"\x00\x01a\x01x"+"\xfc"+le(1234567, 8)+"\x00\x01b\x01y"+"\x00\x01c\x01z"+"\xfe\x00\x00\x00\x00"+
		"\xff"+le(0, 8)), func(e Entry) error {
		got = append(got, fmt.Sprintf("%d %s %d %s%v", e.DB, e.Key, e.Deadline, e.Library, e.Err))
		return nil
	})
	want := []string{"0  0 #!lua name=new\n1<nil>", "0  0 #!LUA name=old\nredis.register_function('f', 1)<nil>", "0  0 #!lua name=plain\n2<nil>",
		"5 a 7000 <nil>", "5 b 1234567 <nil>", "5 c 0 <nil>", "0  0 <nil>"}
	if err != nil || !slices.Equal(got, want) || info != (FileInfo{Version: 6, Functions: 3, StreamDB: 7}) || !slices.Equal(announced, []string{"5:80"}) {
		t.Errorf("%q, %q, %+v, %v", got, announced, info, err)
	}
	// The error of a visit ends the reading.
	for _, file := range []string{"REDIS0006\x00\x01a\x01x", "REDIS0006\xf5\x01x", "REDIS0006\xf6\x01a\x01b\x00\x01x", "REDIS0006\xf7\x01\x02\x01\x05\x01x\x00"} {
		failed, n := errors.New("enough"), 0
		if _, err := c.ReadFile(strings.NewReader(file+file[9:]+"\xff"+le(0, 8)), func(Entry) error { n++; return failed }); err != failed || n != 1 {
			t.Errorf("%q: %v after %d visits", file, err, n)
		}
	}
	// Data of a module: values of all types.
	const name = "\x81\xbd\xe7\x2d\xa2\xbb\x1e\xb4\x00"
	body := name + "\x01\x05\x02\x06\x03" + le(0, 4) + "\x04" + le(0, 8) + "\x05\x03abc\x00"
	var modules []string
	if _, err := c.ReadFile(strings.NewReader("REDIS0009\xf7"+body+"\x07\x01k"+body+"\x00\x01a\x01x\xff"+le(0, 8)), func(e Entry) error {
		modules = append(modules, fmt.Sprint(e.Module, "/", e.Key, "/", e.Err))
		return nil
	}); err != nil || !slices.Equal(modules, []string{"vectorset//<nil>", "/k/value of module vectorset", "/a/<nil>"}) {
		t.Errorf("%q, %v", modules, err)
	}
}

// TestChunks reads a file whose values cross the reads, in which they are found as they were.
func TestChunks(t *testing.T) {
	c := newTestCodec()
	w := NewWriter(c, Redis7)
	file := w.AppendHead(nil)
	sizes := []int{1, ReadSize - 60, 5, ReadSize, ReadSize + 1, 10, 3 * ReadSize, readLimit + 5, 2*readLimit + 7, 1}
	c.Uncompressed = true
	for i, n := range sizes {
		file = w.AppendKey(file, 0, fmt.Sprint("k", i), keyspace.NewString(bytes.Repeat([]byte{'a' + byte(i)}, n)), 0)
	}
	file = w.AppendEnd(file)
	i := 0
	if _, err := c.ReadFile(bytes.NewReader(file), func(e Entry) error {
		if b := e.Value.(*keyspace.String).Content(); e.Key != fmt.Sprint("k", i) || len(b) != sizes[i] || strings.Trim(string(b), string(rune('a'+i))) != "" {
			t.Errorf("%s: %d bytes", e.Key, len(b))
		}
		i++
		return nil
	}); err != nil || i != len(sizes) {
		t.Error(i, err)
	}
	for _, at := range []int{len(file) / 2, len(file) - 9 - 4, 30} {
		flipped := bytes.Clone(file)
		flipped[at] ^= 1
		if _, err := c.ReadFile(bytes.NewReader(flipped), func(Entry) error { return nil }); err == nil {
			t.Errorf("byte %d is changed", at)
		}
		if _, err := c.ReadFile(bytes.NewReader(file[:at]), func(Entry) error { return nil }); err == nil || !strings.Contains(err.Error(), "unexpected end") {
			t.Errorf("%d bytes: %v", at, err)
		}
	}
}

// TestKept checks that values stay as they are while those behind them are read.
func TestKept(t *testing.T) {
	c := newTestCodec()
	w := NewWriter(c, Replica)
	file := w.AppendHead(nil)
	payloads := seeds(c)
	for i := 0; len(file) < 6*ReadSize; i++ {
		v, err := c.Payload(payloads[i%len(payloads)])
		if err != nil {
			t.Fatal(err)
		}
		file = w.AppendKey(w.AppendDeadlines(file, v), 0, fmt.Sprint("k", i), v, 0)
	}
	file = w.AppendEnd(file)
	var entries []Entry
	var contents []string
	if _, err := c.ReadFile(bytes.NewReader(file), func(e Entry) error {
		entries, contents = append(entries, e), append(contents, content(e.Value))
		return e.Err
	}); err != nil || len(entries) < 2*len(payloads) {
		t.Fatal(len(entries), err)
	}
	for i, e := range entries {
		if got := content(e.Value); e.Key != fmt.Sprint("k", i) || got != contents[i] {
			t.Errorf("%s, %T: %.200s, and was %.200s", e.Key, e.Value, got, contents[i])
		}
	}
}

// The fields before the first key tell whether a file begins an append-only file.
func TestIsBase(t *testing.T) {
	for head, want := range map[string]bool{
		"REDIS0011\xfa\x08aof-base\xc0\x01":                                   true,
		"REDIS0011\xfa\x08aof-base\x011":                                      true,
		"REDIS0011\xfa\x08aof-base\xc0\x00":                                   false,
		"REDIS0011\xfa\x09redis-ver\x057.2.0\xfa\x08aof-base\xc0\x01\xfe\x00": true,
		"REDIS0008\xfa\x0caof-preamble\xc0\x01":                               true,
		"REDIS0011\xfa\x0bother-field\xc0\x01":                                false,
		"REDIS0011\xfe\x00\xfa\x08aof-base\xc0\x01":                           false,
		"nonsense!\xfa\x08aof-base\xc0\x01":                                   false,
		"REDIS0011":                                                           false, "": false,
	} {
		if got := IsBase([]byte(head)); got != want {
			t.Errorf("%q: %v", head, got)
		}
	}
}

// TestManifestFiles reads manifests of append-only files.
func TestManifestFiles(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"file a.rdb seq 1 type b\nfile c.aof seq 2 type i\nfile b.aof seq 1 type i\nfile z seq 1 type h\n", `["a.rdb" "b.aof" "c.aof"]`},
		{"# a comment\n\nfile c.aof seq 1 type i startoffset 5 endoffset 7\nfile a.rdb seq 1 type b", `["a.rdb" "c.aof"]`},
		{"file \"a 1.rdb\" seq 1 type b\nfile 'b c' seq 1 type i\nfile \"d\\x20\\\"e\" seq 2 type i\r\n", `["a 1.rdb" "b c" "d \"e"]`},
		{"seq 1 type b file a\nTYPE i\tFILE b  SeQ 1\n", `["a" "b"]`},
		{"file a seq 1 type base\nfile b seq 1 type incr\n", `["a" "b"]`},
		{"file a seq 1 type b key value\n", `["a"]`},
		{"file a seq 1 type B\n", `line 1: unknown file type 'B'`},
		{"file a seq 1 type b\nfile b seq 2 type b\n", "more than one base file"},
		{"file a seq 1 type i\nfile b seq 1 type i\n", "two increments have the sequence number 1"},
		{"# nothing\nfile a seq 1 type b odd\n", "line 2: invalid line of a manifest"},
		{"file a seq 0 type b\n", "line 1: invalid line of a manifest"},
		{"file a seq x type b\n", "line 1: invalid line of a manifest"},
		{"file \"a seq 1 type b\n", "line 1: invalid line of a manifest"},
		{"file \"\" seq 1 type b\n", "line 1: invalid line of a manifest"},
		{"\"\" x\n", "line 1: invalid line of a manifest"},
		{"file a seq 1 type \"\"\n", "line 1: invalid line of a manifest"},
		{"file a seq 1\n", "line 1: invalid line of a manifest"},
		{"file ../a seq 1 type b\n", "line 1: invalid line of a manifest"},
		{"file a/b seq 1 type b\n", "line 1: invalid line of a manifest"},
		{"", "the manifest lists no files to read"},
		{"# x\n", "the manifest lists no files to read"},
		{"file a seq 1 type h\n", "the manifest lists no files to read"},
	} {
		names, err := ManifestFiles([]byte(test.text))
		got := fmt.Sprintf("%q", names)
		if err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%q: %s, not %s", test.text, got, test.want)
		}
		if recognized := IsManifest([]byte(test.text)); err == nil && !recognized {
			t.Errorf("%q is not recognized", test.text)
		}
	}
	for _, text := range []string{"", "# x\n", "SET a b\n", "file a b c d e\n", "*1\r\n", "\"\" x\n", "file a seq 1 type x\n", `{"db":0,"key":"k"}`} {
		head := []byte(text)
		if IsManifest(head) {
			t.Errorf("%q is recognized", text)
		}
		if string(head) != text {
			t.Errorf("%q has become %q", text, head)
		}
	}
}

// TestLegacyFunctions reads the replies of FUNCTION DUMP of release candidates of Redis 7.0.
func TestLegacyFunctions(t *testing.T) {
	c := newTestCodec()
	whole := "\xf6\x03lib\x03LUA\x01\x04text\x04code"
	for _, test := range []struct{ body, want, wrong string }{
		{whole + "\xf5" + sized("#!lua name=x\n"), `["#!LUA name=lib\ncode" "#!lua name=x\n"]`, ""},
		{"\xf6\x03lib\x03LUA\x00\x04code", `["#!LUA name=lib\ncode"]`, ""},
		{"", "[]", ""},
		{"\x00\x01a\x01b", "[]", "given type is not a function"},
		{"\xf5\x05x", "[]", "Failed loading library payload"},
		{whole[:3], "[]", "Failed loading library name"},
		{whole[:7], "[]", "Failed loading engine name"},
		{whole[:9], "[]", "Failed loading library description indicator"},
		{whole[:12], "[]", "Failed loading library description"},
		{whole[:17], "[]", "Failed loading library blob"},
		{whole[:16], "[]", "Failed loading library blob"},
	} {
		codes, wrong := c.Functions(c.appendFooter([]byte(test.body), 0, version))
		if got := fmt.Sprintf("%q", codes); got != test.want || wrong != test.wrong {
			t.Errorf("%q: %s, %q", test.body, got, wrong)
		}
	}
	payload := c.AppendFunctions(nil, []string{"one", "two"})
	if codes, wrong := c.Functions(payload); wrong != "" || !slices.Equal(codes, []string{"one", "two"}) {
		t.Error(codes, wrong)
	}
	for _, bad := range [][]byte{payload[:9], nil, append(bytes.Clone(payload[:len(payload)-1]), payload[len(payload)-1]^1), c.appendFooter([]byte("\xf5\x01x"), 0, versionNewest+1)} {
		if codes, wrong := c.Functions(bad); codes != nil || wrong != "" {
			t.Errorf("%q: %q, %q", bad, codes, wrong)
		}
	}
	c.AnyVersion = true
	if codes, wrong := c.Functions(c.appendFooter([]byte("\xf5\x01x"), 0, versionNewest+1)); wrong != "" || !slices.Equal(codes, []string{"x"}) {
		t.Error(codes, wrong)
	}
	for code, want := range map[string]string{"#!lua name=x\n": "x", "#!lua NAME=\"a b\"\nname=c": "a b", "#!lua engine=lua name=y": "y", "#!lua\nname=z": "", "#!lua name=": "", "": ""} {
		if got := LibraryName(code); got != want {
			t.Errorf("%q: %q", code, got)
		}
	}
}

// TestVersions reads payloads of all versions of the format. Those of later versions are refused, unless
// AnyVersion is set; then the checksum and the type still count.
func TestVersions(t *testing.T) {
	c := newTestCodec()
	for _, test := range []struct {
		version      uint16
		strict, lazy error
	}{
		{0, nil, nil}, {1, nil, nil}, {versionNewest, nil, nil}, {versionValkey, nil, nil},
		{versionNewest + 1, ErrChecksum, nil}, {versionValkey - 1, ErrChecksum, nil}, {versionValkey + 1, ErrChecksum, nil}, {math.MaxUint16, ErrChecksum, nil},
	} {
		payload := c.appendFooter([]byte("\x00\x03bar"), 0, test.version)
		for _, c.AnyVersion = range []bool{false, true} {
			want := test.strict
			if c.AnyVersion {
				want = test.lazy
			}
			v, err := c.Payload(payload)
			if err != want || err == nil && content(v) != "bar" {
				t.Errorf("version %d, any %v: %v, %v", test.version, c.AnyVersion, v, err)
			}
			changed := bytes.Clone(payload)
			changed[3] ^= 1
			if _, err := c.Payload(changed); err != ErrChecksum {
				t.Errorf("version %d, any %v, changed: %v", test.version, c.AnyVersion, err)
			}
			if _, err := c.Payload(append(changed[:len(changed)-8], 0, 0, 0, 0, 0, 0, 0, 0)); err != want {
				t.Errorf("version %d, any %v, without a checksum: %v", test.version, c.AnyVersion, err)
			}
		}
	}
	if _, err := c.Payload(c.appendFooter([]byte("\x1b\x03bar"), 0, versionNewest+1)); err != ErrType {
		t.Error(err)
	}
	for n := range 10 {
		if _, err := c.Payload(make([]byte, n)); err != ErrChecksum {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// TestForms checks the bytes of keys in files for each target, at the limits of small values.
func TestForms(t *testing.T) {
	c := newTestCodec()
	limits := c.Limits
	list := func(elements ...string) *sequence.List {
		l := new(sequence.List)
		for _, e := range elements {
			l.PushBack([]byte(e))
		}
		l.Fit(limits.ListMaxListpackSize)
		return l
	}
	hash := func(value string, n int) *keyspace.Hash {
		h := new(keyspace.Hash)
		for i := range n {
			h.Set(fmt.Append(nil, i), []byte(value), limits)
		}
		return h
	}
	sorted := func(member string, n int) *zset.Set {
		s := new(zset.Set)
		s.Add(member, 1)
		for i := range n - 1 {
			s.Add(fmt.Sprint("m", i), float64(2+i))
		}
		return s
	}
	numbers := new(keyspace.Set)
	for _, n := range []string{"1", "-200", "70000"} {
		numbers.Add(limits, keyspace.MemberOf([]byte(n)))
	}
	one := hash("v", 1)
	timed := one.Clone()
	timed.SetDeadlineBytes([]byte("0"), 5000)
	both := hash("v", 2)
	both.Delete([]byte("1"))
	both.Set([]byte("f"), []byte("w"), limits)
	both.SetDeadlineBytes([]byte("f"), 7000)
	long := strings.Repeat("x", 64)
	all := []Target{Any, Redis5, Redis7, Redis8, Valkey9, Replica, Replica7}
	for _, test := range []struct {
		name  string
		v     any
		types [7]byte // for the targets in all
	}{
		{"string", keyspace.NewString([]byte("x")), [7]byte{}},
		{"small list", list("a", "b"), [7]byte{1, 1, 18, 18, 18, 1, 18}},
		{"large list", list(slices.Repeat([]string{long}, 1000)...), [7]byte{1, 1, 18, 18, 18, 1, 1}},
		{"integers", numbers, [7]byte{2, 2, 11, 11, 11, 2, 11}},
		{"small hash", one, [7]byte{4, 4, 16, 16, 16, 4, 16}},
		{"hash at the limit", hash(long, limits.HashMaxListpackEntries), [7]byte{4, 4, 16, 16, 16, 4, 16}},
		{"hash beyond the limit", hash("v", limits.HashMaxListpackEntries+1), [7]byte{4, 4, 4, 4, 4, 4, 4}},
		{"hash of a large value", hash(long+"x", 1), [7]byte{4, 4, 4, 4, 4, 4, 4}},
		{"hash with a deadline", timed, [7]byte{24, 4, 4, 24, 22, 4, 4}},
		{"small sorted set", sorted("a", 2), [7]byte{5, 5, 17, 17, 17, 5, 17}},
		{"sorted set at the limit", sorted(long, limits.ZsetMaxListpackEntries), [7]byte{5, 5, 17, 17, 17, 5, 17}},
		{"sorted set beyond the limit", sorted("a", limits.ZsetMaxListpackEntries+1), [7]byte{5, 5, 5, 5, 5, 5, 5}},
		{"sorted set of a large member", sorted(long+"x", 1), [7]byte{5, 5, 5, 5, 5, 5, 5}},
	} {
		for i, target := range all {
			if form := rowOf(test.v).form(c, test.v, target); form != test.types[i] {
				t.Errorf("%s, target %d: type %d, not %d", test.name, target, form, test.types[i])
			}
			w := NewWriter(c, target)
			file := w.AppendEnd(w.AppendKey(w.AppendHead(nil), 3, "k", test.v, 9))
			n := 0
			if _, err := c.ReadFile(bytes.NewReader(file), func(e Entry) error {
				if n++; e.DB != 3 || e.Key != "k" || e.Deadline != 9 || e.Err != nil {
					t.Errorf("%s, target %d: %+v", test.name, target, e)
				}
				want := content(test.v)
				if !target.FieldDeadlines() {
					want = strings.Split(want, "@")[0]
				}
				if got := content(e.Value); got != want {
					t.Errorf("%s, target %d: %.200q, not %.200q", test.name, target, got, want)
				}
				return nil
			}); err != nil || n != 1 {
				t.Errorf("%s, target %d: %d keys, %v", test.name, target, n, err)
			}
		}
	}
	// Every byte of a file.
	w := NewWriter(c, Valkey9)
	file := w.AppendStreamDB(w.AppendHead(nil), 2)
	file = w.AppendLibrary(file, "code")
	file = w.AppendSize(file, 2, 5, 1)
	file = w.AppendKey(file, 2, "a", keyspace.NewString([]byte("x")), 0)
	file = w.AppendKey(file, 2, "b", keyspace.NewString([]byte("-129")), 258)
	file = w.AppendKey(file, 4, "h", timed, 0)
	file = w.AppendSize(file, 4, 1, 0)
	file = w.AppendEnd(w.AppendKey(file, 4, "z", sorted("m", 1), 0))
	want := "VALKEY080\xfa\x0erepl-stream-db\xc0\x02\xf5\x04code\xfe\x02\xfb\x05\x01\x00\x01a\x01x\xfc\x02\x01\x00\x00\x00\x00\x00\x00\x00\x01b\xc1\x7f\xff" +
		"\xfe\x04\x16\x01h\x01\xc0\x00\x01v\x88\x13\x00\x00\x00\x00\x00\x00\xfb\x01\x00\x11\x01z" + sized(listpack("m", 1)) + "\xff"
	if string(file[:len(file)-8]) != want || binary.LittleEndian.Uint64(file[len(file)-8:]) != c.crc.sum(0, []byte(want)) {
		t.Errorf("%q, not %q", file, want)
	}
	w = NewWriter(c, Redis8)
	file = w.AppendKey(nil, 0, "h", both, 0)
	for _, order := range []string{"\x00\xc0\x00\x01v\x01\x01f\x01w", "\x01\x01f\x01w\x00\xc0\x00\x01v"} {
		if string(file) == "\xfe\x00\x18\x01h"+le(7000, 8)+"\x02"+order {
			return
		}
	}
	t.Errorf("%q", file)
}

// TestReadState checks what a value has beside its elements: its encoding, and the order of a small set.
func TestReadState(t *testing.T) {
	c := newTestCodec()
	value := func(kind byte, body string) any {
		t.Helper()
		in := input{rest: []byte(body)}
		v, err := c.value(&in, kind)
		if err != nil || !in.sound() {
			t.Fatal(kind, err)
		}
		return v
	}
	var order []string
	for m := range value(typeSetListpack, sized(listpack("c", "a", 7, "b"))).(*keyspace.Set).All() {
		order = append(order, m)
	}
	if !slices.Equal(order, []string{"c", "a", "7", "b"}) {
		t.Error(order)
	}
	if e := value(typeList, "\x01\x01a").(*sequence.List).Encoding(c.Limits.ListMaxListpackSize); e != "listpack" {
		t.Error(e)
	}
	long := strings.Repeat("x", 9000)
	if e := value(typeList, "\x02"+sized(long)+sized(long)).(*sequence.List).Encoding(c.Limits.ListMaxListpackSize); e != "quicklist" {
		t.Error(e)
	}
	for n, want := range map[int]string{10: "listpack", 600: "hashtable"} {
		body := le(5000, 8) + string(appendLength(nil, uint64(n)))
		for i := range n {
			body += string(appendLength(nil, uint64(i%3))) + sized(fmt.Sprint("field", i)) + "\x01v"
		}
		h := value(typeHashTimed, body).(*keyspace.Hash)
		deadlines := 0
		for i := range n {
			at, _ := h.DeadlineBytes(fmt.Append(nil, "field", i))
			if want := []int64{0, 5000, 5001}[i%3]; at != want {
				t.Errorf("field %d of %d: %d, not %d", i, n, at, want)
			}
			if at != 0 {
				deadlines++
			}
		}
		if h.Len() != n || h.Deadlines().Len() != deadlines || h.Table() != nil != (want == "hashtable") {
			t.Errorf("%d fields, %d deadlines", h.Len(), h.Deadlines().Len())
		}
	}
	// The elements of a sorted set that is read do not stay for the next one.
	for n := range 3 {
		body := string(appendLength(nil, uint64(1+1000*n)))
		for i := range 1 + 1000*n {
			body += sized(fmt.Sprint("m", i)) + le(int64(math.Float64bits(float64(i))), 8)
		}
		if s := value(typeZset2, body).(*zset.Set); s.Len() != 1+1000*n || cap(c.elements) > maxScratch {
			t.Errorf("%d members, %d are kept", s.Len(), cap(c.elements))
		}
	}
	// A damaged string is an error of its payload. Without checksums, others are read.
	if _, err := c.Payload(c.appendFooter([]byte("\x00\xc3\x02\x05\x00a"), 0, version)); err != ErrFormat {
		t.Error(err)
	}
	bad := c.appendFooter([]byte("\x00\x01a"), 0, version)
	bad[len(bad)-1] ^= 1
	if _, err := c.Payload(bad); err != ErrChecksum {
		t.Error(err)
	}
	c.SkipChecksums = true
	if v, err := c.Payload(bad); err != nil || content(v) != "a" {
		t.Error(v, err)
	}
	c.SkipChecksums = false
	// A stream of Redis 8.6 has the times of its consumers.
	s := new(sequence.Stream)
	s.Add(sequence.StreamID{Ms: 1}, [][]byte{[]byte("f"), []byte("v")}, c.Limits.Stream)
	s.Add(sequence.StreamID{Ms: 2}, [][]byte{[]byte("f"), []byte("w")}, c.Limits.Stream)
	s.Add(sequence.StreamID{Ms: 3}, [][]byte{[]byte("g"), []byte("w")}, c.Limits.Stream)
	g := s.AddGroup([]byte("g"), sequence.StreamID{}, 0)
	g.SetTimes(g.AddConsumer([]byte("c"), 5), 5, 6)
	s.Identify([]byte("p"), []byte("one"), sequence.StreamID{Ms: 1}, 5)
	c.Uncompressed = true
	payload := c.AppendPayload(nil, s)
	v, err := c.Payload(payload)
	if err != nil || payload[0] != typeStream4 || content(v) != content(s) || !strings.Contains(content(v), "seen 5 active 6") {
		t.Errorf("type %d, %q, %v", payload[0], content(v), err)
	}
	if !bytes.Contains(payload, []byte(listpack(3, 0, 1, "f", 0, 2, 0, 0, "v", 4, 2, 1, 0, "w", 4, 0, 2, 0, 1, "g", "w", 6))) {
		t.Errorf("%q", payload)
	}
	for _, test := range []struct {
		change func(s *sequence.Stream)
		plain  bool
	}{
		{func(*sequence.Stream) {}, true},
		{func(s *sequence.Stream) { s.SetID(s.LastID(), 2, sequence.StreamID{}) }, false},
		{func(s *sequence.Stream) { s.SetID(s.LastID(), 1, sequence.StreamID{Ms: 1}) }, false},
		{func(s *sequence.Stream) { s.AddGroup([]byte("g"), sequence.StreamID{}, 0) }, false},
	} {
		s := new(sequence.Stream)
		s.Add(sequence.StreamID{Ms: 1}, [][]byte{[]byte("f"), []byte("v")}, c.Limits.Stream)
		if test.change(s); PlainStream(s) != test.plain {
			t.Errorf("%s: not %v", content(s), test.plain)
		}
	}
}

// TestWritten checks the bytes of lengths, texts, integers and lists at the limits of their forms.
func TestWritten(t *testing.T) {
	c := newTestCodec()
	for n, want := range map[uint64]string{
		0: "\x00", 63: "\x3f", 64: "\x40\x40", 16383: "\x7f\xff", 16384: "\x80\x00\x00\x40\x00", math.MaxUint32: "\x80\xff\xff\xff\xff", 1 << 32: "\x81\x00\x00\x00\x01\x00\x00\x00\x00",
	} {
		if got := string(appendLength(nil, n)); got != want {
			t.Errorf("length %d: %q", n, got)
		}
	}
	for text, want := range map[string]string{
		"0": "\xc0\x00", "127": "\xc0\x7f", "-128": "\xc0\x80", "128": "\xc1\x80\x00", "-129": "\xc1\x7f\xff", "32767": "\xc1\xff\x7f", "-32768": "\xc1\x00\x80",
		"32768": "\xc2\x00\x80\x00\x00", "-32769": "\xc2\xff\x7f\xff\xff", "2147483647": "\xc2\xff\xff\xff\x7f", "-2147483648": "\xc2\x00\x00\x00\x80",
		"2147483648": "\x0a2147483648", "-2147483649": "\x0b-2147483649", "99999999999": "\x0b99999999999", "01": "\x0201", "": "\x00", "a": "\x01a",
		strings.Repeat("a", 20): "\x14" + strings.Repeat("a", 20), strings.Repeat("a", 21): "\xc3\x08\x15\x01aa\xe0\x08\x00\x01aa",
	} {
		got := string(c.appendText(nil, []byte(text)))
		if len(text) == 21 { // which form the compressor chooses is not of interest
			if back, err := read(c, typeString, got); err != nil || back != text || got[0] != 0xc3 || len(got) >= 21 {
				t.Errorf("%q: %q, %v", text, got, err)
			}
		} else if got != want {
			t.Errorf("%q: %q, not %q", text, got, want)
		}
		s := string(c.appendString(nil, keyspace.NewString([]byte(text))))
		if s != got {
			t.Errorf("string %q: %q, not %q", text, s, got)
		}
	}
	c.Uncompressed = true
	if got := string(c.appendText(nil, bytes.Repeat([]byte("a"), 30))); got != "\x1e"+strings.Repeat("a", 30) {
		t.Errorf("%q", got)
	}
	for n, want := range map[int64]string{
		0: "\x00", 127: "\x7f", 128: "\xc0\x80", -1: "\xdf\xff", 4095: "\xcf\xff", -4096: "\xd0\x00", 4096: "\xf1\x00\x10", -4097: "\xf1\xff\xef", 32767: "\xf1\xff\x7f", -32768: "\xf1\x00\x80",
		32768: "\xf2\x00\x80\x00", -32769: "\xf2\xff\x7f\xff", 1<<23 - 1: "\xf2\xff\xff\x7f", -1 << 23: "\xf2\x00\x00\x80", 1 << 23: "\xf3\x00\x00\x80\x00", math.MaxInt32: "\xf3\xff\xff\xff\x7f",
		math.MinInt32: "\xf3\x00\x00\x00\x80", 1 << 31: "\xf4\x00\x00\x00\x80\x00\x00\x00\x00", math.MinInt64: "\xf4\x00\x00\x00\x00\x00\x00\x00\x80",
	} {
		if got := string(appendPackedInt(nil, n)); got != want+string([]byte{byte(len(want))}) {
			t.Errorf("packed %d: %q, not %q", n, got, want)
		}
		if got := string(appendPacked(nil, fmt.Append(nil, n))); got != want+string([]byte{byte(len(want))}) {
			t.Errorf("packed text %d: %q, not %q", n, got, want)
		}
	}
	for n, want := range map[int]string{63: "\xbf", 64: "\xe0\x40", 4095: "\xef\xff", 4096: "\xf0\x00\x10\x00\x00"} {
		if got := string(appendPackedText(nil, strings.Repeat("x", n))); !strings.HasPrefix(got, want+"x") {
			t.Errorf("packed text of %d bytes: %q", n, got[:8])
		}
	}
	for n, want := range map[int]string{
		1: "\x01", 127: "\x7f", 128: "\x01\x80", 16382: "\x7f\xfe", 16383: "\x00\xff\xff", 2097150: "\x7f\xff\xfe", 2097151: "\x00\xff\xff\xff", 268435454: "\x7f\xff\xff\xfe", 268435455: "\x00\xff\xff\xff\xff",
	} {
		if got := string(appendBack(nil, n)); got != want {
			t.Errorf("back %d: %q, not %q", n, got, want)
		}
	}
	for text, want := range map[string]float64{"1": 1, "-7": -7, "1.5": 1.5, "inf": math.Inf(1), "-inf": math.Inf(-1), "1e999": math.Inf(1), "-1e999": math.Inf(-1)} {
		if f, ok := parseScore([]byte(text)); !ok || f != want {
			t.Errorf("score %s: %v, %v", text, f, ok)
		}
	}
	for _, text := range []string{"", "x", "nan", "1 ", "1x"} {
		if f, ok := parseScore([]byte(text)); ok {
			t.Errorf("score %q: %v", text, f)
		}
	}
	// The footers of payloads have the version that a value needs.
	timed := new(keyspace.Hash)
	timed.Set([]byte("f"), []byte("v"), c.Limits)
	timed.SetDeadlineBytes([]byte("f"), 5)
	producers := new(sequence.Stream)
	producers.CountDuplicate()
	for _, test := range []struct {
		v             any
		whole, oldest uint16
	}{
		{keyspace.NewString([]byte("x")), version, versionPortable}, {timed, versionTimed, versionTimed}, {producers, versionNewest, versionPortable}, {new(sequence.Stream), version, versionPortable},
	} {
		for i, b := range [][]byte{c.AppendPayload([]byte("before"), test.v), c.AppendPortable([]byte("before"), test.v)} {
			if v := binary.LittleEndian.Uint16(b[len(b)-10:]); v != []uint16{test.whole, test.oldest}[i] {
				t.Errorf("%T, portable %d: version %d", test.v, i, v)
			}
			if _, err := c.Payload(b[len("before"):]); err != nil {
				t.Errorf("%T, portable %d: %v", test.v, i, err)
			}
		}
	}
	for numbers, want := range map[string]string{
		"1 -32768 32767": ints(2, -32768, 1, 32767), "1 32768": ints(4, 1, 32768), "-32769 1": ints(4, -32769, 1), "1 2147483647 40000": ints(4, 1, 40000, math.MaxInt32),
		"40000 2147483648 1": ints(8, 1, 40000, 1<<31), "-2147483649": ints(8, -1<<31-1),
	} {
		s := new(keyspace.Set)
		for _, n := range strings.Fields(numbers) {
			s.Add(c.Limits, keyspace.MemberOf([]byte(n)))
		}
		if got := string(c.intset(s)); got != want {
			t.Errorf("integers %s: %q, not %q", numbers, got, want)
		}
	}
	// A list is cut into nodes of a number of elements, or of bytes: here of 8192.
	for second, want := range map[int]byte{7173: 1, 7174: 2} {
		c.Limits.ListMaxListpackSize = -2
		l := new(sequence.List)
		l.PushBack(bytes.Repeat([]byte("x"), 1000)) // 1004 bytes of a listpack, which begins with 6
		l.PushBack(bytes.Repeat([]byte("x"), second))
		if got := c.appendList(nil, l)[0]; got != want {
			t.Errorf("1000 and %d bytes: %d nodes", second, got)
		}
	}
	for _, test := range []struct {
		size, length, n int
		nodes           []int // elements of each
	}{
		{3, 1, 7, []int{3, 3, 1}}, {1, 1, 3, []int{1, 1, 1}}, {0, 1, 2, []int{1, 1}}, {3, 5000, 3, []int{1, 1, 1}}, {-1, 1000, 5, []int{4, 1}}, {-2, 1000, 9, []int{8, 1}},
		{-5, 60_000, 3, []int{1, 1, 1}}, {-5, 30_000, 3, []int{2, 1}}, {-9, 30_000, 3, []int{2, 1}}, {128, 1, 129, []int{128, 1}},
	} {
		c.Limits.ListMaxListpackSize = test.size
		l := new(sequence.List)
		element := strings.Repeat("x", test.length)
		for range test.n {
			l.PushBack([]byte(element))
		}
		want := string(appendLength(nil, uint64(len(test.nodes))))
		for _, n := range test.nodes {
			want += "\x02" + sized(listpack(slices.Repeat([]any{element}, n)...))
		}
		if got := string(c.appendList(nil, l)); got != want {
			t.Errorf("%d elements of %d bytes, size %d: %.60q of %d bytes, not %.60q of %d", test.n, test.length, test.size, got, len(got), want, len(want))
		}
	}
}
