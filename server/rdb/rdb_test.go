package rdb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/internal/values/sequence"
	"github.com/zsetd/zsetd/zset"
)

func newTestCodec() *Codec {
	limits := keyspace.DefaultLimits()
	return NewCodec(&limits)
}

func TestChecksum(t *testing.T) {
	if got := newTestCodec().crc.sum(0, []byte("123456789")); got != 0xe9c6d914c4b8d9ca {
		t.Errorf("%x", got)
	}
}

func TestCompression(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var z lzf
	for round := range 3000 {
		if round%1000 == 500 { // the positions begin again
			z.next = math.MaxUint32 - 1000
		}
		in := make([]byte, r.IntN(1<<(1+r.IntN(15))))
		letters := 1 + r.IntN(1<<r.IntN(8))
		for i := range in {
			if i > 30 && r.IntN(3) > 0 {
				in[i] = in[i-1-r.IntN(30)]
			} else if round%3 == 0 && i >= lzfWindow && r.IntN(50) > 0 { // longest matches from the greatest distance
				in[i] = in[i-lzfWindow]
			} else {
				in[i] = byte(r.IntN(letters))
			}
		}
		out, ok := z.compress([]byte("before"), in)
		if !ok {
			continue
		}
		if len(out) > len(in)+6-4 {
			t.Fatalf("%d bytes became %d", len(in), len(out)-6)
		}
		back, ok := decompress(out[6:], len(in))
		if !ok || !bytes.Equal(back, in) {
			t.Fatalf("%q came back as %q", in, back)
		}
	}
}

// Payloads of Redis 2.4 to 7.4, of encodings that no newer one writes.
func TestOldShapes(t *testing.T) {
	c := newTestCodec()
	ziplist := "\x19\x00\x00\x00\x14\x00\x00\x00\x04\x00" + "\x00\x01a" + "\x03\xf3" + "\x02\x01b" + "\x03\xc0\x00\x02" + "\xff"
	ziplist = fixZiplist(ziplist)
	for kind, body := range map[byte]string{
		typeHashZipmap:      "\x0e\x02\x01a\x01\x002\x01b\x03\x00512\xff",
		typeHashZiplist:     string([]byte{byte(len(ziplist))}) + ziplist,
		typeZsetZiplist:     string([]byte{byte(len(ziplist))}) + ziplist,
		typeListZiplist:     string([]byte{byte(len(ziplist))}) + ziplist,
		typeListQuicklist:   "\x01" + string([]byte{byte(len(ziplist))}) + ziplist,
		typeZset:            "\x04\x01a\x012\x01b\x03512\x01c\xfe\x01d\xff",
		typeSetListpack:     "\x0d\x0d\x00\x00\x00\x02\x00\x81a\x02\x81b\x02\xff",
		typeHashListpackTTL: "\xe8\x03\x00\x00\x00\x00\x00\x00" + "\x17\x17\x00\x00\x00\x06\x00\x81a\x02\x02\x01\xc3\xe8\x02\x81b\x02\xc2\x00\x02\x00\x01\xff",
	} {
		in := input{rest: []byte(body)}
		v, err := c.value(&in, kind)
		if err != nil || in.bad {
			t.Errorf("type %d: %v", kind, err)
			continue
		}
		switch v := v.(type) {
		case *keyspace.Hash:
			if d := v.Deadlines(); kind == typeHashListpackTTL && (d == nil || d.Len() != 1) {
				t.Errorf("type %d: deadlines %v", kind, d)
			}
			if x, _ := v.Get([]byte("b")); v.Len() != 2 || x != "512" {
				t.Errorf("type %d: b is %q", kind, x)
			}
		case *zset.Set:
			if x, _ := v.Score("b"); x != 512 {
				t.Errorf("type %d: b is %v", kind, x)
			}
		case *sequence.List:
			if v.Len() != 4 || string(v.At(3)) != "512" {
				t.Errorf("type %d: %q", kind, v.At(3))
			}
		case *keyspace.Set:
			if v.Len() != 2 {
				t.Errorf("type %d: %d", kind, v.Len())
			}
		}
	}
}

// fixZiplist sets the size of a ziplist of four elements and the offset of the last
// one.
func fixZiplist(s string) string {
	b := []byte(s)
	b[0], b[4] = byte(len(b)), byte(len(b)-1-4)
	return string(b)
}

// Deadlines of members stay with a value.
func TestDeadlines(t *testing.T) {
	c := newTestCodec()
	h := new(keyspace.Hash)
	for _, f := range []string{"a", "b", "c"} {
		h.Set([]byte(f), []byte("v"), c.Limits)
	}
	h.SetDeadlineBytes([]byte("a"), 5000)
	h.SetDeadlineBytes([]byte("c"), 4000)
	s := zset.Load([]zset.Element{{Member: "a", Score: 2}, {Member: "b", Score: math.Inf(-1)}})
	s.SetDeadline("b", 7000)
	for _, v := range []any{h, s} {
		for _, b := range [][]byte{c.AppendPayload(nil, v), c.AppendPortable(nil, v)} {
			got, err := c.Payload(b)
			if err != nil {
				t.Fatal(err)
			}
			d, want := memberDeadlines(got), memberDeadlines(v)
			if d.Len() != want.Len() {
				t.Fatalf("%d deadlines", d.Len())
			}
			for m, at := range want.All() {
				if x, _ := d.Score(m); x != at {
					t.Errorf("%s: %v", m, x)
				}
			}
		}
	}
}

// seeds are payloads of all types.
func seeds(c *Codec) [][]byte {
	var all [][]byte
	add := func(v any) { all = append(all, c.AppendPayload(nil, v), c.AppendPortable(nil, v)) }
	add(keyspace.NewString([]byte("hello")))
	add(keyspace.NewString([]byte("-1234567")))
	add(keyspace.NewString(bytes.Repeat([]byte("compress me "), 20)))
	l, s, big, h := new(sequence.List), new(keyspace.Set), new(keyspace.Set), new(keyspace.Hash)
	var elements []zset.Element
	for i, w := range strings.Fields("a 1 -200 70000 9999999999 some 0 text " + strings.Repeat("x", 70)) {
		l.PushBack([]byte(w))
		s.Add(c.Limits, keyspace.MemberOf([]byte(w)))
		big.Add(c.Limits, keyspace.MemberOf([]byte{'0' + byte(i)}))
		h.Set([]byte(w), []byte(w), c.Limits)
		elements = append(elements, zset.Element{Member: w, Score: float64(i) / 3})
	}
	l.Fit(c.Limits.ListMaxListpackSize)
	add(l)
	add(s)
	add(big)
	add(h)
	add(zset.Load(elements))
	add(zset.Load(elements[:3]))
	h = h.Clone()
	h.SetDeadlineBytes([]byte("a"), 1000)
	add(h)
	timedSet := zset.Load(elements[:3])
	timedSet.SetDeadline("a", 1000)
	add(timedSet)
	x := new(sequence.Stream)
	for i := range 250 {
		x.Add(sequence.StreamID{Ms: uint64(i * i), Seq: uint64(i%3 + 1)}, [][]byte{[]byte("field"), fmt.Append(nil, i), {byte(i % 40 / 39)}, nil}, c.Limits.Stream)
	}
	x.Delete(sequence.StreamID{Ms: 25, Seq: 3})
	add(x)
	g := x.AddGroup([]byte("g"), sequence.StreamID{}, 0)
	g.ReadNext(g.AddConsumer([]byte("c"), 1), 20, 1000, true, false, func(sequence.StreamEntry) {})
	g.Deliver(g.AddConsumer([]byte("d"), 2), sequence.StreamID{Ms: 5}, 7, 3)
	x.AddGroup(nil, sequence.MaxStreamID(), sequence.UnknownRead)
	add(x)
	add(new(sequence.Stream))
	for _, p := range newerPayloads() {
		all = append(all, c.appendFooter([]byte(p.body), 0, p.version))
	}
	return all
}

// newerPayloads are values in encodings of servers newer than 7.0.
func newerPayloads() []struct {
	body    string
	version uint16
} {
	const block = "\x01\x10" + "\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01" +
		"\x1d\x1d\x00\x00\x00\x0a\x00\x01\x01\x00\x01\x01\x01\x81f\x02\x00\x01\x02\x01\x00\x01\x00\x01\x81v\x02\x04\x01\xff" +
		"\x01\x01\x01\x01\x01\x00\x00\x01"
	const at = "\x00\x10\x47\x69\x03\x1e\x00\x00"
	return []struct {
		body    string
		version uint16
	}{
		{"\x16\x02\x01a\x01b\xff\xff\xff\xff\xff\xff\xff\xff\x01c\x01d" + at, versionValkey},
		{"\x19" + at + "\x17\x17\x00\x00\x00\x06\x00\x81a\x02\x02\x01\xc3\xe8\x02\x81b\x02\xc2\x00\x02\x00\x01\xff", versionNewest},
		{"\x15" + block + "\x01\x01g\x01\x01\x01\x00\x01\x01c" + at + at + "\x00", versionValkey},
		{"\x1a" + block + "\x00\x40\x64\x40\x64\x00\x00\x00", versionNewest},
		{"\x1a" + block + "\x00\x05\x06\x02\x03one\x02\x01a\x01\x01\x01b\x02\x00\x03two\x00\x02\x01", versionNewest},
	}
}

// TestNewerShapes reads hashes of Valkey 9, whose deadlines have no limit, and
// streams of Redis 8.6, with their idempotent producers.
func TestNewerShapes(t *testing.T) {
	c := newTestCodec()
	for i, p := range newerPayloads() {
		v, err := c.Payload(c.appendFooter([]byte(p.body), 0, p.version))
		if err != nil {
			t.Errorf("%d: %v", i, err)
			continue
		}
		if s, ok := v.(*sequence.Stream); ok && s.Len() != 1 {
			t.Errorf("%d: %d entries", i, s.Len())
		}
	}
	const most = 1<<46 - 1
	for at, want := range map[string]int64{
		"\xff\xff\xff\xff\xff\xff\xff\xff": 0, "\x01\x00\x00\x00\x00\x00\x00\x00": 1,
		"\xff\xff\xff\xff\xff\xff\xff\x7f": most, "\x00\x00\x00\x00\x00\x00\x00\x00": -1, "\xfe\xff\xff\xff\xff\xff\xff\xff": -1,
	} {
		v, err := c.Payload(c.appendFooter([]byte("\x16\x01\x01a\x01b"+at), 0, versionValkey))
		if want < 0 {
			if !errors.Is(err, ErrFormat) {
				t.Errorf("%x: %v", at, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%x: %v", at, err)
			continue
		}
		if got, _ := v.(*keyspace.Hash).DeadlineBytes([]byte("a")); got != want {
			t.Errorf("%x: %d, not %d", at, got, want)
		}
	}
	file := "REDIS0013\xfe\x00\x1a\x01s" + newerPayloads()[4].body[1:] + "\x00\x01k\x01v\xff\x00\x00\x00\x00\x00\x00\x00\x00"
	var got []string
	if _, err := c.ReadFile(strings.NewReader(file), func(e Entry) error {
		got = append(got, fmt.Sprint(e.Key, identifiers(e.Value)))
		return nil
	}); err != nil || !slices.Equal(got, []string{"s[one a 1-1 one b 2-0 5 6 2 1]", "k[]"}) {
		t.Errorf("%q, %v", got, err)
	}
}

// identifiers returns the identifiers of a stream's producers, the limits, and the counts.
func identifiers(v any) (all []any) {
	s, ok := v.(*sequence.Stream)
	if !ok {
		return nil
	}
	for x := range s.Identifiers {
		all = append(all, x.Producer, x.Name, x.ID)
	}
	limits := s.IdempotenceLimits()
	added, twice := s.Identified()
	return append(all, limits.Seconds, limits.Most, added, twice)
}

// TestProducers checks that what producers have left is in every form of a stream that has a
// place for it.
func TestProducers(t *testing.T) {
	c := newTestCodec()
	s := new(sequence.Stream)
	s.Add(sequence.StreamID{Ms: 5}, [][]byte{[]byte("f"), []byte("v")}, c.Limits.Stream)
	s.SetIdempotenceLimits(sequence.IdempotenceLimits{Seconds: 7, Most: 2})
	for _, name := range []string{"lost", "b", "a"} {
		s.Identify([]byte("p"), []byte(name), sequence.StreamID{Ms: 5}, 5)
	}
	s.Identify([]byte("q"), []byte("b"), sequence.StreamID{Ms: 6}, 5)
	s.CountDuplicate()
	const want = "[p b 5-0 p a 5-0 q b 6-0 7 2 4 1]"
	got, err := c.Payload(c.AppendPayload(nil, s))
	if text := fmt.Sprint(identifiers(got)); err != nil || text != want {
		t.Errorf("DUMP: %s, %v", text, err)
	}
	for _, target := range []Target{Any, Redis5, Redis7, Redis8, Valkey9, Replica, Replica7} {
		w := NewWriter(c, target)
		file := w.AppendEnd(w.AppendKey(w.AppendDeadlines(w.AppendHead(nil), s), 0, "s", s, 0))
		if _, err := c.ReadFile(bytes.NewReader(file), func(e Entry) error {
			if text := fmt.Sprint(identifiers(e.Value)); text != want {
				t.Errorf("target %d: %s", target, text)
			}
			return nil
		}); err != nil {
			t.Errorf("target %d: %v", target, err)
		}
	}
}

// TestForeignTypes reads files with unknown versions, types and opcodes: the error
// names them.
func TestForeignTypes(t *testing.T) {
	c := newTestCodec()
	const module = "\x81\xbd\xe7\x2d\xa2\xbb\x1e\xb4\x00"
	for _, test := range []struct{ file, want string }{
		{"REDIS0014\xff", "unsupported format version 14: supported are 1 to 13"},
		{"REDIS0080\xff", "unsupported format version 80"},
		{"VALKEY081\xff", "unsupported format version 81"},
		{"VALKEY011\xff", "unsupported format version 11"},
		{"VALKEY080\xf3", "during a slot migration"},
		{"REDIS0013\xf3", "data of a module attached to a key"},
		{"VALKEY080\x17\x01k", `key "k" of database 0, type 23: unknown value type`},
		{"REDIS0013\x1b\x01k", `key "k" of database 0, type 27: unknown value type`},
		{"REDIS0007\x06\x01k", "type 6: unknown value type: module value of Redis before 4.0"},
		{"REDIS0013\x07\x01k" + module + "\x02\x01\x00\x00\x01k\x01v\xff\x00\x00\x00\x00\x00\x00\x00\x00", "value of module vectorset"},
		{"REDIS0013\xf7" + module + "\x02\x01\x05\x01x\x00\xff\x00\x00\x00\x00\x00\x00\x00\x00", "module vectorset"},
		{"REDIS0013\xf7" + module + "\x02\x01\x00\xff\x00\x00\x00\x00\x00\x00\x00\x00", "<nil>"},
	} {
		_, err := c.ReadFile(strings.NewReader(test.file), func(e Entry) error {
			if e.Module != "" {
				return errors.New("module " + e.Module)
			}
			return e.Err
		})
		if got := fmt.Sprint(err); !strings.Contains(got, test.want) {
			t.Errorf("%q: %s, not %q", test.file, got, test.want)
		}
	}
}

// The first bytes of a file identify its kind.
func TestDescribe(t *testing.T) {
	for head, want := range map[string]string{
		"REDIS0011\xfa\x09redis-ver":             "an RDB file of Redis, version 11",
		"VALKEY080\xfa":                          "an RDB file of Valkey, version 80",
		"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n":      "a file of commands, such as an append-only file of Redis",
		"#TS:1700000000\r\n*1\r\n$4\r\nPING\r\n": "a file of commands, such as an append-only file of Redis",
		"file appendonly.aof.1.base.rdb seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i\n": "the manifest of an append-only file of Redis",
		"": "", "REDIS": "", "REDISxxxx": "", "VALKEY08": "", "*": "", "file of mine": "", "SQLite format 3\x00": "",
	} {
		if got := Describe([]byte(head)); got != want {
			t.Errorf("%q: %q, not %q", head, got, want)
		}
		if got := IsFile([]byte(head)); got != strings.Contains(want, "RDB") {
			t.Errorf("%q: %v", head, got)
		}
	}
}

// Each target gets the version and the types that it reads.
func TestTargets(t *testing.T) {
	c := newTestCodec()
	h, x := new(keyspace.Hash), new(sequence.Stream)
	h.Set([]byte("f"), []byte("v"), c.Limits)
	h.SetDeadlineBytes([]byte("f"), 5000)
	x.Add(sequence.StreamID{Ms: 1}, [][]byte{[]byte("f"), []byte("v")}, c.Limits.Stream)
	x.AddGroup([]byte("g"), sequence.StreamID{}, 0).AddConsumer([]byte("c"), 7)
	for _, test := range []struct {
		target Target
		magic  string
		hash   byte
		stream byte
	}{
		{Any, "REDIS0009", typeHashTimed, typeStream2},
		{Redis5, "REDIS0009", typeHash, typeStream},
		{Redis7, "REDIS0010", typeHash, typeStream2},
		{Redis8, "REDIS0012", typeHashTimed, typeStream3},
		{Valkey9, "VALKEY080", typeHashValkey, typeStream3},
		{Replica, "REDIS0009", typeHash, typeStream2},
		{Replica7, "REDIS0010", typeHash, typeStream2},
	} {
		w := NewWriter(c, test.target)
		hash, stream := hashForm(c, h, test.target), streamForm(c, x, test.target)
		if hash != test.hash || stream != test.stream {
			t.Errorf("target %d: types %d, %d", test.target, hash, stream)
		}
		file := w.AppendEnd(w.AppendKey(w.AppendKey(w.AppendHead(nil), 0, "h", h, 0), 0, "x", x, 0))
		if !strings.HasPrefix(string(file), test.magic) {
			t.Errorf("target %d: %q", test.target, file[:9])
		}
		n := 0
		if _, err := c.ReadFile(bytes.NewReader(file), func(e Entry) error {
			switch v := e.Value.(type) {
			case *keyspace.Hash:
				if at, _ := v.DeadlineBytes([]byte("f")); at != 0 != test.target.FieldDeadlines() || at != 0 && at != 5000 {
					t.Errorf("target %d: deadline %d", test.target, at)
				}
			case *sequence.Stream:
				if v.Len() != 1 || v.Group([]byte("g")).Consumer([]byte("c")).Seen() != 7 {
					t.Errorf("target %d: %d entries", test.target, v.Len())
				}
			}
			n++
			return nil
		}); err != nil || n != 2 {
			t.Errorf("target %d: %d keys, %v", test.target, n, err)
		}
	}
}

// Deadlines that the types of a target do not have precede the key, in fields that are
// not too long for the memory of a replica.
func TestDeadlineFields(t *testing.T) {
	c := newTestCodec()
	h, z := new(keyspace.Hash), new(zset.Set)
	for i := range 20_000 {
		name := fmt.Sprintf("member:%d", i)
		h.Set([]byte(name), []byte("v"), c.Limits)
		z.Add(name, 1)
		if i%2 == 0 {
			h.SetDeadlineBytes([]byte(name), int64(1+i))
			z.SetDeadline(name, int64(1+i))
		}
	}
	plain := z.Clone()
	for name := range plain.Deadlines().Clone().All() {
		plain.SetDeadline(name, 0)
	}
	for _, target := range []Target{Any, Redis5, Redis7, Redis8, Valkey9, Replica, Replica7} {
		w := NewWriter(c, target)
		file := w.AppendHead(nil)
		for key, v := range map[string]any{"h": h, "z": z, "plain": plain} {
			file = w.AppendKey(w.AppendDeadlines(file, v), 0, key, v, 0)
		}
		fields := bytes.Count(file, []byte(deadlinesAux))
		if most := 12; fields < 2 || fields > most {
			t.Errorf("target %d: %d fields", target, fields)
		}
		seen := 0
		if _, err := c.ReadFile(bytes.NewReader(w.AppendEnd(file)), func(e Entry) error {
			want := map[string]*zset.Set{"h": h.Deadlines(), "z": z.Deadlines()}[e.Key]
			switch got := memberDeadlines(e.Value); {
			case (got == nil) != (want == nil), got != nil && !bytes.Equal(c.AppendPayload(nil, got), c.AppendPayload(nil, want)):
				t.Errorf("target %d: %s has other deadlines", target, e.Key)
			}
			seen++
			return e.Value.(interface{ Check() error }).Check()
		}); err != nil || seen != 3 {
			t.Errorf("target %d: %d keys, %v", target, seen, err)
		}
	}
	for _, bad := range []string{"\x01", "\x01a\x00\x00\x00\x00\x00\x00\x00\x00", "\x01a\xff\xff\xff\xff\xff\xff\xff\xff", "\x01a\x01"} {
		w := NewWriter(c, Any)
		file := c.appendText(c.appendText(append(w.AppendHead(nil), opAux), []byte(deadlinesAux)), []byte(bad))
		if _, err := c.ReadFile(bytes.NewReader(file), nil); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// Reading any payload ends with a valid value or an error, and the value can be
// written again.
func FuzzPayload(f *testing.F) {
	c := newTestCodec()
	c.SkipChecksums = true
	for _, b := range seeds(c) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		before := allocatedBytes()
		v, err := c.Payload(b)
		if took := allocatedBytes() - before; took > 4<<20+uint64(len(b))<<11 {
			t.Fatalf("%d bytes for %d", took, len(b))
		}
		if err != nil {
			return
		}
		if err := v.(interface{ Check() error }).Check(); err != nil {
			t.Fatal(err)
		}
		again, err := c.Payload(c.AppendPayload(nil, v))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(c.AppendPortable(nil, v), c.AppendPortable(nil, again)) {
			if _, table := v.(*keyspace.Set); !table {
				if _, table := v.(*keyspace.Hash); !table {
					t.Fatal("it has changed on the way")
				}
			}
		}
	})
}

// Every payload that has lost or changed a byte is refused, unless checksums are
// skipped.
func TestDamage(t *testing.T) {
	c := newTestCodec()
	r := rand.New(rand.NewPCG(1, 1))
	for _, b := range seeds(c) {
		if _, err := c.Payload(b); err != nil {
			t.Fatal(err)
		}
		for range 200 {
			d := bytes.Clone(b)
			d[r.IntN(len(d))] ^= 1 << r.IntN(8)
			if _, err := c.Payload(d); !errors.Is(err, ErrChecksum) {
				t.Errorf("%x: %v", d, err)
			}
			c.SkipChecksums = true
			c.Payload(d)
			c.Payload(d[:r.IntN(len(d))])
			c.SkipChecksums = false
		}
	}
}

// A payload that claims to be huge takes no more memory than a valid one of its
// size may.
func TestClaims(t *testing.T) {
	c := newTestCodec()
	c.SkipChecksums = true
	r := rand.New(rand.NewPCG(3, 4))
	all := slices.DeleteFunc(seeds(c), func(b []byte) bool { return len(b) > 2000 })
	var before, after runtime.MemStats
	for range 10000 {
		d := bytes.Clone(all[r.IntN(len(all))])
		for range 1 + r.IntN(4) {
			switch at := r.IntN(len(d)); r.IntN(4) {
			case 0:
				d[at] = byte(r.IntN(256))
			case 1: // a length of 32 bits
				if at+5 < len(d) {
					d[at] = 0x80
					binary.BigEndian.PutUint32(d[at+1:], uint32(r.IntN(1<<30)))
				}
			case 2: // and one of 64
				if at+9 < len(d) {
					d[at] = 0x81
					binary.BigEndian.PutUint64(d[at+1:], uint64(r.Int64N(1<<40)))
				}
			case 3:
				d = d[:at+1]
			}
		}
		runtime.ReadMemStats(&before)
		c.Payload(d)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
			t.Fatalf("%d bytes for %d: %x", took, len(d), d)
		}
	}
}

// FuzzFile is FuzzPayload for files.
func FuzzFile(f *testing.F) {
	c := newTestCodec()
	c.SkipChecksums = true
	var all []byte
	w := NewWriter(c, Any)
	all = w.AppendHead(all)
	for i, b := range seeds(c) {
		v, err := c.Payload(b)
		if err != nil {
			f.Fatal(err)
		}
		one := NewWriter(c, Target(i%5))
		file := one.AppendHead(nil)
		file = one.AppendLibrary(file, "#!lua name=x\n")
		file = one.AppendDeadlines(file, v)
		file = one.AppendKey(file, i%3, fmt.Sprint("key", i), v, int64(i%2)*1e12)
		f.Add(one.AppendEnd(file))
		all = w.AppendKey(all, i/9, fmt.Sprint("key", i), v, 0)
	}
	f.Add(w.AppendEnd(all))
	f.Add([]byte("REDIS0009\xfa\x09redis-ver\x055.0.0\xf7\x81\x00\x00\x00\x00\x00\x00\x00\x01\x02\x05\x01a\x00\xf8\x05\xf9\x01\xfb\x01\x01\xfd\x00\x00\x00\x01\x00\x01k\xc0\x05\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		before := allocatedBytes()
		c.ReadFile(bytes.NewReader(b), func(e Entry) error {
			if e.Value != nil {
				if err := e.Value.(interface{ Check() error }).Check(); err != nil {
					t.Fatal(err)
				}
			}
			return nil
		})
		if took := allocatedBytes() - before; took > 8<<20+uint64(len(b))<<11 {
			t.Fatalf("%d bytes for %d", took, len(b))
		}
	})
}

func allocatedBytes() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
